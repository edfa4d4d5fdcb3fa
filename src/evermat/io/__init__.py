"""Relations and changes in files: delimiter-separated text, JSON lines, Parquet and RDF.

`read_relation` reads and `Outputs` writes relations, as Arrow tables (see `arrow_schema`). Triples that belong to many
relations are read by `read_triples`, and a `Router` finds the relations. `updates_of` groups files of changes to updates,
`read_update` reads one and `write_changes` writes one. `FORMATS` lists the formats. A name loads its module when it is
first used: a run loads the formats of its files only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.io.atomic_outputs import Outputs
    from evermat.io.byte_ranges import can_split, merge_findings, read_range, relocate
    from evermat.io.changes.model import ChangedRows
    from evermat.io.changes.parquet import ChangedTable
    from evermat.io.changes.rdf import rdf_change, updates_of
    from evermat.io.changes.read import FileChanges, read_update
    from evermat.io.changes.writer import Changed, write_changes
    from evermat.io.column_match import conform
    from evermat.io.error_report import (
        Findings,
        FullError,
        Skipped,
        column_text,
        fail,
        name_list,
        shown,
        term_details,
    )
    from evermat.io.formats.csv_writer import spell
    from evermat.io.formats.parquet import PARQUET_UNSIGNED, parquet_schema
    from evermat.io.formats.registry import AS_IT_IS, FORMATS, RdfOptions
    from evermat.io.graph_files import TRIPLES, GraphFiles
    from evermat.io.locate import check_source, file_ref, input_files, is_remote
    from evermat.io.open import failing, open_text
    from evermat.io.rdf.error_recovery import XML_ERRORS, xml_error
    from evermat.io.rdf.prefixes import prefixes_in
    from evermat.io.rdf.read import rdf_ref, read_triples, sniff
    from evermat.io.rdf.router import Router
    from evermat.io.rdf.writer import Written
    from evermat.io.read import read_file, read_relation, read_stream
    from evermat.io.schema import ARROW_TYPES, arrow_schema, nullary
    from evermat.io.sort import sorted_batches
    from evermat.io.term_columns import checked_column
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
