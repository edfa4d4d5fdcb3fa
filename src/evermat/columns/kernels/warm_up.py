"""Compiles all kernels of imported modules ahead of use, or loads those that most programs need."""

from __future__ import annotations

import contextlib
from typing import Any

from numba.core import sigutils

from evermat.columns.kernels import jit


def is_warm() -> bool:
    """Whether first use needs no compilation: all kernels are in the cache on disk, or compiled in this process."""
    if jit.JIT_DISABLED or (jit.CACHE_FOLDER is not None and (jit.CACHE_FOLDER / "warm").exists()):
        return True
    return all(len(kernel.signatures) >= len(signatures) for kernel, signatures in jit.KERNELS)


# What nearly every program with joins needs, over rows of 32 bits.
_COMMON = [
    "chain_rows",
    "fill_bitmap",
    "gather_batch",
    "gather_rows",
    "groups_direct",
    "insert_bitmap",
    "insert_hashed",
    "join_all",
    "merge_rows",
    "range_of_rows",
    "span_of_column",
]
# What closures need besides.
_CLOSURES = [
    "clear",
    "condense",
    "count_pairs",
    "edges_between",
    "fill_direct",
    "fill_slots",
    "find_components",
    "find_strong_components",
    "insert_direct",
    "link",
    "list_by_key",
    "range_of_batch",
    "reach",
    "spread",
    "write_pairs",
]


def prepare_kernels(*, closures: bool) -> None:
    """Loads the kernels that nearly every program needs, or every one with closures, so that reasoning does not wait for them.

    Those that were never compiled on this machine are left alone: it may be that they are not needed.
    """
    if jit.CACHE_FOLDER is None:
        return
    files = [path.name for path in jit.CACHE_FOLDER.rglob("*.nbi")]
    wanted = {*_COMMON, *(_CLOSURES if closures else ())}
    for kernel, signatures in jit.KERNELS:
        name = kernel.__name__
        if name in wanted and any(f".{name}-" in file for file in files):
            _compile(kernel, signatures[0])


def warm_up() -> None:
    """Compiles every kernel for every signature in use, or load it from the cache."""
    for kernel, signatures in jit.KERNELS:
        for signature in signatures:
            _compile(kernel, signature)
    if jit.CACHE_FOLDER is not None:
        with contextlib.suppress(OSError):  # the folder has become read-only: compiled, if not cached
            (jit.CACHE_FOLDER / "warm").touch()


def _compile(kernel: Any, signature: str) -> None:
    # as types, for numba looks a kernel up in its cache by what it was asked to compile
    kernel.compile(sigutils.normalize_signature(f"({signature})")[0])
