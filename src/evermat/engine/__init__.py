"""Parts that both engines share and neither owns: runs with limits, the undo log, and base classes for rules, states and updates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core import lazy_face

if TYPE_CHECKING:
    from evermat.engine import saved_rows
    from evermat.engine.different_values import DifferentValuesError
    from evermat.engine.journal import Journal
    from evermat.engine.rules import BaseRules, BaseStratumRules, NormalRules, limited_to
    from evermat.engine.run import Jobs, Limits, Progress, Run
    from evermat.engine.saved_rows import Difference, Op, SavedRows, WritableRows
    from evermat.engine.state import BaseSnapshot, BaseState
    from evermat.engine.update import BaseUpdate
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
