"""A folder of files of changes as a stream: Spark lists new files, the driver reads them.

Spark lists the folder and writes into the checkpoint which files belong to which batch; a file is seen once, whatever becomes of it later.
"""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from evermat.core import error_catalogue as errors
from evermat.io import fail, rdf_change, updates_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = "path string, modificationTime timestamp, length bigint, content binary"
_PATTERN = re.compile(r"([\\*?\[\]{}])")
_FOR_EVER = "36500d"  # else Spark leaves out files that are much older than the newest


def arriving_files(spark: SparkSession, folder: str | PathLike[str], files_per_batch: int | None = None) -> DataFrame:
    """The files that appear in a folder, as a stream of their paths.

    Raises:
        DataError: there is no such folder.
    """
    path = Path(folder).resolve()
    if not path.is_dir():
        raise fail(errors.CANNOT_READ, path=folder, why="there is no such folder", what="changes are")
    reader = spark.readStream.format("binaryFile").schema(_COLUMNS).option("maxFileAge", _FOR_EVER)
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    # The contents are not selected, so Spark does not read them.
    return reader.load("file://" + _PATTERN.sub(r"\\\1", str(path))).select("path")


def updates_in(batch: DataFrame) -> list[list[Path]]:
    """The updates that the files of a batch are, in the order of their names; always the same for the same files."""
    # As a set: if one name has a bracket in it, Spark lists the others twice.
    paths = {Path(row.path.removeprefix("file:")) for row in batch.collect()}
    return updates_of(sorted(paths, key=_order))


def _order(path: Path) -> tuple[str, str]:
    """The key of a file by name; the two files of a pair are neighbours."""
    change = rdf_change(path)
    return (path.name if change is None else change.stem.name, path.name)
