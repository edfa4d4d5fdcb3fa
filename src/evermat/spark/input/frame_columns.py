"""Whether the columns of a DataFrame fit a relation, in Spark's words: its types, and the casts that help."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evermat.core import DataError, Problem
from evermat.core import error_catalogue as errors
from evermat.io import column_text, conform
from evermat.language import Relation, Type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_ACCEPTED = {Type.FLOAT: "columns of float, double and integers", Type.SYMBOL: "string columns"}
_INTEGERS = "columns of integers and of decimals without a fraction"
_CASTS = {Type.NUMBER: "bigint", Type.UNSIGNED: "decimal(20,0)", Type.FLOAT: "double"}
_NESTED = ("array", "map", "struct", "variant")
_NO_NUMBERS = ("binary", "interval", "daytimeinterval", "yearmonthinterval", "timestamp_ntz", "time")


def check_columns(frame: DataFrame, schema: pa.Schema, relation: Relation, name: str) -> None:
    """Raises a `DataError` unless the columns of a frame, which errors call `name`, fit a relation; its rows in Arrow have the schema."""
    try:
        conform(schema.empty_table(), relation, name)
    except DataError as error:
        raise DataError([_in_spark_terms(problem, frame, relation) for problem in error.problems]) from None


def _in_spark_terms(problem: Problem, frame: DataFrame, relation: Relation) -> Problem:
    if problem.kind is not errors.COLUMN_TYPE:
        return problem
    texts = [column_text(relation, i) for i in range(relation.arity)]
    position = texts.index(problem.details["where"])
    expected = [column.name for column in relation.columns]
    by_name = sorted(frame.columns) == sorted(expected)
    index = frame.columns.index(expected[position]) if by_name else position
    column, type_ = frame.columns[index], relation.columns[position].type
    kept: dict[str, Any] = {"where": problem.details["where"], "type": type_}
    kept["found"] = frame.schema.fields[index].dataType.simpleString()
    kept["accepted"] = _ACCEPTED.get(Type.SYMBOL if type_ is Type.TERM else type_, _INTEGERS)
    kept["cast"] = cast = _cast(frame.schema.fields[index].dataType.typeName(), type_)
    help_ = f'cast it: `.withColumn("{column}", expr("{cast.format(column)}"))`' if cast else ""
    return replace(problem, kind=errors.SPARK_TYPE, details=kept, help="; ".join(filter(None, (problem.help, help_))))


def _cast(found: str, type_: Type) -> str:
    """The expression that makes values of a Spark type ones of a column, `{}` being their name; empty if there is none to advise."""
    if type_ in (Type.SYMBOL, Type.TERM):
        return "to_json({})" if found in _NESTED else "cast({} as string)"
    if found in (*_NESTED, *_NO_NUMBERS):
        return ""
    if found == "date":
        return f"cast(unix_date({{}}) as {_CASTS[type_]})"
    return f"cast({{}} as {_CASTS[type_]})"
