"""DRed, delete and rederive: Algorithm 1 of *Optimised maintenance of Datalog materialisations*.

Overdeletion takes out everything that depends on something deleted; what still holds is found by evaluating rules backwards, and put
back with all that follows from it. Keeps no counters.
"""

from __future__ import annotations

from evermat.algebra import OwnFacts, StratumRules, Update, WorkingSet
from evermat.reasoning.insertion import Views, insert


def maintain(update: Update, views: Views, stratum: StratumRules) -> None:
    """Processes one stratum: extends D and A by its facts."""
    lost, gained = stratum.nonrecursive.regroup(views.old, views.new, views.gone, views.come)
    overdelete(update, views, stratum, lost)
    rederive_and_insert(update, views, stratum, gained)


def rederive_and_insert(update: Update, views: Views, stratum: StratumRules, *gained: OwnFacts) -> None:
    """A grows by what was overdeleted but still holds, by what is gained, and by all that follows."""
    found = update.new("NA")
    rederive(update, views, stratum, found)
    found.add(update.inserted.at(stratum.stratum))
    found.add(stratum.nonrecursive.consequences(views.new, **views.come))
    for facts in gained:
        found.add(facts)
    insert(update, views, stratum, found)
    update.release(found)


def overdelete(update: Update, views: Views, stratum: StratumRules, *lost: OwnFacts) -> None:
    """D grows by all facts that have a derivation from a deleted one, or are among those lost otherwise."""
    found, delta = update.new("ND"), update.new("ΔD")
    found.add(update.deleted.at(stratum.stratum))
    found.add(update.doubtful.at(stratum.stratum))
    for facts in lost:
        found.add(facts)
    with update.applying("deletions"):
        found.add(stratum.nonrecursive.consequences(views.old, **views.gone))
        found.add(stratum.recursive.consequences(views.old, **views.gone))
        # Only what was derived before can be deleted: a rule that is new may find more.
        while delta.replace((found & views.old) - update.overdeleted):
            update.next_round()
            found.add(stratum.recursive.consequences(views.surviving, views.blocked, delta_positive=delta))
            update.overdeleted.add(delta)
    update.figures["overdeleted"] += update.overdeleted.at(stratum.stratum).size
    update.release(found, delta)


def rederive(update: Update, views: Views, stratum: StratumRules, found: WorkingSet) -> None:
    """One-step rederivation: R, the overdeleted facts that are explicit or that some instance still derives."""
    heads = update.overdeleted.at(stratum.stratum)
    found.add(heads & update.axioms)
    found.add(stratum.nonrecursive.derivable(heads - found, views.surviving, views.blocked))
    found.add(stratum.recursive.derivable(heads - found, views.surviving, views.blocked))
    update.figures["rederived"] += found.size
