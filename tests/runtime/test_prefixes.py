"""Prefixes: relations by their abbreviated names, wherever a relation is named, in memory, on Spark, and after reopening."""

from __future__ import annotations

import json
import os
import pickle
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evermat
from evermat import DataError, Materialisation, UnknownRelationError
from evermat.language.prefixes import RelationNames, declared_prefixes
from evermat.language.syntax.parse_tables import lexer
from tests.support.engines import Engine, on_engines

PERSON, KNOWS, FRIEND = (f"<http://example.org/{name}>" for name in ("Person", "knows", "friend"))
A, B, C = (f"<http://example.org/{name}>" for name in "abc")
PROGRAM = """
.prefix ex: <http://example.org/>
ex:friend(x, y) :- ex:knows(x, y), ex:Person(y).
"""
FACTS = {"ex:knows": [(A, B), (B, C)], "ex:Person": [(B,)]}


@on_engines
def test_relations_by_their_short_names(engine: Engine, tmp_path: Path) -> None:
    m = engine.materialise(PROGRAM, FACTS, counters="both")
    assert m.prefixes == {"ex": "http://example.org/"}
    assert set(m["ex:friend"]) == set(m[FRIEND]) == {(A, B)}
    assert "ex:Person" in m
    assert "ex:person" not in m
    assert m.get("ex:person") is None
    assert sorted(m) == [PERSON, FRIEND, KNOWS]
    assert set(m.query("ex:friend(x, y)")) == {(A, B)}
    with m.snapshot() as s:
        assert set(s["ex:friend"]) == {(A, B)}
    change = m.update(insert={"ex:Person": [(C,)]}, delete={"ex:knows": [(A, B)]})
    assert set(change.inserted["ex:friend"]) == {(B, C)}
    assert set(change.deleted["ex:friend"]) == set(change.deleted[FRIEND]) == {(A, B)}
    assert set(m["ex:friend"]) == {(B, C)}
    m.update(add_rules="ex:friend(x, x) :- ex:Person(x).")
    assert set(m["ex:friend"]) == {(B, C), (B, B), (C, C)}
    m.save(tmp_path / "s")
    m.close()
    assert set(evermat.query(tmp_path / "s", "ex:friend(x, x)")) == {(B,), (C,)}
    with evermat.open(tmp_path / "s") as opened:
        assert opened.prefixes == {"ex": "http://example.org/"}
        assert set(opened["ex:friend"]) == {(B, C), (B, B), (C, C)}
        opened.update(delete={"ex:Person": [(B,)]}, insert={KNOWS: [(A, B)]})
        assert set(opened["ex:friend"]) == {(B, C), (C, C)}


@on_engines
def test_one_relation_by_two_names_is_an_error(engine: Engine) -> None:
    m = engine.materialise(PROGRAM, FACTS)
    with pytest.raises(DataError) as found:
        m.update(insert={"ex:knows": [(A, C)], KNOWS: [(C, A)]})
    assert str(found.value) == (
        f"error[E355]: `ex:knows` and `{KNOWS}` name the same relation\n"
        "  = note: facts of a relation are given once, by one of its names"
    )
    assert set(m["ex:knows"]) == {(A, B), (B, C)}


def test_updates_of_a_stream_by_short_names() -> None:
    m = evermat.Program.parse(PROGRAM).materialise(FACTS)
    updates = [{"insert": {"ex:Person": [(C,)]}}, {"delete": {"ex:Person": [(C,)]}}, {"delete": {"ex:knows": [(A, B)]}}]
    changes = list(m.stream(updates, marking=True))
    assert [len(change.inserted["ex:friend"]) for change in changes] == [1, 0, 0]
    assert [len(change.deleted["ex:friend"]) for change in changes] == [0, 1, 1]
    assert len(evermat.Change.combined(changes).deleted["ex:friend"]) == 1
    assert set(pickle.loads(pickle.dumps(changes[0])).inserted["ex:friend"]) == {(B, C)}


@pytest.mark.parametrize("form", ["tsv", "jsonl", "parquet"])
def test_change_files_name_relations_by_any_of_their_names(form: str, tmp_path: Path) -> None:
    m = evermat.Program.parse(PROGRAM).materialise(FACTS)
    rows = [
        ("+", "ex:knows", [A, C]),
        ("+", KNOWS, [C, C]),
        ("-", "ex:knows", [C, C]),
        ("-", KNOWS, [A, B]),
        ("+", "ex:Person", [C]),
    ]
    path = tmp_path / f"changes.{form}"
    if form == "parquet":
        columns = zip(*rows, strict=True)
        pq.write_table(pa.table(dict(zip(("op", "relation", "values"), map(list, columns), strict=True))), path)
    elif form == "jsonl":
        path.write_text(
            "".join(json.dumps(dict(zip(("op", "relation", "values"), row, strict=True))) + "\n" for row in rows)
        )
    else:
        path.write_text("".join("\t".join([op, name, *values]) + "\n" for op, name, values in rows))
    (change,) = m.update_files(path)
    assert set(m["ex:knows"]) == {(A, C), (B, C)}
    change.write(tmp_path / "out.tsv")
    assert f"+\t{PERSON}\t{C}\n" in (tmp_path / "out.tsv").read_text()


def test_a_name_in_a_change_file_that_is_none(tmp_path: Path) -> None:
    m = evermat.Program.parse(PROGRAM).materialise(FACTS)
    (tmp_path / "c.tsv").write_text(f"+\tex:Persons\t{A}\n")
    with pytest.raises(DataError) as found:
        m.update_files(tmp_path / "c.tsv")
    assert found.value.problems[0].render().endswith("= help: did you mean `ex:Person`?")


# --- unknown names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "help_"),
    [
        ("ex:Persn", "did you mean `ex:Person`?"),
        ("Person", "did you mean `ex:Person`?"),
        ("http://example.org/Person", f"did you mean `{PERSON}`?"),
        ("<http://example.org/person>", f"did you mean `{PERSON}`?"),
        ("eg:Person", "the prefix `eg:` is not declared; did you mean `ex:Person`?"),
        ("exx:zzzzzzzz", "the prefix `exx:` is not declared; did you mean `ex:`?"),
        ("zz:zzzzzzzzz", "the prefix `zz:` is not declared"),
        ("nothing_like_it", ""),
    ],
)
def test_an_unknown_name_suggests(name: str, help_: str) -> None:
    m = evermat.Program.parse(PROGRAM).materialise(FACTS)
    with pytest.raises(KeyError) as found:
        m[name]
    error = found.value
    assert isinstance(error, UnknownRelationError)
    assert str(error) == f"error[E330]: the program has no relation `{name}`" + (
        f"\n  = help: {help_}" if help_ else ""
    )
    with pytest.raises(DataError) as refused:
        m.update(insert={name: [(A,)]})
    assert str(refused.value) == str(error)
    assert pickle.loads(pickle.dumps(error)).problems == error.problems


def test_a_class_without_a_relation_is_found_by_queries(tmp_path: Path) -> None:
    (tmp_path / "d.ttl").write_text("@prefix ex: <http://example.org/> . ex:a a ex:Robot ; ex:knows ex:b .")
    m = evermat.Program.parse(PROGRAM).materialise(rdf=tmp_path / "d.ttl")
    with pytest.raises(KeyError, match="in `other_triple`; a query finds them: `ex:Robot"):
        m["ex:Robot"]
    assert set(m.query("ex:Robot(x)")) == {(A,)}


def test_a_prefix_in_a_query_that_is_not_declared() -> None:
    m = evermat.Program.parse(PROGRAM).materialise(FACTS)
    with pytest.raises(evermat.ProgramError, match="help: did you mean `ex:`") as found:
        m.query("exx:Person(x)")
    assert found.value.problems[0].message == "prefix `exx:` is not declared"


# --- whose prefixes --------------------------------------------------------------------------------------------

ONTOLOGY = """
@prefix o: <http://example.org/> . @prefix unused: <http://example.org/unused/> . @prefix both: <http://example.org/one/> .
@prefix own: <http://example.org/theirs/> .
o:Woman <http://www.w3.org/2000/01/rdf-schema#subClassOf> o:Person . own:A <http://www.w3.org/2000/01/rdf-schema#subClassOf> own:B .
"""
DATA = {
    "d.ttl": "@prefix d: <http://example.org/> . @prefix both: <http://example.org/two/> . @prefix many: <http://a/> .\nd:a a d:Woman .",
    "e.rdf": "<!DOCTYPE rdf:RDF [<!ENTITY e 'http://example.org/'>]>\n"
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="&e;e/" xmlns:many="http://b/"/>',
    "f.jsonld": '{"@context": {"f": "http://example.org/f/", "g": {"@id": "http://example.org/g#"}, "name": "http://example.org/name"}}',
    "g.nt": "",
}


def made(folder: Path) -> Materialisation:
    (folder / "o.ttl").write_text(ONTOLOGY)
    for name, text in DATA.items():
        (folder / name).write_text(text)
    program = evermat.Program.parse(
        ".prefix own: <http://example.org/mine/>\nown:A(x) :- own:B(x).", ontology=folder / "o.ttl"
    )
    return program.materialise(rdf=[folder / name for name in DATA], counters="both")


def test_prefixes_of_ontologies_and_data_are_kept_with_a_state(tmp_path: Path) -> None:
    m = made(tmp_path)
    prefixes = m.prefixes
    known = {
        "o": "http://example.org/",
        "unused": "http://example.org/unused/",
        "both": "http://example.org/one/",  # the ontology's comes first
        "own": "http://example.org/mine/",  # and the program's own before it
        "d": "http://example.org/",
        "e": "http://example.org/e/",
        "f": "http://example.org/f/",
        "g": "http://example.org/g#",
    }
    assert {name: m.prefixes.get(name) for name in known} == known
    assert not {"many", "name"} & m.prefixes.keys()
    m.save(tmp_path / "s")
    m.close()
    for query in ("o:Person(x)", "d:Person(x)", "<http://example.org/Person>(x)"):
        assert set(evermat.query(tmp_path / "s", query)) == {(A,)}
    with evermat.open(tmp_path / "s") as opened:
        assert opened.prefixes == prefixes
        opened.update(insert={"d:Woman": [(B,)]}, add_rules="own:A(x) :- d:Woman(x).")
        assert set(opened["<http://example.org/mine/A>"]) == {(A,), (B,)}
    with evermat.open(tmp_path / "s") as opened:
        assert set(opened["own:A"]) == {(A,), (B,)}
        assert opened.prefixes == prefixes


def test_a_pipe_is_not_read_for_its_prefixes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.ttl")
    writer = threading.Thread(target=(tmp_path / "p.ttl").write_text, args=("@prefix p: <http://p/> . p:a a p:C .",))
    writer.start()
    m = evermat.Program.parse("").materialise(rdf=tmp_path / "p.ttl")
    writer.join()
    assert set(m.query("<http://p/C>(x)")) == {("<http://p/a>",)}
    assert m.prefixes == {}


def test_the_changes_of_a_relation_with_a_short_name(tmp_path: Path) -> None:
    from evermat.runtime.streams.change_source import StateFeed

    with evermat.Program.parse(PROGRAM).materialise(FACTS, counters="both") as m:
        m.save(tmp_path / "s")
        m.update(insert={"ex:knows": [(C, B)]})
    feed = StateFeed(tmp_path / "s", "ex:friend")
    assert feed.columns.names == ["s", "o"]
    assert feed.content(1).num_rows == 1
    changes = feed.changes(2, 2)
    assert changes is not None
    assert changes.num_rows == 1


def test_a_state_without_stored_prefixes_has_those_of_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evermat.runtime.states import persistence

    entry = persistence._engine_entry
    monkeypatch.setattr(
        persistence, "_engine_entry", lambda *a: {k: v for k, v in entry(*a).items() if k != "prefixes"}
    )
    evermat.Program.parse(PROGRAM).materialise(FACTS).save(tmp_path / "s")
    with evermat.open(tmp_path / "s") as opened:
        assert set(opened["ex:friend"]) == {(A, B)}
    assert set(evermat.query(tmp_path / "s", "ex:friend(x, y)")) == {(A, B)}


def test_prefixes_are_found_as_the_lexer_finds_them() -> None:
    text = """
    .prefix a: <http://a/> // .prefix b: <http://b/>
    /* .prefix c: <http://c/> */ .prefix
      d: /* e */ <http://d#> .prefix a: <http://aa/>
    p("x // .prefix f: <http://f/>", <http://g//.prefix>, "\\" .prefix h: <http://h/>").
    .prefix i-j: <urn:x:> .prefixed k: <http://k/>
    """
    expected, pending = dict[str, str](), ""
    for token in lexer().tokens(text):
        if token.type == "IRI" and pending:
            expected[pending] = token.value[1:-1]
        pending = token.value if token.type == "PREFIX_NAME" else ""
    assert declared_prefixes(text) == expected == {"a": "http://aa/", "d": "http://d#", "i-j": "urn:x:"}


def test_the_longest_namespace_abbreviates() -> None:
    names = RelationNames({}, {"a": "http://a/", "b": "http://a/b/", "c": "http://a/b/c"})
    assert names.abbreviated("<http://a/b/x>") == "b:x"
    assert names.abbreviated("<http://a/b/c>") == "b:c"
    assert names.abbreviated("<http://z/>") == "<http://z/>"
