"""Imports that wait until something is used."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any


def lazy_face(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package that loads its modules when their names are first used.

    The imports that type checkers see are the table of names:

        if TYPE_CHECKING:
            from evermat.io.schema import arrow_schema, nullary
        else:
            __getattr__, __dir__, __all__ = lazy_face(__name__)

    A name must differ from all modules of the package: an import of the module would hide it.
    """
    module = sys.modules[package]
    homes, namespace = dict(_imports_for_type_checkers(module)), vars(module)

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        home, own = homes[name]
        try:
            namespace[name] = getattr(import_module(home), own) if home != package else import_module(f"{home}.{own}")
        except AttributeError:
            namespace[name] = import_module(f"{home}.{own}")  # a module of a room
        return namespace[name]

    return load, lambda: sorted({*namespace, *homes}), sorted(homes)


def _imports_for_type_checkers(module: Any) -> Iterator[tuple[str, tuple[str, str]]]:
    """The names that a module imports for type checkers, each with the module that has it and its name there."""
    (block,) = [
        node
        for node in ast.parse(module.__loader__.get_source(module.__name__)).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    for node in block.body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((alias.asname or alias.name, (node.module, alias.name)) for alias in node.names)


def deferred(path: str) -> Any:
    """A function that imports the one it stands for, `package.module:function`, when it is called.

    Its type is `Any`, so that the annotation of whatever holds it says what it takes and returns.
    """
    module, _, name = path.partition(":")

    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(module), name)(*arguments, **options)

    return call
