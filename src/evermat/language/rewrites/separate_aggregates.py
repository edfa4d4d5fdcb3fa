"""Aggregates in rules of their own.

    total(x, n) :- node(x), n = sum w : { edge(x, _, w) }, n > 3.

becomes, with a hidden relation `total#1`,

    total#1(x, n) :- node(x), n = sum w : { edge(x, _, w) }.       an aggregate rule: keys, result, groups
    total(x, n)   :- node(x), total#1(x, n), n > 3.

An aggregate rule computes the groups that the atom in its body lists (`node` here, or a hidden relation
`total#1.groups`); that is needed where an empty group has a value (`count`, `sum`) or where the aggregate's own body does not bind
the keys. Otherwise the groups are those that occur in the aggregate's body.

The list of groups may depend on the head: then the aggregate rule is recursive in its groups, while what it aggregates over is
complete.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from evermat.core import Problems
from evermat.core import error_catalogue as errors
from evermat.language import model
from evermat.language.builtins import AGGREGATES


def separate_aggregates(program: model.Program, problems: Problems) -> model.Program:
    """Moves every aggregate into an aggregate rule of its own."""
    if not any(isinstance(literal, model.Aggregation) for rule in program.rules for literal in rule.body):
        return program
    separation = _Separation(problems)
    waiting = deque(program.rules)
    done: list[model.Rule] = []
    while waiting:
        rule = waiting.popleft()
        if any(isinstance(literal, model.Aggregation) for literal in rule.body):
            waiting.extendleft(reversed(separation.split(rule)))
        else:
            done.append(rule)
    return program.with_rules(done, separation.relations)


class _Separation:
    """Makes the hidden relations and rules."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self.relations: list[model.Relation] = []
        self._numbers: Counter[str] = Counter()

    def split(self, rule: model.Rule) -> list[model.Rule]:
        """Takes one aggregate out of a rule; the rules that it returns may contain more."""
        plain = [literal for literal in rule.body if not isinstance(literal, model.Aggregation)]
        bound = bound_by(plain, ())
        ready = next(a for a in rule.body if isinstance(a, model.Aggregation) and set(a.keys) <= bound)
        head = rule.head.relation.name
        self._numbers[head] += 1
        name = f"{head}#{self._numbers[head]}"
        result = model.Variable("'result", ready.result.type)
        relation = self._relation(name, [*ready.keys, result], rule)

        rules: list[model.Rule] = []
        keys_bound = all(set(ready.keys) <= bound_by(body, ()) for body in ready.alternatives)
        listed = bool(ready.keys) and (not keys_bound or AGGREGATES[ready.function].zero)
        groups: tuple[model.Literal, ...] = ()
        if listed:
            outer: list[model.Literal] = [literal for literal in plain if set(model.variables_of(literal)) <= bound]
            groups = (self._groups(name, ready, outer, rule, rules),)
        body = self._body(name, ready, groups if not keys_bound else (), rule, rules)
        aggregate = model.Aggregation(result, ready.function, ready.value, ready.keys, (body,), ready.span)
        rules.append(model.Rule(model.Atom(relation, (*ready.keys, result)), groups, rule.span, aggregate))

        value = model.Atom(relation, (*ready.keys, ready.result))
        body = tuple(value if literal is ready else literal for literal in rule.body)
        rules.append(model.Rule(rule.head, body, rule.span))
        return rules

    def _groups(
        self, name: str, ready: model.Aggregation, outer: list[model.Literal], rule: model.Rule, rules: list[model.Rule]
    ) -> model.Atom:
        """An atom that lists the groups to compute: one of the rule's own if it will do."""
        keys = set(ready.keys)
        covering = [a for a in outer if isinstance(a, model.Atom) and keys <= set(model.variables_of(a))]
        for atom in covering:
            if len(atom.terms) == len(keys) and keys == set(atom.terms):
                return atom
        relation = self._relation(f"{name}.groups", list(ready.keys), rule)
        head = model.Atom(relation, ready.keys)
        rules.append(model.Rule(head, (covering[0],) if covering else tuple(outer), rule.span))
        return head

    def _body(
        self,
        name: str,
        ready: model.Aggregation,
        groups: tuple[model.Literal, ...],
        rule: model.Rule,
        rules: list[model.Rule],
    ) -> tuple[model.Literal, ...]:
        """The one conjunction to aggregate over; alternatives and nested aggregates get a relation."""
        if len(ready.alternatives) == 1:
            (body,) = ready.alternatives
            if not any(isinstance(literal, model.Aggregation) for literal in body):
                return body
            # Every binding counts, that of `_` too.
            bodies = [tuple(model.name_wildcards(part, f"any'{i}.") for i, part in enumerate(body))]
        else:
            bodies = list(ready.alternatives)
            self._check_alternatives(ready)
        order = dict.fromkeys(v for body in bodies for literal in body for v in model.variables_of(literal))
        columns = [*ready.keys, *(v for v in order if v not in ready.keys)]
        relation = self._relation(f"{name}.rows", columns, rule)
        rows = model.Atom(relation, tuple(columns))
        rules += [model.Rule(rows, groups + body, rule.span) for body in bodies]
        return (rows,)

    def _check_alternatives(self, ready: model.Aggregation) -> None:
        """All alternatives must bind the same variables, or there would be no saying what is aggregated."""
        variables = {v for body in ready.alternatives for literal in body for v in model.variables_of(literal)}
        for body in ready.alternatives:
            bound = bound_by(body, ready.keys) | {a.result for a in body if isinstance(a, model.Aggregation)}
            if any(isinstance(literal, model.Atom) and model.ANYTHING in literal.terms for literal in body):
                self._problems.add(errors.ALTERNATIVE_WILDCARD, ready.span)
            for variable in variables - bound:
                name = variable.name.partition("'")[0]
                self._problems.add(errors.ALTERNATIVE_VARIABLE, ready.span, name=name)

    def _relation(self, name: str, variables: list[model.Variable], rule: model.Rule) -> model.Relation:
        columns = tuple(model.Column(v.name.partition("'")[0] or "result", v.type, str(v.type)) for v in variables)
        relation = model.Relation(name, columns, hidden=True, origin=rule.head.relation.shown)
        self.relations.append(relation)
        return relation


def bound_by(literals: Iterable[model.Literal], given: Iterable[model.Variable]) -> set[model.Variable]:
    """The variables that positive atoms and equations bind, aggregates aside."""
    bound = set(given)
    equations = []
    for literal in literals:
        if isinstance(literal, model.Atom):
            bound.update(model.variables_of(literal))
        elif isinstance(literal, model.Test) and literal.operator == "=":
            equations += [(literal.left, literal.right), (literal.right, literal.left)]
    progress = True
    while progress:
        progress = False
        for target, value in equations:
            if isinstance(target, model.Variable) and target not in bound and set(model.variables_of(value)) <= bound:
                bound.add(target)
                progress = True
    return bound
