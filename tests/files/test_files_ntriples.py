"""N-Triples: the terms are those of programs, and the fast way agrees with pyoxigraph on every line."""

from __future__ import annotations

import gzip
import io as streams
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyoxigraph as rdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat.errors import DataError
from evermat.files import ntriples, read_relation
from evermat.files.findings import Findings
from evermat.program.model import Io
from evermat.program.terms import literal_term
from tests.files.helpers import relation, rows_of

DATA = Path(os.environ.get("EVERMAT_DATA", "no such folder"))
XSD = "http://www.w3.org/2001/XMLSchema#"


def read(text: str | bytes, types: str = "ttt", size: int = 1 << 20) -> list[tuple]:
    content = text.encode() if isinstance(text, str) else text
    return rows_of(ntriples.read_ntriples(streams.BytesIO(content), relation(types), Findings("r.nt"), size))


def objects(*spelled: str) -> list[str]:
    return [row[2] for row in read("".join(f"<http://a> <http://b> {term} .\n" for term in spelled))]


@pytest.mark.parametrize(
    ("written", "held"),
    [
        ("<http://a/b#c>", "<http://a/b#c>"),
        (r"<http://a/\u00E9\U0001F600>", "<http://a/é😀>"),
        ("_:b0", "_:b0"),
        ("_:a.b-c", "_:a.b-c"),
        ('""', '""'),
        (f'"x"^^<{XSD}string>', '"x"'),
        (f'"x"^^<{XSD[:-1]}\\u0023string>', '"x"'),
        (f'"01"^^<{XSD}integer>', f'"01"^^<{XSD}integer>'),
        ('"x"@EN-us', '"x"@en-us'),
        ('"@X"@De', '"@X"@de'),
        ('"x"@zh-Hant-TW', '"x"@zh-hant-tw'),
        (r'"\t\b\n\r\f\"\\"', r'"\t\b\n\r\f\"\\"'),
        (r'"\'\u0041\U00000042\u0009"', r'''"'AB\t"'''),
        ('"\t\x7f\x01é\u2028"', '"\\t\\u007F\\u0001é\u2028"'),
        (r'"\u0000"', r'"\u0000"'),
        ('"^^<a>"', '"^^<a>"'),
    ],
)
def test_one_term_has_one_spelling(written, held):
    assert objects(written) == [held]


def test_what_is_read_equals_what_programs_say(tmp_path):
    (tmp_path / "data.nt").write_text(
        '<http://a#x> <http://p> "tab\\u0009" .\n'
        f'<http://a#x> <http://p> "s"^^<{XSD}string> .\n'
        f'<http://a#x> <http://p> "1"^^<{XSD}integer> .\n'
        '<http://a#x> <http://p> "c\\u0061t"@EN .\n'
        "<http://a#x> <http://p> <http://a#\\u0079> .\n"
    )
    program = evermat.Program.parse(
        f"""
        .prefix a: <http://a#>
        .prefix xsd: <{XSD}>
        .decl t(s:term, p:term, o:term)
        .decl found(n:number)
        found(1) :- t(a:x, <http://p>, "tab\\t").
        found(2) :- t(a:x, <http://p>, "s"^^xsd:string).
        found(3) :- t(a:x, <http://p>, "1"^^xsd:integer).
        found(4) :- t(a:x, <http://p>, "cat"@en).
        found(5) :- t(a:x, <http://p>, a:y).
        """
    )
    facts = rows_of(read_relation(Io(relation("ttt"), path="data.nt"), tmp_path))
    assert sorted(program.materialise({"t": facts})["found"]) == [(1,), (2,), (3,), (4,), (5,)]


def test_lines_that_are_no_triples_are_passed_over():
    text = "\ufeff# begin\r\n\r\n<http://a> <http://b> _:c . # end\r\n  \t\n_:d<http://b>_:c.\n# a\r_:e <http://b> _:c .\r\r# z"
    expected = [("<http://a>", "<http://b>", "_:c"), ("_:d", "<http://b>", "_:c"), ("_:e", "<http://b>", "_:c")]
    for size in range(1, 40):
        assert read(text, size=size) == expected
    assert read("") == read("\n\n") == read("# nothing") == []


def test_blank_nodes_of_all_files_are_the_same(tmp_path):
    for name in ("a.nt", "b.nt"):
        (tmp_path / name).write_text("_:b0 <http://p> _:b1 .\n")
    (tmp_path / "c.nt.gz").write_bytes(gzip.compress(b"_:b0 <http://p> _:b1 .\n"))
    found = read_relation(Io(relation("sts"), path="*.nt*"), tmp_path)
    assert rows_of(found) == [("_:b0", "<http://p>", "_:b1")] * 3


# --- the fast way --------------------------------------------------------------------------------------------


def exactly(line: bytes) -> list[tuple[str, str, str]] | None:
    """The triples of a line by pyoxigraph alone, or None if it is wrong or not supported."""
    found = []
    try:
        for quad in rdf.parse(line, format=rdf.RdfFormat.N_TRIPLES):
            term = quad.object
            if isinstance(term, rdf.Triple) or (isinstance(term, rdf.Literal) and term.direction):
                return None
            if isinstance(term, rdf.Literal):
                spelled = literal_term(term.value, language=term.language or "", datatype=term.datatype.value)
            else:
                spelled = str(term)
            found.append((str(quad.subject), str(quad.predicate), spelled))
    except SyntaxError:
        return None
    return found


IRIS = st.one_of(
    st.sampled_from(
        [
            *[
                "http://a",
                "http://a.b:80/c?d=/?#e/?",
                "urn:x:y",
                "mailto:a@b",
                "a:",
                "http://[::1]/",
                "file:///x",
                "a:/b",
            ],
            *[
                "http://a/%41",
                "http://a/%4",
                "http://é/é",
                "http://a:b/",
                "//a",
                "a",
                "",
                "http:",
                "1a:b",
                "http://a b",
            ],
            *["http://u@a/", "a://", "http://a/[b]", "http://a/\ue000?\ue000", "http://a#b#c", "http://a/\ufdd0"],
            *[f"{XSD}string", f"{XSD}integer", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "x:\U0001f600"],
        ]
    ),
    st.text("abAZ09:/?#[]@!$&'()*+,;=%-._~é\u3000\ufffd{}|^`\\ <>\"\t", max_size=8).map(lambda t: f"http://a{t}"),
    st.text("abA0:/?#[]@%-._", max_size=8),
)
STRINGS = st.text(st.sampled_from(list("aé😀'\"\\@^ \t\x00\x1f\x7f\r\x85\u2028.<>")), max_size=6) | st.sampled_from(
    [r"\t", r"\'", r"\"", r"\\", r"\u0041", r"\U0001F600", r"\x", "\\", r"\uD800", r"\u00"]
)
LABELS = st.text("ab09_-.:é·", min_size=1, max_size=4)
LANGUAGES = st.sampled_from(
    ["en", "EN", "en-GB", "x-y", "a", "abcd", "abc-de", "ab-c", "en--ltr", "toolongtag", "e1", ""]
)
LITERALS = st.tuples(
    STRINGS, st.one_of(st.just(""), LANGUAGES.map(lambda t: f"@{t}"), IRIS.map(lambda t: f"^^<{t}>"))
).map(lambda parts: f'"{parts[0]}"{parts[1]}')
TERMS = st.one_of(IRIS.map(lambda t: f"<{t}>"), LABELS.map(lambda t: f"_:{t}"), LITERALS)
PLAIN_IRI = st.sampled_from(["<http://a/b>", "<http://example.org/p#q>", "_:b"])
SPACES = st.sampled_from(["", " ", "\t", "  ", " ", " "])
LINES = st.builds(
    lambda s, p, o, spaces, end: s + spaces[0] + p + spaces[1] + o + spaces[2] + end,
    PLAIN_IRI | TERMS,
    st.just("<http://p>") | TERMS,
    PLAIN_IRI | TERMS | LITERALS,
    st.tuples(SPACES, SPACES, SPACES),
    st.sampled_from(
        [".", ".", ".", ".", "", ". ", ".\r", ". # c", "..", "^^<http://a> .", ".\r<http://a><http://b>_:c."]
    ),
)


@st.composite
def mutated(draw):
    line = draw(LINES)
    if draw(st.booleans()):
        at = draw(st.integers(0, len(line)))
        line = (
            line[:at]
            + draw(st.sampled_from(list('<>"\\@^_:. \t#é\x00%/')) | st.just(""))
            + line[at + draw(st.integers(0, 1)) :]
        )
    return line.replace("\n", "").encode()


@settings(max_examples=1500)
@given(mutated())
def test_every_line_is_read_as_pyoxigraph_reads_it(line):
    expected = exactly(line)
    try:
        assert read(line) == expected
    except DataError:
        assert expected is None


@settings(max_examples=300)
@given(st.lists(mutated(), max_size=6), st.integers(1, 60))
def test_lines_are_read_one_by_one(lines, size):
    expected = [exactly(line) for line in lines]
    content = b"".join(line + b"\n" for line in lines)
    try:
        assert read(content, size=size) == [triple for triples in expected for triple in triples]
    except DataError as error:
        wrong = [number for number, triples in enumerate(expected, 1) if triples is None]
        assert [problem.source.first_line for problem in error.problems] == wrong


def test_ordinary_lines_take_the_fast_path(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(ntriples, "read_slowly", refuse)
    iris = ["<http://a.b/c#d>", "_:b1", "<urn:x>", "<http://a/%20é?q=1>"]
    literals = ['"é \\" x"', '"a"@en-GB', f'"1"^^<{XSD}integer>', f'"a"^^<{XSD}string>']
    assert len(objects(*iris, *literals)) == 8


def test_many_odd_lines_are_parsed_together(monkeypatch):
    monkeypatch.setattr(ntriples, "_read_line", None)
    text = '<http://a> <http://b> "1" .\n# c\n<http://a> <http://b> "\\u0032" .\n' * 50
    assert [row[2] for row in read(text)] == ['"1"', '"2"'] * 50


def test_without_the_fast_path_all_is_the_same(monkeypatch):
    text = "".join(f'<http://a/{i}> <http://b> "{i}"@EN .\n_:b{i} <http://b> <http://a/{i}> .\n' for i in range(100))
    fast = read(text)
    nothing = ([pa.array([], pa.string())] * 3, np.empty(0, np.int64))
    monkeypatch.setattr(ntriples, "read_fast", lambda _: nothing)
    assert read(text) == fast


def test_pyoxigraph_is_loaded_only_for_lines_that_need_it():
    code = """
import io, sys
from evermat.files import ntriples
from evermat.files.findings import Findings
from tests.files.helpers import relation
for text, loaded in [(b"<http://a> <http://b> _:c .", False), (b"<http://a> <http://b> _:c. # d", True)]:
    ntriples.read_ntriples(io.BytesIO(text), relation("ttt"), Findings("r"))
    assert ("pyoxigraph" in sys.modules) == loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


# --- the tests of the W3C ------------------------------------------------------------------------------------


@pytest.mark.skipif(not DATA.is_dir(), reason="EVERMAT_DATA names no folder with data")
def test_the_tests_of_the_w3c():
    folder = DATA / "rdf-tests" / "rdf-n-triples"
    manifest = rdf.Store()
    manifest.load(path=str(folder / "manifest.ttl"), format=rdf.RdfFormat.TURTLE, base_iri="http://m/")
    kinds = (
        "SELECT ?kind ?file { ?t a ?kind ; <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#action> ?file }"
    )
    checked = {True: 0, False: 0}
    for kind, file in manifest.query(kinds):
        io = Io(relation("ttt"), path=file.value.rpartition("/")[2])
        positive = "Negative" not in kind.value
        if positive:
            content = (folder / io.path).read_bytes()
            assert rows_of(read_relation(io, folder)) == exactly(content), io.path
        else:
            with pytest.raises(DataError, match=r"this line is not N-Triples|is not valid UTF-8"):
                read_relation(io, folder)
        checked[positive] += 1
    assert checked == {True: 41, False: 29}
