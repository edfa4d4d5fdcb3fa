"""Programs put together from a text, ontologies and rule sets.

What comes from ontologies and rule sets is text as well, and stands behind the program's own: that is what a state keeps, what
`evermat check` shows and what rules are added to. There are two ways to hold triples, and the program's own text decides:

    relations   a class is a unary, a property a binary relation; all triples whose class or property has no relation are facts of
                `other_triple`. So that a later text cannot change what has a relation, every one of them is declared.
    triples     the text, or a rule set, mentions `triple(s, p, o)`: all triples are its facts, and RDF names stand for such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evermat.errors import Problems
from evermat.program.compile import compile_program
from evermat.program.declare import AXIOMATISE, EQUALITY, OTHER_TRIPLE, TRIPLE
from evermat.program.model import Program
from evermat.program.parser import parse
from evermat.program.syntax import Declaration
from evermat.program.terms import SAME_AS
from evermat.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.rdf.translation import Note

ENTAILMENTS = RDFS, OWL2RL = ("rdfs", "owl2rl")
_TRIPLES = f".decl {OTHER_TRIPLE}(s:term, p:term, o:term)"
_COLUMNS = {1: "(s:term)", 2: "(s:term, o:term)"}


@dataclass(frozen=True)
class Knowledge:
    """What is to be known besides a program's own text.

    `equality` is None where the rules decide; an inconsistency is an error unless `forbid` is false: then it is a fact.
    """

    ontology: tuple[Path, ...] = ()
    entailment: str | None = None  # one of `ENTAILMENTS`
    trivial: bool = False
    equality: str | None = None
    forbid: bool = True
    base: str | None = None
    ignore_imports: bool = False
    rdf: bool = False  # whether there will be triples

    def __bool__(self) -> bool:
        return bool(self.ontology or self.entailment or self.equality or self.rdf)


@dataclass(frozen=True)
class Assembled:
    """A program, the triples of its ontologies, and what these say beyond rules."""

    program: Program
    triples: pa.Table | None = None
    notes: tuple[Note, ...] = ()


def with_triples(program: Program) -> Program:
    """The program with relations for all triples, if it has none yet."""
    if {TRIPLE, OTHER_TRIPLE} & program.relations.keys():
        return program
    return assemble(program.source, Knowledge(rdf=True)).program


def assemble(source: Source, knowledge: Knowledge) -> Assembled:
    """The program of a text with all that is to be known besides.

    Raises:
        ProgramError: with all errors of the text.
        DataError: an ontology cannot be read, or something that it imports is missing.
    """
    own = compile_program(source)
    if not knowledge:
        return Assembled(own)
    translation = None
    if knowledge.ontology:
        from evermat.rdf.translation import translate  # noqa: PLC0415

        imports: Literal["ignore", "require"] = "ignore" if knowledge.ignore_imports else "require"
        translation = translate(knowledge.ontology, base=knowledge.base, imports=imports)
    parts: list[str] = []
    if TRIPLE in own.relations or knowledge.entailment:
        if knowledge.entailment:
            from evermat.rdf.entailment import entailment  # noqa: PLC0415

            regime: Any = knowledge.entailment
            parts.append(entailment(regime, trivial=knowledge.trivial, forbid=knowledge.forbid))
        if translation is not None:
            parts.append(translation.text(triples=True, forbid=knowledge.forbid))
    else:
        from evermat.rdf.entailment import schema_rules, trivial_rules  # noqa: PLC0415

        names = _arities(own)
        if knowledge.equality is not None:
            names.setdefault(SAME_AS, 2)
        if knowledge.trivial:
            parts.append(trivial_rules())
            names = {**_arities(compile_program(Source("<trivial>", parts[-1]))), **names}
        if translation is not None:
            schema = schema_rules()
            names = {**_arities(compile_program(Source("<schema>", schema))), **names}
            taken = {name: relation.arity for name, relation in own.relations.items()} | names
            parts += [translation.text(taken=taken, forbid=knowledge.forbid), schema]
            names = {
                SAME_AS: 2,
                **dict.fromkeys(translation.properties, 2),
                **dict.fromkeys(translation.classes, 1),
                **names,
            }
        parts[:0] = [f".decl {name}{_COLUMNS[columns]}" for name, columns in names.items()]
        parts.insert(0, _TRIPLES)
        if knowledge.trivial:
            parts += _terms(names)
    parts += [f'.pragma "{EQUALITY}" "{value}"' for value in _equality(knowledge)]  # the last one counts
    text = "\n".join([source.text, *_undeclared(parts, source)])
    program = compile_program(Source(source.name, text))
    if translation is None:
        return Assembled(program)
    return Assembled(program, translation.triples, tuple(translation.notes))


def _equality(knowledge: Knowledge) -> Iterator[str]:
    """What the pragma says, if there is to be one: whoever brings an ontology expects that equal terms are equal."""
    if knowledge.equality is not None:
        yield knowledge.equality
    elif knowledge.ontology or knowledge.entailment == OWL2RL:
        yield AXIOMATISE


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
