"""Facts that rules only copy into a closure: stored as intervals it has no rows for them, and nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import evermat
from evermat import Materialisation
from evermat.columns.state import stratum
from evermat.runtime.engines import placement
from evermat.testing import state_of
from tests.support.in_process import materialise_in_process
from tests.support.scheme_cases import CLOSURES, EDGES, NODES, parsed, schemes_of, told
from tests.support.schemes import use_schemes
from tests.support.states import QUICK
from tests.support.strategies import Facts
from tests.support.updates import ALGORITHMS, applied, assert_counters_right, facts_of

PROGRAM = """
.decl e(x:number, y:number)
.decl f(x:number, y:number)
.decl h(x:number, y:number)
.decl t(x:number, y:number)
t(x, y) :- e(x, y).
t(x, y) :- f(y, x).
t(x, y) :- h(x, y), !f(x, y).
"""
FORMS = {
    "transitive": "t(x, z) :- t(x, y), t(y, z).",
    "symmetric": "t(x, z) :- t(x, y), t(y, z). t(y, x) :- t(x, y).",
    "left": "t(x, z) :- t(x, y), e(y, z).",
    "right": "t(x, z) :- h(x, y), t(y, z).",
    "inverse": ".decl n(x:number, y:number) n(x, y) :- h(x, y). t(x, z) :- t(x, y), t(y, z). n(y, x) :- t(x, y). t(y, x) :- n(x, y).",
}
FACTS: Facts = {"e": EDGES, "f": {(9, 1), (2, 1), (7, 8)}, "h": {(4, 9), (9, 1), (3, 3)}, "t": {(1, 2), (0, 9)}}
UPDATES: list[tuple[Facts, Facts]] = [
    ({"e": {(1, 2)}}, {"f": {(5, 4)}}),  # both from elsewhere and copied, which ends
    ({"f": {(2, 1)}, "t": {(1, 2)}}, {"e": {(1, 2)}}),
    ({"t": {(0, 9)}}, {"h": {(9, 0), (1, 1)}, "f": {(1, 1)}}),
    ({"e": EDGES}, {"t": {(4, 5)}}),
    ({"f": {(9, 1), (5, 4)}, "h": {(4, 9)}}, {"e": EDGES, "h": {(9, 1)}}),
]
#: the copy of e, and those of f and n
COPIED, OTHERS = "t(x, y) :- e(x, y).", {"t(x, y) :- f(y, x).", "n(x, y) :- h(x, y)."}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder where nothing waits for a disk."""
    with TemporaryDirectory(dir=QUICK) as home:
        yield Path(home)


def both(form: str, facts: Facts = FACTS) -> list[Materialisation]:
    """With schemes, and without."""
    return [parsed(PROGRAM + FORMS[form]).materialise(facts, counters="both", schemes=s) for s in ("auto", "plain")]


def assert_same(m: Materialisation, plain: Materialisation) -> None:
    assert facts_of(m) == facts_of(plain)
    for node in NODES:
        assert sorted(m.query(f"t(x, {node})")) == sorted(plain.query(f"t(x, {node})"))


def rows_of(m: Materialisation, name: str = "t") -> int:
    """How many rows of I a relation has."""
    return len(state_of(m).materialised.rows(name))


def taken(m: Materialisation) -> set[str]:
    """The rules that schemes take for granted, spaced as here."""
    return {text for rules in state_of(m).copied_by_schemes.values() for text in rules}


@pytest.mark.parametrize("form", FORMS)
def test_only_other_inputs_have_rows(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)
    m, plain = both(form)
    assert schemes_of(m)["t"] == "intervals"
    inputs = FACTS["t"] | (FACTS["h"] - FACTS["f"])
    assert rows_of(m) == len(inputs)
    assert form != "inverse" or rows_of(m, "n") == 0
    assert_same(m, plain)
    assert_counters_right(m, FACTS)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_updates_of_what_is_copied(form: str, turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch, turned=turned)
    m, plain = both(form)
    explicit = FACTS
    for number, (delete, insert) in enumerate(UPDATES * 2):
        algorithm = [name for name in ALGORITHMS if name != "counting"][number % (len(ALGORITHMS) - 1)]
        assert told(m.update(insert, delete, algorithm=algorithm)) == told(plain.update(insert, delete))
        explicit = applied(explicit, delete, insert)
        assert_same(m, plain)
        assert_counters_right(m, explicit)


@pytest.mark.parametrize("form", FORMS)
def test_a_closure_that_is_plain_after_all_has_all_rows(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch, wherever_possible=False)
    m, plain = both(form)
    assert not schemes_of(m)
    assert rows_of(m) == rows_of(plain) == len(m["t"])
    assert state_of(m).strata[-1].nonrecursive.rules
    assert_same(m, plain)
    assert_counters_right(m, FACTS)
    explicit = FACTS
    for delete, insert in UPDATES:
        assert told(m.update(insert, delete)) == told(plain.update(insert, delete))
        explicit = applied(explicit, delete, insert)
        assert_same(m, plain)
        assert_counters_right(m, explicit)


#: rules to add and to remove, and whether the copies are taken for granted then
REVISIONS = [
    (".decl loop(x:number) loop(x) :- t(x, x).", "", True),
    ("t(x, y) :- h(y, x).", "", True),  # a rule like others: its facts are inputs
    ("", COPIED, False),  # what is left of the copies are inputs, too
    (COPIED, "t(x, y) :- h(y, x).", False),
]


@pytest.mark.slow
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_rules_that_copy_come_and_go(form: str, opened: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)
    made, paths = both(form), (folder / "schemes", folder / "plain")
    for m, path in zip(made, paths, strict=True):
        m.save(path)
    copies = taken(made[0])
    assert COPIED in copies and copies - {COPIED} <= OTHERS
    explicit = FACTS
    for (come, gone, is_taken), (delete, insert) in zip(REVISIONS, UPDATES[:4], strict=True):
        change, expected = (m.update(insert, add_rules=come, remove_rules=gone) for m in made)
        assert told(change) == told(expected)
        explicit = applied(explicit, {}, insert)
        assert "t" in state_of(made[0]).stored_by_schemes
        assert taken(made[0]) == (copies if is_taken else set())
        if opened:
            for m in made:
                m.close()
            made = [evermat.open(path) for path in paths]
            assert taken(made[0]) == (copies if is_taken else set())
        assert_same(*made)
        assert_counters_right(made[0], explicit)
        change, expected = (m.update({}, delete, algorithm="bf-c") for m in made)
        assert told(change) == told(expected)
        explicit = applied(explicit, delete, {})
        assert_same(*made)
        assert_counters_right(made[0], explicit)
    for m in made:
        m.close()
    changes, right = ({n: sorted(t.to_pylist(), key=str) for n, t in evermat.changes(p).items()} for p in paths)
    assert changes == right


def test_a_state_with_rows_for_what_is_copied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As states were before: its rules copy, and go on to."""
    use_schemes(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(stratum, "may_be_large", lambda edges: False)
        m, plain = both("transitive")
        m.save(folder / "state")
        m.close()
    m = evermat.open(folder / "state")
    assert not taken(m) and rows_of(m) > len(FACTS["e"])
    explicit = FACTS
    for delete, insert in UPDATES:
        assert told(m.update(insert, delete)) == told(plain.update(insert, delete))
        explicit = applied(explicit, delete, insert)
        assert_same(m, plain)
        assert_counters_right(m, explicit)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_counters_do_not_go_to_a_cluster_where_what_is_copied_is_not_counted(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The closure fits the driver, and what follows does not."""
    use_schemes(monkeypatch)
    memory = int(60 * placement._BYTES_PER_FACT / placement._MEMORY_SHARE)
    monkeypatch.setattr(placement, "available_bytes", lambda: memory)
    many = " .decl p(x:number, y:number) p(x, z) :- q(x), q(z). .decl q(x:number) q(x) :- t(x, _). q(x) :- e(_, x)."
    program = parsed(PROGRAM + FORMS[form] + many)
    with materialise_in_process(program, FACTS, place="auto", counters="both") as m:
        assert m.on_cluster
        explicit = FACTS
        assert_counters_right(m, explicit)
        plain = program.materialise(FACTS, schemes="plain")
        for delete, insert in UPDATES[:3]:
            assert told(m.update(insert, delete, algorithm="dred-c")) == told(plain.update(insert, delete))
            explicit = applied(explicit, delete, insert)
            assert facts_of(m) == facts_of(plain)
            assert_counters_right(m, explicit)


@pytest.mark.parametrize("name", CLOSURES)
def test_a_closure_that_was_considered_is_what_it_is_without(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All forms of closures, considered and refused, are what they are without considering."""
    case = CLOSURES[name]
    use_schemes(monkeypatch, wherever_possible=False)
    m = parsed(case.text).materialise(case.facts, counters="both")
    assert not schemes_of(m)
    assert {relation: set(m[relation]) for relation in case.expected} == case.expected
    assert_counters_right(m, case.facts)
