"""B/F^c: Algorithm 3 of *Optimised maintenance of Datalog materialisations*.

B/F with the counter C_nr of nonrecursive derivations: whether a fact has one is read off the counter, so only recursive rules
are evaluated backwards.
"""

from __future__ import annotations

from evermat.algebra import StratumRules, Update, View, WorkingSet
from evermat.reasoning.backward_forward import delete_unproved
from evermat.reasoning.dred_counting import count_nonrecursive
from evermat.reasoning.insertion import Views, insert


def maintain(update: Update, views: Views, stratum: StratumRules) -> None:
    """Processes one stratum: extends D and A by its facts, and keeps C_nr valid."""
    touched, found = update.new("ND"), update.new("NA")
    count_nonrecursive(update, views, stratum, touched, found)
    positive = update.nonrecursive_counter.positive

    def add_axioms(proved: WorkingSet, facts: View) -> None:
        proved.add(facts & positive)

    delete_unproved(update, views, stratum, touched, add_axioms)
    insert(update, views, stratum, found)
    update.release(touched, found)
