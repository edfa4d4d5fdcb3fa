"""Safety: every variable that is read gets its value from a positive atom or from a computation over such.

A rule that passes has an order in which its literals can be evaluated; the planner relies on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evermat import errors
from evermat.errors import Problems, did_you_mean
from evermat.program.lower import FlatLiteral, FlatRule, Grouping, clause_variables
from evermat.program.syntax import Atom, Call, Cast, Clause, Compare, Expression, Not, Var


def check_safety(rule: FlatRule, problems: Problems) -> bool:
    """Reports the variables of a rule that nothing binds; true if there are none."""
    bound = bound_variables(rule.body, set())
    safe = _check_body(rule.body, bound, problems)
    for variable in variables(rule.head):
        if variable.name not in bound:
            safe = False
            if rule.clause.body is None:
                problems.add(errors.UNBOUND_FACT, variable.span, name=variable.name)
            elif _written(variable.name):
                inside = {v.name for literal in rule.body if isinstance(literal, Grouping) for v in _inside(literal)}
                kind = errors.UNSAFE_AGGREGATE if variable.name in inside else errors.UNBOUND_HEAD
                hint = did_you_mean(variable.name, filter(_written, bound - {v.name for v in variables(rule.head)}))
                problems.add(kind, variable.span, hint, name=variable.name)
    return safe


def note_singletons(clause: Clause, problems: Problems) -> None:
    """Warns of variables that occur once: often a slip of the pen."""
    seen: dict[str, list[Var]] = {}
    for variable in clause_variables(clause):
        seen.setdefault(variable.name, []).append(variable)
    for name, places in seen.items():
        if len(places) == 1 and not name.startswith("_"):
            problems.add(errors.SINGLETON, places[0].span, name=name)


def bound_variables(body: Iterable[FlatLiteral], given: set[str]) -> set[str]:
    """The names that a body binds, starting from `given`."""
    bound = set(given)
    waiting: list[Compare | Grouping] = []
    for literal in body:
        if isinstance(literal, Atom):
            bound.update(v.name for v in variables(literal))
        elif isinstance(literal, Grouping) or (isinstance(literal, Compare) and literal.operator == "="):
            waiting.append(literal)
    progress = True
    while progress:
        progress = False
        for literal in list(waiting):
            if target := _bindable(literal, bound):
                bound.add(target)
                waiting.remove(literal)
                progress = True
    return bound


def _bindable(literal: Compare | Grouping, bound: set[str]) -> str | None:
    """The variable that an equation or aggregate can bind now, if any."""
    if isinstance(literal, Grouping):
        ready = all(v.name in bound for v in literal.keys) and literal.result.name not in bound
        return literal.result.name if ready else None
    for target, value in ((literal.left, literal.right), (literal.right, literal.left)):
        if (
            isinstance(target, Var)
            and target.name not in bound
            and all(v.name in bound for v in variables(value))
        ):
            return target.name
    return None


def _check_body(body: Iterable[FlatLiteral], bound: set[str], problems: Problems) -> bool:
    safe = True
    for literal in body:
        if isinstance(literal, Grouping):
            safe &= _check_grouping(literal, bound, problems)
            continue
        if isinstance(literal, Atom):
            continue
        for variable in variables(literal):
            if variable.name not in bound:
                safe = False
                name = variable.name.partition("'")[0]
                hint = did_you_mean(name, filter(_written, bound))
                problems.add(errors.UNSAFE, variable.span, hint, name=name)
    return safe


def _check_grouping(grouping: Grouping, bound: set[str], problems: Problems) -> bool:
    safe = True
    for key in grouping.keys:
        if key.name not in bound:
            safe = False
            problems.add(errors.UNSAFE_AGGREGATE, key.span, name=key.name.partition("'")[0])
    for body in grouping.alternatives:
        inner = bound_variables(body, {v.name for v in grouping.keys} & bound)
        safe &= _check_body(body, inner, problems)
        for variable in variables(grouping.value):
            if variable.name not in inner and variable.name not in {k.name for k in grouping.keys}:
                safe = False
                problems.add(errors.UNSAFE, variable.span, name=variable.name.partition("'")[0])
    return safe


def variables(thing: FlatLiteral | Expression | None) -> Iterator[Var]:
    """The variables of a literal or expression; of an aggregate only those that it shares."""
    match thing:
        case Var():
            yield thing
        case Atom() | Call():
            for argument in thing.arguments:
                yield from variables(argument)
        case Not():
            yield from variables(thing.formula)  # type: ignore[arg-type]
        case Compare():
            yield from variables(thing.left)
            yield from variables(thing.right)
        case Cast():
            yield from variables(thing.argument)
        case Grouping():
            yield from thing.keys
            yield thing.result


def _inside(grouping: Grouping) -> Iterator[Var]:
    for body in grouping.alternatives:
        for literal in body:
            yield from variables(literal)


def _written(name: str) -> bool:
    """Whether a name stands in the text; names made here have a quote in them."""
    return "'" not in name
