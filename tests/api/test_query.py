"""Queries: what they answer, how answers are shown, and what is said about queries that are wrong."""

from __future__ import annotations

import io
import re
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat import LimitError, Program, ProgramError
from evermat.columns.evaluation import buffers
from evermat.columns.state import snapshot as evaluation
from evermat.core.choices import ANSWER_FORMATS
from evermat.testing import state_of
from tests.support import oracle
from tests.support.golden import check_golden
from tests.support.strategies import RandomProgram, programs, random_query

CASES = Path(__file__).parent / "query_cases"
REACH = """
    .type Place <: symbol
    .type Name <: symbol
    .decl edge(x:symbol, y:symbol)
    .decl path(x:symbol, y:symbol)
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z).
    .decl sink(x:symbol)
    sink(x) :- path(_, x), !edge(x, _).
    .decl age(name:symbol, n:number, f:float, u:unsigned)
    age("ann", 31, 0.5, 1). age("bob", -4, 1, 2). age("bob", 31, 2, 18446744073709551615).
    .decl here(x:Place) here("a").
    .decl called(x:Name) called("a").
    .decl same(x:symbol, y:symbol) eqrel
    same("a", "b").
    .decl yes() yes().
    .decl no()
"""
EDGES = [("a", "b"), ("b", "c"), ("c", "d"), ("x", "x")]


@pytest.fixture(scope="module")
def reach():
    return Program.parse(REACH, "reach.dl").materialise({"edge": EDGES}, counters="both")


# --- answers -----------------------------------------------------------------------------------------------

ANSWERS = {
    'path("a", x)': (["x"], {("b",), ("c",), ("d",)}),
    'path("a", x), x != "b"': (["x"], {("c",), ("d",)}),
    'path(x, "d"), edge(x, y)': (["x", "y"], {("a", "b"), ("b", "c"), ("c", "d")}),
    "edge(x, x)": (["x"], {("x",)}),
    "edge(_, y), sink(y)": (["y"], {("d",)}),
    "edge(y, x), y < x": (["y", "x"], {("a", "b"), ("b", "c"), ("c", "d")}),
    'edge("a", _y), edge(_y, z)': (["z"], {("c",)}),
    '?- path("a", x).': (["x"], {("b",), ("c",), ("d",)}),
    '  ?-path("c", x) .  // all of them': (["x"], {("d",)}),
    'path("nobody", x)': (["x"], set()),
    'edge(x, _), x != "nobody", !edge(x, "nobody")': (["x"], {("a",), ("b",), ("c",), ("x",)}),
    'edge(x, _), c = cat(x, "!"), c != "a!"': (["x", "c"], {("b", "b!"), ("c", "c!"), ("x", "x!")}),
    'x = "new"': (["x"], {("new",)}),
    'x = "a", path(x, y)': (["x", "y"], {("a", "b"), ("a", "c"), ("a", "d")}),
    "edge(x, _), !edge(_, x)": (["x"], {("a",)}),
    "edge(x, _) ; sink(x)": (["x"], {("a",), ("b",), ("c",), ("d",), ("x",)}),
    'edge(x, y), (y = "b" ; sink(y))': (["x", "y"], {("a", "b"), ("c", "d")}),
    'match("[ab]", x), edge(x, y)': (["x", "y"], {("a", "b"), ("b", "c")}),
    "age(_, n, _, _), m = n * 2 + 1": (["n", "m"], {(31, 63), (-4, -7)}),
    "age(x, n, f, u), f > 0.7, u > 2": (["x", "n", "f", "u"], {("bob", 31, 2.0, 2**64 - 1)}),
    "n = count : { path(_, _) }": (["n"], {(7,)}),
    "edge(x, _), n = count : { path(x, _) }": (["x", "n"], {("a", 3), ("b", 2), ("c", 1), ("x", 1)}),
    "age(x, _, _, _), t = max n : { age(x, n, _, _) }": (["x", "t"], {("ann", 31), ("bob", 31)}),
    "same(x, y)": (["x", "y"], {("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")}),
    'path("a", "d")': ([], {()}),
    'path("d", "a")': ([], set()),
    'path("a", _)': ([], {()}),
    'path("d", _)': ([], set()),
    "yes()": ([], {()}),
    "no()": ([], set()),
    "yes(), !no()": ([], {()}),
    "count : { path(_, _) } > 6": ([], {()}),
    "true": ([], {()}),
    "false": ([], set()),
    "edge(x, _), false": (["x"], set()),
    "1 < 2": ([], {()}),
}


@pytest.mark.parametrize("text", ANSWERS)
@pytest.mark.parametrize("scans", [0, 100])
def test_answers(text: str, scans: int, reach, monkeypatch) -> None:
    monkeypatch.setattr(evaluation, "SCANS", scans)
    columns, rows = ANSWERS[text]
    for _ in range(2):
        answer = reach.query(text)
        assert answer.columns == columns
        assert set(answer) == rows
        assert len(answer) == len(rows)
        assert bool(answer) == bool(rows)


def test_an_answer_is_a_collection(reach) -> None:
    answer = reach.query("age(x, n, f, u)")
    assert repr(answer) == "<Answer (x, n, f, u): 3 rows>"
    assert ("ann", 31, 0.5, 1) in answer
    assert ("ann", 31, 0.5, 2) not in answer
    assert ("nobody", 31, 0.5, 1) not in answer
    assert answer.to_arrow().schema.types == [pa.string(), pa.int64(), pa.float64(), pa.uint64()]
    assert set(pl.DataFrame(answer).rows()) == set(answer) == set(answer.to_polars().rows())
    assert sorted(answer.to_pandas()["n"]) == [-4, 31, 31]
    assert "<caption>3 rows</caption>" in answer._repr_html_()
    assert repr(reach.query("edge(x, x)")) == "<Answer (x): 1 row>"
    assert repr(reach.query("yes()")) == "<Answer (): true>"
    assert reach.query("yes()").to_arrow().shape == (1, 0)


def test_an_answer_does_not_change_with_the_facts() -> None:
    m = Program.parse(REACH).materialise({"edge": EDGES})
    before = m.query('path("a", x)')
    m.update(insert={"edge": [("d", "e")]}, delete={"edge": [("a", "b")]})
    assert set(before) == {("b",), ("c",), ("d",)}
    assert not m.query('path("a", x)')
    assert ("e",) in m.query('path("b", x)')


def test_what_has_no_value_is_counted(reach) -> None:
    answer = reach.query("age(x, n, _, _), m = 10 / (n + 4)")
    assert set(answer) == {("ann", 31, 0), ("bob", 31, 0)}
    assert answer.undefined == 1


def test_rules_that_were_added_can_be_asked_for(reach) -> None:
    m = Program.parse(REACH).materialise({"edge": EDGES})
    assert m.query("sink(x)")
    m.update(add_rules=".decl back(x:symbol, y:symbol) back(y, x) :- edge(x, y).")
    assert set(m.query('back("b", x)')) == {("a",)}


def test_names_of_rdf() -> None:
    text = ".prefix u: <http://u/> .decl take(x:term, y:term) u:takes(x, y) :- take(x, y)."
    m = Program.parse(text).materialise({"take": [("<http://u/a>", '"x"')]})
    assert set(m.query("u:takes(u:a, x)")) == {('"x"',)}
    assert set(m.query('u:takes(x, "x")')) == {("<http://u/a>",)}
    assert not m.query("u:takes(x, _), u:Unheard(x)")
    triples = Program.parse(".prefix u: <http://u/> triple(u:a, u:p, u:b). triple(x, u:q, y) :- u:p(x, y).")
    assert set(triples.materialise().query("u:q(x, y)")) == {("<http://u/a>", "<http://u/b>")}


def test_limits(reach) -> None:
    rows = [(i,) for i in range(3000)]
    m = Program.parse(".decl a(x:number)").materialise({"a": rows})
    with pytest.raises(LimitError):
        m.query("a(x), a(y), a(z), x + y + z != 17", limit_seconds=0.1)
    assert len(m.query("a(x), x < 10")) == 10


# --- nothing changes by asking -------------------------------------------------------------------------------


def everything(m) -> dict[str, object]:
    state = state_of(m)
    stats = {key: value for key, value in m.stats.items() if key not in ("schemes", "stored_bytes", "peak_rss_mb")}
    tables = {}
    for name, table in state.tables.items():
        rows = np.arange(table.count, dtype=np.int32)
        counted = [
            kind.counters[name].get(rows).tolist() for kind in (state.nonrecursive_counter, state.recursive_counter)
        ]
        tables[name] = (table.take(rows).tolist(), table.state[: table.count].tolist(), counted)
    sizes = (dict(state.explicit.sizes), dict(state.materialised.sizes))
    return {
        "facts": {name: sorted(m[name]) for name in m},
        "stats": stats,
        "tables": tables,
        "sizes": sizes,
        "undefined": list(m.undefined()),
        "relations": list(m.program.relations),
        "symbols": len(state.dictionary),
    }


def test_nothing_changes_by_asking() -> None:
    m = Program.parse(REACH).materialise({"edge": EDGES}, counters="both")
    m.update(insert={"edge": [("d", "e")]}, delete={"edge": [("a", "b")]})
    before = everything(m)
    for text in ANSWERS:
        m.query(text)
    with pytest.raises(ProgramError):
        m.query("nope(x)")
    assert everything(m) == before  # what a query computes belongs to its answer


# --- the oracle ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(random=programs(), rng=st.randoms(use_true_random=True), scans=st.sampled_from([0, 100]))
def test_answers_equal_those_of_the_oracle(random: RandomProgram, rng: Random, scans: int) -> None:
    m = Program.parse(random.text).materialise(random.facts)
    whole, evaluation.SCANS = evaluation.SCANS, scans
    try:
        check_queries(m, random, random.facts, rng)
        gone = {name: {row for row in sorted(rows) if rng.random() < 0.5} for name, rows in random.facts.items()}
        m.update(delete=gone)
        check_queries(m, random, {name: rows - gone[name] for name, rows in random.facts.items()}, rng)
    finally:
        evaluation.SCANS = whole


def check_queries(m, random: RandomProgram, explicit, rng: Random) -> None:
    for _ in range(4):
        text, types = random_query(rng, random.relations)
        columns = ", ".join(f"{name}:{type_}" for name, type_ in types.items())
        rule = f".decl asked({columns})\nasked({', '.join(types)}) :- {text}."
        expected = oracle.materialise(oracle.read(f"{random.text}\n{rule}"), explicit)["asked"]
        answer = m.query(text)
        assert sorted(answer.columns) == sorted(types), text
        assert [str(c.type) for c in answer.relation.columns] == [types[name] for name in answer.columns]
        order = [answer.columns.index(name) for name in types]
        found = [tuple(row[i] for i in order) for row in answer]
        assert len(found) == len(set(found))
        assert set(found) == expected, text


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(random=programs(), rng=st.randoms(use_true_random=True))
def test_tiny_chunks_give_the_same(random: RandomProgram, rng: Random) -> None:
    m = Program.parse(random.text).materialise(random.facts)
    whole, buffers.CHUNK = buffers.CHUNK, 3
    try:
        check_queries(m, random, random.facts, rng)
    finally:
        buffers.CHUNK = whole


# --- errors ------------------------------------------------------------------------------------------------

ERRORS = {
    "empty": "",
    "empty_dot": " ?- . ",
    "empty_comment": "// nothing",
    "unknown": 'pth("a", x), edges(x, _)',
    "arity": "path(x), yes(x)",
    "unsafe": "!path(x, y), edge(y, _), z < 3",
    "alternatives": "edge(x, _) ; edge(_, y)",
    "alternative_types": "edge(x, _) ; age(_, x, _, _)",
    "types": "path(x, 1), age(n, n, _, _)",
    "subtypes": "here(x), called(x)",
    "cut_short": 'path("a",',
    "cut_short_comma": "path(x, y),  // and",
    "missing_comma": "path(x, y)\nedge(y, z)",
    "two": "path(x, y). edge(y, z).",
    "rule": "p(x) :- path(x, y).",
    "declaration": ".decl p(x:symbol)",
    "open_string": 'path("a, x)',
    "pattern": 'edge(x, _), match("(", x)',
    "second_line": "path(x, y),\n  egde(y,\n z)",
    "prefix": "ub:Student(x)",
    "wildcard": "edge(x, y), y < _",
    "number": "age(_, 9223372036854775808, _, _)",
    "aggregate": "edge(x, _), y = z, n = count : { edge(x, z) }",
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_read_as_written(name: str, reach) -> None:
    with pytest.raises(ProgramError) as raised:
        reach.query(ERRORS[name])
    assert raised.value.exit_code == 2
    check_golden(CASES / f"{name}.txt", str(raised.value))


def test_every_case_is_used() -> None:
    assert {path.stem for path in CASES.iterdir()} == set(ERRORS)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from('path("a", x_)!;=.,:-?<{}1 \n/*edge'), max_size=30))
def test_any_text_is_answered_or_refused(text: str) -> None:
    try:
        PARSED.query(text)
    except ProgramError as error:
        for problem in error.problems:
            if problem.span is not None:
                place = problem.source.position(problem.span.start)
                assert 1 <= place.line <= text.count("\n") + 1
                assert 1 <= place.column <= len(text) + 1
            problem.render()


PARSED = Program.parse(REACH).materialise({"edge": EDGES})


# --- answers as text and files -------------------------------------------------------------------------------


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


def written(answer, format_: str, stream: io.BytesIO | None = None) -> bytes:
    stream = stream or io.BytesIO()
    answer.write(stream, format_)
    return stream.getvalue()


def test_a_plain_table(reach) -> None:
    assert written(reach.query("age(x, n, f, u)"), "table").decode() == (
        "x     n    f                     u\n"
        "---  --  ---  --------------------\n"
        "ann  31  0.5                     1\n"
        "bob  -4    1                     2\n"
        "bob  31    2  18446744073709551615\n"
    )


def test_a_table_on_a_terminal(reach, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    text = re.sub(r"\x1b\[[0-9;]*m", "", written(reach.query('path("a", x)'), "table", Terminal()).decode())
    assert [line.rstrip() for line in text.splitlines()] == [
        "╭───╮",
        "│ x │",
        "├───┤",
        "│ b │",
        "│ c │",
        "│ d │",
        "╰───╯",
        "3 rows",
    ]


def test_a_table_shows_what_cannot_be_printed() -> None:
    m = Program.parse(".decl a(x:symbol, y:symbol)").materialise({"a": [("\x1b[31m[bold]", "漢字"), ("a\tb", "é")]})
    assert written(m.query("a(x, y)"), "table").decode().splitlines() == [
        "x               y",
        "--------------  ----",
        "\\x1b[31m[bold]  漢字",
        "a\\tb            é",
    ]
    boxed = written(m.query("a(x, y)"), "table", Terminal()).decode()
    assert "\\x1b[31m[bold]" in boxed


def test_csv_and_json_lines() -> None:
    m = Program.parse(".decl a(x:symbol, y:float)").materialise(
        {"a": [('say "b"', 1.5), ("c,\nd", 2), ("", float("inf"))]}
    )
    answer = m.query("a(x, y)")
    assert written(answer, "csv").decode() == 'x,y\n,inf\n"c,\nd",2\n"say ""b""",1.5\n'
    assert written(answer, "jsonl").decode() == (
        '{"x": "", "y": "inf"}\n{"x": "c,\\nd", "y": 2}\n{"x": "say \\"b\\"", "y": 1.5}\n'
    )
    found = pq.read_table(io.BytesIO(written(answer, "parquet")))
    assert found.to_pydict() == {"x": ["", "c,\nd", 'say "b"'], "y": [float("inf"), 2.0, 1.5]}


def test_an_empty_answer(reach) -> None:
    answer = reach.query('path("d", x)')
    assert written(answer, "table") == b"x\n-\n"
    assert written(answer, "csv") == b"x\n"
    assert written(answer, "jsonl") == b""
    assert pq.read_table(io.BytesIO(written(answer, "parquet"))).num_rows == 0
    assert b"0 rows" in written(answer, "table", Terminal())


def test_true_and_false(reach) -> None:
    yes, no = reach.query('path("a", "d")'), reach.query('path("d", "a")')
    assert [written(yes, f) for f in ANSWER_FORMATS.names[:3]] == [b"true\n", b"answer\ntrue\n", b'{"answer": true}\n']
    assert [written(no, f) for f in ANSWER_FORMATS.names[:3]] == [
        b"false\n",
        b"answer\nfalse\n",
        b'{"answer": false}\n',
    ]
    assert pq.read_table(io.BytesIO(written(no, "parquet"))).to_pydict() == {"answer": [False]}


def test_an_unknown_format(reach) -> None:
    with pytest.raises(ValueError, match="format 'xml' is not known"):
        reach.query("yes()").write(io.BytesIO(), "xml")
