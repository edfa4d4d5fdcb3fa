"""DRed, delete and rederive: Algorithm 1 of *Optimised maintenance of Datalog materialisations*.

Overdeletion takes out everything that depends on something deleted; what still holds is found by evaluating rules backwards, and put
back with all that follows from it. Keeps no counters.
"""

from __future__ import annotations

from evermat.algebra import StratumRules, Update, View, WorkingSet
from evermat.reasoning.insertion import Views, insert


def maintain(update: Update, views: Views, stratum: StratumRules) -> None:
    """Processes one stratum: extends D and A by its facts."""
    lost, gained = stratum.nonrecursive.regroup(views.old, views.new, views.gone, views.come)
    overdelete(update, views, stratum, lost)
    found = update.new("NA")
    rederive(update, views, stratum, found)
    found.add(update.inserted.at(stratum.stratum))
    found.add(stratum.nonrecursive.consequences(views.new, **views.come))
    found.add(gained)
    insert(update, views, stratum, found)
    update.release(found)


def overdelete(update: Update, views: Views, stratum: StratumRules, lost: View) -> None:
    """D grows by all facts that have a derivation from a deleted one."""
    found, delta = update.new("ND"), update.new("ΔD")
    found.add(update.deleted.at(stratum.stratum))
    found.add(lost)
    found.add(stratum.nonrecursive.consequences(views.old, **views.gone))
    found.add(stratum.recursive.consequences(views.old, **views.gone))
    while delta.replace(found - update.overdeleted):
        update.next_round()
        found.add(stratum.recursive.consequences(views.surviving, views.blocked, delta_positive=delta))
        update.overdeleted.add(delta)
    update.figures["overdeleted"] += update.overdeleted.at(stratum.stratum).size
    update.release(found, delta)


def rederive(update: Update, views: Views, stratum: StratumRules, found: WorkingSet) -> None:
    """One-step rederivation: R, the overdeleted facts that are explicit or that some instance still derives."""
    heads = update.overdeleted.at(stratum.stratum)
    found.add(heads & (update.state.explicit - update.deleted))
    found.add(stratum.nonrecursive.derivable(heads - found, views.surviving, views.blocked))
    found.add(stratum.recursive.derivable(heads - found, views.surviving, views.blocked))
    update.figures["rederived"] += found.size
