"""Inputs that Spark's own readers read, and files at URIs: the same facts and errors as from local files, where the reader is ours."""

from __future__ import annotations

import bz2
import gzip
import json
import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evermat
from evermat.core.errors import DataError, EvermatError, ProgramError
from tests.support.commands import Evermat
from tests.support.viewfs import shown_as

pytestmark = pytest.mark.spark

EDGE = ".decl edge(x:symbol, y:symbol) .input edge"
TYPED = ".decl r(n:number, u:unsigned, f:float, s:symbol) .input r"
ROWS = [(1, 2**64 - 1, 0.5, "a"), (-(2**63), 0, -2.0, "b, c"), (7, 7, 1e300, 'q"')]


@pytest.fixture
def uri(spark: Any, tmp_path: Path) -> Iterator[str]:
    """The URI of the folder of the test."""
    with shown_as(spark, tmp_path) as name:
        yield name


def facts(spark: Any, text: str, folder: str | Path | None = None, name: str = "", **options: Any) -> Any:
    """The facts of the first relation of a program, sorted."""
    program = evermat.Program.parse(text)
    m = program.materialise(engine=spark, inputs=str(folder) if folder is not None else "", **options)
    with m:
        return sorted(m[name or next(iter(program.compiled.relations))])


def refused(spark: Any, text: str, folder: str | Path, kind: type[EvermatError] = DataError) -> str:
    with pytest.raises(kind) as caught:
        facts(spark, text, folder)
    assert "\tat " not in str(caught.value) and "SQLSTATE" not in str(caught.value)
    return str(caught.value)


def typed_frame(spark: Any) -> Any:
    values = ", ".join(f"({n}L, {u}BD, {f!r}D, '{s}')" for n, u, f, s in ROWS).replace(
        f"{-(2**63)}L", "bigint('-9223372036854775808')"
    )
    return spark.sql(f"select * from values {values} as t(n, u, f, s)")


# --- text at URIs -------------------------------------------------------------------------------------------


def in_memory(text: str, folder: Path) -> Any:
    try:
        with evermat.Program.parse(text).materialise(engine="memory", inputs=str(folder)) as m:
            return sorted(m["r"])
    except EvermatError as error:
        return str(error)


def remotely(spark: Any, text: str, uri: str, folder: Path) -> Any:
    try:
        return facts(spark, text, uri, "r")
    except EvermatError as error:
        return str(error).replace(uri, str(folder))


@pytest.mark.parametrize("parameters", ["", "headers=true", 'rfc4180=true, delimiter="\\t"'])
def test_text_is_read_by_ranges_as_if_it_were_local(
    spark: Any, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parameters: str
) -> None:
    monkeypatch.setattr("evermat.spark.input.remote._PIECE", 11)
    good = b"\xef\xbb\xbfa\tb\r\n\tb\nx y\t\n\xc3\xa9\t\xe2\x82\xac\n" * 2
    text = f".decl r(x:symbol, y:symbol) .input r({parameters or 'IO=file'})"
    for data in (good + b"no\tend", good + b"one\n\xff\t\xfe\na\tb\tc\n\n" + good + b"\n\n"):
        (tmp_path / "r.facts").write_bytes(data)
        assert remotely(spark, text, uri, tmp_path) == in_memory(text, tmp_path), (data, parameters)


def test_an_empty_line_at_the_end_is_alone_in_the_last_range(
    spark: Any, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evermat.spark.input.remote._PIECE", 2)
    for data, type_ in ((b"1\n2\n\n", "number"), (b"1\n2\n\n", "symbol"), (b"1\n\n2\n", "number")):
        (tmp_path / "r.facts").write_bytes(data)
        text = f".decl r(x:{type_}) .input r"
        assert remotely(spark, text, uri, tmp_path) == in_memory(text, tmp_path), (data, type_)


def test_records_with_newlines_and_headers(
    spark: Any, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evermat.spark.input.remote._PIECE", 5)
    text = '.decl r(x:symbol, y:number) .input r(filename="r.csv", rfc4180=true, headers=true)'
    good = "\ufeffx,y\r\n" + "".join(f'"a\n{i},""b""",{i}\r\n' for i in range(40))
    for data in (good, good + '"open,1\nz', good + "a,b\n"):
        (tmp_path / "r.csv").write_bytes(data.encode())
        assert remotely(spark, text, uri, tmp_path) == in_memory(text, tmp_path)


def test_json_lines_and_triples(spark: Any, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.spark.input.remote._PIECE", 30)
    text = '.decl r(x:symbol, y:number) .input r(filename="r.jsonl")'
    for line in ('["s1", 1]', "{}", "[1"):
        lines = [json.dumps([f"s{i}", i]) for i in range(30)]
        (tmp_path / "r.jsonl").write_text("\n".join([*lines, line]), encoding="utf-8")
        assert remotely(spark, text, uri, tmp_path) == in_memory(text, tmp_path)
    text = '.decl r(s:term, p:term, o:term) .input r(filename="r.nt")'
    for line in ("", "<http://e/a> <http://e/p> ."):
        triples = [f'<http://e/{i}> <http://e/p> "{i}"@en .' for i in range(30)]
        (tmp_path / "r.nt").write_text("\n".join([*triples, line, ""]), encoding="utf-8")
        assert remotely(spark, text, uri, tmp_path) == in_memory(text, tmp_path)
    (tmp_path / "r.nt").write_text("".join(f"_:b{i % 3} <http://e/p> _:c .\n" for i in range(30)), encoding="utf-8")
    assert len({(s, o) for s, _, o in facts(spark, text, uri)}) == 3  # a label is one node in all ranges


def test_formats_folders_and_patterns(spark: Any, uri: str, tmp_path: Path) -> None:
    folder = tmp_path / "in put %41"
    folder.mkdir()
    (folder / "a [1].csv").write_text("a\tb\n", encoding="utf-8")
    (folder / "b.jsonl").write_text('["b", "c"]\n', encoding="utf-8")
    (folder / "c.csv.gz").write_bytes(gzip.compress(b"c\td\n" * 1000))
    (folder / "_SUCCESS").write_text("no", encoding="utf-8")
    (folder / ".hidden").write_text("no", encoding="utf-8")
    (folder / "empty.csv").write_text("", encoding="utf-8")
    pq.write_table(pa.table({"x": ["d"], "y": ["e"]}), folder / "d.parquet")
    spark.sql("select 'e' x, 'f' y").write.orc(f"file://{tmp_path}/o")
    next((tmp_path / "o").glob("part-*.orc")).rename(folder / "e.orc")
    text = '.decl r(x:symbol, y:symbol) .input r(filename="{}")'
    assert facts(spark, text.format("in put %41"), uri) == list(zip("abcde", "bcdef", strict=True))
    assert facts(spark, text.format("in put*/{b,c}*"), uri) == [("b", "c"), ("c", "d")]
    assert facts(spark, text.format(f"{uri}/in put %41/a*"), tmp_path) == [("a", "b")]


def test_compressed_text_is_written_piece_by_piece(
    spark: Any, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evermat.spark.input.line_task._ROWS", 1000)
    rows = [(f"s{i}", f"t{i % 7}") for i in range(3000)]
    (tmp_path / "edge.facts.gz").write_bytes(gzip.compress("".join(f"{x}\t{y}\n" for x, y in rows).encode()))
    assert facts(spark, EDGE + '(filename="edge.facts.gz")', uri) == sorted(rows)
    (tmp_path / "edge.csv.bz2").write_bytes(bz2.compress(b"a\tb\n"))
    assert facts(spark, EDGE + '(filename="edge.csv.bz2")', uri) == [("a", "b")]


def test_other_rdf_at_a_uri(spark: Any, uri: str, tmp_path: Path) -> None:
    (tmp_path / "r.ttl").write_text("@prefix e: <http://e/> . e:a e:p e:b, e:c .", encoding="utf-8")
    found = facts(spark, '.decl r(s:term, p:term, o:term) .input r(filename="r.ttl")', uri)
    assert found == [("<http://e/a>", "<http://e/p>", f"<http://e/{o}>") for o in "bc"]
    (tmp_path / "s.nt").write_text("<http://e/a> <http://e/q> <http://e/d> .\n", encoding="utf-8")
    program = evermat.Program.parse(".prefix e: <http://e/> e:both(x) :- e:p(x, _), e:q(x, _).")
    with program.materialise(engine=spark, rdf=[f"{uri}/r.ttl", f"{uri}/s.nt"]) as m:
        assert set(m["e:both"]) == {("<http://e/a>",)}


def test_columns_of_remote_parquet_are_all_accounted_for(spark: Any, uri: str, tmp_path: Path) -> None:
    folder = tmp_path / "t.parquet"
    folder.mkdir()
    pq.write_table(pa.table({"x": ["a"], "y": ["b"]}), folder / "a.parquet")
    text = EDGE + '(filename="t.parquet")'
    assert facts(spark, text, uri) == [("a", "b")]
    pq.write_table(pa.table({"x": ["a"], "y": ["b"], "z": [1]}), folder / "b.parquet")
    assert refused(spark, text, uri).startswith("error[E316]: `z` is not a column of `edge`")
    (folder / "b.parquet").write_bytes(b"PAR1 no")
    assert refused(spark, text, uri).startswith(f"error[E301]: cannot read `{uri}/t.parquet")
    (folder / "b.parquet").unlink()
    (folder / "readme.txt").write_text("no", encoding="utf-8")
    assert facts(spark, text, uri) == [("a", "b")]
    table = tmp_path / "parts"
    (table / "y=b").mkdir(parents=True)
    pq.write_table(pa.table({"x": ["a"]}), table / "y=b" / "a.parquet")
    assert facts(spark, EDGE + '(filename="parts")', uri) == [("a", "b")]


def test_folders_in_folders_are_refused(spark: Any, uri: str, tmp_path: Path) -> None:
    (tmp_path / "in/day=1/deep").mkdir(parents=True)
    (tmp_path / "in/day=1/deep/a.csv").write_text("a\tb\n", encoding="utf-8")
    message = refused(spark, EDGE + '(filename="in")', uri)
    assert message.splitlines() == [
        f"error[E302]: `{uri}/in/day=1` is a folder, not a file",
        "  = note: it looks like a part of a partitioned table; only the files of one folder are read",
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.csv", "error[E300]: there is no file `{uri}/none.csv`"),
        ("nowhere://b/x.csv", 'error[E301]: cannot read `nowhere://b/x.csv`: No FileSystem for scheme "nowhere"'),
        (
            "s3a://k:geheim@b/x",
            "error[E301]: cannot read `s3a://…@b/x`: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
        ),
        (
            "hdfs://host.invalid/x",
            "error[E301]: cannot read `hdfs://host.invalid/x`: the host `host.invalid` is unknown",
        ),
        ("cut.csv.gz", "error[E301]: cannot read `{uri}/cut.csv.gz`: Unexpected end of input stream"),
        ("empty", "error[E300]: there is no file `{uri}/empty`"),
    ],
)
def test_what_cannot_be_read(spark: Any, uri: str, tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(random.Random(0).randbytes(5000).replace(b"\n", b""), 0)[:-900])
    found = refused(spark, EDGE + f'(filename="{name}")', uri).splitlines()
    assert found == [message.format(uri=uri), "  = note: relation `edge` is read from it"]


def test_files_that_change_while_they_are_read(
    spark: Any, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evermat.spark.input.remote import RemoteReader

    lines = RemoteReader._lines

    def changing(then: Callable[[], object], before: bool) -> None:
        def read(*given: Any, **named: Any) -> Any:
            if before:
                then()
            outcomes = lines(*given, **named)
            if not before:
                then()
            return outcomes

        monkeypatch.setattr(RemoteReader, "_lines", read)

    file = tmp_path / "edge.facts"
    for then, before in ((lambda: file.write_text("a\tb\nc\td\n"), False), (file.unlink, True), (file.unlink, False)):
        file.write_text("a\tb\n", encoding="utf-8")
        changing(then, before)
        assert refused(spark, EDGE, uri).startswith(f"error[E348]: `{uri}/edge.facts` changed while it was read")


# --- IO=spark -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["parquet", "orc", "json", "csv"])
@pytest.mark.parametrize("place", ["auto", "cluster"])
def test_formats_of_spark(spark: Any, uri: str, tmp_path: Path, format_: str, place: str) -> None:
    typed_frame(spark).write.format(format_).option("header", "true").option("escape", '"').save(f"file://{tmp_path}/t")
    more = ', header=true, escape="\\""' if format_ == "csv" else ""
    text = TYPED + f'(IO=spark, format={format_}, path="t"{more})'
    for folder in (tmp_path, uri):
        assert facts(spark, text, folder, place=place) == sorted(ROWS)


def test_paths(spark: Any, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "in [1]"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        pq.write_table(pa.table({"x": [name], "y": [name]}), folder / name / "1.parquet")
    monkeypatch.chdir(tmp_path)
    a, b = ("a", "a"), ("b", "b")
    text = EDGE + "(IO=spark, format=parquet, {})"
    assert facts(spark, text.format('path="a"'), "in [1]") == [a]
    assert facts(spark, text.format('path="a", path="b"'), folder) == [a, b]
    assert facts(spark, text.format('path="{a,b}"'), folder) == [a, b]
    assert facts(spark, text.format('path="*"'), folder) == [a, b]
    assert facts(spark, text.format(f'path="{uri}/in */a"'), "elsewhere") == [a]
    assert facts(spark, text.format(f'path="file://{tmp_path}/in */b"'), "elsewhere") == [b]
    assert facts(spark, EDGE + '(IO=spark, format=json, path="a.json", multiLine=true)', json_file(tmp_path)) == [a]


def json_file(folder: Path) -> Path:
    (folder / "a.json").write_text('[{"x":\n"a", "y": "a"}]', encoding="utf-8")
    return folder


def test_partitioned_folders(spark: Any, tmp_path: Path) -> None:
    frame = spark.range(20).selectExpr("id x", "id % 3 y", "id % 2 z")
    for format_ in ("parquet", "csv", "json"):
        writer = frame.write.partitionBy("z", "y").format(format_).option("header", "true")
        writer.save(f"file://{tmp_path}/{format_}")
        text = f'.decl r(x:number, y:number) .input r(IO=spark, format={format_}, path="{format_}", header=true, where="z = 1")'
        assert facts(spark, text, tmp_path) == [(i, i % 3) for i in range(1, 20, 2)]


def test_headers_match_by_name_else_by_position(spark: Any, tmp_path: Path) -> None:
    text = '.decl r(n:number, s:symbol) .input r(IO=spark, format=csv, header=true, path="r.csv")'
    for data in ("s,n\na,1\n", "s,other,n\na,z,1\n", "first,second\n1,a\n"):
        (tmp_path / "r.csv").write_text(data, encoding="utf-8")
        assert facts(spark, text, tmp_path) == [(1, "a")]
    (tmp_path / "r.csv").write_text("s,n,n2\na,1\n", encoding="utf-8")
    assert "E347" in refused(spark, text, tmp_path)
    (tmp_path / "r.csv").write_text("s,m\na,1\n", encoding="utf-8")
    assert refused(spark, text, tmp_path).startswith("error[E321]")
    (tmp_path / "r.csv").unlink()
    (tmp_path / "r.csv").mkdir()
    (tmp_path / "r.csv/1.csv").write_text("s,n\na,1\n", encoding="utf-8")
    (tmp_path / "r.csv/2.csv").write_text("n,s\n1,a\n", encoding="utf-8")
    assert "E301" in refused(spark, text, tmp_path)  # not matched by position in silence
    assert facts(spark, text.replace("header=true", "header=false"), csv_without_header(tmp_path)) == [(5, "x")]


def csv_without_header(folder: Path) -> Path:
    (folder / "plain").mkdir()
    (folder / "plain/r.csv").write_text("5,x\n", encoding="utf-8")
    return folder / "plain"


MALFORMED = [
    (
        "csv",
        "1,2,3,a\n{}\n5,6,7,b\n",
        ["x,2,3,a", "1,2,3", "1,2,3,a,b", "1,-2,3.0,a", "1,2.5,3.0,a", "1.5,2,3,a", "1,2,z,a"],
    ),
    (
        "json",
        '{{"n":1,"u":2,"f":3,"s":"a"}}\n{}\n',
        ['{"n":1.5,"u":2,"f":3,"s":"a"}', "[1", '{"n":99999999999999999999,"u":1,"f":1,"s":""}'],
    ),
]


@pytest.mark.parametrize(("format_", "data", "bad"), MALFORMED)
@pytest.mark.parametrize("place", ["auto", "cluster"])
def test_malformed_records_are_shown(
    spark: Any, tmp_path: Path, format_: str, data: str, bad: list[str], place: str
) -> None:
    text = TYPED + f'(IO=spark, format={format_}, path="in", where="n > 0")'
    (tmp_path / "in").mkdir()
    for record in bad:
        (tmp_path / "in/a b.txt").write_text(data.format(record), encoding="utf-8")
        with pytest.raises(DataError) as caught:
            facts(spark, text, tmp_path, place=place)
        (problem,) = caught.value.problems
        assert problem.message == f"a record of `file:{tmp_path}/in/a b.txt` is malformed: `{record}`"
        assert (
            problem.note == f"as {format_} it is read with the columns of `r`: n:number, u:unsigned, f:float, s:symbol"
        )


def test_ten_malformed_records_are_shown(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("x\n" * 30, encoding="utf-8")
    message = refused(spark, '.decl r(x:number) .input r(IO=spark, format=csv, path="r.csv")', tmp_path)
    assert message.count("error[E347]") == 10


def test_modes_that_the_user_names(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("1\nx\n", encoding="utf-8")
    text = '.decl r(x:number) .input r(IO=spark, format=csv, path="r.csv", schema="x long", {})'
    assert refused(spark, text.replace(", {}", ""), tmp_path).startswith(
        f"error[E301]: cannot read `file://{tmp_path}/r.csv`: "
    )
    assert refused(spark, text.format("mode=PERMISSIVE"), tmp_path).startswith("error[E313]: NULL in row 2")
    assert facts(spark, text.format("mode=DROPMALFORMED"), tmp_path) == [(1,)]


def test_nulls_and_types_say_what_helps(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql("select 1.5D a, 'x' s union all select null, 'y'")
    frame.write.parquet(f"file://{tmp_path}/t")
    text = '.decl r(n:number, s:symbol) .input r(IO=spark, format=parquet, path="t"{})'
    assert refused(spark, text.format(""), tmp_path).splitlines() == [
        "error[E339]: column 1 (`n`) is of the Spark type `double`, but the column is `number`",
        f" --> file://{tmp_path}/t",
        "  = note: a `number` is read from columns of integers and of decimals without a fraction",
        '  = help: cast it: `select="cast(a as bigint) as n, s"`',
    ]
    text = text.format(', select="cast(a as bigint) as n, s"{}')
    null = refused(spark, text.format(""), tmp_path).splitlines()
    assert "NULL in row" in null[0] and null[-1] == (
        '  = help: leave such rows out by `where="n is not null"`, or give them a value by `select="coalesce(n, …) as n, s"`'
    )
    assert facts(spark, text.format(', where="a is not null"'), tmp_path) == [(1, "x")]
    bad = '.decl r(n:number, s:symbol) .input r(IO=spark, format=parquet, path="t", select="cast(s as bigint) n, s")'
    assert refused(spark, bad, tmp_path).startswith(f"error[E301]: cannot read `file://{tmp_path}/t`: The value 'x'")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ('format=nope, path="x"', "error[E349]: Spark has no format `nope`"),
        ('format=parquet, path="none"', "error[E300]: there is no file `file:{folder}/none`"),
        ('format=parquet, path="x.csv"', "error[E301]: cannot read `file://{folder}/x.csv`: "),
        ('format=orc, path="s3a://b/x"', "error[E301]: cannot read `s3a://b/x`: Class org.apache"),
        ("format=parquet", "error[E301]: cannot read `parquet`: "),
    ],
)
def test_sources_that_cannot_be_read(spark: Any, tmp_path: Path, parameters: str, message: str) -> None:
    (tmp_path / "x.csv").write_text("a,b\n" * 20, encoding="utf-8")
    assert refused(spark, EDGE + f"(IO=spark, {parameters})", tmp_path).startswith(message.format(folder=tmp_path))


@pytest.mark.parametrize(("key", "value"), [("where", "z = 1"), ("where", "x ="), ("select", "z, x"), ("where", "x")])
def test_sql_that_is_wrong(spark: Any, key: str, value: str, capfd: Any) -> None:
    spark.sql("select 'a' x, 'b' y").createOrReplaceTempView("sql_edges")
    text = f'{EDGE}(IO=table, name="sql_edges", {key}="{value}")'
    message = refused(spark, text, "", ProgramError)
    assert message.startswith(f"error[E238]: `{key}={value}` is not valid\n --> <text>:1:")
    assert not capfd.readouterr().err


def test_filters_and_columns_reach_the_scan(spark: Any, tmp_path: Path) -> None:
    from evermat.spark.input.sources import Sources

    spark.range(100).selectExpr("id x", "id % 7 y", "string(id) z").write.parquet(f"file://{tmp_path}/t")
    text = '.decl r(x:number, y:number) .input r(IO=spark, format=parquet, path="t", where="y = 3 and x > 50")'
    program = evermat.Program.parse(text)
    (io,) = program.compiled.inputs
    source = Sources(spark, program.compiled.source, str(tmp_path)).of(io)
    plan = source.frame._jdf.queryExecution().executedPlan().toString()
    assert "PushedFilters: [IsNotNull(y), IsNotNull(x), EqualTo(y,3), GreaterThan(x,50)]" in plan
    assert "ReadSchema: struct<x:bigint,y:bigint>" in plan
    assert facts(spark, text, tmp_path) == [(i, 3) for i in range(51, 100) if i % 7 == 3]


def test_tables_and_databases_have_more_columns(spark: Any) -> None:
    frame = spark.sql("select 1 z, 'b' y, 'a' x union all select 2, 'd', 'c'")
    frame.createOrReplaceTempView("wide_edges")
    assert facts(spark, EDGE + "(IO=table, name=wide_edges)") == [("a", "b"), ("c", "d")]
    assert facts(spark, EDGE + '(IO=table, name=wide_edges, where="z = 2")') == [("c", "d")]
    assert facts(spark, EDGE + '(IO=table, name=wide_edges, select="y as x, x as y")') == [("b", "a"), ("d", "c")]
    url, driver = "jdbc:derby:memory:wide;create=true", "org.apache.derby.iapi.jdbc.AutoloadedDriver"
    frame.write.jdbc(url, "edges", mode="overwrite", properties={"driver": driver})
    jdbc = f'(IO=jdbc, url="{url}", dbtable="edges", driver="{driver}", where="z < 2")'
    assert facts(spark, EDGE + jdbc) == [("a", "b")]
    same = f'(IO=spark, format=jdbc, url="{url}", dbtable="edges", driver="{driver}")'
    assert facts(spark, EDGE + same) == [("a", "b"), ("c", "d")]
    wrong = EDGE.replace("symbol", "number") + "(IO=table, name=wide_edges)"
    assert "E339" in refused(spark, wrong, "")
    assert "E315" in refused(
        spark, ".decl e(x:symbol, q:symbol, y:symbol, z:number) .input e(IO=table, name=wide_edges)", ""
    )


def test_sizes_are_known_before_placing(spark: Any, uri: str, tmp_path: Path) -> None:
    spark.range(1000).selectExpr("id x").write.parquet(f"file://{tmp_path}/t")
    (tmp_path / "r.facts").write_text("".join(f"{i}\n" for i in range(500)), encoding="utf-8")
    text = '.decl r(x:number) .input r .input r(IO=spark, format=parquet, path="t")'
    with evermat.Program.parse(text).materialise(engine=spark, inputs=uri) as m:
        assert m.stats["sizes"]["r"]["facts"] == 1500 and len(m["r"]) == 1000


def test_what_the_driver_has_no_room_for_stays_with_the_executors(
    spark: Any, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evermat.runtime.engines.placement.available_bytes", lambda: int(100 * 64 / 0.7))
    spark.range(300).selectExpr("id x").write.parquet(f"file://{tmp_path}/t")
    (tmp_path / "s.facts").write_text("".join(f"{i}\n" for i in range(300)), encoding="utf-8")
    for declared in ('.decl s(x:number) .input s(IO=spark, format=parquet, path="t")', ".decl s(x:number) .input s"):
        program = evermat.Program.parse(declared + " .decl p(x:number) p(x) :- s(x).")
        with program.materialise(engine=spark, inputs=uri, scratch=tmp_path / "scratch") as m:
            assert m.on_cluster and len(m["p"]) == 300


# --- the command line ---------------------------------------------------------------------------------------


def test_commands(
    spark: Any, uri: str, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("evermat.spark.session", lambda **_: nullcontext(spark))
    monkeypatch.setattr("evermat.spark.stores_classes", lambda _: False)  # the session goes on
    pq.write_table(pa.table({"x": ["b", "a"], "y": ["c", "b"], "more": [1, 2]}), tmp_path / "t.parquet")
    Path("p.dl").write_text(EDGE + '(IO=spark, format=parquet, path="t.parquet") .output edge', encoding="utf-8")
    assert evermat_command("run", "p.dl", "-F", uri, "-D", "out", "--engine", "spark") == (0, "", "")
    assert Path("out/edge.csv").read_text(encoding="utf-8") == "a\tb\nb\tc\n"
    done = evermat_command("run", "p.dl", "-F", uri, "-D", "none", "--engine", "memory")
    assert done.code == 2 and not Path("none").exists()
    assert done.err.startswith(
        "error[E273]: relation `edge` is read from a format of Spark's, which needs Spark\n --> p.dl:1:"
    )
    (tmp_path / "t.parquet").unlink()
    done = evermat_command("run", "p.dl", "-F", uri, "-D", "none", "--engine", "spark")
    assert done.code == 3 and done.err.startswith(f"error[E300]: there is no file `{uri}/t.parquet`")
    assert not Path("none").exists()
