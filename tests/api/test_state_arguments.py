"""Arguments of everything about state directories that cannot be: the error names the argument, and nothing has happened."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evermat
from tests.support.states import PROGRAM, facts_at, saved, tree

AGE = "a number of versions, or an age such as '30d'"
PAIR = "a tuple of two texts, the name of a stream and its position"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state of three versions, which no test may change."""
    path = tmp_path_factory.mktemp("arguments") / "state"
    with saved(path) as m:
        m.update({"edge": [(7, 8)]})
        m.update({"edge": [(8, 9)]})
    return path


def message(error: BaseException) -> str:
    return re.sub(r"^error\[E\d+\]: ", "", str(error))


def refused(call: Callable[[], object], kind: type[BaseException]) -> str:
    """What is said; the error is of exactly this kind."""
    with pytest.raises(kind) as raised:
        call()
    assert type(raised.value) is kind
    return message(raised.value)


def made() -> evermat.Materialisation:
    return evermat.Program.parse(PROGRAM).materialise({"edge": [(1, 2)]})


NUMBERS: dict[str, Callable[[Any, Any], object]] = {
    "version of open": lambda path, value: evermat.open(path, value),
    "version of query": lambda path, value: evermat.query(path, "path(x, y)", value),
    "first of changes": lambda path, value: evermat.changes(path, value),
    "last of changes": lambda path, value: evermat.changes(path, 1, value),
}
KEEPS: dict[str, Callable[[Any, Any], object]] = {
    "open": lambda path, value: evermat.open(path, keep=value),
    "vacuum": lambda path, value: evermat.vacuum(path, value),
    "save": lambda path, value: made().save(path, keep=value),
    "save a new one": lambda path, value: made().save(Path(path).parent / "new", keep=value),
    "save to its own": lambda path, value: evermat.open(path).save(path, keep=value),
}
PATHS: dict[str, Callable[[Any], object]] = {
    "open": evermat.open,
    "open to write": lambda path: evermat.open(path, write=True),
    "query": lambda path: evermat.query(path, "path(x, y)"),
    "versions": evermat.versions,
    "changes": evermat.changes,
    "vacuum": lambda path: evermat.vacuum(path, 1),
    "migrate": evermat.migrate,
    "save": lambda path: made().save(path),
}


@pytest.mark.parametrize("value", ["3", "", b"3", 3.0, float("nan"), True, False, [3], (1, 2), object(), 1j])
@pytest.mark.parametrize("where", NUMBERS)
def test_versions_of_another_type(path: Path, where: str, value: Any) -> None:
    name = where.split(maxsplit=1)[0]
    assert refused(lambda: NUMBERS[where](path, value), TypeError) == (
        f"`{name}` is of type {type(value).__name__}: use an integer"
    )


@pytest.mark.parametrize("value", [0, -1, 4, 2**31, 2**63, 2**64, 10**30, -(10**30), np.int64(-5)])
@pytest.mark.parametrize("where", NUMBERS)
def test_versions_that_do_not_exist(path: Path, where: str, value: int) -> None:
    if where == "last of changes" and value < 1:
        assert refused(lambda: evermat.changes(path, 1, value), evermat.ArgumentError) == (
            f"`last` is {value}: use a version that is not before `first`, which is 1"
        )
        return
    assert refused(lambda: NUMBERS[where](path, value), evermat.StateError) == (
        f"there is no version {value}: the state has versions 1 to 3"
    )


@pytest.mark.parametrize("value", [None, 1, np.int64(1), np.uint8(1)])
@pytest.mark.parametrize("where", NUMBERS)
def test_versions_that_can_be(path: Path, where: str, value: Any) -> None:
    assert NUMBERS[where](path, value) is not None


@pytest.mark.parametrize("value", [1.5, 2.0, float("inf"), True, False, b"3", [3], {"a": 1}, object()])
@pytest.mark.parametrize("where", KEEPS)
def test_keep_of_another_type(path: Path, where: str, value: Any) -> None:
    before = tree(path.parent)
    assert (
        refused(lambda: KEEPS[where](path, value), TypeError) == f"`keep` is of type {type(value).__name__}: use {AGE}"
    )
    assert tree(path.parent) == before


def test_a_vacuum_of_nothing_in_particular(path: Path) -> None:
    assert refused(lambda: evermat.vacuum(path, None), TypeError) == f"`keep` is of type NoneType: use {AGE}"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", [0, -1, -(10**30), "0", "00", "0d", "-3", "3x", "d", "1.5", "soon", "", " ", "3 d", "٣", "1e3", "None"]
)
@pytest.mark.parametrize("where", KEEPS)
def test_keep_that_cannot_be(path: Path, where: str, value: Any) -> None:
    before = tree(path.parent)
    assert refused(lambda: KEEPS[where](path, value), evermat.ArgumentError) == (
        f"`{value}` does not say how many versions to keep\n"
        "  = note: write a number from 1 on, or an age: `12h`, `30d`, `4w`"
    )
    assert tree(path.parent) == before


@pytest.mark.parametrize(
    "value", [1, "1", " 2 ", np.int64(2), 2**31, 2**64, 10**30, "9" * 40, "9" * 40 + "w", "1s", "0001d"]
)
def test_keep_that_can_be(path: Path, tmp_path: Path, value: Any) -> None:
    facts = facts_at(path)
    path = shutil.copytree(path, tmp_path / "state")
    for where in ("open", "save to its own", "save a new one"):
        KEEPS[where](path, value)
    assert facts_at(path) == facts
    with evermat.open(path, keep=value) as m:
        m.update({"edge": [(9, 10)]})
    few = str(value).strip() in {"1", "2"}
    assert len(evermat.versions(path)) == (int(value) if few else 4)
    evermat.vacuum(path, value)
    assert facts_at(path)["edge"] == facts["edge"] | {(9, 10)}


def test_keep_of_the_own_state_holds_from_the_next_version_on(path: Path, tmp_path: Path) -> None:
    path = shutil.copytree(path, tmp_path / "state")
    with evermat.open(path) as m:
        m.save(path, keep=2)
        assert len(evermat.versions(path)) == 3
        m.update({"edge": [(9, 10)]})
    assert [version.number for version in evermat.versions(path)] == [3, 4]


@pytest.mark.parametrize("value", [None, 3, True, b"state", ["state"], 1.5])
@pytest.mark.parametrize("where", PATHS)
def test_paths_of_another_type(where: str, value: Any) -> None:
    assert refused(lambda: PATHS[where](value), TypeError) == f"`path` is of type {type(value).__name__}: use a path"


def test_texts_of_another_type(path: Path) -> None:
    for value in (None, 3, b"path(x, y)", Path("x")):
        call: Any = evermat.query
        assert refused(lambda v=value, c=call: c(path, v), TypeError) == (
            f"`text` is of type {type(value).__name__}: use a str"
        )


@pytest.mark.parametrize("value", ["", "Keep", "resett", None, 3, True, ["x"]])
def test_positions_that_cannot_be(path: Path, value: Any) -> None:
    hints = {"Keep": "; did you mean `keep`?", "resett": "; did you mean `reset`?"}
    before = tree(path.parent)
    for target in (path, path.parent / "new"):
        assert refused(lambda t=target: made().save(t, positions=value), evermat.ArgumentError) == (
            f"positions {value!r} are not known: use 'refuse', 'keep' or 'reset'"
            + (hints.get(value, "") if isinstance(value, str) else "")
        )
    assert tree(path.parent) == before


@pytest.mark.parametrize(
    "value", ["ab", ("a",), ("a", "b", "c"), ("a", 3), (None, "b"), ["a", "b"], 3, True, {"a": "b"}]
)
def test_a_position_that_cannot_be(path: Path, value: Any) -> None:
    before = tree(path)
    with evermat.open(path) as m:
        assert refused(lambda: m.update({"edge": [(5, 5)]}, position=value), TypeError) == (
            f"`position` is {value!r}: use {PAIR}"
        )
        assert (m.version, m.positions, tree(path)) == (3, {}, before)
    assert refused(lambda: made().update({"edge": [(5, 5)]}, position=value), TypeError).endswith(PAIR)


def test_changes_backwards(path: Path) -> None:
    assert refused(lambda: evermat.changes(path, 3, 2), evermat.ArgumentError) == (
        "`last` is 2: use a version that is not before `first`, which is 3"
    )
