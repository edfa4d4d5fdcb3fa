"""The syntax tree: what the text says, before names are looked up and types are known.

Every expression and every formula has `parts`, the expressions and formulas in it; `rebuilt` changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from typing import Literal as OneOf

from evermat.core import Span

# --- expressions -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Name:
    """A relation's or constant's name: a plain word, or an RDF name already resolved to `<iri>`."""

    text: str
    span: Span

    @property
    def is_iri(self) -> bool:
        return self.text.startswith("<")


@dataclass(slots=True)
class Var:
    """A variable."""

    name: str
    span: Span
    parts: ClassVar[tuple[Node, ...]] = ()


@dataclass(slots=True)
class Wildcard:
    """`_`: any value."""

    span: Span
    parts: ClassVar[tuple[Node, ...]] = ()


LiteralKind = OneOf["integer", "unsigned", "float", "string", "term"]


@dataclass(slots=True)
class Literal:
    """A constant as written. An `integer` may become any numeric type, a `string` also a term."""

    kind: LiteralKind
    value: int | float | str
    span: Span
    parts: ClassVar[tuple[Node, ...]] = ()


@dataclass(slots=True)
class Call:
    """A built-in function or operator applied to expressions."""

    function: str
    arguments: list[Expression]
    span: Span

    @property
    def parts(self) -> Sequence[Node]:
        return self.arguments


@dataclass(slots=True)
class Cast:
    """`as(x, T)`: the same value under another type of the same kind."""

    argument: Expression
    type: Name
    span: Span

    @property
    def parts(self) -> Sequence[Node]:
        return (self.argument,)


@dataclass(slots=True)
class Aggregate:
    """`sum x : { body }`; `value` is missing for `count`."""

    function: str
    value: Expression | None
    body: Formula
    span: Span

    @property
    def parts(self) -> Sequence[Node]:
        return (self.body,) if self.value is None else (self.body, self.value)


Expression = Var | Wildcard | Literal | Call | Cast | Aggregate

# --- bodies ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Atom:
    """A relation applied to arguments."""

    name: Name
    arguments: list[Expression]
    span: Span

    @property
    def parts(self) -> Sequence[Node]:
        return self.arguments


@dataclass(slots=True)
class Equation(Atom):
    """`x = y` as a head: the fact that two terms are the same, under the name that RDF has for it."""


@dataclass(slots=True)
class Compare:
    """A comparison `= != < <= > >=` or a test `match`, `contains`, possibly negated (`!match`)."""

    operator: str
    left: Expression
    right: Expression
    span: Span

    @property
    def parts(self) -> Sequence[Node]:
        return self.left, self.right


@dataclass(slots=True)
class Truth:
    """`true` or `false`."""

    value: bool
    span: Span
    parts: ClassVar[tuple[Node, ...]] = ()


@dataclass(slots=True)
class Not:
    """`!` applied to any formula."""

    formula: Formula
    span: Span

    @property
    def parts(self) -> Sequence[Node]:
        return (self.formula,)


@dataclass(slots=True)
class And:
    """A conjunction."""

    parts: list[Formula]


@dataclass(slots=True)
class Or:
    """A disjunction."""

    parts: list[Formula]


Formula = Atom | Compare | Truth | Not | And | Or
Node = Expression | Formula


def rebuilt(node: Node, change: Callable[[Any], Any]) -> Any:
    """The same node with its parts changed."""
    match node:
        case Atom(name, arguments, span):
            return Atom(name, [change(argument) for argument in arguments], span)
        case Call(function, arguments, span):
            return Call(function, [change(argument) for argument in arguments], span)
        case Compare(operator, left, right, span):
            return Compare(operator, change(left), change(right), span)
        case Not(formula, span):
            return Not(change(formula), span)
        case And(parts) | Or(parts):
            return type(node)([change(part) for part in parts])
        case Cast(argument, type_, span):
            return Cast(change(argument), type_, span)
        case Aggregate(function, value, body, span):
            return Aggregate(function, None if value is None else change(value), change(body), span)
    return node


# --- statements --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Clause:
    """Facts (`body` is None) or rules: one for each head."""

    heads: list[Atom]
    body: Formula | None
    span: Span


@dataclass(slots=True)
class Attribute:
    """A named, typed column."""

    name: str
    type: Name
    span: Span


@dataclass(slots=True)
class Declaration:
    """`.decl a, b(x:T, …) qualifiers`."""

    names: list[Name]
    attributes: list[Attribute]
    qualifiers: list[Name]
    span: Span


@dataclass(slots=True)
class TypeDeclaration:
    """`.type T <: S` (a subtype) or `.type T = A | B` (an alias or union)."""

    name: Name
    subtype: bool
    members: list[Name]
    span: Span


@dataclass(slots=True)
class Parameter:
    """`key=value` of an input or output directive."""

    key: str
    value: str
    span: Span


@dataclass(slots=True)
class Directive:
    """`.input`, `.output`, `.printsize` of some relations."""

    keyword: str
    names: list[Name]
    parameters: list[Parameter]
    span: Span


@dataclass(slots=True)
class Pragma:
    """`.pragma "key" "value"`."""

    key: str
    value: str
    span: Span


@dataclass(slots=True)
class Ignored:
    """A statement that is accepted but has no effect."""

    keyword: str
    span: Span


@dataclass(slots=True)
class Unread:
    """A declaration with a mistake in it: its names are declared, but nothing is known of them."""

    keyword: str
    names: list[str]


Statement = Clause | Declaration | TypeDeclaration | Directive | Pragma | Ignored | Unread
