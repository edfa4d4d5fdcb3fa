"""Rematerialisation of a stratum: its facts are derived again from the new facts below it, and compared with the old ones."""

from __future__ import annotations

from evermat.algebra import StratumRules, Update, View
from evermat.reasoning.insertion import Views
from evermat.reasoning.modular.materialise import saturate_by
from evermat.reasoning.modular.seminaive_module import Seminaive


def maintain(update: Update, views: Views, stratum: StratumRules) -> None:
    """Processes one stratum: D becomes what is not derived any more, A what was not derived before."""
    again, delta = update.new("again"), update.new("Δ")
    explicit = update.axioms | update.inserted
    new = again | views.new.below(stratum.stratum)
    again.add(explicit.at(stratum.stratum))
    again.add(stratum.nonrecursive.consequences(new))

    def hold(facts: View) -> View:
        delta.replace(facts)
        stored = facts.in_schemes()
        return delta | stored if stored else delta

    plain = Seminaive(stratum.plain, update.next_round, hold, again.add)
    if stratum.closures:
        closures = [closure.recomputed(update, again) for closure in stratum.closures]
        saturate_by(closures, plain, again.add, new, again.listed(), update)
        for closure in closures:
            closure.settle()
    else:
        for _ in plain.steps(new, again.listed()):
            pass
    update.overdeleted.add(update.before.at(stratum.stratum) - again)
    update.added.add(again - update.before)
    update.check_facts()
    update.release(again, delta)
