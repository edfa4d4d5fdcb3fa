"""Rewritings of typed programs, in the order in which they are done.

Each is one function from program to program in a file of its own. Afterwards the program is what plans and
algorithms expect: no `_` in negated atoms, aggregates in rules of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from evermat.core.errors import Problems
from evermat.program.model import Program
from evermat.program.passes.equality import treat_equality
from evermat.program.passes.equivalences import expand_equivalences
from evermat.program.passes.groupings import separate_aggregates
from evermat.program.passes.projections import project_negations

PASSES: tuple[Callable[[Program, Problems], Program], ...] = (
    treat_equality,
    expand_equivalences,
    separate_aggregates,
    project_negations,
)
