"""Graphs of rdflib and pyoxigraph: their triples as those of a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from evermat.core import DataError, Problem, path_arguments, watched_each
from evermat.core import error_catalogue as errors
from evermat.language import MalformedTermError, term_of

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 10  # errors that are reported
_PLACES = ("subject", "predicate", "object")
GRAPH = "<graph>"  # what `skipped` calls all graphs


def is_graph(given: object) -> bool:
    """Whether it is a graph, or a set of named graphs, of rdflib or pyoxigraph; then that is imported already."""
    rdflib, oxigraph = (sys.modules.get(name) for name in ("rdflib.graph", "pyoxigraph"))
    kinds = (getattr(rdflib, "Graph", ()), getattr(oxigraph, "Store", ()), getattr(oxigraph, "Dataset", ()))
    return isinstance(given, kinds)


def split_sources(name: str, given: Any) -> tuple[list[str], list[Any]]:
    """The paths, and the graphs, of an argument that takes one of them or several.

    Raises:
        TypeError: it is something else.
    """
    if is_graph(given):
        return [], [given]
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        return list(map(str, path_arguments(name, given))), []
    listed = list(given) if not hasattr(given, "keys") else given
    graphs = [one for one in listed if is_graph(one)]
    paths = [one for one in listed if not is_graph(one)] if graphs else listed
    return list(map(str, path_arguments(name, paths))), graphs


def graph_triples(graphs: Iterable[Any], before: pa.Table | None, *, skip: bool, skipped: dict[str, int]) -> pa.Table:
    """Other triples, if there are any, and those of some graphs, with the columns `s`, `p` and `o` of texts.

    Blank nodes keep their labels, names of graphs are dropped.

    With `skip` triples with malformed terms are counted in `skipped`, and left out.

    Raises:
        DataError: a term is malformed.
    """
    import pyarrow as pa

    columns: tuple[list[str], list[str], list[str]] = [], [], []
    problems: list[Problem] = []
    for graph in graphs:
        for number, statement in enumerate(watched_each(graph), 1):
            terms = statement[:3] if isinstance(statement, tuple) else [*statement][:3]
            found = _terms(terms, number, type(graph).__name__)
            if not isinstance(found, Problem):
                for column, term in zip(columns, found, strict=True):
                    column.append(term)
            elif skip:
                skipped[GRAPH] = skipped.get(GRAPH, 0) + 1
            elif len(problems) < _SHOWN:
                problems.append(found)
            else:
                break
    if problems:
        raise DataError(problems)
    found = pa.table({name: pa.array(terms, pa.string()) for name, terms in zip("spo", columns, strict=True)})
    return found if before is None else pa.concat_tables([before, found.cast(before.schema)])


def _terms(triple: Iterable[Any], number: int, graph: str) -> list[str] | Problem:
    """The terms of a triple, or what is wrong with the first that is none."""
    terms = []
    for value, place in zip(triple, _PLACES, strict=True):
        try:
            term = term_of(value)
        except MalformedTermError as error:
            return _wrong(value, error.fault.why, number, place, graph)
        if place == "predicate" and not term.startswith("<"):
            return _wrong(value, "a predicate is an IRI", number, place, graph)
        if place == "subject" and term.startswith('"'):
            return _wrong(value, "a subject is an IRI or a blank node", number, place, graph)
        terms.append(term)
    return terms


def _wrong(value: object, why: str, number: int, place: str, graph: str) -> Problem:
    where = f"the {place} of triple {number} of the {graph}"
    return Problem(errors.BAD_GRAPH, {"value": repr(value)[:60], "where": where, "why": why})
