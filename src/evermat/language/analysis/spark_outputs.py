"""`.output`s that Spark writes: files in its formats, tables of its catalogue, and tables of databases."""

from __future__ import annotations

from collections.abc import Mapping

from evermat.core import Problems, Span
from evermat.core import error_catalogue as errors
from evermat.language.model import Io, Relation
from evermat.language.syntax import ast

SPARK_MEDIA = ("spark", "table", "jdbc")
MODES = ("overwrite", "append", "error", "ignore")
# The parameters that are not options of Spark's writer, and which of them a medium needs.
_OWN = {
    "spark": ("format", "path", "mode", "partitionBy"),
    "table": ("format", "name", "mode", "partitionBy"),
    "jdbc": ("url", "dbtable", "mode"),
}
_NEEDED = {"spark": (), "table": ("name",), "jdbc": ("url", "dbtable")}
_IN_DATABASES = {"partitionby": "a table of a database has no partitions", "query": "facts are written to a `dbtable`"}
_FOREIGN = {
    "filename": "use `path`",
    "headers": "use the option `header` of Spark's writer",
    "rfc4180": "use the options of Spark's writer, such as `quote`",
}


def spark_output(relation: Relation, medium: str, directive: ast.Directive, span: Span, problems: Problems) -> Io:
    """An output that Spark writes, with all its parameters as options; those that it does not know itself are for Spark's writer.

    As Spark does, it ignores the case of their names.
    """
    given = {parameter.key: parameter for parameter in directive.parameters}
    own = {name.lower(): name for name in _OWN[medium]}
    values = {own.get(key.lower(), key): parameter for key, parameter in given.items() if key not in ("IO", *_FOREIGN)}

    def bad(parameter: ast.Parameter, why: str) -> None:
        details = {"name": parameter.key, "value": parameter.value, "why": why}
        problems.add(errors.BAD_PARAMETER, parameter.span, **details)

    for name, why in _FOREIGN.items():
        if name in given:
            bad(given[name], f"{why} with `IO={medium}`")
    for key, parameter in given.items():
        if medium == "jdbc" and key.lower() in _IN_DATABASES:
            bad(parameter, _IN_DATABASES[key.lower()])
    if missing := [name for name in _NEEDED[medium] if not (name in values and values[name].value)]:
        bad(given["IO"], f"it needs {' and '.join(f'`{name}`' for name in missing)}")
    if not relation.columns:
        bad(given["IO"], f"`{relation.name}` has no columns, and what Spark writes has at least one")
    if "mode" in values and values["mode"].value not in MODES:
        bad(values["mode"], f"use {', '.join(f'`{mode}`' for mode in MODES[:-1])} or `{MODES[-1]}`")
    for name in ("format", "path"):
        if name in values and name in own.values() and not values[name].value.strip():
            bad(values[name], "it is empty")
    if "partitionBy" in values and (why := _partition_fault(values["partitionBy"].value, relation)):
        bad(values["partitionBy"], why)
    _warn_of_dots(values, problems)
    path = values["path"].value if medium == "spark" and "path" in values else None
    return Io(relation, medium, path, options=tuple((key, one.value) for key, one in values.items()), span=span)


def columns_of(text: str) -> list[str]:
    """The names in a list that is separated by commas."""
    return [name.strip() for name in text.split(",")]


def _partition_fault(text: str, relation: Relation) -> str:
    """What is wrong with the columns that an output is partitioned by; empty if nothing is."""
    names, known = columns_of(text), [column.name for column in relation.columns]
    for name in names:
        if name not in known:
            shown = ", ".join(f"`{one}`" for one in known)
            return f"`{name}` is not a column of `{relation.name}`; its columns: {shown}"
        if names.count(name) > 1:
            return f"`{name}` is there twice"
    return "at least one column must be left" if len(names) == len(known) else ""


def _warn_of_dots(values: Mapping[str, ast.Parameter], problems: Problems) -> None:
    if "path" in values and ".." in values["path"].value.split("/"):
        problems.add(errors.DOTS_IN_OUTPUT, values["path"].span, name=values["path"].value)
