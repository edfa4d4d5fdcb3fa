"""Relations in files: delimiter-separated text, JSON lines, Parquet and RDF.

`read_relation` and `Outputs` are the way in and out; relations travel as Arrow tables (see `layout`). Triples that belong to
many relations are read by `read_triples`, and a `Router` finds the relations. Changes of many relations are read by
`read_changes`, or by `read_update` what `updates_of` says is one update, and written by `write_changes`. Importing this
package loads pyarrow, so it is imported only where files are read or written.
"""

from __future__ import annotations

from evermat.io.atomic_outputs import Outputs, printsize
from evermat.io.changes.rdf import updates_of
from evermat.io.changes.read import FileChanges, read_changes, read_update
from evermat.io.changes.writer import write_changes
from evermat.io.options import RdfOptions
from evermat.io.rdf.read import read_triples
from evermat.io.rdf.router import Routed, Router
from evermat.io.rdf.terms import Triples
from evermat.io.rdf.writer import Written, write_graph
from evermat.io.read import read_relation
from evermat.io.schema import arrow_schema, nullary

__all__ = [
    "FileChanges",
    "Outputs",
    "RdfOptions",
    "Routed",
    "Router",
    "Triples",
    "Written",
    "arrow_schema",
    "nullary",
    "printsize",
    "read_changes",
    "read_relation",
    "read_triples",
    "read_update",
    "updates_of",
    "write_changes",
    "write_graph",
]
