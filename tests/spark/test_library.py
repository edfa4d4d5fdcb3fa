"""The library with a caller's SparkSession: DataFrames in, DataFrames and views out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evermat

pytestmark = pytest.mark.spark

PROGRAM = evermat.Program.parse("""
.decl edge(x:symbol, y:symbol) .decl path(x:symbol, y:symbol) .decl size(n:number) .decl on()
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
size(n) :- n = count : { path(_, _) }.
on() :- path(_, _).
""")


def frame(spark: Any, *rows: tuple[str, str]) -> Any:
    return spark.createDataFrame(list(rows), "x string, y string")


def test_frames_in_and_out(spark: Any, tmp_path: Path) -> None:
    m = PROGRAM.materialise({"edge": frame(spark, ("a", "b"), ("b", "c"), ("a", "b"))}, engine=spark)
    assert set(m["path"]) == {("a", "b"), ("a", "c"), ("b", "c")}
    assert m.stats["engine"] == "spark"
    assert {stratum["place"] for stratum in m.stats["strata"]} == {"driver"}
    change = m.update({"edge": frame(spark, ("c", "d"))}, {"edge": frame(spark, ("a", "b"))})
    assert set(change.deleted["path"]) == {("a", "b"), ("a", "c")}
    found = m["path"].to_spark(spark)
    assert sorted(map(tuple, found.collect())) == [("b", "c"), ("b", "d"), ("c", "d")]
    assert change.inserted["path"].to_spark(spark).count() == 2
    assert [m["on"].to_spark(spark).count(), m["size"].to_spark(spark).collect()[0][0]] == [1, 3]
    views = m.create_views(spark, "evermat_")
    assert views == {name: f"evermat_{name}" for name in m}
    assert spark.sql("SELECT count(*) FROM evermat_path WHERE x = 'b'").collect()[0][0] == 2
    m.save(tmp_path / "state")
    m.close()
    with evermat.open(tmp_path / "state") as opened:
        assert set(opened["path"]) == set(m["path"])


def test_frames_are_taken_by_the_memory_engine_too(spark: Any) -> None:
    assert set(PROGRAM.materialise({"edge": frame(spark, ("a", "b"))})["path"]) == {("a", "b")}


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT 'a' x, string(null) y", "error[E313]: NULL in row 1, column 2 (`y`)"),
        ("SELECT 'a' x", "error[E315]: column `y` of `edge` is missing"),
        ("SELECT 'a' x, 1 y", "error[E339]: column 2 (`y`) is of the Spark type `int`, but the column is `symbol`"),
    ],
)
def test_frames_that_do_not_fit_change_nothing(spark: Any, query: str, told: str) -> None:
    m = PROGRAM.materialise({"edge": [("a", "b")]}, engine=spark)
    with pytest.raises(evermat.DataError) as raised:
        m.update({"edge": spark.sql(query)})
    assert str(raised.value).startswith(told)
    assert set(m["path"]) == {("a", "b")}


def test_no_such_relation(spark: Any) -> None:
    with pytest.raises(evermat.DataError, match="the program has no relation `edges`"):
        PROGRAM.materialise({"edges": frame(spark, ("a", "b"))}, engine=spark)
