"""Which files an `.input` or `.output` means, and in which format.

An `.input` may mean several files: a folder means the files in it, a pattern those that it matches. Names that begin
with `.` or `_` are not meant unless the pattern says so: programs put marks and checksums of their own beside the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from evermat.core import DataError, Problem, check_input, is_sandboxed, is_uri, local_path, refuse_input, scheme_of
from evermat.core import error_catalogue as errors
from evermat.io.error_report import fail
from evermat.io.formats.registry import ENDINGS, TEXT, FileFormat
from evermat.language import Io

_WILD = "*?["
_HIDDEN = (".", "_")


class FileRef(NamedTuple):
    """A file, its format, and whether it is compressed."""

    path: Path
    format: FileFormat
    gzip: bool

    @property
    def syntax(self) -> str:
        """What the name says of the syntax: `nt`, `nq`, `ttl`, `trig`, `jsonld` or `rdf` (RDF/XML) if the format is RDF."""
        return self.format.endings.get(Path(self.path.name.lower().removesuffix(".gz")).suffix, "")

    @property
    def is_rdf(self) -> bool:
        return self.format.triples


def is_remote(location: str | Path) -> bool:
    """Whether only Spark can read it: a URI."""
    return "://" in str(location)


def local_input(location: str, what: str) -> str:
    """The path that a `file:` URI names, of which `what` is read; all else as it is. In a sandbox no URI becomes a path.

    Raises:
        ArgumentError: it names a file of another machine.
    """
    if is_sandboxed() or scheme_of(location) != "file":
        return location
    return str(local_path(what, "a file", location, "give a path, or a URI such as `file:///folder`"))


def file_ref(path: Path) -> FileRef:
    """A file with the format that its name says.

    Only the endings of the formats, and `.gz` after those that can be compressed, say anything; all other files are
    delimiter-separated text. Upper and lower case are the same.
    """
    name = Path(path.name.lower())
    gzip = name.suffix == ".gz"
    form = ENDINGS.get(Path(name.stem).suffix if gzip else name.suffix, TEXT)
    return FileRef(path, form if form.compressible or not gzip else TEXT, gzip)


def input_files(io: Io, folder: Path) -> list[FileRef]:
    """All files that an `.input` means, in the order of their names; there is at least one.

    They need not be readable; a path without a pattern that is not a folder need not even exist.

    Raises:
        DataError: no file is meant, or one that cannot hold the facts of the relation, whatever is in it.
    """
    what = f"relation `{io.relation.name}` is"
    written = Path(io.path or f"{io.relation.name}.facts")
    try:
        found = [folder / written]
        if any(character in str(written) for character in _WILD):
            found = sorted(_matches(folder / written.anchor, written.parts[bool(written.anchor) :]))
            if not found:
                raise fail(errors.NO_FILE, "no name matches this pattern", path=folder / written, what=what)
        for each in found:
            check_input(each)
        paths = [path for each in found for path in (files_of(each, what) if each.is_dir() else [each])]
    except OSError as error:
        why = error.strerror or str(error)
        raise fail(errors.CANNOT_READ, path=error.filename or folder / written, what=what, why=why) from error
    refs = [file_ref(path) for path in paths]
    problems: dict[str, Problem] = {}
    for ref in refs:  # where the columns are wrong for all files alike, it is said once
        if problem := ref.format.refusal(ref, io.relation):
            problems.setdefault(problem.details.get("why") or problem.message, problem)
    if problems:
        raise DataError(problems.values())
    return refs


def check_source(io: Io, folder: Path) -> None:
    """Raises a `SandboxError` if an `.input` means what a sandbox does not allow; asks nothing about files elsewhere."""
    if not is_sandboxed():
        return
    if io.path is not None and is_uri(io.path):
        check_input(io.path)
    elif io.medium == "file":
        with suppress(DataError):  # it is raised when files are read
            for ref in input_files(io, folder):
                check_input(ref.path)
    else:
        what = {"stdin": "standard input", "table": "a table of Spark", "jdbc": "a database", "spark": "read by Spark"}
        options = dict(io.options)
        refuse_input(options.get("name") or options.get("path") or io.medium, f"it is {what[io.medium]}")


def files_of(folder: Path, what: str) -> list[Path]:
    """The files of a folder, in the order of their names; there is at least one. A folder `x.parquet` has only such.

    Folders in it are refused, for what is in them would be missed; hidden ones do not count.
    """
    form = file_ref(folder).format
    endings = tuple(form.endings) if form.folders else ("",)
    files = []
    for path in sorted(path for path in folder.iterdir() if not path.name.startswith(_HIDDEN)):
        if not path.is_dir():
            if path.name.endswith(endings):
                files.append(path)
        else:
            part = "it looks like a part of a partitioned table; " * ("=" in path.name)
            raise fail(errors.IS_FOLDER, path=path, why=f"{part}only the files of one folder are read")
    if not files:
        hint = f"the folder has no files that end in `{endings[0]}`"
        if not form.folders:
            hint = "the folder has no files; those whose names begin with `.` or `_` do not count"
        raise fail(errors.NO_FILE, hint, path=folder / f"*{endings[0]}", what=what)
    return files


def _matches(folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """What there is below a folder with these names, which may be patterns; an existing name is not a pattern."""
    if not parts:
        yield folder
        return
    name, *rest = parts
    check_input(folder)
    if (folder / name).exists():
        yield from _matches(folder / name, tuple(rest))
    elif any(character in name for character in _WILD) and folder.is_dir():
        hidden = name.startswith(_HIDDEN)
        for path in folder.iterdir():
            if fnmatchcase(path.name, name) and (hidden or not path.name.startswith(_HIDDEN)):
                yield from _matches(path, tuple(rest))
