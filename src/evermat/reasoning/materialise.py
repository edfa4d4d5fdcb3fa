"""A materialisation from scratch, stratum by stratum: Mat, or Mat-Mod where rules close relations."""

from __future__ import annotations

from evermat.algebra import Counters, Run, State, StratumRules, View
from evermat.core import MATERIALISE_ALGORITHMS, Choices, Problem, ProgramError, did_you_mean
from evermat.core import error_catalogue as errors
from evermat.reasoning import seminaive
from evermat.reasoning.equality import materialise as equality
from evermat.reasoning.modular import materialise as modular

SEMINAIVE, MODULAR, AUTO = "seminaive", "modular", "auto"


def check_name(name: str, choices: Choices = MATERIALISE_ALGORITHMS) -> None:
    """Refuses what is not the name of an algorithm.

    Raises:
        ProgramError: with the names that there are.
    """
    if name not in choices.names:
        details = {"name": name, "known": ", ".join(choices.names)}
        raise ProgramError(Problem(errors.NO_SUCH_ALGORITHM, details, help=did_you_mean(str(name), choices.names)))


def algorithm_for(stratum: StratumRules, asked: str) -> str:
    """How a stratum is computed: by modules where rules close relations, unless something else was asked for."""
    return MODULAR if (stratum.closures or stratum.stores) and asked != SEMINAIVE else SEMINAIVE


def materialise_stratum(
    state: State, run: Run, stratum: StratumRules, counters: Counters, algorithm: str = AUTO
) -> View | None:
    """Computes one stratum, all below it being complete, and notes what it took.

    Returns what is left to be done by recursive rules if the run has outgrown its place; see `seminaive.saturate`.
    """
    before = run.derivations
    if stratum.stratum.equality:
        equality.materialise_stratum(state, run, stratum)
        state.record_work(stratum.stratum, run.derivations - before)
        state.record_counters(stratum.stratum, Counters.NONE)
        return None
    stratum.settle_storage(state)
    if algorithm_for(stratum, algorithm) == MODULAR:
        counters = counters.by_modules()
        stratum.hold_back_copies(state)
        delta = seminaive.begin_stratum(state, run, stratum, counters)
        left = None
        if not stratum.store_closure(state, delta):
            if (copies := stratum.give_back_copies()).heads:
                delta |= seminaive.add_derived(state, copies, counters)
            left = modular.saturate(state, run, stratum, delta, state.recursive_counter if counters.recursive else None)
        if left is not None:  # its instances will be considered again
            counters = min(counters, Counters.NONRECURSIVE)
    else:
        left = seminaive.materialise_stratum(state, run, stratum, counters)
    state.record_work(stratum.stratum, run.derivations - before)
    state.record_counters(stratum.stratum, counters)
    return left
