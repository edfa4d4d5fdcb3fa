"""CSV, JSON and XML as Spark reads them, in the types that a relation declares: no record that does not fit is left out or becomes NULL.

Spark's reader keeps the text of a malformed record in a column of its own. A filter over it, which Spark cannot skip, ends the job; only then
another job looks for the first such records, and the files that they are in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from evermat.core import DataError, Problem, without_secrets
from evermat.core import error_catalogue as errors
from evermat.io import shown
from evermat.language import Relation, Type
from evermat.spark.input.read_errors import MALFORMED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FORMATS = ("csv", "json", "xml")

_RECORD, _PATH = "evermat_record", "evermat_path"
_SHOWN = 10  # malformed records that an error shows
_LONGEST = 200  # characters of a record that it shows
_TYPES = {Type.NUMBER: "bigint", Type.FLOAT: "double"}  # of others the text: Spark would round a number to a decimal
_UNSIGNED = r"^\+?0*[0-9]{1,20}$"


@dataclass(frozen=True)
class TypedText:
    """Text in the types of a relation: a frame with columns for the record, if it is malformed, and its file."""

    frame: DataFrame
    relation: Relation
    names: tuple[str, ...]
    format: str

    @staticmethod
    def of(
        spark: SparkSession,
        format_: str,
        options: Mapping[str, str],
        load: Callable[[Any], DataFrame],
        relation: Relation,
    ) -> TypedText:
        """The text that `load` has a reader load."""
        from pyspark.sql.functions import coalesce, col, concat_ws, lit, when  # noqa: PLC0415

        given = {key.lower(): value.lower() for key, value in options.items()}
        reader = spark.read.format(format_).options(**options)
        header = format_ == "csv" and given.get("header") == "true"
        found = load(reader.option("inferSchema", "false")).columns if header else []
        types = _types(found, relation)
        schema = ", ".join(f"{quoted(name)} {_TYPES.get(type_, 'string')}" for name, type_ in types)
        reader = spark.read.format(format_).options(**options).schema(f"{schema}, {_RECORD} string")
        reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=_RECORD)
        if format_ == "csv":  # fields of columns that are not needed count, too, and so does each file's header
            reader = reader.options(columnPruning="false").options(**({"enforceSchema": "false"} if header else {}))
        raw = load(reader)
        expected = dict(types)
        names = tuple(name for name in raw.columns if name != _RECORD)
        texts = [col(quoted(name)).cast("string") for name in names]
        wrong = lit(False)
        for name in names:
            if expected.get(name) is Type.UNSIGNED:
                wrong = wrong | ~coalesce(col(quoted(name)).rlike(_UNSIGNED), lit(True))
        # Spark reads no file only for the texts of malformed records, so that another column is mentioned.
        record = when(col(_RECORD).isNotNull(), coalesce(col(_RECORD), texts[0]))
        record = record.when(wrong, concat_ws(",", *texts))
        columns = [
            _unsigned(col(quoted(name)), name) if expected.get(name) is Type.UNSIGNED else col(quoted(name))
            for name in names
        ]
        frame = raw.select(*columns, record.alias(_RECORD), col("_metadata.file_path").alias(_PATH))
        return TypedText(frame, relation, names, format_)

    def where(self, condition: str) -> TypedText:
        """The rows for which a condition in SQL holds, and all malformed ones."""
        from pyspark.sql.functions import col, expr  # noqa: PLC0415

        kept = self.frame.where(expr(condition) | col(_RECORD).isNotNull())
        return TypedText(kept, self.relation, self.names, self.format)

    def checked(self) -> DataFrame:
        """The rows, of which a malformed one ends the job that reads it."""
        from pyspark.sql.functions import col, lit, raise_error, when  # noqa: PLC0415

        fits = when(col(_RECORD).isNotNull(), raise_error(lit(MALFORMED)).cast("boolean")).otherwise(lit(True))
        return self.frame.where(fits).select(*(col(quoted(name)) for name in self.names))

    def error(self) -> DataError:
        """The error for the first malformed records; runs a job."""
        from pyspark.sql.functions import col  # noqa: PLC0415

        found = self.frame.where(col(_RECORD).isNotNull()).limit(_SHOWN).collect()
        columns = ", ".join(f"{column.name}:{column.declared}" for column in self.relation.columns)
        why = f"as {self.format} it is read with the columns of `{self.relation.name}`: {columns}"
        details = [
            {"path": without_secrets(unquote(row[_PATH])), "record": shown(row[_RECORD], _LONGEST), "why": why}
            for row in found
        ]
        return DataError([Problem(errors.MALFORMED_RECORD, one) for one in details])


def _types(found: Sequence[str], relation: Relation) -> list[tuple[str, Type]]:
    """Columns with their types: those of a header, matched as columns of tables are, or else those of the relation."""
    declared = {column.name: column.type for column in relation.columns}
    if not found:
        return list(declared.items())
    if declared.keys() <= set(found) or len(found) != len(declared):
        return [(name, declared.get(name, Type.SYMBOL)) for name in found]
    return list(zip(found, relation.types, strict=True))


def _unsigned(text: Column, name: str) -> Column:
    from pyspark.sql.functions import when  # noqa: PLC0415

    return when(text.rlike(_UNSIGNED), text.try_cast("decimal(38,0)")).alias(name)


def quoted(name: str) -> str:
    """A column's name as it stands in SQL."""
    return "`" + name.replace("`", "``") + "`"
