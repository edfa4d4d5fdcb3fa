"""RDF terms in rows of Python values: texts in N-Triples form, and terms of Evermat, rdflib and pyoxigraph."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

from evermat.columns import WrongTerm
from evermat.core import Problem, Source, watched_each
from evermat.core import error_catalogue as errors
from evermat.language import MalformedTermError, Relation, Term, TermFault, Type, checked_terms, term_of

_FEW = 1000  # texts that are checked without Arrow
_SHOWN = 60  # characters of a value that a message shows
_LITERALS = (bool, int, float, Decimal, date, time, timedelta, bytes)


def statement(row: Any, arity: int) -> tuple[Any, ...] | None:
    """The terms of a triple or quad of pyoxigraph as a row; the graph of a quad only if there is a column for it. None for others."""
    oxigraph = sys.modules.get("pyoxigraph")
    if oxigraph is None or not isinstance(row, (oxigraph.Triple, oxigraph.Quad)):
        return None
    terms = (row.subject, row.predicate, row.object)
    if arity != 4 or not isinstance(row, oxigraph.Quad):
        return terms
    graph = row.graph_name
    return *terms, '""' if isinstance(graph, oxigraph.DefaultGraph) else graph


def held_columns(columns: Sequence[Sequence[Any]], relation: Relation) -> list[Sequence[Any]] | None:
    """Columns of values with their terms in the one form of each; None if some value is not a term."""
    held: list[Sequence[Any]] = []
    for values, type_ in zip(columns, relation.types, strict=True):
        terms = _held(values) if type_ is Type.TERM else values
        if terms is None:
            return None
        held.append(terms)
    return held


def _held(values: Sequence[Any]) -> Sequence[str] | None:
    """Values as terms in their one form, themselves if they are; None if one is not a term."""
    if {str, Term}.issuperset(map(type, values)):
        changed = _changed(set(values))
        if not changed:
            return values if changed is not None else None
        return [changed.get(value, value) for value in values]
    try:
        return [term_of(value) for value in watched_each(values)]
    except MalformedTermError:
        return None


def _changed(texts: Collection[str]) -> Mapping[str, str] | None:
    """The one form of those terms that are not in it; None if a text is not a term."""
    if len(texts) > _FEW:
        import pyarrow as pa

        from evermat.io import checked_column

        listed = [*texts]
        try:
            given = pa.chunked_array([pa.array(listed, pa.large_string())])
        except UnicodeEncodeError:
            return None
        terms, wrong = checked_column(given)
        if wrong is not None:
            return None
        if terms is given:
            return {}
        return {text: term for text, term in zip(listed, terms.to_pylist(), strict=True) if text != term}
    changed = {}
    for text, term in zip(texts, checked_terms([*texts]), strict=True):
        if isinstance(term, TermFault):
            return None
        if term != text:
            changed[text] = term
    return changed


def row_fault(value: Any, fault: TermFault, row: int, column: str, relation: Relation) -> Problem:
    """The error of a value in a row, counted from 1, that is not a term."""
    where = f"row {row}, column `{column}` of the facts for `{relation.name}`"
    help_ = fault.in_python
    if isinstance(value, _LITERALS):
        help_ = f"use `evermat.literal({value!r})`"
    return Problem(errors.NOT_A_TERM, {"value": repr(value)[:_SHOWN], "where": where, "why": fault.why}, help=help_)


def table_fault(relation: Relation, wrong: WrongTerm, source: str = "") -> Problem:
    """The error of a text in a table that is not a term."""
    from evermat.io import term_details

    details = term_details(relation, wrong.column, wrong.fault)
    details["where"] = f"row {wrong.row + 1}, {details['where']}"
    source = source or f"the facts for `{relation.name}`"
    return Problem(errors.NOT_A_TERM, details, Source(source, ""), None, wrong.fault.in_a_file)
