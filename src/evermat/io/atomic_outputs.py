"""Writes relations so that no half-written output is ever seen.

Everything is first written beside its target under a hidden name; only when all of it is there, `commit` renames
it and prints what goes to standard output. On any error, Ctrl-C included, the hidden files are removed.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self, TypeVar, cast

import pyarrow as pa

from evermat.core import (
    DataError,
    Problem,
    ResourceError,
    awaiting_reader,
    check_output,
    check_stop,
    forget_leftover,
    make_folder,
    open_output,
    register_leftover,
    replace_output,
    reported,
    standard_output,
    this_process,
    uninterrupted,
    watched_each,
)
from evermat.core import error_catalogue as errors
from evermat.io.error_report import fail
from evermat.io.formats.registry import ENDINGS, TEXT
from evermat.io.locate import FileRef, file_ref
from evermat.io.sort import sorted_batches
from evermat.io.staged_folders import FolderMode, StagedFolder, published, remove_abandoned
from evermat.language import Column, Io, Relation, Type

if TYPE_CHECKING:
    from evermat.io.rdf.writer import Written

_T = TypeVar("_T")
STDOUT = Path("<stdout>")
_ATTEMPTS = 100  # to make a folder and a file in it
_UNTOUCHED = "no output file was changed"


def printsize(name: str, count: int) -> str:
    """The line that tells the size of a relation."""
    return f"{name}\t{count}"


@dataclass(frozen=True, slots=True)
class _Staged:
    """A complete file that waits for its name; a device or pipe is not replaced but filled."""

    relation: str
    shown: Path
    target: Path
    temporary: Path
    special: bool


class Outputs:
    """The outputs of one run, all or nothing.

    >>> with Outputs() as out:      # doctest: +SKIP
    ...     out.write(table, io, folder)
    ...     out.commit()
    """

    def __init__(self) -> None:
        self._staged: dict[Path, _Staged] = {}
        self._staged_folders: dict[Path, StagedFolder] = {}
        self._temporary: list[Path] = []
        self._folders: list[Path] = []
        self._printed: list[bytes] = []
        self._process = this_process()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Removes what was not given a name, and folders that were made for it and are still empty; a forked child leaves it alone."""
        if self._process.is_parent:
            return
        with uninterrupted():
            for temporary in self._temporary:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
                forget_leftover(temporary)
            for staged in self._staged_folders.values():
                staged.close()
            for folder in sorted(self._folders, key=lambda f: -len(f.parts)):
                with suppress(OSError):
                    folder.rmdir()
                forget_leftover(folder)
            for waiting in (self._temporary, self._folders, self._staged, self._staged_folders, self._printed):
                waiting.clear()

    def write(self, facts: pa.Table | Iterable[pa.RecordBatch], io: Io, folder: Path) -> int:
        """Prepares the output of a relation; nothing is seen of it before `commit`.

        A table is sorted; batches are written as they come, one at a time.

        Returns:
            How many facts are left out, for the file is RDF and they are not.
        """
        batches = watched_each(sorted_batches(facts, io.relation) if isinstance(facts, pa.Table) else facts, every=1)
        if io.medium == "stdout":
            self.print(_for_stdout(batches, io))
            return 0
        ref = file_ref(Path(folder, io.path or f"{io.relation.name}.csv"))
        if problem := ref.format.refusal(ref, io.relation, output=True):
            raise DataError(problem)
        return self.fill(ref, io.relation.name, lambda sink: ref.format.write(sink, io, batches, ref.path)) or 0

    def write_graph(
        self, ref: FileRef | Path, triples: pa.Table | Iterable[pa.RecordBatch | pa.Table], name: str = "triples"
    ) -> Written:
        """Prepares an RDF file; `name` is what it holds: two things are not written to one file.

        Triples have columns `s`, `p` and `o`, perhaps `g` for formats with graphs, of terms in their N-Triples form. A table
        is sorted; batches, or several tables, are written as they come.

        Raises:
            DataError: the name is not that of an RDF file.
        """
        if isinstance(ref, Path):
            ref = file_ref(ref)
        if not ref.is_rdf:
            why = "its name is not that of an RDF file"
            endings = ", ".join(ending for ending, form in ENDINGS.items() if form.triples)
            raise fail(errors.RDF_OUTPUT, path=ref.path, why=why, rule=f"RDF files end in {endings}")
        if isinstance(triples, pa.Table):
            columns = (Column(column, Type.TERM, "term") for column in triples.column_names)
            triples = sorted_batches(triples, Relation(name, tuple(columns)))
        from evermat.io.rdf.writer import write_graph  # noqa: PLC0415

        return self.fill(ref, name, lambda sink: write_graph(sink, watched_each(triples, every=1), ref.syntax))

    def write_file(self, path: Path, content: bytes) -> None:
        self.fill(FileRef(path, TEXT, gzip=False), str(path), lambda sink: sink.write(content))

    def fill(self, ref: FileRef, name: str, write: Callable[[BinaryIO], _T]) -> _T:
        """Prepares a file by calling `write` with what is to become of it; `name` is what it holds."""
        check_output(ref.path)
        target = Path(os.path.realpath(ref.path))  # what a link points at is replaced, not the link
        self._check_alone(target, ref.path, name)
        before = self._staged.get(target)
        if before is not None and before.relation != name:
            raise fail(errors.SAME_FILE, path=ref.path, first=before.relation, second=name)
        with _failing(ref.path, _UNTOUCHED):
            special = target.exists() and not target.is_file()
            if target.is_dir():
                raise IsADirectoryError(None, "it is a folder")
            home = Path(tempfile.gettempdir()) if special else target.parent
            temporary = home / f".evermat-{os.getpid()}-{os.urandom(6).hex()}.part"
            with self._create(temporary) as file, _compressed(file, ref) as sink:
                written = write(sink)
            if target.is_file():
                shutil.copymode(target, temporary)
        self._staged[target] = _Staged(name, ref.path, target, temporary, special)
        return written

    def fill_folder(self, path: Path, name: str, mode: FolderMode, write: Callable[[Path], _T]) -> _T:
        """Prepares a folder by calling `write` with the one, which does not exist yet, whose contents replace or extend it.

        What killed processes have left behind beside it is removed.
        """
        check_output(path)
        target = Path(os.path.realpath(path))
        self._check_alone(target, path, name, folder=True)
        with _failing(path, _UNTOUCHED):
            if target.exists() and not target.is_dir() and not target.is_file():
                raise OSError(None, "it is neither a file nor a folder")
            self._make_folder(target.parent)
            remove_abandoned(target.parent)
            staged = StagedFolder(target, path, mode, name)
        self._staged_folders[target] = staged
        return write(staged.rows)

    def _check_alone(self, target: Path, shown: Path, name: str, *, folder: bool = False) -> None:
        """Raises a `DataError` if a target is in a folder that is another output, or has another output in it."""
        for other, staged in [*self._staged_folders.items(), *(self._staged.items() if folder else ())]:
            if other == target or other in target.parents or target in other.parents:
                raise fail(errors.SAME_FILE, path=shown, first=staged.relation, second=name)

    def print_size(self, name: str, count: int) -> None:
        self.print(f"{printsize(name, count)}\n".encode())

    def print(self, text: bytes) -> None:
        """Prepares some text for standard output."""
        self._printed.append(text)

    def commit(self, then: Callable[[], None] = lambda: None) -> None:
        """Gives all files their names, calls `then`, and prints what goes to standard output, in the order of the calls."""
        check_stop()
        waits = any(staged.special for staged in self._staged.values())  # for the reader of a pipe, perhaps for ever
        rest = "all output files were written" if self._staged or self._staged_folders else ""
        with nullcontext() if waits else uninterrupted(), self._publishing():
            self._replace()
        self._staged.clear()
        self._folders.clear()
        then()
        if self._printed:
            with reported(STDOUT, rest):
                stream = standard_output()
                for part in self._printed:
                    stream.write(part)
                stream.flush()
        self._printed.clear()

    @contextmanager
    def _publishing(self) -> Iterator[None]:
        """Publishes folders for the block; none if it or one of them fails."""
        with ExitStack() as stack:
            for path, staged in self._staged_folders.items():
                with _failing(path, _UNTOUCHED):
                    stack.enter_context(published(staged))
            yield

    def _replace(self) -> None:
        for changed, staged in enumerate(self._staged.values()):
            rest = f"{changed} of {len(self._staged)} output files were already replaced" if changed else _UNTOUCHED
            with _failing(staged.shown, rest):
                if staged.special:
                    with (
                        awaiting_reader(),
                        staged.temporary.open("rb") as source,
                        open_output(staged.target, "wb") as sink,
                    ):
                        shutil.copyfileobj(source, sink)
                else:
                    replace_output(staged.temporary, staged.target)
        for path in (*self._temporary, *self._folders):
            forget_leftover(path)

    def _create(self, temporary: Path) -> BinaryIO:
        """A new file, and its folder. Outputs of another thread that made the folder, and failed, may remove it before the file is there."""
        self._temporary.append(temporary)
        register_leftover(temporary)
        for _ in range(_ATTEMPTS - 1):
            # Also if it vanishes after `mkdir` has found it there, and before `mkdir` looks whether it is a folder.
            with suppress(FileNotFoundError, FileExistsError):
                self._make_folder(temporary.parent)
                return open_output(temporary, "xb")
        self._make_folder(temporary.parent)
        return open_output(temporary, "xb")

    def _make_folder(self, folder: Path) -> None:
        with suppress(FileNotFoundError):
            if not stat.S_ISDIR(folder.stat().st_mode):  # one look: others may remove it meanwhile
                raise NotADirectoryError(None, "its folder is a file")
        missing = [part for part in (folder, *folder.parents) if not part.exists()]
        self._folders += missing
        for part in missing[::-1]:
            register_leftover(part)
        make_folder(folder)


@contextmanager
def _failing(path: Path, rest: str) -> Iterator[None]:
    """Turns what the system says about a file into an error of ours."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise ResourceError(Problem(errors.CANNOT_WRITE, {"path": path, "why": why, "rest": rest})) from error


@contextmanager
def _compressed(file: BinaryIO, ref: FileRef) -> Iterator[BinaryIO]:
    """The file, or what compresses into it; neither name nor time is stored, so that equal facts give equal files."""
    if not ref.gzip:
        yield file
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as stream:
        yield cast(BinaryIO, stream)


def _for_stdout(batches: Iterable[pa.RecordBatch], io: Io) -> bytes:
    """A relation as Soufflé prints it: its name, its columns and its facts between rulers."""
    from evermat.io.formats.csv_writer import write_rows  # noqa: PLC0415

    sink = BytesIO()
    relation = io.relation
    columns = "\t".join(column.name for column in relation.columns)
    sink.write(f"---------------\n{relation.name}\n{columns}\n===============\n".encode())
    write_rows(sink, replace(io, headers=True), batches, STDOUT)
    sink.write(b"===============\n")
    return sink.getvalue()
