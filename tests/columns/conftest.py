"""Checks, after all tests here, that the kernels were used only with the signatures that they declare."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evermat.columns.kernels import jit
from evermat.columns.kernels.warm_up import warm_up


@pytest.fixture(scope="session", autouse=True)
def _signatures_are_declared() -> Iterator[None]:
    warm_up()
    before = [len(kernel.signatures) for kernel, _ in jit.KERNELS]
    yield
    after = [len(kernel.signatures) for kernel, _ in jit.KERNELS]
    more = [kernel.__name__ for (kernel, _), b, a in zip(jit.KERNELS, before, after, strict=True) if a != b]
    assert not more, f"compiled for undeclared types: {more}"
