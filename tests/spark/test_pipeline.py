"""`evermat run` on Spark gives what it gives in memory: every result, every error."""

from __future__ import annotations

import gzip
import json
import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.commands import Done, Evermat
from tests.support.run_cases import cases, name_of, pack, unpack

pytestmark = pytest.mark.spark

CLOSURE = """
.decl edge(x:symbol, y:symbol) .input edge
.decl path(x:symbol, y:symbol) .output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@pytest.fixture
def both(spark: Any, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command in memory and on Spark; both must end alike."""
    monkeypatch.setattr("evermat.spark.session", lambda **_: nullcontext(spark))
    monkeypatch.setattr("evermat.spark.stores_classes", lambda _: False)  # the session goes on
    monkeypatch.setattr("evermat.cli.progress._LINE_SECONDS", 1e9)

    def run(*arguments: object, output: Path | None = None) -> Done:
        done, found = {}, {}
        for engine in ("memory", "spark"):
            place = (output or Path("out")) / engine
            done[engine] = evermat_command("run", *arguments, "-D", place, "--engine", engine)
            found[engine] = unpack(place) if place.exists() else {}
        assert done["spark"] == done["memory"]
        assert found["spark"] == found["memory"]
        return done["spark"]

    return run


@pytest.mark.parametrize("path", cases(), ids=name_of)
def test_golden_programs(path: Path, tmp_path: Path, both: Any) -> None:
    pack(path.with_suffix("") / "facts", tmp_path / "facts")
    done = both(path, "-F", tmp_path / "facts", output=tmp_path)
    assert done.code == 0, done.err
    expected = unpack(path.with_suffix("") / "expected")
    assert unpack(tmp_path / "spark") | ({"stdout.txt": done.out} if done.out else {}) == expected


def write_program(text: str = CLOSURE) -> Path:
    path = Path("program.dl")
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_in_many_pieces(both: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.spark.input.plan._PIECE", 1000)
    rng = random.Random(0)
    lines = [f"n{rng.randrange(300)}\tn{rng.randrange(300)}\n" for _ in range(2000)]
    Path("edge.facts").write_text("".join(lines), encoding="utf-8")
    assert both(write_program()).code == 0


def test_errors_in_many_pieces_are_where_they_are(both: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.spark.input.plan._PIECE", 50)
    lines = [f"a{i}\tb\n" for i in range(100)]
    for i in range(7, 100, 9):
        lines[i] = f"only one, line {i + 1}\n"
    Path("edge.facts").write_text("".join(lines), encoding="utf-8")
    done = both(write_program())
    assert done.code == 3
    assert "edge.facts:8:" in done.err and "and 1 more error: only the first 10 of" in done.err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("edge.facts", b"a\tb\nc\n", "E304"),
        ("edge.facts", b"a\tb\n\xff\xfe\tc\n", "E310"),
        ("edge.csv.gz", b"not compressed", "E312"),
        ("edge.csv.gz", gzip.compress(b"a\tb\n" * 1000, mtime=0)[:-10], "E311"),
        ("edge.jsonl", b'["a", "b"]\n["a", 1]\n', "E320"),
        ("edge.jsonl", b'["a", "b"]\n{', "E318"),
        ("edge.parquet", b"PAR1 no", "E317"),
        (None, b"", "E300"),
    ],
)
def test_malformed_inputs(name: str | None, content: bytes, message: str, both: Any) -> None:
    if name is not None:
        Path(name).write_bytes(content)
    parameters = f'(filename="{name or "edge.facts"}")'
    done = both(write_program(CLOSURE.replace(".input edge", f".input edge{parameters}")))
    assert done.code == 3
    assert message in done.err
    assert not Path("out/spark").exists()


def test_formats_and_folders(both: Any) -> None:
    Path("in").mkdir()
    Path("in/a.csv").write_text("a\tb\n", encoding="utf-8")
    Path("in/b.jsonl").write_text('["b", "c"]\n', encoding="utf-8")
    Path("in/c.csv.gz").write_bytes(gzip.compress(b"c\td\n"))
    pq.write_table(pa.table({"x": ["d"], "y": ["e"]}), "in/d.parquet")
    Path("in/_SUCCESS").write_text("", encoding="utf-8")
    done = both(write_program(CLOSURE.replace(".input edge", '.input edge(filename="in")')))
    assert done.code == 0, done.err
    assert len(Path("out/spark/path.csv").read_text(encoding="utf-8").splitlines()) == 10


def test_a_uri(spark: Any, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.spark.session", lambda **_: nullcontext(spark))
    monkeypatch.setattr("evermat.spark.stores_classes", lambda _: False)  # the session goes on
    Path("in").mkdir()
    Path("in/edge.facts").write_text("a\tb\nb\tc\n", encoding="utf-8")
    program = write_program()
    folder = Path("in").resolve().as_uri()
    assert folder.startswith("file:///")
    done = evermat_command("run", program, "-F", folder, "--engine", "spark")
    assert done == (0, "", "")
    assert Path("path.csv").read_text(encoding="utf-8") == "a\tb\na\tc\nb\tc\n"
    Path("in/edge.facts").write_text("a\tb\nb\n", encoding="utf-8")
    done = evermat_command("run", program, "-F", folder, "--engine", "spark")
    assert done.code == 3 and "edge.facts:2:" in done.err
    Path("in/edge.facts").unlink()
    done = evermat_command("run", program, "-F", folder, "--engine", "spark")
    assert done.code == 3 and f"error[E300]: there is no file `{Path('in').resolve()}/edge.facts`" in done.err
    Path("in/edge.facts").write_text("a\tb\nb\tc\n", encoding="utf-8")
    assert evermat_command("run", program, "-F", folder, "--engine", "memory") == (0, "", "")


def test_states_are_the_same(spark: Any, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.spark.session", lambda **_: nullcontext(spark))
    monkeypatch.setattr("evermat.spark.stores_classes", lambda _: False)  # the session goes on
    Path("edge.facts").write_text("a\tb\nb\tc\n", encoding="utf-8")
    Path("more.tsv").write_text("+\tedge\tc\td\n-\tedge\ta\tb\n", encoding="utf-8")
    for engine in ("memory", "spark"):
        assert evermat_command("run", write_program(), "--state", engine, "--engine", engine).code == 0
        assert evermat_command("update", "--state", engine, "more.tsv").code == 0
    asked = {e: evermat_command("query", "--state", e, "path(x, y)", "--format", "csv") for e in ("memory", "spark")}
    assert asked["spark"] == asked["memory"]
    assert asked["spark"].out.splitlines() == ["x,y", "b,c", "b,d", "c,d"]


def test_stats(spark: Any, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.spark.session", lambda **_: nullcontext(spark))
    monkeypatch.setattr("evermat.spark.stores_classes", lambda _: False)  # the session goes on
    Path("edge.facts").write_text("a\tb\n", encoding="utf-8")
    assert evermat_command("run", write_program(), "--engine", "spark", "--stats", "stats.json").code == 0
    stats = json.loads(Path("stats.json").read_text(encoding="utf-8"))
    assert stats["engine"] == "spark"
    assert {stratum["place"] for stratum in stats["strata"]} == {"driver"}
    assert set(stats["seconds"]) == {"start", "read", "encode", "reason", "write"}


def test_nothing_is_left_behind(
    spark: Any, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("evermat.spark.session", lambda **_: nullcontext(spark))
    monkeypatch.setattr("evermat.spark.stores_classes", lambda _: False)  # the session goes on
    scratch = tmp_path / "scratch"
    for content, code in (("a\tb\n", 0), ("a\n", 3)):
        Path("edge.facts").write_text(content, encoding="utf-8")
        assert evermat_command("run", write_program(), "--engine", "spark", "--scratch", scratch).code == code
        assert list(scratch.iterdir()) == []


def test_a_task_whose_result_is_missing_is_noticed(
    spark: Any, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evermat.spark.session", lambda **_: nullcontext(spark))
    monkeypatch.setattr("evermat.spark.stores_classes", lambda _: False)  # the session goes on
    monkeypatch.setattr("evermat.spark.input.plan.Outcome.of", classmethod(lambda cls, row: cls(1, "", "", 0, 0)))
    Path("edge.facts").write_text("a\tb\n", encoding="utf-8")
    done = evermat_command("run", write_program(), "--engine", "spark")
    assert done.code == 6


TABLE = CLOSURE.replace(".input edge", '.input edge(IO=table, name="{name}")')


def test_tables(spark: Any, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.spark.session", lambda **_: nullcontext(spark))
    monkeypatch.setattr("evermat.spark.stores_classes", lambda _: False)  # the session goes on
    spark.sql("SELECT 'a' x, 'b' y UNION ALL SELECT 'b', 'c'").createOrReplaceTempView("edges")
    assert evermat_command("run", write_program(TABLE.format(name="edges")), "--engine", "spark") == (0, "", "")
    assert Path("path.csv").read_text(encoding="utf-8") == "a\tb\na\tc\nb\tc\n"
    Path("path.csv").unlink()
    done = evermat_command("run", write_program(TABLE.format(name="no_edges")), "--engine", "spark")
    assert done.code == 3
    assert done.err.startswith("error[E301]: cannot read `no_edges`: The table or view `no_edges` cannot be found.")
    done = evermat_command("run", write_program(TABLE.format(name="edges")), "--engine", "memory")
    assert done.code == 2
    assert done.err.startswith("error[E273]: relation `edge` is read from a table, which needs Spark")
    assert not Path("path.csv").exists()


def test_databases(spark: Any, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.spark.session", lambda **_: nullcontext(spark))
    monkeypatch.setattr("evermat.spark.stores_classes", lambda _: False)  # the session goes on
    url = "jdbc:derby:memory:evermat;create=true"
    rows = spark.sql("SELECT 'a' x, 'b' y UNION ALL SELECT 'b', 'c'")
    rows.write.jdbc(
        url, "edges", mode="overwrite", properties={"driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}
    )
    driver = 'driver="org.apache.derby.iapi.jdbc.AutoloadedDriver"'
    text = CLOSURE.replace(".input edge", f'.input edge(IO=jdbc, url="{url}", dbtable="edges", {driver})')
    assert evermat_command("run", write_program(text), "--engine", "spark") == (0, "", "")
    assert Path("path.csv").read_text(encoding="utf-8") == "a\tb\na\tc\nb\tc\n"
    done = evermat_command("run", write_program(text.replace('"edges"', '"none"')), "--engine", "spark")
    assert done.code == 3
    assert done.err.startswith("error[E301]: cannot read")
