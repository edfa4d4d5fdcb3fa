"""Relations that are stored by a scheme: how they are made, follow an update, and become plain tables again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from evermat.columns.schemes.interval_scheme import ClosedPairs, ClosedRelation
from evermat.columns.state.datasets import facts_in
from evermat.columns.state.views import InSchemes, View
from evermat.columns.storage.arrays import NO_ROWS, Batch, Nodes, Rows
from evermat.columns.storage.selection import BEFORE, GAINED, KEPT
from evermat.columns.storage.table import ADDED, MATERIALISED, Table
from evermat.language import Atom, Closure, Copy

if TYPE_CHECKING:
    from evermat.columns.graph.closure_module import ClosureModule


class StoredClosure:
    """A closure whose members are stored as intervals; see `algebra.Stored`.

    Invariant between updates: the edges are those of the members' inputs, which are the rows of their tables, and those of relations below, as steps
    or because the module says that they are copied: then the rules that copy them are not rules of the stratum.
    """

    def __init__(self, module: ClosureModule, tables: Mapping[str, Table], order: Nodes | None = None) -> None:
        """The members are read from intervals from now on; `order`: of all nodes, if it is known."""
        self.module = module
        self.pairs = _read_from_intervals(module, tables, order)

    def is_like(self, closure: Closure) -> bool:
        """Whether another closure, of the same relations, has the same pairs."""
        own = self.module.closure
        return (own.members, own.bases, own.symmetric) == (closure.members, closure.bases, closure.symmetric)

    @property
    def copied(self) -> list[str]:
        """The rules that are taken for granted, as text."""
        return [str(copy.rule) for copy in self.module.copies]

    def shared_with(self, module: ClosureModule, copies: tuple[Copy, ...]) -> StoredClosure:
        """The same pairs for the same closure of another program, in which the rules that copy are these."""
        module.edges, module.copies = self.module.edges, copies
        shared = copy(self)
        shared.module = module
        return shared

    @property
    def relations(self) -> Collection[str]:
        return self.module.names

    def follow(self, update: Any, gone: Any, come: Any) -> None:
        module, edges = self.module, self.module.edges
        update.keep(self.pairs)
        edges.noted = update.journal.note
        lost, gained = update.overdeleted - update.added, update.added - update.overdeleted
        deleted = np.concatenate([module.remove(lost), module.remove(gone, below=True)])
        inserted = np.concatenate([module.insert(gained), module.insert(come, below=True)])
        # What was deleted and inserted again has not changed.
        both = np.intersect1d(deleted, inserted)
        self.pairs.change(_without(inserted, both), _without(deleted, both))


class RoundsOfClosure:
    """A closure that other recursive rules of its stratum take part in, whose members are stored as intervals; see `algebra.Module`.

    The paper's three steps: facts that other rules derive are scheduled as inputs, which are rows; `add` derives what follows from them, as
    Δ, which rules read from the intervals; and merges it when it is called again, after all others have had their turn.
    In an update the stratum is computed again from scratch: what is still connected is not proved by it, for its edges may depend on it.
    """

    only_recomputed = True
    is_valid = True

    def __init__(self, module: ClosureModule, tables: Mapping[str, Table]) -> None:
        self.module, self._tables = module, tables
        self.closure, self.names, self.reads = module.closure, module.names, module.reads
        self.pairs = _read_from_intervals(module, tables)

    def begin(self) -> None:
        self.pairs.begin_rounds({KEPT: MATERIALISED, GAINED: MATERIALISED | ADDED}, NO_ROWS)

    def clear(self) -> None:
        """Keeps its facts: others read them."""

    def rebuild(self, external: Any, present: Any) -> None:
        """Is always valid."""

    def during(self, update: Any, gone: Any, come: Any) -> Any:
        del update, gone, come
        raise AssertionError(f"{sorted(self.names)} can only be recomputed")

    def recomputed(self, update: Any, facts: Any) -> RoundsOfClosure:
        """Has no facts from now on, and then those that are derived again; the old ones are there until the update is over."""
        module, edges = self.module, self.module.edges
        update.keep(self.pairs)
        edges.noted = update.journal.note
        before = edges.everything()
        self.pairs.begin_rounds({KEPT: facts.bit, GAINED: facts.bit | ADDED}, before)
        self.pairs.next_round(NO_ROWS)
        self.pairs.change(NO_ROWS, edges.remove_all())
        module.forget_below()
        return self

    def add(self, take: Any, present: Any, delta: Any) -> View:
        del take  # what is connected has no rows
        inserted = np.concatenate([self.module.load_below(present), self.module.insert(delta)])
        self.pairs.next_round(inserted)
        return InSchemes(self._tables, self.names)

    def settle(self) -> None:
        self.pairs.end_rounds()


def _read_from_intervals(
    module: ClosureModule, tables: Mapping[str, Table], order: Nodes | None = None
) -> ClosedPairs:  # fmt: skip
    """Makes intervals of the edges of a closure, from which its members are read from now on."""
    pairs = ClosedPairs(module.edges, order)
    for member in module.closure.members:
        flipped = member.flipped != module.edges.reverse
        tables[member.relation].scheme = ClosedRelation(pairs, flipped=flipped)
    return pairs


def _without(rows: Rows, others: Rows) -> Rows:
    return np.setdiff1d(rows, others).astype(np.int32)


def expand(table: Table) -> int:
    """Gives every fact of a relation a row, which is in I, and takes the scheme away; how many facts there are."""
    assert table.scheme is not None
    count = give_rows(table, table.scheme.scan(BEFORE, 1 << 16))
    table.scheme = None
    return count


def give_rows(table: Table, facts: Iterable[Batch]) -> int:
    """Gives facts rows, which are in I; how many rows of I there are then."""
    for batch in facts:
        table.set_bits(table.locate(batch), MATERIALISED)
    return int(np.count_nonzero(table.state[: table.count] & np.uint16(MATERIALISED)))


def copied_facts(copy: Copy, present: View) -> Iterator[Batch]:
    """What a rule copies into a member of a closure, as facts of that member."""
    source = copy.rule.body[0]
    assert isinstance(source, Atom)
    for batch in facts_in(present, source.relation.name):
        yield batch if source.terms == copy.rule.head.terms else np.ascontiguousarray(batch[::-1])
