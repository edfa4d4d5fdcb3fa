"""What modular reasoning promises beyond the right result: how much it considers, what it deletes, and that it can be stopped."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat import Materialisation
from evermat.columns.graph import delta_reachability
from evermat.engine.run import Run
from evermat.reasoning import choose as choose_module
from evermat.runtime.engines import placement
from evermat.testing import engine_of, state_of
from tests.support import environment, oracle
from tests.support.engines import Engine, on_engines, randomly
from tests.support.in_process import materialise_in_process
from tests.support.strategies import Features, random_program
from tests.support.updates import applied, assert_counters_right, assert_right, everything, facts_of, random_update

CLOSED = Features(closures=1.0)
MODULAR = ("dred-c-mod", "bf-c-mod")
Rows = set[tuple[int, int]]

TRANSITIVE = ".decl r(x:number, y:number) r(x, z) :- r(x, y), r(y, z)."
SYMMETRIC = TRANSITIVE + " r(y, x) :- r(x, y)."
LINEAR = ".decl e(x:number, y:number) .decl r(x:number, y:number) r(x, y) :- e(x, y). r(x, z) :- r(x, y), e(y, z)."


# ── How much is considered ───────────────────────────────────────────────────────────────────────────────────────────


def chain(n: int) -> Rows:
    return {(i, i + 1) for i in range(n)}


def cycle(n: int) -> Rows:
    return {(i, (i + 1) % n) for i in range(n)}


Example = tuple[str, str, Callable[[int], Rows], Callable[[int], Rows]]

#: the program, the relation of explicit facts, these facts, and those of them that are deleted and inserted again
EXAMPLES: dict[str, Example] = {
    "example 1": (TRANSITIVE, "r", chain, lambda n: {(n // 2, n // 2 + 1)}),
    "example 2": (SYMMETRIC, "r", cycle, lambda n: {(0, 1), (n // 2, n // 2 + 1)}),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_quadratic_number_of_instances_is_considered(name: str) -> None:
    text, relation, facts, _ = EXAMPLES[name]
    program = evermat.Program.parse(text)
    considered = {
        algorithm: [program.materialise({relation: facts(n)}, algorithm=algorithm).stats["derivations"] for n in sizes]
        for algorithm, sizes in (("modular", (20, 40, 80, 160)), ("seminaive", (20, 40, 80)))
    }
    assert all(growth < 4.5 for growth in growths(considered["modular"]))
    assert all(growth > 7 for growth in growths(considered["seminaive"]))


@pytest.mark.parametrize("algorithm", MODULAR)
@pytest.mark.parametrize("name", EXAMPLES)
def test_updates_consider_a_quadratic_number_of_instances(name: str, algorithm: str) -> None:
    considered = [work_of_updates(name, n, algorithm) for n in (20, 40, 80)]
    assert all(growth < 4.5 for growth in growths(considered))
    plain = algorithm.removesuffix("-mod")
    assert all(growth > 6.5 for growth in growths([work_of_updates(name, n, plain) for n in (12, 24, 48)]))


def work_of_updates(name: str, n: int, algorithm: str) -> int:
    """How many instances are considered to delete facts in the middle, and to insert them again."""
    text, relation, facts, changed = EXAMPLES[name]
    m = evermat.Program.parse(text).materialise({relation: facts(n)}, counters="both")
    m.update(insert={relation: {(-1, -1)}}, algorithm=algorithm)  # counts what the algorithm needs
    before, considered = facts_of(m), 0
    for change in ("delete", "insert"):
        done = m.update(**{change: {relation: changed(n)}}, algorithm=algorithm)
        considered += done.stats["derivations"]
        if algorithm in MODULAR:
            assert done.stats["asked"]["closure"]["instances"] == done.stats["derivations"]
    assert facts_of(m) == before
    return considered


def growths(figures: list[int]) -> list[float]:
    return [after / before for before, after in pairwise(figures)]


@settings(max_examples=25, deadline=None)
@given(rng=st.randoms(use_true_random=True), symmetric=st.booleans())
def test_every_instance_of_other_rules_is_considered_once(rng: Random, symmetric: bool) -> None:
    """Mat-Mod: other rules of the stratum instance by instance, and each pair of the closure once, however it comes about."""
    text = (
        (SYMMETRIC if symmetric else TRANSITIVE)
        + """
        .decl a(x:number, y:number) .decl q(x:number, y:number)
        r(x, y) :- a(x, y).
        q(x, z) :- r(x, y), a(z, y), x != z.
        q(x, y) :- q(y, x), r(x, x).
        r(x, y) :- q(x, z), q(z, y).
    """
    )
    facts = {name: {(rng.randrange(6), rng.randrange(6)) for _ in range(rng.randint(0, 6))} for name in "raq"}
    m = evermat.Program.parse(text).materialise(facts)
    (stratum,) = (s for s in m.program.strata if "r" in s.relations)
    assert {"r", "q"} <= set(stratum.relations) and len(stratum.closures) == 1
    instances = sum(oracle.instances(rule, everything(m)).total() for rule in (*stratum.nonrecursive, *stratum.plain))
    closed = engine_of(m).run.asked["closure"].instances if "closure" in engine_of(m).run.asked else 0
    assert closed == len(m["r"])
    assert m.stats["derivations"] == instances + closed


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(rng=st.randoms(use_true_random=True), counters=st.sampled_from(["none", "nonrecursive", "both"]))
def test_modules_derive_what_seminaive_evaluation_derives(rng: Random, counters: str) -> None:
    random = random_program(rng, CLOSED)
    program = evermat.Program.parse(random.text)
    found = {
        algorithm: program.materialise(random.facts, counters=counters, algorithm=algorithm)
        for algorithm in ("seminaive", "modular", "auto")
    }
    assert facts_of(found["seminaive"]) == facts_of(found["modular"]) == facts_of(found["auto"])
    for m in found.values():
        assert_counters_right(m, random.facts)
    used = [{stratum["algorithm"] for stratum in found[algorithm].stats["strata"]} for algorithm in found]
    assert used[0] == {"seminaive"}
    assert used[1] == used[2]
    assert ("modular" in used[1]) == any(stratum.closures for stratum in found["auto"].program.strata)


def test_names_of_algorithms_are_checked() -> None:
    program = evermat.Program.parse(TRANSITIVE)
    with pytest.raises(evermat.ProgramError) as error:
        program.materialise(algorithm="x")
    assert (
        str(error.value)
        == "error[E270]: there is no algorithm `x`\n  = note: the known ones are auto, modular, seminaive"
    )
    with pytest.raises(evermat.ProgramError) as error:
        program.materialise(algorithm="modularly")
    assert str(error.value) == (
        "error[E270]: there is no algorithm `modularly`\n"
        "  = note: the known ones are auto, modular, seminaive\n"
        "  = help: did you mean `modular`?"
    )


LONG = """
.decl e(x:number, y:number) .decl d(x:number)
d(y) :- d(x), e(x, y).
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "beside", ["", "r(x, x) :- d(x), x < 0. d(x) :- r(x, x)." + TRANSITIVE], ids=["alone", "closure"]
)
@pytest.mark.parametrize("algorithm", ["dred-c-mod", "bf-c-mod", *(["remat", "auto"] if environment.LONG else [])])
@on_engines
def test_other_rules_may_take_many_rounds(engine: Engine, algorithm: str, beside: str) -> None:
    """More rounds than an engine can tell sets apart."""
    n = 40
    m = engine.materialise(LONG + beside, {"e": chain(n), "d": [(0,)]}, counters="both")
    assert len(m["d"]) == n + 1
    for change, left in (("delete", n // 2 + 1), ("insert", n + 1)):
        m.update(**{change: {"e": [(n // 2, n // 2 + 1)]}}, algorithm=algorithm)
        assert len(m["d"]) == left


# ── What is deleted ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@randomly(memory=30, spark=2)
def test_backward_forward_with_modules_deletes_exactly(engine: Engine, rng: Random) -> None:
    random = random_program(rng, Features(negation=False, aggregates=False, closures=1.0))
    explicit = random.facts
    m = engine.materialise(random.text, explicit)
    for _ in range(2):
        delete, _ = random_update(rng, random.relations, explicit)
        stats = m.update(delete=delete, algorithm="bf-c-mod").stats
        explicit = applied(explicit, delete, {})
        assert stats["rederived"] == 0
        hidden = any(relation.hidden for relation in m.program.relations.values())
        if not hidden and not state_of(m).stored_by_schemes:  # of these, inputs are deleted
            assert stats["overdeleted"] == stats["deleted"]
    assert_right(m, random, explicit)


@pytest.mark.slow
@randomly(memory=20, spark=2)
def test_dred_with_modules_evaluates_nothing_backwards(engine: Engine, rng: Random) -> None:
    random = random_program(rng, CLOSED)
    delete, insert = random_update(rng, random.relations, random.facts)
    m = engine.materialise(random.text, random.facts, counters="both")
    stats = m.update(insert=insert, delete=delete, algorithm="dred-c-mod").stats
    assert not {"backward", "supports"} & stats["asked"].keys()


def ring_with_chords(n: int) -> Rows:
    return cycle(n) | {(i, (7 * i + 3) % n) for i in range(n)}


@pytest.mark.slow
@on_engines
def test_a_component_that_stays_connected_loses_nothing(engine: Engine) -> None:
    n = 40
    facts = ring_with_chords(n)
    for delete in ({(0, 1)}, {(5, 6), (9, 10), (11, 80 % n)}):
        m = engine.materialise(SYMMETRIC, {"r": facts})
        change = m.update(delete={"r": delete}, algorithm="bf-c-mod")
        assert not change
        assert (change.stats["overdeleted"], change.stats["derivations"]) == (0, 0)
        assert len(m["r"]) == n * n
        m = engine.materialise(SYMMETRIC, {"r": facts}, counters="both")
        change = m.update(delete={"r": delete}, algorithm="dred-c-mod")
        assert not change
        assert change.stats["overdeleted"] == change.stats["rederived"] >= n * n - len(facts)


@pytest.mark.slow
@on_engines
def test_what_depends_on_a_cycle_of_modules_is_deleted(engine: Engine) -> None:
    """Facts that prove each other through a closure and another rule have no proof."""
    text = TRANSITIVE + " .decl back(x:number, y:number) back(y, x) :- r(x, y), back(x, y). r(x, y) :- back(x, y)."
    m = engine.materialise(text, {"r": {(0, 1), (1, 2)}, "back": {(0, 2)}})
    assert {(0, 2), (2, 0)} <= set(m["back"])
    for algorithm in ("bf-c-mod", "dred-c-mod", "auto"):
        m.update(delete={"back": {(0, 2)}}, algorithm=algorithm)
        assert facts_of(m) == {"r": {(0, 1), (1, 2), (0, 2)}, "back": set()}
        m.update(insert={"back": {(0, 2)}}, algorithm=algorithm)


# ── Limits and interrupts ────────────────────────────────────────────────────────────────────────────────────────────


class Stopped(BaseException):
    """Stands for Ctrl-C."""


def stop_after(events: int, patch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Has a run stop after so many batches and rounds; whether it has."""
    left = events

    def stop(self: Run, *_arguments: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Stopped

    patch.setattr(Run, "derived", stop)
    patch.setattr(Run, "next_round", stop)
    return lambda: left < 0


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["dred-c-mod", "bf-c-mod", "remat", "auto"])
@randomly(memory=10, spark=1)
def test_an_interrupt_during_a_closure_changes_nothing(engine: Engine, algorithm: str, rng: Random) -> None:
    random = random_program(rng, CLOSED)
    m = engine.materialise(random.text, random.facts, counters=rng.choice(["none", "both"]))
    explicit = random.facts
    for _ in range(2):
        before = facts_of(m)
        delete, insert = random_update(rng, random.relations, explicit)
        with pytest.MonkeyPatch.context() as patch:
            is_stopped = stop_after(rng.randint(0, 15), patch)
            try:
                m.update(insert=insert, delete=delete, algorithm=algorithm)
            except Stopped:
                pass
            else:
                explicit = applied(explicit, delete, insert)
        if is_stopped():  # only now: an exception that is looked at keeps whatever it has come by
            assert facts_of(m) == before
        assert_right(m, random, explicit)
        delete, insert = random_update(rng, random.relations, explicit)
        m.update(insert=insert, delete=delete, algorithm=rng.choice(MODULAR))
        explicit = applied(explicit, delete, insert)
        assert_right(m, random, explicit)


@pytest.mark.parametrize("limit", [{"limit_facts": 150}, {"limit_seconds": 0.0}, {"memory": 1}])
@pytest.mark.parametrize("algorithm", ["dred-c-mod", "bf-c-mod", "remat", "auto"])
@pytest.mark.parametrize("text", [TRANSITIVE, SYMMETRIC, LINEAR], ids=["transitive", "symmetric", "linear"])
@on_engines
def test_a_limit_rolls_back_closures(
    engine: Engine, text: str, algorithm: str, limit: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    relation = "e" if text == LINEAR else "r"
    m = engine.materialise(text, {relation: chain(10)}, counters="both")
    m.update(insert={relation: [(5, 5)]}, algorithm="dred-c-mod")  # now modules are valid
    before = facts_of(m)
    with monkeypatch.context() as patch:
        patch.setattr("evermat.core.watch.LOOK_EVERY", -1.0)  # look at the clock and at memory every time
        with pytest.raises(evermat.LimitError):
            m.update(
                insert={relation: [(i, i + 1) for i in range(10, 40)]},
                delete={relation: [(0, 1)]},
                algorithm=algorithm,
                **limit,
            )
    assert facts_of(m) == before
    assert_edges_follow(m)
    m.update(insert={relation: [(10, 11)]}, delete={relation: [(5, 5)]}, algorithm=algorithm)
    symmetric = text == SYMMETRIC
    assert len(m["r"]) == (12 * 12 if symmetric else 11 * 12 // 2)
    assert_edges_follow(m)


def assert_edges_follow(m: Materialisation) -> None:
    """The edges of a module that is called valid connect exactly what holds."""
    if m.on_cluster:
        return
    for rules in state_of(m).strata:
        for module in rules.closures:
            if module.is_valid:
                edges, held = module.edges, everything(m)
                external: dict[str, set[tuple]] = {name: set() for name in module.names}
                for number, part in enumerate(edges.parts):
                    if not part.is_below:
                        _, facts = edges.facts_of(number, edges.everything())
                        external[part.relation] |= {tuple(fact) for fact in facts.T.tolist()}
                assert oracle.close(module.closure.rules, held | external) == held


def test_a_closure_from_scratch_stops_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.core.watch.LOOK_EVERY", -1.0)
    program = evermat.Program.parse(TRANSITIVE)
    with pytest.raises(evermat.LimitError) as error:
        program.materialise({"r": chain(500)}, limit_facts=100_000)
    assert str(error.value).splitlines()[0] == "error[E400]: the limit of 100,000 facts is reached"
    assert len(program.materialise({"r": chain(500)}, limit_facts=125_250)["r"]) == 125_250


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_attempts_given_up_in_the_middle_leave_no_trace(rng: Random) -> None:
    random = random_program(rng, CLOSED)
    m = evermat.Program.parse(random.text).materialise(random.facts, counters=rng.choice(["none", "both"]))
    explicit = random.facts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose_module, "_MOST_FOR_BF", 0.0)
        for algorithm in ("auto", rng.choice(MODULAR), "auto"):
            patch.setattr(choose_module, "_FEW", rng.choice([0, rng.randint(0, 30)]))
            delete, insert = random_update(rng, random.relations, explicit)
            m.update(insert=insert, delete=delete, algorithm=algorithm)
            explicit = applied(explicit, delete, insert)
            assert_right(m, random, explicit)


def test_an_attempt_is_given_up_in_the_middle_of_a_closure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose_module, "_FEW", 0)
    monkeypatch.setattr(choose_module, "_MOST_FOR_BF", 0.0)
    m = evermat.Program.parse(TRANSITIVE).materialise({"r": chain(20)})
    for change in ({"delete": {"r": {(7, 8)}}}, {"insert": {"r": {(7, 8)}}}):
        (stratum,) = m.update(**change).stats["strata"]
        assert stratum["algorithm"] == "remat"
        assert stratum["reason"].startswith("bf-c-mod was given up after 0 instances; ")
    assert len(m["r"]) == 20 * 21 // 2
    for algorithm in MODULAR:
        m.update(delete={"r": {(7, 8)}}, algorithm=algorithm)
        assert len(m["r"]) == 7 * 8 // 2 + 12 * 13 // 2
        m.update(insert={"r": {(7, 8)}}, algorithm=algorithm)


@pytest.mark.parametrize("edges", [0, 10**6], ids=["too large", "fits"])
@pytest.mark.parametrize("few_sources", [False, True])
@pytest.mark.parametrize("text", [TRANSITIVE, SYMMETRIC, LINEAR], ids=["transitive", "symmetric", "linear"])
def test_a_closure_that_outgrows_the_driver_in_its_middle(
    text: str, edges: int, few_sources: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Part of its facts are there when the cluster goes on, whether the graph may be in the driver or not."""
    relation = "e" if text == LINEAR else "r"
    facts = {relation: {*chain(20)}}
    if few_sources:  # their facts are found in another order
        text, facts = (
            text.replace("r(x, y) :- e(x, y).", ""),
            {relation: {*chain(36)}, "r": {(100, 0), *facts.get("r", ())}},
        )
    for name, value in {"_EDGES": edges, "available_bytes": lambda: 60 * placement._BYTES_PER_FACT}.items():
        monkeypatch.setattr(placement, name, value)
    program, expected = evermat.Program.parse(text), oracle.materialise(oracle.read(text), facts)
    for few in (7, 9, 12):  # the facts of a node, too, are there in part
        monkeypatch.setattr(delta_reachability, "CHUNK", few)
        with materialise_in_process(program, facts, place="auto") as m:
            assert any("driver, then" in stratum["place"] for stratum in m.stats["strata"])
            assert facts_of(m) == expected
