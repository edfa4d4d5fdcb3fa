"""Plans: what they look like, and that together they find every instance exactly once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.core.source import Source
from evermat.language.builtins import holds
from evermat.language.compile import compile_program
from evermat.language.model import Atom, Constant, Negation, Rule
from evermat.plan.planner import Extent, backward_plan, delta_plan, full_plan
from evermat.plan.steps import Check, Compute, Match, Plan, Role
from tests.support.oracle import bindings, value
from tests.support.strategies import DOMAIN, Features, random_program

FIXTURE = Path(__file__).parent / "plans.txt"


def delta_plans(rule: Rule, sizes: dict[str, int] | None = None) -> list[Plan]:
    """One plan for every literal that can change; together they find each changed instance once."""
    changing = [i for i, literal in enumerate(rule.literals) if isinstance(literal, Atom | Negation)]
    return [delta_plan(rule, i, sizes or {}) for i in changing]


def described(text: str) -> str:
    """All plans of a program."""
    lines = []
    for rule in compile_program(Source("fixture", text)).rules:
        lines.append(str(rule))
        for plan in [full_plan(rule), *delta_plans(rule), backward_plan(rule)]:
            title = {None: "all", -1: "backward"}.get(plan.start) or f"change of literal {plan.start}"
            lines += [f"  {title}", *(f"    {step}" for step in plan.steps)]
    return "\n".join(lines)


def fixtures() -> list[tuple[str, str]]:
    """Pairs of program and expected plans: the fixture alternates between them, separated by lines of dashes."""
    parts = [part.strip("\n") for part in FIXTURE.read_text(encoding="utf-8").split("--------\n")]
    return list(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize(("text", "expected"), fixtures())
def test_fixture(text: str, expected: str) -> None:
    assert described(text) == expected


def test_sizes_decide_between_equally_bound_atoms() -> None:
    (rule,) = compile_program(
        Source("", ".decl a(x:number) .decl b(x:number,y:number) .decl c(x:number,y:number) a(x) :- b(x,_), c(x,_).")
    ).rules
    first = [full_plan(rule, sizes).steps[0] for sizes in ({"b": 10, "c": 1000}, {"b": 1000, "c": 10})]
    assert [step.relation.name for step in first if isinstance(step, Match)] == ["b", "c"]


# --- every instance once -----------------------------------------------------------------------------------


def test_few_matches_come_first() -> None:
    """Of atoms of which as much is known, the one whose known columns have more values."""
    text = ".decl member(u:number, g:number) .decl grants(g:number, r:number) .decl can(u:number, r:number) can(u, r) :- grants(g, r), member(u, g)."
    (rule,) = compile_program(Source("t", text)).rules
    sizes = {"member": Extent.of(50_000, (50_000, 100)), "grants": Extent.of(2_000, (100, 20))}
    assert [step.relation.name for step in backward_plan(rule, sizes).steps[1:]] == ["member", "grants"]
    sizes = {"member": Extent.of(50_000, (10, 5_000)), "grants": Extent.of(2_000, (1_000, 2_000))}
    assert [step.relation.name for step in backward_plan(rule, sizes).steps[1:]] == ["grants", "member"]


def interpret(plan: Plan, sets: dict[Role, dict[str, set]]) -> list[tuple]:
    """Runs a plan over plain sets: what each role reads is given."""
    found = [{}]
    for step in plan.steps:
        extended = []
        for binding in found:
            if isinstance(step, Match):
                for row in sets[step.role].get(step.relation.name, ()):
                    if all(row[c] == term(t, binding) for c, t in step.key) and all(
                        row[a] == row[b] for a, b in step.equal
                    ):
                        extended.append(binding | {v.name: row[c] for c, v in step.binds})
            elif isinstance(step, Check):
                row = tuple(term(t, binding) for _, t in step.key)
                if row not in sets[step.role].get(step.relation.name, ()):
                    extended.append(binding)
            elif isinstance(step, Compute):
                if (computed := value(step.expression, binding)) is not None:
                    extended.append(binding | {step.variable.name: computed})
            else:
                left, right = value(step.test.left, binding), value(step.test.right, binding)
                if left is not None and right is not None and holds(step.test.operator, left, right):
                    extended.append(binding)
        found = extended
    return [tuple(value(t, binding) for t in plan.output) for binding in found]


def term(known, binding):
    return known.value if isinstance(known, Constant) else binding[known.name]


def brute_force(rule: Rule, pos, neg, delta_pos, delta_neg) -> Counter:
    """The heads of all instances over (pos, neg) with a positive literal in delta_pos or a negated one in delta_neg."""

    def bodies(literals, binding, changed):
        relational = next((x for x in literals if isinstance(x, Atom)), None)
        if relational is not None:
            rest = [x for x in literals if x is not relational]
            for row in pos[relational.relation.name]:
                for extended in bindings([relational], {relational.relation.name: {row}}, binding):
                    yield from bodies(rest, extended, changed or row in delta_pos[relational.relation.name])
            return
        for complete in bindings([x for x in literals if not isinstance(x, Negation)], {}, binding):
            rows = [
                (x.atom.relation.name, tuple(term(t, complete) for t in x.atom.terms))
                for x in literals
                if isinstance(x, Negation)
            ]
            if all(row not in neg[name] for name, row in rows):
                yield complete, changed or any(row in delta_neg[name] for name, row in rows)

    return Counter(
        tuple(value(t, binding) for t in rule.head.terms)
        for binding, changed in bodies(rule.literals, {}, False)
        if changed
    )


def subset(rng: Random, rows: set) -> set:
    return {row for row in sorted(rows) if rng.random() < 0.5}


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.randoms(use_true_random=True))
def test_delta_plans_find_every_changed_instance_once(rng: Random) -> None:
    random = random_program(rng, Features(aggregates=False))
    program = compile_program(Source("", random.text))
    arities = {name: r.types for name, r in program.relations.items()}
    pos = {name: some_rows(rng, types) for name, types in arities.items()}
    neg = {name: some_rows(rng, types) for name, types in arities.items()}
    delta_pos = {name: subset(rng, rows) for name, rows in pos.items()}
    delta_neg = {name: some_rows(rng, types) - neg[name] for name, types in arities.items()}
    sets = {
        Role.PRESENT: pos,
        Role.PRESENT_BEFORE: {name: pos[name] - delta_pos[name] for name in pos},
        Role.CHANGED: delta_pos,
        Role.ABSENT: neg,
        Role.ABSENT_BEFORE: {name: neg[name] | delta_neg[name] for name in neg},
        Role.CHANGED_ABSENT: delta_neg,
    }
    sizes = {name: rng.choice([1, 10, 1000]) for name in arities}
    for rule in program.rules:
        everything = brute_force(rule, pos, neg, pos, {name: set() for name in neg})
        if any(isinstance(x, Atom) for x in rule.literals):
            assert Counter(interpret(full_plan(rule, sizes), sets)) == everything
        found = Counter(row for plan in delta_plans(rule, sizes) for row in interpret(plan, sets))
        assert found == brute_force(rule, pos, neg, delta_pos, delta_neg)
        asked = {rule.head.relation.name: some_rows(rng, arities[rule.head.relation.name])}
        backward = Counter(interpret(backward_plan(rule, sizes), sets | {Role.ASKED: asked}))
        assert backward == Counter({row: n for row, n in everything.items() if row in asked[rule.head.relation.name]})


def some_rows(rng: Random, types) -> set[tuple]:
    domains = [DOMAIN[str(t)] for t in types]
    return {tuple(rng.choice(domain) for domain in domains) for _ in range(rng.randint(0, 6))}
