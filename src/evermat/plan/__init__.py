"""The order in which the literals of a rule are evaluated. No data, no engine.

`full_plan` and `delta_plan` order a rule; `Starts` and `plan_from` know which plans a question needs; a `Plan` has `Step`s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.plan.entry_points import Start, Starts, plan_from
    from evermat.plan.pivot_columns import pivots
    from evermat.plan.planner import Extent, Sizes, delta_plan, full_plan
    from evermat.plan.steps import STARTING, Check, Compute, Filter, Match, Plan, Role, Roles, Step
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
