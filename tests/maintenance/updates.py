"""Random updates, and how to look into a materialisation after them."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np

import evermat
from evermat.algebra import Counters
from evermat.materialisation import Materialisation
from tests import oracle
from tests.engine.oracle_test import derivations
from tests.strategies import Facts, Features, RandomProgram, Sketch, random_facts, random_rule

ALGORITHMS = ("counting", "dred", "dred-c", "bf", "bf-c", "remat", "auto")


def random_update(rng: Random, relations: list[Sketch], explicit: Facts) -> tuple[Facts, Facts]:
    """Facts to delete and to insert: mostly ones that matter, some redundant, some in both."""
    delete = {name: set(rng.sample(sorted(rows), min(len(rows), rng.randint(0, 3)))) for name, rows in explicit.items()}
    insert = random_facts(rng, relations, 3)
    for name, rows in random_facts(rng, relations, 1).items():
        delete.setdefault(name, set()).update(rows)
    return delete, insert


def random_revision(rng: Random, random: RandomProgram) -> tuple[RandomProgram, list[str], list[str]]:
    """A program with some rules less and some more: the new one, the rules gone, the rules come."""
    gone = rng.sample(random.rules, rng.randint(0, min(2, len(random.rules))))
    head = rng.choice(random.relations)
    readable = [r for r in random.relations if r.level <= head.level]
    come = [random_rule(rng, head, readable, Features()) for _ in range(rng.randint(0, 2))]
    rules = list(random.rules)
    for rule in gone:
        rules.remove(rule)
    return RandomProgram(random.relations, [*rules, *come], random.facts), gone, come


def applied(explicit: Facts, delete: Facts, insert: Facts) -> Facts:
    """The explicit facts after an update."""
    return {n: (rows - delete.get(n, set())) | insert.get(n, set()) for n, rows in explicit.items()}


def facts_of(m: Materialisation) -> Facts:
    """All facts of all relations."""
    found = {name: list(m[name]) for name in m}
    assert all(len(rows) == len(set(rows)) == len(m[name]) for name, rows in found.items())
    return {name: set(rows) for name, rows in found.items()}


def assert_right(m: Materialisation, random: RandomProgram, explicit: Facts) -> None:
    """The materialisation equals recomputation, valid counters equal counters from scratch, and no bit is left behind."""
    expected = oracle.materialise(oracle.read(random.text), explicit)
    found = facts_of(m)
    for name, rows in expected.items():
        assert found[name] == rows, f"{name}: {found[name] - rows} too many, {rows - found[name]} missing"
    assert_counters_right(m, explicit)
    for table in m._state.tables.values():
        assert set(np.unique(table.state[: table.count]).tolist()) <= {0, 2, 3}


def assert_counters_right(m: Materialisation, explicit: Facts) -> None:
    """Every counter that is called valid equals brute force."""
    program, state = m._program, m._state
    everything = {name: evermat.materialisation.Facts(r, state) for name, r in program.relations.items()}
    facts = {name: set(rows) for name, rows in everything.items()}
    for stratum in program.strata:
        valid = state.valid_counters(stratum)
        kinds = [(Counters.NONRECURSIVE, stratum.nonrecursive, state.nonrecursive_counter)]
        kinds += [(Counters.BOTH, stratum.recursive, state.recursive_counter)]
        for needed, rules, counter in kinds:
            if valid < needed:
                continue
            for name in stratum.relations:
                expected: Counter = Counter(explicit.get(name, ())) if needed is Counters.NONRECURSIVE else Counter()
                for rule in rules:
                    if rule.head.relation.name == name:
                        expected += derivations(rule, facts)
                rows = state.materialised.rows(name)
                counts = counter.counters[name].get(rows).tolist()
                found = dict(zip(everything[name], counts, strict=True))
                assert {row: n for row, n in found.items() if n} == dict(expected), (name, needed)
