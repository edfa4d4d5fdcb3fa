"""A folder of files of changes as a stream: Spark says which files are new, the driver reads them.

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
    place = Path(folder).resolve()
    if not place.is_dir():
        raise fail(errors.CANNOT_READ, path=folder, why="there is no such folder", what="changes are")
    reader = spark.readStream.format("binaryFile").schema(_COLUMNS).option("maxFileAge", _FOR_EVER)
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    # Only what is asked for is read: not the contents.
    return reader.load("file://" + _PATTERN.sub(r"\\\1", str(place))).select("path")


def updates_in(batch: DataFrame) -> list[list[Path]]:
    """The updates that the files of a batch are, in the order of their names; always the same for the same files."""
    # As a set: where a name has a bracket in it, Spark tells the others twice.
    paths = {Path(row.path.removeprefix("file:")) for row in batch.collect()}
    return updates_of(sorted(paths, key=_order))


def _order(path: Path) -> tuple[str, str]:
    """The two files of a pair have nothing between them."""
    change = rdf_change(path)
    return (path.name if change is None else change.stem.name, path.name)
