"""States in unusual places and times: nothing can be written, no file can be made, or the clock is set back."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

import evermat
from evermat.store import Keep, Store
from tests.runtime.crasher import change
from tests.runtime.test_state_format import extracted
from tests.store.models import PAIRS, contents, entry, minus, plus
from tests.support.states import CHAIN, PROGRAM, assert_recomputed, facts_at, refused, saved, tree
from tests.support.updates import facts_of


@contextmanager
def mounted(home: Path, *arguments: str) -> Iterator[Path]:
    """A new folder on which something is mounted, where the machine allows that."""
    home.mkdir()
    if (
        shutil.which("mount") is None
        or subprocess.run(["mount", *arguments, str(home)], check=False, capture_output=True).returncode
    ):
        pytest.skip("nothing can be mounted here")
    try:
        yield home
    finally:
        subprocess.run(["umount", str(home)], check=True)


# --- nothing can be written ------------------------------------------------------------------------------------


@contextmanager
def by_mount(path: Path) -> Iterator[tuple[Path, str]]:
    with mounted(path.parent.with_name("mounted"), "--bind", str(path.parent)) as home:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(home)], check=True)
        yield home / path.name, "Read-only file system"


@contextmanager
def by_mode(path: Path) -> Iterator[tuple[Path, str]]:
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    folders = [path.parent, path, *(found for found in path.rglob("*") if found.is_dir())]
    files = [found for found in path.rglob("*") if found.is_file()]
    for one in (*folders, *files):
        one.chmod(0o500)
    try:
        yield path, "Permission denied"
    finally:
        for folder in folders:
            folder.chmod(0o700)


@pytest.mark.parametrize("forbid", [by_mount, by_mode])
@pytest.mark.parametrize("number", [1, 2])
def test_a_state_that_cannot_be_written_can_be_read(tmp_path: Path, forbid, number: int) -> None:
    """Of both formats; every write says what is wrong and changes nothing."""
    home = tmp_path / "home"
    home.mkdir()
    if number == 1:
        (extracted(tmp_path / "archive") / "plain").rename(home / "state")
        new: tuple[object, ...] = ("new", "a")
    else:
        with saved(home / "state") as m:
            m.update({"edge": [(7, 8)]})
        new = (8, 9)
    with forbid(home / "state") as (path, why):
        before, newest = tree(path), max(version.number for version in evermat.versions(path))
        refusal = f"error[E600]: cannot write `{path / 'lock'}`: {why}\n  = note: the newest version of the state is what it was"
        with evermat.open(path) as m:
            facts = facts_of(m)
            assert refused(lambda: m.update({"edge": [new]}), 6) == refusal
            assert (facts_of(m), m.version) == (facts, newest)
        assert set(evermat.query(path, "path(x, y)")) == facts["path"]
        assert evermat.changes(path, 2)
        assert facts_at(path, 1) == facts_at(path, 1)
        other = evermat.Program.parse(PROGRAM).materialise({"edge": CHAIN})
        assert refused(lambda: other.save(path, positions="reset"), 6) == refusal
        assert other.version is None
        assert refused(lambda: evermat.vacuum(path, 1), 6) == refusal
        assert refused(lambda: evermat.migrate(path), 6) == refusal
        assert refused(lambda: evermat.open(path, write=True), 6) == refusal
        new_one = path.parent / "new"
        assert refused(lambda: other.save(new_one), 6).startswith(f"error[E600]: cannot write `{new_one}`: {why}\n")
        assert tree(path) == before
        assert not new_one.exists()


# --- no file can be made ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_disk_without_inodes(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=64m,nr_inodes=200", "tmpfs") as home:
        path = home / "state"
        with saved(path) as m:
            failed = ""
            while not failed:
                facts, version = facts_of(m), m.version
                insert, delete, _ = change(version + 1)
                try:
                    m.update(insert, delete)
                except evermat.ResourceError as error:
                    failed = str(error)
            assert "No space left on device" in failed
            assert (facts_of(m), m.version) == (facts, version)
            assert facts_at(path) == facts
            assert [v.number for v in evermat.versions(path)] == list(range(1, version + 1))
        other = evermat.Program.parse(PROGRAM).materialise({"edge": CHAIN})
        assert "No space left on device" in refused(lambda: other.save(home / "new" / "state"), 6)
        assert facts_at(path) == facts
        subprocess.run(["mount", "-o", "remount,nr_inodes=2000", str(home)], check=True)
        with evermat.open(path) as m:
            m.update(insert, delete)
            assert_recomputed(m)
            assert facts_at(path) == facts_of(m)
        evermat.vacuum(path, 1)
        assert not list(path.rglob("*.part"))
        assert facts_at(path)["edge"] == facts["edge"] - delete["edge"] | insert["edge"]


# --- the clock is set back -------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["4", "5d"])
def test_a_clock_that_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: str) -> None:
    """Merges, checkpoints, retention and other readers go by versions, never by times."""
    moment = [datetime(2030, 1, 1, tzinfo=UTC)]

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return moment[0]

    monkeypatch.setattr("evermat.store.store.datetime", Clock)
    monkeypatch.setattr("evermat.store.writer.time.time_ns", lambda: int(moment[0].timestamp() * 1e9))
    monkeypatch.setattr("evermat.store.delta_table.FAN", 3)
    monkeypatch.setattr("evermat.store.delta_table.CHECKPOINT_EVERY", 4)
    monkeypatch.setattr("evermat.store.store._TIDY_EVERY", 2)
    path = tmp_path / "state"
    times, right = {}, {}
    days = [1, 1, -4000, 1, 1, 5000, -1, 0, -0.5, 3, -9000, 1, 2, 3, 1, 1, 1, 1, 1, 1]
    for number, day in enumerate(days, 1):
        with Store.open_to_write(path) if number > 1 else Store.create(path) as store:
            store.keep(Keep.of(keep))
            moment[0] += timedelta(days=day)
            rows = plus(PAIRS, ("x", number)) if number % 4 else minus(PAIRS, ("x", number - 1))
            store.commit(entry(), {"a": rows}, {"a": PAIRS})
            if number % 7 == 0:
                store.compact({"a": plus(PAIRS, *contents(store, number, "a"))}, None)
            times[number], right[number] = moment[0], contents(store, number, "a").keys()
            kept = [(version.number, version.time) for version in store.versions()]
            assert [n for n, _ in kept] == list(range(kept[0][0], number + 1))
            assert all(times[n] == time for n, time in kept)
            assert (
                len(kept) >= min(number, 4)
                if keep == "4"
                else times[min(kept[0][0] + 1, number)] >= moment[0] - timedelta(days=5)
            )
            for n, _ in kept:
                assert contents(store, n, "a").keys() == right[n]
            assert len(list(store.changes(kept[0][0], number))) == len(kept)
            assert max(DeltaTable(path / "commits").to_pyarrow_table()["version"].to_pylist()) == number
    evermat.vacuum(path, 2)
    with Store.open(path) as store:
        assert [version.number for version in store.versions()] == [len(days) - 1, len(days)]
        assert contents(store, len(days), "a").keys() == right[len(days)]


# --- two streams -----------------------------------------------------------------------------------------------


def test_two_streams_at_different_positions(tmp_path: Path) -> None:
    """Each has its own position, whatever the other one, other updates and other writers do."""
    path, edges = tmp_path / "state", set(CHAIN)
    saved(path).close()
    sources = {name: tmp_path / name for name in ("one", "two")}
    for source in sources.values():
        source.mkdir()

    def put(name: str, number: int) -> None:
        edge = (number, len(name) + 50 + number)
        edges.add(edge)
        (sources[name] / f"{number}.tsv").write_text("+\tedge\t{}\t{}\n".format(*edge))

    def follow(name: str) -> list[str]:
        with evermat.open(path) as m:
            newest = m.version
            for _ in m.stream(evermat.FolderStream(sources[name], m, once=True)):
                pass
        return [version.batch.rpartition(" ")[2] for version in evermat.versions(path) if version.number > newest]

    def positions(version: int | None = None) -> dict[str, str]:
        with evermat.open(path, version) as m:
            return {name.rpartition("/")[2]: position for name, position in m.positions.items()}

    for number in (1, 2, 3):
        put("one", number)
    assert follow("one") == ["1.tsv", "2.tsv", "3.tsv"]
    put("two", 1)
    assert follow("two") == ["1.tsv"]
    assert positions() == {"one": "3.tsv", "two": "1.tsv"}
    put("one", 4)
    put("two", 2)
    with evermat.open(path) as m:
        m.update({"edge": [(90, 91)]})
        edges.add((90, 91))
        m.update({"edge": [(91, 92)]}, position=("orders", "7"))
        edges.add((91, 92))
    assert follow("two") == ["2.tsv"]
    assert positions() == {"one": "3.tsv", "two": "2.tsv", "orders": "7"}
    evermat.vacuum(path, 3)
    assert follow("one") == ["4.tsv"]
    assert follow("one") == follow("two") == []
    assert positions() == {"one": "4.tsv", "two": "2.tsv", "orders": "7"}
    newest = evermat.versions(path)[-1].number
    assert positions(newest - 1) == {"one": "3.tsv", "two": "2.tsv", "orders": "7"}
    assert facts_at(path)["edge"] == edges
    with evermat.open(path) as m:
        facts = facts_of(m)
    with evermat.Program.parse(PROGRAM).materialise({"edge": edges}) as m:
        m.save(path, positions="keep")
    assert facts_at(path) == facts
    assert positions() == {"one": "4.tsv", "two": "2.tsv", "orders": "7"}
    assert follow("one") == follow("two") == []
