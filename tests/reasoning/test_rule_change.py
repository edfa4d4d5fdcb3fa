"""A change of rules is an update as well: what still holds is kept, and the result is that of the new program."""

from __future__ import annotations

from random import Random

import pytest

import evermat
from tests.support.engines import Engine, on_engines, randomly
from tests.support.strategies import random_program
from tests.support.updates import ALGORITHMS, applied, assert_right, facts_of, random_revision, random_update

CLOSURE = """
.decl e(x:number, y:number)
.decl t(x:number, y:number)
t(x, y) :- e(x, y).
t(x, z) :- t(x, y), e(y, z).
"""


@pytest.mark.slow
@randomly(memory=120, spark=3)
def test_rules_come_and_go(engine: Engine, rng: Random) -> None:
    random = random_program(rng)
    m = engine.materialise(random.text, random.facts, counters=rng.choice(["none", "both"]))
    explicit = random.facts
    for _ in range(3 if engine.in_memory else 2):
        random, gone, come = random_revision(rng, random)
        delete, insert = random_update(rng, random.relations, explicit)
        m.update(insert=insert, delete=delete, add_rules="\n".join(come), remove_rules="\n".join(gone))
        explicit = applied(explicit, delete, insert)
        assert_right(m, random, explicit)
        delete, insert = random_update(rng, random.relations, explicit)
        m.update(insert=insert, delete=delete, algorithm=rng.choice(ALGORITHMS[1:]))
        explicit = applied(explicit, delete, insert)
        assert_right(m, random, explicit)


@on_engines
def test_declarations_and_facts_may_come_with_rules(engine: Engine) -> None:
    m = engine.materialise(CLOSURE, {"e": [(1, 2), (2, 3)]})
    change = m.update(add_rules=".decl loop(x:number) loop(x) :- t(x, x). e(3, 1).")
    assert set(change.inserted["loop"]) == {(1,), (2,), (3,)}
    change = m.update(remove_rules="e(3, 1).")
    assert set(change.deleted["loop"]) == {(1,), (2,), (3,)}
    assert set(m["e"]) == {(1, 2), (2, 3)}


@on_engines
def test_a_rule_is_removed_whatever_its_variables_are_called(engine: Engine) -> None:
    m = engine.materialise(CLOSURE, {"e": [(1, 2), (2, 3)]})
    change = m.update(remove_rules="t(a, c) :- t(a, b), e(b, c).")
    assert set(change.deleted["t"]) == {(1, 3)}
    assert set(m["t"]) == {(1, 2), (2, 3)}


@on_engines
def test_only_what_depends_on_a_rule_is_looked_at(engine: Engine) -> None:
    text = CLOSURE + ".decl far(x:number) far(y) :- t(1, y), !e(1, y)."
    m = engine.materialise(text, {"e": [(i, i + 1) for i in range(20)]})
    stats = m.update(remove_rules="far(y) :- t(1, y), !e(1, y).").stats
    assert [s["relations"] for s in stats["strata"]] == [["e", "far"]]
    assert stats["deleted"] == 18


@on_engines
def test_errors_are_placed_in_the_text_that_was_given(engine: Engine) -> None:
    m = engine.materialise(CLOSURE, {"e": [(1, 2)]})
    before = facts_of(m)
    cases = {
        "add_rules": (
            "\nt(x, y) :- edge(x, y).",
            "error[E230]: relation `edge` is not declared\n"
            " --> <rules to add>:2:12\n  |\n2 | t(x, y) :- edge(x, y).\n  |            ^^^^",
        ),
        "remove_rules": (
            "t(x, y) :- e(y, x).",
            "error[E272]: the program has no rule `t(x, y) :- e(y, x).`\n"
            " --> <rules to remove>:1:1\n  |\n1 | t(x, y) :- e(y, x).\n  | ^^^^^^^\n"
            "  = note: write the rule as it was added; names of variables do not matter",
        ),
    }
    for argument, (text, message) in cases.items():
        with pytest.raises(evermat.ProgramError) as error:
            m.update(**{argument: text})
        assert str(error.value) == message
        assert facts_of(m) == before
