"""Chance in tests, decided in one place: the profile of Hypothesis.

The profile `fixed` holds unless another one is asked for: every run tries the same examples, so a failure is due to a change.
`pytest --hypothesis-profile=random` (`make fuzz`) tries others each time, and prints how to repeat those that fail.
Generators of our own take a `random.Random`; those that Hypothesis does not call get its seed from `seeds`.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random, SystemRandom

from hypothesis import core, settings

EXAMPLES = 60  # of tests that do not ask for another number


def register_profiles() -> None:
    """Makes both profiles known, and `fixed` the one that holds."""
    settings.register_profile("fixed", deadline=None, max_examples=EXAMPLES, derandomize=True)
    settings.register_profile("random", deadline=None, max_examples=EXAMPLES, derandomize=False, print_blob=True)
    settings.load_profile("fixed")


def seeds(test: str, count: int) -> Iterator[int]:
    """Yields so many seeds for a test: always the same ones, unless the profile is `random`.

    Then they are those of `--hypothesis-seed`, if it is given.
    """
    forced = core.global_force_seed
    chance = (
        Random(test) if settings().derandomize else SystemRandom() if forced is None else Random(f"{test} {forced}")
    )
    for _ in range(count):
        yield chance.getrandbits(32)
