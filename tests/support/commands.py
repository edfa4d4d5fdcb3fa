"""The command line in this process."""

from __future__ import annotations

import importlib
import pkgutil
import signal
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest


class Done(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


Evermat = Callable[..., Done]


@pytest.fixture(scope="session")
def compiled_kernels() -> None:
    """On a new machine the first run would have more to say than those that follow, whatever kernels it is the first to import."""
    import evermat.kernels
    from evermat.columns import kernels
    from evermat.columns.kernels.warm_up import warm_up

    for room in (evermat.kernels, kernels):
        for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)
    warm_up()


@pytest.fixture
def kept_signals() -> Iterator[None]:
    """Puts the handlers of signals back afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def evermat_command(
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    kept_signals: None,
    compiled_kernels: None,
) -> Evermat:
    """Runs `evermat` with some arguments."""
    from evermat.cli.main import main

    def run(*arguments: object) -> Done:
        capfdbinary.readouterr()
        monkeypatch.setattr(sys, "argv", ["evermat", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfdbinary.readouterr()
        return Done(ended.value.code or 0, out.decode(), err.decode())

    return run
