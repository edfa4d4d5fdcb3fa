"""Programs: what users write, checked and ready to be materialised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from evermat.core import (
    ENTAILMENTS,
    EQUALITY_MODES,
    INCONSISTENCIES,
    KEPT_COUNTERS,
    PLACEMENTS,
    SCHEME_POLICIES,
    Entailment,
    EqualityMode,
    Inconsistency,
    KeptCounters,
    MaterialiseAlgorithm,
    PhaseTimer,
    Placement,
    Problem,
    SchemePolicy,
    Source,
    documented,
)
from evermat.language import Program as CompiledProgram
from evermat.language import Stratum, read_source
from evermat.runtime import ProgramSources, compose_program, with_triples

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from evermat.api.materialisation import Materialisation
    from evermat.owl import Note


@final
class Program:
    """A Datalog program that passed all checks.

    >>> program = Program.parse(".decl a(x:number) .decl b(x:number) b(x) :- a(x).")
    >>> program.relations
    ['a', 'b']

    Attributes:
        notes: Axioms of ontologies that rules cannot express, each with the reason.
    """

    def __init__(
        self, compiled: CompiledProgram, triples: pa.Table | None = None, notes: tuple[Note, ...] = ()
    ) -> None:
        self._compiled, self._triples, self.notes = compiled, triples, notes

    @classmethod
    def parse(cls, text: str = "", name: str = "<text>", **sources: Any) -> Program:
        """The program in a text.

        Args:
            text: the program's own rules; there may be none.
            name: what errors call it.
            **sources: ontologies and rule sets, see `read`.

        Raises:
            ProgramError: with all errors of the text at once.
            DataError: an ontology is wrong.
        """
        return cls._of(Source(name, text), **sources)

    @classmethod
    @documented
    def read(cls, path: str | PathLike[str] | None, **sources: Any) -> Program:
        """The program in a file.

        Args:
            path: the file, or None if there are no rules but those of ontologies and rule sets.
            **sources: what there is besides. `ontology`: a file, or several, whose axioms become rules and whose triples become
                facts. `entailment`: rules over `triple` for axioms that are in the data. {entailment}. `trivial`: whether
                trivial consequences are wanted. `equality`: what owl:sameAs does. {equality}. `inconsistency`: what happens if one
                is derived. {inconsistency}. `base`: for relative IRIs of ontologies. `ignore_imports`: whether imports may be missing.

        Raises:
            ProgramError: if it cannot be read, or with all its errors at once.
            DataError: an ontology is wrong.
        """
        return cls._of(Source("<text>", "") if path is None else read_source(Path(path)), **sources)

    @classmethod
    def _of(
        cls,
        source: Source,
        *,
        ontology: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
        entailment: Entailment | None = None,
        trivial: bool = False,
        equality: EqualityMode | None = None,
        inconsistency: Inconsistency = "refuse",
        base: str | None = None,
        ignore_imports: bool = False,
    ) -> Program:
        INCONSISTENCIES.check(inconsistency)
        if entailment is not None:
            ENTAILMENTS.check(entailment)
        if equality is not None:
            EQUALITY_MODES.check(equality)
        sources = ProgramSources(
            tuple(map(Path, _several(ontology))),
            entailment,
            trivial,
            equality,
            forbid=inconsistency == "refuse",
            base=base,
            ignore_imports=ignore_imports,
        )
        made = compose_program(source, sources)
        return cls(made.program, made.triples, made.notes)

    @cached_property
    def relations(self) -> list[str]:
        """The names of the relations, in the order of their declaration."""
        return [name for name, relation in self._compiled.relations.items() if not relation.hidden]

    @property
    def compiled(self) -> CompiledProgram:
        """The compiled program: relations, rules, inputs and outputs, as engines see them."""
        return self._compiled

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """The strata in the order of evaluation."""
        return self._compiled.strata

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Warnings about the program: worth knowing, but harmless."""
        return self._compiled.warnings

    def describe(self) -> str:
        """Types, strata, recursive and nonrecursive rules, modules, storage schemes and plans, as text."""
        from evermat.runtime import describe

        return describe(self._compiled)

    @documented
    def materialise(
        self,
        facts: Mapping[str, Any] | None = None,
        *,
        inputs: str | PathLike[str] | None = None,
        rdf: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
        base: str | None = None,
        skip_malformed: bool = False,
        engine: str | SparkSession = "memory",
        limit_rounds: int | None = None,
        limit_facts: int | None = None,
        limit_seconds: float | None = None,
        memory: int | None = None,
        counters: KeptCounters = "none",
        algorithm: MaterialiseAlgorithm = "auto",
        schemes: SchemePolicy = "auto",
        place: Placement = "auto",
        scratch: str | PathLike[str] | None = None,
        progress: Callable[[str], None] | None = None,
        timer: PhaseTimer | None = None,
    ) -> Materialisation:
        """Derives all consequences of the program and some explicit facts.

        Args:
            facts: explicit facts by relation, as rows, Arrow, pandas, polars or Spark DataFrames; any relation may have some.
            inputs: the directory that the program's `.input`s are read from; if left out they are not read.
            rdf: RDF files, whose triples are facts of classes, properties, or relations of triples; also directories and patterns.
            base: what relative IRIs in them are relative to.
            skip_malformed: whether to leave out malformed statements; `stats["skipped"]` counts them.
            engine: `memory`, or your own SparkSession.
            limit_rounds: stop after so many rounds of rule application.
            limit_facts: stop when there are more facts.
            limit_seconds: stop when reasoning takes longer.
            memory: stop when the process uses more bytes.
            counters: which derivation counters to keep for later updates. {counters}.
            algorithm: how consequences are derived. {materialise_algorithm}.
            schemes: how relations are stored. {schemes}.
            place: where Spark has rules evaluated. {placement}.
            scratch: with Spark, a directory for temporary files; on a cluster, one that all machines share.
            progress: called from time to time with a line about how far it has come.
            timer: what phases take is added to it; `stats` reports it.

        Raises:
            DataError: the facts do not fit their relations, RDF is malformed, or forbidden facts follow.
            LimitError: a limit was reached.
            ProgramError: there is no such algorithm, or an input needs Spark.
        """
        from evermat.algebra import Counters
        from evermat.api.materialisation import Materialisation
        from evermat.engine import Limits
        from evermat.io import GraphFiles, RdfOptions
        from evermat.reasoning import check_name
        from evermat.runtime import FactSources, Options, materialise_facts

        check_engine(engine)
        check_name(algorithm)
        for choices, name in ((KEPT_COUNTERS, counters), (SCHEME_POLICIES, schemes), (PLACEMENTS, place)):
            choices.check(name)
        options = Options(
            Limits(limit_rounds, limit_facts, limit_seconds, memory),
            Counters[counters.upper()],
            algorithm,
            schemes,
            place,
            None if scratch is None else Path(scratch),
            progress=progress,
        )
        files = GraphFiles(
            tuple(map(str, _several(rdf))),
            RdfOptions(base=base, skip=skip_malformed),
            apart=self._triples is not None,
        )
        program = with_triples(self._compiled) if files.files or self._triples is not None else self._compiled
        sources = FactSources(facts or {}, None if inputs is None else str(inputs), files, self._triples)
        session = None if isinstance(engine, str) else engine
        return Materialisation(materialise_facts(program, sources, options, session, timer), skipped=files.skipped)

    def __repr__(self) -> str:
        return f"<Program {self._compiled.source.name}: {len(self.relations)} relations, {len(self._compiled.rules)} rules>"


def _several(given: str | PathLike[str] | Sequence[str | PathLike[str]]) -> Sequence[str | PathLike[str]]:
    """Files, of which one may be given alone."""
    return [given] if isinstance(given, str | PathLike) else given


def check_engine(engine: object) -> None:
    """Refuses what is neither the in-memory engine nor a SparkSession.

    Raises:
        ValueError: there is no engine of this name.
        TypeError: it is something else.
    """
    if isinstance(engine, str):
        if engine != "memory":
            raise ValueError(f"engine {engine!r} is not known: use 'memory' or a SparkSession")
    elif not type(engine).__module__.startswith("pyspark.sql") or not hasattr(engine, "createDataFrame"):
        raise TypeError(f"the engine is of type {type(engine).__name__}: use 'memory' or a SparkSession")
