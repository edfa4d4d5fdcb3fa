"""Random updates, and how to look into a materialisation after them."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np

from evermat import Materialisation
from evermat.algebra import Counters
from evermat.columns.graph.closure_module import ClosureModule
from evermat.columns.graph.dynamic_graph import CHANGED
from evermat.columns.storage.encoding import decode_rows
from evermat.language.analysis.strata import Stratum
from evermat.language.builtins import Type
from evermat.language.model import Rule
from evermat.testing import held_facts, state_of
from tests.support import in_process, oracle
from tests.support.strategies import Facts, Features, RandomProgram, Sketch, random_facts, random_rule

ALGORITHMS = ("counting", "dred", "dred-c", "bf", "bf-c", "dred-c-mod", "bf-c-mod", "remat", "auto")


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
    """The materialisation equals recomputation, valid counters equal counters from scratch, and no bit or file is left behind."""
    expected = oracle.materialise(oracle.read(random.text), explicit)
    found = facts_of(m)
    for name, rows in expected.items():
        assert found[name] == rows, f"{name}: {found[name] - rows} too many, {rows - found[name]} missing"
    assert_counters_right(m, explicit)
    if m.on_cluster:
        assert {n: rows for n, rows in held_facts(m, "asserted").items() if rows} == {
            n: r for n, r in explicit.items() if r
        }
        in_process.assert_files_right(m)
    else:
        for table in state_of(m).tables.values():
            assert set(np.unique(table.state[: table.count]).tolist()) <= {0, 2, 3}
        for rules in state_of(m).strata:
            for module in [getattr(one, "module", one) for one in [*rules.closures, *rules.stores]]:
                if module.is_valid:
                    assert_module_right(m, rules.stratum, module, explicit)


def assert_module_right(m: Materialisation, stratum: Stratum, module: ClosureModule, explicit: Facts) -> None:
    """What other rules derive is external; what is external holds; and all that holds follows from it."""
    if any(t is not Type.NUMBER for name in module.names for t in m.program.relations[name].types):
        return  # values are not what users see
    facts, edges = everything(m), module.edges
    external: dict[str, set[tuple]] = {}
    for number, part in enumerate(edges.parts):
        held = {tuple(fact) for fact in edges.facts_of(number, edges.everything())[1].T.tolist()}
        if part.is_below:
            assert held == facts[part.relation]
        else:
            assert external.setdefault(part.relation, held) == held
    assert not (edges.table.state[: edges.table.count] & CHANGED).any()
    assert not edges.marks.any()
    copied = [copy.rule for copy in module.copies]
    for name, held in external.items():
        others: Counter = Counter(explicit.get(name, ()))
        for rule in [*stratum.nonrecursive, *stratum.plain]:
            if rule.head.relation.name == name and rule not in copied:
                others += derivations(rule, facts)
        assert set(others) <= held <= facts[name]
        if module.isolated:
            assert held == set(others)
    closed = oracle.close([*module.closure.rules, *copied], facts | external)
    assert all(closed[name] == facts[name] for name in external)


def assert_counters_right(m: Materialisation, explicit: Facts) -> None:
    """Every counter that is called valid equals brute force."""
    program, state = m.program, state_of(m)
    facts = everything(m)
    for stratum, compiled in zip(program.strata, state.strata, strict=True):
        valid = state.valid_counters(stratum)
        nonrecursive, plain, recursive = stratum.nonrecursive, stratum.plain, stratum.recursive
        if not m.on_cluster:  # what storage schemes know by themselves is not counted
            nonrecursive, plain, recursive = (
                rules.rules for rules in (compiled.nonrecursive, compiled.plain, compiled.recursive)
            )
        kinds = [(Counters.NONRECURSIVE, nonrecursive, state.nonrecursive_counter)]
        counted = plain if valid is Counters.MODULAR else recursive
        kinds += [(Counters.MODULAR, counted, state.recursive_counter)]
        for needed, rules, counter in kinds:
            if valid < needed:
                continue
            for name in stratum.relations:
                expected: Counter = Counter(explicit.get(name, ())) if needed is Counters.NONRECURSIVE else Counter()
                for rule in rules:
                    if rule.head.relation.name == name:
                        expected += derivations(rule, facts)
                assert counts(m, counter, name) == expected, (name, needed)


def everything(m: Materialisation) -> Facts:
    """The facts of all relations, of hidden ones too."""
    return held_facts(m)


def counts(m: Materialisation, counter: Any, name: str) -> Counter:
    """How often facts of a relation are derived, without those that are not."""
    if m.on_cluster:
        return in_process.counts(m, counter, name)
    state = state_of(m)
    rows = state.materialised.rows(name)
    facts = decode_rows(state.tables[name].take(rows), m.program.relations[name].types, state.dictionary)
    found = zip(facts, counter.counters[name].get(rows).tolist(), strict=True)
    return Counter({row: n for row, n in found if n})


def derivations(rule: Rule, facts: Facts) -> Counter:
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
