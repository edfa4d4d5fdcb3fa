"""States that tests make, and what they should contain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from evermat.store import Entry, Store

PAIRS = pa.schema([("x", pa.string()), ("y", pa.int64())])
ALL_TYPES = pa.schema(
    [
        ("s", pa.string()),
        ("n", pa.int64()),
        ("u", pa.decimal128(20, 0)),
        ("f", pa.float64()),
    ]
)
NULLARY = pa.schema([])

Fact = tuple[Any, ...]
Facts = dict[Fact, tuple[str, int | None, int | None]]  # origin and counters


def entry(**details: Any) -> Entry:
    given = {
        "program": "// nothing\n",
        "algorithm": "seminaive",
        "seconds": 0.25,
        "inserted": 0,
        "deleted": 0,
        "facts": 0,
    }
    return Entry(**(given | details))


def table(schema: pa.Schema, rows: Iterable[tuple[str, Fact, tuple[str, int | None, int | None]]]) -> pa.Table:
    """Rows (op, fact, (origin, counters)) as a writer hands them over."""
    rows = list(rows)
    arrays = [pa.array([fact[i] for _, fact, _ in rows], field.type) for i, field in enumerate(schema)]
    arrays += [
        pa.array([of[0] for _, _, of in rows], pa.string()),
        pa.array([of[1] for _, _, of in rows], pa.int64()),
        pa.array([of[2] for _, _, of in rows], pa.int64()),
        pa.array([op for op, _, _ in rows], pa.string()),
    ]
    return pa.table(arrays, names=[*schema.names, "_origin", "_nonrecursive", "_recursive", "_op"])


def plus(schema: pa.Schema, *facts: Fact) -> pa.Table:
    return table(schema, [("+", fact, ("explicit", 1, None)) for fact in facts])


def minus(schema: pa.Schema, *facts: Fact) -> pa.Table:
    return table(schema, [("-", fact, ("explicit", 1, None)) for fact in facts])


def in_pieces(rows: pa.Table, size: int) -> Iterator[pa.Table]:
    """The rows in pieces that can be asked for once."""
    return (rows.slice(start, size) for start in range(0, rows.num_rows, size))


def rows_of(found: pa.Table) -> list[Fact]:
    """Whole rows; also of a table without columns of facts."""
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def contents(store: Store, version: int, name: str) -> Facts:
    """The facts of a relation, as a reader puts them together."""
    facts: Facts = {}
    before = 0
    for number, found in store.read(version, name):
        assert before <= number <= version
        before = number
        for row in rows_of(found):
            *fact, origin, nonrecursive, recursive, op = row
            if op == "-":
                facts.pop(
                    tuple(fact), None
                )  # one that is merged from many changes may say so of a fact that came with them
            else:
                facts[tuple(fact)] = (origin, nonrecursive, recursive)
    return facts


def everything(store: Store) -> dict[int, dict[str, Facts]]:
    """All that a state contains, version by version; reads programs and changes too."""
    found = {v.number: {name: contents(store, v.number, name) for name in v.relations} for v in store.versions()}
    for number in found:
        assert store.program(number)
    numbers = sorted(found)
    list(store.changes(numbers[0], numbers[-1]))
    return found


SCHEMAS: Mapping[str, pa.Schema] = {"edge": PAIRS, "path": PAIRS, "on": NULLARY}


def small_state(path: Path, versions: int = 4) -> dict[int, dict[str, Facts]]:
    """A state with a few versions, one of them compacted; returns what it contains."""
    with Store.create(path) as store:
        store.commit(entry(), {"edge": plus(PAIRS, ("a", 1), ("b", 2)), "on": plus(NULLARY, ())}, SCHEMAS)
        for number in range(2, versions + 1):
            changes = {"edge": plus(PAIRS, ("c", number)), "path": plus(PAIRS, ("ä", number))}
            store.commit(entry(program=f"// {number // 2}\n"), changes, SCHEMAS)
            if number == 3:
                facts = contents(store, 3, "edge")
                store.compact({"edge": table(PAIRS, [("+", f, of) for f, of in facts.items()])}, {"of": 3})
        return everything(store)


UNSIGNED = Decimal(2**64 - 1)
