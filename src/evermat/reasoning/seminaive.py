r"""Seminaive materialisation: Algorithm 1 (Mat) of *Modular materialisation of Datalog programs*.

    1  I := ∅
    2  for each stratum s in order
    3      Δ := (E ∩ Oˢ) ∪ Πˢ_nr[I]
    4      while Δ ≠ ∅
    5          I := I ∪ Δ
    6          Δ := Πˢ_r[I : Δ] \ I

Invariant of the loop: I holds every fact derived so far, Δ those of the last round, and every instance of a recursive rule over I \ Δ
has been considered; each instance is considered once.

With counters it is Remat-1C (the nonrecursive one) or Remat-2C (both) of *Optimised maintenance of Datalog materialisations*:
C_nr[F] is the number of nonrecursive instances that derive F, plus one if F is explicit; C_r[F] that of recursive ones.
"""

from __future__ import annotations

from evermat.algebra import Bag, Counter, Counters, Rules, Run, Set, State, StratumRules, View


def materialise_stratum(state: State, run: Run, stratum: StratumRules, counters: Counters) -> View:
    """Computes one stratum, all below it being complete; what is left to be done, as `saturate`."""
    recursive = state.recursive_counter if counters.recursive else None
    return saturate(state, run, stratum, begin_stratum(state, run, stratum, counters), recursive)


def begin_stratum(state: State, run: Run, stratum: StratumRules, counters: Counters) -> View:
    """Line 3: adds to I the explicit facts of a stratum and what its nonrecursive rules derive, and hands it back as Δ."""
    run.next_round()
    explicit = _add(state.materialised, state.explicit.at(stratum.stratum), _counter(state, counters))
    return explicit | add_derived(state, stratum.nonrecursive, counters)


def add_derived(state: State, rules: Rules, counters: Counters) -> View:
    """Adds to I what nonrecursive rules derive, and returns what is new."""
    return _add(state.materialised, rules.consequences(state.materialised), _counter(state, counters))


def _counter(state: State, counters: Counters) -> Counter | None:
    """C_nr where it is kept."""
    return state.nonrecursive_counter if counters >= Counters.NONRECURSIVE else None


def saturate(state: State, run: Run, stratum: StratumRules, delta: View, counter: Counter | None) -> View:
    """Lines 4–6: adds all that follows from Δ, which is in I already; `counter` is C_r where it is kept.

    Returns what is left of Δ: nothing, unless the run has outgrown its place. A caller that goes on from there, in another
    place, considers no instance again.
    """
    materialised = state.materialised
    while delta and not run.outgrown:
        run.next_round()
        found = stratum.recursive.consequences(materialised, delta_positive=delta)
        delta = _add(materialised, found, counter)
    return delta


def _add(materialised: Set, facts: View | Bag, counter: Counter | None) -> View:
    """Adds facts to I, counted if there is a counter, and returns the new ones."""
    return materialised.add(facts if counter is None else counter.add(facts))
