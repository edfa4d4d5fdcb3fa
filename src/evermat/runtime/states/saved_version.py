"""One version of a state directory, for engines to restore: its program, its rows, and what an engine has to know besides.

Every fact is stored with its origin and its counters. Hidden relations, which the rewriting of rules introduced, are stored like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra import Counters
from evermat.columns import SAVED_UNSIGNED
from evermat.core import Problem, SchemePolicy, Source, StateError
from evermat.core import error_catalogue as errors
from evermat.engine import Op, SavedRows, saved_rows
from evermat.io import ARROW_TYPES
from evermat.language import Program, Relation, Stratum, Type, compile_program, revise
from evermat.store import NONRECURSIVE, OP, ORIGIN, OWN_COLUMNS, RECURSIVE, VersionReader

_ORIGINS = ("derived", "explicit")
_OPS = ("-", "+", "=")  # by the numbers of `saved_rows`
_SCHEMAS: WeakKeyDictionary[Program, dict[str, pa.Schema]] = WeakKeyDictionary()
_COUNTS = {saved_rows.NONRECURSIVE: NONRECURSIVE, saved_rows.RECURSIVE: RECURSIVE}


class SavedVersion:
    """A version of a state directory, by default the newest; the store stays the caller's to close.

    With `before`, it may be the one before the oldest that is kept.
    """

    def __init__(self, store: VersionReader, number: int | None = None, *, before: bool = False) -> None:
        self._version = store.latest if number is None else store.version(number, before=before)
        self.store, self.number = store, self._version.number

    @property
    def stats(self) -> dict[str, Any]:
        return self._version.stats

    @property
    def facts(self) -> int:
        """The number of all facts that users see."""
        return self._version.facts

    @cached_property
    def program(self) -> Program:
        """The program, after all changes of its rules."""
        saved = self._version.counters
        program = compile_program(Source(saved["source"], self.store.program(self.number)), checked=True)
        program = replace(program, prefixes=saved.get("prefixes", {}))
        for add, remove in saved["revisions"]:
            program = revise(program, add, remove, checked=True).program
        return program

    @property
    def rules(self) -> object:
        """What the program is made of: versions with the same have the same program, stored in the same way."""
        saved = self._version.counters
        prefixes = saved.get("prefixes", {})
        return self._version.program, saved["source"], saved["revisions"], prefixes, saved["hidden"], self._storage

    @property
    def hidden(self) -> Sequence[str]:
        """The relations that users do not see."""
        return self._version.counters["hidden"]  # type: ignore[no-any-return]

    @property
    def positions(self) -> dict[str, str]:
        """How far streams have been followed, by their names."""
        return dict(self._version.counters.get("positions", {}))

    @property
    def _storage(self) -> Mapping[str, Any]:
        return self._version.counters.get("schemes", {"asked": "auto", "stored": []})  # type: ignore[no-any-return]

    @property
    def schemes(self) -> SchemePolicy:
        """Which storage schemes were asked for."""
        return self._storage["asked"]  # type: ignore[no-any-return]

    @property
    def stored_by_schemes(self) -> set[str]:
        """The relations that have a storage scheme: of these, inputs are stored."""
        return set(self._storage["stored"])

    @property
    def copied_by_schemes(self) -> Mapping[str, Sequence[str]]:
        """The rules, as text, whose heads are not stored, because a storage scheme implies them; by relation."""
        return self._storage.get("copied", {})  # type: ignore[no-any-return]

    @property
    def counters(self) -> dict[Stratum, tuple[Counters, int]]:
        """For each stratum the counters that are valid, and how many instances it took from scratch."""
        kept = zip(self.program.strata, self.counters_of_strata, self._version.counters["strata"], strict=True)
        return {stratum: (counters, one["work"]) for stratum, counters, one in kept}

    @property
    def counters_of_strata(self) -> list[Counters]:
        """The counters that are valid, in the order of strata."""
        return [Counters[one["counters"].upper()] for one in self._version.counters["strata"]]

    def check(self, names: Iterable[str]) -> None:
        """Raises a `StateError` for a version that lacks relations of its program."""
        for name in names:
            if name not in self._version.relations:
                why = f"it has no facts of `{name}`: another version of evermat wrote it"
                raise StateError(Problem(errors.STATE_UNREADABLE, {"file": self.store.path, "why": why}))

    def rows(self, name: str) -> Iterator[tuple[bool, SavedRows]]:
        """The rows of a relation, those of the snapshot first, which are marked, and then changes in their order."""
        self.check([name])
        snapshot: int | None = None
        for version, stored in self.store.read(self.number, name):
            snapshot = version if snapshot is None else snapshot
            yield version == snapshot, rows_of_table(stored, is_snapshot=version == snapshot)


def rows_of_table(stored: pa.Table, *, is_snapshot: bool = False) -> SavedRows:
    """The rows of a table of a state directory; counters that a snapshot has not are left out."""
    counts = {
        kind: stored[column].fill_null(0).to_numpy()
        for kind, column in _COUNTS.items()
        if not is_snapshot or stored[column].null_count < stored.num_rows
    }
    facts = [stored.column(i) for i, name in enumerate(stored.column_names) if name not in OWN_COLUMNS]
    explicit = _codes(stored[ORIGIN], _ORIGINS) == _ORIGINS.index("explicit")
    return SavedRows(facts, _codes(stored[OP], _OPS), explicit, counts)


def counts_in(stored: pa.Table) -> Counters:
    """The derivation counters that a table of changes has of all facts that stay."""
    kept = stored.filter(pc.not_equal(stored[OP].cast(pa.string()), "-"))
    if kept[NONRECURSIVE].null_count:
        return Counters.NONE
    return Counters.NONRECURSIVE if kept[RECURSIVE].null_count else Counters.BOTH


def table_of_rows(relation: Relation, rows: SavedRows) -> pa.Table:
    """Rows as a table for a state directory: the fact columns, origin, op, and the counts that are kept."""
    columns: dict[str, pa.Array] = {
        ORIGIN: pa.DictionaryArray.from_arrays(pa.array(rows.explicit.astype(np.int8)), pa.array(_ORIGINS)),
        OP: pa.DictionaryArray.from_arrays(pa.array(rows.ops), pa.array(_OPS)),
    }
    columns |= {_COUNTS[kind]: pa.array(counts, mask=rows.ops == Op.DELETED) for kind, counts in rows.counts.items()}
    return pa.table([*rows.facts, *columns.values()], names=[*(c.name for c in relation.columns), *columns])


def schemas(program: Program) -> dict[str, pa.Schema]:
    """The fact columns of all relations in a state directory: the same object for the same program."""
    found = _SCHEMAS.get(program)
    if found is None:
        found = _SCHEMAS[program] = {name: _schema(relation) for name, relation in program.relations.items()}
    return found


def _schema(relation: Relation) -> pa.Schema:
    types = [SAVED_UNSIGNED if c.type is Type.UNSIGNED else ARROW_TYPES[c.type] for c in relation.columns]
    # The columns of a hidden relation are named after variables, which may change although its facts are kept.
    names = [f"c{i}" if relation.hidden else c.name for i, c in enumerate(relation.columns)]
    return pa.schema(list(zip(names, types, strict=True)))


def _codes(column: pa.ChunkedArray, names: Sequence[str]) -> npt.NDArray[np.int8]:
    """The values of a column of few strings, as positions in a list of all."""
    found = [np.zeros(0, np.int8)]
    for chunk in column.chunks:
        coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        codes = np.array([names.index(value) for value in coded.dictionary.to_pylist()], np.int8)
        found.append(codes[coded.indices.to_numpy()])
    return np.concatenate(found)
