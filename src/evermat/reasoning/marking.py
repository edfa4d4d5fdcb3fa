r"""Marking: an update with a look at the next one. It is *B/F with marking* and *DRed with marking*, and the same for every other algorithm.

The papers mark what the next update deletes, and what is derived by a marked fact while this update is processed; the marks then save the next one the rule
applications that would find these facts. Set at a time a single mark saves nothing: the join for a deleted fact finds all of its heads, or is not done at
all. What can be saved is the join for a fact of which all instances are known, that is, for one that this update adds. So

    M = (E⁺ ∩ E⁻′) \ I        what comes by this update, and what the next one deletes

is inserted last in every stratum, in a step of its own. Z are the facts that I gains by that step, M among them, and K those that it derives although they hold
without it. Then

- no fact of Z has a proof without M, for all else was complete before: the next update deletes all of it. So implicit facts pass on marks here, which the
  paper has to rule out for exact deletion: it cannot know that they go.
- every instance with a fact of Z was found in that step, and its head is in Z or in K.

The next update begins by *taking back* the step: Z goes, counters and the graphs of closures become what they were, and no rule is evaluated. The facts of K
have lost derivations. They are checked together with those that its other deletions touch, as they would have been anyway, so that nothing is
searched for that would have been at hand without marks: that is the order in which marks do not cost.

A fact that is lost by this update and comes back by its last step is none of Z: higher strata have never missed it, so not all of its instances
were found. All this needs that insertions only insert: where what M reaches is negated or aggregated, marks are off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from evermat.algebra import Counters, State, StratumRules, Update, View
from evermat.language import Negation, Rule, Stratum
from evermat.reasoning.insertion import Views, insert_only
from evermat.reasoning.maintain import (
    ALGORITHMS,
    AUTO,
    Algorithm,
    Attempt,
    Choice,
    fixed_choice,
    kept_counters,
    maintain_stratum,
)

Choose = Callable[[Update, StratumRules], list[Attempt]]

#: shares of what the next update deletes that have to come by this one: for fewer rule applications, and for less time
FEWER, FASTER = 0.1, 0.9

INSERTION = Algorithm("insertion", insert_only, Counters.NONE, Counters.NONE)


@dataclass(frozen=True, slots=True)
class Passing:
    """The last step of an update, for the next one to take back.

    Attributes:
        inserted: M.
        gained: Z, of all relations.
        met: K.
        notes: What the step has done to counters and graphs; the engine's own.
    """

    inserted: View
    gained: View
    met: View
    notes: Any


@dataclass(slots=True)
class Marks:
    """What there is to tell about marks.

    Attributes:
        explicit: The explicit facts that the next update deletes.
        implicit: The facts that follow from those among them that are inserted last, and only from them.
        taken_back: The facts that went without a rule being evaluated.
        reason: Why nothing was inserted last, if something could have been.
    """

    explicit: int = 0
    implicit: int = 0
    taken_back: int = 0
    reason: str = ""


def maintain_ahead(
    update: Update, name: str, choose: Choose, passing: Passing | None, ahead: View | None, least: float = FEWER
) -> tuple[list[Choice], Passing | None, Marks]:
    """Processes all strata; D and A then say what changes. Returns what was done where, and what the next update may take back.

    Args:
        update: the update.
        name: the algorithm.
        choose: what to attempt, for `auto`.
        passing: the last step of the update before.
        ahead: E⁻′, the explicit facts that the next update deletes; None if it is not known yet.
        least: the share of them that must come by this update for a step of their own.
    """
    marks = Marks()
    taken_back = None
    if passing is not None and not (passing.inserted - update.deleted):
        taken_back = update.new("taken back")
        taken_back.add(passing.gained)
        marks.taken_back = taken_back.size
        update.before = update.before - taken_back
        take_back(update, passing)
    last = None
    if ahead is not None:
        marks.explicit = (ahead & (update.axioms | update.inserted)).size
        inserted = ((update.inserted & ahead) - update.before).listed()
        if inserted:
            few = inserted.size < least * marks.explicit
            reason = f"less than {least:.0%} of what the next update deletes comes by this one"
            marks.reason = reason if few else why_not(update.state, name, inserted.names)
            last = None if marks.reason else LastStep(update, inserted)
    views, choices = Views(update), []
    for stratum in update.strata():
        done = maintain_stratum(update, views, stratum, name, choose)
        if last is not None:
            done += last.process(stratum, name, done)
        choices += done
        if stratum.stratum.equality:
            update.settle_equality()
    found = None if last is None else last.finish()
    if found is not None:
        marks.implicit = (found.gained - found.inserted).size
    if taken_back is not None:
        update.overdeleted.add(taken_back)
        update.release(taken_back)
    return choices, found, marks


def take_back(update: Update, passing: Passing) -> None:
    """The update finds E and all else as they were before the last step of the one before; what it deletes besides is left to do."""
    update.take_back(passing.notes)
    update.explicit_before = update.explicit_before - passing.inserted
    update.deleted = (update.deleted - passing.inserted).listed()
    update.axioms = update.explicit_before - update.deleted
    update.doubtful = passing.met


class LastStep:
    """The last step of an update, as an update of its own: it finds what the rest of the update makes of I, stratum by stratum.

    Its A is Z; nothing is deleted. What it does not say itself the update does.
    """

    def __init__(self, update: Update, inserted: View) -> None:
        self._update = update
        update.inserted = (update.inserted - inserted).listed()
        self.inserted = inserted
        self.added = update.new("Z")
        self.overdeleted = self.deleted = self.doubtful = update.nothing
        self.before = (update.before - update.overdeleted) | update.added
        self.explicit_before = self.axioms = update.axioms | update.inserted
        self._met = inserted
        self._notes: list[Any] = []
        self._stays = False
        self._views = Views(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._update, name)

    def meet(self, heads: View) -> None:
        self._met = (self._met | heads).listed()

    def process(self, stratum: StratumRules, name: str, done: list[Choice]) -> list[Choice]:
        """Processes one stratum, after the rest of the update has done so in some way, or has not reached it."""
        update: Any = self
        place = update.note_place()
        valid = kept_counters(self._update.state, done).get(stratum.stratum)
        choose = partial(_insert_only, valid)
        choices = maintain_stratum(update, self._views, stratum, name, choose, {"bf": INSERTION, "dred": INSERTION})
        self._notes += update.notes_since(place)
        back = (self.added.at(stratum.stratum) & self._update.overdeleted).listed()
        if back:
            self._update.added.add(back)
            self.added.replace((self.added - back).listed())
            # What was done to C_r and to graphs because they are back stays.
            used = [ALGORITHMS[choice.algorithm] for choice in choices]
            self._stays |= any(one.without_closures or one.keeps.recursive for one in used)
        return [replace(c, reason=f"{c.reason}; what the next update deletes, inserted last") for c in choices]

    def finish(self) -> Passing | None:
        """All strata are processed: Z becomes a part of A. Returns what can be taken back, if it can be."""
        gained, met = self.added.listed(), (self._met - self.added).listed()
        self._update.added.add(gained)
        self._update.release(self.added)
        return None if self._stays else Passing(self.inserted, gained, met, self._notes)


def _insert_only(kept: Counters | None, update: Update, stratum: StratumRules) -> list[Attempt]:
    """`auto` where nothing can be lost: the algorithm that keeps the counters that are left, if the stratum was processed before."""
    valid = update.state.valid_counters(stratum.stratum) if kept is None else kept
    if stratum.closures and kept is not Counters.NONE:
        name = "dred-c-mod" if valid is Counters.MODULAR else "bf-c-mod"
    else:
        name = {Counters.NONE: "dred", Counters.NONRECURSIVE: "bf-c"}.get(valid, "dred-c")
    return [Attempt(Choice(stratum.stratum, name, valid, "nothing can be lost"))]


def why_not(state: State, name: str, marked: Iterable[str]) -> str:
    """Why marks would be wrong, or would cost more than they save, for facts of some relations; empty if they would not."""
    reached = set(marked)
    if name in ("remat", "remat-eq"):
        return "everything is computed again"
    if any(rules.stratum.equality for rules in state.strata):
        return "equal terms are represented by one"
    if stored := sorted(state.stored_by_schemes):
        return f"`{stored[0]}` is not stored by rows"
    for rules in state.strata:
        concerned = _concerned(rules.stratum, reached)
        negated = {one.atom.relation.name for rule in concerned for one in rule.literals if isinstance(one, Negation)}
        aggregated = {name for rule in concerned if rule.aggregate is not None for name in rule.reads}
        for what, names in (("negated", negated), ("aggregated", aggregated)):
            if met := sorted(reached & names):
                return f"`{met[0]}` is {what}"
        if (concerned or not reached.isdisjoint(rules.stratum.relations)) and _counts_in_files(state, rules, name):
            return "derivations are counted in files"
    return ""


def _concerned(stratum: Stratum, reached: set[str]) -> list[Rule]:
    """The rules of a stratum that read relations that are reached; what they derive is reached then."""
    found: list[Rule] = []
    while new := [rule for rule in stratum.rules if rule not in found and not reached.isdisjoint(rule.reads)]:
        found += new
        reached |= {rule.head.relation.name for rule in new}
    return found


def _counts_in_files(state: State, stratum: StratumRules, name: str) -> bool:
    """Whether derivations of a stratum are counted, and in such a way that they cannot be taken back."""
    if not state.sums_counts or state.valid_counters(stratum.stratum) > Counters.NONE:
        return state.sums_counts
    if name == AUTO:
        return bool(stratum.closures)
    return ALGORITHMS[fixed_choice(state, stratum, name).algorithm].needs > Counters.NONE
