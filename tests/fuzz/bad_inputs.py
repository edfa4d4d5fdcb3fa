"""Bad inputs of every kind, made from a seed: programs, facts, RDF, ontologies, change files, states, queries and command lines.

A case writes its files into the working folder and says which commands read them. Most begin with something that is right.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

CASES = Path(__file__).parents[1] / "language" / "cases"
RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:owl="http://www.w3.org/2002/07/owl#" xmlns:x="http://x/">'
SHORT = (
    *(
        b"\0",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\xc0\x80",
        b"\r",
        b"\n",
        b"\t",
        b"\x1b[31m",
        b"\x1a",
        b"\x85",
    ),
    *(
        b'"',
        b"'",
        b"`",
        b"\\",
        b"\\u12",
        b"\\ud800",
        b"\\U00110000",
        b"&#0;",
        b"&#xD800;",
        b"&x;",
        b"%00",
        b"..",
        b"\xe2\x80\xae",
    ),
    *(
        b"<",
        b">",
        b"<!--",
        b"-->",
        b"]]>",
        b"<![CDATA[",
        b"<?xml ?>",
        b"<!DOCTYPE r [",
        b"<!ENTITY a 'b'>",
        b"{",
        b"}",
        b"[",
        b"(",
        b")",
    ),
    *(
        b"0x1G",
        b"0b",
        b"0x",
        b"nan",
        b"-",
        b"--",
        b"1e999",
        b"-0",
        b"9" * 40,
        b"1_0",
        b"\xd9\xa1",
        b"_:",
        b"_:b",
        b"@prefix",
        b"@",
        b"^^",
    ),
    *(b".", b"null", b"true", b"<a>", b"<http://a b>", b"# ", b",", b";", b"|", b":-", b"!", b"=", b"\xf0\x9f\x98\x80"),
)
LONG = (
    *(
        b"(" * 3000,
        b"[" * 3000,
        b"{" * 3000,
        b"<x:p>" * 3000,
        b"<< " * 3000,
        b"-" * 5000,
        b"!" * 5000,
        b"ObjectComplementOf(" * 3000,
    ),
    *(
        b"x" * 70_000,
        b'"' * 70_001,
        b"a\n" * 35_000,
        b"\t" * 70_000,
        b"9" * 70_000,
        b"\\" * 70_001,
        b"(" * 100_000,
        b'["a",' * 30_000,
    ),
    *(b"&a;" * 20_000, b"x:" * 30_000, b"a, " * 30_000, b"\0" * 70_000, b"1 + " * 20_000),
)
TEXTS: dict[str, tuple[bytes, ...]] = {
    "facts": (b"a\t1\nb\t0x1f\n", b"a\t-9223372036854775808\n", b"a 1\n"),
    "csv": (b'a,1\n"b ""c""\nd",-2\n', b"x,y\na,1\n"),
    "tsv": (b"a\t1\n",),
    "jsonl": (b'["a", 1]\n{"x": "b", "y": 2}\n', b'{"y": 2, "x": "\\u00e9"}\n'),
    "nt": (b'<http://a> <http://b> "c"@en .\n_:a <http://b> "1"^^<http://www.w3.org/2001/XMLSchema#int> .\n',),
    "nq": (b"<http://a> <http://b> <http://c> <http://g> .\n",),
    "ttl": (
        b'@prefix x: <http://x/> .\nx:a x:b "c", 1, [ x:d ( x:e ) ] ; a x:F .\n',
        b"@base <http://b/> .\nPREFIX owl: <http://www.w3.org/2002/07/owl#>\n<o> a owl:Ontology ; owl:imports <o>, <http://x/p> .\n"
        b"<A> a owl:Class ; owl:unionOf ( <B> [ a owl:Restriction ; owl:onProperty <p> ; owl:someValuesFrom <C> ] ) .\n",
    ),
    "trig": (b"@prefix x: <http://x/> .\nx:g { x:a x:b x:c }\n",),
    "rdf": (
        f'<?xml version="1.0" encoding="UTF-8"?>\n{RDF}<x:C rdf:ID="a" xml:base="http://b/"><x:p>c</x:p></x:C></rdf:RDF>'.encode(),
        f"<!DOCTYPE r [<!ENTITY a 'http://a/'>]>\n{RDF}<x:C rdf:about='&a;b'/></rdf:RDF>".encode(),
        f'<?xml version="1.0" encoding="shift_jis"?>{RDF}</rdf:RDF>'.encode(),
        f'{RDF}<owl:Class rdf:about="http://x/A"><x:l rdf:parseType="Literal"><b>x</b></x:l></owl:Class></rdf:RDF>'.encode(),
    ),
    "ofn": (
        b"Prefix(:=<http://x/>)\nOntology(<http://x> SubClassOf(:A ObjectSomeValuesFrom(:p :B)) ClassAssertion(:A :i))\n",
        b'Prefix(:=<http://x/>)\nOntology(Import(<http://x/i>) DataPropertyRange(:d DatatypeRestriction(xsd:int xsd:minInclusive "1"^^xsd:int)))',
    ),
    "owx": (
        b'<?xml version="1.0"?>\n<Ontology xmlns="http://www.w3.org/2002/07/owl#" ontologyIRI="http://x"><SubClassOf>'
        b'<Class IRI="http://x/A"/><Class IRI="http://x/B"/></SubClassOf></Ontology>',
    ),
    "dl": (
        b'.decl a(x:symbol, y:number)\na("b", 0x1f - 2).\n.decl c(x:number)\nc(1 / y) :- a(_, y), !a("c", y).\n.output c\n',
        b".decl e(x:number, y:number)\n.decl p(x:number, y:number)\ne(1, 2).\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n.printsize p\n",
        b'.decl s(x:symbol, y:float, z:unsigned)\ns(cat("a", "b"), 1.5 / 0.0, 3u - 4u).\n.decl n(c:number)\nn(count : { s(_, _, _) }).\n.output n\n',
    ),
    "txt": (b"+\tr\ta\t1\n-\tr\tb\t2\n", b"+\tt\t<http://a>\n", b"-\tf\t1.5\t3\n"),
}
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "cp1252", "shift_jis", "utf-7")
QUERIES = (
    "r(x, y)",
    'r("b", x), x > 1',
    "count : { r(_, _) } = n",
    '!r("a", 1)',
    "t(<http://a>)",
    "f(x, _), x < 2.5",
    'x = cat("a", "b")',
)
WORDS = (
    *(
        "",
        "-",
        "--",
        "-1",
        "0",
        "1",
        "1e9",
        "nan",
        "inf",
        "9" * 30,
        "4g",
        "1k",
        "0.001",
        "x",
        "*",
        "[",
        "..",
        "/",
        ".",
        "~",
        "$HOME",
        "%s",
        "{}",
    ),
    *(
        "\udcff",
        "\n",
        "a b",
        "\x1b[0m",
        "é",
        "/dev/null",
        "/dev/full",
        "/proc/self/mem",
        "file:///etc/passwd",
        "http://127.0.0.1:9/x",
    ),
    *(
        "p.dl",
        "state",
        "bad.nt",
        "r",
        "r(x, y)",
        "memory",
        "spark",
        "rewrite",
        "owl2rl",
        "rdfs",
        "jsonl",
        "all",
        "bf",
        "2",
        "30d",
        "5x",
        "auto",
    ),
    *("none.nt", "out.parquet", "x" * 300, "a/" * 2100),
)
COMMANDS = (
    "run",
    "check",
    "update",
    "stream",
    "query",
    "export",
    "translate",
    "log",
    "vacuum",
    "migrate",
    "help",
    "Run",
    "--version",
)
OPTIONS = (
    *(
        "-F",
        "-D",
        "--engine",
        "--memory",
        "--limit-seconds",
        "--limit-facts",
        "--limit-rounds",
        "--state",
        "--version",
        "--keep",
        "--stats",
    ),
    *(
        "--rdf",
        "--ontology",
        "--entailment",
        "--equality",
        "--trivial",
        "--export",
        "--export-facts",
        "--base",
        "--skip-malformed",
        "--sandbox",
    ),
    *(
        "--algorithm",
        "--schemes",
        "--place",
        "--conf",
        "--master",
        "--scratch",
        "--format",
        "--changes-out",
        "--changes-format",
        "--source",
    ),
    *(
        "--once",
        "--dry-run",
        "--representatives",
        "--allow-inconsistency",
        "--ignore-imports",
        "--help",
        "--verbose",
        "--no-such",
        "-x",
        "-",
    ),
)


class Case(NamedTuple):
    """What a case is about, its commands, and what they read from standard input."""

    kind: str
    commands: list[list[str]]
    stdin: bytes = b""


def damaged(rng: Random, text: bytes, times: int = 0) -> bytes:
    """The text with something put in, taken out, doubled or changed."""
    for _ in range(times or rng.randint(1, 3)):
        at, end = sorted(rng.randint(0, len(text)) for _ in range(2))
        odd = rng.choice(LONG) if rng.random() < 0.05 else rng.choice(SHORT)
        match rng.randrange(7):
            case 0 | 1:
                text = text[:at] + odd + text[at:]
            case 2:
                text = text[:at] + odd + text[min(end, at + 8) :]
            case 3:
                text = text[:at] + text[end:]
            case 4:
                text = text[:end] + text[at:end] * rng.choice((1, 2, 50)) + text[end:]
            case 5:
                text = text[:at]
            case _:
                text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
    return text


def content(rng: Random, form: str) -> bytes:
    """The bytes of a file of a format, which are mostly wrong."""
    text = rng.choice(TEXTS[form])
    kind = rng.random()
    if kind < 0.05:
        return text.decode().encode(rng.choice(ENCODINGS), "replace")
    if kind < 0.08:
        return rng.choice(LONG)
    if kind < 0.1:
        return b""
    return damaged(rng, text) if kind < 0.95 else text


def compressed(rng: Random, data: bytes) -> bytes:
    """As gzip, whole or cut off, with something after it, or damaged."""
    packed = gzip.compress(data)
    match rng.randrange(5):
        case 0:
            return packed
        case 1:
            return packed[: rng.randint(0, len(packed))]
        case 2:
            return packed + rng.choice((b"\0" * 9, b"x", packed, packed[:5]))
        case 3:
            return gzip.compress(b"a\t1\n" * 2_000_000)
    return damaged(rng, packed)


def named(rng: Random, form: str) -> str:
    """Writes a file of a format, perhaps with the ending of another, and returns its name."""
    data = content(rng, form)
    ending = rng.choice(list(TEXTS)) if rng.random() < 0.1 else form
    name = f"bad.{ending}"
    if rng.random() < 0.1:
        name, data = f"{name}.gz", compressed(rng, data)
    match rng.randrange(60):
        case 0:
            Path(name).mkdir()
        case 1:
            Path(name).symlink_to(name)
        case 2:
            name = "none/" + name
        case _:
            Path(name).write_bytes(data)
    return name


def array(rng: Random, rows: int = 2) -> pa.Array:
    """A column of any type, with or without nulls."""
    texts = pa.py_buffer(rng.choice((b"abc", b"\xff\xc3a", b"a\xed\xa0", b"\0\0\0")))
    offsets = pa.array([0, 1, 3], pa.int32()).buffers()[1]
    choices: list[Callable[[], Any]] = [
        lambda: pa.StringArray.from_buffers(2, offsets, texts),
        lambda: pa.array(["a", None]),
        lambda: pa.array([1, 2**40]),
        lambda: pa.array([2**64 - 1, 0], pa.uint64()),
        lambda: pa.array([1.5, float("nan")]),
        lambda: pa.array([1.5, float("-inf")], pa.float32()),
        lambda: pa.array([None, None], pa.null()),
        lambda: pa.array([True, False]),
        lambda: pa.array([[1], []]),
        lambda: pa.array([{"a": 1}, None]),
        lambda: pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([b"\xff", b""]),
        lambda: pa.array([b"ab", b"cd"], pa.binary(2)),
        lambda: pa.array(["a", "b"]).dictionary_encode(),
        lambda: pa.array(["a", "b"], pa.large_string()),
        lambda: pa.array(["a", "b"], pa.string_view()),
        lambda: pa.array([1, 2], pa.decimal128(20, 3)),
        lambda: pa.array([1, 2], pa.decimal256(60, 0)),
        lambda: pa.array([0, 2**60], pa.timestamp("us", "UTC")),
        lambda: pa.array([0, 1], pa.date32()),
        lambda: pa.array([0, 1], pa.time64("ns")),
        lambda: pa.array([0, 1], pa.duration("s")),
        lambda: pa.array([0, 1], pa.int8()),
    ]
    return rng.choice(choices)()


def table(rng: Random) -> pa.Table:
    """A table that may fit or not."""
    names = list(rng.choice(("xy", "xy", "yx", "x", "ab", "xyz", "xx", "")))
    return pa.Table.from_arrays([array(rng) for _ in names], names=names)


def parquet(rng: Random) -> str:
    """Writes a Parquet file, or what is called so."""
    out = io.BytesIO()
    try:
        pq.write_table(table(rng), out, compression=rng.choice(("snappy", "zstd", "none", "gzip")))
    except (pa.ArrowException, ValueError):
        out = io.BytesIO(b"PAR1" * 9)
    data = out.getvalue()
    data = damaged(rng, data) if rng.random() < 0.5 else data
    if rng.random() < 0.1:
        Path("bad.parquet").mkdir()
        Path("bad.parquet/part-0.parquet").write_bytes(data)
        Path("bad.parquet/part-1.parquet").write_bytes(damaged(rng, data))
    else:
        Path("bad.parquet").write_bytes(data)
    return "bad.parquet"


# --- kinds of cases ----------------------------------------------------------------------------------------------
ODD_OPTIONS = (
    *(
        "",
        ', delimiter="\\0"',
        ', headers=true, delimiter=","',
        ", rfc4180=true",
        ', delimiter=""',
        ', delimiter="::"',
        ', delimiter="\\n"',
    ),
    *(
        ", compress=true",
        ", IO=stdin",
        ', IO="file"',
        ", IO=nothing",
        ', format="x"',
        ', columns="1:0"',
        ', delimiter="\\""',
        ", headers=7",
    ),
)


def facts(rng: Random) -> Case:
    form = rng.choice(("facts", "csv", "tsv", "jsonl", "nt", "nq", "ttl", "trig", "rdf", "parquet", "parquet"))
    name = parquet(rng) if form == "parquet" else named(rng, form)
    types = rng.choice(
        (["symbol", "number"], ["symbol", "number"], ["term"] * 3, ["term"] * 4, ["float", "unsigned"], ["term"], [])
    )
    columns = ", ".join(f"{column}:{kind}" for column, kind in zip("xyzg", types, strict=False))
    more = rng.choice(ODD_OPTIONS) if rng.random() < 0.3 else ""
    pattern = rng.choice((name, name, name, name, "bad*", ".", "*", "ba[d", "**", name.upper()))
    out = rng.choice(("jsonl", "csv", "nt", "ttl", "parquet", "rdf", "csv.gz"))
    text = f'.decl r({columns})\n.input r(filename="{pattern}"{more})\n.output r(filename="out.{out}")\n'
    Path("read.dl").write_text(text)
    skip = ["--skip-malformed"] if rng.random() < 0.2 else []
    limit = ["--sandbox"] if rng.random() < 0.1 else []
    return Case("facts", [["run", "read.dl", "--engine", "memory", *skip, *limit]], rng.choice((b"a\t1\n", b"\xff")))


def programs(rng: Random) -> Case:
    if rng.random() < 0.5:
        data = content(rng, "dl")
    else:
        files = sorted(CASES.rglob("*.dl"))
        data = damaged(rng, rng.choice(files).read_bytes()[:20_000])
    Path("p.dl").write_bytes(data)
    command = rng.choice(("run", "run", "check"))
    if rng.random() < 0.2:
        return Case("program", [[command, "-", *(["--engine", "memory"] if command == "run" else [])]], data)
    limits = ["--engine", "memory", "--limit-seconds", "5"] if command == "run" else []
    return Case("program", [[command, "p.dl", *limits]])


def rdf(rng: Random) -> Case:
    name = named(rng, rng.choice(("nt", "nq", "ttl", "trig", "rdf")))
    more = rng.choice(
        (
            [],
            [],
            ["--skip-malformed"],
            ["--base", rng.choice(("http://b/", "b", "", "http://[", "\udcff"))],
            ["--sandbox"],
        )
    )
    regime = rng.choice(
        ([], ["--entailment", "rdfs"], ["--entailment", "owl2rl"], ["--entailment", "owl2rl", "--trivial"])
    )
    out = rng.choice(("out.nt", "out.ttl", "out.rdf", "out.trig", "out.nq", "out.nt.gz", "out.x"))
    return Case("rdf", [["run", "--rdf", name, "--engine", "memory", "--export", out, *more, *regime]])


def ontologies(rng: Random) -> Case:
    form = rng.choice(("ttl", "rdf", "ofn", "owx", "ofn", "owx"))
    name = named(rng, form)
    if rng.random() < 0.3:
        uri = rng.choice(("bad.ttl", "o.ttl", "../x", "file:///etc/hostname", "http://[", ""))
        text = f'<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog"><uri name="http://x/i" uri="{uri}"/></catalog>'
        Path("catalog-v001.xml").write_bytes(damaged(rng, text.encode()))
        text = "<http://x/i> a <http://www.w3.org/2002/07/owl#Ontology> ; <http://www.w3.org/2002/07/owl#imports> <http://x/i>, <http://x/p> .\n"
        Path("o.ttl").write_text(text)
    more = rng.choice(([], [], ["--ignore-imports"], ["--sandbox"]))
    if rng.random() < 0.5:
        return Case("ontology", [["translate", name, *more]])
    return Case("ontology", [[rng.choice(("check", "run")), "--ontology", name, *more]])


def changes(rng: Random) -> Case:
    form = rng.choice(("txt", "txt", "jsonl", "parquet", "nt", "ttl", "csv"))
    if form == "parquet":
        name = parquet(rng)
    elif form in ("nt", "ttl"):
        name = f"c.{rng.choice(('add', 'del', 'x'))}.{form}"
        Path(name).write_bytes(content(rng, form))
    elif form == "jsonl":
        name = "c.jsonl"
        line = rng.choice(
            (b'["+", "r", "a", 1]\n', b'{"op": "+", "relation": "r", "row": ["a", 1]}\n', b'{"+": {"r": [["a", 1]]}}\n')
        )
        Path(name).write_bytes(damaged(rng, line))
    else:
        name = named(rng, form)
    command = rng.choice(
        (["update", name], ["update", name, "--changes-out", "out.tsv"], ["stream", "--source", "c", "--once"])
    )
    if command[0] == "stream":
        Path("c").mkdir(exist_ok=True)
        if Path(name).is_file():
            shutil.move(name, f"c/{name.replace('/', '')}")
    return Case("changes", [[*command, "--state", "state"], ["log", "--state", "state"]])


def states(rng: Random) -> Case:
    files = sorted(path for path in Path("state").rglob("*") if path.is_file())
    for _ in range(rng.randint(1, 2)):
        file = rng.choice(files)
        if not file.is_file():
            continue
        match rng.randrange(7):
            case 0:
                file.unlink()
            case 1:
                file.unlink()
                file.mkdir()
            case 2:
                file.write_bytes(b"")
            case 3:
                file.write_bytes(rng.choice(files).read_bytes() if rng.random() < 0.5 else b"{}")
            case 4:
                data = file.read_bytes()
                at = rng.randrange(len(data) + 1)
                file.write_bytes(data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :])
            case _:
                file.write_bytes(damaged(rng, file.read_bytes()))
    Path("c.txt").write_bytes(b"+\tr\tz\t9\n")
    every = [
        *(
            ["query", "--state", "state", "r(x, y)"],
            ["log", "--state", "state"],
            ["update", "--state", "state", "c.txt"],
        ),
        *(
            ["vacuum", "--state", "state", "--keep", "1"],
            ["export", "--state", "state", "out.nt"],
            ["migrate", "--state", "state"],
        ),
        *(["query", "--state", "state", "--version", "1", "d(x, y)"],),
    ]
    return Case("state", rng.sample(every, 3))


def queries(rng: Random) -> Case:
    text = damaged(rng, rng.choice(QUERIES).encode()).replace(b"\0", b"0")[:100_000]
    more = rng.choice(
        ([], ["--format", "jsonl"], ["--version", rng.choice(WORDS).replace("\0", "")], ["--limit-seconds", "1"])
    )
    return Case("query", [["query", "--state", "state", os.fsdecode(text), *more]])


def command_lines(rng: Random) -> Case:
    command = [rng.choice(COMMANDS)] if rng.random() < 0.95 else []
    for _ in range(rng.randint(0, 6)):
        command.append(rng.choice(OPTIONS) if rng.random() < 0.5 else rng.choice(WORDS))
        if rng.random() < 0.1:
            command[-1] += "=" + rng.choice(WORDS)
    if "spark" in " ".join(command) or "--master" in command or "--conf" in command:
        command += ["--engine", "memory"]
    if command[:1] == ["stream"]:
        command.append("--once")
    if command[:1] == ["run"] and not any(word.startswith("--engine") for word in command):
        command += ["--engine", "memory"]
    return Case("command", [command])


KINDS = (
    *(facts,) * 5,
    *(programs,) * 3,
    *(rdf,) * 3,
    *(ontologies,) * 3,
    changes,
    changes,
    states,
    states,
    queries,
    command_lines,
    command_lines,
)


def made(seed: int, template: Path) -> Case:
    """Writes the files of a case into the working folder, which has the state of a template and nothing else."""
    rng = Random(seed)
    shutil.copytree(template, ".", dirs_exist_ok=True)
    return rng.choice(KINDS)(rng)
