"""Files of file systems that only Spark can read: which ones a location means, and how each format is read.

Parquet and ORC are read by Spark's readers. Text in lines is read by ours, from ranges of bytes (see `line_task`). Formats of RDF without lines are
read whole, by one task each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evermat.core import DataError, Problem, allow_pandas, without_secrets
from evermat.core import error_catalogue as errors
from evermat.io import FileRef, GraphFiles, Router, can_split, fail, file_ref
from evermat.language import Io
from evermat.spark.input.line_task import COLUMNS, LineReader
from evermat.spark.input.outcomes import located, succeeded
from evermat.spark.input.read_errors import analysed, reported
from evermat.spark.input.read_task import OUTCOME, ContentReader, Outcome
from evermat.spark.jobs import configured
from evermat.spark.scratch import Scratch
from evermat.spark.scratch_files import for_reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PIECE = 32 << 20  # bytes of a file that one task reads
_WHOLE = 1 << 50  # more bytes than a file has
_WILD = re.compile(r"[*?\[{]")
_AUTHORITY = re.compile(r"[^:/]+:/+[^/]*")
# A session may be set to leave out files that are missing or damaged.
_COMPLETE = {"spark.sql.files.ignoreCorruptFiles": "false", "spark.sql.files.ignoreMissingFiles": "false"}
_TABULAR = {".parquet": "parquet", ".orc": "orc"}


class RemoteFile(NamedTuple):
    """A file as the listing of its folder has it."""

    path: str
    size: int
    modified: Any

    @property
    def tabular(self) -> str:
        """The format of Spark's by which it is read, if it is not ours."""
        return _TABULAR.get(Path(self.path.lower()).suffix, "")


@dataclass(frozen=True)
class RemoteRead:
    """What has been read: outcomes of tasks of ours, and frames of Spark's readers with the names that errors call them."""

    outcomes: list[Outcome]
    frames: list[tuple[DataFrame, str]]
    unchanged: Callable[[], None]  # raises an error if a file has changed since it was listed


@dataclass(frozen=True)
class RemoteReader:
    """Reads inputs at URIs; `watched` runs a job that has a description."""

    spark: SparkSession
    scratch: Scratch
    graphs: GraphFiles
    watched: Callable[[Callable[[], Any], str], Any]

    def read(self, io: Io, location: str, router: Router | None = None) -> RemoteRead:
        """Reads the files of ours that a location means, and prepares frames of the others.

        Raises:
            DataError: there is no file, or there is something wrong with one.
        """
        files = self.listed(io, location)
        meant = _meant(files, location)
        if not meant:
            raise fail(errors.NO_FILE, path=without_secrets(location), what=f"relation `{io.relation.name}` is")
        _check_nesting(meant, location)
        refs = {file.path: file_ref(Path(file.path)) for file in meant if not file.tabular}
        _check_formats(refs.values(), io)
        outcomes: list[Outcome] = []
        for lines in (True, False):
            paths = [path for path, ref in refs.items() if (ref.format.block_reader is not None) == lines]
            if lines:
                for splits in (True, False):
                    chosen = [path for path in paths if _by_ranges(refs[path], io) == splits]
                    outcomes += self._lines(io, chosen, location, files, router, splits=splits) if chosen else []
            elif paths:
                outcomes += self._whole(io, paths, location, files, router)
        frames = []
        for format_ in sorted({file.tabular for file in meant} - {""}):
            paths = [file.path for file in meant if file.tabular == format_]
            frames.append((self._table(format_, paths, location, files, io), without_secrets(location)))
        return RemoteRead(outcomes, frames, lambda: self._check_unchanged(io, location, files))

    def listed(self, io: Io, location: str) -> list[RemoteFile]:
        """The files at a location, in the order of their names. Nothing of them is read."""
        what = f"relation `{io.relation.name}` is"

        def collected() -> list[Any]:
            found = self.spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(location)
            return list(found.select("path", "length", "modificationTime").collect())

        with configured(self.spark, _COMPLETE), reported(without_secrets(location), what, always=True):
            rows = self.watched(collected, f"list {io.relation.name}")
        return sorted(RemoteFile(*row) for row in rows)

    def _check_unchanged(self, io: Io, location: str, files: Sequence[RemoteFile]) -> None:
        before = {file.path: file for file in files}
        after: dict[str, RemoteFile] = {}
        with suppress(DataError):  # nothing is there any more
            after = {file.path: file for file in self.listed(io, location)}
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) != after.get(path):
                raise DataError(Problem(errors.CHANGED_INPUT, {"path": without_secrets(path)}))

    def _lines(
        self,
        io: Io,
        paths: Sequence[str],
        location: str,
        files: Sequence[RemoteFile],
        router: Router | None,
        *,
        splits: bool,
    ) -> list[Outcome]:
        """The outcomes of text in lines, without an empty line at the end of a file."""
        allow_pandas()  # tasks over Arrow need it
        reader = LineReader(io, str(self.scratch.folder(io.relation.name)), self.graphs.options, router)
        source = self.spark.read.option("lineSep", "\n").option("recursiveFileLookup", "true").format("text")

        def outcomes() -> list[Any]:
            lines = source.load(_chosen(paths, location, files)).selectExpr(*COLUMNS)
            return list(lines.mapInArrow(reader.__call__, OUTCOME).collect())

        piece = str(_PIECE if splits else _WHOLE)
        sizes = {"spark.sql.files.maxPartitionBytes": piece}
        if not splits:  # one file in each task
            sizes["spark.sql.files.openCostInBytes"] = piece
        found = self._outcomes(outcomes, io, location, sizes)
        found.sort(key=lambda outcome: (outcome.path, outcome.number))
        last = {outcome.path: outcome.number for outcome in found}
        found = [outcome for outcome in found if outcome.number % 2 == 0 or outcome.number != last[outcome.path]]
        return self._accepted(found, located(found))

    def _whole(
        self, io: Io, paths: Sequence[str], location: str, files: Sequence[RemoteFile], router: Router | None
    ) -> list[Outcome]:
        """The outcomes of files that are read whole."""
        from pyspark.sql.functions import udf  # noqa: PLC0415

        reader = ContentReader(io, str(self.scratch.folder(io.relation.name)), self.graphs.options, router)
        source = self.spark.read.format("binaryFile").option("recursiveFileLookup", "true")

        def outcomes() -> list[Any]:
            contents = source.load(_chosen(paths, location, files)).select("path", "content")
            reading = udf(reader, OUTCOME, useArrow=False).asNondeterministic()("path", "content")
            return [row["outcome"] for row in contents.select(reading.alias("outcome")).collect()]

        found = self._outcomes(outcomes, io, location, {})
        found.sort(key=lambda outcome: outcome.path)
        return self._accepted(found, [problem for outcome in found for problem in outcome.problems])

    def _outcomes(
        self, action: Callable[[], list[Any]], io: Io, location: str, settings: dict[str, str]
    ) -> list[Outcome]:
        what = f"relation `{io.relation.name}` is"
        with configured(self.spark, _COMPLETE | settings), reported(without_secrets(location), what, listed=True):
            rows = self.watched(action, f"read {io.relation.name}")
        return succeeded(rows, self.scratch)

    def _accepted(self, outcomes: list[Outcome], problems: list[Problem]) -> list[Outcome]:
        if problems:
            raise DataError(problems)
        for outcome in outcomes:
            self.graphs.skip(outcome.path, outcome.skipped)
        return outcomes

    def _table(
        self, format_: str, paths: Sequence[str], location: str, files: Sequence[RemoteFile], io: Io
    ) -> DataFrame:
        """A frame with all columns of all files, so that none is left out unnoticed; names of folders may be columns."""
        source = self.spark.read.format(format_).option("mergeSchema", "true")
        return analysed(
            lambda: source.load(_chosen(paths, location, files)),
            without_secrets(location),
            f"relation `{io.relation.name}` is",
        )


def _chosen(paths: Sequence[str], location: str, files: Sequence[RemoteFile]) -> Any:
    """What Spark's reader is to load: the location as it stands if all its files are read, else these files."""
    return location if len(paths) == len(files) else [for_reading(path) for path in paths]


def _by_ranges(ref: FileRef, io: Io) -> bool:
    """Whether Spark may cut a file, unless it is compressed in a way that forbids it: quotes of none hold newlines."""
    return ref.gzip or can_split(ref, io)


def _meant(files: Sequence[RemoteFile], location: str) -> list[RemoteFile]:
    """The files that count: a folder `x.parquet` has only such."""
    only = location.rstrip("/").lower().endswith(".parquet")
    return [file for file in files if file.tabular == "parquet" or not only]


def _check_formats(refs: Iterable[FileRef], io: Io) -> None:
    problems: dict[str, Problem] = {}
    for ref in refs:
        if problem := ref.format.refusal(ref, io.relation):
            problems.setdefault(problem.details.get("why") or problem.message, problem)
    if problems:
        raise DataError(problems.values())


def _check_nesting(files: Sequence[RemoteFile], location: str) -> None:
    """Refuses folders in a folder, as for local files; of Parquet and ORC, those of a partitioned table are columns."""
    if re.search(r"\{[^}]*/", location):  # what this pattern matches is of no certain depth
        return
    depth = len(_names(location))
    for file in files:
        inner = _names(file.path)[depth:-1] if len(_names(file.path)) > depth else []
        if inner and not (file.tabular and all("=" in name for name in inner)):
            part = "it looks like a part of a partitioned table; " * ("=" in inner[0])
            path = without_secrets("/".join(file.path.split("/")[: -len(inner)]))
            raise fail(errors.IS_FOLDER, path=path, why=f"{part}only the files of one folder are read")


def _names(uri: str) -> list[str]:
    """The names of the path of a URI."""
    return [name for name in _AUTHORITY.sub("", uri, count=1).split("/") if name]
