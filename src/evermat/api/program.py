"""What users import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evermat.core import Problem, Source
from evermat.language import EQUALITIES, Stratum, read_source
from evermat.language import Program as CompiledProgram
from evermat.runtime.compose import ENTAILMENTS, Knowledge, assemble, with_triples

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from evermat.api.materialisation import Materialisation
    from evermat.owl import Note
    from evermat.store import Version


class Program:
    """A Datalog program that passed all checks.

    >>> program = Program.parse(".decl a(x:number) .decl b(x:number) b(x) :- a(x).")
    >>> program.relations
    ['a', 'b']
    """

    def __init__(
        self, compiled: CompiledProgram, triples: pa.Table | None = None, notes: tuple[Note, ...] = ()
    ) -> None:
        self._compiled, self._triples = compiled, triples
        #: what the ontologies say that rules cannot: axioms with the reason
        self.notes = notes

    @classmethod
    def parse(cls, text: str = "", name: str = "<text>", **knowledge: Any) -> Program:
        """The program in a text; `name` is what errors call it.

        Args:
            text: the program's own rules; there may be none.
            name: what errors call it.
            **knowledge: ontologies and rule sets, see `read`.

        Raises:
            ProgramError: with all errors of the text at once.
            DataError: an ontology is wrong.
        """
        return cls._of(Source(name, text), **knowledge)

    @classmethod
    def read(cls, path: str | PathLike[str] | None, **knowledge: Any) -> Program:
        """The program in a file.

        Args:
            path: the file, or None if there are no rules but those of ontologies and rule sets.
            **knowledge: what is to be known besides. `ontology`: a file, or several, whose axioms become rules and whose triples become
                facts. `entailment`: `rdfs` or `owl2rl`, rules over `triple` for axioms that are in the data. `trivial`: whether
                trivial consequences are wanted. `equality`: `rewrite`, `axiomatise` or `off`. `inconsistency`: `refuse`, or `allow` to have the relation
                `inconsistent` tell. `base`: for relative IRIs of ontologies. `ignore_imports`: whether imports may be missing.

        Raises:
            ProgramError: if it cannot be read, or with all its errors at once.
            DataError: an ontology is wrong.
        """
        return cls._of(Source("<text>", "") if path is None else read_source(Path(path)), **knowledge)

    @classmethod
    def _of(
        cls,
        source: Source,
        *,
        ontology: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
        entailment: str | None = None,
        trivial: bool = False,
        equality: str | None = None,
        inconsistency: str = "refuse",
        base: str | None = None,
        ignore_imports: bool = False,
    ) -> Program:
        if inconsistency not in ("refuse", "allow"):
            raise ValueError(f"inconsistency {inconsistency!r} is not known: use 'refuse' or 'allow'")
        if entailment not in (None, *ENTAILMENTS):
            raise ValueError(f"entailment {entailment!r} is not known: use {', '.join(map(repr, ENTAILMENTS))}")
        if equality not in (None, *EQUALITIES):
            raise ValueError(f"equality {equality!r} is not known: use {', '.join(map(repr, EQUALITIES))}")
        known = Knowledge(
            tuple(map(Path, _several(ontology))),
            entailment,
            trivial,
            equality,
            forbid=inconsistency == "refuse",
            base=base,
            ignore_imports=ignore_imports,
        )
        made = assemble(source, known)
        return cls(made.program, made.triples, made.notes)

    @cached_property
    def relations(self) -> list[str]:
        """The names of the relations, in the order of their declaration."""
        return [name for name, relation in self._compiled.relations.items() if not relation.hidden]

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """The strata in the order of evaluation."""
        return self._compiled.strata

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is worth saying about the program but harmless."""
        return self._compiled.warnings

    def materialise(
        self,
        facts: Mapping[str, Any] | None = None,
        *,
        rdf: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
        base: str | None = None,
        skip_malformed: bool = False,
        engine: str | SparkSession = "memory",
        limit_rounds: int | None = None,
        limit_facts: int | None = None,
        limit_seconds: float | None = None,
        memory: int | None = None,
        counters: str = "none",
        algorithm: str = "auto",
        schemes: str = "auto",
        place: str = "auto",
        scratch: str | PathLike[str] | None = None,
    ) -> Materialisation:
        """Computes all consequences of the program and some explicit facts.

        Args:
            facts: explicit facts by relation, as rows, Arrow, pandas, polars or Spark DataFrames; any relation may have some.
            rdf: RDF files, whose triples are facts of classes, properties, or relations of triples; also folders and patterns.
            base: what relative IRIs in them are relative to.
            skip_malformed: leave out malformed statements; `stats["skipped"]` tells how many.
            engine: `memory`, or your own SparkSession.
            limit_rounds: stop after so many rounds of rule application.
            limit_facts: stop when there are more facts.
            limit_seconds: stop when reasoning takes longer.
            memory: stop when the process uses more bytes.
            counters: which derivation counters to keep for later updates: `none`, `nonrecursive` or `both`.
            algorithm: `modular`: rules that close a relation are evaluated by graph algorithms; `seminaive`: as all others, instance by
                instance; or `auto`, which is `modular`.
            schemes: `auto`: large closures are stored as intervals, and relations that copy others not at all, where that is better; `plain`: every
                fact has a row.
            place: where Spark has rules evaluated: `driver`, in the memory of this process; `pivot` and `cluster`, by its executors; or `auto`.
            scratch: a folder for files in between; on a cluster, one that all machines share.

        Raises:
            DataError: the facts do not fit their relations, RDF is malformed, or what is forbidden follows.
            LimitError: a limit was reached.
            ProgramError: there is no such algorithm.
        """
        from evermat.algebra import Counters  # noqa: PLC0415
        from evermat.api.materialisation import materialise_program  # noqa: PLC0415
        from evermat.columns.schemes.policy import SCHEMES  # noqa: PLC0415
        from evermat.engine.run import Limits  # noqa: PLC0415
        from evermat.reasoning.materialise import check_algorithm  # noqa: PLC0415
        from evermat.runtime.ingest import read_graphs, together  # noqa: PLC0415

        _check_engine(engine)
        check_algorithm(algorithm)
        if counters not in ("none", "nonrecursive", "both"):
            raise ValueError(f"counters {counters!r} are not known: use 'none', 'nonrecursive' or 'both'")
        if schemes not in SCHEMES:
            raise ValueError(f"schemes {schemes!r} are not known: use {' or '.join(map(repr, SCHEMES))}")
        limits = Limits(limit_rounds, limit_facts, limit_seconds, memory)
        kept = Counters[counters.upper()]
        program, files = self._compiled, None
        if (several := _several(rdf)) or self._triples is not None:
            from evermat.io import GraphFiles, RdfOptions  # noqa: PLC0415

            program = with_triples(program)
            options = RdfOptions(base=base, skip=skip_malformed)
            files = GraphFiles(tuple(map(str, several)), options, apart=self._triples is not None)
        if isinstance(engine, str):
            given = facts or {}
            if files is not None:
                given = together(given, read_graphs(program, files, self._triples), program)
            made = materialise_program(
                program, given, limits=limits, counters=kept, algorithm=algorithm, schemes=schemes
            )
        else:
            from evermat.runtime.placement import PLACES, materialise_on_spark  # noqa: PLC0415
            from evermat.spark.scratch import Scratch  # noqa: PLC0415

            if place not in PLACES:
                raise ValueError(f"place {place!r} is not known: use {', '.join(map(repr, PLACES))}")
            folder = None if scratch is None else Path(scratch)
            with Scratch(folder) as between:
                given = facts or {}
                if files is not None:
                    from evermat.spark.input.plan import read_graphs as read_on_spark  # noqa: PLC0415

                    given = together(given, read_on_spark(engine, program, between, files, self._triples), program)
                made = materialise_on_spark(
                    program,
                    given,
                    engine,
                    place=place,
                    scratch=folder,
                    limits=limits,
                    counters=kept,
                    algorithm=algorithm,
                    schemes=schemes,
                )
        if files is not None:
            made.skipped = files.skipped
        return made

    def __repr__(self) -> str:
        return f"<Program {self._compiled.source.name}: {len(self.relations)} relations, {len(self._compiled.rules)} rules>"


def _several(given: str | PathLike[str] | Sequence[str | PathLike[str]]) -> Sequence[str | PathLike[str]]:
    """Files, of which one may be given alone."""
    return [given] if isinstance(given, str | PathLike) else given


def _check_engine(engine: object) -> None:
    if isinstance(engine, str):
        if engine != "memory":
            raise ValueError(f"engine {engine!r} is not known: use 'memory' or a SparkSession")
    elif not type(engine).__module__.startswith("pyspark.sql") or not hasattr(engine, "createDataFrame"):
        raise TypeError(f"the engine is of type {type(engine).__name__}: use 'memory' or a SparkSession")


def open(  # noqa: A001
    path: str | PathLike[str],
    version: int | None = None,
    *,
    write: bool = False,
    engine: str | SparkSession = "memory",
    scratch: str | PathLike[str] | None = None,
) -> Materialisation:
    """Opens a state directory: all facts of a version are there again, and nothing is derived.

    Reading needs no lock. The first update takes it, and is refused if somebody else has written meanwhile; old versions cannot be
    updated at all.

    Args:
        path: the state directory.
        version: which version; the newest if left out.
        write: take the lock now, so that nobody else can write as long as the materialisation is open.
        engine: `memory`, or your own SparkSession, whose executors then hold the facts; they must see the state directory. A state of which
            relations are stored compactly is held by this process in any case.
        scratch: with Spark, a folder for files in between; on a cluster, one that all machines share.

    Raises:
        StateError: there is no such state or version, it is damaged, or another writes to it.
        ResourceError: Spark gave up, the scratch folder is full, or executors do not see the state directory.
    """
    _check_engine(engine)
    if not isinstance(engine, str) and not _has_schemes(Path(path), version):
        from evermat.runtime.spark_engine import open_clustered  # noqa: PLC0415

        folder = None if scratch is None else Path(scratch)
        return open_clustered(Path(path), version, engine, write=write, scratch=folder)
    from evermat.api.materialisation import Materialisation  # noqa: PLC0415
    from evermat.core import PhaseTimer  # noqa: PLC0415
    from evermat.engine.run import Run  # noqa: PLC0415
    from evermat.runtime.persistence import open_state  # noqa: PLC0415

    state, keeper, stats = open_state(Path(path), version, write=write)
    kind = engine if isinstance(engine, str) else "spark"
    opened = Materialisation(state.program, state, Run(), PhaseTimer(), keeper, kind)
    opened._opened = stats  # noqa: SLF001
    return opened


def _has_schemes(path: Path, version: int | None) -> bool:
    """Whether relations of a version are stored compactly: it fits this process then, and on executors every fact would be a row."""
    from evermat.runtime.persistence import stored_by_schemes  # noqa: PLC0415
    from evermat.store import Store  # noqa: PLC0415

    with Store.open(path) as store:
        number = store.latest.number if version is None else store.version(version).number
        return bool(stored_by_schemes(store, number)[1])


def versions(path: str | PathLike[str]) -> list[Version]:
    """The versions of a state directory that are kept, oldest first.

    Raises:
        StateError: there is no such state, or it is damaged.
    """
    from evermat.store import Store  # noqa: PLC0415

    with Store.open(path) as store:
        return store.versions()


def changes(path: str | PathLike[str], first: int | None = None, last: int | None = None) -> dict[str, pa.Table]:
    """What the versions `first` to `last` of a state directory changed, by relation: all that are kept if left out.

    The tables have the columns of the relation, `_op` (`+` or `-`) and `_version`.

    Raises:
        StateError: there is no such state or version, or it is damaged.
    """
    from evermat.runtime.change_history import changes_between  # noqa: PLC0415

    return changes_between(Path(path), first, last)


def vacuum(path: str | PathLike[str], keep: int) -> tuple[int, int]:
    """Keeps only the newest versions of a state directory, and removes the files that no other needs.

    Args:
        path: the state directory.
        keep: how many versions to keep, at least 1.

    Returns:
        How many files were removed, and how many bytes they had.
    """
    from evermat.store import Store  # noqa: PLC0415

    with Store.open(path) as store:
        store.lock()
        store.refresh()
        return store.vacuum(keep)
