"""The r-materialisation of a stratum with equality, from scratch: everything counts as checked, and γ is π."""

from __future__ import annotations

from evermat.algebra import Counters, Run, State, StratumRules
from evermat.reasoning.equality.saturate import close
from evermat.reasoning.seminaive import begin_stratum


def materialise_stratum(state: State, run: Run, stratum: StratumRules) -> None:
    """Computes π, and I for the stratum, all below it being complete."""
    delta = begin_stratum(state, run, stratum, Counters.NONE)
    known = state.grown(stratum)
    close(known, delta, state.materialised, run.next_round)
    known.finish()
