"""The oracle: a naive evaluator in plain Python. It decides what is right.

It interprets the rules as written (before any rewriting), knows nothing of plans or strata, and enumerates: a body is a
product of facts, a fixpoint is 'until nothing new comes'. Only the scalar built-ins are shared with the product; they
have tests of their own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from evermat.core.problems import Problems
from evermat.core.source import Source
from evermat.language.builtins import MAX_UNSIGNED, RANGES, Type, evaluate, holds
from evermat.language.compile import typed_program
from evermat.language.model import Aggregation, Apply, Atom, Constant, Negation, Program, Rule, Variable, variables_of

Facts = dict[str, set[tuple]]
Binding = dict[str, object]


def read(text: str) -> Program:
    """The program as written."""
    problems = Problems(Source("oracle", text))
    program = typed_program(problems.source, problems)
    problems.raise_if_any()
    return program


def materialise(program: Program, explicit: dict[str, set[tuple]]) -> Facts:
    """All consequences of the program and the explicit facts (those in the text included)."""
    facts = {name: set(explicit.get(name, ())) | set(program.facts.get(name, ())) for name in program.relations}
    for level in levels(program):
        changed = True
        while changed:
            changed = False
            for name in level:
                relation = program.relations[name]
                new = {
                    head(r, b) for r in program.rules if r.head.relation.name == name for b in bindings(r.body, facts)
                }
                if relation.equivalence:
                    pairs = facts[name]
                    new |= {(y, x) for x, y in pairs} | {(x, z) for x, y in pairs for y2, z in pairs if y == y2}
                changed |= not new <= facts[name]
                facts[name] |= new
    return facts


def close(rules, facts: Facts) -> Facts:
    """All that follows from facts by rules without negation."""
    closed = {name: set(rows) for name, rows in facts.items()}
    changed = True
    while changed:
        changed = False
        for rule in rules:
            new = {head(rule, binding) for binding in bindings(rule.body, closed)} - closed[rule.head.relation.name]
            closed[rule.head.relation.name] |= new
            changed |= bool(new)
    return closed


def levels(program: Program) -> list[list[str]]:
    """Relations in an order in which what is negated or aggregated comes first."""
    level = dict.fromkeys(program.relations, 0)
    for _ in range(len(level) + 1):
        for rule in program.rules:
            for name, strict in reads(rule.body):
                level[rule.head.relation.name] = max(level[rule.head.relation.name], level[name] + strict)
    return [[name for name in level if level[name] == n] for n in range(max(level.values(), default=0) + 1)]


def reads(body) -> Iterator[tuple[str, bool]]:
    for literal in body:
        match literal:
            case Atom():
                yield literal.relation.name, False
            case Negation():
                yield literal.atom.relation.name, True
            case Aggregation():
                yield from ((name, True) for inner in literal.alternatives for name, _ in reads(inner))


def instances(rule: Rule, facts: Facts) -> Counter[tuple]:
    """How many instances of a rule derive each head: what counters count."""
    return Counter(head(rule, binding) for binding in bindings(rule.body, facts))


def head(rule: Rule, binding: Binding) -> tuple:
    return tuple(value(term, binding) for term in rule.head.terms)


def bindings(body, facts: Facts, binding: Binding | None = None) -> Iterator[Binding]:
    """Every binding under which the body holds; once for each choice of facts, so `_` counts too."""
    binding = binding or {}
    literal = next((x for x in body if ready(x, binding)), None)
    if literal is None:
        assert not body, f"nothing can be evaluated in {body}"
        yield binding
        return
    rest = [x for x in body if x is not literal]
    match literal:
        case Atom():
            for row in facts[literal.relation.name]:
                if (extended := match(literal, row, binding)) is not None:
                    yield from bindings(rest, facts, extended)
        case Negation():
            if all(match(literal.atom, row, binding) is None for row in facts[literal.atom.relation.name]):
                yield from bindings(rest, facts, binding)
        case Aggregation():
            result = aggregate(literal, facts, binding)
            if result is not None and binding.get(literal.result.name, result) == result:
                yield from bindings(rest, facts, binding | {literal.result.name: result})
        case _:
            for target, other in ((literal.left, literal.right), (literal.right, literal.left)):
                if literal.operator == "=" and isinstance(target, Variable) and target.name not in binding:
                    if (computed := value(other, binding)) is not None:
                        yield from bindings(rest, facts, binding | {target.name: computed})
                    return
            left, right = value(literal.left, binding), value(literal.right, binding)
            if left is not None and right is not None and holds(literal.operator, left, right):
                yield from bindings(rest, facts, binding)


def ready(literal, binding: Binding) -> bool:
    """Whether a literal can be evaluated: atoms always, all others once their variables are bound."""
    missing = {v.name for v in variables_of(literal)} - binding.keys()
    match literal:
        case Atom():
            return True
        case Aggregation():
            return {v.name for v in literal.keys} <= binding.keys()
        case Negation():
            return not missing
    one_side = any(
        isinstance(side, Variable) and missing == {side.name} and side not in set(variables_of(other))
        for side, other in ((literal.left, literal.right), (literal.right, literal.left))
    )
    return not missing or (literal.operator == "=" and one_side)


def match(atom: Atom, row: tuple, binding: Binding) -> Binding | None:
    extended = dict(binding)
    for term, column in zip(atom.terms, row, strict=True):
        if isinstance(term, Constant) and term.value != column:
            return None
        if isinstance(term, Variable) and extended.setdefault(term.name, column) != column:
            return None
    return extended


def value(expression, binding: Binding):
    """The value of an expression, None where it has none."""
    if isinstance(expression, Constant):
        return expression.value
    if isinstance(expression, Variable):
        return binding[expression.name]
    assert isinstance(expression, Apply)
    arguments = [value(a, binding) for a in expression.arguments]
    return None if None in arguments else evaluate(expression.function, expression.operands, arguments, expression.type)


def aggregate(literal: Aggregation, facts: Facts, binding: Binding):
    """The result of an aggregate for one group, None where it has none."""
    keys = {v.name: binding[v.name] for v in literal.keys}
    found = [list(bindings(body, facts, keys)) for body in literal.alternatives]
    rows = found[0] if len(found) == 1 else list({frozenset(b.items()): b for body in found for b in body}.values())
    if literal.function == "count":
        return len(rows)
    computed = [v for v in (value(literal.value, row) for row in rows) if v is not None]
    infinite = {v for v in computed if v in (math.inf, -math.inf)}
    if infinite and literal.function in ("sum", "mean"):
        return infinite.pop() if len(infinite) == 1 else None
    if literal.function == "sum":
        return exact(sum(map(Fraction, computed), Fraction(0)), literal.result.type)
    if not computed:
        return None
    if literal.function == "mean":
        return exact(sum(map(Fraction, computed)) / len(computed), Type.FLOAT)
    return (min if literal.function == "min" else max)(computed)


def exact(number: Fraction, type_: Type):
    """An exact sum as a value of the type, None if it does not fit."""
    if type_ is Type.FLOAT:
        try:
            return float(number)
        except OverflowError:
            return None
    low, high = RANGES.get(type_, (0, MAX_UNSIGNED))
    return int(number) if low <= number <= high else None
