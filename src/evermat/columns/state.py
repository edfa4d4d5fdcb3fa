"""The in-memory state: tables, E, I and counters, and the stratum's rules compiled over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evermat.algebra import Counters
from evermat.columns.closures import closure_modules
from evermat.columns.counter import Counter as RowCounter
from evermat.columns.dictionary import Dictionary
from evermat.columns.levels import Buffers
from evermat.columns.operations import Sink
from evermat.columns.pairs import InMemory
from evermat.columns.pipeline import Store
from evermat.columns.rules import Bag, Rules
from evermat.columns.run import Jobs, Run
from evermat.columns.table import Batch, Rows, Table
from evermat.columns.views import Dataset, Fresh, View
from evermat.program.difference import changed_rules, shared_relations
from evermat.program.model import Program
from evermat.program.strata import Stratum

EXPLICIT, MATERIALISED = 1, 2  # bits of the state word

Weights = npt.NDArray[np.int64]


class GrowingSet(Dataset):
    """A dataset to which facts are only added, as the materialisation during a run from scratch.

    Invariant: when facts are added to it, every row of the tables concerned is in it already, or is listed by the view that is
    added. So the new facts are the rows appended meanwhile, and nobody needs to look at states.
    """

    def __init__(self, name: str, bit: int, tables: Mapping[str, Table], jobs: Jobs) -> None:
        super().__init__(name, bit, tables)
        self._jobs = jobs
        self._sinks: dict[str, Sink] = {relation: self._sink(relation) for relation in tables}

    def add(self, facts: View | Bag) -> Fresh:
        """Adds facts and hands back the new ones."""
        if isinstance(facts, Bag):
            facts.announce(self.tables)
            facts.read(self._sinks, counted=False)
        ranges: dict[str, tuple[int, int]] = {}
        for name in facts.heads if isinstance(facts, Bag) else facts.names:
            known, rows = self.sizes[name], self.tables[name].count
            if known < rows:
                if not isinstance(facts, Bag):
                    self.add_rows_from(name, known)  # a bag's rows got their bit when they were appended
                self.sizes[name] = rows
                ranges[name] = (known, rows)
        return Fresh(self.tables, ranges)

    def _sink(self, name: str) -> Sink:
        table, bit, jobs = self.tables[name], self.bit, self._jobs

        def sink(batch: Batch, n: int, weights: Weights | None) -> None:
            del weights
            table.add_new(batch, bit, n)
            jobs.run.derived(n)

        return sink


class CountedSet:
    """A derivation counter for every fact."""

    def __init__(self, tables: Mapping[str, Table], jobs: Jobs) -> None:
        self.tables, self._jobs = tables, jobs
        self.counters = {name: RowCounter(table) for name, table in tables.items()}
        self._sinks: dict[str, Sink] = {name: self._sink(name) for name in tables}

    def add(self, facts: View | Bag) -> View:
        """Counts every occurrence; hands back those facts that were not in any set before, and the view itself."""
        if isinstance(facts, Bag):
            before = {name: self.tables[name].count for name in facts.heads}
            facts.read(self._sinks, counted=True)
            ranges = {n: (first, self.tables[n].count) for n, first in before.items() if first < self.tables[n].count}
            return Fresh(self.tables, ranges)
        for name in facts.names:
            lo, hi, truth, _ = facts.select(name)
            for rows in self.tables[name].scan(truth, lo, hi):
                self.counters[name].add(rows)
        return facts

    def _sink(self, name: str) -> Sink:
        counters, jobs = self.counters, self._jobs

        def sink(batch: Batch, n: int, weights: Weights | None) -> None:
            counters[name].add_tuples(batch, n, weights)
            jobs.run.derived(n if weights is None else int(weights.sum()))

        return sink


class StratumRules:
    """The rules of one stratum."""

    def __init__(self, stratum: Stratum, store: Store) -> None:
        self.stratum = stratum
        own = frozenset(stratum.relations)
        self.nonrecursive = Rules(stratum.nonrecursive, own, store)
        self.recursive = Rules(stratum.recursive, own, store)
        self.plain = Rules(stratum.plain, own, store)
        self.closures = closure_modules(stratum.closures, InMemory(store), self.plain.heads)


class State:
    """All facts of a program, in memory."""

    def __init__(self, program: Program, run: Run, kept: State | None = None) -> None:
        """An empty state, or one that shares the facts of `kept`: the state of the program before a change of rules."""
        self.program = program
        self.dictionary: Dictionary = Dictionary() if kept is None else kept.dictionary
        self.tables = {name: Table(relation.arity) for name, relation in program.relations.items()}
        if kept is not None:
            self.tables |= {name: kept.tables[name] for name in shared_relations(self.program, kept.program)}
        self.jobs = Jobs(run)
        self.explicit = GrowingSet("E", EXPLICIT, self.tables, self.jobs)
        self.materialised = GrowingSet("I", MATERIALISED, self.tables, self.jobs)
        self.nonrecursive_counter = CountedSet(self.tables, self.jobs)
        self.recursive_counter = CountedSet(self.tables, self.jobs)
        self._store = Store(self.tables, self.dictionary, Buffers(), self.jobs)
        self.strata: Sequence[StratumRules] = [StratumRules(stratum, self._store) for stratum in program.strata]
        self.counters: dict[Stratum, Counters] = dict.fromkeys(program.strata, Counters.NONE)
        self._work: dict[Stratum, int] = {}
        if kept is not None:
            self._take_over(kept)

    def _take_over(self, kept: State) -> None:
        """Shares the facts and counters of a state; counters stay valid for strata that are the same."""
        for name in shared_relations(self.program, kept.program):
            self.explicit.sizes[name] = kept.explicit.sizes[name]
            self.materialised.sizes[name] = kept.materialised.sizes[name]
            self.nonrecursive_counter.counters[name] = kept.nonrecursive_counter.counters[name]
            self.recursive_counter.counters[name] = kept.recursive_counter.counters[name]
        self._work = dict(kept._work)
        valid = {stratum.signature: counters for stratum, counters in kept.counters.items()}
        for stratum in self.counters:
            self.counters[stratum] = valid.get(stratum.signature, Counters.NONE)

    def changed_rules(self, kept: State) -> tuple[Rules, Rules]:
        """The rules of `kept` that this state's program has no more, and those that it has in addition."""
        gone, come = changed_rules(kept.program, self.program)
        before = replace(
            self._store, tables={**self.tables, **kept.tables}
        )  # names of hidden relations may be used anew
        return Rules(gone, frozenset(), before), Rules(come, frozenset(), self._store)

    def restore(self, name: str, batch: Batch, *, distinct: bool) -> Rows:
        """Rows for facts that were stored; `distinct` if none of them is there yet. Their states are the caller's to set."""
        table = self.tables[name]
        if not distinct:
            return table.locate(batch)
        first, count = table.add_new(batch, 0)
        return np.arange(first, first + count, dtype=np.int32)

    def count_facts(self) -> None:
        """Counts the facts of E and I, after states have been set from outside."""
        for dataset in (self.explicit, self.materialised):
            for name, table in self.tables.items():
                inside = table.state[: table.count] & np.uint16(dataset.bit)
                dataset.sizes[name] = int(np.count_nonzero(inside))

    def load(self, name: str, batch: Batch) -> None:
        """Adds explicit facts before the first run."""
        table = self.tables[name]
        table.add_new(batch, EXPLICIT)
        self.explicit.sizes[name] = table.count

    def record_counters(self, stratum: Stratum, valid: Counters) -> None:
        """Notes which counters of a stratum are valid from now on."""
        self.counters[stratum] = valid
        for name in stratum.relations:
            self.tables[name].end_tally()

    def valid_counters(self, stratum: Stratum) -> Counters:
        """Which counters of a stratum are valid."""
        return self.counters[stratum]

    def record_work(self, stratum: Stratum, instances: int) -> None:
        """Notes how many rule instances there were when a stratum was derived from scratch."""
        self._work[stratum] = instances

    def work(self, stratum: Stratum) -> int:
        """How many rule instances it takes, about, to derive a stratum from scratch; at least one for each fact."""
        return max(self._work.get(stratum, 0), sum(map(self.materialised.count, stratum.relations)))

    def reset_counters(self, stratum: Stratum) -> None:
        """Sets the counters of a stratum to 0; none is valid then."""
        self.counters[stratum] = Counters.NONE
        for counted in (self.nonrecursive_counter, self.recursive_counter):
            for name in stratum.relations:
                counted.counters[name].clear()

    @property
    def row_count(self) -> int:
        """How many facts have a row, in whatever set they are."""
        return sum(table.count for table in self.tables.values())

    @property
    def nbytes(self) -> int:
        """Bytes in use by tables, indexes and counters."""
        counters = (self.nonrecursive_counter.counters, self.recursive_counter.counters)
        return sum(t.nbytes for t in self.tables.values()) + sum(c.nbytes for kind in counters for c in kind.values())
