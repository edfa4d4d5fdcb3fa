"""Readers in any threads: each call sees one version, and none waits for an update."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import evermat
from evermat.runtime.versioned_engine import VersionedEngine
from tests.support.gates import started, updating
from tests.support.states import CHAIN, PROGRAM, refused, saved
from tests.support.updates import facts_of

RDF = '.decl <http://x/p>(s:term, o:term) .decl e(x:number) .output e(filename="e.csv") .printsize e'
CLOSED = "error[E291]: this snapshot is closed\n  = note: take another one: `m.snapshot()`"


def materialised(text: str = PROGRAM) -> evermat.Materialisation:
    return evermat.Program.parse(text).materialise({"edge": CHAIN})


def rdf() -> evermat.Materialisation:
    return evermat.Program.parse(RDF).materialise({"<http://x/p>": [("<http://x/a>", '"1"')], "e": [(1,), (2,)]})


def readings(m: Any, folder: Path) -> dict[str, Any]:
    """Whatever can be read."""
    facts = facts_of(m)
    answer, batches = m.query("path(0, x)"), m.query_batches("path(0, x)")
    return {
        "facts": facts,
        "len": {name: len(m[name]) for name in m},
        "in": [(0, 5) in m["path"], (5, 0) in m["path"], "path" in m, "other" in m],
        "count": len(m),
        "arrow": {name: m[name].to_arrow().num_rows for name in m},
        "batches": sum(batch.num_rows for batch in m["path"].batches()),
        "columns": m["path"].columns,
        "html": len(m["path"]._repr_html_()) > 0,
        "query": sorted(answer),
        "query_batches": sum(batch.num_rows for batch in batches),
        "stats": m.stats["facts"],
        "undefined": list(m.undefined()),
        "repr": repr(m).partition(":")[2],
        "version": m.version,
        "positions": m.positions,
        "rules": len(m.program.rules),
        "outputs": m.write_outputs(folder),
    }


def test_a_running_update_neither_stops_nor_shows_itself_to_readers(tmp_path: Path) -> None:
    m = materialised()
    before = readings(m, tmp_path)
    with updating(m, "edge", [(7, 8)]):
        assert readings(m, tmp_path) == before
        with m.snapshot() as s:
            assert readings(s, tmp_path) == before
        assert facts_of(m.snapshot().snapshot()) == before["facts"]
    assert len(m["edge"]) == len(CHAIN) + 1


def test_a_running_change_of_rules_does_not_show_itself_to_readers(tmp_path: Path) -> None:
    m = materialised()
    before = readings(m, tmp_path)
    rules = ".decl back(x:number, y:number) back(y, x) :- path(x, y)."
    with updating(m, "edge", [(7, 8)], add_rules=rules):
        assert readings(m, tmp_path) == before
        assert "back" not in m
    assert len(m["back"]) == len(m["path"]) == 16


def test_an_update_may_read_what_it_changes_as_it_was() -> None:
    m = materialised()
    before = facts_of(m)
    seen = []

    def rows() -> Iterator[tuple[int, int]]:
        seen.append(facts_of(m))
        yield from [(x, y) for x, y in m["path"] if y == 5]

    change = m.update({"edge": rows()})
    assert seen == [before]
    assert set(change.inserted["edge"]) == {(x, 5) for x in range(4)}


def test_the_rows_of_outputs_are_of_the_version_before_an_update_in_between(tmp_path: Path) -> None:
    m = rdf()
    m.write_outputs(tmp_path, before_commit=lambda: m.update({"e": [(3,)]}) and None)
    assert (tmp_path / "e.csv").read_text() == "1\n2\n"
    assert len(m["e"]) == 3


@pytest.mark.parametrize(
    "read",
    [
        len,
        lambda facts: list(iter(facts)),  # without a hint of its length
        repr,
        lambda facts: (0, 1) in facts,
        lambda facts: facts.to_arrow(),
        lambda facts: facts.to_pandas(),
        lambda facts: facts.columns,
        lambda facts: list(facts.batches()),
        lambda facts: facts.__arrow_c_stream__(),
        lambda facts: facts._repr_html_(),
        lambda facts: list(iter(facts.representatives)),
    ],
)
def test_a_call_reads_one_version(read: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    facts = materialised()["path"]
    pins = []
    monkeypatch.setattr(VersionedEngine, "pin", lambda self, pin=VersionedEngine.pin: pins.append(1) or pin(self))
    read(facts)
    assert pins == [1]


def test_methods_of_materialisations_read_one_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    m = rdf()
    pins = []
    monkeypatch.setattr(VersionedEngine, "pin", lambda self, pin=VersionedEngine.pin: pins.append(1) or pin(self))
    calls: list[Callable[[], Any]] = [
        lambda: repr(m),
        lambda: list(iter(m)),
        lambda: len(m),
        lambda: m.stats,
        lambda: list(m.undefined()),
        lambda: m.query("e(x)"),
        lambda: list(m.query_batches("e(x)")),
        lambda: list(m.triples()),
        lambda: m.export(tmp_path / "x.nt"),
        lambda: m.write_outputs(tmp_path, export=tmp_path / "y.nt"),
        lambda: m.names("<http://x/a>"),
        lambda: m.representative("<http://x/a>"),
    ]
    for number, call in enumerate(calls):
        pins.clear()
        call()
        assert len(pins) == 1, number


def test_an_iteration_reads_the_version_in_which_it_begins() -> None:
    m = materialised()
    facts = iter(m["edge"])
    m.update({"edge": [(7, 8)]})
    assert len(list(facts)) == len(CHAIN) + 1


def test_a_closed_snapshot_reads_nothing() -> None:
    m = materialised()
    s = m.snapshot()
    facts, answer = s["path"], s.query("path(0, x)")
    rows = iter(facts)
    first = next(rows)
    s.close()
    s.close()
    assert repr(s) == "<Snapshot: not readable any more>" and s != m.snapshot()
    for read in (lambda: s["path"], lambda: list(s), lambda: len(facts), lambda: s.version, lambda: s.snapshot()):
        assert refused(read, exit_code=2) == CLOSED
    assert len(answer) == 5
    assert {first, *rows} == set(m["path"])


def test_a_relation_that_a_change_of_rules_removes_is_gone(tmp_path: Path) -> None:
    with saved(tmp_path / "state") as m, evermat.open(tmp_path / "state") as reader:
        m.update(add_rules=".decl back(x:number, y:number) back(y, x) :- path(x, y).")
        reader.refresh()
        back, path = reader["back"], reader["path"]
        with reader.snapshot() as s:
            other = evermat.Program.parse(".decl path(name:symbol)").materialise({"path": [("a",)]})
            m.close()
            other.save(tmp_path / "state")
            reader.refresh()
            assert len(s["back"]) == 15
        with pytest.raises(evermat.ProgramError) as raised:
            len(back)
        assert str(raised.value) == (
            "error[E292]: the program has no relation `back` any more\n  = note: a change of rules has removed it"
        )
        assert (path.columns, list(path)) == (["name"], [("a",)])


def test_an_answer_is_gathered_once_for_all_threads(tmp_path: Path) -> None:
    saved(tmp_path / "state").close()
    computed = []
    for _ in range(20):
        answer = evermat.query(tmp_path / "state", "path(x, y), x < y")
        solutions = answer._solved._solutions
        compute = solutions.computed
        solutions.computed = lambda compute=compute: computed.append(1) or compute()
        with started(*[lambda a=answer: (len(a), a.undefined, sorted(a))] * 4) as found:
            pass
        assert {repr(one.result()) for one in found} == {repr((15, 0, sorted(answer)))}
        assert len(answer) == 15


def test_an_answer_and_changes_are_written_by_any_thread() -> None:
    m = materialised()
    answer, change = m.query("path(0, x)"), m.update({"edge": [(7, 8)]})

    def written() -> str:
        sink = io.BytesIO()
        answer.write(sink, "csv")
        return sink.getvalue().decode() + repr((set(change.inserted["edge"]), change.inserted.total))

    with started(*[written] * 4) as found:
        pass
    assert len({one.result() for one in found}) == 1


def test_stats_are_those_of_one_version() -> None:
    m = evermat.Program.parse(".decl a(x:number) .decl b(x:number) b(10 / x) :- a(x).").materialise({"a": [(0,), (1,)]})
    before = copy.deepcopy(m.stats)
    (_, count), *_ = m.undefined()
    with updating(m, "a", [(2,)]):
        assert {**m.stats, "peak_rss_mb": 0} == {**before, "peak_rss_mb": 0}
        assert [c for _, c in m.undefined()] == [count] == [1]
    m.update({"a": [(5,)]}, {"a": [(0,)]})
    assert m.stats["facts"] == {"a": 3, "b": 3}
