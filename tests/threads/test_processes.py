"""Materialisations and other processes: one writer of a state, readers that follow it, and children that a fork made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import evermat
from evermat import Materialisation
from tests.runtime.test_state_writers import locked, other_writer
from tests.support.states import refused, saved
from tests.threads.harness import Background
from tests.threads.world import FOLLOWS, STEADY

ROOT = Path(__file__).parent.parent.parent
NEEDS_REFRESH = pytest.mark.skipif(not FOLLOWS, reason="needs refresh")
LIVE: dict[str, Any] = {"live": True}

FORK = """
import os, signal, sys, threading
import evermat

m = evermat.Program.parse(".decl a(x:number) .decl b(x:number) b(x) :- a(x).").materialise({"a": [(1,)]})
if len(sys.argv) > 1:
    m.save(sys.argv[1])
s = m.snapshot()
uses = {
    "iteration": lambda: list(m["b"]),
    "len": lambda: len(m["b"]),
    "in": lambda: (1,) in m["b"],
    "query": lambda: m.query("b(x)"),
    "batches": lambda: list(m.query_batches("b(x)")),
    "update": lambda: m.update({"a": [(2,)]}),
    "stream": lambda: list(m.stream([{"insert": {"a": [(2,)]}}])),
    "snapshot": lambda: m.snapshot(),
    "held snapshot": lambda: list(s["b"]),
    "save": lambda: m.save("elsewhere"),
}
# Another thread is in the middle of an update while the process forks: its locks are held in the child for ever.
reached, release = threading.Event(), threading.Event()

def rows():
    reached.set()
    release.wait(250)
    yield (3,)

busy = threading.Thread(target=lambda: m.update({"a": rows()}))
busy.start()
reached.wait(250)
child = os.fork()
if child == 0:
    signal.alarm(200)
    for name, use in uses.items():
        try:
            found = use()
        except evermat.EvermatError as error:
            print(name, "refused", "process" in str(error), flush=True)
        except BaseException as error:
            print(name, repr(error), flush=True)
        else:
            print(name, "done", found, flush=True)
    # what belongs to the child alone is its own
    own = evermat.Program.parse(".decl a(x:number) .decl b(x:number) b(x) :- a(x).").materialise({"a": [(5,)]})
    own.update({"a": [(6,)]})
    print("own", sorted(own["b"]), flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
release.set()
busy.join()
m.update({"a": [(4,)]})
print("parent", status, sorted(m["b"]), flush=True)
m.close()
"""


@pytest.mark.skipif(not STEADY, reason="needs snapshots")
@pytest.mark.slow
@pytest.mark.parametrize("state", [False, True])
def test_a_child_of_a_fork_is_told_so(tmp_path: Path, *, state: bool) -> None:
    arguments = [str(tmp_path / "state")] if state else []
    ended = subprocess.run(
        [sys.executable, "-c", FORK, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    told = ended.stdout.splitlines()
    assert ended.returncode == 0, ended.stderr
    names = ("iteration", "len", "in", "query", "batches", "update", "stream", "snapshot", "held snapshot", "save")
    assert told[:-2] == [f"{name} refused True" for name in names]
    assert told[-2:] == ["own [(5,), (6,)]", "parent 0 [(1,), (3,), (4,)]"]
    if state:
        assert set(evermat.open(tmp_path / "state")["b"]) == {(1,), (3,), (4,)}


@pytest.mark.slow
def test_writers_of_two_processes_and_of_two_threads(tmp_path: Path) -> None:
    """Whoever is not the writer is refused by the same error."""
    path = tmp_path / "state"
    saved(path, {(0, 1)}).close()
    with evermat.open(path) as late, other_writer(path) as other:
        assert Background(lambda: refused(lambda: late.update({"edge": [(7, 7)]}))).result() == locked(path)
        other.begin(2)
        assert other.wait() == 3
    with evermat.open(path, write=True) as one, evermat.open(path) as two:
        texts = [Background(lambda: refused(lambda: two.update({"edge": [(7, 7)]}))) for _ in range(3)]
        one.update({"edge": [(0, 4)]})
        assert {text.result() for text in texts} == {locked(path)}
    assert [version.number for version in evermat.versions(path)] == [1, 2, 3, 4]


def _edges(m: Any) -> set[tuple[int, int]]:
    return set(m["edge"])


@NEEDS_REFRESH
@pytest.mark.slow
def test_readers_follow_another_process(tmp_path: Path) -> None:
    path = tmp_path / "state"
    saved(path, {(0, 1)}).close()
    with evermat.open(path) as still, evermat.open(path, **LIVE) as live, other_writer(path) as other:
        follower: Any = still
        assert not follower.refresh()
        with follower.snapshot() as s:
            other.begin(3)
            assert other.wait() == 4
            assert _edges(follower) == {(0, 1)}
            assert len(live["edge"]) == 4
            assert live.version == 4
            assert follower.refresh()
            assert (follower.version, s.version) == (4, 1)
            assert not follower.refresh()
            assert _edges(follower) == {(0, n) for n in range(1, 5)}
            assert _edges(s) == {(0, 1)}
        other.begin(20)
        last = 4
        while last < 24:
            version, edges = live.version, _edges(live)
            assert last <= version <= len(edges) <= 24
            last = len(edges)
        assert other.wait() == 24


@NEEDS_REFRESH
def test_a_reader_follows_changes_of_rules_and_another_save(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with saved(path) as m, evermat.open(path) as still, evermat.open(path, **LIVE) as live:
        follower: Any = still
        m.update({"edge": [(7, 8)]}, add_rules=".decl back(x:number, y:number) back(y, x) :- edge(x, y).")
        assert "back" not in follower
        assert (8, 7) in live["back"]
        assert follower.refresh()
        assert set(follower["back"]) == set(m["back"])
        assert set(follower.query("back(x, y), !path(y, x)")) == set(m.query("back(x, y), !path(y, x)"))
        m.close()
        with evermat.Program.parse(".decl edge(x:number, y:number)").materialise({"edge": [(5, 5)]}) as other:
            other.save(path)
        assert follower.refresh()
        assert list(follower) == list(live) == ["edge"]
        assert _edges(follower) == _edges(live) == {(5, 5)}


@NEEDS_REFRESH
def test_a_writer_is_always_current(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with saved(path) as writer:
        m: Any = writer
        try:
            assert not m.refresh()
        except evermat.EvermatError as error:
            assert "write" in str(error)
    with evermat.Program.parse(".decl a(x:number)").materialise() as unsaved:
        m = unsaved
        try:
            assert not m.refresh()
        except evermat.EvermatError as error:
            assert "state" in str(error)


@NEEDS_REFRESH
def test_an_old_version_that_was_asked_for_is_not_refreshed_in_silence(tmp_path: Path) -> None:
    """Who opens version 1 wants version 1: a later one comes with `refresh` only, or not at all."""
    path = tmp_path / "state"
    with saved(path) as m:
        m.update({"edge": [(7, 7)]})
        with evermat.open(path, version=1) as old:
            assert (7, 7) not in old["edge"]
            assert isinstance(old, Materialisation)
