"""Imports that wait until something is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def deferred(path: str) -> Any:
    """A function that imports the one it stands for, `package.module:function`, when it is called.

    Its type is `Any`, so that the annotation of whatever holds it says what it takes and returns.
    """
    module, _, name = path.partition(":")

    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(module), name)(*arguments, **options)

    return call
