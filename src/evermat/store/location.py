"""Where states are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evermat.core import local_path

_STATES = "a state is in a folder of this machine: give a path, or a URI such as `file:///folder`"


def state_location(name: str, value: Any) -> Path:
    """Where the state is that an argument names.

    Raises:
        ArgumentError: states cannot be there.
        TypeError: it is no path.
    """
    return local_path("a state", name, value, _STATES)
