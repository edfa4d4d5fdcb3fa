"""How many facts are given is known before it is decided where to reason, whatever they are given as."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import evermat
from evermat.engine.run import Limits
from evermat.runtime.engines import placement
from evermat.runtime.facts import gather
from evermat.runtime.facts.inputs import FactSources
from evermat.spark import jobs
from evermat.spark.input import frame_size, intake
from evermat.spark.input.arrow_files import ArrowFileFacts
from evermat.spark.input.intake import Intake, Room
from evermat.spark.scratch import Scratch
from tests.support.in_process import materialise_in_process

TEXT = """
.decl e(x:number, y:number)
.decl p(x:number)
p(x) :- e(x, y), x < 3, y >= 0.
"""
PROGRAM = evermat.Program.parse(TEXT)
MANY, ROOM = 500, 100  # facts
IN_P = {(0,), (1,), (2,)}


def numbers(spark: Any, rows: int = MANY) -> Any:
    return spark.range(0, rows, 1, 2).selectExpr("id x", "id y")


def written(spark: Any, rows: int = MANY) -> Any:
    """A scan of Parquet files."""
    folder = (Path.cwd() / "written").as_uri()  # that of the test; Java's is another one
    numbers(spark, rows).write.mode("overwrite").parquet(folder)
    return spark.read.parquet(folder).selectExpr("x", "y")


def exploded(spark: Any) -> Any:
    """Spark knows nothing of how many rows these become."""
    rows = spark.range(0, 5, 1, 1).selectExpr(f"explode(sequence(id, {MANY * 5 - 1}, 5L)) x")
    return rows.selectExpr("x", "x y")


def crossed(spark: Any) -> Any:
    """Spark expects a million rows, and there are ten."""
    many = spark.range(1000)
    return many.crossJoin(many.toDF("other")).where("id = other + 0 and id < 10").selectExpr("id x", "other y")


GIVEN: dict[str, tuple[Callable[[Any], Any], int, str]] = {
    "statistics": (numbers, MANY, "count"),
    "footers": (written, MANY, "Parquet footers"),
    "few in files": (lambda spark: written(spark, 10), 10, "Parquet footers"),
    "more than expected": (exploded, 5 * MANY, "count"),
    "fewer than expected": (crossed, 10, "plan statistics and a count"),
    "a union": (lambda spark: numbers(spark, 60).union(numbers(spark, 60)), 120, "count"),
    "none": (lambda spark: numbers(spark).where("x < 0"), 0, "count"),
    "another session's": (lambda spark: numbers(spark.newSession()), MANY, "count"),
    "cached": (lambda spark: numbers(spark).cache(), MANY, "count"),
    "a generator": (lambda _: ((x, x) for x in range(MANY)), MANY, "counted as they came"),
    "an Arrow stream": (lambda _: streamed(MANY), MANY, "counted as they came"),
    "a list": (lambda _: [(x, x) for x in range(MANY)], MANY, "given"),
}


def streamed(rows: int) -> pa.RecordBatchReader:
    table = pa.table({"x": range(rows), "y": range(rows)})
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(50))


@pytest.mark.spark
@pytest.mark.parametrize("what", GIVEN)
def test_sizes(what: str, spark: Any, tmp_path: Path) -> None:
    """The driver gets no more than it has room for, however wrong an estimate is."""
    given, facts, found = GIVEN[what]
    with Scratch(tmp_path / "scratch") as scratch:
        taking = Intake(scratch, Room(64 * ROOM, 64))
        made = gather.gather(PROGRAM.compiled, FactSources({"e": given(spark)}), spark, taking, None)["e"]
        size = taking.sizes["e"]
        assert (size.facts, taking.fits) == (facts, facts <= ROOM)
        assert size.found.endswith(found)
        if hasattr(given(spark), "sparkSession"):  # otherwise its facts are here anyway
            assert isinstance(made, ArrowFileFacts) or facts <= ROOM


@pytest.mark.spark
def test_from_a_small_driver_to_the_cluster(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A DataFrame, a generator and an input together do not fit; each of them does."""
    text = TEXT + '.input e(IO=table, name="evermat_more") .decl g(x:number, y:number) p(x) :- g(x, y), x < 3.'
    program = evermat.Program.parse(text)
    monkeypatch.setattr(placement, "available_bytes", lambda: int(ROOM * 64 / 0.7))
    numbers(spark, 60).createOrReplaceTempView("evermat_more")
    facts = {"e": numbers(spark, 30), "g": ((x, -x) for x in range(40))}
    with program.materialise(facts, inputs=tmp_path, engine=spark, scratch=tmp_path / "scratch") as m:
        assert m.on_cluster and set(m["p"]) == IN_P
        assert {name: size["facts"] for name, size in m.stats["sizes"].items()} == {"e": 90, "g": 40}
        assert (len(m["e"]), len(m["g"])) == (60, 40)
    assert list((tmp_path / "scratch").iterdir()) == []
    spark.catalog.dropTempView("evermat_more")
    m = program.materialise({"e": numbers(spark, 30)}, engine=spark)
    assert not m.on_cluster and set(m["p"]) == IN_P


@pytest.mark.spark
def test_executors_elsewhere(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a folder that is not shared the driver reads what fits, and says so of what does not."""
    monkeypatch.setattr(intake.dataframes, "_written", lambda _frame, _folder: None)
    with Scratch(tmp_path) as scratch:
        for rows in (10, MANY):
            taking = Intake(scratch, Room(64 * ROOM, 64))
            monkeypatch.setattr(intake, "estimate_of", lambda _frame: None)
            sources = FactSources({"e": numbers(spark, rows)})
            if rows == 10:
                gather.gather(PROGRAM.compiled, sources, spark, taking, None)
                assert taking.sizes["e"].facts == 10
                continue
            with pytest.raises(evermat.ResourceError) as caught:
                gather.gather(PROGRAM.compiled, sources, spark, taking, None)
            assert caught.value.problems[0].message == (
                f"the driver does not see what executors wrote to `{scratch.path}`"
            )


@pytest.mark.spark
def test_a_stream_is_no_set_of_facts(spark: Any, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value x", "value y")
    told = (
        "error[E394]: the facts for `e` are a streaming DataFrame, which has no end\n"
        "  = note: start without them, and follow it: `m.follow(frame, …)`"
    )
    for place in ("auto", "driver", "cluster"):
        with pytest.raises(evermat.DataError) as caught:
            PROGRAM.materialise({"e": stream}, engine=spark, place=place, scratch=tmp_path)  # type: ignore[arg-type]
        assert str(caught.value) == told
    with pytest.raises(evermat.DataError) as caught:
        PROGRAM.materialise({"e": [(1, 1)]}, engine=spark).update(insert={"e": stream})
    assert str(caught.value) == told


def test_estimates_are_read_from_plans() -> None:
    class Frame:
        schema: Any = type("Schema", (), {"fields": []})

    def estimate(line: str) -> Any:
        found = frame_size._STATISTICS.search(line)
        assert found is not None
        return frame_size._of_statistics(found, Frame())  # type: ignore[arg-type]

    assert estimate("Range (0, 9), Statistics(sizeInBytes=7.6 MiB, rowCount=1.00E+6)") == (10**6, "plan statistics")
    assert estimate("Join Inner, Statistics(sizeInBytes=14.6 TiB)").rows > 10**12
    assert estimate("LogicalRDD [x#11L], false, Statistics(sizeInBytes=8.0 EiB)") is None
    assert jobs.is_connect(Frame()) is False


# --- without Spark -----------------------------------------------------------------------------------------------


def test_the_driver_gives_up_before_its_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was read can be read again, whatever it was given as; no error is raised."""

    def check(_watch: Any, _most: int, _size: int) -> None:
        raise placement.DriverOutgrownError(())

    monkeypatch.setattr(placement.DriverWatch, "_check", check)
    monkeypatch.setattr(intake, "_IN_MEMORY", 10)
    facts = {"e": ((x, x) for x in range(50))}
    with materialise_in_process(PROGRAM, facts, place="auto", limits=Limits(memory=1 << 50), scratch=tmp_path) as m:
        assert m.on_cluster and set(m["p"]) == IN_P and len(m["e"]) == 50
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    m = materialise_in_process(PROGRAM, {"e": ((x, x) for x in range(50))}, place="auto", limits=Limits(memory=1 << 50))
    assert not m.on_cluster and set(m["p"]) == IN_P and len(m["e"]) == 50


def test_room() -> None:
    room = Room(1000, 10)
    assert (room.needed(7, 50), room.needed(7, 500)) == (70, 500)
    assert (room.facts_beside(0), room.facts_beside(300), room.facts_beside(5000)) == (100, 70, 0)
    assert Room(None, 10).facts_beside(10) is None


@pytest.mark.parametrize("place", ["auto", "cluster"])
def test_facts_that_arrive_are_checked_as_lists_are(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "_PIECE", 3)
    rows = [(1, 2), (3, 4), (5, 6), (7, "8"), (9, 10), (11,)]
    with pytest.raises(evermat.DataError) as expected:
        PROGRAM.materialise({"e": rows})
    with pytest.raises(evermat.DataError) as caught:
        materialise_in_process(PROGRAM, {"e": iter(rows)}, place=place)
    assert str(caught.value) == str(expected.value) and re.search("row 4.*row 6", str(caught.value), re.DOTALL)
    table = pa.table({"x": [1, 2, None], "y": [1, 2, 3]})
    with pytest.raises(evermat.DataError) as expected:
        PROGRAM.materialise({"e": table})
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(1))
    with pytest.raises(evermat.DataError) as caught:
        materialise_in_process(PROGRAM, {"e": stream}, place=place)
    assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("place", ["auto", "cluster"])
def test_facts_that_arrive(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "_PIECE", 3)
    monkeypatch.setattr(intake, "_IN_MEMORY", 4)
    program = evermat.Program.parse(TEXT + ".decl n() .decl s(x:symbol) .decl t(x:symbol) t(x) :- s(x), n().")
    for rows in (0, 1, 3, 10):
        facts = {"e": iter([(x, x) for x in range(rows)]), "n": iter([()]), "s": (f"s{x}" for x in range(rows))}
        with materialise_in_process(program, facts, place=place) as m:
            assert (len(m["e"]), len(m["t"]), len(m["n"])) == (rows, rows, 1)
            assert set(m["p"]) == {(x,) for x in range(min(rows, 3))}
