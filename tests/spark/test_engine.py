"""The Spark engine on Spark: tasks of a cluster do what they do in one process. What they compute is tested there, more thoroughly."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import evermat
from evermat.testing import state_of
from tests.support.released import is_emptied

pytestmark = pytest.mark.spark

TEXT = """
.decl road(x:symbol, y:symbol, km:float)
.decl closed(x:symbol)
.decl reach(x:symbol, y:symbol)
.decl total(x:symbol, km:float)
.decl any_closed()
reach(x, y) :- road(x, y, _).
reach(x, z) :- reach(x, y), road(y, z, _), !closed(y).
total(x, km) :- road(x, _, _), km = sum d : { road(x, _, d) }.
any_closed() :- closed(_).
"""
ROADS = [("a", "b", 1.5), ("b", "c", -0.0), ("c", "é", 2.25), ("é", "", 1e300), ("a", "", 0.1)]
FACTS = {"road": ROADS, "closed": [("é",)]}
COPY = ".decl road(x:symbol, km:float) .decl town(x:symbol) town(x) :- road(x, _)."


def facts_of(m: evermat.Materialisation) -> dict[str, set[tuple[Any, ...]]]:
    return {name: set(m[name]) for name in m}


def places(m: evermat.Materialisation) -> dict[str, str]:
    return {name: stratum["place"] for stratum in m.stats["strata"] for name in stratum["relations"]}


def test_rounds(spark: Any, tmp_path: Path) -> None:
    program = evermat.Program.parse(TEXT)
    expected = program.materialise(FACTS)
    with program.materialise(FACTS, engine=spark, place="cluster", scratch=tmp_path) as m:
        assert facts_of(m) == facts_of(expected)
        assert set(places(m).values()) == {"rounds"}
        assert {tuple(row) for row in m["total"].to_spark(spark).collect()} == set(expected["total"])
        assert m["any_closed"].to_spark(spark).count() == 1
        assert [file for file in tmp_path.rglob("*.parquet")]
    assert is_emptied(tmp_path)


def test_pivots_and_an_update(spark: Any, tmp_path: Path) -> None:
    program = evermat.Program.parse(TEXT)
    expected = program.materialise(FACTS)
    with program.materialise(FACTS, engine=spark, place="pivot", scratch=tmp_path) as m:
        assert facts_of(m) == facts_of(expected)
        assert places(m)["reach"] == "pivot"
        changes: dict[str, Any] = {"insert": {"road": [("", "b", 0.5)]}, "delete": {"closed": [("é",)]}}
        change, other = m.update(**changes), expected.update(**changes)
        assert facts_of(m) == facts_of(expected)
        for name in m:
            assert set(change.inserted[name]) == set(other.inserted[name])
            assert set(change.deleted[name]) == set(other.deleted[name])
        question = 'reach("b", x), !road(x, _, _)'
        assert set(m.query(question)) == set(expected.query(question))
    assert not list(tmp_path.iterdir())


def test_dataframes_are_read_by_tasks(spark: Any, tmp_path: Path) -> None:
    program = evermat.Program.parse(COPY)
    roads = spark.createDataFrame([("a", 1.5), ("é", -0.0), ("a", 2.0)], "x string, km double")
    with program.materialise({"road": roads}, engine=spark, place="cluster", scratch=tmp_path) as m:
        assert facts_of(m) == {"road": {("a", 1.5), ("é", 0.0), ("a", 2.0)}, "town": {("a",), ("é",)}}
    wrong = spark.createDataFrame([("a", "far")], "x string, km string")
    with pytest.raises(evermat.DataError) as error:
        program.materialise({"road": wrong}, engine=spark, place="cluster", scratch=tmp_path)
    assert str(error.value) == (
        "error[E339]: column 2 (`km`) is of the Spark type `string`, but the column is `float`\n"
        " --> the facts for `road`\n"
        "  = note: a `float` is read from columns of float, double and integers\n"
        '  = help: cast it: `.withColumn("km", expr("cast(km as double)"))`'
    )
    assert not list(tmp_path.iterdir())


def test_files_that_vanish_are_missed(spark: Any, tmp_path: Path) -> None:
    """A task that cannot read what it needs fails: nothing is taken for an empty set."""
    program = evermat.Program.parse(COPY)
    with program.materialise({"road": [("a", 1.5)]}, engine=spark, place="cluster", scratch=tmp_path) as m:
        folder = state_of(m).cluster.folder
        shutil.rmtree(folder)
        with pytest.raises(evermat.ResourceError) as error:
            m.update(insert={"road": [("b", 1.5)]})
        assert str(error.value) == (
            f"error[E600]: cannot write `{folder.parent}`: No such file or directory\n"
            "  = note: it is needed to exchange facts"
        )
        folder.mkdir()
        with pytest.raises(evermat.ResourceError) as error:
            m.query("town(x)")
        assert str(error.value).startswith(
            "error[E620]: Spark could not derive query for an answer: FileNotFoundError: "
        )
