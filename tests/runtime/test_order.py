"""The result does not depend on the order of rules and literals, nor on where facts come from."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat.language.terms import quote
from tests.support.strategies import Facts, RandomProgram, programs


def result(text: str, facts: Facts) -> dict[str, set[tuple]]:
    materialised = evermat.Program.parse(text).materialise(facts)
    return {name: set(materialised[name]) for name in materialised}


def literals(body: str) -> list[str]:
    """The literals of a body: commas within parentheses and braces separate nothing."""
    parts, depth = [""], 0
    for character in body:
        depth += (character in "({") - (character in ")}")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def shuffled(rule: str, rng: Random) -> str:
    head, _, body = rule.removesuffix(".").partition(" :- ")
    parts = literals(body)
    rng.shuffle(parts)
    return f"{head} :- {', '.join(parts)}."


def in_text(name: str, row: tuple) -> str:
    return f"{name}({', '.join(quote(value) if isinstance(value, str) else str(value) for value in row)})."


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(random=programs(), rng=st.randoms(use_true_random=False))
def test_order_of_rules_and_literals(random: RandomProgram, rng: Random) -> None:
    expected = result(random.text, random.facts)
    lines = [relation.declaration for relation in random.relations]
    lines += [shuffled(rule, rng) for rule in random.rules]
    rng.shuffle(lines)
    assert result("\n".join(lines), random.facts) == expected


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(random=programs(), rng=st.randoms(use_true_random=False))
def test_facts_from_the_text_and_as_argument(random: RandomProgram, rng: Random) -> None:
    expected = result(random.text, random.facts)
    text, given_facts = [random.text], {}
    for name, rows in random.facts.items():
        places = {row: rng.choice(["text", "argument", "both"]) for row in sorted(rows)}
        text += [in_text(name, row) for row, place in places.items() if place != "argument"]
        given_facts[name] = [row for row, place in places.items() if place != "text"]
    rng.shuffle(text)
    assert result("\n".join(text), given_facts) == expected


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(random=programs(), rng=st.randoms(use_true_random=False))
def test_rules_written_twice_change_nothing(random: RandomProgram, rng: Random) -> None:
    again = [shuffled(rule, rng) for rule in random.rules if rng.random() < 0.5]
    assert result("\n".join([random.text, *again]), random.facts) == result(random.text, random.facts)
