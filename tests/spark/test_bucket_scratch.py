"""Scratch files at `s3://`, against an S3 service on this machine: the driver and tasks exchange facts as objects."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import evermat
from evermat.core import ArgumentError, ResourceError
from evermat.language import Column, Relation, Type
from evermat.spark import Intake, Room, Scratch, scratch_files
from evermat.spark.engine import connected_components, frame_pins
from evermat.spark.scratch_files import parquet_file, reading, remove_folder, write_parquet, writing
from evermat.store import Location, bucket_of, folder_location
from evermat.store import bucket as buckets
from evermat.store.data_files import Part
from tests.spark.standalone import PATIENCE, Cluster
from tests.support.commands import Evermat
from tests.support.in_process import materialise_in_process
from tests.support.s3 import Service, serving
from tests.support.updates import facts_of

PROGRAM = """
.decl edge(x:symbol, y:symbol)
.decl path(x:symbol, y:symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl weight(x:symbol, w:float)
.decl total(w:float)
total(w) :- w = sum v : { weight(_, v) }.
.decl known()
known() :- weight(_, _).
"""
EDGES = [(f"n{i}", f"n{i + 1}") for i in range(12)]
FACTS = {"edge": EDGES, "weight": [("a", 0.5), ("b", 1.5)]}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serving() as found:
        yield found


@pytest.fixture
def uri(service: Service, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in service.settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(buckets, "_buckets", {})
    return service.new_folder()


@pytest.fixture
def workers(spark: Any, service: Service, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The session, whose workers get the settings of the service."""
    for name, value in service.settings.items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    return spark


def at(uri: str) -> Location:
    return folder_location("scratch", "scratch", uri)


def left(uri: str) -> list[str]:
    """What is in a folder."""
    folder: Any = at(uri)
    return sorted(key for key, _ in bucket_of(folder).below(folder.key))


# --- files -----------------------------------------------------------------------------------------------------


def test_files(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small objects come with one request, of large ones only what is read."""
    file = at(uri) / "some file.parquet"
    table = pa.table({"x": range(300_000), "y": [f"text {i}" for i in range(300_000)]})
    write_parquet(table, file, row_group_size=50_000)
    for first in (1 << 23, 1000):
        monkeypatch.setattr(scratch_files, "_FIRST", first)
        with parquet_file(file) as stored:
            assert stored.metadata.num_row_groups == 6
            assert stored.read_row_group(3)["x"][0].as_py() == 150_000
            assert pa.Table.from_batches(stored.iter_batches(1 << 14)).equals(table)
        with reading(file) as source:
            assert source.size() == len(source.read())
            source.seek(-4, 2)
            assert source.read(10) == b"PAR1"
    with suppress(ZeroDivisionError), writing(at(uri) / "other") as sink:
        sink.write(b"begun")
        _ = 1 / 0
    assert len(left(uri)) == 1
    with pytest.raises(ResourceError, match="E612"), reading(at(uri) / "other"):
        pass
    assert remove_folder(at(uri)) and not left(uri)


# --- the engine, whose jobs run in this process ------------------------------------------------------------------


@pytest.mark.parametrize("place", ["cluster", "pivot"])
def test_a_life(uri: str, place: str) -> None:
    program = evermat.Program.parse(PROGRAM)
    with materialise_in_process(program, FACTS, place=place, counters="both", scratch=at(uri)) as m:
        other = program.materialise(FACTS, counters="both")
        assert facts_of(m) == facts_of(other)
        before = len(left(uri))
        rng = Random(place)
        for i in range(3):
            change = {
                "insert": {"edge": [(f"n{rng.randrange(15)}", f"n{rng.randrange(15)}")], "weight": [(f"w{i}", i / 2)]},
                "delete": {"edge": [rng.choice(EDGES)]},
            }
            m.update(**change)
            other.update(**change)
            assert facts_of(m) == facts_of(other)
            assert set(m.query('path("n0", x)')) == set(other.query('path("n0", x)'))
        assert m.stats["stored_bytes"] > 0
        assert len(left(uri)) < 5 * before, "files that nothing refers to are deleted"
        m.save(f"{uri}-state")
        with m.snapshot() as snapshot:
            m.update(insert={"edge": [("last", "one")]})
            assert len(snapshot["edge"]) == len(m["edge"]) - 1
    assert left(uri) == []
    with evermat.open(f"{uri}-state") as m:
        assert ("last", "one") in m["path"]


# --- Spark -------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_commands(
    uri: str, workers: Any, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("evermat.spark.session", lambda **_: nullcontext(workers))
    monkeypatch.setattr("evermat.cli.progress._LINE_SECONDS", 1e9)
    program = PROGRAM + ".input edge .output path"
    Path("p.dl").write_text(program, encoding="utf-8")
    Path("edge.facts").write_text("".join(f"{x}\t{y}\n" for x, y in EDGES), encoding="utf-8")
    Path("c.tsv").write_text("-\tedge\tn3\tn4\n+\tedge\tm\tn\n", encoding="utf-8")
    where = ["--engine", "spark", "--scratch", f"{uri}/deep/er/"]
    done = evermat_command("run", "p.dl", *where, "--place", "cluster", "--state", f"{uri}-state", "-D", "out")
    assert (done.code, done.out, done.err) == (0, "", "")
    expected = sorted(f"n{i}\tn{j}" for i in range(13) for j in range(i + 1, 13))
    assert sorted(Path("out/path.csv").read_text(encoding="utf-8").splitlines()) == expected
    done = evermat_command("update", "--state", f"{uri}-state", "c.tsv", *where)
    assert (done.code, done.err) == (0, "version 2: c.tsv: 2 facts inserted, 37 deleted\n")
    assert set(evermat.query(f"{uri}-state", 'path("m", x)')) == {("n",)}
    assert left(uri) == []
    assert not [path for path in tmp_path.iterdir() if path.name not in ("p.dl", "edge.facts", "c.tsv", "out")]


def is_emptied(uri: str) -> bool:
    until = time.monotonic() + 60
    while left(uri) and time.monotonic() < until:
        for pins in list(frame_pins._all):
            pins.release(collect=True)
    return not left(uri)


@pytest.mark.spark
def test_dataframes(uri: str, workers: Any) -> None:
    """In, out, derived ones and views; what they read stays until none of them exists."""
    program = evermat.Program.parse(PROGRAM)
    edges = workers.createDataFrame(EDGES, "x string, y string").repartition(3)
    for place in ("auto", "cluster"):
        with program.materialise({"edge": edges}, engine=workers, place=place, scratch=uri) as m:
            assert len(m["path"]) == 78
        assert is_emptied(uri)
    with program.materialise(FACTS, engine=workers, place="cluster", scratch=uri) as m:
        frames = {name: m[name].to_spark(workers) for name in m}
        for name, frame in frames.items():
            assert {tuple(row) for row in frame.collect()} == set(m[name]), name
        views = m.create_views(workers, "scratched_")
        m.update(delete={"edge": [EDGES[5]]}, insert={"edge": frames["edge"].selectExpr("concat(x, 'x') x", "y")})
        assert {tuple(row) for row in workers.table(views["path"]).collect()} == set(m["path"])
        assert {tuple(row) for row in frames["path"].collect()} != set(m["path"])
        after = m["path"].to_spark(workers).where("x = 'n0'").select("y")
        assert {row["y"] for row in after.collect()} == {y for x, y in m["path"] if x == "n0"}
    assert frames["path"].count() == 78, "their files are still there"
    assert left(uri) != []
    del frames, frame, after
    assert is_emptied(uri)


@pytest.mark.spark
def test_stars(uri: str, workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connected components that Spark computes: edges between iterations are objects, too."""
    from evermat.runtime.engines import placement

    monkeypatch.setattr(placement, "_EDGES", 1)
    seen = []
    find = connected_components.components
    monkeypatch.setattr(connected_components, "components", lambda *given: seen.append(1) or find(*given))
    text = ".decl edge(x:number, y:number) .decl same(x:number, y:number) same(x, y) :- edge(x, y). same(x, y) :- same(y, x). same(x, z) :- same(x, y), same(y, z)."
    rng = Random(5)
    edges = [(rng.randrange(60), rng.randrange(60)) for _ in range(40)]
    program = evermat.Program.parse(text)
    with program.materialise({"edge": edges}, engine=workers, place="cluster", scratch=uri) as m:
        assert set(m["same"]) == set(program.materialise({"edge": edges})["same"])
    assert seen and is_emptied(uri)


@pytest.mark.spark
def test_rows_that_are_read_twice(uri: str, workers: Any) -> None:
    """A frame that turns out to be too large for the driver is not computed again: its files are read."""
    with Scratch(at(uri)) as scratch:
        intake = Intake(scratch, Room(100_000, 90))
        relation = Relation("n", (Column("x", Type.NUMBER, "number"),))
        part = intake.read(workers.range(0, 50_000, 1, 5).where("id >= 0").selectExpr("id as x"), relation, "n")
        assert part.rows == 50_000 and part.nbytes > 0
    assert left(uri) == []


# --- trouble -----------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_a_missing_bucket(uri: str, workers: Any) -> None:
    program = evermat.Program.parse(PROGRAM)
    with pytest.raises(ResourceError) as error:
        program.materialise(FACTS, engine=workers, place="cluster", scratch="s3://there-is-no-such-bucket/scratch")
    assert str(error.value).startswith(
        "error[E612]: facts cannot be exchanged through `s3://there-is-no-such-bucket/scratch/evermat-"
    )
    assert "there is no bucket `there-is-no-such-bucket`" in str(error.value)


@pytest.mark.spark
def test_executors_without_settings(uri: str, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver can write, its tasks cannot: one sentence that names the object, and nothing is left."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setitem(spark.sparkContext.environment, name, "other")
    monkeypatch.setitem(spark.sparkContext.environment, "AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setitem(spark.sparkContext.environment, "AWS_ALLOW_HTTP", "true")
    program = evermat.Program.parse(PROGRAM)
    begun = time.monotonic()
    with pytest.raises(ResourceError) as error:
        program.materialise(FACTS, engine=spark, place="cluster", scratch=uri)
    assert str(error.value).startswith(f"error[E612]: facts cannot be exchanged through `{uri}/evermat-")
    assert str(error.value).count("\n") == 1 and "the service cannot be reached" in str(error.value)
    assert time.monotonic() - begun < 60
    assert left(uri) == []


@pytest.mark.spark
def test_an_interrupted_run(uri: str, workers: Any) -> None:
    text = ".decl seed(k:number, x:number) .decl n(k:number, x:number) n(k, x) :- seed(k, x). n(k, x + 1) :- n(k, x), x < 1000000000000."
    with pytest.raises(evermat.LimitError):
        evermat.Program.parse(text).materialise(
            {"seed": [(k, 0) for k in range(20)]}, engine=workers, place="cluster", scratch=uri, limit_seconds=3.0
        )
    assert left(uri) == []


@pytest.mark.spark
def test_a_bucket_that_vanishes(uri: str, workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update that cannot write fails; the facts stay as they were, and it is done when the service is back."""
    program = evermat.Program.parse(PROGRAM)
    with program.materialise(FACTS, engine=workers, place="cluster", scratch=uri) as m:
        before = facts_of(m)
        with monkeypatch.context() as patch:
            patch.setattr(buckets._S3Bucket, "put", _refuse)
            with pytest.raises(ResourceError, match="E612"):
                m.update(insert={"edge": [("x", "y")]})
            assert facts_of(m) == before
        m.update(insert={"edge": [("x", "y")]})
        assert ("x", "y") in m["path"]
    assert left(uri) == []


def _refuse(bucket: Any, key: str, contents: Any) -> None:
    raise buckets.StorageError(13, "the service refuses it (AccessDenied)", f"s3://bucket/{key}")


@pytest.mark.spark
@pytest.mark.parametrize("scheme", ["s3a", "gs", "abfss", "hdfs", "http", "azure"])
def test_other_schemes(scheme: str, spark: Any, tmp_path: Path) -> None:
    program = evermat.Program.parse(PROGRAM)
    for call in (
        lambda: program.materialise(FACTS, engine=spark, scratch=f"{scheme}://b/s"),
        lambda: evermat.open(tmp_path, engine=spark, scratch=f"{scheme}://b/s"),
    ):
        with pytest.raises(ArgumentError) as error:
            call()
        assert "E296" in str(error.value)
        assert f"the scratch directory cannot be at `{scheme}://b/s`: the scheme `{scheme}` is not supported" in str(
            error.value
        )
    assert list(tmp_path.iterdir()) == []


# --- a cluster ---------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_on_a_standalone_cluster(running: Cluster, uri: str, service: Service) -> None:
    """Executors get the settings of the service by Spark's; the state and the scratch files are in the bucket."""
    ends = range(
        520
    )  # through one node, so that tasks write the state's files: there are so many paths, but only short ones
    edges = [(f"n{i}", "hub") for i in ends] + [("hub", f"m{i}") for i in ends]
    Path("p.dl").write_text(PROGRAM + ".input edge .output path", encoding="utf-8")
    Path("edge.facts").write_text("".join(f"{x}\t{y}\n" for x, y in edges), encoding="utf-8")
    Path("c.tsv").write_text("-\tedge\thub\tm3\n", encoding="utf-8")
    own = {name: value for name, value in running.environment.items() if not name.startswith("AWS_")}
    settings = [f"spark.executorEnv.{name}={value}" for name, value in service.settings.items()]
    options = ["--engine", "spark", "--master", running.master, "--scratch", uri, "--stats", "stats.json"]
    options += [word for setting in settings for word in ("--conf", setting)]
    for command in (
        ["run", "p.dl", "--place", "cluster", "--state", f"{uri}-state"],
        ["update", "--state", f"{uri}-state", "c.tsv"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "evermat", *command, *options],
            env=own | service.settings,
            capture_output=True,
            text=True,
            timeout=5 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert json.loads(Path("stats.json").read_text(encoding="utf-8"))["engine"] == "spark"
    assert set(evermat.query(f"{uri}-state", 'path("n0", x)')) == {("hub",), *((f"m{i}",) for i in ends if i != 3)}
    assert left(uri) == []
    parts = [
        Part.of(key.rpartition("/")[2], 0)
        for key in left(f"{uri}-state")
        if "/path/snapshot-" in key or "/path/changes-" in key
    ]
    assert {part.number > 1 << 12 for part in parts if part.last == 1} == {True}, "tasks have written them"
    assert len(evermat.query(f"{uri}-state", "path(x, y)", 1)) == 520 * 520 + 2 * 520
