"""Programs: compiled from text, ready to be materialised; and ontologies translated to rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, final

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
    check_facts,
    check_function,
    check_type,
    count_argument,
    did_you_mean,
    documented,
    is_session,
    path_arguments,
    public_class,
    sandboxed,
    within_limits,
    without_internals,
    wrong_argument,
)
from evermat.language import Program as CompiledProgram
from evermat.language import Stratum, read_source, relation_names
from evermat.runtime import ProgramSources, compose_program, with_triples

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from evermat.api.materialisation import Materialisation
    from evermat.owl import Note, NoteGroup, Translation

NO_SANDBOX = "`sandbox` needs `engine='memory'`: Spark opens network connections, and its tasks read any file"


@documented
class ProgramOptions(TypedDict, total=False):
    """The keyword arguments of `Program.read` and `Program.parse`: ontologies and rule sets beside the program's own rules.

    Attributes:
        ontology: One ontology file or several; their axioms become rules, their triples become facts.
        entailment: Rules over `triple` for axioms in the data. {entailment}.
        trivial: Whether to derive trivial consequences, such as `x sameAs x`; needs `ontology`, `entailment` or `equality`.
        equality: How to treat owl:sameAs; by default as the rules need it. {equality}.
        inconsistency: How to treat a derived inconsistency. {inconsistency}.
        base: The base of relative IRIs in ontologies.
        ignore_imports: Whether to continue if an imported ontology is missing.
        skip_malformed: Whether to leave out malformed statements of ontologies; `skipped` counts them, `warnings` have their places.
        sandbox: Whether others made the program and its data: what these name is read only below the folders of ontologies and below `inputs`,
            and written only below the directory of outputs.
        limit_seconds: Stop when it takes longer.
        memory: Stop when the process uses more bytes; also a text such as `4g`.
    """

    ontology: str | PathLike[str] | Sequence[str | PathLike[str]]
    entailment: Entailment | None
    trivial: bool
    equality: EqualityMode | None
    inconsistency: Inconsistency
    base: str | None
    ignore_imports: bool
    skip_malformed: bool
    sandbox: bool
    limit_seconds: float | None
    memory: int | str | None


@final
@public_class
class Program:
    """A Datalog program that passed all checks.

    >>> import evermat
    >>> program = evermat.Program.parse(".decl a(x:number) .decl b(x:number) b(x) :- a(x).")
    >>> program.relations
    ['a', 'b']

    Attributes:
        notes: Axioms of ontologies that rules cannot express, each with the reason.
        skipped: Malformed statements of ontologies that were left out, by file.
    """

    def __init__(
        self,
        compiled: CompiledProgram,
        triples: pa.Table | None = None,
        notes: tuple[Note, ...] = (),
        skipped: Mapping[str, int] = MappingProxyType({}),
        left_out: tuple[Problem, ...] = (),
        *,
        sandbox: bool = False,
    ) -> None:
        self._compiled, self._triples, self.notes, self._sandbox = compiled, triples, notes, sandbox
        self.skipped, self._left_out = skipped, left_out

    @classmethod
    def parse(cls, text: str = "", name: str = "<text>", **sources: Unpack[ProgramOptions]) -> Program:
        """Compiles the program in a text.

        Args:
            text: the program's own rules; may be empty.
            name: the name of the program in error messages.
            **sources: ontologies and rule sets, see `ProgramOptions`.

        Raises:
            ProgramError: the program has errors, all of which are reported at once; or an argument has a value that it cannot have.
            TypeError: an argument is unknown, or of another type.
            DataError: an ontology cannot be read, is malformed, or imports one that is missing.
        """
        check_type("text", text, str, "a str")
        _check_options("Program.parse", sources)
        return cls._of(Source(name, text), **sources)

    @classmethod
    def read(cls, path: str | PathLike[str] | None, **sources: Unpack[ProgramOptions]) -> Program:
        """Compiles the program in a file.

        Args:
            path: the file, or `-` for standard input; None if all rules come from ontologies and rule sets.
            **sources: ontologies and rule sets, see `ProgramOptions`.

        Raises:
            ProgramError: the file cannot be read, or the program has errors, all of which are reported at once; or an argument has a value that it
                cannot have.
            TypeError: an argument is unknown, or of another type.
            DataError: an ontology cannot be read, is malformed, or imports one that is missing.
        """
        check_type("path", path, (str, PathLike, NoneType), "a path")
        _check_options("Program.read", sources)
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
        skip_malformed: bool = False,
        sandbox: bool = False,
        limit_seconds: float | None = None,
        memory: int | str | None = None,
    ) -> Program:
        files = path_arguments("ontology", ontology)
        INCONSISTENCIES.check(inconsistency)
        if entailment is not None:
            ENTAILMENTS.check(entailment)
        if equality is not None:
            EQUALITY_MODES.check(equality)
        if trivial and not (files or entailment or equality):
            raise wrong_argument("`trivial` needs `ontology`, `entailment` or `equality`")
        sources = ProgramSources(
            tuple(map(Path, files)),
            entailment,
            trivial,
            equality,
            forbid=inconsistency == "refuse",
            base=base,
            ignore_imports=ignore_imports,
            skip_malformed=skip_malformed,
        )
        if skip_malformed and not files:
            raise wrong_argument("`skip_malformed` needs `ontology`; for data it is an argument of `materialise`")
        folders = (Path(file).parent for file in files)
        with within_limits(limit_seconds, memory), sandboxed(folders, on=sandbox):
            made = compose_program(source, sources)
        return cls(made.program, made.triples, made.notes, made.skipped, made.warnings, sandbox=sandbox)

    @cached_property
    def relations(self) -> list[str]:
        """The names of the relations, in the order of their declaration."""
        return [name for name, relation in self._compiled.relations.items() if not relation.hidden]

    @property
    def compiled(self) -> CompiledProgram:
        """The compiled program that engines evaluate: relations, rules, inputs and outputs."""
        return self._compiled

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """The strata in the order of evaluation."""
        return self._compiled.strata

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Warnings about the program, and about ontologies of which something was left out; they do not stop it."""
        return (*self._left_out, *self._compiled.warnings)

    @property
    def note_groups(self) -> tuple[NoteGroup, ...]:
        """The notes by the kind of their axiom and the reason, large groups first."""
        from evermat.owl import group_notes

        return group_notes(self.notes)

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that the program and its ontologies declare, with what they abbreviate."""
        return dict(relation_names(self._compiled).prefixes)

    def describe(self) -> str:
        """Describes types, strata, recursive and nonrecursive rules, modules, storage schemes and plans, as text."""
        from evermat.runtime import describe

        return describe(self._compiled)

    @documented
    def materialise(
        self,
        facts: Mapping[str, Any] | None = None,
        *,
        inputs: str | PathLike[str] | None = None,
        rdf: Any = (),
        base: str | None = None,
        skip_malformed: bool = False,
        engine: Literal["memory"] | SparkSession = "memory",
        limit_rounds: int | None = None,
        limit_facts: int | None = None,
        limit_seconds: float | None = None,
        memory: int | str | None = None,
        counters: KeptCounters = "none",
        algorithm: MaterialiseAlgorithm = "auto",
        schemes: SchemePolicy = "auto",
        place: Placement = "auto",
        scratch: str | PathLike[str] | None = None,
        buckets: int | None = None,
        broadcast: int | None = None,
        progress: Callable[[str], None] | None = None,
        timer: PhaseTimer | None = None,
    ) -> Materialisation:
        """Derives all consequences of the program and of explicit facts.

        Args:
            facts: explicit facts by relation: rows, Arrow, pandas, polars or Spark DataFrames. Every relation may have explicit facts.
            inputs: the directory of the program's `.input`s; without it they are not read.
            rdf: RDF files, directories or patterns, and graphs of rdflib or pyoxigraph, one or several; their triples are facts of classes,
                properties or relations of triples.
            base: the base of relative IRIs in these files.
            skip_malformed: whether to skip malformed statements; `stats["skipped"]` counts them.
            engine: `memory`, or your own SparkSession.
            limit_rounds: stop after this number of rounds of rule application.
            limit_facts: stop at more facts than this.
            limit_seconds: stop when it takes longer, reading included.
            memory: stop when the process uses more bytes than this; also a text such as `4g`.
            counters: which derivation counters to keep for later updates. {counters}.
            algorithm: how to derive consequences. {materialise_algorithm}.
            schemes: how to store relations. {schemes}.
            place: where to evaluate rules, with Spark only. {placement}.
            scratch: with Spark only, a directory for temporary files, or `s3://BUCKET/FOLDER`; on a cluster, one that all machines share.
            buckets: with Spark only, how many parts facts on a cluster are divided into; by default twice as many as there are or will be cores.
            broadcast: with Spark only, how many facts of one relation each task may read whole; larger ones are read in pieces.
            progress: called from time to time with a line about the progress.
            timer: gets the times of the phases, which `stats` reports.

        Raises:
            DataError: facts do not fit their relations, RDF is malformed, or forbidden facts are derived.
            LimitError: a limit was reached.
            ProgramError: the algorithm does not exist, an input or an argument needs Spark, or an argument has a value that it cannot have.
            TypeError: an argument is of another type.
        """
        from evermat.algebra import Counters
        from evermat.api.materialisation import Materialisation
        from evermat.engine import Limits
        from evermat.io import GraphFiles, RdfOptions
        from evermat.reasoning import check_name
        from evermat.runtime import (
            FactSources,
            Options,
            graph_triples,
            locate_scratch,
            materialise_facts,
            split_sources,
        )

        check_name(algorithm)
        check_facts("facts", {} if facts is None else facts)
        if progress is not None:
            check_function("progress", progress)
        check_type("timer", timer, (PhaseTimer, NoneType), "an `evermat.PhaseTimer`")
        for choices, name in ((KEPT_COUNTERS, counters), (SCHEME_POLICIES, schemes), (PLACEMENTS, place)):
            choices.check(name)
        check_engine(
            engine,
            place=place != "auto",
            scratch=scratch is not None,
            buckets=buckets is not None,
            broadcast=broadcast is not None,
        )
        check_cluster(place, buckets=buckets, broadcast=broadcast)
        options = Options(
            Limits.checked(limit_rounds, limit_facts, limit_seconds, memory),
            Counters[counters.upper()],
            algorithm,
            schemes,
            place,
            None if scratch is None else locate_scratch(scratch),
            buckets,
            broadcast,
            progress=progress,
        )
        paths, graphs = split_sources("rdf", rdf)
        triples, skipped = self._triples, dict[str, int]()
        if graphs:
            with within_limits(limit_seconds, memory):
                triples = graph_triples(graphs, triples, skip=skip_malformed, skipped=skipped)
        files = GraphFiles(
            tuple(paths), RdfOptions(base=base, skip=skip_malformed), apart=triples is not None, skipped=skipped
        )
        program = with_triples(self._compiled) if paths or triples is not None else self._compiled
        sources = FactSources({} if facts is None else facts, None if inputs is None else str(inputs), files, triples)
        session = None if isinstance(engine, str) else engine
        if self._sandbox and session is not None:
            raise wrong_argument(NO_SANDBOX)
        with sandboxed(files.files if inputs is None else [inputs], on=self._sandbox):
            made = materialise_facts(program, sources, options, session, timer)
        skipped = {**self.skipped, **{name: n + self.skipped.get(name, 0) for name, n in files.skipped.items()}}
        return Materialisation(made, skipped=skipped, sandbox=self._sandbox)

    def __repr__(self) -> str:
        return f"<Program {self._compiled.source.name}: {len(self.relations)} relations, {len(self._compiled.rules)} rules>"


@without_internals
def translate(
    ontology: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    base: str | None = None,
    ignore_imports: bool = False,
    skip_malformed: bool = False,
    sandbox: bool = False,
    limit_seconds: float | None = None,
    memory: int | str | None = None,
) -> Translation:
    """Translates ontologies to rules: `text()` of the result is a program, `notes` list axioms that rules cannot express.

    Args:
        ontology: one file or several: OWL or RDFS in RDF, functional syntax or OWL/XML.
        base: the base of relative IRIs.
        ignore_imports: whether to continue if an imported ontology is missing.
        skip_malformed: whether to leave out malformed statements; `skipped` of the result counts them, `warnings` have their places.
        sandbox: whether others made the ontologies: imports are read only below their folders.
        limit_seconds: stop when it takes longer.
        memory: stop when the process uses more bytes; also a text such as `4g`.

    Raises:
        DataError: an ontology cannot be read, or imports one that is missing.
    """
    from evermat.owl import translate as translate_files

    files = list(map(Path, path_arguments("ontology", ontology)))
    with within_limits(limit_seconds, memory), sandboxed((file.parent for file in files), on=sandbox):
        return translate_files(
            files,
            base=base,
            imports="ignore" if ignore_imports else "require",
            skip_malformed=skip_malformed,
        )


def _check_options(function: str, given: Mapping[str, object]) -> None:
    """Raises a `TypeError` for a keyword argument that is not one of `ProgramOptions`."""
    for name in given:
        if name not in ProgramOptions.__annotations__:
            hint = did_you_mean(name, ProgramOptions.__annotations__)
            raise TypeError(f"{function}() has no argument `{name}`{hint and f': {hint}'}")


def check_cluster(place: Placement, **counts: int | None) -> None:
    """Refuses what says how to divide facts on a cluster, unless it is a number of at least 1, and facts may be there."""
    for name, given in counts.items():
        count_argument(name, given, 1)
        if given is not None and place == "driver":
            raise wrong_argument(f"`{name}` needs facts on a cluster: they stay in the driver with `place` driver")


def check_engine(engine: object, **for_spark: bool) -> None:
    """Refuses everything but the in-memory engine and a SparkSession; the former also with arguments that only Spark honours.

    Raises:
        ArgumentError: no engine has this name, or it honours one of the arguments not.
        TypeError: the engine is neither a name nor a SparkSession.
    """
    if isinstance(engine, str):
        if engine != "memory":
            hint = did_you_mean(engine, ["memory"])
            known = "use 'memory' or a SparkSession"
            raise wrong_argument(f"engine {engine!r} is not known: {known}{hint and f'; {hint}'}")
        for name, given in for_spark.items():
            if given:
                raise wrong_argument(f"`{name}` needs Spark: pass a SparkSession as `engine`")
    elif not is_session(engine):
        raise TypeError(f"the engine is of type {type(engine).__name__}: use 'memory' or a SparkSession")
