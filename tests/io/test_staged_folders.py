"""Folders that others fill: published together with files, undone together, and removed after a crash."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evermat.core import DataError, ResourceError, remove_leftovers
from evermat.io.atomic_outputs import Outputs
from evermat.io.staged_folders import FolderMode, remove_abandoned


def filled(**files: str) -> Callable[[Path], None]:
    """What fills a folder with files; `a__b` is the file `b` in the folder `a`."""

    def fill(folder: Path) -> None:
        for name, text in files.items():
            path = folder / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return fill


def everything(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("replace", {"r/new": "2", "r/a=1/x": "3", "f": "4"}),
        ("extend", {"r/old": "0", "r/new": "2", "r/a=1/y": "1", "r/a=1/x": "3", "f": "4"}),
    ],
)
def test_published_with_files(tmp_path: Path, mode: FolderMode, expected: dict[str, str]) -> None:
    filled(old="0", new="1", **{"a=1__y": "1"})(tmp_path / "r")
    before = everything(tmp_path)
    with Outputs() as outputs:
        outputs.fill_folder(tmp_path / "r", "r", mode, filled(new="2", **{"a=1__x": "3"}))
        outputs.write_file(tmp_path / "f", b"4")
        assert {name: text for name, text in everything(tmp_path).items() if not name.startswith(".")} == before
        outputs.commit()
    assert everything(tmp_path) == expected and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("mode", ["create", "replace", "extend"])
def test_a_new_folder(tmp_path: Path, mode: FolderMode) -> None:
    with Outputs() as outputs:
        outputs.fill_folder(tmp_path / "a" / "r", "r", mode, filled(x="1"))
        outputs.commit()
    assert everything(tmp_path) == {"a/r/x": "1"} and len(list((tmp_path / "a").iterdir())) == 1


def test_a_file_and_a_link_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("a file")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with Outputs() as outputs:
        outputs.fill_folder(tmp_path / "r", "r", "replace", filled(x="1"))
        outputs.fill_folder(tmp_path / "link", "s", "replace", filled(y="2"))
        outputs.commit()
    assert (tmp_path / "link").is_symlink() and everything(tmp_path / "real") == {"y": "2"}
    assert everything(tmp_path / "r") == {"x": "1"}


@pytest.mark.parametrize("mode", ["replace", "extend"])
def test_nothing_is_published_if_a_file_cannot_be(tmp_path: Path, mode: FolderMode) -> None:
    filled(old="0", new="1", **{"a=1__y": "1"})(tmp_path / "r")
    before = everything(tmp_path)
    with Outputs() as outputs:
        outputs.fill_folder(tmp_path / "r", "r", mode, filled(new="2", **{"a=2__x": "3"}))
        outputs.fill_folder(tmp_path / "s", "s", "create", filled(x="1"))
        outputs.write_file(tmp_path / "f", b"4")
        next(tmp_path.glob(".evermat-*.part")).unlink()  # so that it cannot be renamed
        with pytest.raises(ResourceError, match="E600"):
            outputs.commit()
    assert everything(tmp_path) == before and [path.name for path in tmp_path.iterdir()] == ["r"]
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == ["a=1", "new", "old"]


def test_a_target_that_appears_meanwhile_stays(tmp_path: Path) -> None:
    with Outputs() as outputs:
        outputs.fill_folder(tmp_path / "r", "r", "create", filled(x="1"))
        filled(other="0")(tmp_path / "r")
        with pytest.raises(ResourceError, match=r"cannot write `.*/r`: it has appeared meanwhile"):
            outputs.commit()
    assert everything(tmp_path) == {"r/other": "0"}


def test_nothing_stays_of_an_error(tmp_path: Path) -> None:
    def fails(folder: Path) -> None:
        filled(x="1")(folder)
        raise ValueError(folder)

    with pytest.raises(ValueError, match="rows"), Outputs() as outputs:
        outputs.fill_folder(tmp_path / "a" / "r", "r", "replace", fails)
    assert list(tmp_path.iterdir()) == []


def test_one_target_twice(tmp_path: Path) -> None:
    for other in ("r", "r/s", "."):
        with Outputs() as outputs:
            outputs.fill_folder(tmp_path / "q" / "r", "r", "replace", filled(x="1"))
            with pytest.raises(DataError, match="E325"):
                outputs.fill_folder(tmp_path / "q" / other, "s", "replace", filled(x="1"))
            with pytest.raises(DataError, match="E325"):
                outputs.write_file(tmp_path / "q" / other, b"")
    with Outputs() as outputs:
        outputs.write_file(tmp_path / "q" / "r", b"")
        with pytest.raises(DataError, match="E325"):
            outputs.fill_folder(tmp_path / "q", "s", "replace", filled(x="1"))


def test_what_is_neither_a_file_nor_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="it is neither a file nor a folder"), Outputs() as outputs:
        outputs.fill_folder(Path("/dev/null"), "r", "replace", filled(x="1"))


CRASH = """
import os, sys
from pathlib import Path
from evermat.io.staged_folders import StagedFolder
target = Path(sys.argv[1]) / "r"
staged = StagedFolder(target, target, "replace", "r")
staged.rows.mkdir()
(staged.rows / "x").write_text("1")
if sys.argv[2] == "committing":
    target.rename(staged._old)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("when", ["writing", "committing"])
def test_after_a_crash(tmp_path: Path, when: str) -> None:
    filled(old="0")(tmp_path / "r")
    done = subprocess.run([sys.executable, "-c", CRASH, str(tmp_path), when], check=False)
    assert done.returncode == -9 and len(list(tmp_path.glob(".evermat-*.staged"))) == 1
    remove_abandoned(tmp_path)
    assert everything(tmp_path) == {"r/old": "0"}
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_folders_of_others_stay(tmp_path: Path) -> None:
    """Those of a process that lives, of another machine, and one that is only being made."""
    (tmp_path / ".evermat-1-new.staged").mkdir()
    filled(lock='{"host": "elsewhere", "target": "r"}')(tmp_path / ".evermat-1-far.staged")
    with Outputs() as outputs:
        outputs.fill_folder(tmp_path / "r", "r", "create", filled(x="1"))
        names = {path.name for path in tmp_path.iterdir()}
        remove_abandoned(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == names and len(names) == 3
        outputs.commit()
    assert everything(tmp_path / "r") == {"x": "1"}


def test_a_process_that_gives_up_removes_its_folders(tmp_path: Path) -> None:
    with Outputs() as outputs:
        outputs.fill_folder(tmp_path / "r", "r", "create", filled(x="1"))
        remove_leftovers()
        assert list(tmp_path.iterdir()) == []
