"""What an update changed: what `Materialisation.update` hands back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from evermat.columns.schemes.scheme import Later
from evermat.columns.state.views import View
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.encoding import decode_arrow, decode_rows
from evermat.columns.storage.table import Batch, Table
from evermat.language import Relation, Row

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class ChangedFacts:
    """Facts of one relation that came or went."""

    def __init__(self, relation: Relation, facts: Batch | Later, dictionary: Dictionary) -> None:
        self._relation, self._facts, self._dictionary = relation, facts, dictionary

    @property
    def _batch(self) -> Batch:
        return _listed(self._facts)

    def __len__(self) -> int:
        return _size(self._facts)

    def __iter__(self) -> Iterator[Row]:
        return iter(decode_rows(self._batch, self._relation.types, self._dictionary))

    def __contains__(self, row: object) -> bool:
        return row in set(self)

    def to_arrow(self) -> pa.Table:
        """An Arrow table with the relation's columns."""
        import pyarrow as pa  # noqa: PLC0415

        from evermat.io import arrow_schema, nullary  # noqa: PLC0415

        if not self._relation.columns:
            return nullary(present=len(self) > 0)
        batch = self._batch
        columns = [decode_arrow(batch[i], t, self._dictionary) for i, t in enumerate(self._relation.types)]
        return pa.Table.from_arrays(columns, schema=arrow_schema(self._relation))

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """A DataFrame of the caller's SparkSession."""
        from evermat.spark.dataframes import to_frame  # noqa: PLC0415

        return to_frame(spark, self.to_arrow(), self._relation)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<{self._relation.name}: {len(self):,} facts>"


def _listed(facts: Batch | Later) -> Batch:
    return facts if isinstance(facts, np.ndarray) else facts.batch()


def _size(facts: Batch | Later) -> int:
    return int(facts.shape[1]) if isinstance(facts, np.ndarray) else facts.count


class Changes(Mapping[str, ChangedFacts]):
    """Facts that came, or went, by relation; every relation of the program is there."""

    def __init__(
        self, relations: Mapping[str, Relation], batches: Mapping[str, Batch | Later], dictionary: Dictionary
    ) -> None:
        self._relations = {name: r for name, r in relations.items() if not r.hidden}
        self._known = {name: batch for name, batch in batches.items() if name in self._relations}
        self._dictionary = dictionary

    @property
    def _batches(self) -> Mapping[str, Batch | Later]:
        """The facts by relation."""
        return self._known

    @classmethod
    def of(
        cls,
        relations: Mapping[str, Relation],
        view: View,
        tables: Mapping[str, Table],
        dictionary: Dictionary,
        kind: int,
    ) -> Self:
        """The facts of a view; of relations with a storage scheme those of a kind.

        Rows are copied now: they may be given to other facts by a later update. The pairs of a closure are listed when somebody asks.
        """
        batches: dict[str, Batch | Later] = {
            name: tables[name].take(view.rows(name)) for name in view.names if tables[name].scheme is None
        }
        for name in relations:
            scheme = tables[name].scheme
            if scheme is not None:
                batches[name] = scheme.changed(kind)
        return cls(relations, batches, dictionary)

    def codes(self, name: str) -> set[tuple[int, ...]]:
        """The facts of a relation as the engine holds them."""
        batch = self._batches.get(name)
        return set() if batch is None else set(map(tuple, _listed(batch).T.tolist()))

    def with_codes(self, codes: Mapping[str, set[tuple[int, ...]]]) -> Changes:
        """Other facts of the same relations."""
        batches = {
            name: np.array(sorted(facts), np.int64).reshape(len(facts), self._relations[name].arity).T.copy()
            for name, facts in codes.items()
            if facts
        }
        return Changes(self._relations, batches, self._dictionary)

    def __getitem__(self, name: str) -> ChangedFacts:
        relation = self._relations[name]
        batch = self._batches.get(name)
        return ChangedFacts(
            relation, np.empty((relation.arity, 0), np.int64) if batch is None else batch, self._dictionary
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._relations)

    def __len__(self) -> int:
        return len(self._relations)

    @property
    def total(self) -> int:
        """How many facts of all relations."""
        return sum(map(_size, self._batches.values()))


class NamedChanges(Changes):
    """Facts that came, or went, in all names. There may be very many: they are listed when somebody asks for them."""

    def __init__(
        self, relations: Mapping[str, Relation], dictionary: Dictionary, listed: Callable[[], Mapping[str, Batch]]
    ) -> None:
        super().__init__(relations, {}, dictionary)
        self._listed = listed

    @property
    def _batches(self) -> Mapping[str, Batch]:
        return self._listed()


class Change:
    """One update: what every relation gained and lost, explicit facts and derived ones, and what it took."""

    def __init__(self, inserted: Changes, deleted: Changes, stats: dict[str, Any]) -> None:
        self.inserted, self.deleted, self._stats = inserted, deleted, stats

    @property
    def stats(self) -> dict[str, Any]:
        """What was done and what it took, with how many facts came and went."""
        if "inserted" not in self._stats:
            self._stats |= {"inserted": self.inserted.total, "deleted": self.deleted.total}
        return self._stats

    def __bool__(self) -> bool:
        return bool(self.inserted.total or self.deleted.total)

    def __repr__(self) -> str:
        return f"<Change: {self.inserted.total:,} inserted, {self.deleted.total:,} deleted>"


def together(changes: Sequence[Change]) -> Change:
    """What several updates, one after the other, changed: what came and went again is not in it. The stats are those of the last."""
    last = changes[-1]
    if len(changes) == 1:
        return last
    inserted: dict[str, set[tuple[int, ...]]] = {name: set() for name in last.inserted}
    deleted: dict[str, set[tuple[int, ...]]] = {name: set() for name in last.deleted}
    for change in changes:
        for name in last.inserted:
            gone, come = change.deleted.codes(name), change.inserted.codes(name)
            undone, back = gone & inserted[name], come & deleted[name]
            inserted[name] = (inserted[name] - undone) | (come - back)
            deleted[name] = (deleted[name] - back) | (gone - undone)
    return Change(last.inserted.with_codes(inserted), last.deleted.with_codes(deleted), last.stats)
