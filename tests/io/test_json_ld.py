"""JSON-LD: what is read of it, what is refused where, and that what is written is read again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyoxigraph as rdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat.core.errors import DataError
from evermat.io import RdfOptions, read_triples
from evermat.io.rdf import json_ld

P = "<http://e/p>"
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def triples(folder: Path, document: Any, **options: Any) -> list[tuple[str, ...]]:
    path = folder / "x.jsonld"
    path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
    return [tuple(row.values()) for row in read_triples(path, RdfOptions(**options)).table.to_pylist()]


A, B = "<http://e/a>", "<http://e/b>"
E = {"e": "http://e/"}
# Documents like those of the specification, each with its triples.
CASES: dict[str, tuple[Any, list[tuple[str, str, str]]]] = {
    "prefixes": ({"@context": E, "@id": "e:a", "e:p": {"@id": "e:b"}}, [(A, P, B)]),
    "terms": (
        {"@context": {"p": {"@id": "http://e/p", "@type": "@id"}}, "@id": "http://e/a", "p": "http://e/b"},
        [(A, P, B)],
    ),
    "vocabulary": ({"@context": {"@vocab": "http://e/"}, "@id": "http://e/a", "p": "x"}, [(A, P, '"x"')]),
    "base in the context": ({"@context": {"@base": "http://e/", **E}, "@id": "a", "e:p": {"@id": "b"}}, [(A, P, B)]),
    "types": ({"@id": "http://e/a", "@type": ["http://e/b"]}, [(A, f"<{RDF}type>", B)]),
    "native values": (
        {"@id": "http://e/a", "http://e/p": [1, 1.5, True, None]},
        [(A, P, f'"1"^^<{XSD}integer>'), (A, P, f'"1.5E0"^^<{XSD}double>'), (A, P, f'"true"^^<{XSD}boolean>')],
    ),
    "typed values": (
        {
            "@id": "http://e/a",
            "http://e/p": [{"@value": "01", "@type": f"{XSD}integer"}, {"@value": "x", "@language": "EN"}],
        },
        [(A, P, f'"01"^^<{XSD}integer>'), (A, P, '"x"@en')],
    ),
    "language maps": (
        {
            "@context": {"p": {"@id": "http://e/p", "@container": "@language"}},
            "@id": "http://e/a",
            "p": {"en": "x", "de": "y"},
        },
        [(A, P, '"x"@en'), (A, P, '"y"@de')],
    ),
    "lists": (
        {"@id": "http://e/a", "http://e/p": {"@list": ["x"]}},
        [(A, P, "_:b1"), ("_:b1", f"<{RDF}first>", '"x"'), ("_:b1", f"<{RDF}rest>", f"<{RDF}nil>")],
    ),
    "reverse": ({"@id": "http://e/a", "@reverse": {"http://e/p": {"@id": "http://e/b"}}}, [(B, P, A)]),
    "nested nodes": (
        {"http://e/p": {"http://e/p": {"@id": "http://e/a"}}},
        [("_:b1", P, "_:b2"), ("_:b2", P, A)],
    ),
    "labels of blank nodes": (
        [{"@id": "_:x", "http://e/p": {"@id": "_:y"}}, {"@id": "_:y", "http://e/p": "z"}],
        [("_:b1", P, "_:b2"), ("_:b2", P, '"z"')],
    ),
    "graphs": (
        {
            "@context": E,
            "@graph": [{"@id": "e:a", "e:p": "x"}, {"@id": "http://g/", "@graph": [{"@id": "e:b", "e:p": "y"}]}],
        },
        [(A, P, '"x"'), (B, P, '"y"')],
    ),
    "JSON literals": (
        {"@context": {"p": {"@id": "http://e/p", "@type": "@json"}}, "@id": "http://e/a", "p": {"b": 1, "a": [2]}},
        [(A, P, f'"{{\\"a\\":[2],\\"b\\":1}}"^^<{RDF}JSON>')],
    ),
    "a byte order mark": (b"\xef\xbb\xbf" + b'{"@id": "http://e/a", "http://e/p": "x"}', [(A, P, '"x"')]),
    "nothing": ([], []),
    "no IRI": ({"@id": "http://e/a", "name": "x"}, []),
}


@pytest.mark.parametrize("name", CASES)
def test_what_documents_say(name: str, tmp_path: Path) -> None:
    document, expected = CASES[name]
    assert sorted(triples(tmp_path, document)) == sorted(expected)


def test_a_base_for_relative_iris(tmp_path: Path) -> None:
    document = [{"@id": "a", "http://e/p": {"@id": "b"}}]
    assert triples(tmp_path, document, base="http://e/") == [(A, P, B)]
    with pytest.raises(DataError) as found:
        triples(tmp_path, document)
    assert str(found.value).replace(str(tmp_path), "") == (
        "error[E371]: `a` is a relative IRI without a base\n"
        " --> /x.jsonld:1:10\n"
        "  |\n"
        '1 | [{"@id": "a", "http://e/p": {"@id": "b"}}]\n'
        "  |          ^^^\n"
        '  = note: give a base by `--base IRI`, or by `"@base": "IRI"` in a context in the file'
    )


@pytest.mark.parametrize(
    ("document", "at", "iri"),
    [
        ({"@context": "http://e/c.jsonld"}, 14, "http://e/c.jsonld"),
        ({"@context": [{"a": "http://a/"}, "https://schema.org"]}, 35, "https://schema.org"),
        ({"@context": {"@import": "http://e/c"}}, 26, "http://e/c"),
        (
            {"@context": {"p": {"@id": "http://e/p", "@context": "file:///etc/passwd"}}, "p": {"a": 1}},
            54,
            "file:///etc/passwd",
        ),
        ({"@context": "c.jsonld"}, 14, "c.jsonld"),
    ],
)
def test_contexts_of_other_documents_are_not_fetched(document: Any, at: int, iri: str, tmp_path: Path) -> None:
    for skip in (False, True):
        with pytest.raises(DataError) as found:
            triples(tmp_path, {**document, "@id": "http://e/a"}, skip=skip, base="http://b/")
        (problem,) = found.value.problems
        assert problem.message == f"the context <{iri}> is another document, which is not fetched"
        assert problem.span is not None
        assert (problem.span.start + 1, problem.span.end - problem.span.start) == (at, len(iri) + 2)


GRAPH = b"""{"@context": {"e": "http://e/"},
"@graph": [
 {"@id": "e:a", "e:p": "x"},
 {"@id": 1, "e:p": "x"},
 {"@id": "rel", "e:p": "x"},
 {"@id": "e:b", "e:p": {"@value": "\xc3\xa4", "@language": "de", "@direction": "ltr"}},
 {"@id": "e:b", "e:p": "z"}
]}"""


def test_nodes_that_are_malformed_are_listed_or_skipped(tmp_path: Path) -> None:
    with pytest.raises(DataError) as found:
        triples(tmp_path, GRAPH)
    assert [(p.kind.code, p.message, p.source and p.source.first_line) for p in found.value.problems] == [
        (370, "this is not JSON-LD: @id value must be a string", 4),
        (371, "`rel` is a relative IRI without a base", 5),
        (370, "this is not JSON-LD: texts with a direction (RDF 1.2) are not supported", 6),
    ]
    assert triples(tmp_path, GRAPH, skip=True) == [(A, P, '"x"'), (B, P, '"z"')]
    assert read_triples(tmp_path / "x.jsonld", RdfOptions(skip=True)).skipped == 3
    assert triples(tmp_path, GRAPH[GRAPH.index(b"[") : -1].replace(b'"e:', b'"http://e/'), skip=True) == [
        (A, P, '"x"'),
        (B, P, '"z"'),
    ]


def test_a_graph_with_more_to_say_is_one_statement(tmp_path: Path) -> None:
    document = {
        "@id": "http://e/a",
        "http://e/p": "x",
        "@graph": [{"@id": 1}, {"@id": "http://e/b", "http://e/p": "y"}],
    }
    assert triples(tmp_path, document, skip=True) == []


@pytest.mark.parametrize(
    ("text", "why", "line", "column"),
    [
        (b"", "it ends too early", 1, 1),
        (
            b'{"@id": "http://e/a",\n "http://\xc3\xa4": [1,}',
            "unexpected closing curly bracket, no array to close",
            2,
            18,
        ),
        (b'[{"@id": "http://e/\xff"}]', "it is not valid UTF-8", 1, 20),
        (b"[{}] {}", "the JSON already contains one root element", 1, 6),
        (b"[" * 600, "it is nested more than 500 levels deep", 1, 1),
        (b'{"http://e/p":' * 100_000, "it is nested more than 500 levels deep", 1, 1),
    ],
)
def test_what_is_not_json_is_refused(text: bytes, why: str, line: int, column: int, tmp_path: Path) -> None:
    for skip in (False, True):
        with pytest.raises(DataError) as found:
            triples(tmp_path, text, skip=skip)
        (problem,) = found.value.problems
        assert problem.message == f"this is not JSON-LD: {why}"
        assert problem.source is not None
        assert problem.span is not None
        assert (problem.source.first_line, problem.span.start + 1) == (line, column)


@settings(max_examples=100, deadline=None)
@given(st.recursive(st.text('"\\{}[]a', max_size=4), lambda inner: st.lists(inner, max_size=3)), st.integers(1, 7))
def test_the_depth_does_not_depend_on_pieces(value: Any, size: int) -> None:
    text = json.dumps(value).encode()
    depth, rest = 0, b""
    for first in range(0, len(text), size):
        depth, rest = json_ld._depth_after(rest + text[first : first + size], depth)
    assert (depth, rest) == (0, b"")


# --- writing ---------------------------------------------------------------------------------------------------

TERMS = [
    *('"01"', f'"01"^^<{XSD}integer>', f'"1.50"^^<{XSD}double>', f'"true"^^<{XSD}boolean>', f'"x"^^<{XSD}string>'),
    *(
        '"x"@en-gb',
        '"\\u0000\\"\\\\\\n\\uFFFF🦀"',
        f'"{{\\"a\\": 1}}"^^<{RDF}JSON>',
        f'"{{"^^<{RDF}JSON>',
        f"<{RDF}nil>",
    ),
    *("<e:p>", "<ns1:x>", "<http://e/a/../b>", "<http://e/>", "<urn:x>", "_:x", "_:y"),
]


@pytest.mark.parametrize("name", ["x.jsonld", "x.jsonld.gz"])
def test_what_is_exported_is_read_again(name: str, tmp_path: Path) -> None:
    lines = [
        f"{s} {p} {o} ."
        for s in ("<http://e/a>", "_:x")
        for p in ("<http://e/p>", "<e:p>", f"<{RDF}type>", f"<{RDF}first>")
        for o in TERMS
    ]
    (tmp_path / "d.nt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    m = evermat.Program.parse("").materialise(rdf=tmp_path / "d.nt")
    written = m.export(tmp_path / name)
    assert written.left_out == 0
    again = evermat.Program.parse("").materialise(rdf=tmp_path / name)
    assert len(again["other_triple"]) == len(m["other_triple"]) == written.written
    for kind, path in (("out", tmp_path / name), ("in", tmp_path / "d.nt")):
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as file:
            form = rdf.RdfFormat.JSON_LD if kind == "out" else rdf.RdfFormat.N_TRIPLES
            data = rdf.Dataset(rdf.parse(file.read(), format=form))
        data.canonicalize(rdf.CanonicalizationAlgorithm.UNSTABLE)
        (tmp_path / f"{kind}.txt").write_text("\n".join(sorted(map(str, data))), encoding="utf-8")
    assert (tmp_path / "out.txt").read_text() == (tmp_path / "in.txt").read_text()


def test_facts_and_graphs_of_a_program(tmp_path: Path) -> None:
    (tmp_path / "in.jsonld").write_bytes(
        b'{"@context": {"e": "http://e/"}, "@id": "e:g", "@graph": [{"@id": "e:a", "e:p": {"@id": "e:b"}}]}'
    )
    program = evermat.Program.parse(
        """.prefix e: <http://e/>
        .decl e:p(s:term, o:term)
        .decl quad(s:term, p:term, o:term, g:term) .input quad(filename="in.jsonld") .output quad(filename="out.jsonld")
        .input e:p(filename="in.jsonld") .output e:p(filename="p.jsonld") .printsize e:p"""
    )
    m = program.materialise(inputs=tmp_path)
    assert set(m["quad"]) == {(A, P, B, "<http://e/g>")}
    assert set(m["e:p"]) == {(A, B)}
    m.write_outputs(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "out.jsonld").read_text()) == [
        {"@id": "http://e/g", "@graph": [{"@id": "http://e/a", "http://e/p": [{"@id": "http://e/b"}]}]}
    ]
    assert json.loads((tmp_path / "out" / "p.jsonld").read_text()) == [
        {"@id": "http://e/a", "http://e/p": [{"@id": "http://e/b"}]}
    ]


def test_changes_and_ontologies(tmp_path: Path) -> None:
    context = {"e": "http://e/", "sub": {"@id": "http://www.w3.org/2000/01/rdf-schema#subClassOf", "@type": "@id"}}
    ontology = tmp_path / "o.jsonld"
    ontology.write_text(json.dumps({"@context": context, "@id": "e:C", "sub": "e:D"}))
    m = evermat.Program.parse("", ontology=ontology).materialise({"<http://e/C>": [(A,)]}, counters="both")
    assert set(m["e:D"]) == {(A,)}
    (tmp_path / "1.add.jsonld").write_text(json.dumps({"@context": E, "@id": "e:b", "@type": "e:C"}))
    (tmp_path / "1.del.jsonld").write_text(json.dumps({"@id": "http://e/a", "@type": "http://e/C"}))
    (change,) = m.update_files([tmp_path / "1.add.jsonld", tmp_path / "1.del.jsonld"])
    assert (set(change.inserted["e:D"]), set(change.deleted["e:D"])) == ({(B,)}, {(A,)})


def test_a_sandbox_holds_for_json_ld(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "x.jsonld").write_text("[]")
    program = evermat.Program.parse('.decl t(s:term, p:term, o:term) .input t(filename="../x.jsonld")', sandbox=True)
    with pytest.raises(evermat.SandboxError):
        program.materialise(inputs=tmp_path / "in")


def test_limits_hold_while_json_ld_is_read(tmp_path: Path) -> None:
    node = '{"@id": "http://e/%d", "http://e/p": ["x", "y", "z"]}'
    (tmp_path / "x.jsonld").write_text("[" + ",\n".join(node % i for i in range(30_000)) + "]")
    with pytest.raises(evermat.LimitError):
        evermat.Program.parse("").materialise(rdf=tmp_path / "x.jsonld", limit_seconds=0.001)
