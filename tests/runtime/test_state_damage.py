"""Damage is named and refused when a state is opened; it never gives wrong facts."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import evermat
from tests.support.states import PROGRAM, facts_at, refused, saved, tree
from tests.support.strategies import Facts
from tests.support.updates import facts_of

# Each of these matches some files; every version of the state needs all of them.
FILES = {
    "a relation's rows": "relations/path/*.parquet",
    "a relation's log": "relations/path/_delta_log/*.json",
    "rows of a relation that rewriting made": "relations/reach_1/*.parquet",
    "rows of commits": "commits/*.parquet",
    "the log of commits": "commits/_delta_log/*.json",
    "the program": "programs/*.dl",
}
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda raw: raw[: len(raw) // 2],
    "one byte less": lambda raw: raw[:-1],
    "empty": lambda _: b"",
    "a flipped bit at the start": lambda raw: bytes([raw[0] ^ 1]) + raw[1:],
    "a flipped bit in the middle": lambda raw: flipped(raw, len(raw) // 2),
    "a flipped bit near the end": lambda raw: flipped(raw, len(raw) - 3),
}


def flipped(raw: bytes, spot: int) -> bytes:
    return raw[:spot] + bytes([raw[spot] ^ 4]) + raw[spot + 1 :]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Facts]:
    """A state with three versions; its facts."""
    path = tmp_path_factory.mktemp("damage") / "state"
    with saved(path) as m:
        m.update({"edge": [(5, 0)]})
        m.update(delete={"edge": [(2, 3)]})
        return path, facts_of(m)


@pytest.fixture
def state(original: tuple[Path, Facts], tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(original[0], tmp_path / "state"))


def damaged(file: Path) -> str:
    return f"error[E503]: `{file}` is damaged: "


@pytest.mark.parametrize("what", FILES)
def test_damaged_files_are_named(original: tuple[Path, Facts], state: Path, what: str) -> None:
    files = sorted(state.glob(FILES[what]))
    assert files
    needed = 0
    for file in files:
        raw = file.read_bytes()
        for kind, damage in DAMAGE.items():
            file.write_bytes(damage(raw))
            try:
                found = facts_at(state)
            except evermat.StateError as error:
                needed += 1
                assert error.exit_code == 5
                assert str(error).startswith(damaged(file)), (file, kind)
                assert str(error).endswith("\n  = note: nothing was read from it")
            else:  # an older version may need it, this one does not
                assert "commits" in str(file) and file.suffix == ".parquet", (file, kind)
                assert found == original[1], (file, kind)
                assert str(file) in refused(lambda: evermat.versions(state))
        file.write_bytes(raw)
    assert needed >= len(DAMAGE)
    assert facts_at(state) == original[1]


@pytest.mark.parametrize("what", FILES)
def test_missing_files_are_named(state: Path, what: str) -> None:
    file = max(state.glob(FILES[what]))
    file.unlink()
    with pytest.raises(evermat.StateError) as raised:
        evermat.open(state)
    assert str(file) in str(raised.value)


def test_what_says_which_format_a_state_has_may_be_damaged_too(state: Path) -> None:
    mark = state / "evermat.json"
    for raw, why in ((b"{", "it is not JSON"), (b"[1]", "it does not say which format the state has")):
        mark.write_bytes(raw)
        assert refused(lambda: evermat.open(state)) == damaged(mark) + f"{why}\n  = note: nothing was read from it"
    mark.unlink()
    assert refused(lambda: evermat.open(state)) == damaged(mark) + "it is missing\n  = note: nothing was read from it"


def test_a_damaged_state_is_not_written_to(original: tuple[Path, Facts], state: Path) -> None:
    file = max(state.glob("relations/path/*.parquet"))
    raw = file.read_bytes()
    with evermat.open(state) as m:  # before the damage
        file.write_bytes(flipped(raw, 100))
        before = tree(state)
        other = evermat.Program.parse(PROGRAM).materialise({"edge": [(0, 0)]})
        assert refused(lambda: other.save(state)).startswith(damaged(file))
        assert tree(state) == before
        assert other.version is None
        file.write_bytes(raw)
        assert m.version == 3
        other.save(state)  # it did not stay locked
        other.close()
    assert facts_at(state, 3) == original[1]


def test_a_damaged_log_gets_no_new_version(original: tuple[Path, Facts], state: Path) -> None:
    file = max(state.glob("relations/path/_delta_log/*.json"))
    with evermat.open(state) as m:
        raw = file.read_bytes()
        with evermat.open(state, write=True):
            pass
        file.write_bytes(raw.replace(b"WRITE", b"WRITF"))
        m._versions._binding._store._logs.clear()  # as a process that has just begun
        assert refused(lambda: m.update({"edge": [(7, 7)]})).startswith(damaged(file))
        assert (facts_of(m), m.version) == (original[1], 3)
        file.write_bytes(raw)
        m.update({"edge": [(7, 7)]})
        assert m.version == 4
        assert facts_at(state) == facts_of(m)


def test_the_damage_of_one_version_leaves_the_others(original: tuple[Path, Facts], state: Path) -> None:
    (file,) = state.glob("relations/edge/changes-0-3-*.parquet")
    file.write_bytes(b"")
    assert refused(lambda: evermat.open(state)).startswith(damaged(file))
    assert refused(lambda: evermat.changes(state)).startswith(damaged(file))
    for number in (1, 2):
        assert facts_at(state, number) == facts_at(original[0], number)
    assert [v.number for v in evermat.versions(state)] == [1, 2, 3]
