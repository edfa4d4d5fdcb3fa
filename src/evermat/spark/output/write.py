"""Writes outputs with Spark: folders of this machine are staged among all other outputs, everything else is written when these are complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from evermat.core import DataError, EvermatError, Problem, ResourceError
from evermat.core import error_catalogue as errors
from evermat.io import FolderMode, Outputs
from evermat.language import Io, Type
from evermat.spark.jobs import is_connect, named, run_watched, silenced
from evermat.spark.output.check import UNTOUCHED, check_lasting, check_target, not_written
from evermat.spark.output.lines import check_lines, line_frame, nullary_frame
from evermat.spark.output.target import LINES, Kind, Target, target_of
from evermat.spark.scratch_files import for_reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

_FOLDER_MODES: dict[str, FolderMode] = {
    "overwrite": "replace",
    "append": "extend",
    "error": "create",
    "ignore": "create",
}
_BY_READING = ("csv", "json", "avro")  # of these, Spark counts the rows that it sees
_READ_AS_NULL = {"": "an empty text", "__HIVE_DEFAULT_PARTITION__": "`__HIVE_DEFAULT_PARTITION__`"}
_PARTIAL = {
    Kind.URI: "it may have some of the facts, or none, if it was overwritten",
    Kind.TABLE: "the table may be missing, if it was overwritten and its catalogue does not replace tables in one step",
    Kind.DATABASE: "the table may have some of the facts: each task commits its own",
}


class SparkOutputs:
    """The outputs of a program that a session writes; `outputs` are those that are committed together."""

    def __init__(self, spark: SparkSession, outputs: Outputs | None = None) -> None:
        self._spark, self._outputs = spark, outputs or Outputs()
        self._late: list[tuple[Target, DataFrame]] = []
        self._ignored: set[int] = set()  # identities of targets that are left alone

    @staticmethod
    def targets(outputs: Sequence[Io], directory: Path | str) -> list[Target]:
        """Where outputs go that Spark writes."""
        found = (target_of(io, directory) for io in outputs)
        return [target for target in found if target is not None]

    def check(self, targets: Sequence[Target], *, ends: bool = False) -> None:
        """Checks targets before anything is computed for them, see `check_target`; what the session holds must not be lost when it `ends`."""
        for position, target in enumerate(targets):
            for other in targets[:position]:
                if _overlap(target, other):
                    details = {"first": other.relation.name, "second": target.relation.name, "path": target.shown}
                    raise DataError(Problem(errors.SAME_FILE, details))
            if ends:
                check_lasting(self._spark, target)
            if check_target(self._spark, target):
                self._ignored.add(id(target))

    def write(self, target: Target, frame: Callable[[], DataFrame], rows: int) -> None:
        """Stages an output that was checked, or remembers it for `publish`; a frame is made only if it is needed.

        Raises:
            DataError: the target cannot hold the facts.
            ResourceError: they could not be written.
        """
        if id(target) in self._ignored:
            return
        name = target.relation.name
        if not target.relation.columns:
            self._late.append((target, nullary_frame(self._spark, target.io, present=rows > 0)))
            return
        facts = frame()
        self._run(target, UNTOUCHED, lambda: _check_values(target, facts))
        if target.kind is not Kind.FOLDER:
            self._late.append((target, line_frame(facts, target.io) if target.format == LINES else facts))
            return

        def fill(folder: Path) -> None:
            writer = _writer(facts, target).mode("error")
            self._run(target, UNTOUCHED, lambda: writer.save(f"file://{folder}"))
            self._check_seen(target, folder, rows)

        self._outputs.fill_folder(Path(target.location), name, _FOLDER_MODES[target.mode], fill)

    def publish(self) -> None:
        """Writes what cannot be staged: files on URIs first, then tables, then databases. What has been written stays if a later one fails."""
        order = list(Kind)
        done: list[str] = []
        for target, facts in sorted(self._late, key=lambda one: order.index(one[0].kind)):
            rest = _PARTIAL[target.kind] + "".join(f"; `{one}` was already written" for one in done)
            writer = _writer(facts, target).mode(target.mode)
            if target.kind is Kind.TABLE:
                self._run(target, rest, lambda w=writer, t=target: w.saveAsTable(t.location))  # type: ignore[misc]
            elif target.kind is Kind.DATABASE:
                self._run(target, rest, writer.save)
            else:
                self._run(target, rest, lambda w=writer, t=target: w.save(t.uri))  # type: ignore[misc]
            done.append(target.shown)
        self._late.clear()

    def _run(self, target: Target, rest: str, action: Callable[[], Any]) -> None:
        """Runs jobs for a target, which can be stopped; an exception of Spark becomes an error that names the target."""

        def quietly() -> None:
            with silenced():
                action()

        try:
            with named(self._spark, f"write {target.relation.name}"):
                run_watched(self._spark, quietly)
        except EvermatError:
            raise
        except Exception as error:  # noqa: BLE001
            raise not_written(target, error, rest) from None

    def _check_seen(self, target: Target, folder: Path, rows: int) -> None:
        """Raises a `ResourceError` if the driver does not see all that executors wrote: the folder is not one that all machines share."""
        files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".", "_"))]
        try:
            if not (folder.is_dir() and (files or not rows)):
                seen = -1
            elif target.format in _COUNTED:
                seen = sum(_COUNTED[target.format](path) for path in files)
            elif target.format in _BY_READING and not self._is_local():
                read = self._spark.read.format(target.format).options(**target.options)
                seen = read.load(for_reading(f"file://{folder}")).count() if files else 0
            else:
                seen = rows
        except (OSError, pa.ArrowInvalid):  # an incomplete file
            seen = -1
        if seen < rows:
            raise ResourceError(Problem(errors.OUTPUT_NOT_SHARED, {"path": target.shown}))

    def _is_local(self) -> bool:
        """Whether executors are threads on this machine."""
        return not is_connect(self._spark) and self._spark.conf.get("spark.master", "").startswith("local")


def _overlap(one: Target, other: Target) -> bool:
    """Whether one target would replace the other, or a part of it."""
    if one.kind is not other.kind:
        return False
    if one.kind is Kind.FOLDER:
        first, second = (Path(os.path.realpath(target.location)) for target in (one, other))
        return first == second or first in second.parents or second in first.parents
    if one.kind is Kind.URI:
        first_uri, second_uri = (f"{target.uri.rstrip('/')}/" for target in (one, other))
        return first_uri.startswith(second_uri) or second_uri.startswith(first_uri)
    return (one.location, one.options.get("dbtable")) == (other.location, other.options.get("dbtable"))


def _parquet_rows(path: Path) -> int:
    rows: int = pq.read_metadata(path).num_rows
    return rows


def _orc_rows(path: Path) -> int:
    from pyarrow import orc  # noqa: PLC0415

    rows: int = orc.ORCFile(path).nrows
    return rows


_COUNTED: dict[str, Callable[[Path], int]] = {"parquet": _parquet_rows, "orc": _orc_rows}


def _check_values(target: Target, facts: DataFrame) -> None:
    """Raises a `DataError` for facts that would not be read as they are."""
    if target.format == LINES:
        check_lines(facts, target.io)
    for column in target.relation.columns:
        if column.name in target.partition_by and column.type in (Type.SYMBOL, Type.TERM):
            values = facts.select(facts[column.name].alias("value"))
            if found := values.where(values["value"].isin(*_READ_AS_NULL)).take(1):
                value = _READ_AS_NULL[found[0][0]]
                details = {"column": column.name, "name": target.relation.name, "value": value}
                raise DataError(Problem(errors.PARTITION_NAME, details))


def _writer(facts: DataFrame, target: Target) -> DataFrameWriter:
    writer = facts.write.options(**target.options)
    if target.format:
        writer = writer.format("text" if target.format == LINES else target.format)
    return writer.partitionBy(*target.partition_by) if target.partition_by else writer
