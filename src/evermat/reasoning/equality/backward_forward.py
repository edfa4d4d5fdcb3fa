r"""B/F≈: Algorithms 1–7 of the paper, set at a time, and insertion, which it leaves out.

Facts whose truth may have changed are *doubtful*, D. What a doubtful fact F stands for, all of F^π, is checked at once: backward chaining
over (π, I) finds the facts C that its proofs may use, forward chaining from the given facts behind C proves the part (γ, M) of the new
r-materialisation. F is *complete* if all of F^π is proved; if not, what may depend on it becomes doubtful. γ begins as the identity in every update.

Optimisations of the paper: O, the doubtful facts that were followed, takes no part in finding others; S, facts of which nothing is left, takes no part in backward
chaining; a term that has no other names needs no proof that it is itself. Line 40, the given facts behind a fact, is answered by an index.
"""

from __future__ import annotations

from evermat.algebra import EqualityUpdate, Proofs, StratumRules, Update, View, WorkingSet
from evermat.reasoning.equality.saturate import close
from evermat.reasoning.insertion import Views


def maintain(update: Update, views: Views, stratum: StratumRules) -> None:
    """Processes one stratum: extends D and A by its facts, and changes π."""
    equality = update.equality(stratum)
    doubtful = update.new("ND")
    doubtful.add(equality.normal(update.deleted.at(stratum.stratum)))
    doubtful.add(equality.possible.rules.consequences(views.old, **views.gone))
    if doubtful:
        _delete(update, views, stratum, equality, doubtful)
    update.release(doubtful)
    _insert(update, views, stratum, equality)


def _delete(
    update: Update, views: Views, stratum: StratumRules, equality: EqualityUpdate, doubtful: WorkingSet
) -> None:
    """Algorithm 1: I and π become those of the facts that are left."""
    own, below = stratum.stratum, views.surviving.below(stratum.stratum)
    followed, unproved = update.new("O"), update.new("ΔD")
    checking = _Checking(update, views, stratum, equality)
    live = (views.old - followed).at(own) | below
    while goals := ((doubtful & views.old) - update.overdeleted).listed():
        update.next_round()
        update.overdeleted.add(goals)
        checking.check(goals)
        unproved.replace(goals - checking.proofs.complete)
        doubtful.add(equality.possible.rules.consequences(live, views.blocked, delta_positive=unproved))
        doubtful.add(equality.depending_on_names(unproved, live))
        followed.add(unproved)
    update.figures["overdeleted"] += update.overdeleted.at(own).size
    checking.finish()
    update.release(followed, unproved)


class _Checking:
    """`checkProvability`, Algorithm 4, for a frontier at once."""

    def __init__(self, update: Update, views: Views, stratum: StratumRules, equality: EqualityUpdate) -> None:
        self._update, self._views, self._equality = update, views, equality
        below = views.surviving.below(stratum.stratum)
        self.proofs: Proofs = equality.proofs(below, views.blocked)
        self._disproved = update.new("S")
        self._possible = (views.old - self._disproved).at(stratum.stratum) | below
        self._waiting: View = self.proofs.checked.listed()  # checked facts whose supports have not been looked up

    def check(self, goals: View) -> None:
        """Finds out what of the goals can be proved."""
        proofs, blocked = self.proofs, self._views.blocked
        front = proofs.checked.add(goals)
        while True:
            close(proofs, proofs.begin(front), blocked, self._update.next_round)
            self._waiting = frontier = ((self._waiting | front) - proofs.complete).listed()
            if not (goals - proofs.complete):
                return
            if not frontier:
                self._disproved.add(proofs.disproved())
                return
            self._update.next_round()
            self._waiting = (frontier - frontier).listed()
            front = proofs.checked.add(self._equality.possible.rules.supports(frontier, self._possible, blocked))
            front = (front | proofs.checked.add(self._equality.names(frontier) - self._disproved)).listed()

    def finish(self) -> None:
        """Algorithm 2, `propagateChanges`."""
        self._update.figures["checked"] += self.proofs.checked.size
        self._update.figures["proved"] += self.proofs.complete.size
        self.proofs.adopt()
        self._update.release(self._disproved)


def _insert(update: Update, views: Views, stratum: StratumRules, equality: EqualityUpdate) -> None:
    """Adds what is inserted, and what follows from it: γ is π, everything counts as checked."""
    known = equality.grown()
    come = {what: changed.below(stratum.stratum) for what, changed in views.come.items()}
    delta = known.add(
        equality.normal(update.inserted.at(stratum.stratum)), equality.rules.rules.consequences(views.new, **come)
    )
    close(known, delta, views.new, update.next_round)
    known.finish()
