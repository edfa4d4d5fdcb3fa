"""Buffers of queries: nobody gets one that another uses."""

from __future__ import annotations

import pytest

from evermat.columns.evaluation import buffers
from evermat.columns.evaluation.buffers import borrowed_buffers


@pytest.fixture(autouse=True)
def no_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "_spare", [])


def test_buffers_are_used_again_but_never_twice_at_a_time() -> None:
    with borrowed_buffers() as outer:
        buffer = outer.get(0, 2)
        with borrowed_buffers() as inner:
            assert inner is not outer
            assert inner.get(0, 2) is not buffer
    with borrowed_buffers() as one, borrowed_buffers() as two:
        assert {id(one), id(two)} == {id(outer), id(inner)}
        assert outer.get(0, 2) is buffer


def test_buffers_hold_as_many_bindings_as_they_are_trusted_to(monkeypatch: pytest.MonkeyPatch) -> None:
    for chunk in (3, 5, buffers.CHUNK, 3):
        monkeypatch.setattr(buffers, "CHUNK", chunk)
        with borrowed_buffers() as borrowed:
            assert borrowed.get(0, 2).shape == (2, chunk)


def test_buffers_are_given_back_by_what_fails() -> None:
    with pytest.raises(ZeroDivisionError), borrowed_buffers() as failed:
        raise ZeroDivisionError
    with borrowed_buffers() as again:
        assert again is failed


def test_large_buffers_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with borrowed_buffers() as large:
        monkeypatch.setattr(buffers, "MOST_SPARE", large.get(0, 1).nbytes - 1)
    with borrowed_buffers() as other:
        assert other is not large
