"""Evermat: a Datalog engine that keeps its answers true.

>>> import evermat
>>> program = evermat.Program.parse('''
...     .decl edge(x:number, y:number)
...     .decl path(x:number, y:number)
...     path(x, y) :- edge(x, y).
...     path(x, z) :- path(x, y), edge(y, z).
... ''')
>>> len(program.strata)
2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = [
    "DataError",
    "EvermatError",
    "LimitError",
    "Program",
    "ProgramError",
    "ResourceError",
    "StateError",
    "StreamedUpdate",
    "changes",
    "open",
    "register_source",
    "vacuum",
    "versions",
]

_HOMES = {"StreamedUpdate": "evermat.runtime.stream", "register_source": "evermat.runtime.structured_streaming"}

if TYPE_CHECKING:
    from evermat.api.program import Program, changes, open, vacuum, versions  # noqa: A004
    from evermat.core import DataError, EvermatError, LimitError, ProgramError, ResourceError, StateError
    from evermat.runtime.stream import StreamedUpdate
    from evermat.runtime.structured_streaming import register_source


def __getattr__(name: str) -> object:
    """Loads what is asked for, when it is asked for: starting up must not cost what is not used."""
    if name not in __all__:
        raise AttributeError(f"module 'evermat' has no attribute '{name}'")
    from importlib import import_module  # noqa: PLC0415

    home = "evermat.core.errors" if name.endswith("Error") else _HOMES.get(name, "evermat.api.program")
    return getattr(import_module(home), name)
