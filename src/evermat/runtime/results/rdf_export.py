"""The facts of a program as RDF triples: classes, properties, and the relations of triples themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from evermat.columns import Batch, Dictionary, decode_arrow
from evermat.core import Which
from evermat.language import OTHER_TRIPLE, RDF_TYPE, TRIPLE, Relation, Type
from evermat.runtime.pin import Pin

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 1 << 18  # triples that are decoded at a time
_SORTED = 5_000_000  # triples on a cluster that are sorted


def triples_of(pin: Pin, facts: Which = "all", *, representatives: bool = False) -> Iterator[pa.Table]:
    """The facts of classes, properties and relations of triples, as Arrow tables with the columns `s`, `p` and `o`.

    They are sorted, and each is there once; only of more than a few million on a cluster they come in no order. Terms are in
    their N-Triples form; subjects may be literals, if rules have derived that.
    """
    reading, relations = pin.reading, rdf_relations(pin.program.relations)
    dictionary = reading.dictionary
    batches = _as_triples(
        relations.values(), lambda name: reading.scan(name, facts, expanded=not representatives), dictionary
    )
    if not pin.engine.distributed or sum(map(reading.count, relations)) <= _SORTED:
        batches = _sorted(batches, dictionary)
    return _decoded(batches, dictionary)


def rdf_relations(relations: Mapping[str, Relation]) -> dict[str, Relation]:
    """The relations whose facts are triples."""
    return {name: relation for name, relation in relations.items() if _is_rdf(relation)}


def _is_rdf(relation: Relation) -> bool:
    if relation.hidden or any(type_ is not Type.TERM for type_ in relation.types):
        return False
    if relation.name in (TRIPLE, OTHER_TRIPLE):
        return relation.arity == 3
    return relation.name.startswith("<") and relation.arity in (1, 2)  # a class or a property


def _as_triples(
    relations: Iterable[Relation], facts: Callable[[str], Iterable[Batch]], dictionary: Dictionary
) -> Iterator[Batch]:
    """The facts of RDF relations as batches of subjects, properties and objects."""
    for relation in relations:
        for batch in facts(relation.name):
            if relation.arity == 3:
                yield batch
                continue
            names = dictionary.encode([RDF_TYPE, relation.name] if relation.arity == 1 else [relation.name])
            constants = [np.full(batch.shape[1], name, np.int64) for name in names]
            yield np.stack([batch[0], *constants, *batch[1:]])


def _sorted(batches: Iterable[Batch], dictionary: Dictionary) -> Iterator[Batch]:
    """The triples, sorted as their lines in N-Triples are, each of them once."""
    whole = np.concatenate([np.empty((3, 0), np.int64), *batches], axis=1)
    rank = dictionary.rank()
    # A blank comes before all that a term can go on with: the order of lines is that of terms, one after the other.
    order = np.lexsort([rank[whole[i]] for i in (2, 1, 0)])
    whole = whole[:, order]
    new = np.ones(whole.shape[1], np.bool_)
    new[1:] = (whole[:, 1:] != whole[:, :-1]).any(axis=0)
    yield whole[:, new]


def _decoded(batches: Iterable[Batch], dictionary: Dictionary) -> Iterator[pa.Table]:
    """Triples as Arrow tables with the columns `s`, `p` and `o`, each term in its N-Triples form."""
    import pyarrow as pa

    for batch in batches:
        for first in range(0, batch.shape[1], _BATCH):
            part = batch[:, first : first + _BATCH]
            columns = [decode_arrow(column, Type.TERM, dictionary) for column in part]
            yield pa.table(dict(zip("spo", columns, strict=True)))
