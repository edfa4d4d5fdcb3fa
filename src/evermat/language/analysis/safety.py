"""Safety: every variable that is read gets its value from a positive atom or from a computation over such.

A rule that passes has an order in which its literals can be evaluated; the planner relies on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evermat.core import Kind, Problems
from evermat.core import error_catalogue as errors
from evermat.language.analysis.flatten import FlatLiteral, FlatRule, Grouping, clause_variables
from evermat.language.syntax.ast import Atom, Clause, Compare, Expression, Node, Var


def check_safety(rule: FlatRule, problems: Problems) -> bool:
    """Reports the variables of a rule that nothing binds, each of them once; true if there are none."""
    bindings = Bindings(rule.body)
    safe = _check_body(rule, rule.body, bindings, problems)
    inside: set[str] | None = None
    for variable in variables(rule.head):
        if variable.name in bindings.bound:
            continue
        safe = False
        if rule.clause.body is None:
            _report_fact(variable, problems)
        else:
            if inside is None:
                groupings = [literal for literal in rule.body if isinstance(literal, Grouping)]
                bodies = [body for grouping in groupings for body in grouping.alternatives]
                inside = {v.name for body in bodies for literal in body for v in variables(literal)}
            kind = errors.UNSAFE_AGGREGATE if variable.name in inside else errors.UNBOUND_HEAD
            hint = problems.hint(variable.name, _unused(rule, bindings))
            problems.add(kind, variable.span, hint, name=variable.name)
        bindings.bind([variable.name])
    return safe


def _unused(rule: FlatRule, bindings: Bindings) -> list[str]:
    """What the body binds but the head does not use: one of them may be meant."""
    used = {v.name for v in variables(rule.head)}
    return [name for name in bindings.bound if _is_written(name) and name not in used]


def _report_fact(variable: Var, problems: Problems) -> None:
    name = _shown(variable)
    problems.add(errors.UNBOUND_FACT, variable.span, f'the string of that name is written `"{name}"`', name=name)


def note_singletons(clause: Clause, problems: Problems) -> None:
    """Warns of variables that occur once: often a slip of the pen."""
    seen: dict[str, list[Var]] = {}
    for variable in clause_variables(clause):
        seen.setdefault(variable.name, []).append(variable)
    for name, places in seen.items():
        if len(places) == 1 and not name.startswith("_"):
            problems.add(errors.SINGLETON, places[0].span, name=name)


@dataclass(slots=True)
class _Equation:
    """Binds `target` as soon as nothing that it needs is `missing`."""

    target: str
    missing: int


class Bindings:
    """The names that a body binds, and what follows as soon as more of them are bound."""

    def __init__(self, body: Iterable[FlatLiteral], given: Iterable[str] = ()) -> None:
        self.bound: set[str] = set()
        self.targets: set[str] = set()  # what an equation or an aggregate could bind
        self._waiting: dict[str, list[_Equation]] = {}
        for literal in body:
            match literal:
                case Atom():
                    self.bind(v.name for v in variables(literal))
                case Compare("=", left, right):
                    self._follow(left, variables(right))
                    self._follow(right, variables(left))
                case Grouping():
                    self._follow(literal.result, literal.keys)
        self.bind(given)
        self.known = frozenset(filter(_is_written, self.bound))  # by the body itself

    def _follow(self, target: Expression, needed: Iterable[Var]) -> None:
        if isinstance(target, Var) and target.name not in self.bound:
            self.targets.add(target.name)
            missing = {v.name for v in needed} - self.bound
            equation = _Equation(target.name, len(missing))
            for name in missing:
                self._waiting.setdefault(name, []).append(equation)
            if not missing:
                self.bind([target.name])

    def bind(self, names: Iterable[str]) -> None:
        """Takes names as bound, with all that follows."""
        new = list(names)
        while new:
            name = new.pop()
            if name in self.bound:
                continue
            self.bound.add(name)
            for equation in self._waiting.pop(name, ()):
                equation.missing -= 1
                if not equation.missing:
                    new.append(equation.target)


def _check_body(rule: FlatRule, body: Iterable[FlatLiteral], bindings: Bindings, problems: Problems) -> bool:
    """Reports what is read but not bound, and takes it as bound from there on."""
    safe = True
    unbound: list[tuple[Kind, Var]] = []
    for literal in body:
        if isinstance(literal, Grouping):
            unbound += [(errors.UNSAFE_AGGREGATE, key) for key in literal.keys if key.name not in bindings.bound]
        elif not isinstance(literal, Atom):
            unbound += [(errors.UNSAFE, v) for v in variables(literal) if v.name not in bindings.bound]
    # What an equation would bind comes last: it is missing only because something else is.
    for kind, variable in sorted(unbound, key=lambda pair: pair[1].name in bindings.targets):
        if variable.name not in bindings.bound:
            safe = False
            _report(rule, kind, variable, bindings, problems)
            bindings.bind([variable.name])
    for literal in body:
        if isinstance(literal, Grouping):
            safe &= _check_grouping(rule, literal, problems)
    return safe


def _report(rule: FlatRule, kind: Kind, variable: Var, bindings: Bindings, problems: Problems) -> None:
    if rule.clause.body is None and kind is errors.UNSAFE and _is_written(variable.name):
        _report_fact(variable, problems)
        return
    name = _shown(variable)
    hint = problems.hint(name, bindings.known) if kind is errors.UNSAFE else ""
    problems.add(kind, variable.span, hint, name=name)


def _check_grouping(rule: FlatRule, grouping: Grouping, problems: Problems) -> bool:
    safe = True
    keys = {v.name for v in grouping.keys}
    for body in grouping.alternatives:
        inner = Bindings(body, keys)
        safe &= _check_body(rule, body, inner, problems)
        for variable in variables(grouping.value):
            if variable.name not in inner.bound:
                safe = False
                problems.add(errors.UNSAFE, variable.span, name=_shown(variable))
    return safe


def variables(thing: FlatLiteral | Node | None) -> Iterator[Var]:
    """The variables of a literal or expression; of an aggregate only those that it shares."""
    if isinstance(thing, Var):
        yield thing
    elif isinstance(thing, Grouping):
        yield from thing.keys
        yield thing.result
    elif thing is not None:
        for part in thing.parts:
            yield from variables(part)


def _shown(variable: Var) -> str:
    """The name as it stands in the text: variables of aggregates are renamed."""
    return variable.name.partition("'")[0]


def _is_written(name: str) -> bool:
    """Whether a name stands in the text; names made here have a quote in them."""
    return "'" not in name
