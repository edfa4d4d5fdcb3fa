"""The in-memory state: tables, E, I and counters, and the stratum's rules compiled over them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from evermat.algebra import Counters
from evermat.columns.equality.equality_state import Representatives
from evermat.columns.evaluation.buffers import Buffers
from evermat.columns.evaluation.operators import Sink
from evermat.columns.evaluation.pipeline import Store
from evermat.columns.evaluation.rules import Bag, Rules
from evermat.columns.schemes.lifecycle import copied_facts, expand, give_rows
from evermat.columns.schemes.policy import AUTO, Decision
from evermat.columns.state.stratum import StratumRules
from evermat.columns.state.views import Dataset, Fresh, Listed, View
from evermat.columns.storage.counter import Counter as RowCounter
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.selection import Selection
from evermat.columns.storage.table import EXPLICIT, MATERIALISED, NORMAL, Batch, Rows, Table
from evermat.engine.run import Jobs, Run
from evermat.language import Program, Stratum, changed_rules, shared_relations

Weights = npt.NDArray[np.int64]


class GrowingSet(Dataset):
    """A dataset to which facts are only added, as the materialisation during a run from scratch.

    Invariant: a fact that a bag derives is in it already, or has no row yet. So the new facts are the rows appended meanwhile, and nobody
    needs to look at states.
    """

    def __init__(self, name: str, bit: int, tables: Mapping[str, Table], jobs: Jobs) -> None:
        super().__init__(name, bit, tables)
        self._jobs = jobs
        self._sinks: dict[str, Sink] = {relation: self._sink(relation) for relation in tables}
        # During a materialisation from scratch: so many rows at the beginning of a table are surely not in it.
        self.firsts: dict[str, int] = {}

    def select(self, name: str) -> Selection:
        first, rows = self.firsts.get(name, 0), self.tables[name].count
        return Selection(first, rows) if first and self.sizes[name] == rows - first else super().select(name)

    def add(self, facts: View | Bag) -> View:
        """Adds facts and hands back the new ones."""
        if isinstance(facts, Bag):
            facts.announce(self.tables)
            before = {name: self.tables[name].count for name in facts.heads}
            facts.read(self._sinks, counted=False)  # rows get their bit when they are appended
            ranges = {n: (first, self.tables[n].count) for n, first in before.items() if first < self.tables[n].count}
            for name, (first, end) in ranges.items():
                self.sizes[name] += end - first
            return Fresh(self.tables, ranges)
        ranges, found = {}, {}
        for name in list(facts.names):
            selection = _as_range(facts, name)
            if selection.is_range and not selection.empty and not self._holds_any(name, selection):
                ranges[name] = (selection.lo, selection.hi)
                self.tables[name].set_bits_between(selection.lo, selection.hi, self.bit)
                self.sizes[name] += selection.hi - selection.lo
            elif not selection.empty:
                found[name] = [self.tables[name].claim(facts.rows(name), self.truth, self.bit)]
                self.sizes[name] += len(found[name][0])
        return Fresh(self.tables, ranges) if not found else Fresh(self.tables, ranges) | Listed(self.tables, found)

    def _holds_any(self, name: str, rows: Selection) -> bool:
        """Whether any of a range of rows is in the set."""
        return bool(self.sizes[name]) and bool((self.tables[name].state[rows.lo : rows.hi] & np.uint16(self.bit)).any())

    def remove(self, name: str, rows: Rows) -> None:
        """Takes rows of a relation out, which are in it."""
        self.tables[name].clear_bits(rows, self.bit)
        self.sizes[name] -= len(rows)

    def _sink(self, name: str) -> Sink:
        table, bit, jobs = self.tables[name], self.bit, self._jobs

        def sink(batch: Batch, n: int, weights: Weights | None) -> None:
            del weights
            table.add_new(batch, bit, n)
            jobs.run.derived(n)

        return sink


def _as_range(facts: View, name: str) -> Selection:
    """The rows of a relation in a view; as a range, if they follow one another."""
    selection = facts.select(name)
    if not selection.is_range and len(rows := facts.rows(name)) and bool((np.diff(rows) == 1).all()):
        return Selection(int(rows[0]), int(rows[-1]) + 1)
    return selection


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
            lo, hi, truth, listed = facts.select(name)
            for rows in self.tables[name].scan(truth, lo, hi) if listed is None else [listed]:
                self.counters[name].add(rows)
        return facts

    def _sink(self, name: str) -> Sink:
        counters, jobs = self.counters, self._jobs

        def sink(batch: Batch, n: int, weights: Weights | None) -> None:
            counters[name].add_tuples(batch, n, weights)
            jobs.run.derived(n if weights is None else int(weights.sum()))

        return sink


class State:
    """All facts of a program, in memory."""

    def __init__(self, program: Program, run: Run, kept: State | None = None, *, schemes: str = AUTO) -> None:
        """An empty state, or one that shares the facts of `kept`: the state of the program before a change of rules."""
        self.program = program
        self.schemes: str = schemes if kept is None else kept.schemes
        self.dictionary: Dictionary = Dictionary() if kept is None else kept.dictionary
        self.tables = {name: Table(relation.arity) for name, relation in program.relations.items()}
        if kept is not None:
            self.tables |= {name: kept.tables[name] for name in shared_relations(self.program, kept.program)}
        self.jobs = Jobs(run)
        self.representatives: Representatives | None = None
        self.given = self.explicit = GrowingSet("E", EXPLICIT, self.tables, self.jobs)
        if program.rewriting:
            self.representatives = Representatives(program, self.tables, self.dictionary)
            self.explicit = GrowingSet("E", NORMAL, self.tables, self.jobs)
            if kept is not None and kept.representatives is not None:
                self.representatives.share(kept.representatives)
        self.materialised = GrowingSet("I", MATERIALISED, self.tables, self.jobs)
        self.nonrecursive_counter = CountedSet(self.tables, self.jobs)
        self.recursive_counter = CountedSet(self.tables, self.jobs)
        self._store = Store(self.tables, self.dictionary, Buffers(), self.jobs)
        self.strata: Sequence[StratumRules] = [
            StratumRules(stratum, self._store, self.representatives) for stratum in program.strata
        ]
        self.counters: dict[Stratum, Counters] = dict.fromkeys(program.strata, Counters.NONE)
        self._work: dict[Stratum, int] = {}
        if kept is not None:
            self._take_over(kept)

    def _take_over(self, kept: State) -> None:
        """Shares the facts and counters of a state; counters stay valid for strata that are the same."""
        for name in shared_relations(self.program, kept.program):
            self.explicit.sizes[name] = kept.explicit.sizes[name]
            self.given.sizes[name] = kept.given.sizes[name]
            self.materialised.sizes[name] = kept.materialised.sizes[name]
            self.nonrecursive_counter.counters[name] = kept.nonrecursive_counter.counters[name]
            self.recursive_counter.counters[name] = kept.recursive_counter.counters[name]
        self._share_schemes(kept)
        self._work = dict(kept._work)
        valid = {stratum.signature: counters for stratum, counters in kept.counters.items()}
        for stratum in self.counters:
            self.counters[stratum] = valid.get(stratum.signature, Counters.NONE)

    # ── Storage ──────────────────────────────────────────────────────────────────────────────────────────────────

    def settle_storage(self, stratum: StratumRules) -> None:
        """Decides how the relations of a stratum are stored, as far as that does not depend on their facts."""
        stratum.store_unions(self.schemes, self.program)

    def hold_back_copies(self, stratum: StratumRules) -> None:
        """Leaves out rules of a stratum that only copy facts into a closure, if that may be stored as intervals."""
        stratum.hold_back_copies(self.schemes, self.program, self.materialised)

    def give_back_copies(self, stratum: StratumRules) -> Rules:
        """The rules that were left out, which are rules of the stratum again."""
        return stratum.give_back_copies()

    def store_closure(self, stratum: StratumRules, external: View) -> bool:
        """Whether what follows from some facts by the closure of a stratum is stored as intervals; then nothing is left to derive."""
        return stratum.store_closures(self.schemes, self.program, external, self.materialised)

    def _share_schemes(self, kept: State) -> None:
        """After a change of rules, relations are stored as before where the same rules concern them; others get rows first."""
        shared = set(shared_relations(self.program, kept.program))
        new_closures = {rules.modules[0].names: rules for rules in self.strata if rules.is_one_closure}
        new_unions = {union.relation: (rules, union) for rules in self.strata for union in rules.unions}
        going_on: list[Callable[[], None]] = []
        for old in kept.strata:
            if old.rounds:
                kept.unstore(old, [name for one in old.rounds for name in sorted(one.names)])
            for stored in list(old.stores):
                rules = new_closures.get(stored.module.names)
                if rules and stored.is_like(rules.modules[0].closure) and shared.issuperset(stored.module.reads):
                    copies = {str(copy.rule): copy for copy in rules.copies if copy.source.relation in shared}
                    if not copies.keys() >= set(stored.copied):
                        kept.spell_out_copies(old)
                    taken = tuple(copies[text] for text in stored.copied)
                    going_on.append(partial(rules.hold, stored.shared_with(rules.modules[0], taken)))
                else:
                    kept.unstore(old, stored.relations)
            for union in old.unions:
                rules, now = new_unions.get(union.relation, (None, None))
                if union.relation in old.unions_stored:
                    if (
                        rules
                        and now
                        and now.sources == union.sources
                        and shared.issuperset([union.relation, *now.sources])
                    ):
                        going_on.append(partial(rules.store_union, now))
                    else:
                        kept.unstore(old, [union.relation])
        for go_on in going_on:
            go_on()
        decisions = {name: made for old in kept.strata for name, made in old.decisions.items()}
        for rules in self.strata:
            rules.decisions = {n: decisions[n] for n in rules.stratum.relations if n in decisions and n in shared}
        for name in shared:
            self.materialised.sizes[name] = kept.materialised.sizes[name]

    sums_counts = False

    @property
    def stored_by_schemes(self) -> set[str]:
        """The relations that have no row for each fact."""
        return {name for name, table in self.tables.items() if table.scheme is not None}

    @property
    def copied_by_schemes(self) -> dict[str, list[str]]:
        """The rules, as text, that storage schemes take for granted: what they copy into relations has no rows. By relation."""
        copied: dict[str, list[str]] = {}
        for rules in self.strata:
            for stored in rules.stores:
                for copy in stored.module.copies:
                    copied.setdefault(copy.rule.head.relation.name, []).append(str(copy.rule))
        return copied

    def restore_schemes(self, stored: Collection[str], copied: Collection[str]) -> None:
        """Relations whose inputs were restored have their schemes again; what some rules, given as text, copied is not among the inputs."""
        for rules in self.strata:
            rules.restore(stored, copied, self.materialised, Decision(True, "as it was saved"))

    def needed_for(self, relations: Collection[str], stored: Collection[str]) -> set[str]:
        """Some relations, and those from which the facts of relations with schemes among them follow."""
        follows: dict[str, frozenset[str]] = {}
        for rules in self.strata:
            for module in rules.modules:
                read = module.reads.union(copy.source.relation for copy in rules.copies)
                follows |= dict.fromkeys(module.names & set(stored), read)
            follows |= {union.relation: frozenset(union.sources) for union in rules.unions if union.relation in stored}
        needed: set[str] = set()
        waiting = list(relations)
        while waiting:
            if (name := waiting.pop()) not in needed:
                needed.add(name)
                waiting += follows.get(name, ())
        return needed

    def unstore(self, rules: StratumRules, relations: Collection[str]) -> None:
        """Gives relations of a stratum tables with all their facts."""
        counted = rules.counts_copies
        for name in relations:
            self.materialised.sizes[name] = expand(self.tables[name])
        rules.unstore(relations)
        self.counters[rules.stratum] = min(
            self.counters[rules.stratum], Counters.NONRECURSIVE if counted else Counters.NONE
        )
        for stratum in self.strata:
            stratum.forget_plans()

    def spell_out_copies(self, rules: StratumRules) -> None:
        """Gives what is copied into the stored closure of a stratum rows, as other inputs have; the rules that copy it are rules like others."""
        for copy in rules.modules[0].copies:
            name = copy.rule.head.relation.name
            self.materialised.sizes[name] = give_rows(self.tables[name], copied_facts(copy, self.materialised))
        rules.give_back_copies()
        self.counters[rules.stratum] = Counters.NONE

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
        for dataset in {self.given, self.explicit, self.materialised}:
            for name, table in self.tables.items():
                inside = table.state[: table.count] & np.uint16(dataset.bit)
                dataset.sizes[name] = int(np.count_nonzero(inside))

    def load(self, name: str, batch: Batch) -> None:
        """Adds explicit facts before the first run."""
        table = self.tables[name]
        table.add_new(batch, EXPLICIT if self.representatives is None else EXPLICIT | NORMAL)
        self.given.sizes[name] = self.explicit.sizes[name] = table.count

    @property
    def equality(self) -> Any:
        """The state while terms become equal, from scratch."""
        from evermat.columns.equality.equality_update import StateEquality  # noqa: PLC0415  (it is made of states)

        return StateEquality(self)

    @property
    def checks_equality(self) -> bool:
        """In memory it costs little to look for a proof."""
        return True

    def count_facts_of(self, name: str) -> int:
        """How many facts of a relation there are, in all names."""
        if self.representatives is None:
            return self.materialised.count(name)
        return self.representatives.naming.count(self.materialised, name)

    def put_last(self, name: str, rows: Rows) -> None:
        """Lets some given facts stand behind all others, as long as nothing was derived: what follows is new facts only."""
        table = self.tables[name]
        first = np.ones(table.count, np.bool_)
        first[rows] = False
        others = np.flatnonzero(first).astype(np.int32)
        facts = table.take(np.concatenate([others, rows]))
        table.clear()
        table.add_new(facts, EXPLICIT | NORMAL)
        self.materialised.firsts[name] = self.explicit.firsts[name] = len(others)

    def load_names(self) -> None:
        """After all explicit facts are there: every term has its own name, if rules ask for names."""
        if self.representatives is not None:
            given = {name: [self.given.rows(name)] for name in self.tables}
            for name, rows in self.representatives.names_of(given, self.program.rules).items():
                for some in rows:
                    self.tables[name].set_bits(some, EXPLICIT | NORMAL)
                    self.given.sizes[name] = self.explicit.sizes[name] = self.tables[name].count

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
        return max(self._work.get(stratum, 0), sum(map(self.materialised.about, stratum.relations)))

    def reset_counters(self, stratum: Stratum) -> None:
        """Sets the counters of a stratum to 0; none is valid then."""
        self.counters[stratum] = Counters.NONE
        for counted in (self.nonrecursive_counter, self.recursive_counter):
            for name in stratum.relations:
                counted.counters[name].clear()

    def refresh_rules(self) -> None:
        """Brings all rules into normal form, if terms have other representatives than before."""
        if self.representatives is not None:
            for stratum in self.strata:
                stratum.refresh()

    @property
    def row_count(self) -> int:
        """How many facts have a row, in whatever set they are."""
        return sum(table.count for table in self.tables.values())

    @property
    def nbytes(self) -> int:
        """Bytes in use by tables, indexes and counters."""
        counters = (self.nonrecursive_counter.counters, self.recursive_counter.counters)
        stored = sum(pairs.nbytes for rules in self.strata for pairs in rules.closed_pairs)
        tables = sum(t.nbytes for t in self.tables.values())
        return tables + stored + sum(c.nbytes for kind in counters for c in kind.values())
