"""A program with rules added and removed: the text grows, rules are told apart up to the names of their variables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from evermat.core import Problems, ProgramError, Source
from evermat.core import error_catalogue as errors
from evermat.language import model
from evermat.language.compile import finish, typed_program
from evermat.language.patterns.equality import AXIOMATISE, EQUALITY_AUTO, REWRITE
from evermat.language.prefixes import declared_prefixes


@dataclass(frozen=True, slots=True)
class Revision:
    """A program after a change of rules, and the facts that stood among them."""

    program: model.Program
    inserted: dict[str, list[model.Row]]
    deleted: dict[str, list[model.Row]]


def revise(program: model.Program, add: str = "", remove: str = "", *, checked: bool = False) -> Revision:
    """Adds and removes the rules and facts of two texts; declarations may be added as well.

    What is added may have constants that are not RDF terms only if it was `checked`; what is removed always may.

    Raises:
        ProgramError: a text is wrong, or a rule that is to be removed is not there. The program is as it was.
    """
    gone = _read(program, remove, "<rules to remove>", checked=True)
    unwanted = Counter(canonical(rule) for rule in gone.rules)
    kept = []
    for rule in program.written:
        if unwanted[canonical(rule)] > 0:
            unwanted[canonical(rule)] -= 1
        else:
            kept.append(rule)
    problems = Problems(gone.source)
    for rule in gone.rules:
        if unwanted[canonical(rule)] > 0:
            problems.add(errors.NO_SUCH_RULE, rule.span, rule=str(rule))
    problems.raise_if_any()
    come = _read(program, add, "<rules to add>", checked=checked)
    rules = (*kept, *come.rules)
    problems = Problems(come.source)
    equality = _equality(program, come.whole, problems)
    typed = replace(come.whole, rules=rules, written=rules, source=come.source, equality=equality)
    revised = finish(typed, problems)
    problems.raise_if_any()
    revised = replace(
        revised,
        inputs=program.inputs,
        outputs=program.outputs,
        base=program.base or program.source,
        revisions=(*program.revisions, (add, remove)),
    )
    return Revision(revised, come.facts, gone.facts)


def _equality(program: model.Program, typed: model.Program, problems: Problems) -> str:
    """What is done about equality after a change of rules: what was done, as facts are held accordingly; at first, axioms."""
    if typed.equality == EQUALITY_AUTO:
        return REWRITE if program.rewriting else AXIOMATISE
    if program.rewriting != (typed.equality == REWRITE):
        problems.add(errors.OTHER_EQUALITY, None, old=program.equality, new=typed.equality)
        problems.raise_if_any()
    return typed.equality


@dataclass(frozen=True, slots=True)
class _Text:
    """What a text says in the context of a program: its own rules and facts, and all declarations."""

    source: Source
    whole: model.Program
    rules: tuple[model.Rule, ...]
    facts: dict[str, list[model.Row]]


def _read(program: model.Program, text: str, name: str, *, checked: bool) -> _Text:
    """Reads a text as if it stood at the end of the program; places are counted within it."""
    before = "\n".join((program.source.text, *_other_prefixes(program), ""))
    source = Source(name, before + text, first_line=1 - before.count("\n"))
    problems = Problems(source)
    length = len(source.text) if checked else len(before)
    whole = replace(typed_program(source, problems, checked=length), prefixes=program.prefixes)
    found = [p for p in problems.errors if p.span is None or p.span.start >= len(before)]
    if found:
        raise ProgramError(found)
    rules = tuple(rule for rule in whole.rules if rule.span.start >= len(before))
    facts = {name: rows[len(program.facts.get(name, ())) :] for name, rows in whole.facts.items()}
    return _Text(source, whole, rules, {name: rows for name, rows in facts.items() if rows})


def _other_prefixes(program: model.Program) -> list[str]:
    """Declarations of the prefixes that the text of a program does not declare itself."""
    declared = declared_prefixes(program.source.text) if program.prefixes else {}
    return [f".prefix {name}: <{iri}>" for name, iri in program.prefixes.items() if name not in declared]


def canonical(rule: model.Rule) -> str:
    """A rule with its variables numbered in the order of their first occurrence."""
    names: dict[str, str] = {}

    def term(thing: model.Term | model.Expression | None) -> str:
        match thing:
            case model.Variable(name):
                return names.setdefault(name, f"?{len(names)}")
            case model.Apply(function, arguments):
                return f"{function}({', '.join(map(term, arguments))})"
            case _:
                return str(thing)

    def literal(thing: model.Literal) -> str:
        match thing:
            case model.Atom(relation, terms):
                return f"{relation.name}({', '.join(map(term, terms))})"
            case model.Negation(atom):
                return f"!{literal(atom)}"
            case model.Test(operator, left, right):
                return f"{operator}({term(left)}, {term(right)})"
            case model.Aggregation(result, function, value, _, alternatives):
                bodies = " ; ".join(", ".join(map(literal, body)) for body in alternatives)
                return f"{term(result)} = {function} {term(value)} : {{ {bodies} }}"

    return f"{literal(rule.head)} :- {', '.join(map(literal, rule.body))}"
