"""The half of an in-memory state that knows storage schemes: which relations have one, and how they get, share and lose it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Self

from evermat.algebra import Counters
from evermat.columns.equality.equality_state import Representatives
from evermat.columns.evaluation.rules import Rules
from evermat.columns.schemes.lifecycle import copied_facts, expand, give_rows
from evermat.columns.schemes.policy import Decision
from evermat.columns.state.growing_sets import CountedSet, GrowingSet
from evermat.columns.state.stratum import StratumRules
from evermat.columns.state.views import View
from evermat.columns.storage.table import Table
from evermat.engine import BaseState
from evermat.language import shared_relations


class SchemeStorage(BaseState[GrowingSet, CountedSet, StratumRules, Representatives]):
    """A state some of whose relations may be stored by schemes.

    Invariant: the table of a relation with a scheme holds its inputs; all its other facts follow from them and from relations that are complete
    before its stratum is.
    """

    tables: dict[str, Table]
    schemes: str

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

    def share_schemes(self, kept: Self) -> None:
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
