"""Names: relations, their columns, and where they are read from and written to.

RDF names need no declaration: a class is a unary, a property a binary relation of terms. In a program that mentions
`triple(s, p, o)` they are not relations: `ub:Student(x)` stands for `triple(x, rdf:type, ub:Student)`. So it is in
a program that asks for the classes of something, `rdf:type(x, c)`. A program that declares `other_triple(s, p, o)` keeps
there what has no relation of its own: RDF names without a declaration stand for such triples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from evermat.core import Problems, Span, count_of, did_you_mean
from evermat.core import error_catalogue as errors
from evermat.language.analysis.declared_types import Types
from evermat.language.analysis.spark_outputs import SPARK_MEDIA, spark_output
from evermat.language.builtins import ANY, Type
from evermat.language.model import Column, Io, Relation
from evermat.language.patterns.equality import EQUALITIES, EQUALITY_AUTO, EQUALITY_OFF, EQUALITY_PRAGMA
from evermat.language.patterns.triples import COLUMNS, OTHER_TRIPLE, TRIPLE, class_of, is_general, spread, triples_of
from evermat.language.syntax import ast
from evermat.language.terms import RDF_TYPE

_IGNORED = {
    ".plan": "the order of literals is chosen from what is bound and from the sizes of relations",
    ".pragma": "there is no such pragma",
    ".limitsize": "limits are set for the whole run: --limit-facts",
}
_RDF_HINT = "an RDF name with one column is a class, with two a property; anything else needs a `.decl`"
_PARAMETERS = ("IO", "filename", "delimiter", "headers", "rfc4180")
_MEDIA = {
    ".input": ("file", "stdin", "table", "jdbc", "spark"),
    ".output": ("file", "stdout", *SPARK_MEDIA),
    ".printsize": ("stdout",),
}
# What else says where a relation comes from, and which of it one cannot do without (one of each group).
_OPTIONS = {
    "table": ("name", "select", "where"),
    "jdbc": (
        *("url", "dbtable", "query", "driver", "user", "password", "fetchsize"),
        *("partitionColumn", "lowerBound", "upperBound", "numPartitions"),
        *("select", "where"),
    ),
}
_NEEDED = {"table": (("name",),), "jdbc": (("url",), ("dbtable", "query")), "spark": (("format",),)}
_PATHS = ("filename", "path")
_NEVER_EMPTY = ("format", "path", "select", "where", "name", "url", "dbtable", "query")  # of inputs that Spark reads
_OF_FILES = {  # parameters of files that Spark would ignore
    "filename": "with `IO=spark` it is called `path`",
    "headers": "with `IO=spark` it is called `header`",
    "rfc4180": "with `IO=spark` the format says how values are quoted: `format=csv`",
}


class Uses:
    """What clauses may say of known relations: atoms checked, RDF names declared or turned into triples."""

    def __init__(self, relations: dict[str, Relation], problems: Problems) -> None:
        self.relations, self.problems = relations, problems
        self.triples = triples_of(relations)  # where RDF names without a relation are looked for
        self._implicit: set[str] = set()  # RDF names without a declaration
        self._unread: set[str] = set()  # names whose declaration has a mistake in it

    def where_declared(self, relation: Relation) -> str:
        """The origin of a relation, for the note of a message."""
        if relation.span is None:
            return "its columns are subject, property and object"
        line, column = self.problems.source.position(relation.span.start)
        how = "first used" if relation.name in self._implicit else "declared"
        return f"it is {how} at {line}:{column}"

    def check(self, atom: ast.Atom) -> bool:
        """Whether the relation of an atom is known and has as many columns; declares RDF names."""
        if RDF_TYPE not in self.relations and (class_ := class_of(atom)):
            atom.name, atom.arguments = class_, atom.arguments[:1]
        name, found = atom.name.text, len(atom.arguments)
        relation = self._relation_of(atom)
        if relation is None and self._is_spread(atom):
            return True
        if relation is None and atom.name.is_iri and found in (1, 2):
            if not self.triples:
                self.relations[name] = _term_relation(name, ("s", "o")[:found], atom.name.span)
                self._implicit.add(name)
            return True
        if relation is None:
            self.report_unknown(atom.name)
            return False
        if relation.arity != found:
            details = {"expected": count_of(relation.arity, "column"), "place": self.where_declared(relation)}
            self.problems.add(errors.ARITY, atom.span, name=name, found=str(found), **details)
        return relation.arity == found

    def _relation_of(self, atom: ast.Atom) -> Relation | None:
        """The relation of an atom's name. A class whose name is also that of a property has only what suits a class."""
        relation = self.relations.get(atom.name.text)
        if relation is not None and atom.name.is_iri and self.triples == OTHER_TRIPLE:
            return relation if relation.arity == len(atom.arguments) else None
        return relation

    def _is_spread(self, atom: ast.Atom) -> bool:
        """Whether an atom is about triples that are facts of several relations."""
        return self.triples == OTHER_TRIPLE and is_general(atom, self.relations)

    def report_unknown(self, name: ast.Name) -> None:
        if name.text not in self._unread:
            hint = _RDF_HINT if name.is_iri else self.problems.hint(name.text, self.relations)
            self.problems.add(errors.UNKNOWN_RELATION, name.span, hint, name=name.text)

    def resolve(self, clause: ast.Clause) -> ast.Clause:
        """The clause with RDF atoms turned into triples, if this program uses triples."""
        if not self.triples:
            return clause
        heads = []
        for head in clause.heads:
            if self._is_spread(head):
                self.problems.add(errors.SPREAD_HEAD, head.span)
            else:
                heads.append(self._triple(head))
        body = None if clause.body is None else self._triples(clause.body)
        return ast.Clause(heads, body, clause.span)

    def _triple(self, atom: ast.Atom) -> ast.Atom:
        if self._relation_of(atom) is not None:
            return ast.Atom(atom.name, [self._triples(a) for a in atom.arguments], atom.span)
        subject, *value = [self._triples(a) for a in atom.arguments]
        name = ast.Literal("term", atom.name.text, atom.name.span)
        type_ = ast.Literal("term", RDF_TYPE, atom.name.span)
        arguments = [subject, name, *value] if value else [subject, type_, name]
        return ast.Atom(ast.Name(self.triples, atom.name.span), arguments, atom.span)

    def _triples(self, node: ast.Node) -> Any:
        if not isinstance(node, ast.Atom):
            return ast.rebuilt(node, self._triples)
        return spread(node, self.relations) if self._is_spread(node) else self._triple(node)


class Names(Uses):
    """All relations of a program."""

    def __init__(self, statements: list[ast.Statement], types: Types, problems: Problems) -> None:
        super().__init__({}, problems)
        self.inputs: list[Io] = []
        self.outputs: list[Io] = []
        self.sizes: list[Relation] = []
        self._unread = {n for s in statements if isinstance(s, ast.Unread) and s.keyword == ".decl" for n in s.names}
        for statement in statements:
            if isinstance(statement, ast.Declaration):
                self._declare(statement, types)
        atoms = [atom for s in statements if isinstance(s, ast.Clause) for atom in clause_atoms(s)]
        self.triples = triples_of(self.relations)
        if not self.triples and any(is_general(atom, self.relations) for atom in atoms):
            self.relations[TRIPLE] = _term_relation(TRIPLE, COLUMNS, None)
            self.triples = TRIPLE
        self.equality = EQUALITY_AUTO if any(isinstance(atom, ast.Equation) for atom in atoms) else EQUALITY_OFF
        wrong = {id(atom) for atom in atoms if not self.check(atom)}
        self.clauses = [
            s
            for s in statements
            if isinstance(s, ast.Clause) and not (wrong and any(id(atom) in wrong for atom in clause_atoms(s)))
        ]
        for statement in statements:
            if isinstance(statement, ast.Directive):
                self._direct(statement)
            elif isinstance(statement, ast.Pragma) and statement.key == EQUALITY_PRAGMA:
                self._choose_equality(statement)
            elif isinstance(statement, ast.Pragma):
                problems.add(errors.IGNORED, statement.span, name=".pragma", why=_IGNORED[".pragma"])
            elif isinstance(statement, ast.Ignored):
                problems.add(errors.IGNORED, statement.span, name=statement.keyword, why=_IGNORED[statement.keyword])

    def _choose_equality(self, pragma: ast.Pragma) -> None:
        """What is done about equal terms; without a pragma they are the same everywhere if a head says that terms are equal."""
        if pragma.value not in (*EQUALITIES, EQUALITY_AUTO):
            shown = ", ".join(f"`{value}`" for value in EQUALITIES) + f" or `{EQUALITY_AUTO}`"
            details = {"name": pragma.key, "value": pragma.value, "why": f"use {shown}"}
            self.problems.add(errors.BAD_PARAMETER, pragma.span, **details)
        self.equality = pragma.value if pragma.value in EQUALITIES else EQUALITY_AUTO

    # --- declarations ---

    def _declare(self, declaration: ast.Declaration, types: Types) -> None:
        columns: list[Column] = []
        seen: set[str] = set()
        for attribute in declaration.attributes:
            primitive = types.primitive(attribute.type.text, attribute.type.span)
            if attribute.name in seen:
                relation_name = declaration.names[0].text
                self.problems.add(errors.COLUMN_TWICE, attribute.span, relation=relation_name, name=attribute.name)
            seen.add(attribute.name)
            columns.append(Column(attribute.name, primitive or ANY, attribute.type.text))
        qualifiers = {q.text for q in declaration.qualifiers}
        for name in declaration.names:
            if first := self.relations.get(name.text):
                place = self.where_declared(first)
                self.problems.add(errors.DECLARED_TWICE, name.span, what="relation", name=name.text, place=place)
                continue
            has_pairs = len(columns) == 2 and columns[0].declared == columns[1].declared
            if "eqrel" in qualifiers and not has_pairs:
                self.problems.add(errors.EQREL_SHAPE, name.span, name=name.text)
            equivalence, forbidden = "eqrel" in qualifiers and has_pairs, "forbidden" in qualifiers
            relation = Relation(name.text, tuple(columns), equivalence, forbidden, span=name.span)
            self.relations[name.text] = relation
            if "input" in qualifiers:
                self.inputs.append(Io(relation))
            if "output" in qualifiers:
                self.outputs.append(Io(relation))
            if "printsize" in qualifiers:
                self.sizes.append(relation)

    # --- inputs and outputs ---

    def _direct(self, directive: ast.Directive) -> None:
        self._check_values(directive)
        for name in directive.names:
            relation = self.relations.get(name.text)
            if relation is None:
                self.report_unknown(name)
                continue
            io = self._io(relation, directive, name.span)
            if directive.keyword == ".printsize" or io.medium == "stdoutprintsize":
                self.sizes.append(relation)
            else:
                (self.inputs if directive.keyword == ".input" else self.outputs).append(io)

    def _io(self, relation: Relation, directive: ast.Directive, span: Span) -> Io:
        media = _MEDIA[directive.keyword]
        given = {parameter.key: parameter for parameter in directive.parameters}
        medium = self._choice(given.get("IO"), (*media, "stdoutprintsize"), media[0])
        if directive.keyword == ".output" and medium in SPARK_MEDIA:
            return spark_output(relation, medium, directive, span, self.problems)
        if medium == "spark":
            return self._spark_io(relation, directive, span)
        known = (*_PARAMETERS, *_OPTIONS.get(medium, ()))
        values: dict[str, ast.Parameter] = {}
        for parameter in directive.parameters:
            if parameter.key in known:
                values[parameter.key] = parameter
            else:
                hint, details = did_you_mean(parameter.key, known), {"directive": directive.keyword}
                self.problems.add(errors.UNKNOWN_PARAMETER, parameter.span, hint, name=parameter.key, **details)
        self._check_needed(medium, values)
        delimiter = values["delimiter"].value if "delimiter" in values else None
        rfc4180 = self._choice(values.get("rfc4180"), ("true", "false"), "false") == "true"
        if delimiter is not None and len(delimiter) != 1:
            self._bad(values["delimiter"], "a delimiter is one character")
        if directive.keyword == ".output" and "filename" in values and ".." in values["filename"].value.split("/"):
            self.problems.add(errors.DOTS_IN_OUTPUT, values["filename"].span, name=values["filename"].value)
        return Io(
            relation,
            medium=medium,
            path=values["filename"].value if "filename" in values else None,
            delimiter=delimiter or ("," if rfc4180 else "\t"),
            headers=self._choice(values.get("headers"), ("true", "false"), "false") == "true",
            rfc4180=rfc4180,
            options=tuple((name, values[name].value) for name in _OPTIONS.get(medium, ()) if name in values),
            span=span,
        )

    def _spark_io(self, relation: Relation, directive: ast.Directive, span: Span) -> Io:
        """What Spark's own readers read: all parameters are theirs, and `path` may stand several times."""
        self._check_needed("spark", {parameter.key: parameter for parameter in directive.parameters})
        options = [parameter for parameter in directive.parameters if parameter.key != "IO"]
        for parameter in options:
            if parameter.key in _OF_FILES:
                self._bad(parameter, _OF_FILES[parameter.key])
        return Io(relation, medium="spark", options=tuple((one.key, one.value) for one in options), span=span)

    def _check_values(self, directive: ast.Directive) -> None:
        """Refuses values that nothing can do anything with, and a second value that would silently replace the first."""
        reads = directive.keyword == ".input"
        seen: set[str] = set()
        for parameter in directive.parameters:
            key = parameter.key.lower()  # as Spark does
            if key in seen and not (reads and key == "path"):
                self._bad(parameter, f"there is another `{parameter.key}` before it")
            seen.add(key)
            if key in _PATHS and "\0" in parameter.value:
                self._bad(parameter, "a path contains no NUL character")
            if reads and key in _NEVER_EMPTY and not parameter.value.strip():
                self._bad(parameter, "it is empty")

    def _check_needed(self, medium: str, given: dict[str, ast.Parameter]) -> None:
        for names in _NEEDED.get(medium, ()):
            if not given.keys() & set(names):
                self._bad(given["IO"], f"it needs {' or '.join(f'`{name}`' for name in names)}")

    def _choice(self, parameter: ast.Parameter | None, known: tuple[str, ...], default: str) -> str:
        if parameter is None:
            return default
        if parameter.value not in known:
            shown = " or ".join(f"`{value}`" for value in known if value != "stdoutprintsize")
            self._bad(parameter, f"use {shown}")
            return default
        return parameter.value

    def _bad(self, parameter: ast.Parameter, why: str) -> None:
        details = {"name": parameter.key, "value": parameter.value.replace("\0", r"\0"), "why": why}
        self.problems.add(errors.BAD_PARAMETER, parameter.span, **details)


def _term_relation(name: str, columns: tuple[str, ...], span: Span | None) -> Relation:
    return Relation(name, tuple(Column(c, Type.TERM, "term") for c in columns), span=span)


def clause_atoms(clause: ast.Clause) -> Iterator[ast.Atom]:
    """All atoms of a clause, those inside aggregates included."""
    yield from clause.heads
    for head in clause.heads:
        yield from _atoms(head.parts)
    if clause.body is not None:
        yield from _atoms([clause.body])


def _atoms(nodes: Iterable[ast.Node]) -> Iterator[ast.Atom]:
    for node in nodes:
        if isinstance(node, ast.Atom):
            yield node
        yield from _atoms(node.parts)
