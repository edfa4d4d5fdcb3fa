"""The sandbox: the one place that decides which files may be opened that programs, data and states of others name.

Everything that opens, lists or replaces a file whose name comes from outside of Evermat does it by these functions. Without a sandbox they are what the
standard library has. In one (see `sandboxed`) a path counts as what it is after all symbolic links are followed, and must then lie below a folder of
the sandbox. The file is opened from that folder on, name by name, and no link is followed on the way: one that was made after the check is
refused, too.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias, cast

from evermat.core import error_catalogue as errors
from evermat.core.errors import Problem, SandboxError
from evermat.core.source import Source, Span

AnyPath: TypeAlias = str | PathLike[str]
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/|.*://", re.DOTALL)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a pipe is refused, not waited for
_OUTPUT = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BUFFERING = {"rb": -1, "xb": -1, "wb": -1, "ab": 0}  # what is added to a file is there at once
_MODES = {"xb": os.O_EXCL, "wb": os.O_TRUNC, "ab": os.O_APPEND}
_IS_LINK = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}  # what systems say of a link that is not followed
_Mode: TypeAlias = Literal["xb", "wb", "ab"]


@dataclass(frozen=True, slots=True)
class _Sandbox:
    """Folders, and files, below which may be read and written; all of them without symbolic links."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]


#: all that hold here, the innermost last: each of them must allow what is done
_current: ContextVar[tuple[_Sandbox, ...]] = ContextVar("sandbox", default=())


@contextmanager
def sandboxed(reads: Iterable[AnyPath] = (), writes: Iterable[AnyPath] = (), *, on: bool = True) -> Iterator[None]:
    """Has the block read only below some folders, and write only below others; either may also be single files.

    A sandbox inside another can only take away. With `on` false the block is as free as without.

    Raises:
        SandboxError: one of them is a URI.
    """
    if not on:
        yield
        return
    box = _Sandbox(tuple(_root(path, "read") for path in reads), tuple(_root(path, "written") for path in writes))
    token = _current.set((*_current.get(), box))
    try:
        yield
    finally:
        _current.reset(token)


def is_uri(name: AnyPath) -> bool:
    """Whether a name is a URI rather than a path."""
    return _URI.match(os.fspath(name)) is not None


def is_sandboxed() -> bool:
    """Whether a sandbox holds here."""
    return bool(_current.get())


@contextmanager
def named_at(source: Source, span: Span | None) -> Iterator[None]:
    """Has errors of the sandbox in the block say where the file is named."""
    try:
        yield
    except SandboxError as error:
        raise error.at(source, span) from None


def refuse_input(what: str, why: str) -> None:
    """Raises a `SandboxError` in a sandbox, for something that is no file below its folders."""
    if is_sandboxed():
        raise _error(what, "read", why, "standard input, tables, databases and URIs are not read in a sandbox")


def refuse_output(what: str, why: str) -> None:
    """Raises a `SandboxError` in a sandbox, for something that is no file below its folders."""
    if is_sandboxed():
        raise _error(what, "written", why, "tables, databases, URIs and what Spark writes are not written in a sandbox")


def check_input(path: AnyPath) -> None:
    """Raises a `SandboxError` if a path must not be read, nor listed, nor asked whether it exists."""
    if is_sandboxed():
        _located(path, "read")


def check_output(path: AnyPath) -> None:
    """Raises a `SandboxError` if a path must not be written, or is something else than a file or a folder."""
    if not is_sandboxed():
        return
    root, parts = _located(path, "written")
    target = Path(root, *parts)
    if target.exists() and not target.is_file() and not target.is_dir():
        raise _error(path, "written", "it is neither a file nor a folder", _rule("written"))


def open_input(path: Path) -> BinaryIO:
    """A file, opened for reading."""
    if not is_sandboxed():
        return path.open("rb")
    with _opened_parent(path, "read") as (folder, name):
        return _regular(os.open(name, _FILE, dir_fd=folder), path, "read", "rb")


@contextmanager
def library_input(path: Path) -> Iterator[Path | BinaryIO]:
    """A file as libraries take it that open files themselves: its path, or in a sandbox the opened file."""
    if not is_sandboxed():
        yield path
        return
    with open_input(path) as file:
        yield file


def open_output(path: Path, mode: _Mode) -> BinaryIO:
    """A file, opened for writing."""
    if not is_sandboxed():
        return path.open(mode, buffering=_BUFFERING[mode])
    with _opened_parent(path, "written") as (folder, name):
        return _regular(os.open(name, _OUTPUT | _MODES[mode], 0o666, dir_fd=folder), path, "written", mode)


def replace_output(temporary: Path, target: Path) -> None:
    """Gives a file in the folder of `target` that name."""
    if not is_sandboxed():
        temporary.replace(target)
        return
    with _opened_parent(target, "written") as (folder, name):
        os.replace(temporary.name, name, src_dir_fd=folder, dst_dir_fd=folder)


def make_folder(folder: Path) -> None:
    """Makes a folder, and those above it, unless it exists."""
    if not is_sandboxed():
        folder.mkdir(parents=True, exist_ok=True)
        return
    root, parts = _located(folder, "written")
    Path(root).mkdir(parents=True, exist_ok=True)
    with _walked(folder, root, parts, "written", make=True):
        pass


def check_own_files(folder: Path) -> None:
    """Raises a `SandboxError` if a folder that Evermat wrote has anything but files and folders of its own, all the way down.

    Links of either kind would let a reader see, and a writer change, what is elsewhere.
    """
    if not is_sandboxed():
        return
    rule = "a state consists of files and folders of its own, without links"
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(place, name)  # noqa: PTH118 - many files
            found = os.lstat(path)
            if not stat.S_ISDIR(found.st_mode) and not (stat.S_ISREG(found.st_mode) and found.st_nlink == 1):
                why = "it is a symbolic link" if stat.S_ISLNK(found.st_mode) else "it is not a file of its own"
                raise _error(path, "read", why, rule)


# --- the decision ----------------------------------------------------------------------------------------------
def _root(path: AnyPath, what: str) -> str:
    if is_uri(path):
        raise _error(path, what, "it is a URI", "a sandbox is a folder of this machine")
    return os.path.realpath(path)


def _located(path: AnyPath, what: str) -> tuple[str, list[str]]:
    """The folder of the sandbox below which a path lies, and the names that lead there from it; raises a `SandboxError` if it lies below none."""
    text = os.fspath(path)
    if is_uri(text):
        raise _error(path, what, "it is a URI", _rule(what))
    try:
        real = os.path.realpath(text)
    except (OSError, ValueError):
        raise _error(path, what, "it is not a path", _rule(what)) from None
    found = []
    for box in _current.get():
        roots = box.reads if what == "read" else box.writes
        inside = [root for root in roots if _is_inside(real, [root])]
        if not inside:
            why = "a symbolic link leads elsewhere" if _leads_away(Path(text), roots) else "it lies elsewhere"
            raise _error(path, what, why, _rule(what))
        found += inside
    root = max(found, key=len)  # each of them lies below the others
    return root, list(Path(real).relative_to(root).parts)


def _is_inside(path: AnyPath, roots: Iterable[str]) -> bool:
    real = os.path.realpath(path)
    return any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in roots)


def _leads_away(path: Path, roots: Collection[str]) -> bool:
    """Whether there is a symbolic link in the folders that is a part of the path."""
    return any(part.is_symlink() and _is_inside(part.parent, roots) for part in (path, *path.parents))


@contextmanager
def _opened_parent(path: Path, what: str) -> Iterator[tuple[int, str]]:
    """The descriptor of the folder in which a file lies, and the name that the file has there."""
    root, parts = _located(path, what)
    if not parts:  # the file is itself what is allowed
        root, parts = os.path.split(root)[0], [os.path.basename(root)]  # noqa: PTH119
    with _walked(path, root, parts[:-1], what) as folder:
        try:
            yield folder, parts[-1]
        except OSError as error:
            if error.errno in _IS_LINK:
                raise _changed(path, what) from None
            raise _named(error, path) from None


@contextmanager
def _walked(path: Path, root: str, names: Iterable[str], what: str, *, make: bool = False) -> Iterator[int]:
    """The descriptor of a folder that is reached from another by names of which none is a link."""
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _named(error, path) from None
    try:
        for name in names:
            try:
                if make and not _exists(name, folder):
                    os.mkdir(name, dir_fd=folder)
                inner = os.open(name, _FOLDER, dir_fd=folder)
            except OSError as error:
                if error.errno in _IS_LINK and _is_link(name, folder):
                    raise _changed(path, what) from None
                raise _named(error, path) from None
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _is_link(name: str, folder: int) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _regular(descriptor: int, path: Path, what: str, mode: str) -> BinaryIO:
    """The opened file; anything but a file is refused, for devices and pipes lead elsewhere."""
    found = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(found) and not stat.S_ISDIR(found):
        os.close(descriptor)
        raise _error(path, what, "it is neither a file nor a folder", _rule(what))
    return cast(BinaryIO, open(path, mode, _BUFFERING[mode], opener=lambda *_: descriptor))


def _named(error: OSError, path: Path) -> OSError:
    """The same error, about the path instead of a name in a folder."""
    return OSError(error.errno, error.strerror, str(path))


def _rule(what: str) -> str:
    """The sentence that names the folders."""
    roots = [root for box in _current.get()[-1:] for root in (box.reads if what == "read" else box.writes)]
    shown = " and ".join(f"`{root}`" for root in roots)
    return f"in a sandbox, files are {what} only below {shown}" if roots else f"in this sandbox, no files are {what}"


def _changed(path: Path, what: str) -> SandboxError:
    return _error(path, what, "a part of it has become a symbolic link", _rule(what))


def _error(path: AnyPath, what: str, why: str, rule: str) -> SandboxError:
    return SandboxError(Problem(errors.OUTSIDE, {"path": os.fspath(path), "what": what, "why": why, "rule": rule}))
