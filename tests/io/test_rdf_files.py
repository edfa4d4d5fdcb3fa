"""RDF files: whatever is written is read again, mistakes are skipped on request, and triples find their relations."""

from __future__ import annotations

import gzip
import io as streams
import pickle
import re
import tempfile
from pathlib import Path
from xml.parsers import expat

import pyarrow as pa
import pyoxigraph as rdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.core.errors import DataError, ResourceError
from evermat.io import Outputs, RdfOptions, Router, read_relation, read_triples
from evermat.io.column_match import conform
from evermat.io.rdf.read import sniff
from evermat.io.rdf.terms import ENCODED, SCHEMA, Triples
from evermat.io.rdf.writer import write_graph
from evermat.io.read import blank_prefixes, rdf_inputs
from evermat.io.schema import arrow_schema
from evermat.language.model import Io, Relation
from evermat.language.terms import RDF_TYPE, literal_term
from tests.io.relations import relation, rows_of, table
from tests.support.environment import LONG

SYNTAXES = ("nt", "nq", "ttl", "trig", "rdf")
XSD = "http://www.w3.org/2001/XMLSchema#"
Row = tuple[str, ...]


def triples(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * 3
    return pa.table({name: pa.array(column, pa.string()) for name, column in zip("spog", columns, strict=False)})


def written(rows: list[Row], syntax: str) -> tuple[bytes, int]:
    """A file with some triples, and how many are not in it."""
    sink = streams.BytesIO()
    done = write_graph(sink, triples(rows).to_batches(max_chunksize=3), syntax)
    assert sum(done) == len(rows)
    return sink.getvalue(), done.left_out


def read(content: bytes, syntax: str, types: str = "ttt", **options: object) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, f"r.{syntax}").write_bytes(content)
        return rows_of(read_relation(Io(relation(types), path=f"r.{syntax}"), Path(folder), RdfOptions(**options)))


def anonymous(rows: list[Row]) -> set[rdf.Quad]:
    """Triples, with names for blank nodes that depend on nothing but the triples."""
    text = (
        "".join(" ".join([*row, ".\n"]) for row in rows).replace('"" .\n', ".\n") if rows and len(rows[0]) == 4 else ""
    )
    text = text or "".join(" ".join([*row, ".\n"]) for row in rows)
    found = rdf.Dataset(rdf.parse(text.encode(), format=rdf.RdfFormat.N_QUADS))
    found.canonicalize(rdf.CanonicalizationAlgorithm.UNSTABLE)
    return set(found)


# --- round trips ---------------------------------------------------------------------------------------------

IRIS = st.one_of(
    st.sampled_from(
        [
            *[
                "http://a.b/c#d",
                "urn:x:y",
                "http://a/",
                "http://a#",
                "a:b",
                "mailto:a@b",
                "http://x/1",
                "http://[::1]/é",
            ],
            *[
                "http://x/a.b.",
                "http://x/a(b)'",
                "http://x/%20",
                "http://x/a?b=c&d;e",
                "file:///x",
                "http://x/\U00010000",
            ],
            *[RDF_TYPE[1:-1], f"{XSD}integer", "http://www.w3.org/1999/02/22-rdf-syntax-ns#li", "tag:a,b:c"],
        ]
    ),
    st.text("aZ09é漢:/?#@!$&'()*+,;=-._~", max_size=8).filter(lambda t: "#" not in t).map(lambda t: f"http://a/{t}"),
).map(lambda text: f"<{text}>")
TEXTS = st.text(
    st.one_of(
        st.sampled_from("\t\n\r\x00\x01\x0b\x7f\x85\u2028\ufffe\uffff\ufeff\"'\\<>&]@^. é漢😀"),
        st.characters(codec="utf-8"),
    ),
    max_size=8,
)
LITERALS = st.one_of(
    TEXTS.map(literal_term),
    st.builds(lambda t, tag: literal_term(t, language=tag), TEXTS, st.sampled_from(["en", "DE", "zh-hant-tw", "x-y"])),
    st.builds(lambda t, iri: literal_term(t, datatype=iri[1:-1]), TEXTS, IRIS),
)
BLANKS = st.sampled_from(["_:a", "_:b1", "_:1", "_:a.b-c", "_:é", "_:0_"])
GRAPHS = st.sampled_from(['""', '""', "<http://g>", "_:g", "_:b1"])
TRIPLES = st.tuples(IRIS | BLANKS, IRIS, IRIS | BLANKS | LITERALS)


def unsayable(row: Row) -> bool:
    """Whether RDF/XML cannot say a triple."""
    _, p, o = row[:3]
    return (
        re.search(r"[^\W\d][\w.-]*>$", p) is None
        or p == "<http://www.w3.org/1999/02/22-rdf-syntax-ns#li>"
        or re.search(r'^".*(?:\\[bf]|\\u00[01]|[\ufffe\uffff])', o) is not None
    )


@pytest.mark.slow
@settings(deadline=None, max_examples=600 if LONG else 40)
@given(st.lists(TRIPLES, max_size=8), st.sampled_from(SYNTAXES))
def test_what_is_written_is_read_again(rows: list[Row], syntax: str) -> None:
    content, left_out = written(rows, syntax)
    found = read(content, syntax)
    if syntax == "rdf":
        assert left_out == sum(map(unsayable, rows))
        rows = [row for row in rows if not unsayable(row)]
        if "\U00010000" not in content.decode():  # newer editions of XML take it for a letter
            expat.ParserCreate(namespace_separator=" ").Parse(content, True)
    else:
        assert left_out == 0
    if syntax in ("nt", "nq"):
        assert found == rows
    else:
        assert anonymous(found) == anonymous(rows)


@pytest.mark.slow
@settings(deadline=None, max_examples=300 if LONG else 25)
@given(
    st.lists(st.tuples(IRIS | BLANKS, IRIS, IRIS | BLANKS | LITERALS, GRAPHS), max_size=8),
    st.sampled_from(["nq", "trig"]),
)
def test_graphs_are_written_and_read_again(rows: list[Row], syntax: str) -> None:
    content, left_out = written(rows, syntax)
    assert left_out == 0
    found = read(content, syntax, "tttt")
    if syntax == "nq":
        assert found == rows
        assert read(content, "nq") == [row[:3] for row in rows]
    else:
        assert anonymous(found) == anonymous(rows)


NO_TERM = st.one_of(
    st.sampled_from(
        [
            *[
                '"a" . # ',
                "<a>",
                "<http://a b>",
                '"a',
                "a",
                "",
                '"a"@e',
                '"a"^^<b>',
                "_:",
                "_:a.",
                '"\\q"',
                '"a"@en--ltr',
            ],
            *[
                "<<( <a:b> <a:b> <a:b> )>>",
                "_:a _:b",
                '"a\nb"',
                "<a:b> .\n<a:b>",
                '""@',
                "_:a#",
                '"\ud800"'[:1],
                '"a" "b"',
            ],
            *[f'"a"^^<{RDF_TYPE[1:-5]}langString>', '"a\\uD800"', "<http://a/\\q>"],
        ]
    ),
    st.text('<>"_:@^\\. ab#\n', max_size=6).filter(
        lambda t: not re.fullmatch(r'_:[ab]+|"[ab .:@^#<>_]*"(@[ab]{2,8})?|', t)
    ),
)


@pytest.mark.slow
@settings(deadline=None, max_examples=1000 if LONG else 60)
@given(st.lists(st.tuples(TRIPLES, st.integers(0, 2), NO_TERM | LITERALS), max_size=6), st.sampled_from(SYNTAXES[:4]))
def test_what_is_no_rdf_is_left_out(given_rows: list[tuple[Row, int, str]], syntax: str) -> None:
    rows, right = [], []
    for row, position, text in given_rows:
        changed = tuple(text if i == position else term for i, term in enumerate(row))
        rows += [row, changed]
        right += [row]
        if text.startswith('"') and position == 2 and is_literal(text):
            right += [changed]
    content, left_out = written(rows, syntax)
    assert left_out == len(rows) - len(right)
    found = read(content, syntax)
    if syntax in ("nt", "nq"):
        assert found == right
    else:
        assert anonymous(found) == anonymous(right)


def is_literal(text: str) -> bool:
    """Whether a text is one literal, and nothing else, says pyoxigraph."""
    try:
        (quad,) = rdf.parse(f"<a:b> <a:b> {text} .".encode(), format=rdf.RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError):
        return False
    term = quad.object
    return (
        term.direction is None
        and literal_term(term.value, language=term.language or "", datatype=term.datatype.value) == text
    )


def test_a_relation_is_written_and_read_again(tmp_path: Path) -> None:
    name = "<http://x/C>"
    rows: dict[str, list[Row]] = {
        "t": [("<http://a>",), ("_:b",)],
        "tt": [("<http://a>", '"1"'), ("_:b", "_:b")],
        "ttt": [("<http://a>", "<http://p>", '"ä"@en'), ("_:b", RDF_TYPE, name)],
        "sst": [("<http://a>", "<http://p>", '"ä"@en')],
        "tttt": [
            ("<http://a>", "<http://p>", "<http://b>", '""'),
            ("<http://a>", "<http://p>", "<http://b>", "<http://g>"),
        ],
    }
    for types, facts in rows.items():
        rel = relation(types, name)
        for ending in ("nt", "nq.gz", "ttl", "trig", "rdf", "owl", "xml.gz"):
            if types != "tttt" or ending in ("nq.gz", "trig"):
                io = Io(rel, path=f"{types}.{ending}")
                with Outputs() as outputs:
                    assert outputs.write(table(rel, [*facts, ('"no"', *facts[0][1:])]), io, tmp_path) == 1
                    outputs.commit()
                found = rows_of(read_relation(io, tmp_path))
                assert sorted(found) == sorted(tuple(t.replace("_:b1", "_:b") for t in row) for row in facts) or (
                    {tuple(t.replace("_:b1", "_:b") for t in row) for row in found} == set(facts)
                )


def test_a_class_and_a_property_are_chosen_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.ttl").write_text(
        "@prefix x: <http://x/> . x:a a x:C, x:D ; x:p x:b ; x:C x:d . x:b a x:C . x:C x:p x:C . x:c x:q x:C ."
    )

    def facts(name: str, columns: str) -> list[Row]:
        return rows_of(read_relation(Io(relation(columns, name), path="x.ttl"), tmp_path))

    assert facts("<http://x/C>", "t") == [("<http://x/a>",), ("<http://x/b>",)]
    assert facts("<http://x/p>", "st") == [("<http://x/a>", "<http://x/b>"), ("<http://x/C>", "<http://x/C>")]
    assert facts("<http://x/C>", "tt") == [("<http://x/a>", "<http://x/d>")]
    assert facts(RDF_TYPE, "tt")[0] == ("<http://x/a>", "<http://x/C>")
    assert facts("<http://x/none>", "t") == facts("<http://x/none>", "tt") == []
    assert len(facts("any", "ttt")) == 7
    assert facts("any", "tttt")[0][3] == '""'


def test_lines_are_as_sorted_as_the_table(tmp_path: Path) -> None:
    rows = [
        ("_:b", "<http://p>", "_:b1"),
        ("_:b1", "<http://p>", "_:b"),
        ("<http://a>", "<http://p>", '"b"'),
        ("<http://a/>", "<http://p>", '"a"'),
    ]
    with Outputs() as outputs:
        outputs.write_graph(tmp_path / "x.nt", triples(rows))
        outputs.write_graph(tmp_path / "y.nt", [triples(rows)], "other")
        outputs.commit()
    lines = (tmp_path / "x.nt").read_bytes().splitlines()
    assert lines == sorted(lines)
    assert read((tmp_path / "y.nt").read_bytes(), "nt") == rows


def test_encoded_columns_are_written_too() -> None:
    rows = [("_:b", "<http://p>", "_:c"), ('"x"', "<http://p>", "_:c"), ("_:d", "<http://p>", "_:c")]
    plain = triples(rows)
    sink = streams.BytesIO()
    assert write_graph(sink, [plain.cast(ENCODED), plain.slice(0, 0)], "nt") == (2, 1)
    assert sink.getvalue() == b"_:b <http://p> _:c .\n_:d <http://p> _:c .\n"


def test_turtle_has_prefixes() -> None:
    rows = [(f"<http://a/x{i}>", RDF_TYPE, "<http://www.w3.org/2002/07/owl#Class>") for i in range(3)]
    content, _ = written(rows, "ttl")
    assert content.decode().startswith("@prefix ")
    assert "ns1:x0 a owl:Class ." in content.decode()


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "full.ttl").symlink_to("/dev/full")
    with Outputs() as outputs:
        outputs.write_graph(tmp_path / "full.ttl", [triples([("_:a", "<http://b>", "_:c")])])
        with pytest.raises(ResourceError, match="No space left"):
            outputs.commit()


def test_a_file_of_any_content_is_written(tmp_path: Path) -> None:
    with Outputs() as outputs:
        outputs.write_file(tmp_path / "x.ttl.gz", b"as it is")
        outputs.commit()
    assert (tmp_path / "x.ttl.gz").read_bytes() == b"as it is"


# --- formats -------------------------------------------------------------------------------------------------

ROOT = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'


@pytest.mark.parametrize(
    ("name", "start", "syntax"),
    [
        *[(f"x.{syntax}", b"", syntax) for syntax in ("nt", "nq", "ttl", "trig", "ofn", "owx")],
        ("X.TTL.GZ", b"<?xml", "ttl"),
        ("x.rdf", ROOT, "rdf"),
        ("x.owl", b"", "rdf"),
        ("x.owl", b'<?xml version="1.0"?>\n' + ROOT, "rdf"),
        ("x.owl", b"\xef\xbb\xbf<!-- @prefix -->\n" + ROOT, "rdf"),
        ("x.xml", b'<!DOCTYPE r [ <!ENTITY a "]>"> <!-- ] --> ]>' + ROOT, "rdf"),
        ("x.xml", b"<!DOCTYPE r [ <?x it's?> <!-- it's --> ]><Ontology a='b'/>", "owx"),
        ("x.owl", b"# a\n\n  #b\n@prefix x: <y> .", "ttl"),
        ("x.owl", b"\xef\xbb\xbf@base <http://x> .", "ttl"),
        ("x.xml", b"prefix x: <y>", "ttl"),
        ("x.xml", b"BASE<http://x>", "ttl"),
        ("x.owl", b"# nothing else", "ttl"),
        ("x.owl", b"<http://a> <http://b> <http://c> .", "ttl"),
        ("x.data", b"_:a <http://b> <http://c> .", "ttl"),
        ("x.owl", b"[] a <http://c> .", "ttl"),
        ("x.owl", b"# c\nPrefix(:=<http://x/>)\nOntology()", "ofn"),
        ("x.owl", b"Ontology (<http://x>)", "ofn"),
        ("x.rdf.gz", b"Prefix (a:=<b>)", "ofn"),
        ("x.owl", b'<?xml version="1.0"?><!-- c -->\n<Ontology xmlns="http://www.w3.org/2002/07/owl#">', "owx"),
        ("x.xml", b'<owl:Ontology xmlns:owl="http://www.w3.org/2002/07/owl#">', "owx"),
        ("x.xml", b"<OntologyX/>", "rdf"),
    ],
)
def test_the_beginning_tells_the_format(name: str, start: bytes, syntax: str) -> None:
    assert sniff(start, name) == syntax


def test_files_are_read_whatever_their_endings_say(tmp_path: Path) -> None:
    turtle = b"# c\n@prefix x: <http://x/> . x:a x:b _:c ."
    for name, content in {
        "x.owl": turtle,
        "x.xml.gz": gzip.compress(turtle),
        "x.any": turtle,
        "y.owl": b"\xef\xbb\xbf" + turtle,
        "y.ttl": b"\xef\xbb\xbf" + turtle,
        "z.owl": b'\xef\xbb\xbf<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://x/">'
        b'<r:Description r:about="http://x/a"><b r:nodeID="q"/></r:Description></r:RDF><!-- end -->\n',
    }.items():
        (tmp_path / name).write_bytes(content)
        found = read_triples(tmp_path / name)
        assert rows_of(found.table) == [("<http://x/a>", "<http://x/b>", "_:b1")]
        assert found.table.schema == SCHEMA


def read_bytes(file: Path, content: bytes, **options: bool) -> Triples:
    """The triples of a file with this content."""
    file.write_bytes(content)
    return read_triples(file, RdfOptions(**options))


def test_nothing_is_no_triples(tmp_path: Path) -> None:
    for name in ("x.nt", "x.nq", "x.ttl", "x.trig", "x.nt.gz"):
        (tmp_path / name).write_bytes(b"")
        assert read_triples(tmp_path / name).table.equals(SCHEMA.empty_table())
        assert read_triples(tmp_path / name).encoded.schema == ENCODED


@pytest.mark.parametrize(
    "declared",
    [
        "<!ENTITY o 'http://o/'>",
        """<!ENTITY h 'http://'>\n<!ENTITY o "&h;o/">""",
        "<!ENTITY q 'a \"quote\"'><!ENTITY o\n'http://o/' >",
        """<!-- it's ] --><!-- <!ENTITY o 'x'> --><!ENTITY % p ']'><!ENTITY o 'http://o/'>""",
        pytest.param("<!-- it's <!ENTITY o 'x'> -->" * 5000 + "<!ENTITY o 'http://o/'>", id="long"),
    ],
)
def test_entities_may_stand_in_single_quotes(tmp_path: Path, declared: str) -> None:
    def document(more: str) -> bytes:
        namespaces = 'xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="&o;"'
        fact = '<r:Description r:about="&o;a"><p r:resource="&o;b"/></r:Description>'
        return f'<?xml version="1.0"?><!DOCTYPE r:RDF [{declared}]><r:RDF {namespaces}>{fact}\n{more}</r:RDF>'.encode()

    expected = [("<http://o/a>", "<http://o/p>", "<http://o/b>")]
    assert rows_of(read_bytes(tmp_path / "x.rdf", document("")).table) == expected
    assert rows_of(read_bytes(tmp_path / "x.xml", document("")).table) == expected
    wrong = document('<r:Description r:about="x"/>')
    line = 2 + declared.count("\n")
    with pytest.raises(DataError, match=rf"^error\[E371\].*\n --> \S*x.rdf:{line}:1\n"):
        read_bytes(tmp_path / "x.rdf", wrong)
    left = read_bytes(tmp_path / "x.rdf", wrong, skip=True)
    assert (rows_of(left.table), left.skipped) == (expected, 1)


def test_a_document_type_that_nothing_ends_is_told_quickly(tmp_path: Path) -> None:
    for begin in ("<!-- it's -->" * 5000, "<!ENTITY a 'b'>" * 5000, "'" * 70_000, "<!DOCTYPE r [" * 5000):
        with pytest.raises(DataError, match=r"^error\[E370\]: this is not"):
            read_bytes(tmp_path / "x.owl", f"<!DOCTYPE r [{begin}".encode())


@pytest.mark.slow
def test_entities_do_not_blow_up(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 9))
    (tmp_path / "x.owl").write_text(
        f'<!DOCTYPE r [<!ENTITY a0 "aaaaaaaaaa">{entities}]>\n<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns="http://x/"><r:Description r:about="http://a"><p>&a8;</p></r:Description></r:RDF>'
    )
    with pytest.raises(DataError, match=r"this is not XML.*amplification"):
        read_triples(tmp_path / "x.owl")
    text = (tmp_path / "x.owl").read_text()
    (tmp_path / "x.owl").write_text(f"<!--{' ' * (1 << 17)}-->{text}")
    with pytest.raises(DataError, match=r"this is not XML.*amplification"):
        read_triples(tmp_path / "x.owl")
    (tmp_path / "x.owl").write_text(f"<!--{' ' * (1 << 17)}-->{text}".replace("&a8;", "&a1;"))
    assert read_triples(tmp_path / "x.owl").table.column("o").to_pylist() == [f'"{"a" * 100}"']


def test_options_can_be_sent_to_tasks() -> None:
    options = RdfOptions("http://b/", skip=True, blank="f1_")
    assert pickle.loads(pickle.dumps(options)) == options
    assert pickle.loads(pickle.dumps(Router.of({}))) == Router.of({})


# --- blank nodes ---------------------------------------------------------------------------------------------


def test_blank_nodes_of_several_files_stay_apart(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("_:x <http://p> _:y .\n")
    (tmp_path / "b.ttl").write_text("_:x <http://p> [ <http://p> _:x ] .\n")
    ios = [
        Io(relation("ttt", name), path=path)
        for name, path in (("t", "a.nt"), ("u", "b.ttl"), ("v", "b.ttl"), ("w", "*.[nt]*"))
    ]
    paths = rdf_inputs(ios, tmp_path)
    assert [path.name for path in paths] == ["a.nt", "b.ttl"]
    assert blank_prefixes(paths[:1]) == {paths[0]: ""}
    blanks = blank_prefixes(paths)
    first, second, third, both = (
        {t for row in rows_of(read_relation(io, tmp_path, blanks=blanks)) for t in row} for io in ios
    )
    assert first == {"_:f1_x", "<http://p>", "_:f1_y"}
    assert second == third == {"_:f2_b1", "<http://p>", "_:f2_b2"}
    assert both == first | second


def test_blank_nodes_are_numbered_as_they_appear(tmp_path: Path) -> None:
    path = tmp_path / "x.trig"
    path.write_text("_:z <http://p> _:y, _:z . _:g { _:y <http://p> _:x . [] <http://p> () }")
    expected = [
        ("_:b1", "_:b2"),
        ("_:b1", "_:b1"),
        ("_:b2", "_:b3"),
        ("_:b5", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#nil>"),
    ]
    for _ in range(2):
        assert [(s, o) for s, _, o in rows_of(read_triples(path).table)] == expected
        quads = rows_of(read_relation(Io(relation("tttt"), path="x.trig"), tmp_path))
        assert [(s, o) for s, _, o, _ in quads] == expected
        assert {g for *_, g in quads} == {'""', "_:b4"}
    assert {s for s, _, _ in rows_of(read_triples(path, RdfOptions(blank="f3_")).table)} == {
        "_:f3_b1",
        "_:f3_b2",
        "_:f3_b5",
    }


@pytest.mark.slow
def test_blank_nodes_are_the_same_across_blocks(tmp_path: Path) -> None:
    path = tmp_path / "x.ttl"
    path.write_text("".join(f"_:n{i} <http://p> _:n{i + 1} .\n" for i in range(40_000)))
    rows = rows_of(read_triples(path).table)
    assert rows == [(f"_:b{i + 1}", "<http://p>", f"_:b{i + 2}") for i in range(40_000)]


# --- mistakes ------------------------------------------------------------------------------------------------

TURTLE = """@prefix x: <http://x/> .
x:a x:p x:b ; x:q "unclosed .
x:a x:p <relative>, x:b . x:a x:p x:c .
x:a x:p (x:b y:c x:d) .
x:a x:p x:e .
PREFIX y: <http://y/>
x:a x:p y:c . x:a x:p "x"@en--ltr ; x:p x:b .
@prefix z <http://z/> .
x:a x:p z:b .
x:a x:p x:g "h" .
x:a x:p x:h"""


def skipping(name: str, content: str, tmp_path: Path, **options: object) -> tuple[list[Row], int]:
    (tmp_path / name).write_text(content)
    found: Triples = read_triples(tmp_path / name, RdfOptions(skip=True, **options))
    return [row[2] for row in rows_of(found.table)], found.skipped


def test_statements_with_mistakes_are_left_out_as_a_whole(tmp_path: Path) -> None:
    good = [f"<http://{o}>" for o in ("x/c", "x/e", "y/c")]
    assert skipping("x.ttl", TURTLE, tmp_path) == (good, 8)
    assert skipping("x.trig", TURTLE, tmp_path) == (good, 8)
    base = {"base": "http://b/"}
    assert skipping("x.ttl", TURTLE, tmp_path, **base) == (["<http://b/relative>", "<http://x/b>", *good], 7)


def test_graphs_with_mistakes_lose_only_statements(tmp_path: Path) -> None:
    text = """@prefix x: <http://x/> . x:g { x:a x:p 1 . x:a x:p y:b . x:a x:p 2 } GRAPH x:h { x:a x:p 3 ; }
    { x:a x:p 4 . x:a x:p , 5 } x:a x:p 6 . } x:a x:p 7 . x:i { x:a x:p 8 . x:a """
    objects, skipped = skipping("x.trig", text, tmp_path)
    assert [int(o[1]) for o in objects] == [1, 2, 3, 4, 6, 8]
    assert skipped == 4


@pytest.mark.slow
def test_elements_with_mistakes_are_left_out_as_a_whole(tmp_path: Path) -> None:
    def element(body: str, about: str = "http://a") -> str:
        return f'\n  <rdf:Description rdf:about="{about}">{body}</rdf:Description>'

    head = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">'
    good = [f"<x:p>{i}</x:p>" for i in range(3)]
    middle = element(good[0]) + element(good[1] + '<x:p rdf:resource="b"/>') + element(good[1], "c") + element(good[2])
    text = f"<!-- x -->\n{head}{middle}{element('text')}\n</rdf:RDF>\n"
    assert skipping("x.rdf", text, tmp_path) == (['"0"', '"2"'], 3)
    assert skipping("x.rdf", text, tmp_path, base="http://b/")[1] == 1
    with pytest.raises(DataError, match="this is not XML: it ends too early"):  # how much is lost nobody knows
        skipping("x.rdf", text[:-12], tmp_path)
    with pytest.raises(DataError, match="this is not XML: it ends too early"):
        read_bytes(tmp_path / "x.owl", text[:-12].encode())
    whole = head + element('<x:p rdf:resource="http://b"/>' + good[0]) + "</rdf:RDF>"
    assert skipping("x.rdf", whole, tmp_path) == (["<http://b>", '"0"'], 0)
    for end in range(1, len(whole)):
        with pytest.raises(DataError, match="this is not XML"):
            read_bytes(tmp_path / "x.rdf", whole[:end].encode())
    single = '<x:C xmlns:x="http://x/" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" rdf:about="{}"/>'
    assert skipping("x.rdf", single.format("http://a"), tmp_path) == (["<http://x/C>"], 0)
    assert skipping("x.rdf", single.format("a"), tmp_path) == ([], 1)


def test_lines_with_mistakes_are_left_out(tmp_path: Path) -> None:
    lines = "_:a <http://p> {} .\n"
    text = "".join(
        lines.format(o) for o in ("_:b", "<c>", '"d"@en--ltr', "<<( _:a <http://p> _:b )>>", "_:c", '"', "_:d")
    )
    assert skipping("x.nt", text, tmp_path) == (["_:b", "_:c", "_:d"], 4)
    assert skipping("x.nq", text, tmp_path, blank="q") == (["_:qb", "_:qc", "_:qd"], 4)


def test_relations_may_skip_too(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("_:a\n_:a <http://p> _:b .\n")
    (tmp_path / "b.ttl").write_text("_:a")
    (tmp_path / "c.ttl").write_text("_:a <http://p> _:b .\n")
    skipped: dict[str, int] = {}
    found = read_relation(Io(relation("ttt"), path="*.*"), tmp_path, RdfOptions(skip=True), skipped=skipped)
    assert rows_of(found) == [("_:f1_a", "<http://p>", "_:f1_b"), ("_:f3_b1", "<http://p>", "_:f3_b2")]
    assert skipped == {str(tmp_path / "a.nt"): 1, str(tmp_path / "b.ttl"): 1}


PIECES = st.sampled_from(
    [
        *[
            "x:a",
            "x:b.c",
            "<http://a>",
            "<b>",
            '"a"',
            "'b'",
            '"""c\n"d"""',
            "'''e'''",
            '"f',
            "1",
            "1.5",
            ".5",
            "1.",
            "true",
            "_:b",
            "[]",
        ],
        *[
            "[ x:p x:o ]",
            "( 1 x:a )",
            ".",
            ".",
            " . ",
            ";",
            ",",
            "a",
            "@en",
            "^^x:t",
            "# c .\n",
            "\n",
            "{",
            "}",
            "@prefix y: <http://y/> .",
        ],
        *[
            "PREFIX z: <http://z/>",
            "BASE <http://base/>",
            "y:a",
            "z:b",
            "x:a\\.b",
            "GRAPH",
            "x:g {",
            "[",
            "]",
            "(",
            ")",
            "\\",
            '"""',
            "{|",
            "|}",
        ],
    ]
)
STATEMENTS = st.sampled_from(
    ["x:a x:p x:o .", 'x:b x:p "x.y" ; x:q 1.5 , _:b .', "x:c x:p ( x:a ) .\n", "[ x:p 1 ] x:p 2.", "_:b x:p [] ."]
)


@pytest.mark.slow
@settings(deadline=None, max_examples=2000 if LONG else 100)
@given(st.lists(st.lists(PIECES, max_size=6).map(" ".join) | STATEMENTS, max_size=6), st.sampled_from(["ttl", "trig"]))
def test_what_is_right_is_read_and_all_else_refused(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], syntax: str
) -> None:
    """A text is right if and only if pyoxigraph says so; and skipping leaves nothing out of what is right."""
    text = ("@prefix x: <http://x/> .\n" + "\n".join(parts)).encode()
    form = {"ttl": rdf.RdfFormat.TURTLE, "trig": rdf.RdfFormat.TRIG}[syntax]
    file = tmp_path_factory.getbasetemp() / f"any.{syntax}"
    skipped = read_bytes(file, text, skip=True)
    try:
        quads = list(rdf.parse(text, format=form))
        right = not any(isinstance(quad.object, rdf.Triple) or "--" in str(quad.object) for quad in quads)
    except SyntaxError:
        right = False
    try:
        found = read(text, syntax)
        assert right
        assert len(found) == len(quads)
        assert rows_of(skipped.table) == found
        assert skipped.skipped == 0
    except DataError as error:
        assert not right
        assert skipped.skipped >= 1
        assert all(problem.render() for problem in error.problems)


# --- relations -----------------------------------------------------------------------------------------------

CLASS, OTHER_CLASS, PROPERTY = "<http://x/C>", "<http://x/D>", "<http://x/p>"
ROWS = [
    ("_:a", RDF_TYPE, CLASS),
    ("_:a", PROPERTY, '"1"'),
    ("_:b", RDF_TYPE, OTHER_CLASS),
    ("_:b", RDF_TYPE, CLASS),
    ("_:c", "<http://x/q>", "_:d"),
    ("_:c", PROPERTY, CLASS),
    ("_:c", CLASS, "_:d"),
]


def routed(rows: list[Row], *relations: Relation, schema: pa.Schema = SCHEMA) -> tuple[dict[str, list[Row]], list[Row]]:
    parts = [triples(rows[start : start + 3]) for start in range(0, len(rows), 3)] or [triples([])]
    facts, nowhere = Router.of({rel.name: rel for rel in relations}).route(pa.concat_tables(parts).cast(schema))
    for rel in relations:
        if rel.name in facts and schema is SCHEMA:
            assert facts[rel.name].schema == arrow_schema(rel)
    return {name: rows_of(found) for name, found in facts.items()}, rows_of(nowhere)


@pytest.mark.parametrize("schema", [SCHEMA, ENCODED])
def test_triples_go_to_classes_and_properties(schema: pa.Schema) -> None:
    c, p = relation("t", CLASS), relation("ts", PROPERTY)
    classes, properties = [("_:a",), ("_:b",)], [("_:a", '"1"'), ("_:c", CLASS)]
    rest = [ROWS[2], ROWS[4], ROWS[6]]
    assert routed(ROWS, c, p, schema=schema) == ({CLASS: classes, PROPERTY: properties}, rest)
    others = relation("ttt", "other_triple")
    assert routed(ROWS, c, p, others, schema=schema) == (
        {CLASS: classes, PROPERTY: properties, "other_triple": rest},
        [],
    )
    types = [(s, o) for s, q, o in ROWS if q == RDF_TYPE]
    found, nowhere = routed(ROWS, c, p, relation("tt", RDF_TYPE), schema=schema)
    assert sorted(found.pop(RDF_TYPE)) == sorted(types)
    assert found == {CLASS: classes, PROPERTY: properties}
    assert nowhere == rest[1:]
    assert routed(ROWS, others, schema=schema) == ({"other_triple": ROWS}, [])
    assert routed(ROWS, relation("tt", CLASS), schema=schema)[0] == {CLASS: [("_:c", "_:d")]}
    assert routed([], c, p, others, schema=schema) == ({}, [])


@pytest.mark.parametrize("schema", [SCHEMA, ENCODED])
def test_a_relation_of_triples_takes_all(schema: pa.Schema) -> None:
    all_of_them = relation("ttt", "triple")
    assert routed(ROWS, relation("t", CLASS), all_of_them, schema=schema) == ({"triple": ROWS}, [])
    assert routed([], all_of_them, schema=schema) == ({}, [])


def test_relations_of_other_columns_take_nothing() -> None:
    others = [relation("n", CLASS), relation("nt", PROPERTY), relation("tt", "triple"), relation("ttn", "other_triple")]
    others += [
        relation("t", "C"),
        relation("ttt", OTHER_CLASS),
        Relation("<http://x/q>", relation("tt").columns, hidden=True),
    ]
    assert routed(ROWS, *others) == ({}, ROWS)


@settings(deadline=None, max_examples=200 if LONG else 30)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from([RDF_TYPE, "<p>", "<q>", "<C>"]),
            st.sampled_from(["<C>", "<D>", "<p>"]),
        )
    ),
    st.data(),
)
def test_every_triple_goes_to_one_relation(rows: list[Row], data: st.DataObject) -> None:
    names = data.draw(
        st.lists(
            st.tuples(st.sampled_from(["<C>", "<D>", "<p>", "<q>"]), st.sampled_from(["t", "tt"])),
            unique_by=lambda n: n[0],
        )
    )
    found, nowhere = routed(
        rows, *(relation(types, name) for name, types in names), schema=data.draw(st.sampled_from([SCHEMA, ENCODED]))
    )
    classes, properties = ({name for name, types in names if len(types) == width} for width in (1, 2))
    expected: dict[str, list[Row]] = {}
    rest = []
    for s, p, o in rows:
        if p == RDF_TYPE and o in classes:
            expected.setdefault(o, []).append((s,))
        elif p in properties:
            expected.setdefault(p, []).append((s, o))
        else:
            rest.append((s, p, o))
    assert (found, nowhere) == (expected, rest)


def test_encoded_facts_may_stay_encoded() -> None:
    encoded = pa.table({"x": pa.array(["_:a", "_:b", "_:a"]).dictionary_encode(), "y": [1, 2, 3]})
    rel = relation("tn")
    assert conform(encoded, rel, "it", encoded=True).column(0).type == encoded.column(0).type
    assert conform(encoded, rel, "it").schema == arrow_schema(rel)
    broken = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["_:a", None]))
    for keeps in (True, False):
        with pytest.raises(DataError, match="NULL in row 2"):
            conform(pa.table({"x": broken}), relation("t"), "it", encoded=keeps)


def test_classes_without_a_name_in_xml(tmp_path: Path) -> None:
    """pyoxigraph would write an element without a name."""
    rdf_type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    rows = [
        ("<urn:x>", rdf_type, "<http://e/>"),
        ("<urn:x>", rdf_type, "<http://e/1>"),
        ("<urn:y>", rdf_type, "<urn:1>"),
    ]
    path = tmp_path / "x.rdf"
    with Outputs() as outputs:
        written = outputs.write_graph(path, pa.table(dict(zip("spo", map(list, zip(*rows, strict=True)), strict=True))))
        outputs.commit()
    assert written.left_out == 0
    table = read_triples(path).table
    assert sorted(zip(*(column.to_pylist() for column in table.columns), strict=True)) == sorted(rows)
