"""The modules of a stratum in an update, and insertion by them, which DRed^c-Mod and B/F^c-Mod have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evermat.algebra import ModuleUpdate, StratumRules, Update, View, WorkingSet
from evermat.reasoning.insertion import Views
from evermat.reasoning.modular.exchange import exchange
from evermat.reasoning.modular.seminaive_module import SeminaiveUpdate


class Modules:
    """The modules of a stratum in an update: the closures, and the seminaive one if there are rules for it."""

    def __init__(self, update: Update, views: Views, stratum: StratumRules, counter: Any | None) -> None:
        self._update, self._views = update, views
        self.closures: list[ModuleUpdate] = []
        for closure in stratum.closures:
            if not closure.is_valid:
                self._rebuild(stratum, closure)
            self.closures.append(closure.during(update, views.gone, views.come))
        self._seminaive = SeminaiveUpdate(update, views, stratum, self.note, counter) if stratum.plain.heads else None
        self.all: list[Any] = [*self.closures, *([self._seminaive] if self._seminaive else [])]

    def _rebuild(self, stratum: StratumRules, closure: Any) -> None:
        """Finds the external facts of a closure in the old materialisation."""
        own = stratum.stratum
        external = self._update.new("X")
        external.add((self._update.before & self._update.nonrecursive_counter.positive).at(own))
        external.add(stratum.plain.consequences(self._views.old))
        closure.rebuild(external, self._views.old)
        self._update.release(external)

    def note(self, facts: View) -> None:
        """Tells closures of facts that other rules derive; of new ones they learn when these are added."""
        known = facts & self._views.new
        for closure in self.closures:
            closure.note(known)

    def insert(self, found: WorkingSet, make: Callable[[ModuleUpdate, WorkingSet], None]) -> None:
        """Adds facts, those that each module makes by itself, and all that follows to A.

        What a module has made it need not be given; but a fact that others derive as well is external all the same.
        """
        update, new = self._update, self._views.new
        self.note(found)
        made: dict[ModuleUpdate, View] = {}
        others: dict[ModuleUpdate, View] = dict.fromkeys(self.all, found.listed())
        for module in self.all:
            own = update.new("Δi")
            make(module, own)
            found.add(own)
            made[module] = own.listed()
            update.release(own)
            for other in self.all:
                if other is not module:
                    others[other] = others[other] | made[module]
        for closure in self.closures:
            closure.note((made[closure] & others[closure]).listed())

        def add(module: ModuleUpdate, given: View) -> View:
            update.next_round()
            found.add(module.add(given))
            return take()

        def take() -> View:
            fresh = update.added.add((found - new).listed())
            update.check_facts()
            return fresh

        first = take()
        exchange(self.all, {module: (first - made[module]).listed() for module in self.all}, add)
        update.meet(found)

    def finish(self) -> None:
        if self._seminaive is not None:
            self._seminaive.finish()
