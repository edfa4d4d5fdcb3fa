"""`m.stream`: what may be given, how it is read, and where it ends."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest

import evermat
from evermat.runtime.streams import stream

PROGRAM = evermat.Program.parse(".decl a(x:number) .decl b(x:number) b(x + 1) :- a(x).")


def test_the_forms_of_an_update() -> None:
    m = PROGRAM.materialise()
    updates = [
        {"insert": {"a": [(1,)]}},
        ({"a": pa.table({"x": [2]})}, {}),
        evermat.StreamedUpdate(insert={"a": [(3,)]}, delete={"a": [(1,)]}),
        {"delete": {"a": [(2,)]}, "insert": None},
    ]
    changes = list(m.stream(updates))
    assert [(c.inserted.total, c.deleted.total) for c in changes] == [(2, 0), (2, 0), (2, 2), (0, 2)]
    assert set(m["b"]) == {(4,)}


@pytest.mark.parametrize("updates", [[], iter(())])
def test_no_updates(updates) -> None:
    assert list(PROGRAM.materialise().stream(updates)) == []


def test_facts_that_can_be_read_once_are_not_lost() -> None:
    m = PROGRAM.materialise()
    reader = pa.table({"x": [2]}).to_reader()
    updates = ({"insert": {"a": rows}} for rows in (((n,) for n in (1,)), reader, iter([(3,)])))
    assert [change.inserted.total for change in m.stream(updates)] == [2, 2, 2]
    assert set(m["a"]) == {(1,), (2,), (3,)}


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({"add": {}}, "an update of a stream has `insert` and `delete`, not 'add'"),
        (7, "an update of a stream is a mapping with `insert` and `delete`, or both as a pair, not 7"),
    ],
)
@pytest.mark.parametrize("kind", [list, iter])
def test_what_is_no_update(update, message: str, kind) -> None:
    m = PROGRAM.materialise()
    stream = m.stream(kind([{"insert": {"a": [(1,)]}}, update]))
    with pytest.raises(TypeError) as error:
        list(stream)
    assert str(error.value) == message


def test_what_is_wrong_with_an_update_is_told_in_its_turn() -> None:
    m = PROGRAM.materialise()
    stream = m.stream([{"insert": {"a": [(1,)]}}, {"insert": {"a": [("x",)]}}, {"insert": {"a": [(2,)]}}])
    assert next(stream).inserted.total == 2
    with pytest.raises(evermat.DataError) as error:
        next(stream)
    assert str(error.value) == str(_refused({"a": [("x",)]}))
    assert set(m["a"]) == {(1,)}
    assert list(stream) == []


def _refused(insert) -> evermat.DataError:
    with pytest.raises(evermat.DataError) as error:
        PROGRAM.materialise().update(insert=insert)
    return error.value


def test_an_unknown_algorithm_is_refused_before_anything_is_read() -> None:
    with pytest.raises(evermat.ProgramError, match="magic"):
        PROGRAM.materialise().stream([], algorithm="magic")


def test_what_goes_wrong_in_the_source_comes_after_what_was_read() -> None:
    def source():
        yield {"insert": {"a": [(1,)]}}
        raise OSError("the line is down")

    m = PROGRAM.materialise()
    stream = m.stream(source())
    assert next(stream).inserted.total == 2
    with pytest.raises(OSError, match="the line is down"):
        next(stream)


def test_an_update_does_not_wait_for_the_next_one() -> None:
    asked_for = threading.Event()

    def source():
        yield {"insert": {"a": [(1,)]}}
        asked_for.wait(60)
        yield {"insert": {"a": [(2,)]}}

    m = PROGRAM.materialise()
    stream = m.stream(source())
    assert next(stream).inserted.total == 2
    assert set(m["a"]) == {(1,)}
    asked_for.set()
    assert next(stream).inserted.total == 2


def test_a_source_has_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back-pressure: so many updates are read ahead, and no more."""
    monkeypatch.setattr(stream, "ROOM", 3)
    made = []

    def source():
        for n in range(50):
            made.append(n)
            yield {"insert": {"a": [(n,)]}}

    most = 0
    for taken, _ in enumerate(PROGRAM.materialise().stream(source()), 1):
        time.sleep(0.002)
        most = max(most, len(made) - taken)
    assert len(made) == 50
    assert most <= 3 + 1  # and one that is handed over


def test_a_stream_that_is_left_is_read_no_more() -> None:
    closed = threading.Event()

    def source():
        try:
            for n in range(10**9):
                yield {"insert": {"a": [(n,)]}}
        finally:
            closed.set()

    stream = PROGRAM.materialise().stream(source())
    next(stream)
    stream.close()
    assert closed.wait(30)


@pytest.mark.slow
def test_positions_are_those_of_the_version(tmp_path) -> None:
    m = PROGRAM.materialise()
    m.save(tmp_path / "s")
    updates = [evermat.StreamedUpdate({"a": [(n,)]}, {}, ("orders", str(n))) for n in range(3)]
    for _ in m.stream(updates[:2]):
        pass
    assert m.positions == {"orders": "1"}
    m.update(insert={"a": [(7,)]})
    m.close()
    with evermat.open(tmp_path / "s") as again:
        assert again.positions == {"orders": "1"}
        list(again.stream(updates[2:]))
        again.update(insert={"a": [(8,)]}, position=("returns", "x"))
        assert again.positions == {"orders": "2", "returns": "x"}
    with evermat.open(tmp_path / "s", version=3) as old:
        assert old.positions == {"orders": "1"}
    assert [v.batch for v in evermat.versions(tmp_path / "s")] == [
        None,
        "orders 0",
        "orders 1",
        None,
        "orders 2",
        "returns x",
    ]


def test_a_position_is_not_kept_if_the_update_fails(tmp_path) -> None:
    m = PROGRAM.materialise()
    m.save(tmp_path / "s")
    with pytest.raises(evermat.DataError):
        m.update(insert={"a": [("x",)]}, position=("orders", "1"))
    assert m.positions == {}
    m.update(insert={"a": [(1,)]})
    assert m.positions == {}


def test_merged_updates_have_the_last_position() -> None:
    m = PROGRAM.materialise()
    updates = [evermat.StreamedUpdate({"a": [(n,)]}, {"a": [(n - 1,)]}, ("orders", str(n))) for n in range(5)]
    (change,) = m.stream(updates, coalesce=True)
    assert change.inserted.total == 2
    assert change.stats["updates"] == 5
    assert m.positions == {"orders": "4"}
