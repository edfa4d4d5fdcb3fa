"""Relations in files: delimiter-separated text, JSON lines, Parquet and N-Triples.

`read_relation` and `Outputs` are the way in and out; relations travel as Arrow tables (see `layout`). Changes of many
relations in one file are read by `read_changes` and written by `write_changes`. Importing this package loads pyarrow, so it is imported only where files are read or written.
"""

from __future__ import annotations

from evermat.files.change_feed import write_changes
from evermat.files.changes import FileChanges, read_changes
from evermat.files.layout import arrow_schema, nullary
from evermat.files.outputs import Outputs, printsize
from evermat.files.reading import read_relation

__all__ = [
    "FileChanges",
    "Outputs",
    "arrow_schema",
    "nullary",
    "printsize",
    "read_changes",
    "read_relation",
    "write_changes",
]
