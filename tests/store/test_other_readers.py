"""Other programs read the current facts, as documented."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from evermat.store import CURRENT_FACTS, Keep, Store
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


def test_pinned_entries(state):
    path, _ = state
    pins = {}
    for row in sorted(DeltaTable(path / "commits").to_pyarrow_table().to_pylist(), key=lambda row: row["version"]):
        pins |= json.loads(row["tables"])
    assert {pin["relation"] for pin in pins.values()} == set(SCHEMAS)
    for folder, pin in pins.items():
        table = DeltaTable(path / "relations" / folder)
        assert table.version() == pin["delta"]
        assert table.metadata().name == pin["relation"]


@pytest.mark.slow
def test_the_head_shows_the_newest_version(tmp_path: Path, monkeypatch):
    """After merges, snapshots and checkpoints, every reader sees the current facts and nothing else."""
    monkeypatch.setattr("evermat.store.delta_table.FAN", 3)
    monkeypatch.setattr("evermat.store.delta_table.CHECKPOINT_EVERY", 4)
    path = tmp_path / "state"
    small_state(path)
    with Store.open(path) as store:
        store.lock()
        store.keep(Keep.of(7))
        for number in range(5, 60):
            rows = plus(PAIRS, ("k", number)) if number % 3 else minus(PAIRS, ("k", number - 1))
            store.commit(entry(), {"path": rows}, SCHEMAS)
            if number % 17 == 0:
                store.compact({"path": plus(PAIRS, *contents(store, number, "path"))}, None)
            if number % 6 == 0 or number % 17 == 0:
                right = set(contents(store, number, "path"))
                found = DeltaTable(path / "relations" / "path").to_pyarrow_table()
                commits = DeltaTable(path / "commits").to_pyarrow_table()
                connection = duckdb.connect()
                connection.register("path_rows", found)
                connection.register("commit_rows", commits)
                query = CURRENT_FACTS.format(relation="path_rows", commits="commit_rows", columns="x, y")
                assert {row[:2] for row in connection.execute(query).fetchall()} == right
                assert pl.read_delta(str(path / "commits"))["version"].max() == number
    assert len(list(path.rglob("*.json"))) < 60


def test_tables_are_readable_after_a_vacuum(tmp_path: Path):
    path = tmp_path / "state"
    right = small_state(path, 6)
    with Store.open(path) as store:
        store.lock()
        store.vacuum(1)
    found = DeltaTable(path / "relations" / "edge").to_pyarrow_table().to_pylist()
    assert {(row["x"], row["y"]) for row in found} == set(right[6]["edge"])
    assert DeltaTable(path / "commits").to_pyarrow_table()["version"].to_pylist() == [5, 6, 6]
