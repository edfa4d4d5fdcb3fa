"""Keeps pandas out of this process until somebody needs it."""

from __future__ import annotations

import sys


class WithoutPandas:
    """A finder of modules for which there is no pandas."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        """Finds nothing; refuses one module before others are asked."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not loaded by the command line", name=name)


def allow_pandas() -> None:
    """From now on pandas may be loaded: Spark Connect and tasks that take Arrow cannot do without."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, WithoutPandas)]
