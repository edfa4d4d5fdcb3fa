"""Reads all inputs of a program as one Spark job: its tasks parse files in parallel, the driver gathers their outcomes.

Files are cut into pieces of whole records where their format allows it. Every piece is accounted for: a result is complete, or there is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from evermat.columns import ArrowTables
from evermat.core import DataError, Problem, ResourceError
from evermat.core import error_catalogue as errors
from evermat.io import (
    TRIPLES,
    GraphFiles,
    Router,
    can_split,
    failing,
    input_files,
    is_remote,
    read_relation,
)
from evermat.language import Io, Program
from evermat.spark.input.arrow_files import ArrowFileFacts, ConcatenatedFacts, Part, exchanged
from evermat.spark.input.intake import Intake
from evermat.spark.input.outcomes import located, renamed, succeeded
from evermat.spark.input.read_task import OUTCOME, Outcome, Split, SplitReader
from evermat.spark.input.remote import RemoteReader
from evermat.spark.input.sources import MEDIA, Sources, SparkSource
from evermat.spark.jobs import configured, run_named
from evermat.spark.scratch import Scratch
from evermat.store import location_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_T = TypeVar("_T")
_PIECE = 32 << 20  # bytes of a file that one task reads
# Compiling a plan for a few rows takes longer than all else.
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def read_inputs(
    spark: SparkSession,
    program: Program,
    folder: str,
    scratch: Scratch,
    *,
    progress: Callable[[str], None] | None = None,
    intake: Intake | None = None,
    graphs: GraphFiles | None = None,
    triples: pa.Table | None = None,
) -> dict[str, ConcatenatedFacts]:
    """The facts of all inputs, and of RDF files, by relation; they are in the scratch folder until they are encoded.

    The intake has the sizes of all of them, and decides what becomes of tables and databases.

    Raises:
        DataError: with all problems of all inputs.
        ResourceError: Spark, or the disk, failed.
    """
    graphs = graphs or GraphFiles()
    local = [io for io in program.inputs if not is_remote(_location(io, folder))]
    reading = _Reading(
        spark, program, scratch, progress, graphs.with_inputs(local, Path(folder)), intake or Intake(scratch)
    )
    for io in program.inputs:
        reading.plan(io, folder)
    router = Router.of(program.relations)
    for path in graphs.files:
        reading.plan_graph(path, router)
    found = reading.facts()
    for name, table in router.route(triples)[0].items() if triples is not None else ():
        part = reading.intake.take(name, ArrowTables([table]))
        found[name] = found.get(name, ConcatenatedFacts(())).with_part(part)
    return found


class _Reading:
    """All inputs: first their files are listed, then one job reads them."""

    def __init__(
        self,
        spark: SparkSession,
        program: Program,
        scratch: Scratch,
        progress: Callable[[str], None] | None,
        graphs: GraphFiles,
        intake: Intake,
    ) -> None:
        self._program = program.source
        self._spark, self._scratch, self._progress, self.intake = spark, scratch, progress, intake
        self._graphs = graphs
        self._inputs: list[Io] = []
        self._splits: list[Split] = []
        self._owners: list[int] = []  # the input of each split
        self._shown: dict[str, str] = {}  # files as the user names them
        self._found: dict[int, list[Part]] = {}
        self._routed: list[Outcome] = []  # of RDF files that were read before the job
        self._problems: dict[int, list[Problem]] = {}

    def plan(self, io: Io, folder: str) -> None:
        """Adds an input."""
        number = len(self._inputs)
        self._inputs.append(io)
        try:
            if io.medium == "stdin":
                self._found[number] = [self._taken(io, ArrowTables([read_relation(io, Path())]))]
            elif io.medium in MEDIA:
                self._found[number] = [self._frame(Sources(self._spark, self._program, folder).of(io))]
            elif is_remote(location := _location(io, folder)):
                self._remote(number, io, location)
            else:
                self._cut(number, io, Path(folder))
        except DataError as error:
            self._problems[number] = list(error.problems)

    def plan_graph(self, path: str, router: Router) -> None:
        """Adds an RDF file whose triples the router assigns to relations."""
        number = len(self._inputs)
        io = Io(TRIPLES, path=path)
        self._inputs.append(io)
        try:
            if is_remote(path):
                self._remote(number, io, path, router)
            else:
                self._cut(number, io, Path(), router)
        except DataError as error:
            self._problems[number] = list(error.problems)

    def _cut(self, number: int, io: Io, folder: Path, router: Router | None = None) -> None:
        for file in input_files(io, folder):
            with failing(file.path, f"relation `{io.relation.name}` is"):
                size = file.path.stat().st_size
            path = str(file.path.absolute())  # tasks have another working directory
            self._shown[path] = str(file.path)
            options = self._graphs.options_for(file.path)
            if can_split(file, io) and size > _PIECE:
                cuts = [*range(0, size, _PIECE), size]
                pieces = [Split(io, path, *ends, options, router) for ends in pairwise(cuts)]
            else:
                pieces = [Split(io, path, options=options, router=router)]
            self._splits += pieces
            self._owners += [number] * len(pieces)

    def _remote(self, number: int, io: Io, location: str, router: Router | None = None) -> None:
        """Reads files of a file system that only Spark can read; the triples of a router's go to relations of their own."""
        reader = RemoteReader(self._spark, self._scratch, self._graphs, self._watched)
        read = reader.read(io, location, router)
        parts = [self._frame(SparkSource(frame, io.relation, name)) for frame, name in read.frames]
        read.unchanged()
        if router is not None:
            self._routed += read.outcomes
        else:
            self._found[number] = [*parts, *([self._taken(io, exchanged(read.outcomes))] if read.outcomes else [])]

    def _frame(self, source: SparkSource) -> Part:
        what = f"read {source.name} for {source.relation.name}"
        with source.reading():
            return self.intake.read(
                source.frame, source.relation, source.name, lambda action: self._watched(action, what)
            )

    def _taken(self, io: Io, part: Part) -> Part:
        return self.intake.take(io.relation.name, part)

    def facts(self) -> dict[str, ConcatenatedFacts]:
        """The facts of all inputs, by relation."""
        outcomes = self._read_splits() if self._splits else []
        for number in range(len(self._inputs)):
            own = [outcome for outcome, owner in zip(outcomes, self._owners, strict=True) if owner == number]
            for outcome in own:
                self._graphs.skip(self._shown[outcome.path], outcome.skipped)
            if problems := located(own):
                self._problems[number] = [renamed(problem, self._shown) for problem in problems]
            elif number not in self._found and self._inputs[number].relation is not TRIPLES:
                self._found[number] = [self._taken(self._inputs[number], exchanged(own))]
        if self._problems:
            raise DataError([problem for number in sorted(self._problems) for problem in self._problems[number]])
        found: dict[str, list[Part]] = {}
        for number, io in enumerate(self._inputs):
            if number in self._found:
                found.setdefault(io.relation.name, []).extend(self._found[number])
        for outcome in (*self._routed, *outcomes):
            for name, file, rows in outcome.parts:
                part = self.intake.take(name, ArrowFileFacts([location_of(file)], rows))
                found.setdefault(name, []).append(part)
        return {name: ConcatenatedFacts(parts) for name, parts in found.items()}

    def _read_splits(self) -> list[Outcome]:
        """The outcomes of all splits, in their order."""
        count = len(self._splits)
        reader = SplitReader(tuple(self._splits), str(self._scratch.folder("inputs")))
        names = ", ".join(dict.fromkeys(io.relation.name for io in self._inputs))
        with configured(self._spark, _INTERPRETED):
            outcomes = self._run(self._spark.range(0, count, 1, count), reader, f"read {names}")
        outcomes.sort(key=lambda outcome: outcome.number)
        if [outcome.number for outcome in outcomes] != list(range(count)):
            why = f"{count} pieces of files were to be read, and {len(outcomes)} came back"
            raise ResourceError(Problem(errors.SPARK_FAILED, {"what": "read the inputs", "why": why}))
        return outcomes

    def _watched(self, action: Callable[[], _T], what: str) -> _T:
        report = self._progress
        progress = None if report is None else lambda text: report(f"{what}: {text}")
        return run_named(self._spark, what, action, self._scratch.path, progress=progress)

    def _run(self, frame: DataFrame, reader: SplitReader, what: str) -> list[Outcome]:
        """The outcomes of a reader for every row. A plain Python function needs no pandas, and its few results are quick enough."""
        from pyspark.sql.functions import udf  # noqa: PLC0415

        reading = udf(reader, OUTCOME, useArrow=False).asNondeterministic()(*frame.columns)
        rows = self._watched(frame.select(reading.alias("outcome")).collect, what)
        return succeeded([row["outcome"] for row in rows], self._scratch)


def _location(io: Io, folder: str) -> str:
    path = io.path or f"{io.relation.name}.facts"
    return path if is_remote(path) or not is_remote(folder) else f"{folder.rstrip('/')}/{path}"
