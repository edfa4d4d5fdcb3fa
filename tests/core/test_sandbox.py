"""A sandbox does not follow links that appear after a path was checked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evermat.core import (
    SandboxError,
    Source,
    Span,
    check_input,
    check_output,
    make_folder,
    named_at,
    open_input,
    open_output,
    replace_output,
    sandbox,
    sandboxed,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("in/a/b", "outside/b"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "in/a/b/x").write_text("ours")
    (tmp_path / "outside/b/x").write_text("secret")
    return tmp_path


def contents(file: Path) -> bytes:
    with open_input(file) as stream:
        return stream.read()


def after_the_check(monkeypatch: pytest.MonkeyPatch, change: Callable[[], Any]) -> None:
    """Has something happen between the check of a path and its use."""
    located = sandbox._located

    def late(path: Any, what: str) -> Any:
        found = located(path, what)
        change()
        return found

    monkeypatch.setattr(sandbox, "_located", late)


def replaced_by_link(path: Path, target: Path) -> Callable[[], None]:
    def replace() -> None:
        if not path.is_symlink():
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            path.symlink_to(target)

    return replace


@pytest.mark.parametrize(("part", "target"), [("a", "outside"), ("a/b", "outside/b"), ("a/b/x", "outside/b/x")])
def test_a_link_that_is_made_after_the_check_of_an_input(
    part: str, target: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "in/a/b/x"
    with sandboxed([folder / "in"]):
        assert contents(file) == b"ours"
        after_the_check(monkeypatch, replaced_by_link(folder / "in" / part, folder / target))
        with pytest.raises(SandboxError, match="be read: a part of it has become a symbolic link"):
            open_input(file)


ACTIONS: list[Callable[[Path], Any]] = [
    lambda folder: open_output(folder / "y", "xb"),
    lambda folder: open_output(folder / "y", "wb"),
    lambda folder: open_output(folder / "y", "ab"),
    lambda folder: replace_output(folder / "x", folder / "y"),
    lambda folder: make_folder(folder / "new/deep"),
]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(("part", "target"), [("a", "outside"), ("a/b", "outside/b")])
def test_a_link_that_is_made_after_the_check_of_an_output(
    action: Callable[[Path], Any], part: str, target: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sandboxed(writes=[folder / "in"]):
        after_the_check(monkeypatch, replaced_by_link(folder / "in" / part, folder / target))
        with pytest.raises(SandboxError, match="be written: a part of it has become a symbolic link"):
            action(folder / "in/a/b")
    assert [path.name for path in (folder / "outside/b").iterdir()] == ["x"]


def test_a_file_that_becomes_a_link(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sandboxed(writes=[folder / "in"]):
        after_the_check(monkeypatch, replaced_by_link(folder / "in/a/b/x", folder / "outside/b/x"))
        with pytest.raises(SandboxError):
            open_output(folder / "in/a/b/x", "wb")
    assert (folder / "outside/b/x").read_text() == "secret"


def test_a_sandbox_in_another_only_takes_away(folder: Path) -> None:
    inside, file = folder / "in", folder / "in/a/b/x"
    with sandboxed([inside], [inside]):
        with sandboxed([folder]):
            check_input(file)
            with pytest.raises(SandboxError):
                check_input(folder / "outside/b/x")
            with pytest.raises(SandboxError):
                check_output(file)
        with sandboxed([inside / "a"], on=False):
            check_output(file)
        with sandboxed([file]):  # one file
            assert contents(file) == b"ours"
            with pytest.raises(SandboxError):
                check_input(inside / "a")
    check_output(folder / "outside")


def test_neighbours_whose_names_begin_alike(folder: Path) -> None:
    with sandboxed([folder / "out"]), pytest.raises(SandboxError):
        check_input(folder / "outside/b/x")
    with sandboxed(["/"]):
        assert contents(folder / "in/a/b/x") == b"ours"


def test_errors_of_the_system_name_the_path(folder: Path) -> None:
    with sandboxed([folder / "in"], [folder / "in"]):
        with pytest.raises(FileNotFoundError) as missing:
            open_input(folder / "in/none/x")
        assert missing.value.filename == str(folder / "in/none/x")
        with pytest.raises(IsADirectoryError):
            open_input(folder / "in/a")
        with pytest.raises(NotADirectoryError):
            open_input(folder / "in/a/b/x/y")
        with pytest.raises(FileExistsError):
            open_output(folder / "in/a/b/x", "xb")
        with pytest.raises(SandboxError, match="it is not a path"):
            check_input("a\0b")


def test_descriptors_are_closed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sandboxed([folder / "in"], [folder / "in"]):
        os.mkfifo(folder / "in/pipe")
        before = len(list(Path("/dev/fd").iterdir()))
        for _ in range(3):
            for path in ("in/none/x", "in/a", "in/pipe", "in/a/b/x/y"):
                with pytest.raises((OSError, SandboxError)):
                    open_input(folder / path)
            open_input(folder / "in/a/b/x").close()
            make_folder(folder / "in/a/new")
        assert len(list(Path("/dev/fd").iterdir())) == before


def test_a_place_is_kept() -> None:
    def source(name: str) -> Source:
        return Source(name, "text")

    with (
        pytest.raises(SandboxError) as raised,
        sandboxed(),
        named_at(source("outer"), None),
        named_at(source("inner"), Span(0, 1)),
    ):
        check_input("x")
    assert "--> inner:1:1" in str(raised.value)
    assert "in this sandbox, no files are read" in str(raised.value)
