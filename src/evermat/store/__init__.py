"""Durable versions of a set of relations, as Delta tables.

    state/
      evermat.json          which format this is
      lock                  locked by the one writer; readers need no lock
      commits/              a Delta table: one row for each version, which pins the tables that it changed
      relations/<folder>/   a Delta table for each relation: snapshots, and changes with their versions
      programs/<hash>.dl    the texts of programs

A version exists exactly when its row in `commits` does. Everything that the row pins is durable before it, so a crash at
any moment leaves the last version. All files are covered by checksums: a log entry has one of itself, a data file has its
own in its name, and a row pins the logs.

Every operation on the disk goes through `disk`. Files get their names when they are complete, and are deleted when nothing
names them any more; so what a crash leaves is either complete or garbage, whatever it interrupts.

Other programs can read the tables as well. A relation's table has the fact columns and

* `_origin`: `explicit` or `derived`;
* `_nonrecursive`, `_recursive`: the number of a fact's derivations, where it is known;
* `_op`: `+` the fact was inserted, `-` it was deleted, `=` its origin or its counters changed;
* `_version`: the version that changed it.

`tables` in the rows of `commits` has for each folder its `relation` and the version of that Delta table, `delta`, that
belongs to the row. `CURRENT_FACTS` selects the facts of a relation in SQL; `docs/state.md` has the same for Polars.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.store.bucket import StorageError, bucket_of
    from evermat.store.chunked_write import Pieces, write_parts
    from evermat.store.data_files import Columns, Part, read_current, stored_columns
    from evermat.store.directory import holds_something, read_format
    from evermat.store.disk import damaged, exists, sync
    from evermat.store.formats import VersionReader, open_reader, read_state
    from evermat.store.location import Location, ObjectPath, folder_location, location_of, resolved, state_location
    from evermat.store.names import (
        CURRENT_FACTS,
        NONRECURSIVE,
        OP,
        ORIGIN,
        OWN_COLUMNS,
        RECURSIVE,
        VERSION,
    )
    from evermat.store.remote_write import RemoteRows, RemoteWriter, Target, is_token_seen
    from evermat.store.repeat import read_again
    from evermat.store.retention import Keep
    from evermat.store.store import Store
    from evermat.store.version import Entry, Version
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
