"""Ontologies to programs: RDFS and OWL 2 RL as rules, and a list of what ontologies say beyond that.

A class is a unary and a property a binary relation of terms, named by their IRIs. Axioms become rules (`sides` says how);
violations become facts of `inconsistent`. Facts that an ontology states are not rules: they are among its triples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from evermat.core import local_path
from evermat.owl.load import load
from evermat.owl.notes import Note, NoteGroup, group_notes
from evermat.owl.ontology.axioms import read_axioms
from evermat.owl.ontology.entities import Entities
from evermat.owl.ontology.expressions import Reader
from evermat.owl.ontology.graph import Graph, Triple
from evermat.owl.print.prefixes import Names, prefixes_for
from evermat.owl.print.program_text import Layout, Printer
from evermat.owl.rules.collect import HelperRelation, Output
from evermat.owl.rules.model import Equal, Link, Member, Rule
from evermat.owl.rules.subsumption import Sides
from evermat.owl.rules.translator import Translator
from evermat.owl.vocabulary import CLASS_TYPES, PROPERTY_TYPES, SAME, TYPE, is_built_in, is_iri

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.core import Problem

__all__ = ["Note", "NoteGroup", "Translation", "group_notes", "translate"]
_NOTHING_TAKEN: Mapping[str, int] = {}


@dataclass(frozen=True)
class Translation:
    """An ontology as rules.

    Attributes:
        rules: the rules, in the order of the kinds and texts of their axioms.
        notes: what axioms say beyond rules, and what looks like an axiom and is not one.
        triples: all triples of the ontologies and of what they import; columns `s`, `p` and `o`, terms in N-Triples.
        classes: the classes that the ontologies mention, as terms.
        properties: the properties that they mention, without annotations.
        title: the first line of the program, which names the files of the ontologies.
        prefixes: the prefixes of the program's text, with the IRIs that they abbreviate.
        helpers: the relations that the rules need beside classes and properties.
        equality: whether some terms are said to be equal.
        facts: what the ontologies state of individuals.
        skipped: how many malformed statements of which file were left out, if they were to be.
        warnings: what is wrong with the first of them, with their places.
    """

    rules: tuple[Rule, ...]
    notes: tuple[Note, ...]
    triples: pa.Table
    classes: tuple[str, ...]
    properties: tuple[str, ...]
    title: str = ""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    helpers: tuple[HelperRelation, ...] = ()
    equality: bool = False
    facts: tuple[Triple, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()

    @property
    def note_groups(self) -> tuple[NoteGroup, ...]:
        """The notes by the kind of their axiom and the reason, large groups first."""
        return group_notes(self.notes)

    def text(
        self,
        *,
        forbid: bool = True,
        declare: bool = False,
        triples: bool = False,
        facts: bool = False,
        taken: Mapping[str, int] = _NOTHING_TAKEN,
    ) -> str:
        """The program: prefixes, declarations, rules by the kinds of their axioms, and the notes as comments.

        Args:
            forbid: whether an inconsistency is an error; else it is a fact of `inconsistent`.
            declare: whether classes and properties are declared, too.
            triples: whether the program holds triples: then nothing is declared but the translation's own relations.
            facts: whether the facts that the ontology states are a part of the text.
            taken: relations that a program has already, with their numbers of columns. What is declared there is not declared
                again, and a class or property that it uses otherwise is written as `other_triple`.
        """
        arities = {**dict.fromkeys(self.properties, 2), **dict.fromkeys(self.classes, 1)}
        printer = Printer(Names(self.prefixes), arities, Layout(forbid, declare, triples, taken))
        return printer.program(
            self.rules,
            self.facts if facts else (),
            self.helpers,
            self.notes,
            title=self.title,
            equality=self.equality,
        )

    def write(self, path: str | PathLike[str]) -> None:
        """Writes the rules and the facts of individuals as a program to a file.

        Raises:
            ResourceError: it could not be written.
        """
        from evermat.io import Outputs  # noqa: PLC0415

        with Outputs() as outputs:
            outputs.write_file(local_path("a translation", "path", path), self.text(facts=True).encode())
            outputs.commit()


def translate(
    paths: Sequence[Path],
    *,
    base: str | None = None,
    imports: Literal["require", "ignore"] = "require",
    blank: str = "ontology",
    skip_malformed: bool = False,
) -> Translation:
    """The rules of ontologies, in RDF, OWL functional syntax or OWL/XML, and of all that they import.

    Imports are looked for among the files and beside them; one that is not found is an error, or only noted. The labels of
    blank nodes begin with `blank`; they are numbered, through all files. With `skip_malformed`, malformed statements are left out and counted.

    Raises:
        DataError: a file is missing or malformed, or something imported is missing.
    """
    loaded = load(paths, base=base, imports=imports, blank=blank, skip=skip_malformed)
    graph = Graph(loaded.triples)
    prefixes = prefixes_for(loaded.prefixes, (term for triple in graph for term in triple if is_iri(term)))
    names = Names(prefixes)
    entities = Entities(graph)
    axioms = read_axioms(Reader(graph, entities), names)
    output = Output(names)
    Translator(output, Sides(output, axioms.definitions, entities)).translate(axioms)
    classes, properties = _vocabulary(graph, entities, output.rules)
    return Translation(
        output.rules,
        (
            *(Note(f"Import(<{iri}>)", "it is not there", translated=False, kind="Import") for iri in loaded.missing),
            *output.notes,
        ),
        _table([*loaded.triples, *output.facts]),
        classes,
        properties,
        f"Translated from {', '.join(loaded.files)}",
        prefixes,
        tuple(output.helpers.values()),
        bool(graph.pairs(SAME)) or any(isinstance(rule.head, Equal) for rule in output.rules),
        tuple(_stated(graph, set(classes), set(properties))),
        loaded.skipped,
        tuple(loaded.problems),
    )


def _vocabulary(graph: Graph, entities: Entities, rules: Iterable[Rule]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The classes and the properties that ontologies have facts or rules for; not those of RDF, RDFS and OWL."""
    classes = {subject for subject, type_ in graph.pairs(TYPE) if type_ in CLASS_TYPES}
    classes |= {type_ for _, type_ in graph.pairs(TYPE)}
    properties = {subject for subject, type_ in graph.pairs(TYPE) if type_ in PROPERTY_TYPES} | set(graph.properties)
    for rule in rules:
        for atom in (rule.head, *rule.body):
            if isinstance(atom, Member):
                classes.add(atom.name)
            elif isinstance(atom, Link):
                properties.add(atom.name)
    properties -= entities.annotations
    return _own(classes), _own(properties)


def _own(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in names if is_iri(name) and not is_built_in(name)))


def _stated(graph: Graph, classes: set[str], properties: set[str]) -> Iterator[Triple]:
    """The triples that state facts of classes and properties, or that terms are the same."""
    for triple in graph:
        _, property_, value = triple
        if property_ in properties or property_ == SAME or (property_ == TYPE and value in classes):
            yield triple


def _table(triples: Sequence[Triple]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415

    columns = list(zip(*triples, strict=True)) or [()] * 3
    return pa.table({name: pa.array(column, pa.string()) for name, column in zip("spo", columns, strict=True)})
