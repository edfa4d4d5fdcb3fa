"""The changes that an update made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, final

import numpy as np

from evermat.columns import Batch, DeferredFacts, Dictionary
from evermat.core import check_type, local_path, wrong_argument
from evermat.language import Relation, RelationNames
from evermat.runtime.engine import ChangeSet
from evermat.runtime.rows import EncodedRows, Tabular


@final
class _ChangedRows(EncodedRows):
    """The facts of one relation in a set of changes."""

    def __init__(self, relation: Relation, facts: ChangeSet, dictionary: Dictionary) -> None:
        super().__init__(relation, dictionary)
        self._facts = facts

    def count(self) -> int:
        return self._facts.count(self.relation.name)

    def chunks(self) -> Iterator[Batch]:
        yield self._facts.batch(self.relation.name)

    def found(self, row: Batch) -> bool:
        return bool((self._facts.batch(self.relation.name) == row).all(axis=0).any())


@final
class ChangedFacts(Tabular):
    """Facts of one relation that an update inserted or deleted."""

    def __init__(self, relation: Relation, facts: ChangeSet, dictionary: Dictionary) -> None:
        self._changed = _ChangedRows(relation, facts, dictionary)

    def _rows(self) -> EncodedRows:
        return self._changed

    def __repr__(self) -> str:
        return f"<{self._changed.title}>"


@final
class Changes(Mapping[str, ChangedFacts]):
    """The facts that an update inserted, or deleted, by relation; every relation of the program has an entry, by all of its names."""

    def __init__(self, relations: RelationNames, facts: ChangeSet, dictionary: Dictionary) -> None:
        self._relations, self._facts, self._dictionary = relations, facts, dictionary

    def __getitem__(self, name: str) -> ChangedFacts:
        return ChangedFacts(self._relations[name], self._facts, self._dictionary)

    def __iter__(self) -> Iterator[str]:
        return iter(self._relations)

    def __len__(self) -> int:
        return len(self._relations)

    @property
    def total(self) -> int:
        """How many facts of all relations."""
        return sum(map(self._facts.count, self._relations))

    def _codes(self, name: str) -> set[tuple[int, ...]]:
        """The facts of a relation as the engine encodes them."""
        return set(map(tuple, self._facts.batch(name).T.tolist()))

    def _with_codes(self, codes: Mapping[str, set[tuple[int, ...]]]) -> Changes:
        """Other facts of the same relations."""
        arities = {name: relation.arity for name, relation in self._relations.items()}
        batches = {
            name: np.array(sorted(facts), np.int64).reshape(len(facts), arities[name]).T.copy()
            for name, facts in codes.items()
        }
        return Changes(self._relations, _listed(batches, arities), self._dictionary)


@final
class ListedChange:
    """Facts that an update deleted or inserted, by relation, as batches that there are or that are listed when they are read."""

    def __init__(self, batches: Callable[[], Mapping[str, Batch | DeferredFacts]], arities: Mapping[str, int]) -> None:
        self._batches, self._arities = batches, arities

    def count(self, name: str) -> int:
        batch = self._batches().get(name)
        if batch is None:
            return 0
        return int(batch.shape[1]) if isinstance(batch, np.ndarray) else batch.count

    def __reduce__(self) -> tuple[Any, ...]:
        """For `pickle`, all facts are listed."""
        return _listed, ({name: self.batch(name) for name in self._arities}, self._arities)

    def batch(self, name: str) -> Batch:
        batch = self._batches().get(name)
        if batch is None:
            return np.empty((self._arities[name], 0), np.int64)
        return batch if isinstance(batch, np.ndarray) else batch.batch()


def _listed(batches: Mapping[str, Batch], arities: Mapping[str, int]) -> ListedChange:
    return ListedChange(lambda: batches, arities)


@final
class Change:
    """The facts, explicit and derived, that one update inserted into and deleted from every relation, and its statistics.

    Attributes:
        inserted: The facts that the update inserted, by relation: an `evermat.Changes`.
        deleted: The facts that it deleted, likewise.
    """

    def __init__(self, inserted: Changes, deleted: Changes, stats: dict[str, Any]) -> None:
        self.inserted, self.deleted, self._stats = inserted, deleted, stats

    @property
    def stats(self) -> dict[str, Any]:
        """The statistics of the update, with the numbers of inserted and deleted facts."""
        if "inserted" not in self._stats:
            self._stats |= {"inserted": self.inserted.total, "deleted": self.deleted.total}
        return self._stats

    def __bool__(self) -> bool:
        return bool(self.inserted.total or self.deleted.total)

    def __repr__(self) -> str:
        return f"<Change: {self.inserted.total:,} inserted, {self.deleted.total:,} deleted>"

    def write(self, path: str | PathLike[str]) -> None:
        """Writes the changes of every relation to a change file, sorted; the name of the file decides the format: text, `.jsonl` or `.parquet`.

        Raises:
            DataError: facts cannot be written in that format.
            ResourceError: it could not be written.
        """
        from evermat.io import write_changes

        write_changes(self, local_path("a change file", "path", path))

    @staticmethod
    def combined(changes: Sequence[Change]) -> Change:
        """The changes of several updates in a row: without facts that were inserted and deleted again. The stats are those of the last update.

        Raises:
            ProgramError: there are no changes.
            TypeError: something is not a change.
        """
        check_type("changes", changes, Sequence, "a sequence of changes")
        for change in changes:
            check_type("changes", change, Change, "a sequence of changes")
        if not changes:
            raise wrong_argument("`changes` is empty: pass at least one change")
        last = changes[-1]
        if len(changes) == 1:
            return last
        inserted: dict[str, set[tuple[int, ...]]] = {name: set() for name in last.inserted}
        deleted: dict[str, set[tuple[int, ...]]] = {name: set() for name in last.deleted}
        for change in changes:
            for name in last.inserted:
                deletions, insertions = change.deleted._codes(name), change.inserted._codes(name)  # noqa: SLF001
                undone, restored = deletions & inserted[name], insertions & deleted[name]
                inserted[name] = (inserted[name] - undone) | (insertions - restored)
                deleted[name] = (deleted[name] - restored) | (deletions - undone)
        return Change(last.inserted._with_codes(inserted), last.deleted._with_codes(deleted), last.stats)  # noqa: SLF001
