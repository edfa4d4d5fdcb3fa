"""A crash at any moment leaves the last complete version, and the next writer goes on from it."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable

from evermat.core.error_catalogue import CANNOT_WRITE, STATE_UNREADABLE, VERSION_NOT_KEPT
from evermat.core.errors import ResourceError, StateError
from evermat.store import Store
from evermat.store.delta_log import entry_file, entry_numbers
from evermat.store.delta_table import TableWriter
from tests.store.crasher import DIED, scenario
from tests.store.models import PAIRS, SCHEMAS, contents, entry, everything, minus, plus, small_state
from tests.support.environment import LONG

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """A state with four versions, and what every version of the crasher's scenario contains."""
    home = tmp_path_factory.mktemp("crashes")
    right = small_state(home / "state")
    shutil.copytree(home / "state", home / "all")
    scenario(home / "all", lambda _: None)
    with Store.open(home / "all") as store:
        right |= everything(store)
    assert sorted(right) == [1, 2, 3, 4, 5, 6]
    return home / "state", right


def current(path: Path, folder: str) -> set[tuple]:
    """The facts of a relation as another Delta reader sees them."""
    newest = max(DeltaTable(path / "commits").to_pyarrow_table()["version"].to_pylist())
    rows = DeltaTable(path / "relations" / folder).to_pyarrow_table().to_pylist()
    facts = {}
    for row in sorted(rows, key=lambda row: row["_version"]):
        if row["_version"] <= newest:
            facts[row["x"], row["y"]] = row["_op"]
    return {fact for fact, op in facts.items() if op != "-"}


def check(path: Path, right, acknowledged: int) -> None:
    """The state is one of its versions, nothing acknowledged is lost, and a writer can go on."""
    with Store.open(path) as store:
        latest = store.latest.number
        assert latest >= acknowledged
        found = everything(store)
        assert found == {number: right[number] for number in found}
        assert current(path, "edge") == set(right[latest]["edge"])
        store.lock()
        assert everything(store) == found
        schemas = {name: PAIRS if name != "on" else SCHEMAS["on"] for name in store.latest.relations}
        store.commit(entry(), {"path": plus(PAIRS, ("after", 1))}, schemas)
        assert contents(store, latest + 1, "path").keys() == right[latest]["path"].keys() | {("after", 1)}
        assert everything(store).keys() == found.keys() | {latest + 1}
        assert current(path, "path") == set(contents(store, latest + 1, "path"))
        assert current(path, "edge") == set(right[latest]["edge"])
        store.vacuum(1)
    with Store.open(path) as store:
        assert contents(store, latest + 1, "edge") == right[latest]["edge"]
        known = {p.folder for p in store._commits.last.pins.values()}
        assert {p.name for p in (path / "relations").iterdir()} == known


@pytest.mark.slow
def test_death_at_every_step(history, tmp_path: Path):
    original, right = history
    steps = range(1, 400) if LONG else range(1, 400, 41)
    for begin in range(0, len(steps), 20):
        some = steps[begin : begin + 20]
        for step in some:
            shutil.copytree(original, tmp_path / str(step))
        command = [sys.executable, "-m", "tests.store.crasher", str(tmp_path), *map(str, some)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        codes = dict(map(int, line.split()) for line in done.stdout.splitlines())
        assert set(codes.values()) <= {0, DIED}, done.stderr
        for step, code in codes.items():
            told = (tmp_path / f"{step}.done").read_text().split()
            assert code or told == ["5", "6"]
            check(tmp_path / str(step), right, int(told[-1]) if told else 4)
            shutil.rmtree(tmp_path / str(step))
        if 0 in codes.values():
            return
    pytest.fail("there are more steps than were tried")


WRITER = """
import sys
from evermat.store import Store
from tests.store.models import *
with Store.open(sys.argv[1]) as store:
    store.lock()
    while True:
        n = store.latest.number + 1
        store.commit(entry(batch=str(n)), {"edge": plus(PAIRS, ("a", n)), "path": plus(PAIRS, ("b", n))}, SCHEMAS)
        print(n, flush=True)
        for name, often in (("edge", 10), ("path", 15)):
            if n % often == 0:
                store.compact({name: plus(PAIRS, *contents(store, n, name))}, None)
        if n % 25 == 0:
            store.vacuum(5)
"""


@contextmanager
def busy_writer(path: Path):
    """A process that adds fact after fact to two relations, until it is killed."""
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        try:
            yield writer
        finally:
            writer.kill()


def check_busy(path: Path) -> int:
    """Both relations have the facts of the newest version, which is returned."""
    with Store.open(path) as store:
        number = store.latest.number
        assert store.latest.batch == str(number)
        for name, letter in (("edge", "a"), ("path", "b")):
            assert contents(store, number, name).keys() == {(letter, n) for n in range(1, number + 1)}
        return number


@pytest.mark.slow
def test_kill(tmp_path: Path):
    """A writer is killed at random moments."""
    path = tmp_path / "state"
    with Store.create(path) as store:
        store.commit(entry(batch="1"), {"edge": plus(PAIRS, ("a", 1)), "path": plus(PAIRS, ("b", 1))}, SCHEMAS)
    chance = random.Random(7)
    for round_ in range(500 if LONG else 6):
        with busy_writer(path) as writer:
            first = writer.stdout.readline()
            assert first, writer.stderr.read().decode()
            time.sleep(chance.random() * 0.4)
            writer.kill()
            acknowledged = int((first + writer.stdout.read()).split(b"\n")[-2])
        assert acknowledged <= check_busy(path) <= acknowledged + 1
        if round_ % 10 == 5:
            with Store.open(path) as store:
                everything(store)


@pytest.mark.slow
def test_readers_beside_a_writer(tmp_path: Path):
    path = tmp_path / "state"
    with Store.create(path) as store:
        store.commit(entry(batch="1"), {"edge": plus(PAIRS, ("a", 1)), "path": plus(PAIRS, ("b", 1))}, SCHEMAS)
    with busy_writer(path) as writer:
        assert writer.stdout.readline(), writer.stderr.read().decode()
        end = time.monotonic() + (60 if LONG else 3)
        seen = set()
        while time.monotonic() < end:
            try:
                seen.add(check_busy(path))
            except StateError as error:  # only a reader that is slower than five versions may miss one
                assert error.problems[0].kind in {VERSION_NOT_KEPT, STATE_UNREADABLE}, str(error)
        assert writer.poll() is None, writer.stderr.read().decode()
    assert len(seen) > 1


def test_power_loss_leaves_torn_entries(history, tmp_path: Path):
    original, right = history
    for torn in (b"", b'{"commitInfo":{"timest', b"\x00" * 400):
        path = tmp_path / str(len(torn))
        shutil.copytree(original, path)
        for table in (path / "commits", path / "relations" / "edge"):
            entry_file(table, entry_numbers(table)[-1] + 1).write_bytes(torn)
        with Store.open(path) as store:
            assert everything(store) == {n: right[n] for n in range(1, 5)}
            store.lock()
            store.commit(entry(), {"edge": minus(PAIRS, ("a", 1))}, SCHEMAS)
        assert current(path, "edge") == set(right[4]["edge"]) - {("a", 1)}
        with Store.open(path) as store:
            assert contents(store, 5, "edge").keys() == set(right[4]["edge"]) - {("a", 1)}


@pytest.mark.slow
@pytest.mark.parametrize("lasting", [False, True])
def test_a_disk_that_fills_up(history, tmp_path: Path, monkeypatch, lasting: bool):
    original, right = history
    path = tmp_path / "state"
    shutil.copytree(original, path)
    full = [10**9]

    def failing(function):
        def instead(*args, **kwargs):
            full[0] -= 1
            if full[0] < 0 if lasting else full[0] == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*args, **kwargs)

        return instead

    monkeypatch.setattr(os, "write", failing(os.write))
    monkeypatch.setattr(os, "fsync", failing(os.fsync))
    monkeypatch.setattr(TableWriter, "_append", failing(TableWriter._append))
    changes = {"edge": plus(PAIRS, ("n", 5)), "path": plus(PAIRS, ("n", 5)), "new": plus(PAIRS, ("n", 5))}
    with Store.open(path) as store:
        store.lock()
        for step in range(1, 200):
            full[0] = step
            try:
                store.commit(entry(), changes, SCHEMAS | {"new": PAIRS})
            except ResourceError as error:
                assert error.exit_code == 6
                assert error.problems[0].kind is CANNOT_WRITE
                assert "No space left on device" in str(error)
            else:
                break
            full[0] = 10**9
            assert store.latest.number == 4
            with Store.open(path) as reader:
                assert everything(reader) == {n: right[n] for n in range(1, 5)}
            if step % 5 == 0:
                store.close()
                store = Store.open(path)
                store.lock()
                assert current(path, "edge") == set(right[4]["edge"])
        assert step > 10
        full[0] = 10**9
        assert contents(store, 5, "edge").keys() == {*right[4]["edge"], ("n", 5)}
        assert current(path, "edge") == {*right[4]["edge"], ("n", 5)}
        store.close()


@pytest.mark.slow
def test_a_small_disk(tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        path = disk / "state"
        right = small_state(path, 2)
        facts, chance = {}, random.Random(9)

        def fill(store: Store) -> None:
            for number in range(3, 1000):
                some = [(chance.randbytes(40).hex(), number) for _ in range(200)]
                store.commit(entry(), {"edge": plus(PAIRS, *some), "path": plus(PAIRS, ("x", number))}, SCHEMAS)
                facts[number] = some

        with Store.open(path) as store:
            store.lock()
            with pytest.raises(ResourceError, match="No space left on device"):
                fill(store)
            newest = store.latest.number
            assert newest == max(facts)
            with Store.open(path) as reader:
                assert reader.latest.number == newest
                wanted = {*right[2]["edge"], *(fact for some in facts.values() for fact in some)}
                assert contents(reader, newest, "edge").keys() == wanted
        with Store.open(path) as store:  # the next writer, once there is room
            subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
            store.lock()
            store.commit(entry(), {"path": plus(PAIRS, ("y", 0))}, SCHEMAS)
            assert contents(store, newest + 1, "edge").keys() == wanted
            assert current(path, "edge") == wanted
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_place_that_cannot_be_written_to(tmp_path: Path):
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    small_state(tmp_path / "state", 2)
    (tmp_path / "state" / "relations" / "edge").chmod(0o500)
    with Store.open(tmp_path / "state") as store:
        store.lock()
        with pytest.raises(ResourceError, match="Permission denied"):
            store.commit(entry(), {"edge": plus(PAIRS, ("z", 1))}, SCHEMAS)
        assert store.latest.number == 2
