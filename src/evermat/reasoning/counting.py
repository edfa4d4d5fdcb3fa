"""Counting: for nonrecursive programs.

Every fact is counted once for each instance that derives it, and once if it is explicit. An update considers exactly the
instances that it makes or breaks; a fact whose counter drops to 0 goes, one whose counter rises from 0 comes.
"""

from __future__ import annotations

from evermat.algebra import StratumRules, Update
from evermat.reasoning.dred_counting import count_nonrecursive
from evermat.reasoning.insertion import Views


def maintain(update: Update, views: Views, stratum: StratumRules) -> None:
    """Processes one stratum, which must have no recursive rules."""
    assert not stratum.recursive.heads
    positive = update.nonrecursive_counter.positive
    touched, found = update.new("ND"), update.new("NA")
    update.next_round()
    count_nonrecursive(update, views, stratum, touched, found)
    update.overdeleted.add(touched - positive)
    update.added.add(found - views.old)
    update.meet(found)
    update.figures["overdeleted"] += update.overdeleted.at(stratum.stratum).size
    update.release(touched, found)
