"""The in-memory state: tables, E, I and counters, and the stratum's rules compiled over them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np

from evermat.algebra import Counters
from evermat.columns.equality.equality_state import Representatives
from evermat.columns.evaluation.buffers import Buffers, EvaluationContext
from evermat.columns.evaluation.rules import Rules
from evermat.columns.schemes.lifecycle import copied_facts, expand, give_rows
from evermat.columns.schemes.policy import AUTO_SCHEMES, Decision
from evermat.columns.state.datasets import CountedSet, GrowingSet
from evermat.columns.state.stratum import StratumRules
from evermat.columns.state.version import Version
from evermat.columns.storage.arrays import Batch, Rows
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.latch import Latch
from evermat.columns.storage.table import EXPLICIT, MATERIALISED, NORMAL, Table
from evermat.engine import BaseState, Run
from evermat.language import Program, Stratum, changed_rules, shared_relations

if TYPE_CHECKING:
    from evermat.columns.equality.equality_update import Materialised


class State(BaseState[GrowingSet, CountedSet, StratumRules, Representatives]):
    """All facts of a program, in memory.

    Invariants between updates: a row is in I iff its state has MATERIALISED, and in E iff it has EXPLICIT (or NORMAL, where equal terms are
    represented by one); `sizes` of each set are the numbers of such rows. The table of a relation with a scheme holds its inputs; all its other
    facts follow from them and from relations that are complete before its stratum is.
    """

    sums_counts = False
    checks_equality = True  # in memory it costs little to look for a proof

    def __init__(self, program: Program, run: Run, kept: State | None = None, *, schemes: str = AUTO_SCHEMES) -> None:
        """An empty state, or one that shares the facts of `kept`: the state of the program before a change of rules."""
        super().__init__(program, run)
        self.schemes: str = schemes if kept is None else kept.schemes
        self.dictionary: Dictionary = Dictionary() if kept is None else kept.dictionary
        self._dead = 0  # rows in no set when the last update began
        self.latch: Latch = Latch() if kept is None else kept.latch
        self._current: Callable[[], Version | None] = lambda: (
            None
        )  # the version that the facts are now, if a reader holds it
        self._held: Version | None = None
        self.tables = {name: Table(relation.arity, latch=self.latch) for name, relation in program.relations.items()}
        if kept is not None:
            self.tables |= {name: kept.tables[name] for name in shared_relations(self.program, kept.program)}
        self.representatives = None
        self.given = self.explicit = GrowingSet("E", EXPLICIT, self.tables, self.jobs)
        if program.rewriting:
            self.representatives = Representatives(program, self.tables, self.dictionary)
            self.explicit = GrowingSet("E", NORMAL, self.tables, self.jobs)
            if kept is not None and kept.representatives is not None:
                self.representatives.share(kept.representatives)
        self.materialised = GrowingSet("I", MATERIALISED, self.tables, self.jobs)
        self.nonrecursive_counter = CountedSet(self.tables, self.jobs)
        self.recursive_counter = CountedSet(self.tables, self.jobs)
        self._context = EvaluationContext(self.tables, self.dictionary, Buffers(), self.jobs)
        self.strata = [StratumRules(stratum, self._context, self.representatives) for stratum in program.strata]
        if kept is not None:
            self._take_over(kept)

    def _take_over(self, kept: State) -> None:
        """Shares the facts and counters of a state; counters stay valid for strata that are the same."""
        shared = set(shared_relations(self.program, kept.program))
        self._share_schemes(kept, shared)
        for name in shared:
            self.explicit.sizes[name] = kept.explicit.sizes[name]
            self.given.sizes[name] = kept.given.sizes[name]
            self.materialised.sizes[name] = kept.materialised.sizes[name]
            self.nonrecursive_counter.counters[name] = kept.nonrecursive_counter.counters[name]
            self.recursive_counter.counters[name] = kept.recursive_counter.counters[name]
        self.share_counters(kept)

    def changed_rules(self, kept: State) -> tuple[Rules, Rules]:
        """The rules of `kept` that this state's program does not have any more, and those that it has in addition."""
        removed, added = changed_rules(kept.program, self.program)
        # The same name may be another hidden relation: removed rules mean the old one.
        before = replace(self._context, tables={**self.tables, **kept.tables})
        return Rules(removed, frozenset(), before), Rules(added, frozenset(), self._context)

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
            for name in self.tables:
                dataset.recount(name)

    def load(self, name: str, batch: Batch) -> None:
        """Adds explicit facts before the first run."""
        table = self.tables[name]
        table.add_new(batch, EXPLICIT if self.representatives is None else EXPLICIT | NORMAL)
        self.given.sizes[name] = self.explicit.sizes[name] = table.count

    def grown(self, stratum: StratumRules) -> Materialised:
        from evermat.columns.equality.equality_update import Materialised  # noqa: PLC0415  (it is made of states)

        return Materialised(self, stratum)

    def put_last(self, name: str, rows: Rows) -> None:
        """Moves some given facts behind all others, before anything is derived: from there on rows are new facts only."""
        table = self.tables[name]
        first = np.ones(table.count, np.bool_)
        first[rows] = False
        others = np.flatnonzero(first).astype(np.int32)
        facts = table.take(np.concatenate([others, rows]))
        table.clear()
        table.add_new(facts, EXPLICIT | NORMAL)
        self.materialised.firsts[name] = self.explicit.firsts[name] = len(others)

    def load_names(self) -> None:
        """Adds, after all explicit facts were loaded, a name for every term, if rules ask for names."""
        if self.representatives is not None:
            given = {name: [self.given.rows(name)] for name in self.tables}
            for name, rows in self.representatives.names_of(given, self.program.rules).items():
                for some in rows:
                    self.tables[name].set_bits(some, EXPLICIT | NORMAL)
                    self.given.sizes[name] = self.explicit.sizes[name] = self.tables[name].count

    def record_counters(self, stratum: Stratum, valid: Counters) -> None:
        super().record_counters(stratum, valid)
        for name in stratum.relations:
            self.tables[name].end_tally()

    @property
    def row_count(self) -> int:
        """Number of facts that have a row, in whatever set they are, without those that were in none when the last update began."""
        return self.stored_rows - self._dead

    @property
    def stored_rows(self) -> int:
        """Number of all rows, also of those that are left from deleted facts."""
        return sum(table.count for table in self.tables.values())

    @property
    def live_rows(self) -> int:
        """Number of rows in E or I between updates; where equal terms are represented by one, an upper bound."""
        live = sum(self.materialised.sizes.values())
        # Given facts that are not in normal form are not in I.
        return live if self.given is self.explicit else min(live + sum(self.given.sizes.values()), self.stored_rows)

    def leave_out_dead_rows(self) -> None:
        """Limits do not count the rows that are in no set now, as an update begins."""
        self._dead = self.stored_rows - self.live_rows

    @property
    def nbytes(self) -> int:
        counters = (self.nonrecursive_counter.counters, self.recursive_counter.counters)
        stored = sum(pairs.nbytes for rules in self.strata for pairs in rules.closed_pairs)
        tables = sum(t.nbytes for t in self.tables.values())
        return tables + stored + sum(c.nbytes for kind in counters for c in kind.values())

    # ── Readers ──────────────────────────────────────────────────────────────────────────────────────────────────

    def version(self) -> Version:
        """The facts as the last update left them, for readers; valid as long as it is referred to."""
        version = self._held or self._current()
        if version is None:
            with self.latch.lock:
                version = self._held or self._current()
                if version is None:
                    version = Version(self)
                    self.latch.pin(version)
                    self._current = ref(version)
        return version

    def hold(self) -> None:
        """Gives readers this version until an update of this state begins: the tables may become those of another one meanwhile."""
        version = self.version()
        with self.latch.lock:
            version.capture(self.tables)
            self._held = version

    def begin_update(self) -> None:
        """An update of this state begins: no other one has its tables."""
        self.latch.begin()
        self._held = None

    def leave_to_readers(self, changed: Collection[str]) -> None:
        """Ahead of changing E and I for good: versions that readers hold keep some relations as they are. The caller holds the latch."""
        self._current = lambda: None
        for version in self.latch.pinned():
            version.capture(changed)
            for name in changed:
                table = self.tables[name]
                if version.tables.refer_to(table, name):
                    table.copy_states()

    # ── Storage schemes ──────────────────────────────────────────────────────────────────────────────────────────

    def _share_schemes(self, kept: State, shared: set[str]) -> None:
        """After a change of rules, relations are stored as before where the same rules concern them; others get rows first."""
        new_closures = {rules.modules[0].names: rules for rules in self.strata if rules.is_one_closure}
        new_unions = {union.relation: (rules, union) for rules in self.strata for union in rules.unions}
        going_on: list[Callable[[], None]] = []
        for old in kept.strata:
            if old.rounds:
                kept.unstore(old, [name for one in old.rounds for name in sorted(one.names)])
            for stored in list(old.stores):
                rules = new_closures.get(stored.module.names)
                if rules and stored.is_like(rules.modules[0].closure) and shared >= stored.module.reads:
                    copies = {str(copy.rule): copy for copy in rules.copies if copy.source.relation in shared}
                    if not copies.keys() >= set(stored.copied):
                        kept.spell_out_copies(old)
                    taken = tuple(copies[text] for text in stored.copied)
                    going_on.append(partial(rules.hold, stored.shared_with(rules.modules[0], taken)))
                else:
                    kept.unstore(old, stored.relations)
            for union in old.unions:
                rules, now = new_unions.get(union.relation, (None, None))
                if union.relation not in old.unions_stored:
                    continue
                if rules and now and now.sources == union.sources and shared >= {*now.sources, now.relation}:
                    going_on.append(partial(rules.store_union, now))
                else:
                    kept.unstore(old, [union.relation])
        for go_on in going_on:
            go_on()
        decisions = {name: made for old in kept.strata for name, made in old.decisions.items()}
        for rules in self.strata:
            rules.decisions = {n: decisions[n] for n in rules.stratum.relations if n in decisions and n in shared}

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
