"""DataFrames in and out."""

from __future__ import annotations

import logging
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from evermat.core.errors import DataError
from evermat.io.column_match import conform
from evermat.io.schema import arrow_schema, nullary
from evermat.language.builtins import Type
from evermat.language.model import Column, Relation
from evermat.spark import dataframes
from evermat.spark.dataframes import create_views, frame_tables, is_dataframe, to_frame
from evermat.spark.input.sources import jdbc_frame, table_frame
from evermat.spark.scratch import Scratch

pytestmark = pytest.mark.spark
NAME = "the facts for `edge`"
N, U, F, S, T = Type.NUMBER, Type.UNSIGNED, Type.FLOAT, Type.SYMBOL, Type.TERM


def relation(**columns: Type) -> Relation:
    return Relation("edge", tuple(Column(name, type_, type_.name.lower()) for name, type_ in columns.items()))


def read(frame: Any, wanted: Relation, place: Path) -> pa.Table:
    with Scratch(place) as scratch:
        tables = list(frame_tables(frame, wanted, scratch, NAME))
        table = pa.concat_tables(tables) if wanted.columns else tables[0]
        assert list(scratch.path.iterdir()) == []
    return table


def refused(frame: Any, wanted: Relation, place: Path) -> str:
    with pytest.raises(DataError) as caught:
        read(frame, wanted, place)
    return str(caught.value)


def refused_in_memory(table: pa.Table, wanted: Relation) -> str:
    with pytest.raises(DataError) as caught:
        conform(table, wanted, NAME)
    return str(caught.value)


def test_only_frames_are_frames(spark: Any) -> None:
    assert is_dataframe(spark.range(1))
    assert not is_dataframe(spark) and not is_dataframe(pa.table({"x": [1]})) and not is_dataframe(None)


def test_asking_does_not_load_pyspark() -> None:
    code = "import sys; from evermat.spark.dataframes import is_dataframe; assert not is_dataframe(1); assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_type_comes_and_goes(spark: Any, tmp_path: Path) -> None:
    wanted = relation(n=N, u=U, f=F, s=S, t=T)
    rows = {
        "n": [-(2**63), 0, 2**63 - 1],
        "u": [0, 1, 2**64 - 1],
        "f": [-0.0, 1.5, float("inf")],
        "s": ["", "größe\x00\n", "a"],
        "t": ["<http://x/y#z>", '"1"^^<http://x>', "_:b"],
    }
    table = conform(pa.table(rows | {"u": pa.array(rows["u"], pa.uint64())}), wanted, NAME)
    frame = to_frame(spark, table, wanted)
    kinds = [field.dataType.simpleString() for field in frame.schema.fields]
    assert kinds == ["bigint", "decimal(20,0)", "double", "string", "string"]
    assert read(frame, wanted, tmp_path).equals(table)
    shuffled = frame.select("s", "t", "u", "n", "f")  # matched by name
    assert read(shuffled, wanted, tmp_path).equals(table)


def test_all_integers_are_numbers(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql("select 1Y a, 2S b, 3 c, cast(4 as decimal(38, 0)) d, 5.5f e, 6 f, cast('x' as varchar(3)) g")
    wanted = relation(a=N, b=N, c=U, d=U, e=F, f=F, g=S)
    assert read(frame, wanted, tmp_path).to_pylist() == [{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5.5, "f": 6.0, "g": "x"}]


@pytest.mark.parametrize(
    ("type_", "found", "cast"),
    [
        ("boolean", "boolean", "cast(y as bigint)"),
        ("date", "date", "cast(unix_date(y) as bigint)"),
        ("timestamp", "timestamp", "cast(y as bigint)"),
        ("binary", "binary", ""),
        ("decimal(5, 2)", "decimal(5,2)", "cast(y as bigint)"),
        ("array<int>", "array<int>", ""),
        ("interval year to month", "interval year to month", ""),
        ("interval day to second", "interval day to second", ""),
    ],
)
def test_other_types_are_refused_before_anything_runs(
    spark: Any, tmp_path: Path, type_: str, found: str, cast: str
) -> None:
    frame = spark.range(1).selectExpr("string(raise_error('it ran ' || id)) x", f"cast(null as {type_}) y")
    text = refused(frame, relation(x=S, y=N), tmp_path)
    assert f"error[E339]: column 2 (`y`) is of the Spark type `{found}`, but the column is `number`" in text
    assert text.splitlines()[1] == f" --> {NAME}"
    assert text.splitlines()[3:] == ([f'  = help: cast it: `.withColumn("y", expr("{cast}"))`'] if cast else [])
    if cast:  # what the message advises is possible
        assert (
            spark.range(1).selectExpr(f"cast(null as {type_}) y").selectExpr(cast).schema[0].dataType.typeName()
            == "long"
        )


def test_messages_are_those_of_a_table_in_memory(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataframes, "_READ_ROWS", 2)  # many pieces
    big, decimal = 2**63, pa.decimal128(38, 0)
    cases = [
        (relation(x=N, y=S), pa.table({"x": [1, 2, None, 4, None], "y": ["a", "b", "c", "d", None]})),
        (relation(x=N, y=F), pa.table({"x": [1, 2, 3, 4, 5], "y": [1.0, 2.0, 3.0, float("nan"), float("nan")]})),
        (relation(x=U), pa.table({"x": [5, 4, 3, -2, -1]})),
        (relation(x=U), pa.table({"x": pa.nulls(3)})),
        (relation(x=N), pa.table({"x": pa.array([Decimal(0), Decimal(1), Decimal(big), Decimal(-1)], decimal)})),
        # The NULL is told, although another misfit comes earlier; and columns come in the relation's order.
        (relation(x=U, y=N), pa.table({"x": [1, -1, 1, 1, None, 1], "y": [None, 1, 1, 1, 1, 1]})),
        (relation(x=N, y=N), pa.table({"y": [1], "z": [1]})),
        (relation(x=N, y=N), pa.table({"x": [1]})),
        (relation(x=N, y=N), pa.table({"x": [1], "Y": [1], "z": [2]})),
    ]
    for wanted, table in cases:
        frame = spark.createDataFrame(table)
        assert refused(frame, wanted, tmp_path) == refused_in_memory(table, wanted)


def test_names_that_differ_in_case_only(spark: Any, tmp_path: Path) -> None:
    frame = spark.range(1).selectExpr("1L as X", "2L as x")
    assert read(frame, relation(x=N, X=N), tmp_path).to_pylist() == [{"x": 2, "X": 1}]
    twice = spark.range(1).selectExpr("1L as x", "2L as x")
    assert "E321" in refused(twice, relation(x=N, y=N), tmp_path)


def test_all_rows_of_all_partitions_in_order(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataframes, "_READ_ROWS", 1000)
    place = tmp_path / "with blanks, [brackets] and größe"
    found = read(spark.range(0, 10_000, 1, 4).toDF("x"), relation(x=N), place)
    assert found.column("x").to_pylist() == list(range(10_000))


def test_empty_frames(spark: Any, tmp_path: Path) -> None:
    wanted = relation(x=N)
    joined = spark.range(5).join(spark.range(5).where("id > 9"), "id")
    for frame in (spark.range(5).where("false"), spark.range(5).where("id > 9"), joined):
        with Scratch(tmp_path) as scratch:
            assert sum(table.num_rows for table in frame_tables(frame.toDF("x"), wanted, scratch, NAME)) == 0
    made = to_frame(spark, arrow_schema(wanted).empty_table(), wanted)
    assert made.columns == ["x"] and made.count() == 0


@pytest.mark.parametrize("present", [False, True])
def test_a_relation_without_columns(spark: Any, tmp_path: Path, present: bool) -> None:
    frame = to_frame(spark, nullary(present=present), relation())
    assert frame.columns == [] and frame.count() == present
    assert read(frame, relation(), tmp_path).num_rows == present
    assert read(spark.range(3 * present), relation(), tmp_path).num_rows == present


def test_a_folder_that_is_not_shared(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, frame = relation(x=N), spark.range(0, 10, 1, 4).toDF("x")
    glob = Path.glob
    for seen in (0, 2):  # the files of some executors are on other machines
        monkeypatch.setattr(Path, "glob", lambda path, pattern, seen=seen: sorted(glob(path, pattern))[:seen])
        assert read(frame, wanted, tmp_path).column("x").to_pylist() == list(range(10))
    monkeypatch.undo()
    with Scratch(tmp_path) as scratch:
        # Spark cannot write there, as it is a file.
        monkeypatch.setattr(Scratch, "folder", lambda self, name: scratch.path / "file")
        (scratch.path / "file").write_text("")
        (table,) = frame_tables(frame, wanted, scratch, NAME)
        assert table.column("x").to_pylist() == list(range(10))
        assert "twelve" in refused_by_spark(spark.sql("select int('twelve') x"), wanted, scratch)


def refused_by_spark(frame: Any, wanted: Relation, scratch: Scratch) -> str:
    with pytest.raises(Exception, match="CAST_INVALID_INPUT") as caught:
        list(frame_tables(frame, wanted, scratch, NAME))
    return str(caught.value)


def test_a_table_that_is_missing_leaves_the_log_of_spark_usable(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # As in a process in which Spark has not reported any error yet.
    monkeypatch.delitem(logging.Logger.manager.loggerDict, "SQLQueryContextLogger", raising=False)
    with pytest.raises(DataError):
        table_frame(spark, "missing")
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        spark.sql("select int('twelve') x").collect()


def test_large_tables_go_in_pieces(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataframes, "_SENT_BYTES", 4096)
    table = pa.table({"x": list(range(2000)), "y": [f"s{i}" for i in range(2000)]})
    frame = to_frame(spark, table, relation(x=N, y=S))
    assert sorted(map(tuple, frame.collect())) == [(i, f"s{i}") for i in range(2000)]


def test_partitions_are_not_tiny(spark: Any) -> None:
    table = pa.table({"x": pa.chunked_array([[i] for i in range(100)] + [list(range(100_000))])})
    frame = to_frame(spark, table, relation(x=N))
    assert frame.selectExpr("spark_partition_id() p").distinct().count() == 1


def test_views(spark: Any) -> None:
    names = ["edge", "ub:Student", "a.b", "http://x/y#z", "a`b", "größe", "Edge", "EDGE", "edge_2", "select"]
    tables = {name: spark.range(i) for i, name in enumerate(names)}
    views = create_views(tables, "v_")
    assert views["edge"] == "v_edge" and views["ub:Student"] == "`v_ub:Student`" and views["a`b"] == "`v_a``b`"
    assert views["Edge"] == "v_Edge_3" and views["EDGE"] == "v_EDGE_4" and views["edge_2"] == "v_edge_2"
    query = " union all ".join(f"select {i} as i, count(*) as n from {views[name]}" for i, name in enumerate(names))
    assert all(row.i == row.n for row in spark.sql(query).collect())
    assert spark.sql(f"select * from {create_views({'select': spark.range(3)})['select']}").count() == 3


def test_tables(spark: Any) -> None:
    spark.range(3).createOrReplaceTempView("three")
    assert table_frame(spark, "three").count() == 3
    with pytest.raises(DataError) as caught:
        table_frame(spark, "nope", "relation `edge` is")
    assert str(caught.value) == (
        "error[E301]: cannot read `nope`: The table or view `nope` cannot be found. "
        "Verify the spelling and correctness of the schema and catalog.\n"
        "  = note: relation `edge` is read from it"
    )
    with pytest.raises(DataError, match="cannot read `a b`: Syntax error at or near 'b'"):
        table_frame(spark, "a b")


def test_jdbc(spark: Any) -> None:
    url = "jdbc:derby:memory:frames_test;create=true"
    to_frame(spark, pa.table({"x": [1, 2], "y": ["a", "b"]}), relation(x=N, y=S)).write.jdbc(url, "edge")
    found = jdbc_frame(spark, {"url": url, "dbtable": "edge"})
    assert sorted(map(tuple, found.collect())) == [(1, "a"), (2, "b")]
    assert jdbc_frame(spark, {"url": url, "query": 'select * from edge where "x" = 2'}).collect()[0][0] == 2


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"dbtable": "t"}, "cannot read `a database`: requirement failed: Option 'url' is required.", False),
        ({"url": "jdbc:derby:memory:y;create=true"}, "`jdbc:derby:memory:y`: Option 'dbtable' or 'query' is", False),
        ({"url": "jdbc:none://u:geheim@h/x?p=geheim", "dbtable": "t"}, "`jdbc:none://h/x`: No suitable driver", True),
        ({"url": "jdbc:none:x", "dbtable": "t", "driver": "org.none.Driver"}, "`jdbc:none:x`: org.none.Driver", True),
        ({"url": "rubbish", "dbtable": "t"}, "cannot read `rubbish`: No suitable driver", True),
        ({"url": "jdbc:derby:memory:none", "dbtable": "t"}, "Database 'memory:none' not found.", False),
        ({"url": "jdbc:derby:memory:y;create=true", "dbtable": "t"}, "Table/View 'T' does not exist.", False),
        ({"url": "jdbc:derby:memory:y;create=true", "query": "selec"}, "Syntax error: Encountered", False),
    ],
)
def test_jdbc_errors(spark: Any, capfd: Any, options: dict[str, str], message: str, hint: bool) -> None:
    with pytest.raises(DataError) as caught:
        jdbc_frame(spark, {"password": "geheim"} | options, "relation `edge` is")
    first, *rest = str(caught.value).splitlines()
    assert first.startswith("error[E301]: cannot read `") and message in first
    assert rest[0] == "  = note: relation `edge` is read from it" and len(rest) == 1 + hint
    assert "geheim" not in str(caught.value) and "Traceback" not in capfd.readouterr().err
