"""A state that many tests use, and how to look into a materialisation that was opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import evermat
from evermat import Materialisation
from evermat.columns.storage.encoding import decode_rows
from evermat.core.errors import EvermatError
from evermat.testing import state_of
from tests.support import oracle
from tests.support.strategies import Facts
from tests.support.updates import assert_counters_right, facts_of

PROGRAM = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
.decl node(x:number)
.decl apart(x:number, y:number)
.decl reach(x:number, n:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
node(x) :- edge(x, _).
node(y) :- edge(_, y).
apart(x, y) :- node(x), node(y), !path(x, y).
reach(x, n) :- node(x), n = count : { path(x, _) }.
"""
QUICK = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # where nothing waits for a disk
CHAIN = {(i, i + 1) for i in range(5)}


def saved(path: Path, edges: set[tuple[int, int]] = CHAIN) -> Materialisation:
    """A new state with one version, open for writing."""
    m = evermat.Program.parse(PROGRAM).materialise({"edge": edges}, counters="both")
    m.save(path)
    return m


def explicit_of(m: Materialisation) -> Facts:
    """The explicit facts of all relations."""
    state, found = state_of(m), {}
    for name in m:
        rows = state.tables[name].take(state.explicit.rows(name))
        found[name] = set(decode_rows(rows, m.program.relations[name].types, state.dictionary))
        assert len(found[name]) == state.explicit.count(name)
    return found


def assert_recomputed(m: Materialisation, text: str = PROGRAM) -> None:
    """The facts are what follows from the explicit ones, and the counters that are called valid are right."""
    explicit = explicit_of(m)
    assert facts_of(m) == oracle.materialise(oracle.read(text), explicit)
    assert_counters_right(m, explicit)


def facts_at(path: Path, version: int | None = None) -> Facts:
    """All facts of a version, by default of the newest."""
    with evermat.open(path, version) as m:
        return facts_of(m)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of an Arrow table."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def tree(path: Path) -> dict[str, bytes]:
    """All files below a folder, with their contents."""
    return {str(f.relative_to(path)): f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file()}


def refused(action: Callable[[], object], exit_code: int = 5) -> str:
    """What is said when something is refused."""
    with pytest.raises(EvermatError) as raised:
        action()
    assert raised.value.exit_code == exit_code
    return str(raised.value)
