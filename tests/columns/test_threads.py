"""Kernels and buffers in many threads at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numba
import pytest
from numba.core.compiler_lock import global_compiler_lock

from evermat.columns.evaluation import buffers
from evermat.columns.evaluation.buffers import SPARES, borrowed_buffers
from evermat.columns.kernels.warm_up import prepare_kernels, warm_up
from evermat.kernels import jit
from tests.support.many_threads import SECONDS, THREADS, at_once

FIRST_USE = """
import threading
import numpy as np
import evermat
from evermat.kernels import jit
from evermat.columns.kernels.rows import change_bits
from tests.support.many_threads import at_once

def use():
    state = np.zeros(9, np.uint16)
    change_bits(state, np.array([1, 5], np.int32), 1, 2)
    found.append(state.tolist())

for _ in range(2):
    found = []
    at_once(*[use] * 8)
    assert found == [found[0]] * 8, found
stats = change_bits.stats
print(found[0], len(change_bits.signatures), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
FIRST_IMPORTS = """
import sys
from random import Random
from tests.support.many_threads import at_once

PACKAGES = ["evermat" + name for name in ("", *".core .language .plan .reasoning .engine .columns .io .owl".split())]

def load(number):
    def run():
        packages = [*PACKAGES]
        Random(number).shuffle(packages)
        for package in packages:
            __import__(package)
            module = sys.modules[package]
            for name in module.__all__:
                getattr(module, name)
        import evermat
        program = evermat.Program.parse(".decl a(x:number) .decl b(x:number) a(1). b(x + 1) :- a(x).")
        assert list(program.materialise()["b"]) == [(2,)]
    return run

at_once(*map(load, range(3)))
print("done")
"""


@pytest.fixture
def no_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "_spare", [])


def python(code: str, folder: Path, kernels: Path) -> str:
    """What a new process prints, in which nothing was loaded; it keeps its caches, and kernels, in some folders."""
    root = Path(__file__).parents[2]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(kernels), "XDG_CACHE_HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_kernel_is_compiled_or_loaded_once_for_all_threads(tmp_path: Path) -> None:
    for loaded, made in ((0, 1), (1, 0)):
        assert python(FIRST_USE, tmp_path, tmp_path) == f"[0, 2, 0, 0, 0, 2, 0, 0, 0] 1 {loaded} {made}\n"


@pytest.mark.slow
def test_threads_may_be_the_first_to_load_and_to_use_everything(tmp_path: Path) -> None:
    kernels = tmp_path if jit.CACHE_FOLDER is None else jit.CACHE_FOLDER.parent
    assert python(FIRST_IMPORTS, tmp_path, kernels) == "done\n"


@pytest.mark.skipif(jit.JIT_DISABLED, reason="nothing is compiled")
def test_kernels_that_are_loaded_do_not_wait_for_what_other_threads_compile() -> None:
    """Nor for a compiler that no thread of a forked process has."""
    warm_up()
    ready = Event()

    def prepare() -> None:
        prepare_kernels(closures=True)
        warm_up()
        ready.set()

    with global_compiler_lock:
        Thread(target=prepare, daemon=True).start()
        assert ready.wait(120)


def test_the_configuration_of_numba_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two threads that import kernels at the same time once left our folder in it."""
    configured: list[Any] = []

    class Config:
        def __setattr__(self, name: str, value: object) -> None:
            configured.append((name, value))

        def __getattr__(self, name: str) -> Any:
            return getattr(config, name)

    config = numba.config
    monkeypatch.setattr(jit, "CACHE_FOLDER", tmp_path)
    monkeypatch.setattr(numba, "config", Config())
    kernel = jit.compiled("int64")(plus_one)
    jit.KERNELS.pop()
    assert (kernel(1), configured) == (2, [])
    assert list(tmp_path.rglob("*.plus_one-*.nbi"))


def plus_one(x: int) -> int:
    return x + 1


def test_buffers_are_lent_to_one_thread_at_a_time(no_spare: None) -> None:
    lent: dict[int, str] = {}

    def use(name: str) -> Callable[[], None]:
        def step() -> None:
            for _ in range(20):
                with borrowed_buffers() as borrowed:
                    buffer = borrowed.get(0, 1)
                    assert lent.setdefault(id(buffer), name) == name
                    buffer[0, :2] = hash(name)
                    assert (buffer[0, :2] == hash(name)).all()
                    del lent[id(buffer)]

        return step

    at_once(*map(use, map(str, range(3 * THREADS))), seconds=SECONDS / 2)


def test_no_more_buffers_are_kept_than_are_worth_it(no_spare: None) -> None:
    def nested(depth: int) -> None:
        with borrowed_buffers() as borrowed:
            borrowed.get(0, 1)
            if depth:
                nested(depth - 1)

    nested(2 * SPARES)
    assert len(buffers._spare) == SPARES
