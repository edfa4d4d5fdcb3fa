"""N-Triples and N-Quads: the terms are those of programs, and the fast ways agree with pyoxigraph on every line."""

from __future__ import annotations

import gzip
import io as streams
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
from evermat.core.errors import DataError
from evermat.io import read_relation
from evermat.io.error_report import Findings
from evermat.io.formats.registry import AS_IT_IS
from evermat.io.rdf import ntriples
from evermat.io.rdf.read import read_rdf
from evermat.io.rdf.terms import Quads, encode, facts_of
from evermat.io.schema import table_of
from evermat.language.model import Io
from evermat.language.terms import literal_term
from tests.io.relations import relation, rows_of
from tests.support.environment import LONG

XSD = "http://www.w3.org/2001/XMLSchema#"


def read(text: str | bytes, types: str = "ttt", size: int = 1 << 20, name: str = "r.nt") -> list[tuple]:
    content = text.encode() if isinstance(text, str) else text
    rel = relation(types)
    parts = read_rdf(
        streams.BytesIO(content), name, AS_IT_IS, Findings(name), lambda quads: facts_of(quads, rel), size=size
    )
    return rows_of(table_of(rel, parts))


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


def test_blank_nodes_of_several_files_are_different(tmp_path):
    for name in ("a.nt", "b.nt"):
        (tmp_path / name).write_text("_:b0 <http://p> _:b1 .\n")
    (tmp_path / "c.nt.gz").write_bytes(gzip.compress(b"_:b0 <http://p> _:b1 .\n"))
    found = read_relation(Io(relation("sts"), path="*.nt*"), tmp_path)
    assert rows_of(found) == [(f"_:f{n}_b0", "<http://p>", f"_:f{n}_b1") for n in (1, 2, 3)]
    assert rows_of(read_relation(Io(relation("sts"), path="b.nt"), tmp_path)) == [("_:b0", "<http://p>", "_:b1")]


# --- the fast way --------------------------------------------------------------------------------------------


def exactly(line: bytes, *, graphs: bool = False) -> list[tuple[str, ...]] | None:
    """The triples of a line by pyoxigraph alone, or None if it is wrong or not supported."""
    found: list[tuple[str, ...]] = []
    try:
        for quad in rdf.parse(line, format=rdf.RdfFormat.N_QUADS if graphs else rdf.RdfFormat.N_TRIPLES):
            term = quad.object
            if isinstance(term, rdf.Triple) or (isinstance(term, rdf.Literal) and term.direction):
                return None
            if isinstance(term, rdf.Literal):
                spelled = literal_term(term.value, language=term.language or "", datatype=term.datatype.value)
            else:
                spelled = str(term)
            named = [] if not graphs else [str(quad.graph_name)] if quad.graph_name != rdf.DefaultGraph() else ['""']
            found.append((str(quad.subject), str(quad.predicate), spelled, *named))
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
GRAPHS = st.sampled_from(["", "", "<http://g>", "_:g", "<http://g/é>", "<g>", '"g"', '""', "_:g.", "\t<http://g>"])
LINES = st.builds(
    lambda s, p, o, g, spaces, end: s + spaces[0] + p + spaces[1] + o + spaces[2] + (g + spaces[3]) * bool(g) + end,
    PLAIN_IRI | TERMS,
    st.just("<http://p>") | TERMS,
    PLAIN_IRI | TERMS | LITERALS,
    GRAPHS,
    st.just("    ") | st.tuples(SPACES, SPACES, SPACES, SPACES),
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


@pytest.mark.slow
@settings(max_examples=2000 if LONG else 150)
@given(mutated())
def test_every_line_is_read_as_pyoxigraph_reads_it(line):
    expected = exactly(line)
    try:
        assert read(line) == expected
    except DataError:
        assert expected is None


@pytest.mark.slow
@settings(max_examples=2000 if LONG else 150)
@given(mutated())
def test_every_line_of_quads_is_read_as_pyoxigraph_reads_it(line):
    expected = exactly(line, graphs=True)
    try:
        assert read(line, "tttt", name="r.nq") == expected
    except DataError:
        assert expected is None


@settings(max_examples=500 if LONG else 40)
@given(st.lists(mutated(), max_size=6), st.integers(1, 60), st.booleans())
def test_lines_are_read_one_by_one(lines, size, graphs):
    expected = [exactly(line, graphs=graphs) for line in lines]
    content = b"".join(line + b"\n" for line in lines)
    types, name = ("tttt", "r.nq") if graphs else ("ttt", "r.nt")
    try:
        assert read(content, types, size, name) == [triple for triples in expected for triple in triples]
    except DataError as error:
        wrong = [number for number, triples in enumerate(expected, 1) if triples is None]
        assert [problem.source.first_line for problem in error.problems] == wrong


def refuse(*_, **__):
    raise AssertionError


def test_ordinary_lines_take_the_fast_path(monkeypatch):
    monkeypatch.setattr(ntriples, "read_fast", refuse)
    monkeypatch.setattr(ntriples, "read_slowly", refuse)
    iris = ["<http://a.b/c#d>", "_:b1", "<urn:x>", "<http://a/%20é?q=1>"]
    literals = ['"é \\" x"', '"a"@en-GB', f'"1"^^<{XSD}integer>', f'"a"^^<{XSD}string>']
    assert len(objects(*iris, *literals)) == 8
    assert len(read("_:a <http://b> _:c .\r\n_:a <http://b> _:d .", "ttt")) == 2
    quads = read(
        '_:a <http://b> "c d" .\n_:a <http://b> "c <d>" <http://g> .\n_:a <http://b> _:c _:g .\n', "tttt", name="r.nq"
    )
    assert [row[2:] for row in quads] == [('"c d"', '""'), ('"c <d>"', "<http://g>"), ("_:c", "_:g")]


def test_lines_with_other_blanks_need_no_parser(monkeypatch):
    monkeypatch.setattr(ntriples, "read_slowly", refuse)
    text = f' _:a\t<http://b>  "c"@EN.\n_:a <http://b> "d"^^<{XSD}string> .\n_:a <http://b> "e"^^<{XSD}string>\t. \r\n'
    assert [row[2] for row in read(text)] == ['"c"@en', '"d"', '"e"']


def test_many_odd_lines_are_parsed_together(monkeypatch):
    monkeypatch.setattr(ntriples, "_read_line", None)
    text = '<http://a> <http://b> "1" .\n# c\n<http://a> <http://b> "\\u0032" .\n' * 50
    assert [row[2] for row in read(text)] == ['"1"', '"2"'] * 50


def test_without_the_fast_path_all_is_the_same(monkeypatch):
    text = "".join(f'<http://a/{i}> <http://b> "{i}"@EN .\n_:b{i} <http://b> <http://a/{i}> .\n' for i in range(100))
    fast = read(text)
    none = np.empty(0, np.int64)
    monkeypatch.setattr(ntriples, "read_plain", lambda _: (Quads(*[encode([])] * 3), none))
    assert read(text) == fast
    monkeypatch.setattr(ntriples, "read_fast", lambda _: ([pa.array([], pa.string())] * 3, none))
    assert read(text) == fast


@pytest.mark.slow
def test_pyoxigraph_is_loaded_only_for_lines_that_need_it():
    code = """
import io, sys
from evermat.io.error_report import Findings
from evermat.io.rdf.read import read_rdf
from evermat.io.formats.registry import AS_IT_IS
for text, loaded in [(b"<http://a> <http://b> _:c .", False), (b"<http://a> <http://b> _:c. # d", True)]:
    read_rdf(io.BytesIO(text), "r.nt", AS_IT_IS, Findings("r"), lambda quads: quads)
    assert ("pyoxigraph" in sys.modules) == loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
