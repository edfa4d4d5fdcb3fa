"""Other programs read the current facts, as documented."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from evermat.store import CURRENT_FACTS, Store
from tests.store.models import PAIRS, SCHEMAS, contents, entry, minus, plus, small_state

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    path = tmp_path_factory.mktemp("readers") / "state"
    small_state(path)
    with Store.open(path) as store:
        store.lock()
        store.commit(entry(), {"edge": minus(PAIRS, ("a", 1)), "path": plus(PAIRS, ("q", 5))}, SCHEMAS)
        return path, {name: sorted(contents(store, 5, name)) for name in ("edge", "path")}


@pytest.mark.parametrize("name", ["edge", "path"])
def test_duckdb(state, name: str):
    path, right = state
    connection = duckdb.connect()
    for table, folder in ((name, f"relations/{name}"), ("commits", "commits")):
        connection.register(f"{table}_rows", DeltaTable(path / folder).to_pyarrow_table())
    query = CURRENT_FACTS.format(relation=f"{name}_rows", commits="commits_rows", columns="x, y")
    assert sorted(row[:2] for row in connection.execute(query).fetchall()) == right[name]


@pytest.mark.parametrize("name", ["edge", "path"])
def test_polars(state, name: str):
    path, right = state
    newest = pl.read_delta(str(path / "commits"))["version"].max()
    facts = (
        pl.scan_delta(str(path / "relations" / name))
        .filter(pl.col("_version") <= newest)
        .sort("_version")
        .group_by("x", "y")
        .last()
        .filter(pl.col("_op") != "-")
        .select("x", "y")
        .collect()
    )
    assert sorted(facts.rows()) == right[name]


def test_pinned_versions(state):
    path, _ = state
    row = pl.read_delta(str(path / "commits")).row(-1, named=True)
    commits = DeltaTable(path / "commits").to_pyarrow_table().to_pylist()
    row = max(commits, key=lambda row: (row["version"], row["kind"] != "version"))
    for pin in json.loads(row["tables"]).values():
        assert DeltaTable(path / "relations" / pin["folder"]).version() == pin["delta"]


def test_tables_are_readable_after_a_vacuum(tmp_path: Path):
    path = tmp_path / "state"
    right = small_state(path, 6)
    with Store.open(path) as store:
        store.lock()
        store.vacuum(1)
    assert not (path / "relations" / "edge" / "_delta_log" / f"{0:020}.json").exists()
    found = DeltaTable(path / "relations" / "edge").to_pyarrow_table().to_pylist()
    assert {(row["x"], row["y"]) for row in found} == set(right[6]["edge"])
    assert DeltaTable(path / "commits").to_pyarrow_table().num_rows == 2
