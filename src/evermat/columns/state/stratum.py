"""The rules of one stratum over columns, and how its relations are stored."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from evermat.columns.equality.equality_state import Representatives
from evermat.columns.evaluation.buffers import EvaluationContext
from evermat.columns.evaluation.rules import Rules
from evermat.columns.graph.closure_access import TableAccess
from evermat.columns.graph.closure_module import ClosureModule, closure_modules
from evermat.columns.schemes.interval_scheme import ClosedPairs
from evermat.columns.schemes.lifecycle import RoundsOfClosure, StoredClosure
from evermat.columns.schemes.policy import (
    PLAIN,
    Decision,
    decide_closure,
    decide_union,
    look_both_ways,
    may_be_large,
)
from evermat.columns.schemes.union_scheme import UnionOfRelations
from evermat.columns.state.views import View
from evermat.engine import BaseStratumRules, NormalRules
from evermat.language import Copy, Program, Rule, Stratum, Union, find_copies, find_unions, possible_rule

if TYPE_CHECKING:
    from evermat.columns.state.state import State


class StratumRules(BaseStratumRules[Rules]):
    """The rules of one stratum.

    What a storage scheme derives is not a rule here: of a stored closure only nonrecursive rules are left that do more than copy, and so of
    a relation that is stored as a union. All of them derive inputs.
    """

    def __init__(
        self, stratum: Stratum, context: EvaluationContext, representatives: Representatives | None = None
    ) -> None:
        self._context = context
        super().__init__(stratum, None if representatives is None else representatives.union_find.normal)
        self.stores: list[StoredClosure] = []
        self.decisions: dict[str, Decision] = {}  # how relations for which there is a scheme are stored
        self.modules = closure_modules(stratum.closures, TableAccess(context), self.plain.heads)
        self.closures: list[ClosureModule | RoundsOfClosure] = [*self.modules]
        if representatives is not None:
            self.nonrecursive_written = self._rules(stratum.nonrecursive)
            possible = self._rules([possible_rule(rule) for rule in stratum.rules])
            normal = representatives.union_find.normal
            self.possible = NormalRules(possible, normal) if stratum.equality else self.everything

    def _rules(self, rules: Sequence[Rule]) -> Rules:
        return Rules(rules, frozenset(self.stratum.relations), self._context)

    def refresh(self) -> bool:
        changed = super().refresh()
        self.possible.refresh()
        return changed

    # ── Storage ──────────────────────────────────────────────────────────────────────────────────────────────────

    def settle_storage(self, state: State) -> None:
        """Decides which relations are stored as unions."""
        for union in self.unions:
            if _may_be_stored(state.program, union.relation):
                made = decide_union(state.schemes, state.program, union, state.tables)
                self.decisions[union.relation] = made
                if made.stored:
                    self.store_union(union)

    def store_union(self, union: Union) -> None:
        """Stores a relation as a union from now on."""
        tables = self._context.tables
        scheme = UnionOfRelations(tables[union.relation], {name: tables[name] for name in union.sources})
        tables[union.relation].scheme = scheme
        left = [rule for rule in self.nonrecursive.rules if rule not in union.rules]
        self.nonrecursive = self._rules(left)

    def hold_back_copies(self, state: State) -> None:
        """Leaves out the rules that copy facts into its closure, if that may be stored as intervals, which would not need their rows."""
        members = {copy.rule.head.relation.name for copy in self.copies}
        if state.schemes == PLAIN or not all(_may_be_stored(state.program, name) for name in members):
            return
        if may_be_large(sum(state.materialised.about(copy.source.relation) for copy in self.copies)):
            self._hold_back(self.copies)

    def _hold_back(self, copies: tuple[Copy, ...]) -> None:
        """Rules that copy facts into its closure are the scheme's business from now on."""
        if copies:
            held = {copy.rule for copy in copies}
            self.modules[0].copies = copies
            self.nonrecursive = self._rules([rule for rule in self.nonrecursive.rules if rule not in held])

    def give_back_copies(self) -> Rules:
        """The rules that were held back, which are rules like others again: what they derive has no rows yet."""
        copied = [copy.rule for module in self.modules for copy in module.copies]
        if copied:
            self.modules[0].spell_out_copies()
            self.nonrecursive = self._rules([*self.nonrecursive.rules, *copied])
        return self._rules(copied)

    def store_closure(self, state: State, external: View) -> bool:
        """Decides whether closures are stored as intervals. If the stratum is nothing but one that is, all is done."""
        program, tables, alone = state.program, state.tables, self.is_one_closure
        if not alone and self._context.jobs.run.room is not None:
            return False  # it might be left in the middle, to go on elsewhere
        for number, module in enumerate(self.modules):
            if not all(_may_be_stored(program, name) for name in module.names):
                continue
            made, order = Decision(False, "as asked for"), None
            if state.schemes != PLAIN:
                module.rebuild(external, state.materialised)
                made, order = decide_closure(program, module.closure, module.edges, alone=alone)
            self.decisions |= dict.fromkeys(sorted(module.names), made)
            if made.stored and alone:
                if made.reverse:
                    module.rebuild(external, state.materialised, reverse=True)
                self.hold(StoredClosure(module, tables, None if made.reverse else order))
                return True
            if made.stored:
                module.clear()
                self.closures[number] = RoundsOfClosure(module, tables)
        return False

    def hold(self, stored: StoredClosure) -> None:
        """The rules of the closure are the scheme's business from now on."""
        self.stores.append(stored)
        self.closures = []
        self.recursive = self.plain = self._rules(())
        self._hold_back(stored.module.copies)

    def unstore(self, relations: Collection[str]) -> None:
        """Relations have tables again: their rules are rules like others."""
        self.decisions |= {name: Decision(False, "its rules have changed") for name in relations}
        self.recursive = self._rules(self.stratum.recursive)
        self.stores, self.closures = [], [*self.modules]
        for module in self.modules:
            if module.edges.reverse or module.copies:
                module.copies = ()
                module.clear()  # it finds its facts again
        copies = {rule for union in self.unions if union.relation in self.unions_stored for rule in union.rules}
        self.nonrecursive = self._rules([rule for rule in self.stratum.nonrecursive if rule not in copies])

    @cached_property
    def copies(self) -> tuple[Copy, ...]:
        """The rules that copy facts into its closure, if it is nothing but one."""
        return find_copies(self.modules[0].closure, self.stratum.nonrecursive) if self.is_one_closure else ()

    @property
    def unions(self) -> tuple[Union, ...]:
        """Relations that might be stored as unions."""
        return () if self.stratum.recursive else find_unions(self.stratum.nonrecursive)

    @property
    def unions_stored(self) -> set[str]:
        """Relations that are."""
        tables = self._context.tables
        return {union.relation for union in self.unions if tables[union.relation].scheme is not None}

    @property
    def counts_copies(self) -> bool:
        """Whether counters count what all rules derive: rules that storage schemes take for granted derive nothing that is counted."""
        return not self.unions_stored and not any(module.copies for module in self.modules)

    @property
    def is_one_closure(self) -> bool:
        """Whether its recursive rules are one closure and nothing else."""
        return len(self.modules) == 1 and not self.plain.rules

    @property
    def rounds(self) -> list[RoundsOfClosure]:
        """Closures that are stored as intervals although other recursive rules take part in them."""
        return [closure for closure in self.closures if isinstance(closure, RoundsOfClosure)]

    @property
    def closed_pairs(self) -> list[ClosedPairs]:
        """What is stored as intervals."""
        return [stored.pairs for stored in self.stores] + [rounds.pairs for rounds in self.rounds]

    def restore(self, stored: Collection[str], copied: Collection[str], facts: View, decision: Decision) -> None:
        """Relations whose inputs are there again have their schemes again; what some rules, given as text, copied is not among the inputs."""
        tables = self._context.tables
        for number, module in enumerate(self.modules):
            if module.names.issubset(stored):
                if self.is_one_closure:
                    self._hold_back(tuple(copy for copy in self.copies if str(copy.rule) in copied))
                module.rebuild(facts.at(self.stratum), facts)
                self.decisions |= dict.fromkeys(sorted(module.names), decision)
                if self.is_one_closure:
                    reverse, order = look_both_ways(module.closure, module.edges)
                    if reverse:
                        module.rebuild(facts.at(self.stratum), facts, reverse=True)
                    self.hold(StoredClosure(module, tables, None if reverse else order))
                else:
                    self.closures[number] = RoundsOfClosure(module, tables)
        for union in self.unions:
            if union.relation in stored:
                self.store_union(union)
                self.decisions[union.relation] = decision

    def forget_plans(self) -> None:
        """Plans are made again when they are needed: relations are stored in another way."""
        for rules in (self.written, self.nonrecursive, self.recursive, self.plain):
            rules.forget_plans()


def _may_be_stored(program: Program, name: str) -> bool:
    """Whether a relation may have a scheme: of forbidden facts each is wanted, and equal terms are another matter."""
    return not program.rewriting and not program.relations[name].forbidden
