"""The in-memory engine against the oracle: facts, counters, and every way to keep them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from evermat.algebra import Counters
from evermat.columns import levels
from evermat.columns.run import Run
from evermat.columns.state import State
from evermat.columns.values import decode_rows, encode_rows
from evermat.program.compile import compile_program
from evermat.program.model import Program
from evermat.reasoning.seminaive import materialise
from evermat.source import Source
from tests import oracle
from tests.strategies import Facts, RandomProgram, programs


def materialised(text: str, explicit: Facts, counters: Counters = Counters.NONE) -> tuple[Program, State]:
    """The engine's state after materialisation from scratch."""
    program = compile_program(Source("random", text))
    run = Run()
    state = State(program, run)
    for name, relation in program.relations.items():
        if rows := [*explicit.get(name, ()), *program.facts.get(name, ())]:
            state.load(name, encode_rows(rows, relation.types, state.dictionary))
    materialise(state, run, counters)
    return program, state


def facts_of(program: Program, state: State, name: str) -> list[tuple]:
    """All rows of a relation's table; every one of them must be in I."""
    table = state.tables[name]
    assert state.materialised.holds_all(name)
    everything = table.take(np.arange(table.count, dtype=np.int32))
    return decode_rows(everything, program.relations[name].types, state.dictionary)


@pytest.mark.parametrize("counters", Counters)
@settings(max_examples=150, deadline=None)
@given(random=programs())
def test_facts_equal_those_of_the_oracle(counters: Counters, random: RandomProgram) -> None:
    expected = oracle.materialise(oracle.read(random.text), random.facts)
    program, state = materialised(random.text, random.facts, counters)
    for name, rows in expected.items():
        found = facts_of(program, state, name)
        assert len(found) == len(set(found))
        assert set(found) == rows, name


@settings(max_examples=150, deadline=None)
@given(random=programs())
def test_counters_equal_brute_force(random: RandomProgram) -> None:
    program, state = materialised(random.text, random.facts, Counters.BOTH)
    facts = {name: set(facts_of(program, state, name)) for name in program.relations}
    for stratum in program.strata:
        for name in stratum.relations:
            explicit = Counter({*random.facts.get(name, ()), *program.facts.get(name, ())})
            kinds = (
                (stratum.nonrecursive, state.nonrecursive_counter, explicit),
                (stratum.recursive, state.recursive_counter, Counter()),
            )
            for rules, counter, start in kinds:
                expected = start.copy()
                for rule in rules:
                    if rule.head.relation.name == name:
                        expected += derivations(rule, facts)
                table = state.tables[name]
                rows = np.arange(table.count, dtype=np.int32)
                counts = dict(
                    zip(facts_of(program, state, name), counter.counters[name].get(rows).tolist(), strict=True)
                )
                assert {row: n for row, n in counts.items() if n} == dict(expected)


def derivations(rule, facts) -> Counter:
    """How many instances derive each fact; an aggregate rule has one for each group with a result."""
    if rule.aggregate is None:
        return oracle.instances(rule, facts)
    aggregate = rule.aggregate
    keys = [v.name for v in aggregate.keys]
    if rule.body:
        groups = {tuple(b[k] for k in keys) for b in oracle.bindings(rule.body, facts)}
    elif keys:
        groups = {tuple(b[k] for k in keys) for b in oracle.bindings(aggregate.body, facts)}
    else:
        groups = {()}
    found: Counter = Counter()
    for group in groups:
        result = oracle.aggregate(aggregate, facts, dict(zip(keys, group, strict=True)))
        if result is not None:
            found[(*group, result)] += 1
    return found


@settings(max_examples=60, deadline=None)
@given(random=programs())
def test_tiny_chunks_give_the_same(random: RandomProgram) -> None:
    expected = oracle.materialise(oracle.read(random.text), random.facts)
    whole = levels.CHUNK
    levels.CHUNK = 3
    try:
        program, state = materialised(random.text, random.facts, Counters.BOTH)
    finally:
        levels.CHUNK = whole
    for name, rows in expected.items():
        assert set(facts_of(program, state, name)) == rows, name


def test_a_product_is_counted_without_being_enumerated() -> None:
    rows = {(i, j) for i in range(400) for j in range(250)}  # 10^5 facts: 10^10 instances of one head
    text = ".decl e(x:number, y:number) .decl p() p() :- e(_, _), e(_, _)."
    program, state = materialised(text, {"e": rows}, Counters.BOTH)
    assert facts_of(program, state, "p") == [()]
    (count,) = state.nonrecursive_counter.counters["p"].get(np.array([0], np.int32))
    assert count == 10**10


def test_a_long_chain_takes_as_many_rounds() -> None:
    text = ".decl e(x:number, y:number) .decl t(x:number, y:number) t(x, y) :- e(x, y). t(x, z) :- t(x, y), e(y, z)."
    program, state = materialised(text, {"e": {(i, i + 1) for i in range(300)}})
    assert len(facts_of(program, state, "t")) == 300 * 301 // 2
