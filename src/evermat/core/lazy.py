"""Imports that wait until something is used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_face(
    package: str, exports: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package that loads its modules when their names are first used.

    Type checkers see the names by imports that never run:

        if TYPE_CHECKING:
            from evermat.io.schema import arrow_schema, nullary
        else:
            __getattr__, __dir__, __all__ = lazy_face(__name__, {"schema": "arrow_schema nullary"})

    A name must differ from all modules of the package: an import of the module would hide it.

    Args:
        package: its `__name__`.
        exports: for each module, below the package, the names in it, separated by blanks; without any, the module itself.
    """
    homes = {name: module for module, names in exports.items() for name in names.split() or [module]}
    namespace = vars(sys.modules[package])

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        module = import_module(f"{package}.{home}")
        namespace[name] = module if name == home else getattr(module, name)
        return namespace[name]

    return load, lambda: sorted({*namespace, *homes}), sorted(homes)


def deferred(path: str) -> Any:
    """A function that imports the one it stands for, `package.module:function`, when it is called.

    Its type is `Any`, so that the annotation of whatever holds it says what it takes and returns.
    """
    module, _, name = path.partition(":")

    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(module), name)(*arguments, **options)

    return call
