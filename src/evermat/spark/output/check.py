"""What can be known of targets before anything is written: formats, what exists, columns, connections."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from evermat.core import DataError, Problem, ResourceError
from evermat.core import error_catalogue as errors
from evermat.io import name_list
from evermat.language import Type
from evermat.spark.jdbc import driver_help
from evermat.spark.jobs import essential, silenced
from evermat.spark.output.target import BUILT_IN, LINES, Kind, Target, file_of
from evermat.spark.scratch_files import for_reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_T = TypeVar("_T")
UNTOUCHED = "nothing was written"
_SELF_DESCRIBING = ("parquet", "orc", "avro")
_SPARK_TYPES = {Type.NUMBER: "bigint", Type.UNSIGNED: "decimal(20,0)", Type.FLOAT: "double"}
_TEXT = re.compile(r"string( collate .*)?|varchar\(\d+\)|char\(\d+\)", re.IGNORECASE)
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_NAME_PARTS = re.compile(r"`(?:[^`]|``)*`|[^.`]+")
# A query that every database of a kind can answer, by how its URL begins; of others it is not known.
_QUERIES = {
    **dict.fromkeys(("derby", "db2"), "SELECT 1 AS one FROM SYSIBM.SYSDUMMY1"),
    "oracle": "SELECT 1 AS one FROM DUAL",
    **dict.fromkeys(("postgresql", "mysql", "mariadb", "sqlserver", "sqlite", "h2", "snowflake"), "SELECT 1 AS one"),
}


def asked(target: Target, ask: Callable[[], _T], rest: str = UNTOUCHED) -> _T:
    """What Spark answers; an exception of its becomes an error that names the target."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        with silenced():
            return ask()
    except (PySparkException, Py4JError) as error:
        raise not_written(
            target, error, rest
        ) from None  # the stack trace of Java could reveal secrets, and does not help


def not_written(target: Target, error: BaseException, rest: str) -> ResourceError:
    """The error for a target that Spark could not write."""
    why = essential(error)
    for secret in target.secrets:
        why = why.replace(secret, "…")
    help_ = driver_help(str(error)) if target.kind is Kind.DATABASE else ""
    details = {"path": target.shown, "why": why.rstrip("."), "rest": rest}
    return ResourceError(Problem(errors.CANNOT_WRITE, details, help=help_))


def check_target(spark: SparkSession, target: Target) -> bool:
    """Checks all that can be known of a target before its facts are.

    Returns:
        Whether to leave it alone: it exists, and its mode is `ignore`.

    Raises:
        DataError: it exists and must not, has other columns than the relation, or cannot hold its facts.
        ResourceError: it cannot be reached.
    """
    _check_format(spark, target)
    _check_columns(spark, target)
    exists, schema = _FOUND[target.kind](spark, target)
    if not exists or target.mode == "overwrite":
        return False
    if target.mode == "error":
        raise DataError(Problem(errors.OUTPUT_EXISTS, {"target": target.shown}))
    if target.mode == "append" and schema is not None:
        _compare(target, schema, spark)
    return target.mode == "ignore"


def refuse(target: Target, why: str) -> NoReturn:
    """Raises the error that a target cannot take the facts."""
    raise DataError(
        Problem(errors.NO_OUTPUT, {"name": target.relation.name, "target": target.shown, "why": why.rstrip(".")})
    )


def _check_format(spark: SparkSession, target: Target) -> None:
    """Refuses a format that Spark does not know, and what a format cannot hold."""
    if target.io.medium == "file":
        file = file_of(target.io)
        if file.is_rdf:
            refuse(target, "RDF is written to files of this machine only")
        if target.format != LINES and not target.relation.columns:
            refuse(target, "what Spark writes as Parquet has at least one column")
        return
    if target.kind is Kind.DATABASE or not target.format or target.format.lower() in BUILT_IN:
        return
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        with silenced():
            _ = spark.read.format(target.format).load("file:///none").schema
    except (PySparkException, Py4JError) as error:
        if re.search("DATA_SOURCE_NOT_FOUND|Failed to find the data source|Failed to find data source", str(error)):
            refuse(
                target, f"Spark has no format `{target.format}`; give it the jars of one by the setting `spark.jars`"
            )


def _check_columns(spark: SparkSession, target: Target) -> None:
    names = [column.name for column in target.relation.columns]
    if target.format == "text":
        kept = [column for column in target.relation.columns if column.name not in target.partition_by]
        if len(kept) != 1 or kept[0].type in _SPARK_TYPES:
            refuse(target, "the format `text` holds one column of type `symbol` or `term`")
    if target.format != LINES and spark.conf.get("spark.sql.caseSensitive", "false") != "true":
        for name in names:
            if same := [other for other in names if other != name and other.lower() == name.lower()]:
                refuse(target, f"Spark does not distinguish the columns `{name}` and `{same[0]}`")


# --- what exists ---------------------------------------------------------------------------------------------


def _folder(spark: SparkSession, target: Target) -> tuple[bool, StructType | None]:
    path = Path(target.location)
    try:
        home = next(folder for folder in path.parents if os.path.lexists(folder))
        if not home.is_dir():
            raise NotADirectoryError(None, f"`{home}` is not a folder")
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(None, f"`{home}` is not writable")
        if not os.path.lexists(path):
            return False, None
        if target.mode == "append" and not path.is_dir():
            refuse(target, "it is not a folder")
    except OSError as error:
        details = {"path": path, "why": error.strerror or str(error), "rest": UNTOUCHED}
        raise ResourceError(Problem(errors.CANNOT_WRITE, details)) from None
    return True, _described(spark, target)


def _described(spark: SparkSession, target: Target) -> StructType | None:
    """The columns of existing files, if the format tells them and facts are to be added."""
    if target.mode != "append" or target.format not in _SELF_DESCRIBING:
        return None
    from pyspark.errors import AnalysisException  # noqa: PLC0415

    def read() -> StructType | None:
        try:
            schema: StructType = (
                spark.read.format(target.format).options(**target.options).load(for_reading(target.uri)).schema
            )
        except AnalysisException as error:
            if "UNABLE_TO_INFER_SCHEMA" in str(error):  # there are no files
                return None
            raise
        return schema

    return asked(target, read)


def _uri(spark: SparkSession, target: Target) -> tuple[bool, StructType | None]:
    if target.io.medium == "spark" and target.format not in (*BUILT_IN, "avro"):
        return False, None  # only the format knows what is there, and checks the mode itself
    from pyspark.errors import AnalysisException  # noqa: PLC0415

    def exists() -> bool:
        try:
            _ = (
                spark.read.format("binaryFile")
                .option("recursiveFileLookup", "true")
                .load(for_reading(target.uri))
                .schema
            )
        except AnalysisException as error:
            if "PATH_NOT_FOUND" in str(error):
                return False
            raise
        return True

    found = asked(target, exists)
    return found, _described(spark, target) if found else None


def _table(spark: SparkSession, target: Target) -> tuple[bool, StructType | None]:
    name = str(target.location)
    if asked(target, lambda: spark.catalog.tableExists(name)):
        found = asked(target, lambda: (spark.catalog.getTable(name), spark.table(name).schema))
        if found[0].tableType in ("VIEW", "TEMPORARY"):
            refuse(target, "it is a view")
        return True, found[1]
    parts = _NAME_PARTS.findall(name)
    if len(parts) > 1 and not asked(target, lambda: spark.catalog.databaseExists(".".join(parts[:-1]))):
        refuse(target, f"there is no database `{'.'.join(parts[:-1])}`")
    return False, None


def check_lasting(spark: SparkSession, target: Target) -> None:
    """Refuses a table in the catalogue of a session that ends with its command, if that catalogue is only in memory."""
    if target.kind is not Kind.TABLE or spark.conf.get("spark.sql.catalogImplementation") != "in-memory":
        return
    names = [part.strip("`") for part in _NAME_PARTS.findall(str(target.location))]
    others = (names[0] if len(names) > 1 else "", asked(target, spark.catalog.currentCatalog), "spark_catalog")
    if not any(name and spark.conf.get(f"spark.sql.catalog.{name}", None) for name in others):
        refuse(target, "Spark's catalogue is in memory, and would be lost with this command; see `--conf`")


def _database(spark: SparkSession, target: Target) -> tuple[bool, StructType | None]:
    """A table that cannot be read may not exist, or its database may not answer: another query decides that."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    read = spark.read.format("jdbc")
    connection = {key: value for key, value in target.options.items() if key.lower() != "dbtable"}
    try:
        with silenced():
            return True, read.options(**target.options).load().schema
    except (PySparkException, Py4JError) as error:
        if driver_help(str(error)):
            raise not_written(target, error, UNTOUCHED) from None
    query = _QUERIES.get(str(target.location).removeprefix("jdbc:").partition(":")[0].lower())
    if query is not None:
        reader = spark.read.format("jdbc").options(**connection).option("query", query)
        asked(target, lambda: reader.load().schema)
    return False, None


_FOUND: Mapping[Kind, Callable[[Any, Target], tuple[bool, Any]]] = {
    Kind.FOLDER: _folder,
    Kind.URI: _uri,
    Kind.TABLE: _table,
    Kind.DATABASE: _database,
}


# --- appending -----------------------------------------------------------------------------------------------


def _compare(target: Target, schema: StructType, spark: SparkSession) -> None:
    """Refuses to append facts to other columns than theirs. Types of databases are their own, and those of folders' names are guessed."""
    relation = target.relation
    exact = target.kind is not Kind.DATABASE and spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    key = str if exact else str.lower
    there = {key(field.name): field for field in schema.fields}
    shown = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema.fields)
    wrong = []
    for column in relation.columns:
        field = there.pop(key(column.name), None)
        if field is None:
            wrong.append(f"it has no column `{column.name}`")
        elif target.kind is not Kind.DATABASE and column.name not in target.partition_by:
            found, own = field.dataType.simpleString(), _SPARK_TYPES.get(column.type, "string")
            if not _takes(found, own):
                wrong.append(f"`{column.name}` is {found}, and not {own}")
    if there and target.kind is not Kind.DATABASE:
        wrong.append(f"it has further columns: {name_list([field.name for field in there.values()])}")
    if not wrong and target.kind in (Kind.FOLDER, Kind.URI):
        wrong += _partition_fault(target, spark)
    if wrong:
        details = {
            "name": relation.name,
            "target": target.shown,
            "why": "; ".join(wrong),
            "found": f"its columns: {shown}",
        }
        raise DataError(Problem(errors.OUTPUT_COLUMNS, details))


def _takes(found: str, own: str) -> bool:
    """Whether a column of a type of Spark holds all values of a type of ours."""
    if own == "string":
        return _TEXT.fullmatch(found) is not None
    if own == _SPARK_TYPES[Type.UNSIGNED] and (decimal := _DECIMAL.fullmatch(found)):
        return int(decimal[1]) - int(decimal[2]) >= 20
    return found == own


def _partition_fault(target: Target, spark: SparkSession) -> list[str]:
    """What is wrong with how existing files are partitioned, which shows in the names of their folders."""
    files = spark.read.format(target.format).options(**target.options).load(for_reading(target.uri)).inputFiles()
    if not files:
        return []
    own, found = _levels(target.uri.rstrip("/").split("/")), _levels(files[0].split("/")[:-1])
    return [] if found == [*own, *target.partition_by] else ["its files are partitioned by other columns"]


def _levels(folders: list[str]) -> list[str]:
    """The columns of the partitions in which a path ends, which begin the names of its last folders."""
    count = next((i for i, folder in enumerate(reversed(folders)) if "=" not in folder), len(folders))
    return [folder.partition("=")[0] for folder in folders[len(folders) - count :]]
