r"""What follows from new facts while terms become equal: `saturate` and `rewrite`, Algorithms 5–7 of the paper, set at a time.

    while Δ ≠ ∅ or rules have changed
        while Δ says that different terms are equal
            merge them in γ; M := γ(M); Δ := γ(Δ), with what was new in M        lines 44, 45, 52–54
            Γ := γ(Γ)                                                            lines 55–56
        Δ := Γ[M : Δ] ∪ Γ'[M], where Γ' are the rules that have changed          lines 47–50, 57–58
        M := M ∪ Δ

Invariant: M and Γ are in normal form for γ, and every instance of a rule of Γ over M \ Δ has been considered.
"""

from __future__ import annotations

from collections.abc import Callable

from evermat.algebra import Known, View


def close(known: Known, delta: View, blocked: View, next_round: Callable[[], None]) -> None:
    """Adds all that follows from Δ, which is in M already; `blocked` is what negated atoms must not meet."""
    while delta:
        changed: set[int] = set()
        while (renamed := known.merge(delta)) is not None:
            delta = renamed
            changed |= known.rules.refresh()
        if not delta and not changed:
            return
        next_round()
        rules = known.rules.rules
        found = [rules.consequences(known.facts, blocked, delta_positive=delta)]
        if changed:
            found.append(rules.some(changed).consequences(known.facts, blocked))
        delta = known.add(*found)
