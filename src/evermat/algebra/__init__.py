"""The algebra of fact sets: protocols in which algorithms are written, and which an engine has to implement.

A *view* can be read, a *set* can also grow, a *bag* holds the heads of rule instances with their multiplicities. The algorithms are those of
five papers, whose letters and this code's words are:

| letter | word | meaning | paper |
| --- | --- | --- | --- |
| Π | `Program`, `Rules` | the rules | all |
| λ, Π^s, O^s | `Stratum`, `StratumRules`, `View.at` | the stratification; rules and facts of stratum s | 2018 |
| Π_nr, Π_r | `nonrecursive`, `recursive` | rules of a stratum; recursive: some positive body atom is of the same stratum | 2018 |
| E | `explicit` | explicit facts | all |
| I | `materialised`; `before` in an update | the materialisation: all facts that hold | all |
| E⁻, E⁺ | `deleted`, `inserted` | explicit facts that an update deletes and inserts | all |
| D | `overdeleted` | facts deleted so far, some of them perhaps too many | 2018, 2019 |
| A | `added` | facts added so far, or put back after overdeletion | 2018, 2019 |
| Δ, Δ_D, Δ_A | `delta` | facts that were new in the last round | all |
| N_D, N_A | `touched`, `found` | facts that lost a derivation; facts that gained one | 2018 |
| Π[I^p, I^n : Δ^p, Δ^n] | `consequences` | heads of instances over I^p and I^n with a changed atom; with [[ ]] as a multiset, a `Bag` | 2018, 2019 |
| C_nr, C_r | `nonrecursive_counter`, `recursive_counter` | numbers of nonrecursive and of recursive derivations | 2018 |
| C | `checked` | facts whose provability is in question | 2015, 2018 |
| P | `proved` | checked facts that are proved | 2015, 2018 |
| Y | `delayed` | facts that are proved but not checked | 2015, 2018 |
| X | `expanded` | checked facts whose supports have been looked up, where a frontier is checked at once | this code |
| Add, Diff, Del, Red | `Module.add`, `lost_by_change` and `gained_by_change`, `delete`, `rederive` | the functions of a module | 2019 |
| X_R | *external* facts of a `Module` | facts of a closure that other rules derive, or that are explicit | 2019 |
| I^T, Δ^T | domains of a storage scheme (`columns.schemes`) | facts before a round, and new in it | 2024 |
| ≈ | `SAME_AS` | equality of terms, owl:sameAs | 2015 |
| π, γ | `UnionFind` (`columns.equality`) | terms to representatives: of the materialisation, and while it is recomputed | 2015 |
| c^π, F^π | `names`, *expanded facts* | all terms or facts that a representative stands for | 2015 |
| (γ, P ∖ P̂) | `Known` (M) | facts in normal form for γ | 2015 |
| Γ | `NormalRules` | rules in normal form for γ | 2015 |
| D, O, S | `overdeleted`, `followed`, `disproved` | doubtful facts; those that were followed; those of which nothing is left | 2015 |
| M, Z, K | `Passing.inserted`, `gained`, `met` | facts inserted last because the next update deletes them, and their consequences | this code, after 2025 |

2015: *Combining rewriting and incremental materialisation maintenance for Datalog programs with equality*; 2018: *Optimised maintenance of
Datalog materialisations*; 2019: *Modular materialisation of Datalog programs*; 2024: *Optimised storage for Datalog reasoning*; 2025:
*Backward/Forward with marking for update streams*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.algebra.counters import Counter, Counters, UpdateCounter
    from evermat.algebra.equality import Again, EqualityUpdate, Grown, Known, NormalRules, Proofs
    from evermat.algebra.modules import Module, ModuleUpdate, Stored, Take
    from evermat.algebra.rules import Rules, StratumRules
    from evermat.algebra.sets import Bag, OwnFacts, OwnView, Set, View, WorkingSet
    from evermat.algebra.state import Rounds, Run, State, TooManyInstancesError, Update
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
