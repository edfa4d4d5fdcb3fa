"""Rewritings of typed programs, in the order in which they are done.

Each is one function from program to program in a file of its own. Afterwards the program is what plans and
algorithms expect: no `_` in negated atoms, aggregates in rules of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from evermat.core import Problems
from evermat.language.model import Program
from evermat.language.rewrites.axiomatise_equality import treat_equality
from evermat.language.rewrites.expand_eqrel import expand_equivalences
from evermat.language.rewrites.project_negations import project_negations
from evermat.language.rewrites.separate_aggregates import separate_aggregates

PASSES: tuple[Callable[[Program, Problems], Program], ...] = (
    treat_equality,
    expand_equivalences,
    separate_aggregates,
    project_negations,
)
