"""Relations in files: delimiter-separated text, JSON lines, Parquet and RDF.

`read_relation` and `Outputs` are the way in and out; relations travel as Arrow tables (see `layout`). Triples that belong to
many relations are read by `read_triples`, and a `Router` finds the relations. Changes of many relations are read by
`read_changes`, or by `read_update` what `updates_of` says is one update, and written by `write_changes`. Importing this
package loads pyarrow, so it is imported only where files are read or written.
"""

from __future__ import annotations

from evermat.files.change_feed import write_changes
from evermat.files.change_rdf import updates_of
from evermat.files.changes import FileChanges, read_changes, read_update
from evermat.files.layout import arrow_schema, nullary
from evermat.files.outputs import Outputs, printsize
from evermat.files.rdf import read_triples
from evermat.files.rdf_writer import Written, write_graph
from evermat.files.reading import read_relation
from evermat.files.routing import Routed, Router
from evermat.files.triples import RdfOptions, Triples

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
