"""A disk that fills up in the middle of an update: nothing has happened, in memory or on disk."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import evermat
from evermat import Materialisation
from evermat.store import disk as files
from evermat.testing import state_of
from tests.runtime.crasher import change
from tests.support.environment import LONG
from tests.support.states import CHAIN, PROGRAM, assert_recomputed, explicit_of, facts_at, refused, saved, tree
from tests.support.updates import facts_of

LOOP = ".decl loop(x:number) loop(x) :- path(x, x)."
UPDATES = {
    "facts": {"insert": {"edge": [(5, 0), (9, 9)]}, "delete": {"edge": [(1, 2)]}, "algorithm": "bf-c"},
    "rules": {"insert": {"edge": [(5, 0)]}, "add_rules": LOOP},
}
PLENTY = 10**9
EVERY = 1 if LONG else 7  # of the moments at which a disk can be full


class Disk:
    """Counts everything that takes room on the disk, and fails when no room is `left`."""

    def __init__(self) -> None:
        self.left = PLENTY

    def take(self, operation: str, path: Path) -> None:
        del path
        if operation in {"unlink", "rmdir"}:
            return
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def disk() -> Iterator[Disk]:
    found = Disk()
    files.watch(found.take)
    yield found
    files.watch(None)


def everything(m: Materialisation) -> dict[str, object]:
    """All that an update must not change if it fails."""
    state = state_of(m)
    counters = {
        (kind, name): counter.get(state.materialised.rows(name)).tolist()
        for kind, counted in (("nonrecursive", state.nonrecursive_counter), ("recursive", state.recursive_counter))
        for name, counter in counted.counters.items()
    }
    valid = {stratum.relations: state.valid_counters(stratum) for stratum in m.program.strata}
    bits = {
        name: set(np.unique(table.state[: table.count]).tolist()) <= {0, 2, 3} for name, table in state.tables.items()
    }
    return {"facts": facts_of(m), "explicit": explicit_of(m), "version": m.version} | counters | valid | bits


@pytest.mark.slow
@pytest.mark.parametrize("kind", UPDATES)
def test_an_update_that_cannot_be_written_has_not_happened(tmp_path: Path, disk: Disk, kind: str) -> None:
    path = tmp_path / "state"
    with saved(path) as m:
        m.update({"edge": [(7, 8)]})
        before = everything(m)
        for step in range(0, 400, EVERY):
            disk.left = step
            try:
                m.update(**UPDATES[kind])
            except evermat.ResourceError as error:
                disk.left = PLENTY
                assert error.exit_code == 6
                assert str(error).startswith("error[E6")
                assert "No space left on device" in str(error)
                assert "the newest version of the state is what it was" in str(error)
            else:
                break
            assert everything(m) == before
            with evermat.open(path) as found:
                assert (found.version, facts_of(found)) == (2, before["facts"])
                assert_recomputed(found)
        assert step > 20
        disk.left = PLENTY
        assert m.version == 3
        expected = facts_of(m)
        assert_recomputed(m, PROGRAM + (LOOP if kind == "rules" else ""))
    with evermat.open(path) as found:
        assert (found.version, facts_of(found)) == (3, expected)
        assert [v.number for v in evermat.versions(path)] == [1, 2, 3]


def test_a_save_that_cannot_be_written_leaves_nothing(tmp_path: Path, disk: Disk) -> None:
    m = evermat.Program.parse(PROGRAM).materialise({"edge": CHAIN})
    for step in range(0, 400, EVERY):
        disk.left = step
        try:
            m.save(tmp_path / "state")
        except evermat.ResourceError:
            disk.left = PLENTY
        else:
            break
        assert list(tmp_path.iterdir()) == []
        assert m.version is None
    assert step > 10
    disk.left = PLENTY
    assert facts_at(tmp_path / "state") == facts_of(m)
    m.close()


@pytest.mark.slow
def test_saving_over_a_state_happens_or_not(tmp_path: Path, disk: Disk) -> None:
    path = tmp_path / "state"
    saved(path).close()
    before = facts_at(path)
    m = evermat.Program.parse(PROGRAM).materialise({"edge": [(0, 1)]})
    for step in range(0, 400, EVERY):
        disk.left = step
        try:
            m.save(path)
        except evermat.ResourceError:
            disk.left = PLENTY
        else:
            break
        assert m.version is None
        assert facts_at(path) == before
    disk.left = PLENTY
    assert m.version == 2
    assert facts_at(path) == facts_of(m)
    m.close()


@pytest.mark.slow
def test_an_update_whose_snapshot_cannot_be_written_has_happened(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    monkeypatch.setattr("evermat.store.store._MANY_ROWS", 0)
    with saved(path) as m:
        for number in range(2, 150, EVERY):
            disk.left = number
            before, version = facts_of(m), m.version
            insert, delete, _ = change(number)
            try:
                m.update(insert, delete)
            except evermat.ResourceError:
                assert (facts_of(m), m.version) == (before, version)
            else:
                assert insert["edge"] <= set(m["edge"])
                assert m.version == version + 1
            disk.left = PLENTY
            with evermat.open(path) as found:
                assert (facts_of(found), found.version) == (facts_of(m), m.version)
        m.update({"edge": [(50, 51)]})
        assert_recomputed(m)
        with evermat.open(path) as found:
            assert_recomputed(found)


@contextmanager
def small_disk(home: Path, size: str) -> Iterator[Path]:
    """A file system of its own, where the machine allows that."""
    home.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(home)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield home
    finally:
        subprocess.run(["umount", str(home)], check=True)


@pytest.mark.slow
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as home:
        path = home / "state"
        with saved(path) as m:
            failed = None
            while failed is None:
                before = everything(m)
                insert, delete, _ = change(m.version + 1)
                try:
                    m.update(insert, delete, algorithm="bf-c")
                except evermat.ResourceError as error:
                    failed = error
            assert failed.exit_code == 6
            assert "No space left on device" in str(failed)
            assert everything(m) == before
            with evermat.open(path) as found:
                assert (found.version, facts_of(found)) == (m.version, before["facts"])
            assert "No space left on device" in refused(lambda: m.update(insert, delete), exit_code=6)
            subprocess.run(["mount", "-o", "remount,size=8m", str(home)], check=True)
            m.update(insert, delete, algorithm="bf-c")
            assert m.version == before["version"] + 1
            assert_recomputed(m)
        with evermat.open(path) as found:
            assert facts_of(found) == facts_of(m)


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    tmp_path.chmod(0o500)
    m = evermat.Program.parse(PROGRAM).materialise({"edge": CHAIN})
    assert "Permission denied" in refused(lambda: m.save(tmp_path / "state"), exit_code=6)
    assert tree(tmp_path) == {}
