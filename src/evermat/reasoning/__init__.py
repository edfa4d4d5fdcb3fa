"""The algorithms of the papers, one file each, written over the algebra alone: no engine is known here.

`materialise_stratum` computes all facts of a stratum from scratch; `maintain_strata` carries an update through all strata. Under `auto` policies decide,
stratum by stratum (`choose_attempts`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.reasoning.choose import choose_attempts
    from evermat.reasoning.maintain import Choice, check_algorithm, kept_counters, maintain_strata
    from evermat.reasoning.marking import FASTER, FEWER, Marks, Passing, maintain_ahead
    from evermat.reasoning.materialise import (
        MODULAR,
        SEMINAIVE,
        algorithm_for,
        check_name,
        materialise_stratum,
    )
    from evermat.reasoning.modular.materialise import saturate as saturate_modules
    from evermat.reasoning.rule_change import maintain_rules
    from evermat.reasoning.seminaive import begin_stratum, saturate
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
