"""Outputs that executors write: formats, modes, partitions, tables, databases and URIs; all of them or none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import evermat
from evermat.core import ArgumentError, DataError, EvermatError, ProgramError, ResourceError
from evermat.spark.output import write as writing
from tests.support.commands import Evermat
from tests.support.released import is_emptied

pytestmark = pytest.mark.spark

DRIVER = "org.apache.derby.iapi.jdbc.AutoloadedDriver"
PLAIN = """
.decl e(s:symbol, n:number, u:unsigned, f:float, t:term)
.decl r(s:symbol, n:number, u:unsigned, f:float, t:term)
r(s, n, u, f, t) :- e(s, n, u, f, t).
"""
FACTS = [
    ("a", 1, 2**64 - 1, 1.5, "<http://x/a>"),
    ("ä \U0001f600", -(2**63), 0, -2.25e300, '"text \\"q\\""@en'),
    ('quo"te, comma', 2**63 - 1, 2**63, 0.1, "_:b"),
    ("", 0, 1, float("inf"), '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    *((f"s{i % 5}", i, i, i / 8, f"<http://x/{i}>") for i in range(500)),
]
TYPES = ["string", "bigint", "decimal(20,0)", "double", "string"]
PLACES = ["driver", "cluster"]


@pytest.fixture(scope="module", params=PLACES)
def facts(request: Any, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Writes programs' outputs of these facts, which are in the driver or on the cluster."""
    scratch = tmp_path_factory.mktemp("scratch")

    def write(outputs: str, directory: str | Path = "out", program: str = PLAIN, **options: Any) -> Any:
        given = {"e": FACTS} if program is PLAIN else {}
        with evermat.Program.parse(program + outputs).materialise(
            given, engine=spark, place=request.param, scratch=scratch
        ) as m:
            assert m.on_cluster == (request.param == "cluster")
            return m.write_outputs(directory, spark=None if m.on_cluster else spark, **options)

    yield write
    assert is_emptied(scratch)


def rows(frame: Any) -> set[tuple[Any, ...]]:
    return {
        tuple(int(value) if type(value).__name__ == "Decimal" else value for value in row) for row in frame.collect()
    }


def here(path: str) -> str:
    """A path as Spark needs it, whose own folder is another one."""
    return str(Path(path).absolute())


def everything() -> list[str]:
    """All files here, those included that are hidden."""
    return sorted(str(path) for path in Path().rglob("*") if path.is_file() and not path.name.endswith(".crc"))


def text_of(error: EvermatError) -> str:
    return str(error).partition("\n")[0]


# --- formats -----------------------------------------------------------------------------------------------


def test_formats_and_types(facts: Any, spark: Any) -> None:
    written = facts(
        """
        .output r(IO=spark, format="parquet", path="r.parquet")
        .output r(IO=spark, format="ORC", path="sub/r.orc", compression="zlib")
        .output r(IO=spark, format="csv", path="r.csv", header="true", escape="\\"")
        .output r(IO=spark, format="json", path="r.json")
        .output r(IO=spark)
        .output r(filename="driver.parquet")
    """.replace(".output r(IO=spark)\n", "")
    )
    assert list(written.values()) == [0] * 5
    ordinary = spark.read.parquet(here("out/driver.parquet"))
    for name in ("parquet", "orc"):
        frame = spark.read.format(name).load(here(f"out/{'sub/' * (name == 'orc')}r.{name}"))
        assert frame.columns == ["s", "n", "u", "f", "t"]
        assert [field.dataType.simpleString() for field in frame.schema] == TYPES
        assert rows(frame) == set(FACTS) == rows(ordinary) and frame.count() == len(FACTS)
    schema = ", ".join(f"{name} {type_}" for name, type_ in zip("snuft", TYPES, strict=True))
    csv = spark.read.schema(schema).csv(here("out/r.csv"), header=True, escape='"', nullValue="\0")
    assert rows(csv) == set(FACTS) and rows(spark.read.schema(schema).json(here("out/r.json"))) == set(FACTS)
    assert not [name for name in everything() if "evermat" in name]


def test_the_default_is_parquet_beside_other_outputs(facts: Any, spark: Any) -> None:
    facts(".output r(IO=spark)")
    assert rows(spark.read.parquet(here("out/r.parquet"))) == set(FACTS)


@pytest.mark.parametrize("name", ["a#b %20", "a?b", "[ü]{y}*", "x:y,z", "p=1/q"])
def test_odd_names(facts: Any, name: str) -> None:
    for _ in range(2):
        written = facts(f'.output w(IO=spark, path="{name}", mode="append")', program=".decl w(x:number) w(1).")
    assert list(written) == [here(f"out/{name}")] and len(list(Path("out", name).glob("part-*"))) == 2


def test_one_column_as_text(facts: Any) -> None:
    facts('.output w(IO=spark, format="text", path="w")', program='.decl w(x:symbol) w("b"). w("a").')
    assert sorted("".join(p.read_text() for p in Path("out/w").glob("part-*")).split()) == ["a", "b"]
    with pytest.raises(
        DataError, match=r"E337.*`r` cannot be written to `.*/out/w`: the format `text` holds one column"
    ):
        facts('.output r(IO=spark, format="text", path="w")')


def test_equal_terms(spark: Any) -> None:
    """All of them, or their representative."""
    program = evermat.Program.parse("""
        .pragma "equality" "rewrite"
        .prefix owl: <http://www.w3.org/2002/07/owl#>
        .decl p(x:term, y:number)
        .output p(IO=spark, path="p", mode="overwrite")
        owl:sameAs(x, y) :- owl:sameAs(y, x).
    """)
    given = {"p": [("<a:a>", 1), ("<a:b>", 2)], "owl:sameAs": [("<a:a>", "<a:b>")]}
    for place in PLACES:
        with program.materialise(given, engine=spark, place=place) as m:
            for representatives in (False, True):
                m.write_outputs("out", spark=spark, representatives=representatives)
                expected = set(m["p"].representatives if representatives else m["p"])
                assert rows(spark.read.parquet(here("out/p"))) == expected and len(expected) == 2 * (
                    2 - representatives
                )


# --- modes and partitions -----------------------------------------------------------------------------------


def test_modes(facts: Any, spark: Any) -> None:
    def output(mode: str) -> str:
        return f'.output w(IO=spark, path="w", mode="{mode}")'

    one, two = '.decl w(x:number, y:symbol) w(1, "a").', '.decl w(x:number, y:symbol) w(2, "b").'
    facts(output("append"), program=one)
    facts(output("append"), program=two)
    assert rows(spark.read.parquet(here("out/w"))) == {(1, "a"), (2, "b")}
    before = everything()
    with pytest.raises(DataError) as error:
        facts(output("error") + "\n.output w", program=one)
    where = Path("out/w").absolute()
    assert str(error.value) == (
        f'error[E335]: `{where}` exists already\n  = note: use `mode="overwrite"`, `"append"` or `"ignore"`'
    )
    facts(output("ignore"), program=one)
    assert everything() == before
    facts(output("overwrite"), program=two)
    assert rows(spark.read.parquet(here("out/w"))) == {(2, "b")}
    with pytest.raises(DataError) as error:
        facts(output("append"), program='.decl w(x:symbol, z:number, u:unsigned) w("a", 1, 1).')
    assert str(error.value) == (
        f"error[E336]: `w` cannot be appended to `{where}`: `x` is bigint, and not string; it has no column `z`; "
        "it has no column `u`; it has further columns: `y`\n  = note: its columns: `x` bigint, `y` string"
    )
    facts(output("ignore").replace('"w"', '"v"'), program=one)
    assert rows(spark.read.parquet(here("out/v"))) == {(1, "a")}


def test_appending_in_other_formats(facts: Any, spark: Any) -> None:
    program = '.decl w(x:unsigned, y:symbol) w(1, "a").'
    for name in ("orc", "json", "csv"):
        for _ in range(2):
            facts(f'.output w(IO=spark, format={name}, path="{name}", mode="append")', program=program)
        assert spark.read.format(name).load(here(f"out/{name}")).count() == 2, name


def test_partitions(facts: Any, spark: Any) -> None:
    outputs = '.output r(IO=spark, path="r", partitionBy="s", mode="{}")'
    with pytest.raises(DataError) as error:
        facts(outputs.format("error"))
    null = '.decl r(s:symbol, n:number) r("__HIVE_DEFAULT_PARTITION__", 1).'
    with pytest.raises(DataError, match=r"E338.*`__HIVE_DEFAULT_PARTITION__` in column `s` of `r` cannot be"):
        facts(outputs.format("error"), program=null)
    assert text_of(error.value) == ("error[E338]: an empty text in column `s` of `r` cannot be the name of a partition")
    assert everything() == []
    text = '.decl r(s:symbol, n:number) r("a/b=c d%", 1). r("x", 2). r("x", 3).'
    for mode in ("error", "append"):
        facts(outputs.format(mode), program=text)
    assert sorted(path.name for path in Path("out/r").iterdir() if path.is_dir()) == ["s=a%2Fb%3Dc d%25", "s=x"]
    assert spark.read.parquet(here("out/r")).count() == 6
    assert rows(spark.read.parquet(here("out/r")).select("s", "n")) == {("a/b=c d%", 1), ("x", 2), ("x", 3)}
    for other in ('partitionBy="n",', ""):
        with pytest.raises(DataError, match=r"E336.*its files are partitioned by other columns"):
            facts(f'.output r(IO=spark, path="r", {other} mode="append")', program=text)
    facts('.output r(IO=spark, path="r", partitionBy="n", mode="overwrite")', program=text)
    assert sorted(path.name for path in Path("out/r").iterdir() if path.is_dir()) == ["n=1", "n=2", "n=3"]


def test_no_facts(facts: Any, spark: Any) -> None:
    facts(
        '.output r(IO=spark, path="r") .output r(IO=spark, format="csv", path="c")', program=PLAIN.replace("e(", "x(")
    )
    frame = spark.read.parquet(here("out/r"))
    assert frame.count() == 0 and [field.dataType.simpleString() for field in frame.schema] == TYPES


# --- all or nothing -----------------------------------------------------------------------------------------


FAILING = [
    '.output r(IO=spark, format="orc", path="z", compression="nonsense")',
    f'.output r(IO=jdbc, url="jdbc:derby:memory:failing;create=true", dbtable="a b c", driver="{DRIVER}")',
    '.output r(IO=spark, path="nosuch://host/r")',
    '.output r(IO=spark, path="s3a://bucket/r")',
    '.output r(IO=table, name="nosuch.r")',
    '.output r(IO=spark, format="nosuch", path="z")',
    '.output r(IO=spark, path="old.csv/z")',
    f'.output r(IO=jdbc, url="jdbc:derby:memory:none;user=u;password=geheim", dbtable="t", driver="{DRIVER}")',
    '.output r(IO=jdbc, url="jdbc:none://u:geheim@h/x?p=geheim", dbtable="t", password="geheim")',
]


@pytest.mark.parametrize("failing", FAILING)
def test_one_that_fails(facts: Any, failing: str) -> None:
    """Nothing is published, and what was there is as it was."""
    for name in ("out/r.parquet", "out/old"):
        Path(name).mkdir(parents=True)
        Path(name, "part-0").write_text("before")
    Path("out/old.csv").write_text("before")
    before = everything()
    with pytest.raises((ResourceError, DataError)) as error:
        facts(f"""
            .output r(IO=spark, path="r.parquet", mode="overwrite")
            .output r(IO=spark, path="new/r")
            .output r(IO=spark, format="csv", path="old", mode="append")
            .output r(filename="old.csv", rfc4180=true)
            {failing}
        """)
    assert error.value.problems[0].kind.code in (600, 337), error.value
    assert len(str(error.value).splitlines()) <= 3 and "geheim" not in str(error.value), error.value
    assert everything() == before and Path("out/old.csv").read_text() == "before"
    assert not Path("out/new").exists()


def test_an_error_before_the_commit(facts: Any) -> None:
    def fail() -> None:
        assert list(Path("out").glob(".evermat-*.staged/rows/_SUCCESS"))
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        facts('.output r(IO=spark, path="r") .output r(IO=table, name="before_commit")', before_commit=fail)
    assert everything() == [] and not Path("out").exists()


def test_a_folder_that_the_driver_does_not_see(facts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_parquet_rows", lambda _: 1)
    monkeypatch.setitem(writing._COUNTED, "parquet", lambda _: 1)
    with pytest.raises(ResourceError) as error:
        facts('.output r(IO=spark, path="r")')
    assert str(error.value) == (
        f"error[E623]: the driver does not see what executors wrote to `{Path('out/r').absolute()}`\n"
        "  = note: write to a directory that all machines share, or to the URI of one"
    )
    assert not Path("out").exists()


def test_one_target_for_two_relations(facts: Any) -> None:
    text = ".decl w(x:number) .decl v(x:number) w(1). v(2)."
    for first, second in (("a", "a"), ("a", "a/b"), ("a/b", "a")):
        with pytest.raises(DataError, match="E325"):
            facts(f'.output w(IO=spark, path="{first}") .output v(IO=spark, path="{second}")', program=text)
        with pytest.raises(DataError, match="E325"):
            facts(f'.output w(IO=spark, path="{first}") .output v(filename="{second}")', program=text)
    with pytest.raises(DataError, match="E325"):
        facts('.output w(IO=table, name="q") .output v(IO=table, name="q")', program=text)
    assert not Path("out").exists()


@pytest.mark.parametrize("path", [".", "..", "x/..", "/"])
def test_the_output_directory_itself(facts: Any, path: str) -> None:
    with pytest.raises(ArgumentError, match=f"E296.*an output cannot be at `{path}`: it is the output directory, or"):
        facts(f'.output r(IO=spark, path="{path}", mode="overwrite")')


def test_columns_that_differ_in_case(facts: Any) -> None:
    with pytest.raises(DataError, match=r"E337.*Spark does not distinguish the columns `x` and `X`"):
        facts('.output w(IO=spark, path="w")', program=".decl w(x:number, X:number) w(1, 2).")


# --- tables and databases -----------------------------------------------------------------------------------


def test_tables(facts: Any, spark: Any) -> None:
    def output(mode: str, more: str = "") -> str:
        return f'.output w(IO=table, name="default.outputs", mode="{mode}"{more})'

    program = '.decl w(x:number, y:symbol) w({}, "{}").'
    spark.sql("DROP TABLE IF EXISTS default.outputs")
    spark.range(1).createOrReplaceTempView("outputs_view")
    try:
        facts(output("error", ', format="orc", partitionBy="y"'), program=program.format(1, "a"))
        assert rows(spark.table("outputs")) == {(1, "a")}
        facts(output("append", ', format="orc", partitionBy="y"'), program=program.format(2, "b"))
        facts(output("ignore"), program=program.format(3, "c"))
        assert rows(spark.table("outputs")) == {(1, "a"), (2, "b")}
        with pytest.raises(DataError, match=r"E335.*`default.outputs` exists already"):
            facts(output("error"), program=program.format(3, "c"))
        with pytest.raises(
            DataError, match=r"E336.*`w` cannot be appended to `default.outputs`: `x` is bigint, and not"
        ):
            facts(output("append"), program='.decl w(x:symbol, y:symbol) w("a", "b").')
        facts(output("overwrite"), program=program.format(4, "d"))
        assert rows(spark.table("outputs")) == {(4, "d")}
        with pytest.raises(DataError, match=r"E337.*`outputs_view`: it is a view"):
            facts(output("overwrite").replace("default.outputs", "outputs_view"), program=program.format(1, "a"))
        with pytest.raises(DataError) as error:
            facts(output("error").replace("default", "nosuch"), program=program.format(1, "a"))
        assert str(error.value) == (
            "error[E337]: `w` cannot be written to `nosuch.outputs`: there is no database `nosuch`\n"
            "  = note: nothing was written"
        )
        with pytest.raises(ResourceError, match=r"E600.*cannot write `a b`: "):
            facts(output("error").replace("default.outputs", "a b"), program=program.format(1, "a"))
    finally:
        spark.sql("DROP TABLE IF EXISTS default.outputs")
        spark.catalog.dropTempView("outputs_view")


def test_databases(facts: Any, spark: Any, request: Any) -> None:
    url = f"jdbc:derby:memory:outputs_{request.node.callspec.params['facts']};create=true"

    def output(mode: str, table: str = "w") -> str:
        return f'.output w(IO=jdbc, url="{url}", dbtable="{table}", driver="{DRIVER}", mode="{mode}", batchsize="2")'

    def read(table: str) -> Any:
        return spark.read.jdbc(url, table, properties={"driver": DRIVER})

    finite = '.decl r(s:symbol, n:number, u:unsigned, f:float, t:term) r("ä", -5, 18446744073709551615, 0.1, <a:b>).'
    facts(f'.output r(IO=jdbc, url="{url}", dbtable="r", driver="{DRIVER}")', program=finite)
    assert rows(read("r")) == {("ä", -5, 2**64 - 1, 0.1, "<a:b>")}
    program = '.decl w(x:number, y:symbol) w({}, "{}").'
    facts(output("error"), program=program.format(1, "a"))
    facts(output("append"), program=program.format(2, "b"))
    facts(output("ignore"), program=program.format(3, "c"))
    assert rows(read("w")) == {(1, "a"), (2, "b")}
    with pytest.raises(DataError, match=r"E335.*`w at jdbc:derby:memory:outputs_\w+` exists already"):
        facts(output("error"), program=program.format(3, "c"))
    with pytest.raises(DataError, match=r"E336.*it has no column `z`"):
        facts(output("append"), program=".decl w(x:number, z:number) w(1, 2).")
    facts(output("overwrite"), program=program.format(4, "d"))
    assert rows(read("w")) == {(4, "d")}


# --- URIs ---------------------------------------------------------------------------------------------------


@pytest.fixture
def lab(spark: Any, tmp_path: Path) -> Iterator[str]:
    """A URI of a Hadoop file system that is not that of this machine, for Evermat."""
    (tmp_path / "far").mkdir()
    host = f"lab{uuid4().hex}"  # Hadoop remembers where one leads
    name = f"fs.viewfs.mounttable.{host}.link./data"
    spark.conf.set(name, f"file://{tmp_path}/far")
    yield f"viewfs://{host}/data"
    spark.conf.unset(name)


def test_a_uri_as_the_output_directory(facts: Any, spark: Any, lab: str, tmp_path: Path) -> None:
    program = """
        .decl w(x:number, f:float, s:symbol) w(1, 1.5, "a"). w(2, 2e30, "b, \\"c\\"").
        .decl yes() yes() :- w(_, _, _).
        .decl no() no() :- w(3, _, _).
    """
    local = evermat.Program.parse(
        program
        + """
        .output w .output w(filename="q.csv", rfc4180=true, headers=true) .output w(filename="w.jsonl") .output yes .output no
    """
    )
    local.materialise().write_outputs("near")
    facts("""
        .output w .output w(filename="q.csv", rfc4180=true, headers=true) .output w(filename="w.jsonl") .output yes .output no
        .output w(filename="w.parquet") .output w(filename="sub/w.jsonl.gz")
        .output w(IO=spark, format="orc", path="w.orc")
    """, f"{lab}/out/", program=program)  # fmt: skip
    for name in ("w.csv", "q.csv", "w.jsonl", "yes.csv", "no.csv"):
        written = [path.read_text() for path in sorted((tmp_path / "far/out" / name).glob("part-*"))]
        lines = sorted({line for text in written for line in text.splitlines()})
        assert lines == sorted(Path("near", name).read_text().splitlines()), name
    expected = {(1, 1.5, "a"), (2, 2e30, 'b, "c"')}
    assert rows(spark.read.parquet(f"{lab}/out/w.parquet")) == expected == rows(spark.read.orc(f"{lab}/out/w.orc"))
    packed = spark.read.json(f"{lab}/out/sub/w.jsonl.gz").select("x", "f", "s")
    assert rows(packed) == expected and packed.inputFiles()[0].endswith(".gz")
    facts(".output w", f"{lab}/out", program='.decl w(x:number, s:symbol) w(5, "e").')
    assert [row[0] for row in spark.read.text(f"{lab}/out/w.csv").collect()] == ["5\te"]


def test_what_a_uri_cannot_hold(facts: Any, lab: str, tmp_path: Path) -> None:
    text = '.decl w(x:number, s:symbol) w(5, "e\\tf").'
    facts('.output w(filename="w.csv", rfc4180=true)', lab, program=text)
    before = sorted((tmp_path / "far").rglob("*"))
    with pytest.raises(DataError, match=r"E324.*in column 2 .`s`. of `w` cannot be written as plain text"):
        facts('.output w(IO=spark, path="v") .output w', lab, program=text)
    with pytest.raises(DataError, match=r"E337.*RDF is written to files of this machine only"):
        facts('.output t(filename="t.nt")', lab, program=".decl t(s:term, p:term, o:term) t(<a:a>, <a:b>, <a:c>).")
    assert sorted((tmp_path / "far").rglob("*")) == before


def test_modes_of_uris(facts: Any, spark: Any, lab: str) -> None:
    def output(mode: str, more: str = "") -> str:
        return f'.output w(IO=spark, path="{lab}/w", mode="{mode}"{more})'

    program = '.decl w(x:number, s:symbol) w({}, "e").'
    for number, mode in enumerate(["error", "append", "ignore"]):
        facts(output(mode), program=program.format(number))
    assert rows(spark.read.parquet(f"{lab}/w")) == {(0, "e"), (1, "e")}
    with pytest.raises(DataError, match=rf"E335.*`{lab}/w` exists already"):
        facts(output("error"), program=program.format(1))
    with pytest.raises(DataError, match=r"E336.*it has no column `y`"):
        facts(output("append"), program=".decl w(x:number, y:number) w(1, 1).")
    with pytest.raises(DataError, match=r"E336.*partitioned by other columns"):
        facts(output("append", ', partitionBy="s"'), program=program.format(1))
    facts(output("overwrite"), program=program.format(7))
    assert rows(spark.read.parquet(f"{lab}/w")) == {(7, "e")}


def test_a_format_of_which_only_spark_knows_the_files(facts: Any) -> None:
    facts('.output r(IO=spark, format="noop", mode="overwrite") .output r(filename="r.jsonl")')
    assert everything() == ["out/r.jsonl"]


# --- without Spark, and on the command line -------------------------------------------------------------------


WITHOUT = [
    ('IO=spark, path="r"', "a format of Spark"),
    ('IO=table, name="r"', "a table"),
    ('IO=jdbc, url="jdbc:x", dbtable="r"', "a database"),
]


@pytest.mark.parametrize(("how", "what"), WITHOUT)
def test_without_spark(how: str, what: str, evermat_command: Evermat) -> None:
    text = f".decl r(x:number)\n.input r\n.output r({how})\n"
    Path("p.dl").write_text(text)
    line = text.splitlines()[2]
    shown = f" --> p.dl:3:9\n  |\n3 | {line}\n  |         ^\n"
    assert evermat_command("run", "p.dl", "--engine", "memory") == (
        2,
        "",
        f"error[E275]: relation `r` is written to {what}, which needs Spark\n{shown}  = note: use `--engine spark`\n",
    )
    sandboxed = evermat_command("run", "p.dl", "--engine", "memory", "--sandbox")
    assert (sandboxed.code, sandboxed.err[:52]) == (2, "error[E295]: the sandbox does not let `r` be written: "[:52])
    assert "tables, databases, URIs and what Spark writes are not written in a sandbox" in sandboxed.err
    m = evermat.Program.parse(text).materialise()
    with pytest.raises(ProgramError, match=r"E275(.|\n)*give the session: `write_outputs\(…, spark=spark\)`"):
        m.write_outputs()


def test_a_uri_without_spark(evermat_command: Evermat) -> None:
    Path("p.dl").write_text(".decl r(x:number)\nr(1).\n.output r\n")
    assert evermat_command("run", "p.dl", "--engine", "memory", "-D", "s3a://k:geheim@b/s") == (
        2,
        "",
        "error[E296]: the output directory cannot be at `s3a://…@b/s`: only Spark writes there\n"
        "  = note: use `--engine spark`, or give a path or a `file:` URI\n",
    )
    assert evermat_command("run", "p.dl", "--engine", "memory", "-D", "file://host/s").code == 2
    done = evermat_command("run", "p.dl", "--engine", "memory", "--sandbox", "-D", "s3a://b/s")
    assert (done.code, done.err[:11]) == (2, "error[E295]"), done.err
    assert everything() == ["p.dl"]


def test_the_command_line(spark: Any, lab: str, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.spark.session", lambda **_: nullcontext(spark))
    monkeypatch.setattr("evermat.spark.stores_classes", lambda _: False)  # the session goes on
    Path("e.facts").write_text("1\n2\n")
    program = ".decl e(x:number) .input e\n.decl r(x:number)\nr(x + 1) :- e(x).\n.printsize r\n"
    Path("p.dl").write_text(program + '.output r(IO=spark, path="r", mode="overwrite")\n.output r')
    for place in PLACES:
        options = ["--engine", "spark", "--place", place]
        assert evermat_command("run", "p.dl", *options, "-D", "out", "--stats", "s.json")[:2] == (0, "r\t2\n")
        assert rows(spark.read.parquet(here("out/r"))) == {(2,), (3,)} and Path("out/r.csv").read_text() == "2\n3\n"
        assert "write" in json.loads(Path("s.json").read_text())["seconds"]
        assert evermat_command("run", "p.dl", *options, "-D", lab)[:2] == (0, "r\t2\n")
        assert {row[0] for row in spark.read.text(f"{lab}/r.csv").collect()} == {"2", "3"}
    Path("p.dl").write_text(program + '.output r(IO=spark, path="r")\n')
    Path("e.facts").unlink()  # it is not even looked for
    done = evermat_command("run", "p.dl", "--engine", "spark", "-D", "out")
    assert (done.code, done.err[:11]) == (3, "error[E335]")
    Path("p.dl").write_text(program + '.output r(IO=table, name="r")\n')
    done = evermat_command("run", "p.dl", "--engine", "spark", "-D", "out")
    assert (done.code, done.err) == (
        3,
        "error[E337]: `r` cannot be written to `r`: Spark's catalogue is in memory, and would be lost with this command; "
        "see `--conf`\n  = note: nothing was written\n",
    )
