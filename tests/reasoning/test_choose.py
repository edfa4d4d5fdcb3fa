"""What `auto` chooses, and that it says why."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat.reasoning import choose as choose_module
from evermat.testing import state_of
from tests.support.strategies import Features, random_program
from tests.support.updates import applied, assert_right, random_update

CLOSURE = """
.decl e(x:number, y:number)
.decl t(x:number, y:number)
.decl far(x:number)
t(x, y) :- e(x, y).
t(x, z) :- t(x, y), e(y, z).
far(y) :- t(0, y), !e(0, y).
"""
PATHS = CLOSURE.replace("e(y, z).", "e(y, z), x != z.")  # the test keeps it from being a closure
LENGTHS = """
.decl e(x:number, y:number)
.decl d(x:number, n:number)
d(0, 0).
d(y, n + 1) :- d(x, n), e(x, y), n < 50.
"""
CHAIN = [(i, i + 1) for i in range(30)]


def chosen(text: str, counters: str, **change: dict[str, list[tuple[int, ...]]]) -> dict[str, tuple[str, str]]:
    """The algorithm and the reason for each relation that is reached."""
    m = evermat.Program.parse(text).materialise({"e": CHAIN}, counters=counters)
    strata = m.update(**change).stats["strata"]
    return {name: (s["algorithm"], s["reason"]) for s in strata for name in s["relations"]}


@pytest.mark.parametrize(
    ("counters", "recursive", "nonrecursive"),
    [("none", "bf", "dred"), ("nonrecursive", "bf-c", "counting"), ("both", "dred-c", "counting")],
)
def test_deletions_with_and_without_counters(counters: str, recursive: str, nonrecursive: str) -> None:
    found = chosen(PATHS, counters, delete={"e": [(5, 6)]})
    assert found["t"][0] == recursive
    assert found["far"][0] == nonrecursive
    assert all(reason for _, reason in found.values())


@pytest.mark.parametrize(("counters", "algorithm"), [("none", "dred"), ("nonrecursive", "bf-c"), ("both", "dred-c")])
def test_insertions_keep_the_counters_that_are_valid(counters: str, algorithm: str) -> None:
    found = chosen(PATHS, counters, insert={"e": [(30, 31)]})
    assert found["t"] == (algorithm, "nothing can be lost: insertion only, keeping the counters that are valid")


@pytest.mark.parametrize("counters", ["none", "nonrecursive", "both"])
def test_closures_are_maintained_by_modules(counters: str) -> None:
    for change in ({"delete": {"e": [(5, 6)]}}, {"insert": {"e": [(30, 31)]}, "delete": {"e": [(5, 6)]}}):
        assert chosen(CLOSURE, counters, **change)["t"] == ("bf-c-mod", "rules close a relation")
    reason = "rules close a relation; nothing can be lost, so that counters stay valid"
    expected = ("dred-c-mod", reason) if counters == "both" else ("bf-c-mod", "rules close a relation")
    assert chosen(CLOSURE, counters, insert={"e": [(30, 31)]})["t"] == expected


@pytest.mark.parametrize("counters", ["none", "nonrecursive"])
def test_rules_that_compute_are_not_checked_backwards(counters: str) -> None:
    found = chosen(LENGTHS, counters, delete={"e": [(5, 6)]})
    assert found["d"] == ("dred", "a recursive rule computes values, which makes checking backwards expensive")


@pytest.mark.parametrize(
    ("text", "relation", "counters", "given_up"),
    [
        (PATHS, "t", "both", ["dred-c", "bf-c"]),
        (PATHS, "t", "nonrecursive", ["bf-c"]),
        (PATHS, "t", "none", ["bf"]),
        (CLOSURE, "t", "both", ["bf-c-mod"]),
        (CLOSURE, "t", "none", ["bf-c-mod"]),
        (LENGTHS, "d", "both", ["dred-c"]),
        (LENGTHS, "d", "none", ["dred"]),
    ],
)
def test_what_goes_on_for_too_long_is_given_up(
    text: str, relation: str, counters: str, given_up: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose_module, "_FEW", 3)
    monkeypatch.setattr(choose_module, "_MOST_FOR_BF", 0.0)
    monkeypatch.setattr(choose_module, "_MOST_FOR_DRED", 0.0)
    m = evermat.Program.parse(text).materialise({"e": CHAIN}, counters=counters)
    instances = state_of(m).work(next(s for s in m.program.strata if relation in s.relations))
    strata = m.update(delete={"e": [(5, 6)]}).stats["strata"]
    found = next(s for s in strata if relation in s["relations"])
    assert found["algorithm"] == "remat"
    assert found["reason"] == (
        "".join(f"{name} was given up after 3 instances; " for name in given_up)
        + f"from scratch there are about {instances:,} instances"
    )


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(rng=st.randoms(use_true_random=True), closures=st.sampled_from([0.0, 1.0]))
def test_giving_up_leaves_no_trace(rng: Random, closures: float) -> None:
    """Whenever attempts are given up, facts, counters and modules are right in the end."""
    random = random_program(rng, Features(closures=closures))
    m = evermat.Program.parse(random.text).materialise(random.facts, counters=rng.choice(["none", "both"]))
    explicit = random.facts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose_module, "_MOST_FOR_BF", 0.0)
        patch.setattr(choose_module, "_MOST_FOR_DRED", 0.0)
        for _ in range(4):
            patch.setattr(choose_module, "_FEW", rng.randint(0, 30))
            delete, insert = random_update(rng, random.relations, explicit)
            m.update(insert=insert, delete=delete, algorithm=rng.choice(["auto", "auto", "dred-c", "dred-c-mod"]))
            explicit = applied(explicit, delete, insert)
            assert_right(m, random, explicit)


def test_a_large_change_is_done_from_scratch() -> None:
    m = evermat.Program.parse(CLOSURE).materialise({"e": [(i, -i) for i in range(1, 4000)]})
    strata = m.update(delete={"e": [(i, -i) for i in range(1, 3000)]}).stats["strata"]
    by_relation = {name: s for s in strata for name in s["relations"]}
    assert by_relation["t"]["algorithm"] == "remat"
    assert by_relation["t"]["reason"] == "75% of what the stratum reads has changed"


def test_recursive_groups_are_rematerialised() -> None:
    text = ".decl e(x:number, y:number) .decl r(x:number) r(1). r(n) :- r(x), n = count : { e(y, _), y <= x }."
    m = evermat.Program.parse(text).materialise({"e": CHAIN})
    for algorithm in ("auto", "dred-c", "bf"):
        stats = m.update(delete={"e": [(0, 1)]}, insert={"e": [(0, 2)]}, algorithm=algorithm).stats
        reasons = {s["reason"] for s in stats["strata"] if "r" in s["relations"]}
        assert reasons == {"the list of groups of an aggregate is recursive"}
        m.update(delete={"e": [(0, 2)]}, insert={"e": [(0, 1)]})
