"""Columns of terms contain only RDF terms, each in its one form, whatever facts come from."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph
import pytest
import rdflib

import evermat
from evermat import DataError, Program
from tests.support.environment import DATA, NEEDS_DATA

PROGRAM = ".decl p(x:term, n:number, y:term)\n.decl q(y:term)\nq(y) :- p(_, _, y)."
GOOD = [("<http://a/é>", 1, '"x"@EN'), ("_:b", 2, '"\\u00e9\\/"'.replace("\\/", "")), ("<a:a>", 3, '"1"^^<a:b>'), ("<a:a>", 3, '"s"^^<http://www.w3.org/2001/XMLSchema#string>')]  # fmt: skip
HELD = {("<http://a/é>", 1, '"x"@en'), ("_:b", 2, '"é"'), ("<a:a>", 3, '"1"^^<a:b>'), ("<a:a>", 3, '"s"')}
BAD = [("<a:a>", 1, '"x"'), ("http://a/b", 2, '"x"'), ("<a:a>", 3, "hello")]


def columns(rows: list[tuple]) -> dict[str, list]:
    return dict(zip("xny", map(list, zip(*rows, strict=True)), strict=True))


def text(rows: list[tuple]) -> bytes:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows).encode()


def quoted(rows: list[tuple]) -> bytes:
    return "".join(",".join('"' + str(value).replace('"', '""') + '"' for value in row) + "\n" for row in rows).encode()


def lines(rows: list[tuple]) -> bytes:
    return "".join(json.dumps(dict(zip("xny", row, strict=True))) + "\n" for row in rows).encode()


def parquet(rows: list[tuple]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns(rows)), sink)
    return sink.getvalue().to_pybytes()


FILES: dict[str, tuple[str, Callable[[list[tuple]], bytes]]] = {
    "p.facts": ("", text),
    "p.csv": (", rfc4180=true", quoted),
    "p.jsonl": ("", lines),
    "p.parquet": ("", parquet),
}
GIVEN: dict[str, Callable[[list[tuple]], Any]] = {
    "rows": list,
    "lists": lambda rows: [list(row) for row in rows],
    "arrow": lambda rows: pa.table(columns(rows)),
    "dictionaries": lambda rows: pa.table(
        {n: pa.array(c).dictionary_encode() if n != "n" else c for n, c in columns(rows).items()}
    ),
    "pandas": lambda rows: pd.DataFrame(columns(rows)),
    "polars": lambda rows: pl.DataFrame(columns(rows)),
}


def complaint(action: Callable[[], object]) -> list[str]:
    with pytest.raises(DataError) as error:
        action()
    assert {problem.kind.label for problem in error.value.problems} == {"E334"}
    return [problem.message for problem in error.value.problems]


@pytest.mark.parametrize("name", GIVEN)
def test_facts_from_python(name: str) -> None:
    program = Program.parse(PROGRAM)
    m = program.materialise({"p": GIVEN[name](GOOD)})
    assert set(m["p"]) == HELD
    assert set(m["q"]) == {row[2:] for row in HELD}
    assert set(program.materialise({"p": list(m["p"])})["p"]) == HELD
    before = set(m["p"])
    assert len(complaint(lambda: m.update({"p": GIVEN[name](BAD)}))) == 2
    assert set(m["p"]) == before
    assert len(complaint(lambda: program.materialise({"p": GIVEN[name](BAD)}))) == 2
    m.update(delete={"p": GIVEN[name](GOOD[:2])})
    assert set(m["p"]) == {row for row in HELD if row[1] == 3}


@pytest.mark.parametrize("name", FILES)
def test_facts_from_files(tmp_path: Path, name: str) -> None:
    options, write = FILES[name]
    program = Program.parse(f'{PROGRAM}\n.input p(filename="{name}"{options})')
    (tmp_path / name).write_bytes(write(GOOD * 3))
    assert set(program.materialise(inputs=tmp_path)["p"]) == HELD
    (tmp_path / name).write_bytes(write(BAD))
    with pytest.raises(DataError) as error:
        program.materialise(inputs=tmp_path)
    assert {problem.kind.label for problem in error.value.problems} == {"E334"}
    assert len(error.value.problems) == 2
    assert str(tmp_path / name) in str(error.value)
    if name != "p.parquet":
        assert [problem.source.first_line for problem in error.value.problems] == [2, 3]
    else:
        assert "row 2 (row group 1), column 1 (`x`)" in str(error.value)


def test_all_files_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "1.facts").write_bytes(text(BAD[1:2]))
    (tmp_path / "2.facts").write_bytes(text(BAD[2:]))
    (tmp_path / "r.facts").write_bytes(b"<a>\n")
    program = Program.parse(f'{PROGRAM}\n.input p(filename="[12].facts")\n.decl r(x:term)\n.input r')
    found = complaint(lambda: program.materialise(inputs=tmp_path))
    assert len(found) == 3


def test_files_that_can_be_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program.parse(f"{PROGRAM}\n.input p(IO=stdin)")
    (tmp_path / "stdin").write_bytes(text(BAD))
    with (tmp_path / "stdin").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert len(complaint(lambda: program.materialise(inputs=tmp_path))) == 2


def change_text(changes: list[tuple]) -> bytes:
    return b"".join(f"{sign}\tp\t".encode() + text([row]) for sign, row in changes)


def change_lines(changes: list[tuple]) -> bytes:
    return "".join(json.dumps({"op": s, "relation": "p", "values": row}) + "\n" for s, row in changes).encode()


def change_columns(changes: list[tuple]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"op": [sign for sign, _ in changes], **columns([row for _, row in changes])}), sink)
    return sink.getvalue().to_pybytes()


def change_spelled(changes: list[tuple]) -> bytes:
    sink = pa.BufferOutputStream()
    values = [[str(value) for value in row] for _, row in changes]
    pq.write_table(pa.table({"op": [s for s, _ in changes], "relation": ["p"] * len(values), "values": values}), sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("name", "write"),
    [("c.tsv", change_text), ("c.jsonl", change_lines), ("p.parquet", change_columns), ("c.parquet", change_spelled)],
    ids=["text", "lines", "columns", "spelled"],
)
def test_files_of_changes(tmp_path: Path, name: str, write: Callable[[list[tuple]], bytes]) -> None:
    path = tmp_path / name
    m = Program.parse(PROGRAM).materialise()
    path.write_bytes(write([("+", row) for row in GOOD]))
    list(m.update_files([path]))
    assert set(m["p"]) == HELD
    for sign in "+-":
        path.write_bytes(write([(sign, row) for row in BAD]))
        assert len(complaint(lambda: list(m.update_files([path])))) == 2
        assert set(m["p"]) == HELD
    path.write_bytes(write([("-", row) for row in GOOD]))
    list(m.update_files([path]))
    assert set(m["p"]) == set()


@pytest.mark.parametrize("name", ["c.tsv", "c.tsv.gz"])
def test_wrong_terms_of_changes_are_found_beside_other_errors(tmp_path: Path, name: str) -> None:
    m = Program.parse(PROGRAM).materialise({"p": GOOD})
    changed = change_text([("+", row) for row in [("<a:new>", 4, '"x"'), *BAD]]) + b"+\tp\t<a:a>\tfour\t<a:a>\n"
    (tmp_path / "1.tsv").write_bytes(change_text([("+", ("<a:first>", 1, "<a:a>"))]))
    (tmp_path / name).write_bytes(gzip.compress(changed) if name.endswith(".gz") else changed)
    with pytest.raises(DataError) as error:
        m.update_files([tmp_path / "1.tsv", tmp_path / name])
    assert [(problem.kind.label, problem.source.first_line) for problem in error.value.problems] == [
        ("E334", 3),
        ("E334", 4),
        ("E306", 5),
    ]
    assert set(m["p"]) == HELD


@pytest.mark.parametrize("count", [1, 3000], ids=["few", "repeated"])
@pytest.mark.parametrize("write", [change_text, change_lines], ids=["text", "lines"])
def test_signs_of_one_term_in_several_forms_meet(
    tmp_path: Path, write: Callable[[list[tuple]], bytes], count: int
) -> None:
    forms = [("+", ("<a:a>", n % 7, '"x"@EN')) for n in range(count)] + [
        ("-", ("<a:a>", n, '"x"@en')) for n in range(7)
    ]
    path = tmp_path / ("c.tsv" if write is change_text else "c.jsonl")
    path.write_bytes(write([*forms, ("+", ("<a:b>", 1, '"\\u0078"@En'))]))
    m = Program.parse(PROGRAM).materialise({"p": [("<a:a>", 0, '"x"@en')]})
    list(m.update_files([path]))
    assert set(m["p"]) == {("<a:b>", 1, '"x"@en')}


def test_changes_on_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "stdin").write_bytes(change_text([("+", row) for row in BAD]))
    with (tmp_path / "stdin").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        m = Program.parse(PROGRAM).materialise()
        assert len(complaint(lambda: list(m.update_files(["-"])))) == 2


def test_streams() -> None:
    m = Program.parse(PROGRAM).materialise()
    assert [len(change.inserted["p"]) for change in m.stream([{"insert": {"p": GOOD}}])] == [4]
    complaint(lambda: list(m.stream([{"insert": {"p": BAD}}])))
    assert set(m["p"]) == HELD


def test_terms_of_libraries() -> None:
    ours = (evermat.iri("http://a/é"), 1, evermat.literal("x", language="EN"))
    theirs = (rdflib.BNode("b"), 2, rdflib.Literal("é"))
    others = (pyoxigraph.NamedNode("a:a"), 3, pyoxigraph.Literal("1", datatype=pyoxigraph.NamedNode("a:b")))
    m = Program.parse(PROGRAM).materialise({"p": [ours, theirs, others]})
    assert set(m["p"]) == {row for row in HELD if '"s"' not in row}
    assert {type(value) for row in m["p"] for value in row} == {str, int}
    assert all(row in m["p"] for row in (ours, theirs, others, GOOD[0]))
    assert ("http://a/é", 1, '"x"@en') not in m["p"]
    assert (rdflib.Variable("b"), 2, '"é"') not in m["p"]
    m.update(delete={"p": [ours, theirs, others]})
    assert len(m["p"]) == 0


@pytest.mark.parametrize("names", ["xny", "yxn", "abc"])
def test_frames_with_terms_of_libraries(names: str) -> None:
    values = {
        "x": [rdflib.URIRef("http://a/é"), rdflib.BNode("b")],
        "n": [1, 2],
        "y": [rdflib.Literal("x", lang="en"), '"é"'],
    }
    frame = pd.DataFrame(
        {n: values[n] for n in names} if names != "abc" else dict(zip(names, values.values(), strict=True))
    )
    program = Program.parse(PROGRAM)
    assert set(program.materialise({"p": frame})["p"]) == {row for row in HELD if row[1] < 3}
    frame.iloc[1, list(names).index("x") if names != "abc" else 0] = rdflib.Variable("v")
    assert complaint(lambda: program.materialise({"p": frame})) == [
        "rdflib.term.Variable('v') in row 2, column `x` of the facts for `p` is not an RDF term: a Variable of rdflib is not a term"
    ]


def test_exact_text_of_errors() -> None:
    rows = [(rdflib.URIRef("a b"), 1, 5), ("http://a", 1, "x"), ("<a:a>", evermat.iri("a:a"), '"'), ("<a:a>", 1)]
    with pytest.raises(DataError) as error:
        Program.parse(PROGRAM).materialise({"p": rows})
    note = (
        'a `term` is written as in N-Triples: `<http://example.org/a>`, `_:b`, `"text"`, `"text"@en`, '
        '`"1"^^<http://www.w3.org/2001/XMLSchema#integer>`'
    )
    assert str(error.value) == (
        "error[E334]: rdflib.term.URIRef('a b') in row 1, column `x` of the facts for `p` is not an RDF term: invalid IRI code point ' '\n"
        f"  = note: {note}\n\n"
        "error[E334]: 'http://a' in row 2, column `x` of the facts for `p` is not an RDF term: an IRI stands between `<` and `>`\n"
        f"  = note: {note}\n  = help: use `evermat.iri('http://a')`\n\n"
        "error[E332]: evermat.iri('a:a') in row 3, column `n` of the facts for `p` is not a number\n\n"
        "error[E331]: row 4 of the facts for `p` has 2 columns, not 3"
    )


@pytest.mark.parametrize("value", [evermat.iri("a:a"), rdflib.Literal("a"), pyoxigraph.NamedNode("a:a")], ids=repr)
def test_terms_are_no_symbols(value: object) -> None:
    with pytest.raises(DataError) as error:
        Program.parse(".decl s(x:symbol)").materialise({"s": [value]})
    assert error.value.problems[0].message == f"{value!r} in row 1, column `x` of the facts for `s` is not a symbol"
    assert error.value.problems[0].help == "declare the column as `term`, or use a text: `str(…)`"


def test_old_states_can_be_cleaned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that has texts which are no terms opens, and they can be deleted, but not be inserted."""
    from evermat.runtime.facts import ingest

    program = Program.parse(PROGRAM)
    with monkeypatch.context() as patched:
        patched.setattr(ingest, "checked_rows", lambda rows, *_: list(rows))
        program.materialise({"p": [*HELD, *BAD]}).save(tmp_path / "s")
    with evermat.open(tmp_path / "s") as m:
        assert set(m["p"]) == {*HELD, *BAD}
        assert BAD[1] in m["p"]
        complaint(lambda: m.update({"p": BAD}))
        complaint(lambda: m.update(delete={"p": [BAD[1], ("http://other", 2, '"x"')]}))
        assert set(m["p"]) == {*HELD, *BAD}
        m.update(delete={"p": BAD})
        assert set(m["p"]) == HELD
    with evermat.open(tmp_path / "s") as m:
        assert set(m["q"]) == {row[2:] for row in HELD}


# --- graphs --------------------------------------------------------------------------------------------------

RULES = """
    .prefix ex: <http://example.org/>
    .decl triple(s:term, p:term, o:term)
    triple(x, ex:ancestor, y) :- triple(x, ex:parent, y).
    triple(x, ex:ancestor, z) :- triple(x, ex:ancestor, y), triple(y, ex:parent, z).
"""


def family() -> rdflib.Graph:
    graph = rdflib.Graph()
    ex = rdflib.Namespace("http://example.org/")
    for i in range(100):
        graph.add((ex[f"p{i}"], ex.parent, ex[f"p{i // 2}"] if i % 7 else rdflib.BNode(f"b{i}")))
        graph.add((ex[f"p{i}"], ex.name, rdflib.Literal(f'"P"\n{i} é', lang="de" if i % 2 else None)))
        graph.add((ex[f"p{i}"], ex.age, rdflib.Literal(i)))
    return graph


def exported(m: evermat.Materialisation, path: Path) -> list[str]:
    m.export(path)
    return path.read_text().splitlines()


@pytest.mark.parametrize("form", ["rows", "rdf", "rdf of pyoxigraph", "rows of pyoxigraph"])
def test_a_graph_is_what_its_file_is(tmp_path: Path, form: str) -> None:
    graph = family()
    graph.serialize(tmp_path / "g.nt", format="nt", encoding="utf-8")
    program = Program.parse(RULES)
    expected = exported(program.materialise(rdf=tmp_path / "g.nt"), tmp_path / "1.nt")
    store = pyoxigraph.Store()
    store.load(path=str(tmp_path / "g.nt"))
    if "pyoxigraph" in form:
        # Labels of blank nodes are those of the store, which reads them as new ones.
        store = pyoxigraph.Dataset(pyoxigraph.parse(path=str(tmp_path / "g.nt")))
        m = program.materialise(rdf=store) if "rdf" in form else program.materialise({"triple": store})
    else:
        m = program.materialise(rdf=[graph]) if form == "rdf" else program.materialise({"triple": graph})
    found = exported(m, tmp_path / "2.nt")
    assert len(found) > 300 + 100
    assert m.stats.get("left_out", 0) == 0
    assert [line for line in found if "_:" not in line] == [line for line in expected if "_:" not in line]
    assert len(found) == len(expected)
    if "pyoxigraph" not in form:
        assert found == expected


def test_a_graph_beside_files_and_relations(tmp_path: Path) -> None:
    (tmp_path / "f.ttl").write_text("<http://example.org/p1> <http://example.org/parent> _:b7 .")
    program = Program.parse(
        ".prefix ex: <http://example.org/>\n.decl grand(x:term, y:term)\ngrand(x, z) :- ex:parent(x, y), ex:parent(y, z)."
    )
    m = program.materialise(rdf=[tmp_path / "f.ttl", family()])
    assert ("<http://example.org/p1>", "_:b7") not in m["<http://example.org/parent>"]
    assert ("<http://example.org/p5>", "<http://example.org/p1>") in m["grand"]


def test_graphs_with_malformed_terms() -> None:
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef("a:a"), rdflib.URIRef("a:p"), rdflib.URIRef("a b")))
    program = Program.parse(RULES)
    with pytest.raises(DataError) as error:
        program.materialise(rdf=graph)
    assert error.value.problems[0].render() == (
        "error[E360]: rdflib.term.URIRef('a b'), the object of triple 1 of the Graph, cannot be there: invalid IRI code point ' '\n"
        "  = note: the triples of a graph are those that N-Triples can contain"
    )
    m = program.materialise(rdf=graph, skip_malformed=True)
    assert (len(m["triple"]), m.stats["skipped"]) == (0, {"<graph>": 1})


@NEEDS_DATA
def test_real_data(tmp_path: Path) -> None:
    graph = rdflib.Graph().parse(data=gzip.decompress((DATA / "ontologies" / "ro.owl.gz").read_bytes()), format="xml")
    graph.serialize(tmp_path / "g.nt", format="nt", encoding="utf-8")
    program = Program.parse(RULES)
    expected = exported(program.materialise(rdf=tmp_path / "g.nt"), tmp_path / "1.nt")
    assert len(expected) == len(graph) > 5000
    assert exported(program.materialise({"triple": graph}), tmp_path / "2.nt") == expected
    assert exported(program.materialise(rdf=graph), tmp_path / "3.nt") == expected
