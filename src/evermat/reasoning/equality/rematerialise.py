"""Rematerialisation with rewriting: π and I of a stratum with equality are computed again, and compared with the old ones."""

from __future__ import annotations

from evermat.algebra import StratumRules, Update
from evermat.reasoning.equality.saturate import close
from evermat.reasoning.insertion import Views


def maintain(update: Update, views: Views, stratum: StratumRules) -> None:
    """Processes one stratum: D becomes what is not derived any more, A what was not derived before."""
    again = update.equality(stratum).again(views.new.below(stratum.stratum))
    delta = again.add(
        (update.state.given - update.deleted).at(stratum.stratum),
        update.inserted.at(stratum.stratum),
        again.rules.rules.consequences(views.new.below(stratum.stratum), views.new),
    )
    close(again, delta, views.new, update.next_round)
    again.adopt()
    update.check_facts()
