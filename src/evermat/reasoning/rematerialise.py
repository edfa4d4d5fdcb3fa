"""Rematerialisation of a stratum: its facts are derived again from the new facts below it, and compared with the old ones."""

from __future__ import annotations

from evermat.algebra import StratumRules, Update
from evermat.reasoning.insertion import Views


def maintain(update: Update, views: Views, stratum: StratumRules) -> None:
    """Processes one stratum: D becomes what is not derived any more, A what was not derived before."""
    again, delta = update.new("again"), update.new("Δ")
    explicit = (update.state.explicit - update.deleted) | update.inserted
    new = again | views.new.below(stratum.stratum)
    again.add(explicit.at(stratum.stratum))
    again.add(stratum.nonrecursive.consequences(new))
    fresh = again.listed()
    while delta.replace(fresh):
        update.next_round()
        fresh = again.add(stratum.recursive.consequences(new, delta_positive=delta))
    update.overdeleted.add(update.state.materialised.at(stratum.stratum) - again)
    update.added.add(again - update.state.materialised)
    update.release(again, delta)
