"""Other programs read the current facts from the Delta tables, by the queries that are documented."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import evermat
from evermat.store import CURRENT_FACTS
from tests.runtime.crasher import change
from tests.support.states import saved
from tests.support.strategies import Facts

Reader = Callable[[Path, str, list[str]], list[tuple]]


def with_duckdb(path: Path, relation: str, columns: list[str]) -> list[tuple]:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("facts", DeltaTable(path / "relations" / folder_of(path, relation)).to_pyarrow_table())
    connection.register("commits", DeltaTable(path / "commits").to_pyarrow_table())
    query = CURRENT_FACTS.format(relation="facts", commits="commits", columns=", ".join(columns))
    return connection.execute(f"SELECT {', '.join(columns)} FROM ({query})").fetchall()


def with_polars(path: Path, relation: str, columns: list[str]) -> list[tuple]:
    pl = pytest.importorskip("polars")
    newest = pl.read_delta(str(path / "commits"))["version"].max()
    return (
        pl.scan_delta(str(path / "relations" / folder_of(path, relation)))
        .filter(pl.col("_version") <= newest)
        .sort("_version")
        .group_by(*columns)
        .last()
        .filter(pl.col("_op") != "-")
        .select(columns)
        .collect()
        .rows()
    )


def folder_of(path: Path, relation: str) -> str:
    """Where a relation is, as the rows of the commits say."""
    tables = {}
    for row in DeltaTable(path / "commits").to_pyarrow_table().sort_by("version").to_pylist():
        tables |= json.loads(row["tables"])
    (folder,) = (name for name, pin in tables.items() if pin["relation"] == relation and pin["died"] is None)
    assert DeltaTable(path / "relations" / folder).metadata().name == relation
    return folder


def check(read: Reader, path: Path) -> Facts:
    """Every relation is read exactly as it is."""
    with evermat.open(path) as m:
        for name in m:
            found = read(path, name, m[name].columns)
            assert len(found) == len(set(found)) == len(m[name])
            assert set(found) == set(m[name])
        return {name: set(m[name]) for name in m}


def test_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block of the page about other programs runs as it stands there; DuckDB's extension, which has to be downloaded, is replaced."""
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    page = (Path(__file__).parents[2] / "docs" / "state.md").read_text(encoding="utf-8")
    section = page.partition("## Reading from other programs\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
    assert [language for language, _ in blocks] == ["sql", "python", "sql", "python"]
    monkeypatch.chdir(tmp_path)
    with saved(Path("state")) as m:
        for number in range(2, 40):
            insert, delete, _ = change(number)
            m.update(insert, delete)
        right = set(m["path"])
    files = {table: DeltaTable(f"state/{table}").file_uris() for table in ("relations/path", "commits")}
    assert len(files["relations/path"]) > 1
    for language, block in blocks:
        if language == "python":
            found: dict[str, Any] = {}
            exec(block, found)
            facts = found["facts"] if isinstance(found["facts"], list) else found["facts"].rows()
        else:
            connection = duckdb.connect()
            for table, of_table in files.items():
                connection.register(table.rpartition("/")[2], connection.read_parquet(of_table))
            facts = connection.sql(re.sub(r"delta_scan\('state/(?:relations/)?(\w+)'\)", r"\1", block)).fetchall()
        assert len(facts) == len(right)
        assert set(facts) == right


@pytest.mark.slow
@pytest.mark.parametrize("read", [with_duckdb, with_polars])
def test_updates_compaction_and_vacuum(read: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    with saved(path) as m:
        for number in range(2, 7):
            insert, delete, _ = change(number)
            m.update(insert, delete)
        check(read, path)
        monkeypatch.setattr("evermat.store.store._MANY_ROWS", 0)
        m.update({"edge": [(7, 8)]})
        kinds = DeltaTable(path / "commits").to_pyarrow_table()["kind"].to_pylist()
        assert "compaction" in kinds
        before = check(read, path)
        monkeypatch.setattr("evermat.store.store._MANY_ROWS", 10_000)
        m.update(delete={"edge": [(7, 8)]})
        assert check(read, path) != before
    evermat.vacuum(path, 1)
    check(read, path)


@pytest.mark.parametrize("read", [with_duckdb, with_polars])
def test_all_types_and_odd_names(read: Reader, tmp_path: Path) -> None:
    path = tmp_path / "state"
    text = ".prefix p: <http://x/../y#> .decl p:value(u:unsigned, f:float, s:symbol, n:number) .decl Value(x:number)"
    facts = [(2**64 - 1, -0.5, "é\n", -(2**63)), (0, 1e300, "", 1)]
    with evermat.Program.parse(text).materialise({"<http://x/../y#value>": facts, "Value": [(1,)]}) as m:
        m.save(path)
        m.update({"<http://x/../y#value>": [(1, 0.0, "b", 2)]}, {"<http://x/../y#value>": facts[1:]})
    check(read, path)


@pytest.mark.slow
@pytest.mark.parametrize("read", [with_duckdb, with_polars])
def test_a_state_that_was_saved_over(read: Reader, tmp_path: Path) -> None:
    path = tmp_path / "state"
    programs = [
        (".decl a(x:number)", [(1,), (2,)]),
        (".decl a(y:number)", [(2,), (3,)]),
        (".decl a(y:symbol)", [("2",)]),
        (".decl a(y:term)", [('"2"@en',)]),
    ]
    for text, facts in programs:
        with evermat.Program.parse(text).materialise({"a": facts}) as m:
            m.save(path)
        assert check(read, path) == {"a": set(facts)}
