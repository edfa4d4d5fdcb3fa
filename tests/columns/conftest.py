"""Checks, after all tests here, that the kernels were used only with the signatures that they declare."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

import pytest

import evermat.kernels
from evermat.columns import kernels
from evermat.columns.kernels.warm_up import warm_up
from evermat.kernels import jit


@pytest.fixture(scope="session", autouse=True)
def _signatures_are_declared() -> Iterator[None]:
    for room in (evermat.kernels, kernels):
        for module in iter_modules(room.__path__, f"{room.__name__}."):
            import_module(module.name)  # those that the first of the tests alone would not import
    warm_up()
    before = [len(kernel.signatures) for kernel, _ in jit.KERNELS]
    yield
    more = [
        (kernel.__name__, signature)
        for (kernel, _), known in zip(jit.KERNELS, before, strict=True)
        for signature in kernel.signatures[known:]
    ]
    assert not more, f"compiled for undeclared types: {more}"
