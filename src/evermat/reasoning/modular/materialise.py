r"""Mat-Mod: Algorithm 2 of *Modular materialisation of Datalog programs*.

     9  Δ₁ := … := Δₙ := ∅
    11  while Δ ≠ ∅
    12      I := I ∪ Δ
    13      for each module i
    14          Δᵢ := Addᵢ[I, I, Δ \ Δᵢ]
    15      Δ := Δ₁ ∪ … ∪ Δₙ

Here a module's facts are in I as soon as it has made them, and the modules after it are given them in the same round: fewer rounds,
and still every instance of a rule of the seminaive module is considered once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from evermat.algebra import Counter, Module, OwnFacts, Rounds, Run, State, StratumRules, Take, View
from evermat.reasoning.modular.exchange import exchange
from evermat.reasoning.modular.seminaive_module import Seminaive


def saturate(state: State, run: Run, stratum: StratumRules, delta: View, counter: Counter | None) -> View | None:
    """Adds to I all that follows from Δ, which is in I already; `counter` is C_r of the seminaive module where it is kept.

    If the run has outgrown its place, returns facts from which everything follows; some of it is in I.
    """

    def take_counted(facts: OwnFacts) -> View:
        return state.materialised.add(facts if counter is None else counter.add(facts))

    for closure in stratum.closures:
        closure.begin()
    plain = Seminaive(stratum.plain, run.next_round, lambda facts: facts, take_counted)
    saturate_by(stratum.closures, plain, state.materialised.add, state.materialised, delta, run)
    for closure in stratum.closures:
        closure.settle()
    if not run.outgrown:
        return None
    # Where modules work together it is not known how far each has come. By itself a closure begins again, from its external facts.
    return state.materialised.at(stratum.stratum) if len(stratum.closures) > 1 or stratum.plain.heads else delta


def saturate_by(
    closures: Sequence[Module],
    plain: Seminaive,
    take: Take,
    present: View,
    delta: View,
    run: Rounds,
) -> None:
    """Adds all that follows from Δ, which is in `present`, by closures and by plain rules.

    Ends early if the run has outgrown its place.
    """
    modules: list[Callable[[View, View], View]] = [partial(closure.add, take) for closure in closures]
    if plain.rules.heads:
        modules.append(plain.add)

    def work(add: Callable[[View, View], View], given: View) -> View | None:
        run.next_round()
        if run.outgrown:
            return None
        made = add(present, given)
        run.check_facts()
        return made

    exchange(modules, dict.fromkeys(modules, delta), work)
