"""A crash at any moment, or a disk that fails, leaves a state that can be read and written."""

from __future__ import annotations

import errno
import itertools
import os
import random
import shutil
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from deltalake import DeltaTable

from evermat.core.error_catalogue import VERSION_NOT_KEPT
from evermat.core.errors import ResourceError, StateError
from evermat.store import Keep, Store, disk, open_reader
from evermat.store.directory import COMMITS, MARK, RELATIONS
from tests.store import crasher
from tests.store.crasher import DIED, DONE, REFUSED, commit
from tests.store.models import PAIRS, SCHEMAS, contents, entry, everything, plus, small_state
from tests.support.environment import LASTING, LONG
from tests.support.states import QUICK

ROOT = Path(__file__).parent.parent.parent
FORMAT_1 = Path(__file__).parent.parent / "runtime" / "format_1" / "states.tar.gz"
ERRORS = ["kill", "ENOSPC", "ENOSPC+", "EIO"]


def make_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merges, checkpoints and tidying after few versions."""
    monkeypatch.setattr("evermat.store.delta_table.FAN", 3)
    monkeypatch.setattr("evermat.store.delta_table.CHECKPOINT_EVERY", 4)
    monkeypatch.setattr("evermat.store.delta_table._SPREAD", 1)
    monkeypatch.setattr("evermat.store.store._TIDY_EVERY", 2)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder where nothing waits for a disk."""
    with TemporaryDirectory(dir=QUICK) as home:
        yield Path(home)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


@contextmanager
def crashers(folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.store.crasher", str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def attempt(process: subprocess.Popen[str], scenario: str, error: str, k: int) -> tuple[int, list[int]]:
    """How a scenario ended that was stopped at an operation, and which versions it had said are committed."""
    process.stdin.write(f"{scenario} {error} {k}\n")
    process.stdin.flush()
    code, *said = process.stdout.readline().split()
    if int(code) not in {DIED, REFUSED, DONE}:
        process.stdin.close()
        pytest.fail(f"{scenario} {error} {k}: {process.stderr.read()}")
    return int(code), [int(number) for number in said]


def facts_of(store, version: int) -> dict[str, set]:
    return {name: set(contents(store, version, name)) for name in store.version(version).relations}


def known(path: Path) -> dict[int, dict[str, set]]:
    """All that a state contains, version by version."""
    with open_reader(path) as store:
        return {version.number: facts_of(store, version.number) for version in store.versions()}


def seen_by_others(path: Path, relation: str) -> set[tuple]:
    """The facts of a relation as another Delta reader sees them."""
    newest = max(DeltaTable(path / "commits").to_pyarrow_table()["version"].to_pylist())
    facts: dict[tuple, str] = {}
    (folder,) = [name.name for name in (path / "relations").iterdir() if DeltaTable(name).metadata().name == relation]
    rows = DeltaTable(path / "relations" / folder).to_pyarrow_table().to_pylist()
    for row in sorted(rows, key=lambda row: row["_version"]):
        if row["_version"] <= newest:
            own = {"_op", "_version", "_origin", "_nonrecursive", "_recursive"}
            facts[tuple(value for name, value in row.items() if name not in own)] = row["_op"]
    return {fact for fact, op in facts.items() if op != "-"}


def check(path: Path, right: dict[int, dict[str, set]], acknowledged: int, wanted: dict[int, dict[str, set]]) -> None:
    """The state is one that it was before or after a step; it can be updated, vacuumed and read by others.

    `right` is what it had before; `wanted` what versions hold that the scenario commits.
    """
    found = known(path)
    assert found, "there is a version"
    newest = max(found)
    assert newest >= max(acknowledged, max(right, default=0))
    for number, facts in found.items():
        assert facts == wanted.get(number, right.get(number)), number
    with Store.open_to_write(path) as store:
        store.keep(Keep.of(1000))
        assert store.latest.number == newest
        facts = facts_of(store, newest)
        assert facts == found[newest]
        for relation in facts.keys() & {"edge", "path"}:
            assert seen_by_others(path, relation) == facts[relation]
        if "new" not in facts and "path" in facts and "edge" in facts and len(facts) == len(SCHEMAS):
            assert commit(store) == newest + 1
            changed = facts_of(store, newest + 1)
            assert ("p", newest + 1) in changed["path"]
            assert changed["path"] - {("p", newest + 1)} == facts["path"] - {("p", newest + 1)}
        store.vacuum(1)
        latest = store.latest.number
        last = facts_of(store, latest)
        assert [v.number for v in store.versions()] == [latest]
        pinned = set(store._commits.pins)
        assert {p.name for p in (path / "relations").iterdir()} == pinned
        assert not list(path.rglob(".*.part"))
    with Store.open(path) as store:
        assert facts_of(store, latest) == last
        for relation in last.keys() & {"edge", "path"}:
            assert seen_by_others(path, relation) == last[relation]


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    """A state of some versions, whose next ones bring merges and checkpoints."""
    path = tmp_path_factory.mktemp("crashes") / "state"
    patch = pytest.MonkeyPatch()
    make_small(patch)
    try:
        small_state(path)
        with Store.open(path) as store:
            store.lock()
            store.keep(Keep.of(5))
            for _ in range(9):
                commit(store)
    finally:
        patch.undo()
    return path


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("scenario", [name for name in crasher.SCENARIOS if name not in {"migrate", "recover"}])
def test_every_operation(original: Path, tmp_path: Path, scenario: str, error: str) -> None:
    """Each step of a writer is stopped at each of its operations."""
    right = {} if scenario == "first" else known(original)
    path = tmp_path / "state"
    if scenario != "first":
        shutil.copytree(original, path)
    with crashers(tmp_path) as process:
        code, said = attempt(process, scenario, error, 10**6)
        assert code == DONE
        wanted = known(path)
        done = max(said)
        chance = random.Random(f"{scenario} {error}")
        k, tried = 0, 0
        while True:
            k += 1 if LONG else chance.choice([1, 17, 31])
            shutil.rmtree(path, ignore_errors=True)
            if scenario != "first":
                shutil.copytree(original, path)
            code, said = attempt(process, scenario, error, k)
            if code == DONE:
                break
            tried += 1
            if scenario == "first" and not path.exists():
                assert not said
                continue
            check(path, right, max(said, default=0), between(right, wanted, path))
    assert tried > 1
    assert max(said) == done


def between(right: dict, wanted: dict, path: Path) -> dict:
    """What versions hold: those before and after are known, those between are derived by their changes."""
    found = dict(right) | dict(wanted)
    with open_reader(path) as store:
        for version in store.versions():
            if version.number not in found:
                found[version.number] = facts_of(store, version.number)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
def test_every_operation_of_a_migration(tmp_path: Path, error: str) -> None:
    with tarfile.open(FORMAT_1) as archive:
        archive.extractall(tmp_path / "of", filter="data")
    path = tmp_path / "state"
    shutil.copytree(tmp_path / "of" / "plain", path)
    right = known(path)
    with crashers(tmp_path) as process:
        k = 0
        while True:
            k += 1 if LONG else random.Random(k).choice([3, 17, 29])
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(tmp_path / "of" / "plain", path)
            code, _ = attempt(process, "migrate", error, k)
            if code == DONE:
                break
            check(path, right, 5, {})
            with Store.open(path) as store:
                assert {p.name for p in path.iterdir()} == {"commits", "relations", "programs", "lock", "evermat.json"}
                assert store.latest.number == 5


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("name", [MARK, COMMITS, RELATIONS])
def test_a_migration_that_is_decided_but_not_durable(tmp_path: Path, name: str, error: int) -> None:
    """The disk fails as soon as the mark of the state, or one of its folders, has its new name: the state is of the new format."""
    with tarfile.open(FORMAT_1) as archive:
        archive.extractall(tmp_path / "of", filter="data")
    path = tmp_path / "of" / "plain"
    right, decided = known(path), False

    def fail(operation: str, changed: Path) -> None:
        nonlocal decided
        if decided and operation not in {"unlink", "rmdir"}:
            raise OSError(error, os.strerror(error))
        decided = decided or (operation, changed) == ("rename", path / name)

    disk.watch(fail)
    try:
        with pytest.raises(ResourceError):
            Store.open_to_write(path)
    finally:
        disk.watch(None)
    assert decided
    check(path, right, 5, {})


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["commits", "compact", "vacuum", "relations", "migrate"])
def test_every_operation_of_a_recovery(original: Path, tmp_path: Path, scenario: str) -> None:
    """What a crash left is undone by a writer, or by its first commits, and these are stopped at each of their operations."""
    if scenario == "migrate":
        with tarfile.open(FORMAT_1) as archive:
            archive.extractall(tmp_path / "of", filter="data")
        original = tmp_path / "of" / "plain"
    path, left = tmp_path / "state", tmp_path / "left"
    right = known(original)
    chance, errors = random.Random(scenario), itertools.cycle(ERRORS)
    steps = itertools.cycle(["recover"] if scenario == "migrate" else ["recover", "commits"])
    longest, stopped = 0, 0
    with crashers(tmp_path) as process:
        for first in itertools.count(4, 5 if LONG else 101):
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(original, path)
            code, said = attempt(process, scenario, "kill", first)
            if code == DONE:
                break
            shutil.rmtree(left, ignore_errors=True)
            path.rename(left)
            step = next(steps)
            every = itertools.count(1, 1 if step == "recover" else 7)
            for k in every if LONG else [1, chance.randint(2, 9), chance.randint(2, 30)]:
                shutil.rmtree(path, ignore_errors=True)
                shutil.copytree(left, path)
                code, more = attempt(process, step, next(errors), k)
                check(path, right, max([*said, *more], default=0), between(right, {}, path))
                if code == DONE:
                    break
                stopped, longest = stopped + 1, max(longest, k)
    assert stopped
    print(f"{scenario}: {stopped} recoveries stopped, the longest after {longest} operations")


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["commits", "vacuum", "relations"])
def test_recoveries_that_crash_again_and_again(original: Path, tmp_path: Path, scenario: str) -> None:
    path = tmp_path / "state"
    right = known(original)
    chance = random.Random(scenario)
    steps = [scenario] if scenario == "relations" else [scenario, "commits"]
    with crashers(tmp_path) as process:
        shutil.copytree(original, path)
        attempt(process, scenario, "kill", 10**6)
        wanted = known(path)
        for _ in range(150 if LONG else 3):
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(original, path)
            acknowledged = 0
            for _ in range(4):
                k = chance.randrange(1, 60)
                _, said = attempt(process, chance.choice(steps), chance.choice(ERRORS), k)
                acknowledged = max([acknowledged, *said])
            check(path, {n: f for n, f in right.items() if n in known(path)}, acknowledged, between(right, {}, path))
    assert wanted


CALLS = "openat,write,pwrite64,fsync,rename,unlink,mkdir,rmdir"
TRACES = 40  # calls of each step that are stopped


def traced(log: Path, path: Path, scenario: str, *inject: str) -> subprocess.CompletedProcess[str]:
    """Runs a scenario on a state, with its system calls in a log."""
    script = f"from tests.store.crasher import *; small(); SCENARIOS[{scenario!r}](Path({str(path)!r}), print)"
    command = ["strace", "-f", "-o", str(log), "-e", f"trace={CALLS}", *inject, sys.executable, "-c", script]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@LASTING
@pytest.mark.slow
@pytest.mark.parametrize("inject", ["signal=KILL", "error=ENOSPC", "error=EIO"])
@pytest.mark.parametrize("scenario", [name for name in crasher.SCENARIOS if name != "recover"])
def test_strace(original: Path, tmp_path: Path, scenario: str, inject: str) -> None:
    """The same by the system itself, which reaches whatever writes."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    if scenario == "migrate":
        with tarfile.open(FORMAT_1) as archive:
            archive.extractall(tmp_path / "of", filter="data")
        original = tmp_path / "of" / "plain"
    path, log = tmp_path / "state", tmp_path / "log"
    right = {} if scenario == "first" else known(original)

    def begin() -> None:
        shutil.rmtree(path, ignore_errors=True)
        if scenario != "first":
            shutil.copytree(original, path)

    begin()
    assert traced(log, path, scenario).returncode == 0
    lines = log.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if f"{path.parent}/" in line)
    step = max(1, (len(lines) - first) // TRACES)
    stopped = Counter[str]()
    for k in range(first + 1, len(lines), step):
        begin()
        done = traced(log, path, scenario, "-e", f"inject={CALLS}:{inject}:when={k}")
        said = [int(word) for word in done.stdout.split() if word.isdigit()]
        stopped["killed" if done.returncode < 0 else "refused" if done.returncode else "done"] += 1
        if path.exists():
            check(path, right, max(said, default=0), between(right, {}, path))
        else:
            assert (scenario, said) == ("first", [])
    print(f"{scenario} {inject}: every {step}th of {len(lines) - first} calls: {dict(stopped)}")
    assert stopped["killed"] + stopped["refused"] > 2


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
        begun = time.monotonic()
        seen = set()
        while (passed := time.monotonic() - begun) < (60 if LONG else 3) or (len(seen) < 2 and passed < 120):
            try:
                seen.add(check_busy(path))
            except StateError as error:  # only a reader that is slower than five versions may miss one
                assert error.problems[0].kind is VERSION_NOT_KEPT, str(error)
        assert writer.poll() is None, writer.stderr.read().decode()
    assert len(seen) > 1


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
            assert seen_by_others(path, "edge") == wanted
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
