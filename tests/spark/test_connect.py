"""The same over Spark Connect. A process has only one kind of session, so this one is another process's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from evermat.spark.launch.installation import spark_home, spark_version
from evermat.spark.launch.java import java_home
from tests.support.environment import LASTING
from tests.support.s3 import serving

pytestmark = pytest.mark.spark
pytest.importorskip("grpc")

SCRIPT = """
import sys
from pathlib import Path
import pyarrow as pa
from pyspark.sql import SparkSession
from evermat.core.errors import DataError
from evermat.language.builtins import Type
from evermat.language.model import Column, Relation
from evermat.spark import dataframes as frames
from evermat.spark.dataframes import create_views, drop_view, frame_tables, is_dataframe, to_frame
from evermat.spark.input.sources import jdbc_frame, table_frame
from evermat.spark.scratch import Scratch
from tests.support.released import is_emptied

place = Path(sys.argv[1])
settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.sql.artifact.isolation.enabled": "false"}
settings["spark.hadoop.fs.viewfs.mounttable.far.link./in"] = place.as_uri()
builder = SparkSession.builder.remote("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
try:
    assert type(spark).__module__.startswith("pyspark.sql.connect")
    relation = Relation("edge", tuple(Column(n, t, t.name) for n, t in (("x", Type.NUMBER), ("u", Type.UNSIGNED), ("s", Type.SYMBOL))))
    table = pa.table({"x": range(1000), "u": pa.array([2**64 - 1] * 1000, pa.uint64()), "s": [f"s{i}" for i in range(1000)]})
    frames._SENT_BYTES = 20_000
    made = to_frame(spark, table, relation)
    assert is_dataframe(made)
    with Scratch(place) as scratch:
        assert pa.concat_tables(frame_tables(made, relation, scratch, "n")).sort_by("x").to_pydict() == table.to_pydict()
        # a server that does not see the folder
        frames._written = lambda frame, folder: None
        assert pa.concat_tables(frame_tables(made, relation, scratch, "n")).sort_by("x").to_pydict() == table.to_pydict()
        try:
            list(frame_tables(spark.sql("select bigint(null) x, 1 u, '' s"), relation, scratch, "n"))
            raise AssertionError
        except DataError as error:
            assert "NULL in row 1, column 1 (`x`)" in str(error), error
    nothing = Relation("fact", ())
    assert [to_frame(spark, pa.table({"x": [True] * n}), nothing).count() for n in (0, 1)] == [0, 1]
    views = create_views({"ub:Student": made})
    assert spark.sql(f"select count(*) from {views['ub:Student']}").collect()[0][0] == 1000
    for read in (lambda: table_frame(spark, "nope"), lambda: jdbc_frame(spark, {"url": "jdbc:none:x", "dbtable": "t"})):
        try:
            read()
            raise AssertionError
        except DataError as error:
            assert len(str(error).splitlines()) <= 3, error
            print(str(error).splitlines()[0])
    import evermat
    from evermat.spark.input.plan import read_inputs
    text = ".decl e(x:number, y:number) .input e .decl p(x:number, y:number) p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z)."
    program = evermat.Program.parse(text)
    (place / "e.facts").write_text("1\\t2\\n2\\t3\\n")
    for folder in (str(place), "viewfs://far/in"):
        with Scratch(place) as scratch:
            m = program.materialise(read_inputs(spark, program.compiled, folder, scratch))
        assert set(m["p"]) == {(1, 2), (1, 3), (2, 3)}
    m = program.materialise({"e": spark.sql("select 1 x, 2 y union all select 2, 3")}, engine=spark)
    change = m.update({"e": spark.sql("select 3 x, 4 y")})
    assert set(change.inserted["p"]) == {(1, 4), (2, 4), (3, 4)} and m.stats["engine"] == "spark"
    assert m["p"].to_spark(spark).count() == 6
    program = evermat.Program.parse(text + ".decl far(x:number) far(x) :- e(x, _), !p(x, 4).")
    scratch = place / "scratch"
    for where in ("pivot", "cluster"):
        given = {"e": spark.sql("select 1 x, 2 y union all select 2, 3")}
        with program.materialise(given, engine=spark, place=where, scratch=scratch, counters="both") as m:
            assert m.stats["strata"][1]["place"] == {"pivot": "pivot", "cluster": "closure"}[where], m.stats
            assert set(m["p"]) == {(1, 2), (1, 3), (2, 3)} and set(m["far"]) == {(1,), (2,)}
            assert {tuple(row) for row in m["p"].to_spark(spark).collect()} == {(1, 2), (1, 3), (2, 3)}
            assert set(m.query("p(1, x)")) == {(2,), (3,)}
            if where == "pivot":
                continue
            derived = m["p"].to_spark(spark).where("x = 1")
            with m.snapshot() as fixed:
                views = fixed.create_views(spark, "before_")
            current = m.create_views(spark, "now_")
            plan = derived._explain_string(mode="cost")
            assert "PushedFilters: [IsNotNull(c0), EqualTo(c0,1)]" in plan and "sizeInBytes=0" not in plan, plan
            change = m.update(insert={"e": spark.sql("select 3 x, 4 y")}, delete={"e": [(1, 2)]}, algorithm="dred-c")
            assert derived.count() == 2 and spark.table(views["p"]).count() == 3
            assert set(change.inserted["p"]) == {(2, 4), (3, 4)} and set(change.deleted["p"]) == {(1, 2), (1, 3)}
            assert set(m["far"]) == set() and (2, 4) in m["p"] and (1, 2) not in m["p"]
            assert {tuple(row) for row in m["p"].to_spark(spark).collect()} == {(2, 3), (2, 4), (3, 4)}
            assert {tuple(row) for row in spark.table(current["p"]).collect()} == {(2, 3), (2, 4), (3, 4)}
        if where == "pivot":
            assert is_emptied(scratch)
            continue
        assert derived.count() == 2  # its files are kept
        try:
            spark.table(current["p"]).count()
            raise AssertionError
        except Exception as error:
            assert "the materialisation of this view is closed" in str(error), error
        for view in views.values():
            drop_view(spark, view)
        del derived, fixed
        assert is_emptied(scratch)
    from evermat.runtime.engines import placement
    placement.available_bytes = lambda: int(100 * 64 / 0.7)
    program = evermat.Program.parse(".decl e(x:number, y:number) .decl p(x:number) p(x) :- e(x, _).")
    given = {"e": spark.range(300).selectExpr("id x", "id y")}
    with program.materialise(given, engine=spark, scratch=scratch, buckets=3) as m:
        assert m.on_cluster and len(m["p"]) == 300 and m.stats["buckets"] == 3, m.stats
    assert is_emptied(scratch)
    from evermat.spark.engine.resources import default_buckets, task_memory
    assert (default_buckets(spark), task_memory(spark)) == (4, None)
    program = evermat.Program.parse(text)
    (place / "e.facts").write_text("1\\t2\\n2\\n")
    try:
        with Scratch(place) as scratch:
            read_inputs(spark, program.compiled, str(place), scratch)
        raise AssertionError
    except DataError as error:
        assert "e.facts:2:" in str(error), error
    typed = ".decl e(x:number, y:number) .input e(IO=spark, format=csv, path=more) .input e(IO=spark, format=parquet, path=t)"
    (place / "more").write_text("1,2\\n2,3\\n")
    spark.sql("select 3L z, 4L y, 3L x union all select 5L z, 6L y, 5L x").write.parquet(str(place / "t"))
    program = evermat.Program.parse(typed.replace("path=t", 'path=t, where="z = 3"'))
    for where in ("auto", "cluster"):
        with program.materialise(engine=spark, inputs=str(place), place=where, scratch=place / "scratch") as m:
            assert set(m["e"]) == {(1, 2), (2, 3), (3, 4)}
    (place / "more").write_text("1,2\\n2,x\\n")
    for wrong, kind in ((typed, "E347"), (typed.replace("=csv", "=nope"), "E349"), (typed.replace("=more", "=none"), "E300")):
        try:
            evermat.Program.parse(wrong).materialise(engine=spark, inputs="viewfs://far/in")
            raise AssertionError
        except DataError as error:
            assert kind in str(error), error
    for folder in ("nowhere://b", "viewfs://far/in/none"):
        try:
            with Scratch(place) as scratch:
                read_inputs(spark, evermat.Program.parse(text).compiled, folder, scratch)
            raise AssertionError
        except DataError as error:
            assert "E30" in str(error), error
    evermat.Program.parse(text).materialise({"e": [(1, 2)]}).save(place / "state")
    evermat.register_source(spark)
    feed = spark.createDataFrame([("insert", 2, 3), ("delete", 1, 2)], "_change_type string, x long, y long")
    feed.write.format("evermat").option("state", str(place / "state")).option("relation", "e").mode("append").save()
    m = evermat.open(place / "state")
    assert (m.version, set(m["p"])) == (2, {(2, 3)}), m.version
    try:
        m.follow(spark.readStream.format("rate").load(), relation="e", checkpoint=place / "checkpoint")
        raise AssertionError
    except DataError as error:
        assert "it is one of Spark Connect, which has batches processed elsewhere" in str(error), error
    print("all is well")
finally:
    spark.stop()
"""


BUCKET = """
import os, sys
from pyspark.sql import SparkSession
import evermat
from evermat.spark.engine import state_rows
from evermat.store import bucket_of, folder_location

state_rows.LARGE = 2  # tasks write the state
uri = sys.argv[1]
scratch = folder_location("scratch", "scratch", uri)
left = lambda: bucket_of(scratch).below(scratch.key)
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
try:
    program = evermat.Program.parse(".decl e(x:number, y:symbol) .decl p(x:number, y:symbol) p(x, y) :- e(x, y), x > 1.")
    given = {"e": spark.range(30).selectExpr("id x", "concat('s', id) y")}
    with program.materialise(given, engine=spark, place="cluster", scratch=uri, buckets=3) as m:
        frame = m["p"].to_spark(spark)
        assert frame.where("x < 4").count() == 2
        m.save(uri + "-state")
        m.update(delete=given, insert={"e": [(7, "seven"), (8, "eight"), (9, "nine")]})
        assert {row["y"] for row in m["p"].to_spark(spark).collect()} == {"seven", "eight", "nine"}
        assert frame.count() == 28 and left()
    assert frame.count() == 28 and left()
    del frame
    from evermat.spark.engine.frame_pins import release_all
    release_all()
    assert not left(), left()
    assert set(evermat.query(uri + "-state", "p(x, _)")) == {(7,), (8,), (9,)}
    assert len(evermat.query(uri + "-state", "p(x, _)", 1)) == 28
    print("all is well")
finally:
    spark.stop()
"""


def run_connected(script: str, argument: str, tmp_path: Path, more: Mapping[str, str] | None = None) -> str:
    """What a script prints that has a session of Spark Connect; its last line is that all is well."""
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    environment = os.environ | {
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": f'--driver-java-options "{quick}" pyspark-shell',
        **(more or {}),
    }
    environment.pop("SPARK_REMOTE", None)
    if home := java_home(tmp_path, spark_version(spark_home())):
        environment["JAVA_HOME"] = str(home)
    done = subprocess.run(
        [sys.executable, "-c", script, argument],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "all is well", done.stdout + done.stderr[-4000:]
    return done.stdout


@LASTING
def test_scratch_and_states_in_a_bucket(tmp_path: Path) -> None:
    with serving() as service:
        more = {**service.settings, "SPARK_TESTING": "1"}  # any free port
        run_connected(BUCKET, service.new_folder(), tmp_path, more)


def test_over_connect(tmp_path: Path) -> None:
    table, jdbc = run_connected(SCRIPT, str(tmp_path), tmp_path).splitlines()[-3:-1]
    assert table.startswith("error[E301]: cannot read `nope`: The table or view `nope` cannot be found.")
    assert jdbc.startswith("error[E301]: cannot read `jdbc:none:x`: ") and jdbc.endswith("No suitable driver")
