"""Readers of all kinds beside a writer that replaces and deletes the files that they are about to read."""

from __future__ import annotations

import io
import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

import evermat
from evermat.core.error_catalogue import VERSION_NOT_KEPT
from evermat.runtime.streams.change_source import StateFeed
from evermat.store import Store, damaged, open_reader, read_state
from evermat.store.repeat import ATTEMPTS
from tests.runtime.crasher import change
from tests.runtime.test_state_format import extracted
from tests.spark.test_saved_state import open_in_process
from tests.store.models import PAIRS, contents, entry, plus
from tests.support.environment import LONG
from tests.support.states import PROGRAM, facts_at, refused, rows_of
from tests.support.strategies import Facts
from tests.support.updates import facts_of

ROOT = Path(__file__).parent.parent.parent
BEGIN, END, KEPT = 14, 20, 3  # the newest version when a reader begins, and the last one that a writer makes meanwhile


class Life:
    """A state as it is after each step of a writer, and what its versions hold."""

    def __init__(self, home: Path) -> None:
        self.steps: list[Path] = []
        self.facts: dict[int, Facts] = {}
        path = home / "state"
        with evermat.Program.parse(PROGRAM).materialise({"edge": [(0, 1)]}, counters="both") as m:
            m.save(path, keep=KEPT)
            self.facts[1] = facts_of(m)
        for number in range(2, END + 1):
            with evermat.open(path, write=True) as m:
                insert, delete, _ = change(number)
                m.update(insert, delete)
                self.facts[number] = facts_of(m)
            self._step(home, path, number)
            if number % 3 == 0:
                evermat.vacuum(path, 2)
                self._step(home, path, number)

    def _step(self, home: Path, path: Path, number: int) -> None:
        if number >= BEGIN:
            self.steps.append(home / f"step {len(self.steps)}")
            shutil.copytree(path, self.steps[-1])

    def changed(self, number: int) -> dict[str, set[tuple[Any, ...]]]:
        """The rows that a version changed, of each relation, as a feed has them."""
        found = {}
        for name, now in self.facts[number].items():
            old = self.facts[number - 1][name]
            found[name] = {(*f, "+", number) for f in now - old} | {(*f, "-", number) for f in old - now}
        return found


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evermat.store.delta_table.FAN", 3)
        patch.setattr("evermat.store.delta_table.CHECKPOINT_EVERY", 4)
        patch.setattr("evermat.store.store._MANY_ROWS", 30)
        patch.setattr("evermat.store.store._TIDY_EVERY", 2)
        return Life(tmp_path_factory.mktemp("life"))


def advance(path: Path, step: Path) -> None:
    """Makes a state what it is after a step, as a writer does: new files first, the row of the commit last, then deletions."""
    files = [file.relative_to(step) for file in step.rglob("*") if file.is_file()]
    files.sort(key=lambda file: (file.name == "_newest", file.parent.parts == ("commits", "_delta_log"), file.name))
    for file in files:
        if file.name == "_newest" or not (path / file).exists():
            (path / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(step / file, path / file)
    for file in [file for file in path.rglob("*") if file.is_file() and not (step / file.relative_to(path)).exists()]:
        file.unlink()


class Interference:
    """Has something happen before the k-th operation with which a state is read, and then before each of the following ones."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.taken, self._at, self._acts = 0, sys.maxsize, iter(())
        before = self._before

        class Opened(io.FileIO):
            def readall(self) -> bytes:
                before()
                return super().readall()

        for place, name in ((Path, "read_bytes"), (Path, "exists"), (os, "listdir")):
            patch.setattr(place, name, self._wrapped(getattr(place, name)))
        patch.setattr("evermat.store.disk.FileIO", self._wrapped(Opened))

    def begin(self, at: int, acts: Iterator[Callable[[], None]]) -> None:
        self.taken, self._at, self._acts = 0, at, acts

    def _wrapped(self, action: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any) -> Any:
            self._before()
            return action(*arguments)

        return act

    def _before(self) -> None:
        self.taken += 1
        if self.taken >= self._at:
            acts, self._acts = self._acts, iter(())
            for each in itertools.islice(acts, 1):
                each()
            self._acts = acts


def check_opened(life: Life, version: int | None, opened: Callable[..., evermat.Materialisation], path: Path) -> None:
    with opened(path, version) as m:
        assert version in {None, m.version}
        assert BEGIN <= m.version <= END or version is not None
        assert facts_of(m) == life.facts[m.version]


def check_query(life: Life, version: int | None, path: Path) -> None:
    found = set(evermat.query(path, "path(x, y), apart(y, x)", version))
    numbers = range(BEGIN, END + 1) if version is None else [version]
    facts = [life.facts[number] for number in numbers]
    assert found in [{(x, y) for x, y in f["path"] if (y, x) in f["apart"]} for f in facts]


def check_changes(life: Life, first: int | None, last: int | None, path: Path) -> None:
    found = {name: rows_of(table) for name, table in evermat.changes(path, first, last).items()}
    numbers = {row[-1] for rows in found.values() for row in rows}
    begin, end = first or min(numbers), last or max(numbers)
    assert end - begin < KEPT
    for name, rows in found.items():
        assert len(rows) == len(set(rows))
        assert set(rows) == {row for n in range(begin, end + 1) for row in life.changed(n)[name]}


def check_versions(path: Path) -> None:
    numbers = [version.number for version in evermat.versions(path)]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert BEGIN <= numbers[-1] <= END
    assert len(numbers) in {2, KEPT}


def check_feed(life: Life, version: int | None, path: Path) -> None:
    feed = StateFeed(path, "path")
    assert feed.columns.names == ["x", "y"]
    assert BEGIN <= feed.newest <= END
    assert BEGIN <= feed.versions[-1].number <= END
    if version is not None:
        feed.check(version)
        assert set(rows_of(feed.content(version))) == life.facts[version]["path"]
        changes = feed.changes(version, version)
        assert set(() if changes is None else rows_of(changes)) == life.changed(version)["path"]


def check_save(path: Path) -> None:
    from evermat.runtime import check_save

    check_save(path, "refuse", 3)


READERS: dict[str, Callable[[Life, Path], None]] = {
    "open": lambda life, path: check_opened(life, None, evermat.open, path),
    "open an old version": lambda life, path: check_opened(life, BEGIN - 1, evermat.open, path),
    "open on a cluster": lambda life, path: check_opened(life, None, open_in_process, path),
    "open an old version on a cluster": lambda life, path: check_opened(life, BEGIN - 1, open_in_process, path),
    "query": lambda life, path: check_query(life, None, path),
    "query an old version": lambda life, path: check_query(life, BEGIN - 1, path),
    "changes": lambda life, path: check_changes(life, None, None, path),
    "changes until now": lambda life, path: check_changes(life, BEGIN - 1, None, path),
    "changes of an old version": lambda life, path: check_changes(life, BEGIN - 1, BEGIN - 1, path),
    "versions": lambda life, path: check_versions(path),
    "a feed for Spark": lambda life, path: check_feed(life, None, path),
    "an old version for Spark": lambda life, path: check_feed(life, BEGIN, path),
    "save": lambda life, path: check_save(path),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("several", [False, True])
def test_files_vanish_at_any_moment_of_a_read(
    life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, several: bool
) -> None:
    """A writer makes all its steps before one read, or one step before each read from there on."""
    path = tmp_path / "state"
    shutil.copytree(life.steps[0], path)
    interference = Interference(monkeypatch)
    chance = Random(kind)
    k, missed = 0, 0
    while True:
        k += 1 if LONG else chance.choice([3, 19, 53])
        interference.begin(sys.maxsize, iter(()))
        shutil.rmtree(path)
        shutil.copytree(life.steps[0], path)
        steps = life.steps[1:] if several else life.steps[-1:]
        interference.begin(k, iter([partial(advance, path, step) for step in steps]))
        try:
            READERS[kind](life, path)
        except evermat.StateError as error:
            missed += 1
            assert {problem.kind for problem in error.problems} == {VERSION_NOT_KEPT}, error
            assert kind in {name for name in READERS if "old" in name or "until" in name}, error
        if interference.taken < k:
            break
    assert k > 5
    assert (missed > 0) == (kind in {name for name in READERS if "old" in name or "until" in name})


@pytest.mark.slow
def test_a_state_is_migrated_at_any_moment_of_a_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extracted(tmp_path)
    path = tmp_path / "state"
    interference = Interference(monkeypatch)

    def read() -> list[object]:
        with evermat.open(path, 4) as m:
            facts = facts_of(m)
        changes = {name: set(rows_of(table)) for name, table in evermat.changes(path).items()}
        numbers = [version.number for version in evermat.versions(path)]
        return [facts, changes, numbers, set(evermat.query(path, 'path("a", x)', 2))]

    right = None
    for k in itertools.count(1, 1 if LONG else 41):
        interference.begin(sys.maxsize, iter(()))
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(tmp_path / "plain", path)
        right = right or read()
        interference.begin(k, iter([lambda: evermat.migrate(path)]))
        assert read() == right
        if interference.taken < k:
            break


@pytest.mark.slow
def test_a_reader_that_was_overtaken_while_it_opened_is_refused_as_a_writer(
    life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it saw of the newer versions."""
    path = tmp_path / "state"
    shutil.copytree(life.steps[0], path)
    interference = Interference(monkeypatch)
    refusals = 0
    for k in itertools.count(1, 1 if LONG else 31):
        interference.begin(sys.maxsize, iter(()))
        shutil.rmtree(path)
        shutil.copytree(life.steps[0], path)
        interference.begin(k, iter([partial(advance, path, step) for step in life.steps[1:]]))
        with evermat.open(path) as m:
            found, ended = m.version, interference.taken < k
            interference.begin(sys.maxsize, iter(()))
            advance(path, life.steps[-1])
            if found == END:
                m.update({"edge": [(50, 51)]})
                assert m.version == END + 1
            else:
                assert f"is at version {END}, but this update was computed from version {found}" in refused(
                    partial(m.update, {"edge": [(50, 51)]})
                )
                refusals += 1
        if ended:
            break
    assert refusals > 0


def test_a_reader_gives_up_when_files_vanish_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with Store.create(path) as store:
        store.commit(entry(), {"a": plus(PAIRS, ("x", 1))}, {"a": PAIRS})
    reads = []

    def read(store: Any) -> None:
        reads.append(store.latest.number)
        (file,) = (path / "relations" / "a").glob("*.parquet")
        with Store.open_to_write(path) as writer:
            writer.commit(entry(), {"a": plus(PAIRS, ("x", len(reads) + 1))}, {"a": PAIRS})
            writer.vacuum(1)
        assert not file.exists()
        raise damaged(file, "it is missing")

    assert refused(lambda: read_state(path, read)) == (
        f"error[E509]: cannot read `{path}`: other processes replaced its files each of the {ATTEMPTS} times that it was "
        "read: read it again, or keep more versions"
    )
    assert reads == list(range(1, ATTEMPTS + 1))


def test_damage_is_no_reason_to_read_again_and_again(tmp_path: Path) -> None:
    """Also beside a writer that never stops."""
    path = tmp_path / "state"
    schemas = {"a": PAIRS, "b": PAIRS}
    with Store.create(path) as store:
        store.commit(entry(), {"a": plus(PAIRS, ("x", 1)), "b": plus(PAIRS, ("y", 1))}, schemas)
    (file,) = (path / "relations" / "a").glob("*.parquet")
    file.unlink()
    reads = []

    def read(store: Any) -> None:
        reads.append(store.latest.number)
        with Store.open_to_write(path) as writer:
            writer.commit(entry(), {"b": plus(PAIRS, ("y", len(reads) + 1))}, schemas)
        contents(store, reads[-1], "a")

    told = f"error[E503]: `{file}` is damaged: it is missing\n  = note: nothing was read from it"
    assert refused(lambda: read_state(path, read)) == told
    assert reads == [1, 2]
    with open_reader(path) as reader:
        assert refused(lambda: contents(reader, 3, "a")) == told  # and where nobody writes, at once


# Every version n has in each relation the facts (0) to (n); the relations are many.
WRITER = """
import sys, evermat
path = sys.argv[1]
while True:
    with evermat.open(path, write=True, keep=3) as m:
        for _ in range(4):
            m.update({name: [(m.version + 1,)] for name in m})
        print(m.version, flush=True)
    evermat.vacuum(path, 2)
"""
RELATIONS = [f"r{number}" for number in range(31)]


@pytest.mark.slow
def test_readers_of_all_kinds_beside_a_busy_writer(tmp_path: Path) -> None:
    path = tmp_path / "state"
    program = evermat.Program.parse("".join(f".decl {name}(x:number)\n" for name in RELATIONS))
    with program.materialise({name: [(0,), (1,)] for name in RELATIONS}) as m:
        m.save(path, keep=3)

    def right(number: int) -> Facts:
        return {name: {(n,) for n in range(number + 1)} for name in RELATIONS}

    def opened(version: int | None) -> None:
        with evermat.open(path, version) as m:
            assert facts_of(m) == right(m.version)

    def asked(version: int | None) -> None:
        found = {x for (x,) in evermat.query(path, ", ".join(f"{name}(x)" for name in RELATIONS), version)}
        assert found == set(range(max(found) + 1))
        assert version in {None, max(found)}

    def changed(version: int | None) -> None:
        found = evermat.changes(path, version, version)
        numbers = {row[-1] for row in rows_of(found["r0"])}
        assert all(set(rows_of(found[name])) == {(n, "+", n) for n in numbers} for name in RELATIONS)
        assert version is None or numbers == {version}

    reads, missed = 0, 0
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        try:
            assert writer.stdout.readline(), writer.stderr.read().decode()
            end = time.monotonic() + (180 if LONG else 2)
            while time.monotonic() < end or not reads:
                numbers = [version.number for version in evermat.versions(path)]
                assert numbers == list(range(numbers[0], numbers[-1] + 1))
                for read in (opened, asked, changed):
                    read(None)
                    reads += 1
                    try:
                        read(numbers[-1])
                    except evermat.StateError as error:  # of this version, and only because it is no longer kept
                        assert {problem.kind for problem in error.problems} == {VERSION_NOT_KEPT}, error
                        missed += 1
            assert writer.poll() is None, writer.stderr.read().decode()
        finally:
            writer.kill()
    assert reads >= 3
    print(f"{reads} reads of what is newest, and as many of a version, of which {missed} were no longer kept")
    assert facts_at(path) == right(max(version.number for version in evermat.versions(path)))
