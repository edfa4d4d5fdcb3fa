"""Materialisations, as `Program.materialise` returns them."""

from __future__ import annotations

import doctest
import importlib
import math
import pickle
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import evermat
from evermat import DataError, LimitError, Program, ProgramError
from evermat.testing import state_of

CLOSURE = """
    .decl edge(x:symbol, y:symbol)
    .decl path(x:symbol, y:symbol)
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
    .decl size(n:number)
    size(n) :- n = count : { path(_, _) }.
"""
EDGES = [("a", "b"), ("b", "c")]
PATHS = {("a", "b"), ("b", "c"), ("a", "c")}
TYPES = Program.parse("""
    .decl all(s:symbol, n:number, u:unsigned, f:float)
    all("é", -1, 18446744073709551615, 0.5). all("", 2, 0, -1).
    .decl yes() yes().
    .decl no()
    .decl none(x:number, y:symbol)
""")


@pytest.fixture
def closure() -> evermat.api.program.Materialisation:
    return Program.parse(CLOSURE).materialise({"edge": EDGES})


# --- a mapping of relations --------------------------------------------------------------------------------


def test_it_is_a_mapping(closure) -> None:
    assert list(closure) == ["edge", "path", "size"]
    assert len(closure) == 3
    assert "path" in closure
    assert "size#1" not in closure
    assert {name: len(facts) for name, facts in closure.items()} == {"edge": 2, "path": 3, "size": 1}
    assert repr(closure) == "<Materialisation: edge 2, path 3, size 1>"


@pytest.mark.parametrize("name", ["nope", "size#1", "", 1])
def test_unknown_and_hidden_relations(name: object, closure) -> None:
    with pytest.raises(KeyError, match=repr(name) if name == 1 else f"the program has no relation `{name}`"):
        closure[name]


def test_hidden_relations_exist(closure) -> None:
    assert "size#1" in closure.program.relations  # or the test above would be about nothing


# --- facts -------------------------------------------------------------------------------------------------


def test_facts_are_a_collection(closure) -> None:
    facts = closure["path"]
    assert len(facts) == 3
    assert set(facts) == PATHS
    assert sorted(facts) == sorted(facts)  # again and again
    assert facts.columns == ["x", "y"]
    assert repr(facts) == "<Relation path(x, y): 3 facts>"


def test_membership(closure) -> None:
    facts = closure["path"]
    assert ("a", "c") in facts
    for other in (
        ("c", "a"),
        ("a", "nobody"),
        ("a",),
        ("a", "c", "a"),
        (),
        ["a", "c"],
        "ac",
        None,
        ("a", 1),
        (1, "c"),
        ("a", None),
    ):
        assert other not in facts


def test_asking_makes_no_symbol_known(closure) -> None:
    before = len(state_of(closure).dictionary)
    assert ("new", "a") not in closure["path"]
    assert ("a", "new") not in closure["edge"]
    assert len(state_of(closure).dictionary) == before


def test_membership_of_numbers() -> None:
    facts = TYPES.materialise()["all"]
    assert ("é", -1, 2**64 - 1, 0.5) in facts
    assert ("", 2, 0, -1) in facts  # an integer is a float, too
    for row in (
        ("é", -1, -1, 0.5),
        ("é", -1.0, 2**64 - 1, 0.5),
        ("", 2, False, -1.0),
        ("", 2, 0, math.nan),
        ("", 2, 0, 10**400),
    ):
        assert row not in facts


def test_nullary_relations() -> None:
    m = TYPES.materialise()
    assert (len(m["yes"]), list(m["yes"]), () in m["yes"]) == (1, [()], True)
    assert (len(m["no"]), list(m["no"]), () in m["no"]) == (0, [], False)
    assert m["yes"].to_arrow().num_rows == 1
    assert m["no"].to_arrow().num_rows == 0


# --- other libraries ---------------------------------------------------------------------------------------


def test_to_arrow() -> None:
    table = TYPES.materialise()["all"].to_arrow()
    fields = [("s", pa.string()), ("n", pa.int64()), ("u", pa.uint64()), ("f", pa.float64())]
    assert table.schema == pa.schema([pa.field(name, type_, nullable=False) for name, type_ in fields])
    expected = [{"s": "", "n": 2, "u": 0, "f": -1.0}, {"s": "é", "n": -1, "u": 2**64 - 1, "f": 0.5}]
    assert sorted(table.to_pylist(), key=lambda row: row["s"]) == expected


def test_an_empty_relation_keeps_its_types() -> None:
    facts = TYPES.materialise()["none"]
    assert facts.to_arrow().schema.types == [pa.int64(), pa.string()]
    assert facts.to_pandas().shape == (0, 2)
    assert facts.to_polars().schema == {"x": pl.Int64, "y": pl.String}


def test_to_pandas_and_polars() -> None:
    facts = TYPES.materialise()["all"]
    rows = {("é", -1, 2**64 - 1, 0.5), ("", 2, 0, -1.0)}
    assert set(facts.to_pandas().itertuples(index=False, name=None)) == rows
    assert set(facts.to_polars().iter_rows()) == rows


def test_the_arrow_interface() -> None:
    facts = TYPES.materialise()["all"]
    rows = {("é", -1, 2**64 - 1, 0.5), ("", 2, 0, -1.0)}
    assert set(pl.DataFrame(facts).iter_rows()) == rows
    assert {tuple(row.values()) for row in pa.table(facts).to_pylist()} == rows


def test_duckdb_reads_facts() -> None:
    duckdb = pytest.importorskip("duckdb")
    facts = TYPES.materialise()["all"]
    found = duckdb.sql("select s, u from facts where n < 0").fetchall()
    assert found == [("é", 2**64 - 1)]
    assert len(facts) == 2


def test_html_is_escaped() -> None:
    program = Program.parse('.decl r(x:symbol, y:number) r("<b>&\\"", 1).')
    assert program.materialise()["r"]._repr_html_() == (
        "<table><caption>r: 1 facts</caption><thead><tr><th>x</th><th>y</th></tr></thead>"
        "<tbody><tr><td>&lt;b&gt;&amp;&quot;</td><td>1</td></tr></tbody></table>"
    )


def test_html_of_a_name_that_is_an_iri() -> None:
    program = Program.parse("<http://x.org/a&b>(<http://x.org/c>).")
    shown = program.materialise()["<http://x.org/a&b>"]._repr_html_()
    assert "<caption>&lt;http://x.org/a&amp;b&gt;: 1 facts</caption>" in shown
    assert "<td>&lt;http://x.org/c&gt;</td>" in shown


def test_html_shows_ten_rows() -> None:
    shown = Program.parse(".decl r(x:number)").materialise({"r": range(1234)})["r"]._repr_html_()
    assert shown.count("<tr>") == 11
    assert "1,234 facts" in shown


# --- materialising -----------------------------------------------------------------------------------------


def test_materialisations_are_independent() -> None:
    program = Program.parse(CLOSURE + 'edge("x", "a").')
    first = program.materialise({"edge": EDGES})
    second = program.materialise({"edge": [("c", "d")]})
    third = program.materialise()
    assert len(first["path"]) == 6
    assert set(second["path"]) == {("x", "a"), ("c", "d")}
    assert set(third["path"]) == {("x", "a")}
    assert ("a", "b") not in second["edge"]
    assert len(first["path"]) == 6


def test_facts_in_the_text_and_in_the_argument_are_one_set() -> None:
    program = Program.parse(CLOSURE + 'edge("a", "b"). edge("a", "b"). path("p", "a").')
    m = program.materialise({"edge": EDGES, "path": [("p", "a"), ("p", "b")]})
    assert set(m["edge"]) == set(EDGES)
    assert set(m["path"]) == PATHS | {("p", "a"), ("p", "b"), ("p", "c")}
    assert m.stats["explicit"] == 4


@pytest.mark.parametrize("counters", ["none", "nonrecursive", "both"])
def test_counters_change_no_result(counters: str) -> None:
    m = Program.parse(CLOSURE).materialise({"edge": EDGES}, counters=counters)
    assert set(m["path"]) == PATHS
    by_relation = {name: s["counters"] for s in m.stats["strata"] for name in s["relations"]}
    assert by_relation["edge"] == counters
    assert by_relation["path"] == {"both": "modular"}.get(counters, counters)


def test_an_engine_that_is_none() -> None:
    with pytest.raises(TypeError, match=r"^the engine is of type NoneType: use 'memory' or a SparkSession$"):
        Program.parse(CLOSURE).materialise(engine=None)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"engine": "spork"}, "engine 'spork' is not known: use 'memory' or a SparkSession"),
        ({"counters": "all"}, "counters 'all' are not known: use 'none', 'nonrecursive' or 'both'"),
    ],
)
def test_wrong_options(options: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=rf"^error\[E200\]: {told}$"):
        Program.parse(CLOSURE).materialise(**options)


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"limit_rounds": 100}, "100 rounds"),
        ({"limit_facts": 1000}, "1,000 facts"),
        ({"limit_seconds": 0.1}, "0.1 seconds"),
        ({"memory": 1000}, "1,000 bytes of memory"),
    ],
)
def test_limits(limits: dict[str, float], told: str) -> None:
    program = Program.parse(".decl n(x:number) n(0). n(x + 1) :- n(x), x < 1000000000.")
    with pytest.raises(LimitError, match=f"the limit of {told} is reached") as raised:
        program.materialise(**limits)
    assert raised.value.exit_code == 4


def test_limits_that_are_not_reached() -> None:
    m = Program.parse(CLOSURE).materialise(
        {"edge": EDGES}, limit_rounds=100, limit_facts=100, limit_seconds=60, memory=2**40
    )
    assert set(m["path"]) == PATHS


def test_stats(closure) -> None:
    stats = closure.stats
    assert stats["facts"] == {"edge": 2, "path": 3, "size": 1}
    assert (stats["explicit"], stats["derived"], stats["undefined"]) == (2, 4, 0)
    assert list(stats["seconds"]) == ["encode", "reason"]
    assert [stratum["relations"] for stratum in stats["strata"]] == [["edge"], ["path"], [], ["size"]]


def test_undefined_values_are_counted_by_rule() -> None:
    program = Program.parse(
        ".decl a(x:number)\n.decl b(x:number)\nb(1 / x) :- a(x).\nb(x) :- a(x), x % 2 = 0.\nb(x * x) :- a(x).", "p.dl"
    )
    m = program.materialise({"a": [0, 1, 2, 2**62]})
    assert set(m["b"]) == {(1,), (0,), (2,), (2**62,), (4,)}
    assert list(m.undefined()) == [("p.dl:3:1", 1), ("p.dl:5:1", 1)]
    assert m.stats["undefined"] == 2
    assert [m.undefined_expressions(position) for position, _ in m.undefined()] == [("1 / x",), ("x * x",)]


# --- programs ----------------------------------------------------------------------------------------------


def test_programs() -> None:
    program = Program.parse(CLOSURE)
    assert program.relations == ["edge", "path", "size"]
    assert repr(program) == "<Program <text>: 3 relations, 4 rules>"
    assert [stratum.relations[0] for stratum in program.strata] == ["edge", "path", "size#1", "size"]
    assert program.warnings == ()


def test_reading(tmp_path: Path) -> None:
    path = tmp_path / "closure.dl"
    path.write_text(CLOSURE)
    assert set(Program.read(path).materialise({"edge": EDGES})["path"]) == PATHS
    assert Program.read(str(path)).relations == ["edge", "path", "size"]


def test_errors_of_programs(tmp_path: Path) -> None:
    with pytest.raises(ProgramError) as raised:
        Program.parse("a(1).\nb(2).", "mine.dl")
    assert [problem.message for problem in raised.value.problems] == [
        "relation `a` is not declared",
        "relation `b` is not declared",
    ]
    assert "--> mine.dl:2:1" in str(raised.value)
    with pytest.raises(ProgramError, match=r"error\[E208\]: cannot read `.*none\.dl`: no such file or directory"):
        Program.read(tmp_path / "none.dl")
    (tmp_path / "latin.dl").write_bytes('.decl a(x:symbol)\na("é").'.encode("latin-1"))
    with pytest.raises(ProgramError, match=r"latin\.dl"):
        Program.read(tmp_path / "latin.dl")


def test_warnings_of_programs() -> None:
    program = Program.parse(".decl a(x:number) .decl b() b() :- a(x).")
    assert [warning.message for warning in program.warnings] == ["variable `x` occurs only once"]


def test_errors_are_evermats_own() -> None:
    assert issubclass(DataError, evermat.EvermatError)
    assert issubclass(LimitError, evermat.EvermatError)
    assert issubclass(ProgramError, evermat.EvermatError)
    with pytest.raises(AttributeError, match="module 'evermat' has no attribute 'nope'"):
        evermat.nope  # noqa: B018


@pytest.mark.parametrize(
    "name",
    [
        "evermat",
        "evermat.api.program",
        "evermat.api.materialisation",
        "evermat.runtime.facts.ingest",
        "evermat.core.source",
        "evermat.core.errors",
    ],
)
def test_examples_in_the_documentation(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
    assert found.attempted > 0 or name in ("evermat.runtime.facts.ingest", "evermat.core.errors")


CHANGES = {
    "plain": ('.decl a(x:symbol) .decl b(x:symbol) b(cat(x, "!")) :- a(x).', "a", [("x",), ("y",)]),
    "closure": (
        ".decl a(x:number, y:number) .decl b(x:number, y:number) b(x, y) :- a(x, y). b(x, z) :- b(x, y), b(y, z).",
        "a",
        [(1, 2), (2, 3)],
    ),
    "equality": ("x = y :- <http://e/p>(x, y).", "<http://e/p>", [("<http://e/a>", "<http://e/b>")]),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_changes_can_be_pickled(kind: str) -> None:
    """They go between processes, with all their facts, whatever happens to the materialisation afterwards."""
    text, name, rows = CHANGES[kind]
    m = Program.parse(text).materialise()
    change = m.update(insert={name: rows})
    copy = pickle.loads(pickle.dumps(change))
    m.update(delete={name: rows})
    for before, after in ((change.inserted, copy.inserted), (change.deleted, copy.deleted)):
        assert {r: set(before[r]) for r in before} == {r: set(after[r]) for r in after}
    assert copy.stats == change.stats
    assert copy
