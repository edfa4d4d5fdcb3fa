"""Relations in files: delimiter-separated text, JSON lines and Parquet.

`read_relation` and `Outputs` are the way in and out; relations travel as Arrow tables (see `layout`). Importing
this package loads pyarrow, so it is imported only where files are read or written.
"""

from __future__ import annotations

from evermat.files.layout import arrow_schema, nullary
from evermat.files.outputs import Outputs, printsize
from evermat.files.reading import read_relation

__all__ = ["Outputs", "arrow_schema", "nullary", "printsize", "read_relation"]
