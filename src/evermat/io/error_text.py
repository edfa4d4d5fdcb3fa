"""How messages about files name columns, values and the ranges of types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evermat.core import Kind, count_of
from evermat.core import error_catalogue as errors
from evermat.language import MAX_NUMBER, MAX_UNSIGNED, MIN_NUMBER, Relation, Type

_SHOWN = 40  # characters of a value that a message shows
RANGE_TEXTS = {  # the values of numeric types
    Type.NUMBER: f"a `number` lies between {MIN_NUMBER} and {MAX_NUMBER}",
    Type.UNSIGNED: f"an `unsigned` lies between 0 and {MAX_UNSIGNED}",
    Type.FLOAT: "a `float` lies between -1.7976931348623157e308 and 1.7976931348623157e308; infinity is spelled `inf`",
}
SPELLING_TEXTS = {  # how they are spelled
    Type.NUMBER: "a `number` is spelled with decimal digits and perhaps a sign, without blanks",
    Type.UNSIGNED: "an `unsigned` is spelled with decimal digits, without blanks",
    Type.FLOAT: "a `float` is spelled like `-1.5`, `2e-9` or `inf`, without blanks",
}


def column_text(relation: Relation, position: int) -> str:
    """The column at a position, counted from 0, as messages name it."""
    return f"column {position + 1} (`{relation.columns[position].name}`)"


def name_list(items: Sequence[str]) -> str:
    """Names in backticks, separated by commas."""
    return ", ".join(f"`{item}`" for item in items) or "none"


def wrong_count(
    relation: Relation, count: int, what: str, found: str, surplus: str = "its fact has no values"
) -> tuple[Kind, dict[str, Any]]:
    """The error of a record with too few or too many values; `surplus` is what is said of a relation without columns."""
    expected = count_of(relation.arity, "column")
    details: dict[str, Any] = {"what": what, "found": found, "relation": relation.name, "expected": expected}
    if count < relation.arity:
        return errors.TOO_FEW_COLUMNS, details | {"missing": missing_columns(relation, count)}
    why = f"the last column is `{relation.columns[-1].name}`" if relation.arity else surplus
    return errors.TOO_MANY_COLUMNS, details | {"why": why}


def missing_columns(relation: Relation, count: int) -> str:
    """The columns of a relation that a record with so many values lacks, with the verb of a sentence."""
    absent = [column.name for column in relation.columns[count:]]
    return f"{name_list(absent)} {'is' if len(absent) == 1 else 'are'}"


def shown(text: str) -> str:
    """A value in backticks; what cannot be printed is escaped, and a long text is cut."""
    cut = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return "`" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut) + "`"
