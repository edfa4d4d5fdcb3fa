"""Outputs that executors write, over Spark Connect and on a standalone cluster: each in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset
import pytest

from evermat.spark.launch.java import java_home
from tests.spark.standalone import PATIENCE, Cluster

pytestmark = pytest.mark.spark

PROGRAM = """
.decl e(x:number, y:symbol)
.decl r(x:number, y:symbol)
r(x, y) :- e(x, y).
.output r(IO=spark, path="r.parquet", partitionBy="y")
.output r(IO=spark, format="csv", path="c", mode="append")
.output r
"""

CONNECT = f"""
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import evermat
from evermat.core import DataError, ResourceError

place = Path(sys.argv[1])
settings = {{"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.sql.artifact.isolation.enabled": "false"}}
builder = SparkSession.builder.remote("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
try:
    assert type(spark).__module__.startswith("pyspark.sql.connect")
    program = evermat.Program.parse('''{PROGRAM} .output r(IO=table, name="t", mode="overwrite")''')
    facts = [(x, "ab"[x % 2]) for x in range(100)]
    for where in ("driver", "cluster"):
        out = place / where
        with program.materialise({{"e": facts}}, engine=spark, place=where, scratch=place / "scratch") as m:
            assert m.on_cluster == (where == "cluster")
            m.write_outputs(out, spark=spark)
            for _ in range(2):
                assert {{(row.x, row.y) for row in spark.read.parquet(str(out / "r.parquet")).collect()}} == set(facts)
                assert spark.read.csv(str(out / "c")).count() == spark.table("t").count() == 100
                try:
                    m.write_outputs(out, spark=spark)
                    raise AssertionError
                except DataError as error:
                    assert "E335" in str(error), error
        uri = f"viewfs://{{where}}/data"
        (place / f"far-{{where}}").mkdir()
        spark.conf.set(f"fs.viewfs.mounttable.{{where}}.link./data", f"file://{{place}}/far-{{where}}")
        text = evermat.Program.parse('.decl e(x:number, y:symbol) .output e .output e(filename="f.parquet")')
        with text.materialise({{"e": facts}}, engine=spark, place=where, scratch=place / "scratch") as m:
            m.write_outputs(uri, spark=spark)
        assert {{row[0] for row in spark.read.text(uri + "/e.csv").collect()}} == {{f"{{x}}\\t{{y}}" for x, y in facts}}
        assert spark.read.parquet(uri + "/f.parquet").count() == 100
    for output, code in (
        ('IO=spark, path="s3a://bucket/e"', "E600"),
        ('IO=spark, format="nosuch", path="e"', "E337"),
        ('IO=table, name="nosuch.e"', "E337"),
        ('IO=jdbc, url="jdbc:none:x", dbtable="e"', "E600"),
        ('IO=spark, path="z", compression="nonsense"', "E600"),
    ):
        text = evermat.Program.parse('.decl e(x:number) .output e(IO=spark, path="first") .output e(' + output + ") e(1).")
        try:
            text.materialise(engine=spark).write_outputs(place / "failed", spark=spark)
            raise AssertionError(output)
        except (DataError, ResourceError) as error:
            assert code in str(error) and len(str(error).splitlines()) <= 3, error
        assert not (place / "failed").exists()
    print("all is well")
finally:
    spark.stop()
"""


def test_over_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    environment = os.environ | {
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": '--driver-java-options "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" pyspark-shell',
    }
    environment.pop("SPARK_REMOTE", None)
    if home := java_home(tmp_path):
        environment["JAVA_HOME"] = str(home)
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, str(tmp_path)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0 and done.stdout == "all is well\n", done.stdout + done.stderr[-4000:]


def test_on_a_cluster(running: Cluster) -> None:
    facts = {(x, "ab"[x % 2]) for x in range(100)}
    Path("e.facts").write_text("".join(f"{x}\t{y}\n" for x, y in facts), encoding="utf-8")
    Path("program.dl").write_text(PROGRAM + ".input e\n", encoding="utf-8")
    options = ["--engine", "spark", "--master", running.master, "--scratch", "scratch", "--place", "cluster"]
    command = [sys.executable, "-m", "evermat", "run", "program.dl", *options, "-D", "out"]
    for code, number in ((0, ""), (3, "error[E335]")):
        done = subprocess.run(
            command, env=running.environment, capture_output=True, text=True, timeout=4 * PATIENCE, check=False
        )
        said = "\n".join(line for line in done.stderr.splitlines() if not line.startswith(("read e: ", "stratum ")))
        assert (done.returncode, said[:11]) == (code, number), done.stderr
        found = pyarrow.dataset.dataset("out/r.parquet", partitioning="hive").to_table()
        assert set(zip(found["x"].to_pylist(), found["y"].to_pylist(), strict=True)) == facts
        lines = "".join(path.read_text() for path in Path("out/c").glob("part-*")).splitlines()
        assert sorted(lines) == sorted(f"{x},{y}" for x, y in facts)
        assert len(Path("out/r.csv").read_text().splitlines()) == 100
        assert sorted(path.name for path in Path("out").iterdir()) == ["c", "r.csv", "r.parquet"]
