"""What `auto` chooses, and that it says why."""

from __future__ import annotations

import pytest

import evermat

CLOSURE = """
.decl e(x:number, y:number)
.decl t(x:number, y:number)
.decl far(x:number)
t(x, y) :- e(x, y).
t(x, z) :- t(x, y), e(y, z).
far(y) :- t(0, y), !e(0, y).
"""
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
    [("none", "bf", "dred"), ("nonrecursive", "bf-c", "counting"), ("both", "bf-c", "counting")],
)
def test_deletions_with_and_without_counters(counters: str, recursive: str, nonrecursive: str) -> None:
    found = chosen(CLOSURE, counters, delete={"e": [(5, 6)]})
    assert found["t"][0] == recursive
    assert found["far"][0] == nonrecursive
    assert all(reason for _, reason in found.values())


@pytest.mark.parametrize(("counters", "algorithm"), [("none", "dred"), ("nonrecursive", "bf-c"), ("both", "dred-c")])
def test_insertions_keep_the_counters_that_are_valid(counters: str, algorithm: str) -> None:
    found = chosen(CLOSURE, counters, insert={"e": [(30, 31)]})
    assert found["t"] == (algorithm, "nothing can be lost: insertion only, keeping the counters that are valid")


@pytest.mark.parametrize(("counters", "algorithm"), [("none", "dred"), ("both", "dred-c")])
def test_rules_that_compute_are_not_checked_backwards(counters: str, algorithm: str) -> None:
    found = chosen(LENGTHS, counters, delete={"e": [(5, 6)]})
    assert found["d"] == (algorithm, "a recursive rule computes values, which makes checking backwards dear")


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
