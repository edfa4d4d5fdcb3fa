"""The engine of commands that name none: Spark is an optional part of the installation."""

from __future__ import annotations

from evermat.core import EngineName
from evermat.spark import has_spark, no_spark


def default_engine() -> EngineName:
    """The engine of commands that name none: Spark if it is installed."""
    return "spark" if has_spark() else "memory"


def check_spark(what: str) -> None:
    """Raises a `ProgramError` if Spark, which `what` needs, is not installed."""
    if not has_spark():
        raise no_spark(what)
