"""Limits of calls from Python: whatever is being done asks in time, and what is cut leaves all as it was."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import numpy as np
import pyarrow as pa
import pytest

import evermat
from evermat.columns.evaluation import expressions
from evermat.core import Guard, awaited, check_stop, limit_error, resident_bytes, watched, watched_each
from evermat.engine import Run
from evermat.runtime.states.persistence import StateBinding
from evermat.store import Store

AB = ".decl a(x:number)\n.decl b(x:number)\n.decl r(x:number)\n"
NUMBERS = pa.table({"x": np.arange(100_000)})
LIMIT, ENDS = 0.5, 10.0  # seconds: far less than the work takes, far more than it takes to notice

HEAVY = {
    "count": "r(n) :- n = count : { a(x), b(y), x + y >= 0 }.",
    "sum of floats": "r(1) :- s = sum itof(x) * 0.1 + itof(y) : { a(x), b(y) }, s > 0.0.",
    "least": "r(n) :- a(k), n = min (x * y) % 1000 + k : { a(x), b(y) }.",
    "product and filter": "r(x) :- a(x), b(y), x + y < 0 - 1.",
    "negation": ".decl c(x:number)\nc(0). c(1).\nr(x) :- a(x), b(y), !c((x + y) % 2).",
    "existence": ".decl c(x:number, y:number)\nc(99, 1).\nr(x) :- a(x), b(y), c((x + y) % 10, _).",
    "join that finds nothing": "r(x) :- a(x), b(y), a(z), z = x * y + 1000000.",
    "texts": ".decl t(x:symbol)\nt(cat(to_string(x), to_string(y))) :- a(x), b(y).",
    "patterns": '.decl t(x:symbol)\nt(to_string(x)) :- a(x).\nr(1) :- t(x), t(y), match(cat(x, ".*z"), y).',
    "rounds": "r(0).\nr(x + 1) :- r(x), x < 1000000000000.",
}


@pytest.mark.parametrize("name", HEAVY)
def test_time(name: str) -> None:
    program = evermat.Program.parse(AB + HEAVY[name])
    began = time.monotonic()
    with pytest.raises(evermat.LimitError, match=r"0\.5 seconds"):
        program.materialise({"a": NUMBERS, "b": NUMBERS}, limit_seconds=LIMIT)
    assert time.monotonic() - began < ENDS


@pytest.mark.parametrize("name", ["count", "product and filter", "existence", "texts"])
def test_a_cut_update_changes_nothing(name: str) -> None:
    before, after = ("{ a(x)", "{ go(_), a(x)") if "{" in HEAVY[name] else (":- a(x)", ":- go(_), a(x)")
    rules = HEAVY[name].replace(before, after)
    m = evermat.Program.parse(f"{AB}.decl go(x:number)\n{rules}").materialise({"a": NUMBERS, "b": NUMBERS})
    facts = {relation: set(map(tuple, m[relation])) for relation in m}
    began = time.monotonic()
    with pytest.raises(evermat.LimitError):
        m.update({"go": [(1,)]}, limit_seconds=LIMIT)
    assert time.monotonic() - began < ENDS
    assert {relation: set(map(tuple, m[relation])) for relation in m} == facts
    m.update({"a": [(-5,)]}, {"b": [(3,)]})
    assert len(m["a"]) == 100_001
    assert len(m["b"]) == 99_999


@pytest.mark.parametrize("text", ["a(x), b(y), x + y < 0 - 1", "a(x), b(y), a(z), z = x * y + 1000000"])
@pytest.mark.parametrize("streamed", [False, True])
def test_queries(text: str, *, streamed: bool) -> None:
    m = evermat.Program.parse(AB).materialise({"a": NUMBERS, "b": NUMBERS})
    ask: Callable[..., object] = (
        (lambda *args, **limits: list(m.query_batches(*args, **limits))) if streamed else m.query
    )
    began = time.monotonic()
    with pytest.raises(evermat.LimitError):
        ask(text, limit_seconds=LIMIT)
    assert time.monotonic() - began < ENDS


def test_a_reader_that_leaves_ends_the_computation() -> None:
    m = evermat.Program.parse(AB).materialise({"a": NUMBERS, "b": NUMBERS})
    answer = m.query_batches("a(x), b(y), x * y < 3")
    next(answer)
    began = time.monotonic()
    answer.close()  # type: ignore[attr-defined]  # it is a generator
    assert time.monotonic() - began < ENDS


FILES = {
    "t.tsv.gz": lambda: b"1\t2\n" * 25_000_000,
    "t.jsonl": lambda: b"[1" + b",1" * 10_000_000 + b"]\n",
    "t.csv": lambda: b'"' + b"a" * 30_000_000 + b'",2\n',
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_memory_of_reading(name: str, tmp_path: Path) -> None:
    opened: Callable[..., gzip.GzipFile] = gzip.open if name.endswith(".gz") else open  # type: ignore[assignment]
    with opened(tmp_path / name, "wb") as file:
        file.write(FILES[name]())
    options = f'(filename="{name}", rfc4180=true)' if name.endswith(".csv") else f'(filename="{name}")'
    program = evermat.Program.parse(f".decl t(x:number, y:number)\n.input t{options}\n")
    with pytest.raises(evermat.LimitError, match="bytes of memory"):
        program.materialise(inputs=tmp_path, memory=resident_bytes() + (150 << 20))


def test_a_long_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_bytes(b"b\n" + b"a" * (60 << 20) + b"\n")
    program = evermat.Program.parse('.decl t(x:symbol)\n.input t(filename="t.tsv")\n')
    with pytest.raises(evermat.LimitError, match="the record that begins in line 2 is longer than"):
        program.materialise(inputs=tmp_path, memory=resident_bytes() + (200 << 20))
    assert len(program.materialise(inputs=tmp_path)["t"]) == 2


def test_doubled_texts() -> None:
    program = evermat.Program.parse('.decl t(x:symbol)\nt("ab").\nt(cat(x, x)) :- t(x).\n')
    memory = resident_bytes() + (100 << 20)
    with pytest.raises(evermat.LimitError, match="bytes of memory"):
        program.materialise(memory=memory)
    assert resident_bytes() < memory + (64 << 20)


def test_watches_are_nested() -> None:
    with watched(Guard(seconds=0.0)), watched(Guard(seconds=60)), pytest.raises(evermat.LimitError):
        check_stop()
    check_stop()


def test_a_long_call_is_left_to_itself() -> None:
    ended, left = Event(), Event()

    def call() -> None:
        ended.wait(60)
        left.set()

    with watched(Guard(seconds=0.1)), pytest.raises(evermat.LimitError):
        awaited(call)
    assert not left.is_set()
    ended.set()
    assert left.wait(60)
    assert awaited(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        awaited(lambda: 1 // 0)


def test_items_are_watched() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 1

    with watched(Guard(seconds=0.1)), pytest.raises(evermat.LimitError):
        sum(watched_each(endless()))


EQUAL = """
.pragma "equality" "rewrite"
.decl e(x:term, y:term)
.decl p(x:term, z:term)
x = y :- e(z, x), e(z, y).
p(x, z) :- e(x, y), e(y, z).
"""
JOIN = ".decl e(x:symbol, y:symbol)\n.decl p(x:symbol, z:symbol)\np(x, z) :- e(x, y), e(y, z)."


def passed(*_arguments: object) -> None:
    raise limit_error("seconds", LIMIT)


@pytest.mark.parametrize("text", [JOIN, EQUAL])
def test_nothing_stops_an_update_that_is_durable(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    m = evermat.Program.parse(text).materialise({"e": [("<x:a>", "<x:b>"), ("<x:b>", "<x:c>")]})
    m.save(tmp_path / "state")
    commit = StateBinding.commit

    def committed(self: StateBinding, *arguments: object) -> None:
        commit(self, *arguments)  # type: ignore[arg-type]
        for name in ("look", "ask"):
            monkeypatch.setattr(Run, name, passed)

    monkeypatch.setattr(StateBinding, "commit", committed)
    change = m.update({"e": [("<x:a>", "<x:d>"), ("<x:d>", "<x:e>")]}, limit_seconds=60)
    monkeypatch.undo()
    assert m.version == 2
    assert ("<x:a>", "<x:d>") in change.inserted["e"]
    with evermat.open(tmp_path / "state") as other:
        for name in ("e", "p"):
            assert set(other[name]) == set(m[name])


def test_a_limit_leaves_changes_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compaction comes after the version that it follows."""
    m = evermat.Program.parse(JOIN).materialise({"e": [("a", "b")]})
    m.save(tmp_path / "state")
    monkeypatch.setattr(Store, "needs_snapshot", lambda *_: True)
    compact, asked = Store.compact, []

    def compacted(self: Store, *arguments: object) -> None:
        asked.append(self)
        monkeypatch.setattr(Guard, "passed", lambda *_: limit_error("seconds", LIMIT))
        check_stop()
        compact(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "compact", compacted)
    m.update({"e": [("b", "c")]})
    monkeypatch.undo()
    assert asked
    assert m.version == 2
    with evermat.open(tmp_path / "state") as other:
        assert set(other["p"]) == {("a", "c")}


@pytest.mark.parametrize("name", ["match", "contains"])
def test_texts_are_tested_in_pieces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch is asked for each of them, and for their memory."""
    monkeypatch.setattr(expressions, "_LONG", 100)
    program = evermat.Program.parse(f'.decl a(x:symbol)\n.decl r(x:symbol)\nr(x) :- a(x), {name}("a*b", x).')
    if name == "contains":
        program = evermat.Program.parse('.decl a(x:symbol)\n.decl r(x:symbol)\nr(x) :- a(x), contains("ab", x).')
    texts = [f"{'a' * length}{'b' * (length % 2)}" for length in [*range(1, 60), 500, 501]]
    asked: list[int] = []
    monkeypatch.setattr(expressions, "ask_for", asked.append)
    m = program.materialise({"a": [(text,) for text in texts]})
    assert {text for (text,) in m["r"]} == {text for text in texts if "b" in text}
    assert sum(asked) == 6 * sum(map(len, texts))
    assert len(asked) >= sum(map(len, texts)) // 200
    assert sorted(asked)[-3] <= 6 * 200
