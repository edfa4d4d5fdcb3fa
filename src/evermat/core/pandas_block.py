"""Keeps pandas out of a process until it is needed.

Arrow would load pandas on first use where that is installed: a third of a second for nothing, in which signals get lost.
"""

from __future__ import annotations

import sys


class _WithoutPandas:
    """A finder of modules for which there is no pandas."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        """Finds nothing; refuses one module before others are asked."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not loaded by the command line", name=name)


def block_pandas() -> None:
    """Lets nothing load pandas from now on."""
    sys.meta_path.insert(0, _WithoutPandas())


def allow_pandas() -> None:
    """Lets pandas be loaded from now on: Spark Connect and tasks that take Arrow need it."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _WithoutPandas)]
