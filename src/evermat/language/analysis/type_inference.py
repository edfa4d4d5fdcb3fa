"""Types of variables and constants, and the typed rules.

Every expression of a rule gets a class of things that must have the same primitive type. A class starts with all
types that it may have and is narrowed by each use; a use that leaves nothing is a type clash. What is still open in
the end becomes a `number` or a `symbol`. Declared subtypes and unions are checked on top, by name, as in Soufflé.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from evermat.core import Problems, Span, count_of
from evermat.core import error_catalogue as errors
from evermat.language import model
from evermat.language.analysis.declared_types import Types
from evermat.language.analysis.flatten import FlatLiteral, FlatRule, Grouping
from evermat.language.builtins import (
    AGGREGATES,
    ANY,
    FUNCTIONS,
    NEGATION,
    NUMERIC,
    RANGES,
    TESTS,
    Type,
    fault_of_pattern,
)
from evermat.language.model import ANYTHING, Relation
from evermat.language.syntax.ast import Atom, Call, Cast, Compare, Expression, Literal, Not, Var, Wildcard
from evermat.language.terms import literal_term

LITERAL_TYPES = {
    "integer": NUMERIC,
    "unsigned": Type.UNSIGNED,
    "float": Type.FLOAT,
    "string": Type.SYMBOL | Type.TERM,
    "term": Type.TERM,
}
_SHOWN = 40  # digits of a number that are shown
_COLUMN = "it is column `{}` of `{}`"

# What becomes of something that may have any of some types.
_PREFERRED: dict[int, Type] = {
    possible: next(t for t in (Type.NUMBER, Type.SYMBOL, *Type) if t & possible) for possible in range(1, int(ANY) + 1)
}


class _Reason(NamedTuple):
    """Why a class has the types that it has: a sentence with a gap, what fills it, and the place.

    It is put together only if it is needed: most programs have no clash.
    """

    sentence: str
    details: tuple[object, ...]
    span: Span

    def text(self, problems: Problems, used_at: Span) -> str:
        sentence = self.sentence.format(*self.details)
        if not sentence or self.span == used_at:
            return sentence
        place = problems.source.position(self.span.start)
        return f"{sentence} at {place.line}:{place.column}"


def type_rule(rule: FlatRule, relations: Mapping[str, Relation], types: Types, problems: Problems) -> model.Rule | None:
    """The typed rule, or None if its types clash (reported)."""
    inference = _Inference(relations, types, problems)
    inference.infer_body(rule.body)
    inference.infer_atom(rule.head)
    if not inference.failed:
        inference.check_declared(rule)
    if inference.failed:
        return None
    head = inference.typed_atom(rule.head)
    body = tuple(inference.typed(literal) for literal in rule.body)
    return None if inference.failed else model.Rule(head, body, rule.clause.span)


class _Inference:
    """The classes of one rule: a forest of merged nodes with a set of possible types at each root."""

    def __init__(self, relations: Mapping[str, Relation], types: Types, problems: Problems) -> None:
        self.relations, self.types, self.problems = relations, types, problems
        self.failed = False
        self._parent: list[int] = []
        self._possible: list[int] = []  # sets of types as plain integers: flags of an enum are slow
        self._reason: list[_Reason | None] = []
        self._variables: dict[str, int] = {}
        self._typed_variables: dict[str, model.Variable] = {}
        self._nodes: dict[int, int] = {}  # id of an expression: its class

    # --- classes ---

    def _new(self, possible: int = int(ANY), reason: _Reason | None = None) -> int:
        self._parent.append(len(self._parent))
        self._possible.append(int(possible))
        self._reason.append(reason)
        return len(self._parent) - 1

    def _root(self, node: int) -> int:
        while self._parent[node] != node:
            self._parent[node] = self._parent[self._parent[node]]
            node = self._parent[node]
        return node

    def _narrow(self, expression: Expression, node: int, possible: int, sentence: str, *details: object) -> bool:
        """The expression must have one of these types; whether it can."""
        root = self._root(node)
        before = self._possible[root]
        after = before & int(possible)
        if not after:
            use = _Reason(sentence, details, expression.span)
            self._clash(expression, before, possible, self._reason[root], use)
        elif after != before:
            self._possible[root] = after
            self._reason[root] = _Reason(sentence, details, expression.span)
        return bool(after)

    def _merge(self, expression: Expression, node: int, other: int) -> None:
        """The expression of class `node` must have the same type as class `other`."""
        a, b = self._root(node), self._root(other)
        if a == b:
            return
        both = self._possible[a] & self._possible[b]
        if not both:
            use = self._reason[b]
            if use is not None and use.sentence == _COLUMN:
                use = use._replace(sentence=f"the other side {_COLUMN.removeprefix('it ')}")
            self._clash(expression, self._possible[a], self._possible[b], self._reason[a], use)
            return
        self._parent[a] = b
        if self._possible[b] != both:
            self._reason[b] = self._reason[a]
        self._possible[b] = both

    def _clash(
        self, expression: Expression, expected: int, found: int, reason: _Reason | None, use: _Reason | None
    ) -> None:
        """Says why the expression has the type that it has, or, where that is plain to see, why another is needed."""
        self.failed = True
        texts = [r.text(self.problems, expression.span) for r in (reason, use) if r is not None]
        why = next(filter(None, texts), "")
        details = {"what": _describe(expression), "found": type_names(found), "expected": type_names(expected)}
        self.problems.add(errors.TYPE_CLASH, expression.span, **details, why=why)

    # --- collecting what is known ---

    def infer_body(self, body: list[FlatLiteral]) -> None:
        for literal in body:
            match literal:
                case Atom():
                    self.infer_atom(literal)
                case Not(Atom() as atom):
                    self.infer_atom(atom)
                case Compare(operator, left, right):
                    first, second, shared = self._infer(left), self._infer(right), TESTS[operator].shared
                    if shared is None:
                        self._narrow(left, first, Type.SYMBOL, "`{}` takes it", operator)
                        self._narrow(right, second, Type.SYMBOL | Type.TERM, "`{}` takes it", operator)
                    elif self._narrow(left, first, shared, "`{}` takes it", operator):
                        self._merge(right, second, first)
                case Grouping():
                    self._infer_grouping(literal)

    def _infer_grouping(self, grouping: Grouping) -> None:
        for body in grouping.alternatives:
            self.infer_body(body)
        function, result = grouping.aggregate.function, self._infer(grouping.result)
        fixed = AGGREGATES[function].result
        if grouping.value is not None:
            value = self._infer(grouping.value)
            fits = self._narrow(grouping.value, value, AGGREGATES[function].values, "`{}` takes it", function)
            if fixed is None and fits:
                self._merge(grouping.result, result, value)
        if fixed is not None:
            self._narrow(grouping.result, result, fixed, "`{}` gives it", function)

    def infer_atom(self, atom: Atom) -> None:
        relation = self.relations[atom.name.text]
        for argument, column in zip(atom.arguments, relation.columns, strict=True):
            if not isinstance(argument, Wildcard):
                node = self._infer(argument)
                self._narrow(argument, node, column.type, _COLUMN, column.name, relation.name)

    def _infer(self, expression: Expression) -> int:
        if isinstance(expression, Var):
            if expression.name not in self._variables:
                self._variables[expression.name] = self._new()
            return self._variables[expression.name]
        if (known := self._nodes.get(id(expression))) is not None:
            return known
        match expression:
            case Literal(kind):
                node = self._new(LITERAL_TYPES[kind], _Reason("", (), expression.span))
            case Call():
                node = self._infer_call(expression)
            case Cast(argument, type_):
                node = self._infer(argument)
                if (primitive := self.types.primitive(type_.text, type_.span)) is None:
                    self.failed = True
                elif not self._narrow(argument, node, primitive, "it is cast to `{}`", type_.text):
                    node = self._new(primitive)
            case _:  # `_`, which was reported
                self.failed = True
                node = self._new()
        self._nodes[id(expression)] = node
        return node

    def _infer_call(self, call: Call) -> int:
        function = FUNCTIONS[call.function]
        arguments = [self._infer(argument) for argument in call.arguments]
        if not function.accepts(len(arguments)):
            self.failed = True
            least = len(function.parameters)
            expected = f"{'at least ' if function.variadic else ''}{count_of(least, 'argument')}"
            found = str(len(arguments))
            self.problems.add(errors.FUNCTION_ARITY, call.span, name=call.function, expected=expected, found=found)
            return self._new()
        operator = "-" if call.function == NEGATION else call.function
        shared = self._new(function.shared, _Reason("it takes part in `{}`", (operator,), call.span))
        for position, (argument, node) in enumerate(zip(call.arguments, arguments, strict=True)):
            possible = function.parameter(position)
            if possible is None:
                self._merge(argument, node, shared)
            else:
                self._narrow(argument, node, possible, "`{}` takes it", call.function)
        if function.result is None:
            return shared
        return self._new(function.result, _Reason("`{}` gives it", (call.function,), call.span))

    # --- declared types ---

    def check_declared(self, rule: FlatRule) -> None:
        """Subtypes and unions: what positive atoms say of a variable must agree, and suit the head."""
        declared: dict[str, str] = {}
        for literal in rule.body:
            if not isinstance(literal, Atom):
                continue
            for argument, column in zip(literal.arguments, self.relations[literal.name.text].columns, strict=True):
                if isinstance(argument, Var) and self.types.knows(second := column.declared):
                    name = argument.name
                    first = declared.get(name, second)
                    narrower = self.types.meet(first, second)
                    if narrower is None:
                        self.failed = True
                        self.problems.add(errors.DISJOINT_TYPES, argument.span, name=name, first=first, second=second)
                    declared[name] = narrower or first
        relation = self.relations[rule.head.name.text]
        for argument, column in zip(rule.head.arguments, relation.columns, strict=True):
            found = declared.get(argument.name) if isinstance(argument, Var) else None
            if found is None or not self.types.knows(column.declared):
                continue
            if not self.types.is_subtype(found, column.declared):
                self.failed = True
                details = {"what": _describe(argument), "found": found, "expected": column.declared}
                where = {"column": column.name, "relation": relation.name}
                self.problems.add(errors.NOT_A_SUBTYPE, argument.span, **details, **where)

    # --- the typed rule ---

    def _type(self, node: int) -> Type:
        return _PREFERRED[self._possible[self._root(node)]]

    def typed_atom(self, atom: Atom) -> model.Atom:
        relation = self.relations[atom.name.text]
        terms: list[model.Term] = []
        for argument in atom.arguments:
            term = ANYTHING if isinstance(argument, Wildcard) else self._typed(argument)
            terms.append(term)  # type: ignore[arg-type]  # flat atoms hold no expressions
        return model.Atom(relation, tuple(terms))

    def typed(self, literal: FlatLiteral) -> model.Literal:
        match literal:
            case Atom():
                return self.typed_atom(literal)
            case Not(Atom() as atom):
                return model.Negation(self.typed_atom(atom))
            case Compare(operator, left, right):
                if TESTS[operator].pattern and isinstance(left, Literal):
                    self._check_pattern(left)
                return model.Test(operator, self._typed(left), self._typed(right))
            case Grouping():
                return model.Aggregation(
                    result=self._variable(literal.result),
                    function=literal.aggregate.function,
                    value=None if literal.value is None else self._typed(literal.value),
                    keys=tuple(self._variable(key) for key in literal.keys),
                    alternatives=tuple(tuple(self.typed(part) for part in body) for body in literal.alternatives),
                    span=literal.aggregate.span,
                )
        raise AssertionError(literal)

    def _check_pattern(self, literal: Literal) -> None:
        if why := fault_of_pattern(str(literal.value)):
            self.failed = True
            self.problems.add(errors.BAD_PATTERN, literal.span, pattern=literal.value, why=why)

    def _variable(self, variable: Var) -> model.Variable:
        if (known := self._typed_variables.get(variable.name)) is None:
            known = model.Variable(variable.name, self._type(self._variables[variable.name]))
            self._typed_variables[variable.name] = known
        return known

    def _typed(self, expression: Expression) -> model.Expression:
        match expression:
            case Var():
                return self._variable(expression)
            case Literal():
                constant = typed_constant(expression, self._type(self._infer(expression)), self.problems)
                self.failed |= constant is None
                return constant or model.Constant(0, Type.NUMBER)
            case Call(name, arguments):
                function, node = FUNCTIONS[name], self._infer(expression)
                typed = tuple(self._typed(argument) for argument in arguments)
                result = function.result if function.result is not None else self._type(node)
                return model.Apply(name, typed, typed[0].type, result)
            case Cast(argument):
                return self._typed(argument)
        raise AssertionError(expression)


def typed_constant(literal: Literal, type_: Type, problems: Problems) -> model.Constant | None:
    """The constant as a value of the type, or None if it does not fit (reported)."""
    value = literal.value
    limits = ""
    if type_ in RANGES:
        low, high = RANGES[type_]
        if not low <= value <= high:  # type: ignore[operator]
            limits = f"its values lie between {low} and {high}"
    elif type_ is Type.FLOAT:
        value = float(value) + 0.0
        if math.isinf(value):
            limits = "the largest float is about 1.8e308"
    elif type_ is Type.TERM and literal.kind == "string":
        value = literal_term(str(value))
    if not limits:
        return model.Constant(value, type_)
    problems.add(errors.OUT_OF_RANGE, literal.span, value=_written(literal, problems), type=type_, range=limits)
    return None


def _written(literal: Literal, problems: Problems) -> str:
    """A number as it stands in the text, or its beginning."""
    text = problems.source.text[literal.span.start : literal.span.end]
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def type_names(possible: int) -> str:
    """A set of types as messages name it: `a `symbol` or a `term``."""
    names = [f"{'an' if t is Type.UNSIGNED else 'a'} `{t}`" for t in Type if t & possible]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _describe(expression: Expression) -> str:
    """What an error message calls an expression."""
    match expression:
        case Var(name):
            return f"variable `{name.partition(chr(39))[0]}`" if not name.startswith("'") else "this expression"
        case Literal("integer" | "unsigned" | "float", value):
            return f"the number `{value}`"
        case Literal("string"):
            return "this string"
        case Literal():
            return "this RDF term"
        case _:
            return "this expression"
