"""The exact text of every error about files; `cases/` holds what is expected.

With EVERMAT_UPDATE_GOLDEN=1 the cases are written again, to be read before they are kept.
"""

from __future__ import annotations

import gzip
import io as streams
import os
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evermat.core import error_catalogue as errors
from evermat.core.errors import DataError, EvermatError, ResourceError
from evermat.io import Outputs, RdfOptions, read_relation, read_triples
from evermat.language.model import Io
from tests.io.relations import not_utf8, relation, table, write

CASES = Path(__file__).parent / "cases"
COMMA = {"delimiter": ",", "rfc4180": True}


def read(types: str, path: str, content: bytes | pa.Table | None = None, *, row_group_size: int = 100, **options):
    """Reads a relation from a file with this content."""

    def run() -> None:
        if isinstance(content, bytes):
            Path(path).write_bytes(content)
        elif content is not None:
            pq.write_table(content, path, row_group_size=row_group_size)
        read_relation(Io(relation(types), path=path, **options), Path())

    return run


def put(types: str, rows: list[tuple], **options):
    """Writes a relation."""
    return lambda: write(table(relation(types), rows), Io(relation(types), **options), Path())


def folder(path: str, then: Callable[[], None]):
    def run() -> None:
        Path(path).mkdir(parents=True)
        then()

    return run


def after(path: str, then: Callable[[], None]):
    def run() -> None:
        Path(path).write_bytes(b"1\n")
        then()

    return run


def same_file() -> None:
    with Outputs() as out:
        out.write(table(relation("n"), []), Io(relation("n", "a"), path="o.csv"), Path())
        out.write(table(relation("n"), []), Io(relation("n", "b"), path="./o.csv"), Path())


def several() -> None:
    Path("d/2.csv").write_bytes(b"1\nx\n")
    Path("d/10.csv.gz").write_bytes(gzip.compress(b"y\n" * 11, mtime=0))
    Path("d/3.jsonl").write_bytes(b"[1]\n[true]\n")
    Path("d/4.parquet").write_bytes(b"hello world, not parquet")
    Path("d/.5.csv").write_bytes(b"z\n")
    read("n", "d")()


SUBJECT = "<http://a/ä> <http://b> "
TRIPLES = (
    "".join(
        f"{line}\n"
        for line in [
            SUBJECT + "<http://c> .\r",
            SUBJECT + "<http://c>\r",
            SUBJECT + "<c> .",
            SUBJECT + '"😀" "x" .',
            "# a comment, and then an empty line",
            "",
            SUBJECT + "<http://c d> .",
            SUBJECT + "<http://c> .\r" + SUBJECT + '"x"@e .',
            SUBJECT + "<http://c> . " + SUBJECT + "<http://d> .",
            SUBJECT + '"never closed .',
            SUBJECT + r'"\q" .',
            "_:b <http://b>",
        ]
    ).encode()
    + b'_:b <http://b> "\xff" .'
)
QUADS = (
    "".join(
        f"{line}\n"
        for line in [
            SUBJECT + '"x y" <http://g> .',
            SUBJECT + '"x y" "g" .',
            SUBJECT + "<http://c> <http://g> <http://h> .",
            SUBJECT + "<http://c> <g> .",
            SUBJECT + '"x"@en--ltr <http://g> .',
        ]
    ).encode()
    + b'_:b <http://b> "\xff" <http://g> .'
)
TURTLE = """# some Turtle
@prefix x: <http://x/> .
x:a x:b "ä", 1 ; x:c x:d.
x:e a <f>, <g> .
x:e y:a x:f ; x:g [ x:h 1 ] . x:e x:f x:g, .
x:i x:j "open .
x:i x:j "😀" x:k .
x:l x:m \"\"\"a
b\"\"\", "c\\q" .
@prefix z <http://z/> .
x:n x:o z:p ; x:q ( 1 "x"@en--ltr 2 ) ; x:r <<( x:a x:b x:c )>> .
x:s x:t 1
""".encode()
TRIG = b"""PREFIX x: <http://x/>
x:a x:b x:c .
GRAPH x:g { x:a x:b 1 . x:a x:b y:c . x:d x:e x:f }
x:h { x:a x:b . } { x:i x:j <k> }
_:g { x:a x:b "\xff" }
x:m { x:n x:o x:p
"""
XML = """<?xml version="1.0"?>
<!-- RDF/XML -->
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">
  <rdf:Description rdf:about="http://a"><x:p rdf:resource="b"/></rdf:Description>
  <x:C rdf:about="http://ä"><x:p>text</x:p></x:C>
  <x:C rdf:about="http://ä">
    text
  </x:C>
  <x:C rdf:about="http://ä" rdf:nodeID="z"/>
  <x:C rdf:about="http://c d"><x:p rdf:parseType="Literal"><b/></x:p></x:C>
</rdf:RDF>
"""
RDF_12 = (SUBJECT + '"x"@en--ltr .\n' + SUBJECT + "<<( <http://a> <http://b> _:c )>> .\n").encode()

HEAD = XML[XML.index("<rdf:RDF") : XML.index("  <rdf:Desc")]
ID_TWICE = (HEAD.replace(">", ' xml:base="http://b/">') + '<x:C rdf:ID="a"/>\n<x:C rdf:ID="a"/>\n</rdf:RDF>').encode()


def put_file(name: str, content: bytes) -> Path:
    Path(name).write_bytes(content)
    return Path(name)


RUNS: dict[str, Callable[[], None]] = {
    "missing": after("edge.facts", read("nn", "egde.facts")),
    "missing_folder": read("nn", "no/r.facts"),
    "not_readable": after("file", read("n", "file/r.facts")),
    "a_folder": folder("d", after("d/_SUCCESS", read("n", "d"))),
    "a_folder_in_parts": folder("d/year=2024", read("n", "d")),
    "no_match": after("part-1.csv", read("n", "part_*.csv")),
    "no_match_in_folder": folder("d", after("d/x.csv", read("n", "e*/*.csv"))),
    "several_files": folder("d", several),
    "rdf_functional": read("ttt", "r.owl", b"# an ontology\nPrefix(:=<http://x/>)\nOntology(<http://x>)\n"),
    "rdf_owl_xml": read("ttt", "r.xml", b'<?xml version="1.0"?>\n<Ontology xmlns="http://www.w3.org/2002/07/owl#"/>'),
    "rdf_json_ld": read("ttt", "r.jsonld", b'{\n "@context": ["https://schema.org", {}], "@id": "http://x/a"}'),
    "rdf_turtle": read("ttt", "r.ttl", TURTLE),
    "rdf_turtle_many": read("ttt", "r.ttl.gz", gzip.compress(b"<a> <b> <c> .\n" * 1200)),
    "rdf_trig": read("tttt", "r.trig", TRIG),
    "rdf_xml": read("ttt", "r.rdf", XML.encode()),
    "rdf_xml_cut": read("ttt", "r.owl", XML.encode()[:-12]),
    "rdf_xml_not": read("ttt", "r.xml", XML.replace("</x:p>", "</x:q>", 1).encode()),
    "rdf_xml_nothing": read("ttt", "r.rdf", b"hello"),
    "rdf_xml_latin": read("ttt", "r.rdf", XML.replace("?>", ' encoding="ISO-8859-1"?>', 1).encode("latin-1")),
    "rdf_xml_encoding": read(
        "ttt", "r.rdf", b'<?xml version="1.0" encoding="x-none"?>\n' + HEAD.encode() + b"</rdf:RDF>"
    ),
    "rdf_xml_id_twice": read("ttt", "r.rdf", ID_TWICE),
    "rdf_base": lambda: read_triples(put_file("r.ttl", b"<a> <b> <c> ."), RdfOptions(base="x y")),
    "rdf_missing": after("data.nt", lambda: read_triples(Path("dato.nt"))),
    "quads": read("tttt", "r.nq", QUADS),
    "triple_columns": read("tt", "r.nt.gz"),
    "triple_five": read("ttttt", "r.ttl.gz"),
    "triple_no_columns": read("", "r.nt"),
    "triple_types": read("tsn", "r.nt"),
    "triples": read("tts", "r.nt", TRIPLES),
    "triples_of_rdf_12": read("ttt", "r.nt", RDF_12),
    "too_few": read("ns", "r.facts", b"1\ta\n2\n\n3\tb\n"),
    "too_few_three": read("nnn", "r.facts", b"1"),
    "too_many": read("ns", "r.facts", b"1\ta\tb\tc\n"),
    "nullary": read("", "r.facts", b"()\nx\n"),
    "not_a_number": read("nnnn", "r.facts", b"\xef\xbb\xbf1\t1\t1\t1\r\n1x\t 2\t0x1G\t\r\n"),
    "does_not_fit": read("n", "r.facts", b"1\n9223372036854775808\n-99999999999999999999999\n"),
    "unsigned": read("su", "r.facts", "ä\t-1\nb\t1.5\nc\t99999999999999999999\n".encode()),
    "floats": read("f", "r.facts", b"1\nNaN\n1e400\nInfinity\n"),
    "not_utf8": read("sn", "r.facts", "ä\t1\nab\x00".encode() + b"\xff\t2\n"),
    "parquet_not_utf8": read("sn", "r.parquet", pa.table({"x": not_utf8(), "y": [1, 2, 3]}), row_group_size=1),
    "not_utf8_quoted": read("sn", "r.facts", b'a,1\n"b\n\xc3",2\n', **COMMA),
    "headers": read("n", "r.facts", b"x\nx\n", headers=True),
    "gzip_cut": read("n", "r.gz", gzip.compress(b"1\n" * 100, mtime=0)[:-9]),
    "gzip_damaged": read("n", "r.gz", gzip.compress(b"1\n2\n", mtime=0)[:-8] + b"12345678"),
    "not_gzip": read("n", "r.gz", b"1\n"),
    "and_more": read("n", "r.facts", b"x\n" * 12),
    "exactly_ten": read("n", "r.facts", b"x\n" * 10),
    "quotes": read("sn", "r.csv", b'"a",1\n"b"c,2\nd"e,3\n"f\ng,4\n', **COMMA),
    "quoted_lines": read("sn", "r.csv", b'"a\nb",1,2\n"c\nd",e\n', **COMMA),
    "parquet_null": read(
        "ns", "r.parquet", pa.table({"x": [1, 2, None, 4], "y": ["a", "b", "c", None]}), row_group_size=2
    ),
    "parquet_types": read("nf", "r.parquet", pa.table({"x": ["a"], "y": [True]})),
    "parquet_by_position": read("ss", "r.parquet", pa.table({"a": ["a"], "b": [1]})),
    "parquet_less": read("nn", "r.parquet", pa.table({"x": [1]})),
    "parquet_more": read("nn", "r.parquet", pa.table({"x": [1], "y": [2], "extra": [3]})),
    "parquet_order": read("nn", "r.parquet", pa.table({"y": [1], "q": [2]})),
    "parquet_values": read(
        "nuf",
        "r.parquet",
        pa.table({"x": pa.array([1, 2**63], pa.uint64()), "y": [1, -2], "z": [1.0, float("nan")]}),
    ),
    "parquet_bad": read("n", "r.parquet", b"hello world, not parquet"),
    "parquet_empty_folder": folder("r.parquet", read("n", "r.parquet")),
    "json_lines": read(
        "sn",
        "r.jsonl",
        b'["a", 1]\n["a"\n\n5\n["a"]\n["a", 1, 2]\n{"x": "a"}\n{"x": "a", "Y": 1}\n{"x":"a","y":1,"x":"b"}\n',
    ),
    "json_values": read("snuf", "r.jsonl", b'[1, "2", -1, NaN]\n[null, 1.0, true, "x"]\n'),
    "json_more_values": read("snuf", "r.jsonl", b'["\\ud800", 9223372036854775808, 1e2, 1e999]\n[{}, [], 1, 1]\n'),
    "terms": read("ttn", "r.facts", b'<a:a>\thttp://a/b\t1\n_:b c\t"x"@EN\t2\n\t"x\t3\n<a b>\t"x"@en--ltr\tx\n'),
    "json_terms": read(
        "tt", "r.jsonl", b'["<a:a>", "http://a/b"]\n{"y": "<<( <a:a> <a:b> <a:c> )>>", "x": "a b"}\n[1, "_:b"]\n'
    ),
    "parquet_terms": read("tt", "r.parquet", pa.table({"x": ["<a:a>", '"x"^^<b>'], "y": ["hello", "<a"]})),
    "json_not_utf8": read("s", "r.jsonl", b'["\xff"]\n'),
    "json_deep": read("s", "r.jsonl", b"[" * 100_000),
    "not_plain_tab": put("ns", [(1, "a\tb")]),
    "not_plain_newline": put("sn", [("a\nb" * 20, 1)], path="o.txt", delimiter=";"),
    "not_plain_delimiter": put("s", [("a;b",)], path="o.txt", delimiter=";"),
    "not_plain_return": put("s", [("a\r",)], medium="stdout"),
    "rdf_output": put("s", [], path="r.ttl"),
    "rdf_output_graphs": put("tttt", [], path="r.nt"),
    "rdf_output_name": lambda: Outputs().write_graph(Path("out.csv"), []),
    "same_file": same_file,
    "output_is_a_folder": folder("d", put("n", [(1,)], path="d")),
    "output_folder_is_a_file": after("file", put("n", [(1,)], path="file/r.csv")),
    "disk_full": put("n", [(1,)], path="/dev/full"),
}


@pytest.mark.parametrize("name", RUNS)
def test_message(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EvermatError) as caught:
        RUNS[name]()
    code = caught.value.problems[0].kind.code
    assert isinstance(caught.value, DataError if code < 400 else ResourceError)
    assert caught.value.exit_code == code // 100
    case = CASES / f"{name}.txt"
    if os.environ.get("EVERMAT_UPDATE_GOLDEN"):
        case.parent.mkdir(exist_ok=True)
        case.write_text(f"{caught.value}\n")
    assert f"{caught.value}\n" == case.read_text()


def test_every_kind_has_a_case():
    shown = {
        int(code)
        for case in CASES.iterdir()
        for code in re.findall(r"^error\[E(\d+)\]", case.read_text(), re.MULTILINE)
    }
    ranges = (range(300, 330), range(333, 335), range(370, 380), range(600, 601), range(602, 610))
    ours = {kind.code for kind in errors.KINDS if any(kind.code in some for some in ranges)}
    assert shown == ours
    assert {case.stem for case in CASES.iterdir()} == set(RUNS)


def test_standard_input_is_named(monkeypatch):
    monkeypatch.setattr("sys.stdin", streams.TextIOWrapper(streams.BytesIO(b"a\n")))
    with pytest.raises(DataError, match=r"--> <stdin>:1:1\n"):
        read_relation(Io(relation("n"), medium="stdin"), Path())


def test_lines_are_counted_across_blocks(tmp_path):
    (tmp_path / "r.facts").write_bytes(b"123456\t1234567\n" * 1_000_000 + b"1\tx\n")
    with pytest.raises(DataError, match=r"r.facts:1000001:3\n"):
        read_relation(Io(relation("nn")), tmp_path)
