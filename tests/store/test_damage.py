"""Damage is reported and named; it never gives a wrong result."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evermat.core.error_catalogue import STATE_DAMAGED
from evermat.core.errors import StateError
from evermat.store import Keep, Store
from evermat.store.delta_log import checkpoint_file, entry_file
from evermat.store.delta_table import TableWriter
from tests.store.models import PAIRS, SCHEMAS, entry, everything, plus, small_state
from tests.support.environment import LONG


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    path = tmp_path_factory.mktemp("damage") / "state"
    return path, small_state(path)


def files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file())


def outcome(path: Path, right) -> StateError | None:
    """Reads everything: the error, or nothing if all is right."""
    try:
        with Store.open(path) as store:
            found = everything(store)
    except StateError as error:
        return error
    assert found == right
    return None


def spots(size: int) -> list[int]:
    """Places all over a file, its head and its footer among them."""
    return sorted({0, size // 7, size // 2, size - 60, size - 6, size - 1} & set(range(size)))


def needed(path: Path) -> set[Path]:
    """The files on which some version depends."""
    found = {path / "evermat.json"}
    with Store.open(path) as store:
        found |= {path / "programs" / row.program for row in store._commits.rows()}
        for log in (store._commits.log, *map(store._log, store._commits.pins.values())):
            unneeded = TableWriter(log.folder, log).unneeded(log.every, store._commits.base)
            found |= {log.folder / part.path for part in log.every if part not in unneeded}
            found |= {entry_file(log.folder, number) for number in range(log.base + 1, log.delta + 1)}
            if log.base >= 0:
                found.add(checkpoint_file(log.folder, log.base))
    return found


def vital_files(path: Path) -> set[Path]:
    """The files of `small_state` of which every byte counts: all but checks, the lock, and the changes that its compaction has merged."""
    kinds = {".parquet", ".json", ".dl"}
    every = {file for file in files(path) if file.suffix in kinds and file.name != "evermat.json"}
    merged = every - needed(path)
    assert sorted(file.relative_to(path).as_posix().rsplit("-", 4)[0] for file in merged) == [
        f"relations/edge/changes-0-{version}-{version}" for version in (1, 2, 3)
    ]
    return every - merged


@pytest.mark.slow
def test_flipped_bytes(state, tmp_path: Path):
    original, right = state
    path = tmp_path / "state"
    shutil.copytree(original, path)
    assert outcome(path, right) is None
    vital = vital_files(path)
    for file in files(path):
        raw = file.read_bytes()
        for spot in spots(len(raw)):
            file.write_bytes(raw[:spot] + bytes([raw[spot] ^ 1 << spot % 8]) + raw[spot + 1 :])
            error = outcome(path, right)
            assert file not in vital or error is not None, (file, spot)
            assert error is None or str(file) in str(error), (file, spot, str(error))
        file.write_bytes(raw)
    assert outcome(path, right) is None


@pytest.mark.slow
def test_all_over_small_files(state, tmp_path: Path):
    original, right = state
    path = tmp_path / "state"
    shutil.copytree(original, path)
    newest = max((path / "commits" / "_delta_log").iterdir())
    for file in (path / "evermat.json", newest, max((path / "relations" / "path" / "_delta_log").iterdir())):
        raw = file.read_bytes()
        for spot in range(0, len(raw), 1 if LONG else 5):
            file.write_bytes(raw[:spot] + bytes([raw[spot] ^ 2]) + raw[spot + 1 :])
            error = outcome(path, right)
            assert error is not None or file.name == "evermat.json"
            assert error is None or str(file) in str(error)
        file.write_bytes(raw)


@pytest.mark.slow
def test_truncated_and_missing_files(state, tmp_path: Path):
    original, right = state
    path = tmp_path / "state"
    shutil.copytree(original, path)
    vital = vital_files(path)
    for file in files(path):
        raw = file.read_bytes()
        for length in {0, len(raw) // 2, len(raw) - 1} if raw else set():
            file.write_bytes(raw[:length])
            error = outcome(path, right)
            assert file not in vital or error is not None, (file, length)
            assert error is None or str(file) in str(error), (file, length, str(error))
        file.unlink()
        error = outcome(path, right)
        assert file not in vital or error is not None, file
        assert error is None or str(file) in str(error), (file, str(error))
        file.write_bytes(raw)
    assert outcome(path, right) is None


def test_a_missing_folder(state, tmp_path: Path):
    original, right = state
    for name in ("commits/_delta_log", "relations/edge", "programs", "relations/path/_delta_log"):
        path = tmp_path / name / "state"
        shutil.copytree(original, path)
        shutil.rmtree(path / name)
        error = outcome(path, right)
        assert error is not None
        assert error.problems[0].kind is STATE_DAMAGED
        assert str(path / name) in str(error)


def test_a_writer_does_not_vouch_for_damage(state, tmp_path: Path):
    path = tmp_path / "state"
    shutil.copytree(state[0], path)
    file = min((path / "relations" / "path" / "_delta_log").glob("*2.json"))
    raw = file.read_bytes()
    file.write_bytes(raw.replace(b"WRITE", b"WRITF"))
    with Store.open(path) as store:
        store.lock()
        with pytest.raises(StateError, match="checksum") as raised:
            store.commit(entry(), {"path": plus(PAIRS, ("z", 9))}, SCHEMAS)
        assert str(file) in str(raised.value)
    file.write_bytes(raw)
    assert outcome(path, state[1]) is None


@pytest.mark.slow
def test_merged_files_and_checkpoints(tmp_path: Path, monkeypatch):
    """What is needed is checked; damage to what only waits to be deleted changes nothing."""
    monkeypatch.setattr("evermat.store.delta_table.FAN", 3)
    monkeypatch.setattr("evermat.store.delta_table.CHECKPOINT_EVERY", 4)
    monkeypatch.setattr("evermat.store.delta_table._SPREAD", 1)
    path = tmp_path / "state"
    small_state(path, 15)
    with Store.open(path) as store:
        store.lock()
        store.keep(Keep.of(6))
        for number in range(16, 30):
            store.commit(entry(program="// p\n"), {"path": plus(PAIRS, ("p", number))}, SCHEMAS)
        right = everything(store)
    assert sorted(right) == list(range(24, 30))
    vital = needed(path)
    assert {file.suffix for file in vital} == {".json", ".parquet", ".dl"}
    assert sum("checkpoint" in file.name for file in vital) >= 3
    assert sum("changes-0" not in file.name for file in vital) > 5
    for file in files(path):
        raw = file.read_bytes()
        for spot in spots(len(raw)):
            file.write_bytes(raw[:spot] + bytes([raw[spot] ^ 1 << spot % 8]) + raw[spot + 1 :])
            error = outcome(path, right)
            assert (error is not None) == (file in vital) or file.name == "evermat.json", (file, spot, str(error))
            assert error is None or str(file) in str(error), (file, spot, str(error))
        file.unlink()
        error = outcome(path, right)
        assert (error is not None) == (file in vital), (file, str(error))
        assert error is None or str(file) in str(error), (file, str(error))
        file.write_bytes(raw)
    assert outcome(path, right) is None
