"""Inputs that Spark's own readers read: tables of the catalogue, databases, and files in any format, at any URI that the session knows.

Of a table with more columns than the relation declares, only those are read that it names. `where` and `select` are SQL, which Spark pushes into the
scan where the format allows it. Nothing is pushed there because of how rules use a relation: a materialisation holds all facts that its input has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evermat.core import DataError, Problem, ProgramError, ResourceError, Source, scheme_of, without_secrets
from evermat.core import error_catalogue as errors
from evermat.io import column_text, is_remote
from evermat.language import Io, Relation
from evermat.spark.input.read_errors import analysed, is_malformed, reported
from evermat.spark.input.typed_text import FORMATS, TypedText, quoted
from evermat.spark.jdbc import database_of
from evermat.spark.jobs import essential, silenced

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MEDIA = ("table", "jdbc", "spark")

_OWN = ("format", "path", "schema", "select", "where")  # parameters that are not options of Spark's reader
_GLOB = re.compile(r"([\\*?\[\]{},])")  # special characters in a path that Spark reads
_SECRET = re.compile("password|secret|token|key|credential", re.IGNORECASE)
_PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class SparkSource:
    """What Spark reads for a relation: a frame, and its name in errors; `text` is there if records can be malformed."""

    frame: DataFrame
    relation: Relation
    name: str
    text: TypedText | None = None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Has jobs in the block that read it raise errors that say what can be done about them in the program."""
        try:
            with reported(self.name, f"relation `{self.relation.name}` is"):
                yield
        except DataError as error:
            raise DataError([self._with_help(problem) for problem in error.problems]) from None
        except ResourceError as error:
            if self.text is None or error.__cause__ is None or not is_malformed(error.__cause__):
                raise
            raise self.text.error() from None

    def _with_help(self, problem: Problem) -> Problem:
        if problem.kind not in (errors.SPARK_TYPE, errors.NULL_VALUE):
            return problem
        where = str(problem.details["where"])
        position = next(
            i for i in range(self.relation.arity) if where.endswith(column_text(self.relation, i))
        )  # the name of a row may stand before it
        by_name = {column.name for column in self.relation.columns} <= set(self.frame.columns)
        names = [column.name for column in self.relation.columns] if by_name else self.frame.columns
        column = _spelled(names[position])
        if problem.kind is errors.NULL_VALUE:
            instead = self._selected(names, position, f"coalesce({column}, …)")
            help_ = (
                f'leave such rows out by `where="{column} is not null"`, or give them a value by `select="{instead}"`'
            )
            return replace(problem, help=help_)
        if not (cast := problem.details.get("cast")):
            return problem
        return replace(problem, help=f'cast it: `select="{self._selected(names, position, cast.format(column))}"`')

    def _selected(self, names: Sequence[str], position: int, value: str) -> str:
        """The columns of the relation as `select` has them, with a value for one of them."""
        own = [_spelled(column.name) for column in self.relation.columns]
        plain = [_spelled(names[i]) if names[i] == c.name else f"{_spelled(names[i])} as {_spelled(c.name)}"
                 for i, c in enumerate(self.relation.columns)]  # fmt: skip
        plain[position] = f"{value} as {own[position]}"
        return ", ".join(plain)


@dataclass(frozen=True)
class Sources:
    """Prepares the inputs of a program that Spark reads; `folder` is where its paths begin."""

    spark: SparkSession
    program: Source
    folder: str

    def of(self, io: Io) -> SparkSource:
        """What an input reads; Spark has analysed it, and no rows are read yet.

        Raises:
            DataError: it does not exist, or cannot be read.
            ProgramError: `where` or `select` is not SQL over its columns.
        """
        what, options = f"relation `{io.relation.name}` is", dict(io.options)
        text = None
        if io.medium == "table":
            name = f"table `{options['name']}`"
            frame = table_frame(self.spark, options["name"], what)
        elif io.medium == "jdbc":
            name = "the database"
            given = {key: value for key, value in io.options if key not in _OWN}
            frame = jdbc_frame(self.spark, given, what)
        else:
            name = self._shown(io)
            frame, text = self._read(io, what)
        if "where" in options:
            if text is None:
                frame = self._valid(io, "where", lambda: frame.where(options["where"]))
            else:
                whole = text
                self._valid(io, "where", lambda: whole.where(options["where"]).frame)
                text = whole.where(options["where"])
        if text is not None:
            frame = text.checked()
        if "select" in options:
            frame = self._valid(io, "select", lambda: _selected(frame, options["select"]))
        return SparkSource(pruned(frame, io.relation), io.relation, name, text)

    def _read(self, io: Io, what: str) -> tuple[DataFrame, TypedText | None]:
        options = {key: value for key, value in io.options if key not in _OWN}
        own = {key: value for key, value in io.options if key in _OWN}
        paths = [_absolute(value, self.folder) for key, value in io.options if key == "path"]
        format_ = own["format"]
        reader: Callable[[Any], DataFrame] = (
            (lambda reader: reader.load(paths[0] if len(paths) == 1 else paths)) if paths else lambda r: r.load()
        )
        given = {key.lower() for key in options}
        secrets = [value for key, value in options.items() if _SECRET.search(key)]
        shown = self._shown(io)
        if format_.lower() in FORMATS:
            if io.relation.columns and _derives_schema(own, options):
                found: list[TypedText] = []

                def typed() -> DataFrame:
                    found.append(TypedText.of(self.spark, format_.lower(), options, reader, io.relation))
                    return found[-1].frame

                analysed(typed, shown, what, secrets)
                return found[-1].frame, found[-1]
            if "mode" not in given:
                options["mode"] = "FAILFAST"

        def load() -> DataFrame:
            made = self.spark.read.format(format_).options(**options)
            return reader(made.schema(own["schema"]) if "schema" in own else made)

        return analysed(load, shown, what, secrets), None

    def _shown(self, io: Io) -> str:
        paths = [without_secrets(_absolute(value, self.folder)) for key, value in io.options if key == "path"]
        return ", ".join(paths) or dict(io.options)["format"]

    def _valid(self, io: Io, name: str, made: Callable[[], DataFrame]) -> DataFrame:
        """The frame that a parameter in SQL makes."""
        from pyspark.errors import PySparkException  # noqa: PLC0415

        try:
            with silenced():
                frame = made()
                _ = frame.schema
        except PySparkException as error:
            details = {"name": name, "value": dict(io.options)[name], "why": essential(error)}
            raise ProgramError(Problem(errors.BAD_PARAMETER, details, self.program, io.span)) from None
        return frame


def _derives_schema(own: Mapping[str, str], options: Mapping[str, str]) -> bool:
    """Whether the columns of a text have the types of the relation: if nothing else says what types they have.

    `select` may mention fields of JSON and XML that the relation does not have.
    """
    given = {key.lower(): value.lower() for key, value in options.items()}
    selects = "select" in own and own["format"].lower() != "csv"
    return not (selects or "schema" in own or "mode" in given or given.get("inferschema") == "true")


def _selected(frame: DataFrame, columns: str) -> DataFrame:
    from pyspark.sql.functions import expr  # noqa: PLC0415

    return frame.select(expr(f"struct({columns})").alias("s")).select("s.*")


def pruned(frame: DataFrame, relation: Relation) -> DataFrame:
    """The columns of a relation, if the frame has all of them by their names, and others."""
    names, own = frame.columns, [column.name for column in relation.columns]
    if own and len(names) > len(own) and all(names.count(name) == 1 for name in own):
        return frame.select(*map(quoted, own))
    return frame


def _absolute(path: str, folder: str) -> str:
    """A path as Spark is to load it: one without a scheme that begins with a slash is in Spark's default file system."""
    if scheme_of(path) is not None or path.startswith("/"):
        return path
    if is_remote(folder):
        return f"{folder.rstrip('/')}/{path}"
    return "file://" + _GLOB.sub(r"\\\1", os.path.abspath(folder)) + "/" + path  # noqa: PTH100 - it may be missing


def _spelled(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quoted(name)


# --- tables and databases -----------------------------------------------------------------------------------


def table_frame(spark: SparkSession, name: str, what: str = "facts are") -> DataFrame:
    """A table or view of Spark, by its name in SQL; errors mention `what` is read from it: ``relation `edge` is``.

    Raises:
        DataError: there is none, or it cannot be read.
    """
    return analysed(lambda: spark.table(name), name, what)


def jdbc_frame(spark: SparkSession, options: Mapping[str, str], what: str = "facts are") -> DataFrame:
    """A table of a database, or a query to it, that Spark reads through JDBC with options such as `url`, `dbtable`, `driver` and `user`.

    Raises:
        DataError: there is no driver, no database or no table, or they refuse. It contains no passwords.
    """
    shown, secrets = database_of(options)
    return analysed(lambda: spark.read.format("jdbc").options(**options).load(), shown, what, secrets)
