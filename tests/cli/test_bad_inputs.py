"""Files that were damaged or made wrong in any way: a command understands or refuses them, and never ends in a traceback.

With EVERMAT_LONG=1, 2,000 of them are tried.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.commands import Evermat

COUNT = 2000 if os.environ.get("EVERMAT_LONG") else 200
RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">'
ODD = (
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\n", b"\t", b'"', b"'", b"\\", b"\\u12", b"\\ud800"),
    *(
        b"<",
        b">",
        b"<!--",
        b"]]>",
        b"<![CDATA[",
        b"&#0;",
        b"&x;",
        b"<!DOCTYPE r [",
        b"<!ENTITY a 'b'>",
        b"{",
        b"[",
        b"(",
    ),
    *(b"0x1G", b"0b", b"nan", b"-", b"1e999", b"9" * 40, b"_:", b"@prefix", b"@", b"^^", b".", b"null", b"<a>", b"# "),
    *(b"(" * 3000, b"[" * 3000, b"<x:p>" * 3000, b"x" * 70_000, b'"' * 70_001, b"a\n" * 35_000),
)
TEXTS: dict[str, tuple[bytes, ...]] = {
    "facts": (b"a\t1\nb\t0x1f\n",),
    "csv": (b'a,1\n"b ""c""\nd",-2\n',),
    "jsonl": (b'["a", 1]\n{"x": "b", "y": 2}\n',),
    "nt": (b'<http://a> <http://b> "c"@en .\n_:a <http://b> "1"^^<http://www.w3.org/2001/XMLSchema#int> .\n',),
    "nq": (b"<http://a> <http://b> <http://c> <http://g> .\n",),
    "ttl": (b'@prefix x: <http://x/> .\nx:a x:b "c", 1, [ x:d ( x:e ) ] ; a x:F .\n',),
    "trig": (b"@prefix x: <http://x/> .\nx:g { x:a x:b x:c }\n",),
    "rdf": (
        f'<?xml version="1.0" encoding="UTF-8"?>\n{RDF}<x:C rdf:ID="a" xml:base="http://b/"><x:p>c</x:p></x:C></rdf:RDF>'.encode(),
        f"<!DOCTYPE r [<!ENTITY a 'http://a/'>]>\n{RDF}<x:C rdf:about='&a;b'/></rdf:RDF>".encode(),
        f'<?xml version="1.0" encoding="shift_jis"?>{RDF}</rdf:RDF>'.encode(),
    ),
    "ofn": (
        b"Prefix(:=<http://x/>)\nOntology(<http://x> SubClassOf(:A ObjectSomeValuesFrom(:p :B)) ClassAssertion(:A :i))\n",
    ),
    "owx": (
        b'<?xml version="1.0"?>\n<Ontology xmlns="http://www.w3.org/2002/07/owl#" ontologyIRI="http://x"><SubClassOf>'
        b'<Class IRI="http://x/A"/><Class IRI="http://x/B"/></SubClassOf></Ontology>',
    ),
    "dl": (
        b'.decl a(x:symbol, y:number)\na("b", 0x1f - 2).\n.decl c(x:number)\nc(1 / y) :- a(_, y), !a("c", y).\n.output c\n',
    ),
    "txt": (b"+\tr\ta\t1\n-\tr\tb\t2\n",),
}
READ = {
    "facts": '.decl r(x:symbol, y:number)\n.input r(filename="{file}"{more})\n.output r(filename="out.jsonl")\n',
    "nt": '.decl r(x:term, y:term, z:term)\n.input r(filename="{file}")\n.output r(filename="out.ttl")\n',
    "nq": '.decl r(x:term, y:term, z:term, g:term)\n.input r(filename="{file}")\n.output r(filename="out.trig")\n',
}
LIKE = {"csv": "facts", "jsonl": "facts", "parquet": "facts", "ttl": "nt", "rdf": "nt", "trig": "nq"}


def damaged(rng: Random, text: bytes) -> bytes:
    """The text with something put in, taken out, doubled or changed."""
    for _ in range(rng.randint(1, 3)):
        at, end = sorted(rng.randint(0, len(text)) for _ in range(2))
        match rng.randrange(5):
            case 0:
                text = text[:at] + rng.choice(ODD) + text[at:]
            case 1:
                text = text[:at] + rng.choice(ODD) + text[end:]
            case 2:
                text = text[:at] + text[end:]
            case 3:
                text = text[:end] + text[at:end] * rng.choice((1, 2, 50)) + text[end:]
            case _:
                text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
    return text


def table(rng: Random) -> pa.Table:
    """A table that may fit or not, with texts that may not be UTF-8."""
    offsets = pa.array([0, 1, 3], pa.int32()).buffers()[1]
    texts = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(rng.choice((b"abc", b"\xff\xc3a", b"a\xed\xa0"))))
    columns: list[Callable[[], pa.Array]] = [
        lambda: texts,
        lambda: pa.array(["a", None]),
        lambda: pa.array([1, 2**40]),
        lambda: pa.array([1.5, float("nan")]),
        lambda: pa.array([[1], []]),
        lambda: pa.array([b"\xff", b""]),
    ]
    return pa.table({name: rng.choice(columns)() for name in rng.choice(("xy", "xy", "yx", "x", "ab", "xyz"))})


def written(rng: Random, folder: Path) -> tuple[str, ...]:
    """Writes files with a mistake, and returns a command that reads them."""
    form = rng.choice([*TEXTS, "parquet"])
    file = folder / f"bad.{form}"
    if form == "parquet":
        pq.write_table(table(rng), file)
    else:
        file.write_bytes(rng.choice(TEXTS[form]))
    if form != "parquet" or rng.random() < 0.3:
        file.write_bytes(damaged(rng, file.read_bytes()))
    if form not in ("parquet", "dl", "txt", "ofn", "owx") and rng.random() < 0.2:
        packed = gzip.compress(file.read_bytes())
        file = folder / f"bad.{form}.gz"
        file.write_bytes(packed if rng.random() < 0.5 else damaged(rng, packed))
    if form == "dl":
        return "run", file.name, "--engine", "memory"
    if form == "txt":
        return "update", "--state", "state", file.name
    if form in ("ofn", "owx") or (form in ("ttl", "rdf") and rng.random() < 0.5):
        return "translate", file.name
    more = rng.choice(("", ', delimiter="\\0"', ', headers=true, delimiter=","', ", rfc4180=true")) * (
        form != "parquet"
    )
    text = READ[LIKE.get(form, form)].format(file=file.name, more=more)
    (folder / "read.dl").write_text(text)
    skip = ("--skip-malformed",) if LIKE.get(form, form) != "facts" and rng.random() < 0.3 else ()
    return "run", "read.dl", "--engine", "memory", *skip


def test_every_input_is_understood_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evermat_command: Evermat
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made.dl").write_text('.decl r(x:symbol, y:number)\nr("b", 2).\n')
    assert evermat_command("run", "made.dl", "--engine", "memory", "--state", "state").code == 0
    for seed in range(COUNT):
        for old in tmp_path.glob("bad.*"):
            old.unlink()
        command = written(Random(seed), tmp_path)
        done = evermat_command(*command)
        assert done.code in (0, 2, 3), (seed, command, done)
        assert "Traceback" not in done.err, (seed, command, done)
        assert done.code == 0 or done.err.startswith(("error[E", "warning")), (seed, command, done)
