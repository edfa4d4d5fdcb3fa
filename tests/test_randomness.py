"""Chance is decided in one place: tests try the same examples in every run, and others where they are asked to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import core, given, settings
from hypothesis import strategies as st

from tests.support.randomness import seeds


def drawn() -> list[int]:
    """The examples of a test that Hypothesis calls."""
    found: list[int] = []

    @settings(max_examples=10, database=None)
    @given(rng=st.randoms(use_true_random=True))
    def test(rng) -> None:
        found.append(rng.getrandbits(64))

    test()
    return found


@contextmanager
def profile(name: str) -> Iterator[None]:
    """Has another profile hold for a while."""
    before = settings.get_current_profile_name()
    settings.load_profile(name)
    try:
        yield
    finally:
        settings.load_profile(before)


def test_examples_are_the_same_in_every_run() -> None:
    with profile("fixed"):
        assert drawn() == drawn()
        assert [*seeds("a test", 5)] == [*seeds("a test", 5)] != [*seeds("another", 5)]


def test_fuzzing_tries_others_and_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    with profile("random"):
        monkeypatch.setattr(core, "global_force_seed", None)
        assert [*seeds("a test", 5)] != [*seeds("a test", 5)]
        assert drawn() != drawn()
        monkeypatch.setattr(core, "global_force_seed", 7)
        assert [*seeds("a test", 5)] == [*seeds("a test", 5)] != [*seeds("another", 5)]
        assert drawn() == drawn()


def test_only_one_file_decides() -> None:
    here = Path(__file__)
    for path in here.parent.rglob("*.py"):
        if path not in {here, here.parent / "support" / "randomness.py"}:
            text = path.read_text(encoding="utf-8")
            assert not any(word in text for word in ("SystemRandom", "derandomize=", "load_profile(")), path
