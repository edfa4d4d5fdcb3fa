"""A change of rules, as an update: what still holds is kept.

The facts that a removed rule derived are treated like deleted ones, and those that an added rule derives like inserted ones; DRed, over the new
rules, does the rest. Strata with rules that close a relation, or of a program in which equal terms are represented by one, are rematerialised.
Counters of the strata concerned are not valid afterwards.
"""

from __future__ import annotations

from evermat.algebra import Counters, Rules, Update, View
from evermat.reasoning.dred import overdelete, rederive_and_insert
from evermat.reasoning.insertion import Views
from evermat.reasoning.maintain import ALGORITHMS, Choice, fixed_choice, follow, is_reached


def maintain_rules(update: Update, before: View, removed: Rules, added: Rules) -> list[Choice]:
    """Processes all strata of the new program; D and A then say what changes.

    `before` is I as the removed rules know it: they may read relations that the new program does not have.
    """
    views = Views(update)
    choices = []
    strata = list(update.strata())
    rewriting = any(stratum.stratum.equality for stratum in strata)
    for stratum in strata:
        own = stratum.stratum
        changed = not {*removed.heads, *added.heads}.isdisjoint(own.relations)
        if not changed and not is_reached(update, own):
            if own.equality:
                update.settle_equality()
            continue
        # Rules in normal form are others than those of the text.
        simple = not stratum.closures and not rewriting
        choice = fixed_choice(update.state, stratum, "dred" if simple else "remat")
        if choice.algorithm != "dred":
            ALGORITHMS[choice.algorithm].maintain(update, views, stratum)
        else:
            lost, gained = stratum.nonrecursive.regroup(views.old, views.new, views.gone, views.come)
            overdelete(update, views, stratum, lost, removed.of(own).consequences(before))
            rederive_and_insert(update, views, stratum, gained, added.of(own).consequences(views.new))
        follow(update, views, stratum)
        reason = "its rules have changed" if changed else "the rules of a stratum below have changed"
        choices.append(Choice(own, choice.algorithm, Counters.NONE, reason))
        if own.equality:
            update.settle_equality()
    return choices
