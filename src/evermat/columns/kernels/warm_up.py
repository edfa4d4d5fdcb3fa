"""Compiles all kernels of imported modules ahead of use, or loads those that most programs need."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from functools import cache
from typing import Any

from numba.core import sigutils

from evermat.kernels import jit


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
    names = {*_COMMON, *(_CLOSURES if closures else ())}
    wanted = [(kernel, _types(signatures[0])) for kernel, signatures in jit.KERNELS if kernel.__name__ in names]
    missing = [(kernel, types) for kernel, types in wanted if types not in kernel.overloads]
    files = [path.name for path in jit.CACHE_FOLDER.rglob("*.nbi")] if missing else []
    for kernel, types in missing:
        if any(f".{kernel.__name__}-" in file for file in files):
            kernel.compile(types)


def warm_up() -> None:
    """Compiles every kernel for every signature in use, or load it from the cache."""
    for kernel, signatures in jit.KERNELS:
        for types in map(_types, signatures):
            if types not in kernel.overloads:  # else there is no need to wait for what other threads compile
                kernel.compile(types)
    if jit.CACHE_FOLDER is not None:
        with contextlib.suppress(OSError):  # the folder has become read-only: compiled, if not cached
            (jit.CACHE_FOLDER / "warm").touch()


@cache
def _types(signature: str) -> Any:
    """A signature as types, for numba looks a kernel up in its cache by what it was asked to compile."""
    return sigutils.normalize_signature(f"({signature})")[0]


def main() -> None:
    """Compiles all kernels into the cache folder, which may then be shipped: `python -m evermat.columns.kernels.warm_up`."""
    for room in ("evermat.kernels", "evermat.columns.kernels"):
        for module in pkgutil.iter_modules(importlib.import_module(room).__path__, f"{room}."):
            if module.name != f"{__package__}.warm_up":
                importlib.import_module(module.name)
    warm_up()
    print(jit.CACHE_FOLDER)  # noqa: T201


if __name__ == "__main__":
    main()
