"""Programs put together from a text, ontologies and rule sets.

What comes from ontologies and rule sets is text as well, and stands behind the program's own: that is what a state keeps, what
`evermat check` shows and what rules are added to. There are two ways to hold triples, and the program's own text decides:

    relations   a class is a unary, a property a binary relation; all triples whose class or property has no relation are facts of
                `other_triple`. So that a later text cannot change what has a relation, every one of them is declared.
    triples     the text, or a rule set, mentions `triple(s, p, o)`: all triples are its facts, and RDF names stand for such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from evermat.core import GENERATED, Entailment, EqualityMode, Problems, Source, wrong_argument
from evermat.language import (
    AXIOMATISE,
    EQUALITY_AUTO,
    EQUALITY_PRAGMA,
    OTHER_TRIPLE,
    SAME_AS,
    TRIPLE,
    Declaration,
    Program,
    compile_program,
    declared_prefixes,
    parse,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.core import Problem
    from evermat.owl import Note, Translation

_TRIPLES = f".decl {OTHER_TRIPLE}(s:term, p:term, o:term)"
_COLUMNS = {1: "(s:term)", 2: "(s:term, o:term)"}


@dataclass(frozen=True)
class ProgramSources:
    """What is to be known besides a program's own text.

    `equality` is None where the rules decide; an inconsistency is an error unless `forbid` is false: then it is a fact.
    """

    ontology: tuple[Path, ...] = ()
    entailment: Entailment | None = None
    trivial: bool = False
    equality: EqualityMode | None = None
    forbid: bool = True
    base: str | None = None
    ignore_imports: bool = False
    skip_malformed: bool = False
    rdf: bool = False  # whether there will be triples

    def __bool__(self) -> bool:
        return bool(self.ontology or self.entailment or self.equality or self.rdf)


@dataclass(frozen=True)
class Composed:
    """A program, the triples of its ontologies, what these say beyond rules, and what of them was left out."""

    program: Program
    triples: pa.Table | None = None
    notes: tuple[Note, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()


def with_triples(program: Program) -> Program:
    """The program with relations for all triples, if it has none yet."""
    if {TRIPLE, OTHER_TRIPLE} & program.relations.keys():
        return program
    return compose_program(program.source, ProgramSources(rdf=True), checked=True).program


def compose_program(source: Source, sources: ProgramSources, *, checked: bool = False) -> Composed:
    """The program of a text, `checked` or not, with all that is to be known besides; see `api.Program.parse`."""
    own = compile_program(source, checked=checked)
    if not sources:
        return Composed(own)
    translation = _translated(sources)
    if TRIPLE in own.relations or sources.entailment:
        parts = _over_triples(sources, translation)
    else:
        parts = _over_relations(own, sources, translation)
    parts += [f'.pragma "{EQUALITY_PRAGMA}" "{value}"' for value in _equality(sources)]  # the last one counts
    parts += _shadowed_prefixes(source.text, parts)
    text = "\n".join([source.text, GENERATED, *_undeclared(parts, source)])
    program = compile_program(Source(source.name, text), checked=True)
    if translation is None:
        return Composed(program)
    program = replace(program, prefixes=translation.prefixes)
    return Composed(program, translation.triples, translation.notes, translation.skipped, translation.warnings)


def _shadowed_prefixes(own: str, parts: Iterable[str]) -> list[str]:
    """Declarations of the prefixes of a text that stand for something else in the parts: behind these, they mean again what they meant."""
    others = declared_prefixes("\n".join(parts))
    return [f".prefix {name}: <{iri}>" for name, iri in declared_prefixes(own).items() if others.get(name, iri) != iri]


def _translated(sources: ProgramSources) -> Translation | None:
    """The ontologies, if there are any."""
    if not sources.ontology:
        return None
    from evermat.owl import translate

    return translate(
        sources.ontology,
        base=sources.base,
        imports="ignore" if sources.ignore_imports else "require",
        skip_malformed=sources.skip_malformed,
    )


def _over_triples(sources: ProgramSources, translation: Translation | None) -> list[str]:
    """What a program needs that has all triples in one relation."""
    from evermat.owl import entailment

    if sources.trivial and not sources.entailment:
        raise wrong_argument("trivial consequences of a program that mentions `triple` need a rule set: `entailment`")
    parts: list[str] = []
    if sources.entailment:
        parts.append(entailment(sources.entailment, trivial=sources.trivial, forbid=sources.forbid))
    if translation is not None:
        parts.append(translation.text(triples=True, forbid=sources.forbid))
    return parts


def _over_relations(own: Program, sources: ProgramSources, translation: Translation | None) -> list[str]:
    """What a program needs that has relations for classes and properties: declarations of all of them, and rules."""
    from evermat.owl import schema_rules, trivial_rules

    rules = [trivial_rules()] if sources.trivial else []
    rules += [schema_rules()] if translation is not None else []
    names = {SAME_AS: 2} if translation is not None or sources.equality is not None else {}
    for text in rules:
        names |= _arities(compile_program(Source("<rules>", text), checked=True))
    names |= _arities(own)
    if translation is not None:
        taken = {name: relation.arity for name, relation in own.relations.items()} | names
        rules.append(translation.text(taken=taken, forbid=sources.forbid))
        names = {**dict.fromkeys(translation.properties, 2), **dict.fromkeys(translation.classes, 1), **names}
    declarations = [_TRIPLES, *(f".decl {name}{_COLUMNS[columns]}" for name, columns in names.items())]
    return [*declarations, *rules, *(_terms(names) if sources.trivial else ())]


def _equality(sources: ProgramSources) -> Iterator[str]:
    """The value of the pragma for equality, if one is needed: with an ontology, users expect owl:sameAs to work."""
    if sources.equality is not None:
        yield sources.equality
    elif sources.ontology or sources.entailment == "owl2rl":
        # Terms of different values cannot be represented by one: where users want to see inconsistencies, the axioms derive them.
        yield EQUALITY_AUTO if sources.forbid else AXIOMATISE


def _arities(program: Program) -> dict[str, int]:
    """The classes and properties that a program has relations for."""
    return {
        name: relation.arity
        for name, relation in program.relations.items()
        if name.startswith("<") and relation.arity in _COLUMNS and not relation.hidden
    }


def _undeclared(parts: Iterable[str], source: Source) -> Iterator[str]:
    """The parts without declarations of what the text, or a part before, declares itself."""
    statements = parse(source, Problems(source))
    known = {name.text for s in statements if isinstance(s, Declaration) for name in s.names}
    for part in parts:
        lines = []
        for line in part.splitlines():
            name = line.removeprefix(".decl ").partition("(")[0]
            if line.startswith(".decl "):
                if name in known:
                    continue
                known.add(name)
            lines.append(line)
        yield "\n".join(lines)


def _terms(names: Mapping[str, int]) -> Iterator[str]:
    """The rules by which everything that a program knows of is a term, classes and properties too."""
    atoms = [f"{OTHER_TRIPLE}({columns})" for columns in ("x, _, _", "_, x, _", "_, _, x")]
    for name, columns in names.items():
        yield f"rl_term({name})."
        if name != SAME_AS:  # what is the same as something is mentioned elsewhere, too
            atoms += [f"{name}(x)"] if columns == 1 else [f"{name}(x, _)", f"{name}(_, x)"]
    for atom in atoms:
        yield f"rl_term(x) :- {atom}."
