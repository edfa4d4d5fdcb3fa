"""Where an output goes that Spark writes, and how: what the program says, resolved against the output directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from evermat.core import local_path, scheme_of, without_secrets
from evermat.io import FileRef, file_ref
from evermat.language import Io, Relation
from evermat.spark.jdbc import database_of

#: formats whose data are plain files in a folder, so that the folder can be renamed
FOLDER_FORMATS = ("parquet", "orc", "csv", "json", "text", "xml", "avro")
#: those that every Spark has
BUILT_IN = FOLDER_FORMATS[:-1]
LINES = "lines"  # what `.output r` writes below a URI: the same text as files of this machine have


class Kind(Enum):
    """What a target is; see `Target`."""

    FOLDER = "a folder"
    URI = "a URI"
    TABLE = "a table"
    DATABASE = "a database"


@dataclass(frozen=True)
class Target:
    """Where Spark writes the facts of an `.output`.

    A FOLDER is one of this machine, in a format of plain files: it is staged, and gets its name when everything is written. All others are
    written at the end, one after the other, as their storage does it: a URI, or a path in a format of which only Spark knows the files, a TABLE
    of the catalogue, and a table of a DATABASE.

    Attributes:
        location: The path of a FOLDER; otherwise the URI or name as Spark takes it.
        shown: The location for messages; it contains no secrets.
        options: Those of Spark's writer.
        secrets: What messages of Spark must not repeat.
    """

    io: Io
    kind: Kind
    location: Path | str
    shown: str
    format: str = ""
    mode: str = "error"
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()

    @property
    def relation(self) -> Relation:
        return self.io.relation

    @property
    def uri(self) -> str:
        """The location of files, for Spark."""
        return f"file://{self.location}" if isinstance(self.location, Path) else self.location


def target_of(io: Io, directory: Path | str) -> Target | None:
    """The target of an output that Spark writes; None if the driver writes it. The output directory is a path, or a URI."""
    if io.medium == "stdout" or (io.medium == "file" and (isinstance(directory, Path) or is_absolute(io))):
        return None
    options = dict(io.options)
    mode = options.pop("mode", "error")
    columns = tuple(name.strip() for name in options.pop("partitionBy", "").split(",") if name.strip())
    if io.medium == "table":
        name = options.pop("name")
        return Target(io, Kind.TABLE, name, name, options.pop("format", ""), mode, columns, options)
    if io.medium == "jdbc":
        shown, secrets = database_of(options)
        shown = f"{options['dbtable']} at {shown}"
        return Target(io, Kind.DATABASE, options["url"], shown, "jdbc", mode, (), options, secrets)
    if io.medium == "file":
        location = _below(directory, io.path, f"{io.relation.name}.csv")
        file = file_of(io)
        form = "parquet" if file.format.random_access else LINES
        compression = {"compression": "gzip"} if file.gzip else {}
        return Target(io, Kind.URI, location, without_secrets(str(location)), form, "overwrite", (), compression)
    form = options.pop("format", "parquet").strip()
    location = _below(directory, options.pop("path", None), f"{io.relation.name}.{form}")
    if form.lower() in FOLDER_FORMATS:
        form = form.lower()
        kind = Kind.FOLDER if isinstance(location, Path) else Kind.URI
    else:
        kind = Kind.URI
    shown = str(location) if isinstance(location, Path) else without_secrets(location)
    if kind is Kind.URI and isinstance(location, Path):
        location = f"file://{os.path.abspath(location)}"  # noqa: PTH100 - a path with links stays as it is
    return Target(io, kind, location, shown, form, mode, columns, options)


def file_of(io: Io) -> FileRef:
    """What the name of an ordinary output says of its format."""
    return file_ref(Path(io.path or f"{io.relation.name}.csv"))


def is_absolute(io: Io) -> bool:
    """Whether an ordinary output has a path of its own, outside of the output directory."""
    return io.path is not None and io.path.startswith("/")


def _below(directory: Path | str, given: str | None, default: str) -> Path | str:
    """Where an output is: a path that is absolute, a URI, or below the output directory. The default may look like a URI, and is none."""
    path = given or default
    scheme = None if given is None else scheme_of(path)
    if scheme is not None and scheme != "file":
        return path
    if scheme == "file":
        return local_path("an output", "path", path)
    if isinstance(directory, Path) or path.startswith("/"):
        return Path(os.path.abspath(Path(directory, path)))  # noqa: PTH100 - links are followed when it is written
    return f"{directory.rstrip('/')}/{path}"
