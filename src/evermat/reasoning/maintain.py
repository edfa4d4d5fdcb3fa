"""An update, stratum by stratum: which algorithm, which counters it needs, and what becomes of them.

Any algorithm may follow any other. Which counters are valid is recorded for each stratum; an algorithm says what it needs, what is
missing is counted first, and what it does not keep becomes invalid. A stratum that no change reaches is left
alone, counters and all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from evermat.algebra import Counters, State, StratumRules, TooManyInstancesError, Update, View
from evermat.core import UPDATE_ALGORITHMS, Problem, ProgramError
from evermat.core import error_catalogue as errors
from evermat.language import Stratum
from evermat.reasoning import (
    backward_forward,
    backward_forward_counting,
    counting,
    dred,
    dred_counting,
    rematerialise,
)
from evermat.reasoning.equality import backward_forward as equality_backward_forward
from evermat.reasoning.equality import rematerialise as equality_rematerialise
from evermat.reasoning.insertion import Views
from evermat.reasoning.materialise import check_name
from evermat.reasoning.modular import backward_forward as modular_backward_forward
from evermat.reasoning.modular import dred_counting as modular_dred_counting


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A way to maintain one stratum; `needs` and `keeps` are the counters that must be valid before and are after.

    One that works by modules says what takes its place where no rules close a relation: it would do the same. One that rewrites equal
    terms says what takes its place where none are.
    """

    name: str
    maintain: Callable[[Update, Views, StratumRules], None]
    needs: Counters
    keeps: Counters
    without_closures: str = ""
    without_equality: str = ""


ALGORITHMS = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("counting", counting.maintain, Counters.NONRECURSIVE, Counters.NONRECURSIVE),
        Algorithm("dred", dred.maintain, Counters.NONE, Counters.NONE),
        Algorithm("dred-c", dred_counting.maintain, Counters.BOTH, Counters.BOTH),
        Algorithm("bf", backward_forward.maintain, Counters.NONE, Counters.NONE),
        Algorithm("bf-c", backward_forward_counting.maintain, Counters.NONRECURSIVE, Counters.NONRECURSIVE),
        Algorithm("dred-c-mod", modular_dred_counting.maintain, Counters.MODULAR, Counters.MODULAR, "dred-c"),
        Algorithm("bf-c-mod", modular_backward_forward.maintain, Counters.NONRECURSIVE, Counters.NONRECURSIVE, "bf-c"),
        Algorithm("remat", rematerialise.maintain, Counters.NONE, Counters.NONE),
        Algorithm("bf-eq", equality_backward_forward.maintain, Counters.NONE, Counters.NONE, without_equality="bf"),
        Algorithm("remat-eq", equality_rematerialise.maintain, Counters.NONE, Counters.NONE, without_equality="remat"),
    )
}
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm for a stratum, and why."""

    stratum: Stratum
    algorithm: str
    counters: Counters
    reason: str


def check_algorithm(name: str, strata: tuple[Stratum, ...]) -> None:
    """Refuses what is not the name of an algorithm, and Counting for a recursive program.

    Raises:
        ProgramError: with the names that there are, or the rule that is recursive.
    """
    check_name(name, UPDATE_ALGORITHMS)
    if name == "counting":
        for stratum in strata:
            if stratum.recursive:
                rule = stratum.recursive[0]
                raise ProgramError(
                    Problem(errors.NOT_NONRECURSIVE, {"name": rule.head.relation.name, "rule": str(rule)})
                )


@dataclass(frozen=True, slots=True)
class Attempt:
    """A choice that is given up when more than `most` rule instances were considered; None: it is not."""

    choice: Choice
    most: int | None = None


def maintain_strata(update: Update, name: str, choose: Callable[[Update, StratumRules], list[Attempt]]) -> list[Choice]:
    """Processes all strata; D and A then say what changes. Returns what was done where.

    `choose` says, for `auto`, what to attempt; the last attempt is never given up.
    """
    views = Views(update)
    choices = []
    for stratum in update.strata():
        choices += maintain_stratum(update, views, stratum, name, choose)
        if stratum.stratum.equality:
            update.settle_equality()
    return choices


def maintain_stratum(
    update: Update,
    views: Views,
    stratum: StratumRules,
    name: str,
    choose: Callable[[Update, StratumRules], list[Attempt]],
    instead: Mapping[str, Algorithm] = MappingProxyType({}),
) -> list[Choice]:
    """Processes one stratum, if the change reaches it: D and A grow by its facts. Returns what was done, if anything was.

    `instead` are algorithms that do the same as others, for less, in the update at hand.
    """
    if not is_reached(update, stratum.stratum):
        return []
    # B/F≈ says nothing about strata without equality.
    free = name == AUTO or (name == "bf-eq" and not stratum.stratum.equality)
    attempts = choose(update, stratum) if free else [Attempt(fixed_choice(update.state, stratum, name))]
    if stratum.stratum in update.renewed:
        reason = "a rule mentions a term that has another representative now"
        attempts = [Attempt(Choice(stratum.stratum, "remat", Counters.NONE, reason))]
    choice = _attempt(update, views, stratum, attempts, {**ALGORITHMS, **instead})
    follow(update, views, stratum)
    return [choice]


def _attempt(
    update: Update, views: Views, stratum: StratumRules, attempts: list[Attempt], algorithms: Mapping[str, Algorithm]
) -> Choice:
    """Makes one attempt after the other, until one succeeds; that is the choice."""
    given_up = ""
    for attempt in attempts:
        algorithm = algorithms[attempt.choice.algorithm]
        if not update.state.valid_counters(stratum.stratum).include(algorithm.needs):
            recount(update, stratum, algorithm.needs)
        if not algorithm.without_closures:
            for closure in stratum.closures:
                closure.clear()
        if attempt.most is None:
            algorithm.maintain(update, views, stratum)
            return replace(attempt.choice, reason=given_up + attempt.choice.reason)
        try:
            with update.attempt(stratum.stratum, attempt.most):
                algorithm.maintain(update, views, stratum)
        except TooManyInstancesError:
            given_up += f"{algorithm.name} was given up after {attempt.most:,} instances; "
        else:
            return replace(attempt.choice, reason=given_up + attempt.choice.reason)
    raise AssertionError("the last attempt is never given up")


def follow(update: Update, views: Views, stratum: StratumRules) -> None:
    """Storage schemes take account of what an algorithm has done to their inputs."""
    for stored in stratum.stores:
        stored.follow(update, views.gone["delta_positive"], views.come["delta_positive"])


def kept_counters(state: State, choices: list[Choice]) -> dict[Stratum, Counters]:
    """Which counters are still valid once an update is committed, of the strata that it reached."""
    kept: dict[Stratum, Counters] = {}
    for choice in choices:
        valid = kept.get(choice.stratum, state.valid_counters(choice.stratum))
        kept[choice.stratum] = valid.common(ALGORITHMS[choice.algorithm].keeps)
    return kept


def fixed_choice(state: State, stratum: StratumRules, name: str) -> Choice:
    """The algorithm that was asked for, unless it cannot do the stratum."""
    own = stratum.stratum
    if own.equality and any(rule.aggregate for rule in own.rules):
        return Choice(own, "remat-eq", Counters.NONE, "the list of groups of an aggregate is recursive")
    if own.equality and not state.checks_equality:
        return Choice(own, "remat-eq", Counters.NONE, "on a cluster")
    if own.equality:
        name = "remat-eq" if name in ("remat", "remat-eq") else "bf-eq"
        return Choice(own, name, Counters.NONE, "equal terms are represented by one")
    name = ALGORITHMS[name].without_equality or name
    if any(rule.aggregate for rule in own.recursive):
        return Choice(own, "remat", Counters.NONE, "the list of groups of an aggregate is recursive")
    if any(closure.only_recomputed for closure in stratum.closures):
        return Choice(own, "remat", Counters.NONE, "a closure that other rules take part in is stored as intervals")
    if not stratum.closures:
        name = ALGORITHMS[name].without_closures or name
    return Choice(own, name, state.valid_counters(own), "as asked for")


def is_reached(update: Update, stratum: Stratum) -> bool:
    """Whether explicit facts of a stratum, or facts that its rules read, have changed."""
    relations = set(stratum.relations)
    if stratum in update.renewed:
        return True
    if not relations.isdisjoint([*update.deleted.names, *update.inserted.names, *update.doubtful.names]):
        return True
    changed = {*update.overdeleted.names, *update.added.names}
    return not changed.isdisjoint(stratum.reads)


def recount(update: Update, stratum: StratumRules, counters: Counters) -> None:
    """Counts the derivations of a stratum from scratch, over I."""
    state = update.state
    state.reset_counters(stratum.stratum)
    materialised: View = update.before
    counter: Any = state.nonrecursive_counter
    explicit: View = update.explicit_before.at(stratum.stratum)
    counter.add(explicit if update.before is state.materialised else explicit.listed())
    counter.add(stratum.nonrecursive.consequences(materialised))
    if counters.recursive:
        counted = stratum.plain if counters is Counters.MODULAR else stratum.recursive
        state.recursive_counter.add(counted.consequences(materialised))
    state.record_counters(stratum.stratum, counters)
    if update.before is not state.materialised:
        update.doubt_counters(stratum.stratum)
