"""The number of files is bounded, however long one writer lives and whatever its versions change."""

from __future__ import annotations

from pathlib import Path

import pytest

from evermat.store import Keep, Store
from tests.store.models import PAIRS, contents, entry, plus, table

SCHEMAS = {"r": PAIRS}
SNAPSHOT_EVERY = 9


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merges, checkpoints and tidying after few versions."""
    monkeypatch.setattr("evermat.store.delta_table.FAN", 4)
    monkeypatch.setattr("evermat.store.delta_table.CHECKPOINT_EVERY", 4)
    monkeypatch.setattr("evermat.store.delta_table._SPREAD", 1)
    monkeypatch.setattr("evermat.store.store._TIDY_EVERY", 4)


def churned(store: Store, versions: range) -> dict[int, set]:
    """Each version has ten facts, half of which are new, and from time to time a snapshot; returns the facts."""
    facts = {}
    for number in versions:
        gone = [("f", 5 * (number - 2) + i) for i in range(5)] if number > 2 else []
        come = [("f", 5 * number + i) for i in range(5)]
        rows = [
            *(("+", fact, ("explicit", 1, None)) for fact in come),
            *(("-", fact, ("", None, None)) for fact in gone),
        ]
        store.commit(entry(), {"r": table(PAIRS, rows)}, SCHEMAS)
        facts[number] = {*come, *(("f", 5 * (number - 1) + i) for i in range(5 if number > 1 else 0))}
        if number % SNAPSHOT_EVERY == 0:
            store.compact({"r": plus(PAIRS, *facts[number])}, None)
    return facts


def files(path: Path) -> int:
    """The data files of the relation and of commits."""
    return len(list(path.glob("commits/*.parquet"))) + len(list(path.glob("relations/r/*.parquet")))


def test_versions_that_are_no_longer_kept_leave_no_files(tmp_path: Path) -> None:
    path, counts = tmp_path / "state", []
    with Store.create(path) as store:
        store.keep(Keep.of(12))
        for first in range(1, 161, 10):
            facts = churned(store, range(first, first + 10))
            counts.append(files(path))
        assert max(counts[2:]) <= max(counts[2:8]) + 4
        assert max(counts) < 60
        for version in store.versions()[-10:]:
            assert contents(store, version.number, "r").keys() == facts[version.number]


def test_each_snapshot_that_is_kept_leaves_two_files(tmp_path: Path) -> None:
    """The snapshot, and one with the changes before it."""
    path = tmp_path / "state"
    with Store.create(path) as store:
        facts = churned(store, range(1, 120))
        parts = store._log(store._commits.pins["r"]).every
        snapshots = [part for part in parts if part.snapshot]
        assert len(snapshots) == 119 // SNAPSHOT_EVERY
        kept = [part for part in parts if not part.snapshot and part.last <= snapshots[-1].first]
        assert len(kept) == len(snapshots)
        for number, right in facts.items():
            assert contents(store, number, "r").keys() == right
    with Store.open(path) as reader:
        for number in (1, 50, 118):
            assert contents(reader, number, "r").keys() == facts[number]
        assert [number for number, _, _ in reader.changes(2, 119)] == list(range(2, 120))
