"""DataFrames and streams that Spark writes into a state: each is one version, once, or nothing."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import evermat
from evermat.runtime.streams import staged_rows
from evermat.runtime.streams.data_source import EvermatDataSource
from tests.spark.test_streaming import edges, failed, folder, put_rows, schema_with, stream
from tests.support.states import assert_recomputed, explicit_of, refused

pytestmark = pytest.mark.spark
__all__ = ["folder"]

PROGRAM = """
.decl edge(x:number, y:number) .decl path(x:number, y:number) .decl named(x:number, name:symbol) .decl on() .decl total(n:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
Edges = set[tuple[int, int]]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    with evermat.Program.parse(PROGRAM).materialise({"edge": [(1, 2)]}) as made:
        made.save(tmp_path / "state")
    return tmp_path / "state"


@pytest.fixture
def sink(spark: Any) -> Iterator[Any]:
    """The session; afterwards nothing is left of what tasks have written."""
    evermat.register_source(spark)
    yield spark
    assert not list(Path(tempfile.gettempdir()).glob("evermat-rows-*"))


def write(frame: Any, state: Path, relation: str | None = "edge", mode: str = "append", **options: Any) -> None:
    writer = frame.write.format("evermat").option("state", str(state)).options(**options).mode(mode)
    (writer if relation is None else writer.option("relation", relation)).save()


def refusal(spark: Any, query: Any, state: Path, relation: str | None = "edge", **options: Any) -> str:
    """The error of Evermat with which Spark refuses a write; it changes nothing."""
    before = len(evermat.versions(state)) if state.exists() else 0
    with pytest.raises(Exception, match=r"error\[E") as raised:
        write(spark.sql(query) if isinstance(query, str) else query, state, relation, **options)
    assert not state.exists() or len(evermat.versions(state)) == before
    (found,) = re.findall(r"(error\[E\d+\].*?)\s*(?:SQLSTATE.*)?\Z", str(raised.value), re.DOTALL)
    return found.partition("\n")[0]


def now(state: Path, relation: str = "edge") -> tuple[int, set[Any]]:
    with evermat.open(state) as m:
        assert_recomputed(m, PROGRAM)
        return m.version, explicit_of(m)[relation]


# --- DataFrames ----------------------------------------------------------------------------------------------------


def test_a_frame_is_one_version(sink: Any, state: Path) -> None:
    write(sink.createDataFrame([(2, 3), (3, 4)], "x long, y int"), state)
    assert now(state) == (2, {(1, 2), (2, 3), (3, 4)})
    changes = [(5, 4, "insert", 2), (2, 1, "delete", 1), (3, 4, "update_preimage", 7), (3, 4, "update_postimage", 7)]
    write(sink.createDataFrame(changes, "y int, x int, _change_type string, _commit_version long"), state)
    assert now(state) == (3, {(2, 3), (3, 4), (4, 5), (4, 3)})
    rows = [("+", "named", ["7", "a\tb"]), ("+", "on", []), ("-", "edge", ["2", "3"])]
    write(sink.createDataFrame(rows, "op string, relation string, values array<string>"), state, None)
    assert now(state, "named") == (4, {(7, "a\tb")})
    assert now(state, "on") == (4, {()})
    # Explicit facts may be of a relation that rules derive.
    write(sink.createDataFrame([(8, 9)], "x long, y long"), state, "path")
    write(sink.createDataFrame([("D",)], "op string"), state, "on")
    assert now(state, "path") == (6, {(8, 9)})
    assert now(state, "on") == (6, set())


def test_a_relation_is_replaced(sink: Any, state: Path) -> None:
    write(sink.createDataFrame([(7, 8), (1, 2)], "x long, y long"), state, mode="overwrite")
    assert now(state) == (2, {(7, 8), (1, 2)})
    write(sink.createDataFrame([], "x long, y long"), state, mode="overwrite")
    assert now(state) == (3, set())
    with evermat.open(state) as m:
        assert len(m["path"]) == 0


def test_many_rows_are_staged_in_files(sink: Any, state: Path, tmp_path: Path) -> None:
    frame = sink.range(0, 60_000, 1, 3).selectExpr(
        "id % 50 x", "concat('a long text that is not repeated ', id, md5(cast(id as string))) name"
    )
    scratch = tmp_path / "scratch"
    write(frame, state, "named", scratch=str(scratch))
    version, named = now(state, "named")
    assert (version, len(named)) == (2, 60_000)
    assert not list(scratch.iterdir())
    broken = frame.selectExpr("x", "if(x = 49, raise_error('boom'), name) name")
    with pytest.raises(Exception, match="boom"):
        write(broken, state, "named", scratch=str(scratch))
    assert not [file for file in scratch.rglob("*") if file.is_file()]
    assert now(state, "named")[0] == 2


def test_a_batch_with_a_version_is_written_once(sink: Any, state: Path) -> None:
    for number, (x, op) in enumerate([(5, "+"), (5, "-"), (6, "+")]):
        write(
            sink.createDataFrame([(op, x, x)], "op string, x int, y int"), state, txnAppId="orders", txnVersion=number
        )
    write(sink.createDataFrame([("+", 5, 5)], "op string, x int, y int"), state, txnAppId="orders", txnVersion="1")
    assert now(state) == (4, {(1, 2), (6, 6)})
    with evermat.open(state) as m:
        assert m.positions == {"orders": "2"}


def test_writes_that_are_refused(sink: Any, state: Path) -> None:
    plain = "select 1 x, 2 y"
    with evermat.open(state, write=True):
        assert refusal(sink, plain, state) == f"error[E502]: the state `{state}` is locked by another writer"
    text = "error[E363]: `upsert` in row 2, column `op`, is not a change"
    assert refusal(sink, f"{plain}, '+' op union all {plain}, 'upsert'", state) == text
    assert refusal(sink, "select 1 x", state) == "error[E315]: column `y` of `edge` is missing"


# --- without Spark -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "overwrite", "told"),
    [
        ({}, False, "the option `state` is missing"),
        (
            {"state": "s", "relatoin": "edge"},
            False,
            "the data source `evermat` has no option `relatoin` here: it has `state`, `relation`, `algorithm`, `scratch`, `txnAppId`, `txnVersion`; "
            "did you mean `relation`?",
        ),
        ({"state": "s"}, True, "a relation is replaced whole: name it by the option `relation`"),
        ({"state": "hdfs://s"}, False, "the scheme `hdfs` is not supported"),
        ({"state": "s", "txnAppId": "a"}, False, "`txnAppId` and `txnVersion` are used together"),
        ({"state": "s", "txnAppId": "a", "txnVersion": "-1"}, False, "`-1` cannot be the `txnVersion`: it is a number"),
    ],
)
def test_options_that_cannot_be(options: dict[str, str], overwrite: bool, told: str) -> None:
    from pyspark.sql.datasource import CaseInsensitiveDict
    from pyspark.sql.types import StructType

    with pytest.raises(ValueError, match=re.escape(told)):
        EvermatDataSource(CaseInsensitiveDict(options)).writer(StructType(), overwrite)


PLAIN = {"x": "long", "y": "long"}


@pytest.mark.parametrize(
    ("columns", "options", "told"),
    [
        (PLAIN, {"relation": "edges"}, "error[E330]: the program has no relation `edges`"),
        ({**PLAIN, "z": "long"}, {}, "error[E316]: `z` is not a column of `edge`"),
        (
            {"x": "long", "y": "string"},
            {},
            "error[E314]: column 2 (`y`) is of the Arrow type `string`, but the column is `number`",
        ),
        (
            {},
            {"relation": "on"},
            "error[E391]: rows without columns cannot be written: add a column `op` with `+` or `-`",
        ),
        (PLAIN, {"algorithm": "quick"}, "error[E270]: there is no algorithm `quick`"),
        (
            {**PLAIN, "op": "string"},
            {"overwrite": True},
            "error[E200]: `edge` is replaced by the rows, which are not changes: leave the column `op` out",
        ),
    ],
)
def test_rows_that_cannot_be_written(columns: dict[str, str], options: dict[str, Any], told: str, state: Path) -> None:
    assert writer_error(state, schema_with(**columns), **options) == told


def test_a_state_that_cannot_be_written(tmp_path: Path) -> None:
    assert writer_error(tmp_path, schema_with(**PLAIN)) == f"error[E500]: `{tmp_path}` is not a state of evermat"


def writer_error(state: Path, schema: Any, *, overwrite: bool = False, relation: str = "edge", **options: str) -> str:
    """The first line of the error with which a write is refused before any task runs."""
    from pyspark.sql.datasource import CaseInsensitiveDict

    given = CaseInsensitiveDict({"state": str(state), "relation": relation, **options})
    with pytest.raises(evermat.EvermatError) as raised:
        EvermatDataSource(given).writer(schema, overwrite)
    return str(raised.value).partition("\n")[0]


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_rows_between_processes(most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_rows, "_IN_MESSAGE", most)
    batches = [pa.record_batch({"x": [1, 2]}), pa.record_batch({"x": [3]})]
    staging = staged_rows.Staging.of(str(tmp_path))
    messages = [staging.stage(batches), staging.stage([]), None, staging.stage(batches[1:])]
    assert [bool(message and message.file) for message in messages] == [most == 0, False, False, most == 0]
    with staged_rows.staged_rows(messages) as rows:
        assert rows is not None and rows["x"].to_pylist() == [1, 2, 3, 3]
    assert not list(tmp_path.iterdir())
    if most == 0:
        told = refused(lambda: staged_rows.staged_rows(messages).__enter__(), 6)
        assert told.startswith("error[E621]: the driver does not see what executors wrote to `")
    with staged_rows.staged_rows([None]) as rows:
        assert rows is None

    def fails() -> Iterator[pa.RecordBatch]:
        yield from batches
        raise KeyError("boom")

    with pytest.raises(KeyError, match="boom"):
        staging.stage(fails())
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]
    blocked = tmp_path / "file"
    blocked.write_text("")
    if most == 0:
        told = refused(lambda: staged_rows.Staging.of(str(blocked)).stage(batches), 6)
        assert told.startswith("error[E600]: cannot write `")


# --- streams -----------------------------------------------------------------------------------------------------


def started(
    frame: Any, state: Path, checkpoint: Path, relation: str = "edge", mode: str = "append", **trigger: Any
) -> Any:
    writer = frame.writeStream.format("evermat").option("state", str(state)).option("relation", relation)
    writer = writer.option("checkpointLocation", str(checkpoint)).outputMode(mode)
    return writer.trigger(**trigger or {"availableNow": True}).start()


def test_every_micro_batch_comes_once(sink: Any, state: Path, folder: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    put_rows(folder, "1", edges({(2, 3), (3, 4)}))
    put_rows(folder, "2", edges({(5, 6)}, {(1, 2)}))
    query = started(stream(sink, folder), state, checkpoint)
    query.awaitTermination()
    assert now(state) == (3, {(2, 3), (3, 4), (5, 6)})
    with evermat.open(state) as m:
        assert m.positions == {f"spark:{query.id}": "1"}

    # Spark did not come to note that the last batch was done: it comes again after others have changed the state, and then another.
    for file in ("1", ".1.crc"):
        (checkpoint / "commits" / file).unlink()
    with evermat.open(state, write=True) as m:
        m.update({"edge": [(1, 2)]}, {"edge": [(5, 6)]})
    put_rows(folder, "3", edges({(7, 8)}))
    again = started(stream(sink, folder), state, checkpoint)
    again.awaitTermination()
    assert [progress["batchId"] for progress in again.recentProgress][:2] == [1, 2]
    assert now(state) == (5, {(1, 2), (2, 3), (3, 4), (7, 8)})

    # One that is wrong ends the query and changes nothing; it comes again.
    put_rows(folder, "4", [{"op": "?", "x": 1, "y": 1}])
    assert "error[E363]: `?` in row 1, column `op`, is not a change\n --> batch 3" in failed(
        started(stream(sink, folder), state, checkpoint)
    )
    assert now(state)[0] == 5


def test_others_write_between_micro_batches(sink: Any, state: Path, folder: Path, tmp_path: Path) -> None:
    """The lock is free between them, and what others have committed, rules as well, is taken over."""
    query = started(stream(sink, folder), state, tmp_path / "checkpoint", processingTime="100 milliseconds")
    try:
        for number in range(4):
            put_rows(folder, str(number), edges({(number, number)}))
            query.processAllAvailable()
            with evermat.open(state, write=True) as m:
                m.update({"edge": [(100, number)]}, add_rules="total(y) :- edge(100, y)." if number == 2 else "")
        put_rows(folder, "on", edges({(100, 9)}))
        query.processAllAvailable()
    finally:
        query.stop()
    with evermat.open(state) as m:
        assert m.version == 10
        assert explicit_of(m)["edge"] == {(1, 2), (100, 9), *((n, n) for n in range(4)), *((100, n) for n in range(4))}
        assert set(m["total"]) == {(0,), (1,), (2,), (3,), (9,)}


def test_the_whole_result_of_a_query_each_time(sink: Any, state: Path, folder: Path, tmp_path: Path) -> None:
    counted = stream(sink, folder).groupBy().count().selectExpr("`count` n")
    query = started(counted, state, tmp_path / "checkpoint", "total", "complete", processingTime="100 milliseconds")
    try:
        for number in range(3):
            put_rows(folder, str(number), edges({(number, 1), (number, 2)}))
            query.processAllAvailable()
            assert now(state, "total") == (number + 2, {(2 * number + 2,)})
    finally:
        query.stop()
