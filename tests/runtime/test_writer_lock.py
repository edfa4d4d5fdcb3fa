"""Writers take turns: updates, changes of rules, steps of streams, saving, refreshing and closing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import evermat
from evermat.runtime.writer_lock import WriterLock
from tests.support.gates import PATIENCE, Gate, started, updating
from tests.support.states import CHAIN, PROGRAM, assert_recomputed, facts_at, refused, saved

NESTED = (
    "error[E290]: a materialisation cannot be changed while this thread changes it\n"
    "  = note: what an update reads or calls may read the materialisation, and sees it as it was before"
)


def materialised() -> evermat.Materialisation:
    return evermat.Program.parse(PROGRAM).materialise({"edge": CHAIN}, counters="both")


def test_threads_hold_it_in_the_order_in_which_they_came() -> None:
    lock, order = WriterLock(), []
    with lock.held():
        threads = []
        for number in range(5):
            thread = threading.Thread(target=lambda n=number: _note(lock, order, n))
            thread.start()
            threads.append(thread)
            while len(lock._turns) < number + 2:
                pass
    for thread in threads:
        thread.join(PATIENCE)
    assert order == [0, 1, 2, 3, 4]
    assert not lock._turns


def _note(lock: WriterLock, order: list[int], number: int) -> None:
    with lock.held():
        order.append(number)


def test_who_gives_up_waiting_keeps_nobody_from_it() -> None:
    m = materialised()
    with updating(m, "edge", [(7, 8)]):
        message = refused(lambda: m.update({"edge": [(8, 9)]}, limit_seconds=0.05), exit_code=4)
        assert message.startswith("error[E400]: the limit of 0.05 seconds is reached")
    m.update({"edge": [(9, 10)]})
    assert set(m["edge"]) == {*CHAIN, (7, 8), (9, 10)}
    assert_recomputed(m)


def test_ctrl_c_ends_waiting() -> None:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals arrive in the main thread")
    m = materialised()
    while_waiting = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))

    def update() -> None:
        while_waiting.start()
        m.update({"edge": [(8, 9)]})

    with updating(m, "edge", [(7, 8)]):
        with pytest.raises(KeyboardInterrupt):
            update()
        while_waiting.join()
    assert set(m["edge"]) == {*CHAIN, (7, 8)}


def test_an_update_cannot_change_what_it_changes(tmp_path: Path) -> None:
    m = materialised()
    m.save(tmp_path / "state")
    attempts: list[Callable[[], Any]] = [
        lambda: m.update({"edge": [(8, 8)]}),
        lambda: m.update(add_rules="path(x, x) :- edge(x, _)."),
        lambda: next(m.stream([{"insert": {"edge": [(8, 8)]}}])),
        lambda: m.save(tmp_path / "other"),
        m.refresh,
        m.close,
    ]
    found: list[str] = []

    def rows() -> Iterator[tuple[int, int]]:
        found.extend(refused(attempt, exit_code=2) for attempt in attempts)
        yield (7, 8)

    m.update({"edge": rows()})
    assert found == [NESTED] * len(attempts)
    assert not (tmp_path / "other").exists()
    assert_recomputed(m)
    m.close()
    assert facts_at(tmp_path / "state")["edge"] == {*CHAIN, (7, 8)}


def test_an_update_may_change_another_materialisation() -> None:
    one, two = materialised(), materialised()
    one.update({"edge": (row for row in [(7, 8)] if two.update({"edge": [row]}))})
    assert set(one["edge"]) == set(two["edge"]) == {*CHAIN, (7, 8)}


@pytest.mark.parametrize("durable", [False, True])
def test_updates_of_several_threads_are_all_done(durable: bool, tmp_path: Path) -> None:
    m = materialised()
    if durable:
        m.save(tmp_path / "state")

    def update(thread: int) -> None:
        for number in range(4):
            m.update({"edge": [(100 * thread, number)]})

    def stream(thread: int) -> None:
        rows = [(100 * thread, number) for number in range(4)]
        updates = [{"insert": {"edge": [row]}, "delete": {"edge": [(100 * thread, -row[1])]}} for row in rows]
        assert len(list(m.stream(updates, marking=True))) == 4

    def rules(thread: int) -> None:
        rule = f"path(x, {thread}) :- edge(x, _)."
        m.update(add_rules=rule)
        m.update(remove_rules=rule)

    actions = [lambda n=n, act=act: act(n) for n, act in enumerate((update, update, stream, stream, rules), 1)]
    with started(*actions) as done:
        pass
    for one in done:
        one.result()
    assert set(m["edge"]) == CHAIN | {(100 * thread, number) for thread in (1, 2, 3, 4) for number in range(4)}
    assert_recomputed(m)
    if durable:
        assert m.version == 1 + 16 + 2
        m.close()
        assert facts_at(tmp_path / "state")["edge"] == set(m["edge"])


def test_marks_of_a_stream_are_right_when_others_update_in_between() -> None:
    """The step before was the last update, or its marks are forgotten."""
    m = materialised()
    row = (5, 6)
    steps = m.stream(
        [{"insert": {"edge": [row]}}, {"delete": {"edge": [row]}}, {"insert": {"edge": [(8, 9)]}}], marking=True
    )
    next(steps)
    m.update({"edge": [(6, 7)]})  # derives from what is marked
    next(steps)
    assert_recomputed(m)
    others = m.stream([{"insert": {"edge": [row]}}, {"delete": {"edge": [row]}}], marking=True)
    next(others)
    next(steps)
    next(others)
    assert_recomputed(m)
    assert set(m["edge"]) == {*CHAIN, (6, 7), (8, 9)}


def test_closing_waits_for_an_update(tmp_path: Path) -> None:
    m = materialised()
    m.save(tmp_path / "state")
    gate = Gate([(7, 8)])
    with started(lambda: m.update({"edge": iter(gate)}), lambda: gate.wait() or m.close()) as (updated, closed):
        gate.wait()
        assert not closed.done()
        assert m.version == 1
        gate.open()
        updated.result()
        closed.result()
    assert m.version is None
    assert facts_at(tmp_path / "state")["edge"] == {*CHAIN, (7, 8)} == set(m["edge"])
    with evermat.open(tmp_path / "state", write=True):
        pass


def test_readers_go_on_while_another_thread_closes(tmp_path: Path) -> None:
    with saved(tmp_path / "state") as m:
        rows, batches, s = iter(m["path"]), m.query_batches("path(x, y)"), m.snapshot()
        first = next(rows)
        with started(m.close) as (closed,):
            closed.result()
        assert {first, *rows} == set(m["path"]) == set(s["path"])
        assert sum(batch.num_rows for batch in batches) == 15
        assert (s.version, m.version) == (1, None)
        m.update({"edge": [(7, 8)]})  # in memory only
    assert facts_at(tmp_path / "state")["edge"] == CHAIN


def test_two_threads_save_one_materialisation_or_two_to_one_path(tmp_path: Path) -> None:
    m = materialised()
    with started(*[lambda: m.save(tmp_path / "one")] * 2) as done:
        pass
    assert [one.result() for one in done] == [None, None]
    assert m.version == 1

    def save(edge: int) -> str:
        try:
            mine = evermat.Program.parse(PROGRAM).materialise({"edge": [(edge, edge)]})
            mine.save(tmp_path / "two")
        except evermat.StateError as error:
            return str(error)
        barrier.wait(PATIENCE)
        mine.close()
        return ""

    barrier = threading.Barrier(2)

    def save_and_meet(edge: int) -> str:
        found = save(edge)
        if found:
            barrier.wait(PATIENCE)
        return found

    with started(lambda: save_and_meet(1), lambda: save_and_meet(2)) as done:
        pass
    told = sorted(one.result() for one in done)
    assert told[0] == ""
    assert told[1].startswith(("error[E502]", "error[E508]"))
    assert len(facts_at(tmp_path / "two")["edge"]) == 1


def test_a_second_writer_in_another_thread_is_refused(tmp_path: Path) -> None:
    with saved(tmp_path / "state") as m, evermat.open(tmp_path / "state") as other, updating(m, "edge", [(7, 8)]):
        for write in (lambda: other.update({"edge": [(9, 9)]}), lambda: evermat.open(tmp_path / "state", write=True)):
            assert refused(write).startswith(
                f"error[E502]: the state `{tmp_path / 'state'}` is locked by another writer"
            )
    assert facts_at(tmp_path / "state")["edge"] == {*CHAIN, (7, 8)}
