"""A file system that only Spark can read: its URIs show folders of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TABLE = "evermat"


@contextmanager
def shown_as(spark: Any, folder: Path) -> Iterator[str]:
    """The URI of a folder for the block."""
    name = f"fs.viewfs.mounttable.{TABLE}-{folder.name}.link./in"
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set(name, folder.resolve().as_uri())
    try:
        yield f"viewfs://{TABLE}-{folder.name}/in"
    finally:
        settings.unset(name)
