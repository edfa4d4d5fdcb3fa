"""Triples on their way from files to relations.

They travel in columns of terms that are dictionary-encoded, block by block: terms repeat, and whatever is to be said or
changed about a term is then said once. A term is its N-Triples text (see `program.terms`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import Problem, count_of
from evermat.core import error_catalogue as errors
from evermat.io.error_report import column_text
from evermat.io.locate import FileRef
from evermat.io.schema import TEXTS, arrow_schema
from evermat.language import RDF_TYPE, Relation

DEFAULT_GRAPH = '""'  # what stands for the graph that has no name
SCHEMA = pa.schema([pa.field(name, pa.string(), nullable=False) for name in "spo"])
ENCODED = pa.schema([pa.field(name, pa.dictionary(pa.int32(), pa.string()), nullable=False) for name in "spo"])
BLANK = "_:"
WITH_GRAPHS = ("nq", "trig", "jsonld")  # syntaxes


@dataclass(frozen=True, slots=True)
class Triples:
    """The triples of a file, how many malformed statements were left out, and what is wrong with the first of them."""

    encoded: pa.Table
    skipped: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def table(self) -> pa.Table:
        """The triples as a table with the columns `s`, `p` and `o` of strings."""
        return self.encoded.cast(SCHEMA)


class Quads(NamedTuple):
    """Some triples in their order: dictionary-encoded columns; no `g` is the default graph for all of them."""

    s: Any
    p: Any
    o: Any
    g: Any = None

    @property
    def columns(self) -> list[Any]:
        return [column for column in self if column is not None]

    def encoded(self) -> pa.Table:
        """The triples as a table, whatever their graphs are."""
        return pa.Table.from_arrays([self.s, self.p, self.o], schema=ENCODED)


def encode(values: Any) -> Any:
    """A column from an Arrow array, or a sequence, of texts."""
    array = values if isinstance(values, pa.Array) else pa.array(values, pa.string())
    return array.dictionary_encode()


def column_of(codes: Any, terms: Any) -> Any:
    """A column from codes and the terms that they stand for, of which some may be the same, or not be used."""
    used = np.zeros(len(terms), np.bool_)
    numbers = codes.to_numpy(zero_copy_only=False)
    used[numbers] = True
    encoded = terms.dictionary_encode()
    if used.all() and len(encoded.dictionary) == len(terms):
        return pa.DictionaryArray.from_arrays(codes, terms)
    kept = terms.filter(pa.array(used)).dictionary_encode()
    code = np.zeros(len(terms), np.int32)
    code[used] = kept.indices.to_numpy()
    return pa.DictionaryArray.from_arrays(pa.array(code[numbers]), kept.dictionary)


def with_terms(column: Any, change: Callable[[Any], Any]) -> Any:
    """The column with its terms changed: different ones must stay different."""
    return pa.DictionaryArray.from_arrays(column.indices, change(column.dictionary))


def is_blank(terms: Any) -> npt.NDArray[np.bool_]:
    """Which terms of an Arrow array are blank nodes."""
    found: npt.NDArray[np.bool_] = pc.starts_with(terms, BLANK).to_numpy(zero_copy_only=False)
    return found


# --- labels of blank nodes -----------------------------------------------------------------------------------


class Prefixed:
    """Labels stay, behind a prefix."""

    def __init__(self, blank: str) -> None:
        self._blank = blank

    def rename(self, quads: Quads) -> Quads:
        if not self._blank:
            return quads
        return Quads(*(with_terms(column, self._renamed) for column in quads.columns))

    def _renamed(self, terms: Any) -> Any:
        if not is_blank(terms).any():
            return terms
        return pc.replace_substring_regex(terms, "^_:", BLANK + self._blank)


class Numbered:
    """Labels count blank nodes, or only some of them, in the order of their first appearance: `b1`, `b2`, …, behind a prefix."""

    def __init__(self, blank: str, only: Collection[str] | None = None) -> None:
        self._blank, self._only = blank, only
        self._known: dict[str, str] = {}

    def rename(self, quads: Quads) -> Quads:
        found: list[tuple[int, str]] = []
        columns = quads.columns
        for position, column in enumerate(columns):
            blank = np.flatnonzero(is_blank(column.dictionary))
            if len(blank):
                codes = column.indices.to_numpy()
                first = np.empty(len(column.dictionary), np.int64)
                first[codes[::-1]] = np.arange(len(codes))[::-1]  # of several places the last one written is the first
                labels = column.dictionary.take(pa.array(blank)).to_pylist()
                found += zip((first[blank] * len(columns) + position).tolist(), labels, strict=True)
        if not found:
            return quads
        for _, label in sorted(found):
            if label not in self._known and (self._only is None or label in self._only):
                self._known[label] = f"{BLANK}{self._blank}b{len(self._known) + 1}"
        return Quads(*(with_terms(column, self._renamed) for column in columns))

    def _renamed(self, terms: Any) -> Any:
        blank = is_blank(terms)
        if not blank.any():
            return terms
        labels = terms.filter(pa.array(blank)).to_pylist()
        new = pa.array([self._known.get(label, label) for label in labels], pa.string())
        return pc.replace_with_mask(terms, pa.array(blank), new)


# --- relations -----------------------------------------------------------------------------------------------


_NAMED = (1, 2, 3, 4)  # columns that a relation may have which is named by an IRI: as a class, as a property, or
_PLAIN = (3, 4)  # as all others: subject, property, object, and perhaps the graph


def is_rdf_name(name: str) -> bool:
    """Whether a relation is named by an IRI."""
    return name.startswith("<")


def refusal(ref: FileRef, relation: Relation, *, output: bool = False) -> Problem | None:
    """The error of a relation whose facts are not triples, or have graphs where the format has none."""
    if (why := _not_triples(relation)) is not None:
        return Problem(errors.TRIPLE_COLUMNS, {"path": ref.path, "why": why})
    if output and relation.arity == 4 and ref.syntax not in WITH_GRAPHS:
        why = f"`{relation.name}` has 4 columns, but the format has no graphs"
        rule = "N-Quads (.nq), TriG (.trig) and JSON-LD (.jsonld) have graphs"
        return Problem(errors.RDF_OUTPUT, {"path": ref.path, "why": why, "rule": rule})
    return None


def _not_triples(relation: Relation) -> str | None:
    """Why the facts of a relation are not triples, if that is so."""
    if relation.arity not in (_NAMED if is_rdf_name(relation.name) else _PLAIN):
        return f"`{relation.name}` has {count_of(relation.arity, 'column')}"
    for position, column in enumerate(relation.columns):
        if column.type not in TEXTS:
            return f"{column_text(relation, position)} of `{relation.name}` is of the type `{column.type}`"
    return None


def facts_of(quads: Quads, relation: Relation) -> pa.Table:
    """The facts of a relation that some triples are; it has columns for them."""
    s, p, o, g = quads
    if relation.arity == 1:
        columns = [s.filter(pc.and_(_equals(p, RDF_TYPE), _equals(o, relation.name)))]
    elif relation.arity == 2:
        chosen = _equals(p, relation.name)
        columns = [s.filter(chosen), o.filter(chosen)]
    elif relation.arity == 3:
        columns = [s, p, o]
    else:
        columns = [s, p, o, g if g is not None else pa.repeat(pa.scalar(DEFAULT_GRAPH, pa.string()), len(s))]
    return pa.Table.from_arrays([column.cast(pa.string()) for column in columns], schema=arrow_schema(relation))


def _equals(column: Any, term: str) -> Any:
    """Whether the terms of a column are this one."""
    return pc.equal(column.indices, pa.scalar(column.dictionary.index(term).as_py(), pa.int32()))


def triples_table(parts: Sequence[Quads]) -> pa.Table:
    """All triples as one encoded table."""
    return pa.concat_tables([part.encoded() for part in parts]) if parts else ENCODED.empty_table()
