"""DRed^c: Algorithm 2 of *Optimised maintenance of Datalog materialisations*.

DRed with two counters for each fact: C_nr of nonrecursive derivations (an explicit fact is one), C_r of recursive ones. A fact with C_nr > 0 is
never overdeleted, and after overdeletion a fact is rederived iff its C_r is not 0: no rule is evaluated backwards.

The nonrecursive instances gained (line 41) are counted together with those lost (line 29), before anything is
deleted: lower strata are final then, and a fact that loses one derivation and gains another stays untouched.
"""

from __future__ import annotations

from evermat.algebra import StratumRules, Update, WorkingSet
from evermat.reasoning.insertion import Views, insert


def maintain(update: Update, views: Views, stratum: StratumRules) -> None:
    """Processes one stratum: extends D and A by its facts, and keeps both counters valid."""
    touched, found = update.new("ND"), update.new("NA")
    count_nonrecursive(update, views, stratum, touched, found)
    overdelete(update, views, stratum, touched)
    rederived = found.add(update.overdeleted.at(stratum.stratum) & update.recursive_counter.positive)
    update.figures["rederived"] += rederived.size
    insert(update, views, stratum, found, update.recursive_counter)
    update.release(touched, found)


def count_nonrecursive(
    update: Update, views: Views, stratum: StratumRules, touched: WorkingSet, found: WorkingSet
) -> None:
    """Lines 29–30 and 41–42: C_nr follows; `touched` are facts that lost a derivation, `found` those that gained one."""
    nonrecursive, counter = stratum.nonrecursive, update.nonrecursive_counter
    lost, gained = nonrecursive.regroup(views.old, views.new, views.gone, views.come)
    touched.add(counter.subtract(update.deleted.at(stratum.stratum)))
    touched.add(update.doubtful.at(stratum.stratum))
    with update.applying("deletions"):
        touched.add(counter.subtract(nonrecursive.consequences(views.old, **views.gone)))
    touched.add(counter.subtract(lost))
    found.add(counter.add(update.inserted.at(stratum.stratum)))
    found.add(counter.add(nonrecursive.consequences(views.new, **views.come)))
    found.add(counter.add(gained))


def overdelete(update: Update, views: Views, stratum: StratumRules, touched: WorkingSet) -> None:
    """D grows by the facts that lost a derivation and have no nonrecursive one left, and by what depends on them."""
    recursive, counter = stratum.recursive, update.recursive_counter
    delta = update.new("ΔD")
    with update.applying("deletions"):
        touched.add(counter.subtract(recursive.consequences(views.old, **views.gone)))
        while delta.replace(touched - update.overdeleted - update.nonrecursive_counter.positive):
            update.next_round()
            lost = recursive.consequences(views.surviving, views.blocked, delta_positive=delta)
            touched.add(counter.subtract(lost))
            update.overdeleted.add(delta)
    update.figures["overdeleted"] += update.overdeleted.at(stratum.stratum).size
    update.release(delta)
