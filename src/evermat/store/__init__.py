"""Durable versions of a set of relations, as Delta tables.

    state/
      evermat.json          which format this is
      lock                  locked by the one writer; readers need no lock
      commits/              a Delta table: one row for each version, which pins the tables of all relations
      relations/<folder>/   a Delta table for each relation: its changes, in partitions by version
      programs/<hash>.dl    the texts of programs

A version exists exactly when its row in `commits` does. Everything that the row pins is written before it and never
changes after it, so a crash at any moment leaves the last version, and a reader sees one version however long it
takes. All files are covered by checksums, the last of which is in the row itself.

Other programs can read the tables as well. A relation's table has the fact columns and

* `_origin`: `explicit` or `derived`;
* `_nonrecursive`, `_recursive`: the number of a fact's derivations, where it is known;
* `_op`: `+` the fact was inserted, `-` it was deleted, `=` its origin or its counters changed;
* `_version`: the version that changed it.

`tables` in the newest row of `commits` has for each relation its `folder` and the version of that Delta table, `delta`,
that belongs to the row. `CURRENT_FACTS` then selects its facts in SQL; with Polars, for `edge(x, y)`:

    newest = pl.read_delta("state/commits")["version"].max()
    (
        pl.scan_delta("state/relations/edge")
        .filter(pl.col("_version") <= newest)
        .sort("_version")
        .group_by("x", "y")
        .last()
        .filter(pl.col("_op") != "-")
    )
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.store.chunked_write import Pieces
    from evermat.store.data_files import Columns, Part, read_current, stored_columns, table_schema
    from evermat.store.directory import read_format
    from evermat.store.disk import damaged, sync
    from evermat.store.formats import VersionReader, open_reader
    from evermat.store.names import (
        CURRENT_FACTS,
        NONRECURSIVE,
        OP,
        ORIGIN,
        OWN_COLUMNS,
        RECURSIVE,
        VERSION,
    )
    from evermat.store.retention import Keep
    from evermat.store.store import Store
    from evermat.store.version import Entry, Version
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
