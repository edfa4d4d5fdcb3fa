r"""What all maintenance algorithms share: the views of an update, and insertion.

Before stratum s is processed, D and A hold the facts of lower strata that were (over)deleted and added. With them

    old        I                         the materialisation before the update, or before this step of it
    surviving  I \ (D \ A)               what still holds of it
    blocked    I ∪ A                     what a negated atom must not meet, for an instance to hold before and after
    new        (I \ D) ∪ A               the materialisation after the update

`gone` are the changes by which instances over `old` are lost, `come` those by which instances over `new` are gained.
"""

from __future__ import annotations

from typing import Any

from evermat.algebra import Counter, StratumRules, Update, View, WorkingSet


class Views:
    """The views of one update; lazy, so they are made once and stay true while D and A grow."""

    def __init__(self, update: Update) -> None:
        deleted, added = update.overdeleted, update.added
        self.old: View = update.before
        self.surviving = self.old - (deleted - added)
        self.blocked = self.old | added
        self.new = (self.old - deleted) | added
        self.gone: dict[str, Any] = {"delta_positive": deleted - added, "delta_negative": added - deleted}
        self.come: dict[str, Any] = {"delta_positive": added - deleted, "delta_negative": deleted - added}


def insert_only(update: Update, views: Views, stratum: StratumRules) -> None:
    """Processes one stratum where nothing can be lost and nothing is counted: extends A by its facts."""
    found = update.new("NA")
    found.add(update.inserted.at(stratum.stratum))
    found.add(stratum.nonrecursive.consequences(views.new, **views.come))
    insert(update, views, stratum, found)
    update.release(found)


def insert(
    update: Update, views: Views, stratum: StratumRules, found: WorkingSet, counter: Counter | None = None
) -> None:
    """INSERT: adds `found` (N_A) and all that follows from it to A; `counter` is C_r where it is kept.

    Invariant: every instance over `new` whose changed facts are in A but not in Δ_A has been considered.
    """
    recursive = stratum.recursive

    def consequences(**delta: Any) -> Any:
        bag = recursive.consequences(views.new, **delta)
        return bag if counter is None else counter.add(bag)

    found.add(consequences(**views.come))
    delta = update.new("ΔA")
    while delta.replace(found - views.new):
        update.next_round()
        update.added.add(delta)
        found.add(consequences(delta_positive=delta))
    update.meet(found)
    update.release(delta)
