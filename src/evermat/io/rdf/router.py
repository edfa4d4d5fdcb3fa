"""Sends triples to the relations of a program whose facts they are.

A triple `x rdf:type C` is a fact of the class `C`, any other one of its property, where the program has a relation of
that name; the rest goes to `other_triple`. A program with the relation `triple` has all triples there, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.io.rdf.terms import is_rdf_name
from evermat.io.schema import TEXTS
from evermat.language import OTHER_TRIPLE, RDF_TYPE, TRIPLE, Relation


@dataclass(frozen=True)
class Router:
    """Which relations take triples, by what they take; a relation without columns for them takes none."""

    classes: Mapping[str, Relation]
    properties: Mapping[str, Relation]
    others: Relation | None = None
    everything: bool = False  # whether `others` takes all triples, not only what no other takes

    @classmethod
    def of(cls, relations: Mapping[str, Relation]) -> Self:
        taking = {
            name: relation
            for name, relation in relations.items()
            if not relation.hidden and all(type_ in TEXTS for type_ in relation.types)
        }
        for name in (TRIPLE, OTHER_TRIPLE):
            others = taking.get(name)
            if others is not None and others.arity == 3:
                break
            others = None
        if others is not None and others.name == TRIPLE:
            return cls({}, {}, others, everything=True)
        named = {name: relation for name, relation in taking.items() if is_rdf_name(name)}
        classes, properties = ({n: r for n, r in named.items() if r.arity == arity} for arity in (1, 2))
        return cls(classes, properties, others)

    def route(self, triples: pa.Table) -> tuple[dict[str, pa.Table], pa.Table]:
        """The facts that triples are, by relation, and the triples that go nowhere.

        The columns `s`, `p` and `o` are of strings or dictionary-encoded; so are the columns of the facts.
        """
        if self.everything and self.others is not None:
            facts = {self.others.name: _named(triples.columns, self.others)} if triples.num_rows else {}
            return facts, triples.slice(0, 0)
        parts: dict[str, list[pa.Table]] = {}
        nowhere = [triples.slice(0, 0)]
        for batch in triples.to_batches():
            for relation, columns in self._sorted(batch):
                if relation is None:
                    nowhere.append(pa.Table.from_arrays(columns, schema=triples.schema))
                else:
                    parts.setdefault(relation.name, []).append(_named(columns, relation))
        return {name: pa.concat_tables(some) for name, some in parts.items()}, pa.concat_tables(nowhere)

    def _sorted(self, batch: pa.RecordBatch) -> Iterable[tuple[Relation | None, list[Any]]]:
        """The columns of triples by relation."""
        s, p, o = batch.columns
        targets = _Targets(self.others)
        sent = targets.of(p, self.properties)
        properties = len(targets.relations)  # all classes have greater numbers, and need neither property nor object
        typed = np.flatnonzero(_is(p, RDF_TYPE))
        if len(typed) and self.classes:
            classes = targets.of(o.take(pa.array(typed)), self.classes)
            member = classes > 0
            typed = typed[member]
            sent[typed] = classes[member]
            if RDF_TYPE in self.properties and len(typed):
                yield self.properties[RDF_TYPE], [column.take(pa.array(typed)) for column in (s, o)]
        ends = np.cumsum(np.bincount(sent, minlength=len(targets.relations)))
        small = sent.astype(np.uint16) if len(ends) <= _SMALL else sent
        order = pa.array(np.argsort(small, kind="stable"))
        others, described = int(ends[0]), int(ends[properties - 1])
        s, p, o = s.take(order), p.take(order[:others]), o.take(order[:described])
        start = 0
        for number, (relation, end) in enumerate(zip(targets.relations, ends.tolist(), strict=True)):
            if end > start:
                columns = [s, p, o] if number == 0 else [s, o] if number < properties else [s]
                yield relation, [column.slice(start, end - start) for column in columns]
            start = end


_SMALL = 1 << 16  # numbers below are sorted faster


class _Targets:
    """Relations that facts are sent to, numbered; 0 is the one that takes what no other takes, if there is any."""

    def __init__(self, others: Relation | None) -> None:
        self.relations: list[Relation | None] = [others]

    def of(self, column: Any, known: Mapping[str, Relation]) -> npt.NDArray[np.int64]:
        """The number of the relation that each term of a column names."""
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        codes, terms = encoded.indices.to_numpy(), encoded.dictionary
        used = np.zeros(len(terms), np.bool_)
        used[codes] = True
        numbers = np.zeros(len(terms), np.int64)
        for code, term in zip(np.flatnonzero(used).tolist(), terms.filter(pa.array(used)).to_pylist(), strict=True):
            relation = known.get(term)
            if relation is not None:
                numbers[code] = len(self.relations)
                self.relations.append(relation)
        found: npt.NDArray[np.int64] = numbers[codes]
        return found


def _is(column: Any, term: str) -> npt.NDArray[np.bool_]:
    """Whether the terms of a column are this one."""
    if pa.types.is_dictionary(column.type):
        found: npt.NDArray[np.bool_] = column.indices.to_numpy() == column.dictionary.index(term).as_py()
        return found
    equal: npt.NDArray[np.bool_] = pc.equal(column, term).to_numpy(zero_copy_only=False)
    return equal


def _named(columns: Sequence[Any], relation: Relation) -> pa.Table:
    """Facts of a relation; symbols stay encoded if they are."""
    fields = [pa.field(c.name, a.type, nullable=False) for c, a in zip(relation.columns, columns, strict=True)]
    return pa.Table.from_arrays(list(columns), schema=pa.schema(fields))
