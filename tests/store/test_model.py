"""Random histories against a dictionary: every version, every change, after every step."""

from __future__ import annotations

import shutil
import tempfile
from copy import deepcopy
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from evermat.store import Keep, Store
from evermat.store.chunked_write import Pieces
from tests.store.models import PAIRS, Facts, contents, entry, in_pieces, rows_of, table
from tests.support.environment import LONG

NAMES = ["edge", "Edge", "a/b"]
SCHEMAS = dict.fromkeys(NAMES, PAIRS)
FACTS = st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 2))
OF = st.tuples(st.sampled_from(["explicit", "derived"]), st.none() | st.integers(0, 3), st.none() | st.integers(0, 3))


def handed(rows: pa.Table, size: int | None) -> Pieces:
    """The rows at once, or in pieces of a size."""
    return rows if size is None else in_pieces(rows, size)


class History(RuleBasedStateMachine):
    """`versions` and `changes` are what the state should have."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.path = self.home / "state"
        self.store = Store.create(self.path)
        self.now: dict[str, Facts] = {name: {} for name in NAMES}
        self.versions: dict[int, dict[str, Facts]] = {}
        self.changes: dict[int, list[tuple[str, tuple, str]]] = {}
        self.number = 0
        self.kept = self.kept_in_state = 1000
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("evermat.store.delta_table.FAN", 3)
        self.patch.setattr("evermat.store.delta_table.CHECKPOINT_EVERY", 5)
        self.patch.setattr("evermat.store.store._TIDY_EVERY", 4)

    def teardown(self) -> None:
        self.store.close()
        self.patch.undo()
        shutil.rmtree(self.home)

    @rule(
        wanted=st.dictionaries(st.sampled_from(NAMES), st.dictionaries(FACTS, OF | st.just(None), max_size=5)),
        size=st.none() | st.integers(1, 3),
    )
    def commit(self, wanted, size: int | None) -> None:
        rows: dict[str, list] = {}
        for name, facts in wanted.items():
            rows[name] = []
            for fact, of in facts.items():
                old = self.now[name].get(fact)
                if of is None and old is not None:
                    rows[name].append(("-", fact, self.now[name].pop(fact)))
                elif of is not None and old != of:
                    rows[name].append(("=" if old else "+", fact, of))
                    self.now[name][fact] = of
        self.number += 1
        version = self.store.commit(
            entry(counters=self.number, batch=str(self.number)),
            {name: handed(table(PAIRS, found), size) for name, found in rows.items()},
            SCHEMAS,
        )
        assert version.number == self.number
        self.versions[self.number] = deepcopy(self.now)
        self.kept_in_state = self.kept
        self.forget(self.kept)
        self.changes[self.number] = [(n, f, op) for n, r in rows.items() for op, f, _ in r if op != "="]

    @precondition(lambda self: self.number)
    @rule(names=st.sets(st.sampled_from(NAMES)), size=st.none() | st.integers(1, 3))
    def compact(self, names, size: int | None) -> None:
        whole = {name: table(PAIRS, [("+", f, of) for f, of in self.now[name].items()]) for name in names}
        self.store.compact({name: handed(rows, size) for name, rows in whole.items()}, ["compacted", self.number])
        assert self.store.latest.counters == ["compacted", self.number]

    @precondition(lambda self: self.number)
    @rule(keep=st.integers(1, 5))
    def vacuum(self, keep: int) -> None:
        self.store.vacuum(keep)
        self.forget(keep)

    @rule(keep=st.integers(1, 9))
    def keep(self, keep: int) -> None:
        self.store.keep(Keep.of(keep))
        self.kept = keep

    def forget(self, keep: int) -> None:
        for number in [n for n in self.versions if n <= self.number - keep]:
            del self.versions[number]

    @precondition(lambda self: self.number)
    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = Store.open(self.path)
        self.store.lock()
        self.kept = self.kept_in_state

    @invariant()
    def is_right(self) -> None:
        if not self.number:
            return
        with Store.open(self.path) as reader:
            for store in (self.store, reader):
                assert [v.number for v in store.versions()] == sorted(self.versions)
                assert [v.batch for v in store.versions()] == [str(n) for n in sorted(self.versions)]
            for number, relations in self.versions.items():
                for name, facts in relations.items():
                    assert contents(reader, number, name) == facts
                assert DeltaTable(self.path / "commits").version() == self.store._commits.entry
                feed = [(n, row[:2], row[-1]) for _, n, t in reader.changes(number, number) for row in rows_of(t)]
                assert sorted(feed) == sorted(self.changes[number])

    @invariant()
    def no_file_is_left(self) -> None:
        """Each file is needed, or will be deleted with the next merge."""
        for writer in self.store._tables.values():
            known = {part.path for part in writer.log.every} | {file.name for file in writer.garbage}
            assert {file.name for file in writer.folder.glob("*.parquet")} <= known


TestHistory = pytest.mark.slow(History.TestCase)
TestHistory.settings = settings(
    max_examples=200 if LONG else 8,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.reuse, Phase.generate],  # shrinking takes minutes
)
