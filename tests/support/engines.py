"""One test for all engines: the in-memory one, and the Spark engine without Spark, which has its facts computed in several places."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat import Materialisation
from tests.support.environment import LONG
from tests.support.in_process import assert_files_right, materialise_in_process, narrow
from tests.support.randomness import seeds
from tests.support.schemes import use_schemes

# Places that the Spark engine is asked for. `auto` begins in the driver, which is soon full.
PLACES = {"rounds": "cluster", "pivot": "pivot", "auto": "auto"}
EVERYWHERE = ("memory", *PLACES)
# An update does not ask where facts were computed first: there any place will do.
EITHER = ("memory", "spark")

Test = Callable[..., None]


class Engine:
    """Makes materialisations, which last as long as the test. How the Spark engine divides its work is left to chance."""

    def __init__(self, name: str, rng: Random, buckets: int, resources: ExitStack) -> None:
        self.in_memory = name == "memory"
        self._name, self._rng, self._buckets, self._resources = name, rng, buckets, resources

    def repeat(self, seed: float) -> None:
        """From now on what is left to chance is what it was for the same seed: places have figures of their own."""
        self._rng.seed(seed)

    def materialise(self, text: str, facts: Mapping[str, Any] | None = None, counters: str = "none") -> Materialisation:
        """All consequences of a program's text and facts."""
        program = evermat.Program.parse(text)
        if self.in_memory:
            return program.materialise(facts, counters=counters)
        made = materialise_in_process(
            program,
            facts or {},
            place=PLACES[self._name] if self._name in PLACES else self._rng.choice([*PLACES.values()]),
            counters=counters,
            buckets=self._buckets,
            rng=self._rng,
        )
        self._resources.enter_context(made)
        if made.on_cluster:
            assert_files_right(made)
        return made


@contextmanager
def using(name: str, rng: Random, few: int = 2) -> Iterator[Engine]:
    """An engine for a test with facts of which `few` are few."""
    with ExitStack() as resources:
        own = Random(rng.random())
        buckets = 1 if name == "memory" else resources.enter_context(narrow(own, few))
        yield Engine(name, own, buckets, resources)


def on_engines(test: Test) -> Test:
    """A test with an argument `engine`, for either."""

    def run(engine: str, **arguments: Any) -> None:
        chance = Random(f"{test.__name__} {[a for a in arguments.values() if isinstance(a, str)]}")
        with using(engine, chance, few=50) as chosen:
            test(engine=chosen, **arguments)

    return _for_each(EITHER, run, test)


def randomly(
    memory: int, spark: int, engines: Sequence[str] = EITHER, few: int = 2, schemes: float = 0.3
) -> Callable[[Test], Test]:
    """A test with the arguments `engine` and `rng`, for so many random examples in memory, and on Spark.

    In a part of them, `schemes`, relations are not stored by rows wherever that is possible.
    """

    def decorate(test: Test) -> Test:
        def run(engine: str, **arguments: Any) -> None:
            def example(rng: Random) -> None:
                with pytest.MonkeyPatch.context() as patch, using(engine, rng, few) as chosen:
                    patch.setattr("evermat.columns.evaluation.rules._MANY_STARTS", rng.choice([0, 16]))
                    use_schemes(patch, wherever_possible=rng.random() < schemes, turned=rng.random() < 0.5)
                    test(engine=chosen, rng=rng, **arguments)

            if engine == "memory":
                limits = settings(max_examples=memory if LONG else (memory + 1) // 2, deadline=None)
                limits(given(rng=st.randoms(use_true_random=True))(example))()
            else:
                name = f"{test.__module__}.{test.__name__} {engine} {[a for a in arguments.values() if isinstance(a, str | int | float)]}"
                _run_some(example, name, spark if LONG else (spark + 1) // 2)

        return pytest.mark.hypothesis(_for_each(engines, run, test, "rng"))

    return decorate


def _run_some(example: Callable[[Random], None], name: str, count: int) -> None:
    """Few examples, where each matters: Hypothesis would begin with the same one every time."""
    for seed in seeds(name, count):
        try:
            example(Random(seed))
        except BaseException as error:
            error.add_note(f"rng=Random({seed})")
            raise


def _for_each(engines: Sequence[str], run: Test, test: Test, *left_out: str) -> Test:
    """Has pytest call `run` in the place of `test`, without some arguments."""
    signature = inspect.signature(test)
    wanted = [parameter for name, parameter in signature.parameters.items() if name not in left_out]
    run.__signature__ = signature.replace(parameters=wanted)  # type: ignore[attr-defined]
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(run, name, getattr(test, name))
    run.pytestmark = list(getattr(test, "pytestmark", []))  # type: ignore[attr-defined]
    return pytest.mark.parametrize("engine", engines)(run)
