"""Queries: the body of a rule, read and checked in the context of a program.

The head is made here: its columns are the named variables of the body in the order of their first appearance. A name
that begins with `_` is a variable like any other but is not asked for. What the passes need beside (aggregates, negated
atoms with `_`) becomes relations of the query alone, unless the program has them already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from evermat.core import Problem, Problems, ProgramError, Source, Span
from evermat.core import error_catalogue as errors
from evermat.language import model
from evermat.language.analysis.declarations import Uses, clause_atoms
from evermat.language.analysis.declared_types import Types
from evermat.language.analysis.flatten import lower, outer_variables
from evermat.language.analysis.safety import check_safety
from evermat.language.analysis.strata import stratify
from evermat.language.analysis.term_constants import check_terms
from evermat.language.analysis.type_inference import type_names, type_rule
from evermat.language.builtins import ANY, Type
from evermat.language.model import Column, Program, Relation, Row, Rule
from evermat.language.prefixes import relation_names
from evermat.language.query_cache import QueryCache
from evermat.language.rewrites import PASSES
from evermat.language.rewrites.expose_names import looks_at_names
from evermat.language.syntax.ast import Atom, Clause, Name, TypeDeclaration, Unread, Var
from evermat.language.syntax.parse_tables import lexer
from evermat.language.syntax.parser import parse

HEAD = "'query"  # no name that a program can have
SOURCE = "<query>"
_OPENING = re.compile(r"\s*\?-")
_BEFORE = "query() :-\n"  # the parser reads statements; what stands before a query is on a line of its own
_AFTER = "\n."  # on a line of its own, too: the last thing in a query may be a comment


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What has to be computed to answer a query.

    `rules` derive the relations in `relations`, those that are read first; `answer` is one of them. All others that the rules read are
    the program's.
    """

    answer: Relation
    rules: tuple[Rule, ...]
    relations: dict[str, Relation]
    about_names: bool = False  # whether it makes a difference which of several names a term has

    @property
    def reads(self) -> set[str]:
        """The program's relations that the rules read."""
        return set[str]().union(*(rule.reads for rule in self.rules)) - self.relations.keys()


class Queries:
    """Reads queries about one program; what they need of its text is read once, and the queries that are asked again and again are compiled once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known = QueryCache()
        text = program.source.text
        prefixes = relation_names(program).prefixes
        self._prefixes = "".join(f".prefix {name}: <{iri}>\n" for name, iri in prefixes.items())
        self._types: list[TypeDeclaration | Unread] = []
        if ".type" in text or "_type" in text:
            statements = parse(program.source, Problems(program.source))
            self._types = [s for s in statements if isinstance(s, TypeDeclaration)]

    def compile(self, text: str) -> Query:
        """The query in a text; `?-` before it and `.` behind it may be left out.

        Raises:
            ProgramError: with all errors of the text.
        """
        return self._known.get(text, self._read)

    def _read(self, text: str) -> Query:
        query = _Text(text, self._prefixes)
        problems = Problems(query.source)
        try:
            return self._compile(query, problems)
        except ProgramError as error:
            raise ProgramError(query.in_terms_of_queries(error.problems)) from None

    def _compile(self, query: _Text, problems: Problems) -> Query:
        body = query.body(problems)
        asked = _asked(body)
        head = Atom(Name(HEAD, query.span), list(asked), query.span)
        open_columns = tuple(Column(variable.name, ANY, "") for variable in asked)
        uses = _ProgramUses(self.program, problems)
        sound = [uses.check(atom) for atom in clause_atoms(body)]
        problems.raise_if_any()
        assert all(sound)
        uses.relations[HEAD] = Relation(HEAD, open_columns, hidden=True)
        types = Types(self._types, problems)
        rules: list[Rule] = []
        for flat in lower(uses.resolve(Clause([head], body.body, query.span)), problems):
            if check_safety(flat, problems):
                rule = type_rule(flat, uses.relations, types, problems)
                rules += [rule] if rule is not None else []
        problems.raise_if_any()
        answer = Relation(HEAD, tuple(_columns(asked, rules, problems)), hidden=True)
        rules = [Rule(model.Atom(answer, rule.head.terms), rule.body, rule.span) for rule in rules]
        return self._rewritten(answer, rules, uses.relations | {HEAD: answer}, problems)

    def instances(self, rule: Rule, row: Row) -> Query | None:
        """What has to be computed to see by which instances one of the program's rules derives a fact.

        The answer has a column for each variable of the body, in the order of `body_variables`. None if the head is not such a fact.
        """
        tests: list[model.Literal] = []
        for term, value in zip(rule.head.terms, row, strict=True):
            if isinstance(term, model.Variable):
                tests.append(model.Test("=", term, model.Constant(value, term.type)))
            elif isinstance(term, model.Constant) and term.value != value:
                return None
        rule = named_throughout(rule)
        variables = body_variables(rule)
        columns = tuple(Column(variable.name, variable.type, str(variable.type)) for variable in variables)
        answer = Relation(HEAD, columns, hidden=True)
        problems = Problems(self.program.source)
        derived = Rule(model.Atom(answer, tuple(variables)), (*rule.body, *tests), rule.span)
        return self._rewritten(answer, [derived], {HEAD: answer}, problems)

    def _rewritten(
        self, answer: Relation, rules: list[Rule], relations: dict[str, Relation], problems: Problems
    ) -> Query:
        """The rules after all passes, in the order of strata; what the program's own rules derive is there already."""
        known = self.program.relations
        about_names = self.program.rewriting and looks_at_names(rules)
        whole = Program(problems.source, known | relations, tuple(rules), {})
        for rewrite in PASSES:
            whole = rewrite(whole, problems)
        strata = stratify(whole, problems)
        problems.raise_if_any()
        ordered = tuple(rule for s in strata for rule in s.rules if rule.head.relation.name not in known)
        made = {name: relation for name, relation in whole.relations.items() if name not in known}
        return Query(answer, ordered, made, about_names)


def named_throughout(rule: Rule) -> Rule:
    """The rule with a variable for each `_` in an atom of its body, so that one can tell what it stands for."""
    body = [model.name_wildcards(literal, f"_{number}'") for number, literal in enumerate(rule.body)]
    return replace(rule, body=tuple(body))


def body_variables(rule: Rule) -> list[model.Variable]:
    """The variables that the body of a rule has in atoms, in the order of their first appearance."""
    atoms = [literal for literal in rule.body if isinstance(literal, model.Atom)]
    return list(dict.fromkeys(model.variables_of(*atoms)))


class _Text:
    """The text of a query as a statement, and the way back from places in that to places in the query."""

    def __init__(self, text: str, prefixes: str) -> None:
        if opening := _OPENING.match(text):
            text = text[: opening.end() - 2] + "  " + text[opening.end() :]
        words = list(lexer().tokens(text))
        if all(token.type == "DOT" for token in words):
            raise ProgramError(Problem(errors.EMPTY_QUERY, {}, Source(SOURCE, text)))
        begin = prefixes + _BEFORE
        after = "" if words[-1].type == "DOT" else _AFTER
        self.source = Source(SOURCE, begin + text + after, first_line=1 - begin.count("\n"))
        self.span = Span(len(begin), len(begin) + words[-1].end_pos)

    def body(self, problems: Problems) -> Clause:
        """The statement that the query is the body of."""
        statements = parse(self.source, problems)
        for more in statements[1:]:
            if not isinstance(more, Unread):
                problems.add(errors.MORE_THAN_A_QUERY, more.span)
        problems.raise_if_any()
        check_terms(statements, problems)
        (clause,) = statements
        assert isinstance(clause, Clause)
        return Clause([], clause.body, self.span)

    def in_terms_of_queries(self, found: Iterable[Problem]) -> list[Problem]:
        """The same problems as the author of the query alone sees them."""
        inside: list[Problem] = []
        beyond: list[Problem] = []
        for problem in found:
            start = problem.span.start if problem.span else self.span.start
            if start >= self.span.end:  # at the dot that was not there
                end = Span(self.span.end - 1, self.span.end)
                kind = errors.UNEXPECTED_END if problem.kind is errors.UNEXPECTED else problem.kind
                beyond.append(replace(problem, kind=kind, span=end, help=""))
            elif start < self.span.start:
                inside.append(replace(problem, span=Span(self.span.start, self.span.start + 1)))
            elif problem.kind is errors.UNBOUND_HEAD:
                inside.append(replace(problem, kind=errors.UNBOUND_ANSWER, help=""))
            else:
                inside.append(replace(problem, help=problem.help.replace("is a `.` missing", "is a `,` missing")))
        return inside or beyond


class _ProgramUses(Uses):
    """Atoms about the relations of a program that was read before."""

    def __init__(self, program: Program, problems: Problems) -> None:
        super().__init__({name: r for name, r in program.relations.items() if not r.hidden}, problems)
        self._program = program

    def where_declared(self, relation: Relation) -> str:
        source = self._program.source
        if relation.span is None or relation.name not in self._program.relations:
            return super().where_declared(relation)
        line, column = source.position(relation.span.start)
        how = "first used" if relation.name.startswith("<") else "declared"
        return f"it is {how} at {source.name}:{line}:{column}" if line > 0 else ""


def _asked(clause: Clause) -> list[Var]:
    """The first appearance of every variable that is asked for; names local to an aggregate are not."""
    assert clause.body is not None
    first: dict[str, Var] = {}
    for variable in outer_variables([clause.body]):
        first.setdefault(variable.name, variable)
    return [variable for name, variable in first.items() if not name.startswith("_")]


def _columns(asked: list[Var], rules: list[Rule], problems: Problems) -> Iterator[Column]:
    """The columns of the answer: a variable has one type in all alternatives.

    A query that is false as it stands has no rules, and nothing says what its variables are.
    """
    for position, variable in enumerate(asked):
        found = [rule.head.terms[position].type for rule in rules]  # type: ignore[union-attr]  # heads have no `_`
        first = found[0] if found else Type.SYMBOL
        for other in dict.fromkeys(found):
            if other is not first:
                types = {"found": type_names(other), "expected": type_names(first)}
                why = "a variable has the same type in every alternative of a query"
                problems.add(errors.TYPE_CLASH, variable.span, what=f"variable `{variable.name}`", why=why, **types)
        yield Column(variable.name, first, str(first))
    problems.raise_if_any()
