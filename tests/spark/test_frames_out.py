"""DataFrames of a materialisation: what Spark knows of them and pushes down, versions, views, and the end of what they read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evermat
from evermat.runtime.results import views
from tests.support.released import is_emptied

pytestmark = pytest.mark.spark

PROGRAM = evermat.Program.parse("""
.decl e(n:number, s:symbol, u:unsigned)
.decl p(n:number, s:symbol, u:unsigned)
p(n, s, u) :- e(n, s, u).
.decl f(x:float)
.decl g(x:float)
g(x) :- f(x).
.decl none(x:number)
.decl yes()
yes() :- e(_, _, _).
""")
FACTS = {
    "e": [(x, f"s{x % 7}", 2**64 - 1 - x) for x in range(3000)],
    "f": [(x / 4,) for x in range(1000)],
}


def estimated(frame: Any) -> int:
    return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


def physical(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def rows(frame: Any) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in frame.collect()}


def test_on_a_cluster(spark: Any, tmp_path: Path) -> None:
    with PROGRAM.materialise(FACTS, engine=spark, place="cluster", scratch=tmp_path) as m:
        frames = {name: m[name].to_spark(spark) for name in m}
        assert [field.dataType.simpleString() for field in frames["p"].schema] == ["bigint", "string", "decimal(20,0)"]
        for name, frame in frames.items():
            assert rows(frame) == set(m[name]), name
        stored = sum(file.stat().st_size for file in tmp_path.rglob("*.parquet"))
        assert 10_000 < estimated(frames["p"]) < 10 * stored and estimated(frames["g"]) == 16 * 1000
        wanted = frames["p"].where("n = 5").select("s")
        assert "PushedFilters: [IsNotNull(n), EqualTo(n,5)]".replace("(n", "(c0") in physical(wanted)
        assert "ReadSchema: struct<c0:bigint,c1:string>" in physical(wanted) and rows(wanted) == {("s5",)}

        current, grouped = m.create_views(spark, "now_"), frames["p"].groupBy("s").count()
        with m.snapshot() as snapshot:
            fixed = snapshot.create_views(spark, "then_")
        spark.table(current["p"]).createOrReplaceTempView("over")  # a view over a view reads what that was
        m.update(insert={"e": [(-1, "new", 0)], "none": [(1,)]}, delete={"e": [FACTS["e"][5]]})
        assert rows(spark.table(current["p"])) == set(m["p"]) and spark.table(current["none"]).count() == 1
        assert spark.table(fixed["p"]).count() == spark.table("over").count() == 3000
        after = m["p"].to_spark(spark)
        assert rows(after) == set(m["p"]) and "EqualTo(c0,5)" in physical(after.where("n = 5"))
        assert rows(after.where("n in (4, 5)").select("n")) == {(4,)}
        m.update(add_rules=".decl q(n:number) q(n) :- none(n).")
        assert rows(spark.table("now_q")) == {(1,)}
        m.update(remove_rules="q(n) :- none(n).")
        assert spark.table("now_q").count() == 0

    assert grouped.count() == 7 and rows(frames["g"]) == set(FACTS["f"])  # their files are still there
    for query in ("select count(*) from now_p", "select s from now_p", "select * from now_yes"):
        with pytest.raises(Exception, match="the materialisation of this view is closed"):
            spark.sql(query).collect()
    for view in [*fixed.values(), "over"]:
        spark.catalog.dropTempView(view)
    del frames, frame, wanted, grouped, after, snapshot
    assert is_emptied(tmp_path)


def test_in_the_driver(spark: Any) -> None:
    m = PROGRAM.materialise(FACTS, engine=spark)
    frame = m["p"].to_spark(spark)
    assert rows(frame) == set(m["p"]) and 3000 * 16 < estimated(frame) < 3000 * 100
    made = m.create_views(spark, "now_")
    with m.snapshot() as snapshot:
        fixed = snapshot.create_views(spark, "then_")
    m.update(insert={"e": [(-1, "new", 0)]})
    assert (spark.table(made["p"]).count(), spark.table(fixed["p"]).count(), frame.count()) == (3001, 3000, 3000)
    other = spark.newSession()
    m.create_views(other, "here_")
    m.update(delete={"e": [(-1, "new", 0)]})
    assert (spark.table(made["p"]).count(), other.table("here_p").count()) == (3000, 3000)
    m.close()  # without files all stays readable
    assert spark.table(made["p"]).count() == 3000


def test_views_that_cannot_be_renewed(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The update is done all the same, and the views do not show what is not true any more."""
    m = PROGRAM.materialise(FACTS, engine=spark)
    made = m.create_views(spark, "lost_")
    with monkeypatch.context() as patch:
        patch.setattr(views, "_frame", lambda *_: 1 / 0)
        m.update(insert={"e": [(-1, "new", 0)]})
    assert len(m["p"]) == 3001
    with pytest.raises(Exception, match="this view could not be brought up to date"):
        spark.table(made["p"]).count()
    m.update(insert={"e": [(-2, "new", 0)]})
    assert m.create_views(spark, "lost_") == made and spark.table(made["p"]).count() == 3002
