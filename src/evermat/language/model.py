"""The typed program: relations, rules and facts after names are looked up and types are known.

This is what plans are made from. Every variable of a rule has one primitive type; constants hold values of their
type; a rule is one head and one conjunction. After the passes (see `passes`) negated atoms have no `_`, and an
aggregate stands only in a rule of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evermat.core import Source, Span
from evermat.language.builtins import ANY, FUNCTIONS, NEGATION, TOTAL, Type, format_float
from evermat.language.terms import Value, quote

if TYPE_CHECKING:
    from evermat.core import Problem
    from evermat.language.analysis.strata import Stratum

# --- relations ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A named column; `declared` is the name of its type in the program."""

    name: str
    type: Type
    declared: str


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """A relation; `hidden` ones were made by a pass and are not shown to users as results.

    A hidden one stands in for a part of the user's relation `origin`: that is what messages call it.
    """

    name: str
    columns: tuple[Column, ...]
    equivalence: bool = False
    forbidden: bool = False  # a fact in it is an error
    hidden: bool = False
    span: Span | None = None
    origin: str = ""

    @property
    def shown(self) -> str:
        """The name that the user knows it by."""
        return self.origin or self.name

    @property
    def arity(self) -> int:
        return len(self.columns)

    @property
    def types(self) -> tuple[Type, ...]:
        return tuple(column.type for column in self.columns)

    def __repr__(self) -> str:
        return f"Relation({self.name}/{self.arity})"


# --- terms -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A variable of one rule; within a rule its name says it all."""

    name: str
    type: Type

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Variable) and self.name == other.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Constant:
    """A value."""

    value: Value
    type: Type

    def __str__(self) -> str:
        if self.type is Type.SYMBOL:
            return quote(str(self.value))
        if isinstance(self.value, float):
            text = format_float(self.value)
            return text if "." in text or "e" in text or "inf" in text else text + ".0"
        return f"{self.value}u" if self.type is Type.UNSIGNED else str(self.value)


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`_`: the column may hold anything."""

    def __str__(self) -> str:
        return "_"


ANYTHING = Wildcard()
Term = Variable | Constant | Wildcard


@dataclass(frozen=True, slots=True)
class Apply:
    """A built-in function: `operands` is the type at which it is computed, `type` that of the result."""

    function: str
    arguments: tuple[Expression, ...]
    operands: Type
    type: Type

    def __str__(self) -> str:
        if len(self.arguments) == 2 and FUNCTIONS[self.function].operator:
            return f"({self.arguments[0]} {self.function} {self.arguments[1]})"
        name = "-" if self.function == NEGATION else self.function
        return f"{name}({', '.join(map(str, self.arguments))})"


Expression = Variable | Constant | Apply

# --- literals ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Atom:
    """A positive literal, or the head of a rule."""

    relation: Relation
    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{self.relation.name}({', '.join(map(str, self.terms))})"


@dataclass(frozen=True, slots=True)
class Negation:
    """A negated atom; `_` in it means 'whatever'."""

    atom: Atom

    def __str__(self) -> str:
        return f"!{self.atom}"


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison of two expressions of one type; `=` may bind a variable."""

    operator: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        if self.operator.lstrip("!").isalpha():
            return f"{self.operator}({self.left}, {self.right})"
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True, slots=True)
class Aggregation:
    """`result = function value : { body }`. It groups by the variables in `keys`, which are bound outside."""

    result: Variable
    function: str
    value: Expression | None
    keys: tuple[Variable, ...]
    alternatives: tuple[tuple[Literal, ...], ...]
    span: Span

    @property
    def body(self) -> tuple[Literal, ...]:
        """The one conjunction that is left after the passes."""
        (only,) = self.alternatives
        return only

    def __str__(self) -> str:
        value = "" if self.value is None else f"{self.value} "
        body = " ; ".join(", ".join(map(str, literals)) for literals in self.alternatives)
        return f"{self.result} = {self.function} {value}: {{ {body} }}"


Literal = Atom | Negation | Test | Aggregation


def name_wildcards(literal: Literal, prefix: str, types: Type = ANY) -> Literal:
    """A literal with a variable of its own for each `_` of an atom, or only for those of some types."""
    if not isinstance(literal, Atom):
        return literal
    terms = [
        Variable(f"{prefix}{i}", type_) if isinstance(term, Wildcard) and type_ & types else term
        for i, (term, type_) in enumerate(zip(literal.terms, literal.relation.types, strict=True))
    ]
    return Atom(literal.relation, tuple(terms))


def variables_of(*things: Term | Expression | Literal | None) -> Iterator[Variable]:
    """The variables of terms and literals, in order and with repetitions.

    Of an aggregation only those that it shares with the rule around it.
    """
    for thing in things:
        if isinstance(thing, Variable):
            yield thing
        elif isinstance(thing, Atom):
            yield from [term for term in thing.terms if isinstance(term, Variable)]
        elif isinstance(thing, Test):
            yield from variables_of(thing.left, thing.right)
        elif isinstance(thing, Apply):
            yield from variables_of(*thing.arguments)
        elif isinstance(thing, Negation):
            yield from variables_of(thing.atom)
        elif isinstance(thing, Aggregation):
            yield from thing.keys
            yield thing.result


def partial_expressions(*things: Expression | Literal | None) -> Iterator[Apply]:
    """The expressions in some literals that may have no value, each as a whole."""
    for thing in things:
        if isinstance(thing, Test):
            yield from partial_expressions(thing.left, thing.right)
        elif isinstance(thing, Apply):
            if thing.function not in TOTAL:
                yield thing
            else:
                yield from partial_expressions(*thing.arguments)
        elif isinstance(thing, Aggregation):
            yield from partial_expressions(thing.value, *(literal for body in thing.alternatives for literal in body))


# --- rules and programs ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """`head :- body`, or, with an aggregate, `head :- result = function value : { … }` for the groups in `body`.

    In an aggregate rule the head's columns are the keys and the result, and the body is empty or the one atom that
    lists the groups to compute; without it the groups are those that occur in the aggregate's own body.
    """

    head: Atom
    body: tuple[Literal, ...]
    span: Span
    aggregate: Aggregation | None = None

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The literals of the body, those inside an aggregate included."""
        return self.body if self.aggregate is None else self.body + self.aggregate.body

    @property
    def atoms(self) -> list[Atom]:
        """The atoms of all literals, negated or not."""
        atoms = [literal.atom if isinstance(literal, Negation) else literal for literal in self.literals]
        return [atom for atom in atoms if isinstance(atom, Atom)]

    @property
    def reads(self) -> set[str]:
        """The names of the relations of all atoms."""
        return {atom.relation.name for atom in self.atoms}

    def __str__(self) -> str:
        parts = [*map(str, self.body), *([str(self.aggregate)] if self.aggregate else [])]
        return f"{self.head} :- {', '.join(parts)}." if parts else f"{self.head} :- true."


@dataclass(frozen=True, slots=True)
class Io:
    """Where a relation is read from or written to; `path` is None for the default file name.

    `options` say more of a table or a database.
    """

    relation: Relation
    medium: str = "file"
    path: str | None = None
    delimiter: str = "\t"
    headers: bool = False
    rfc4180: bool = False
    options: tuple[tuple[str, str], ...] = ()
    span: Span | None = None


Row = tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Program:
    """A program that passed all checks. Nothing in it changes any more."""

    source: Source
    relations: dict[str, Relation]
    rules: tuple[Rule, ...]
    facts: dict[str, list[Row]]
    inputs: tuple[Io, ...] = ()
    outputs: tuple[Io, ...] = ()
    sizes: tuple[Relation, ...] = ()
    warnings: tuple[Problem, ...] = ()
    written: tuple[Rule, ...] = ()  # the rules before the passes
    base: Source | None = None  # the text before any revision, if there were any
    equality: str = "off"  # what is done about owl:sameAs, see `program.equality`
    revisions: tuple[tuple[str, str], ...] = ()  # texts added and removed since, in order
    prefixes: Mapping[str, str] = field(
        default_factory=dict
    )  # of ontologies and data, beside those that the text declares
    strata: tuple[Stratum, ...] = field(default=())

    def with_rules(self, rules: Iterable[Rule], new_relations: Iterable[Relation] = ()) -> Program:
        """The same program with other rules and some relations more: what a rewrite returns."""
        relations = self.relations | {relation.name: relation for relation in new_relations}
        return replace(self, rules=tuple(rules), relations=relations)

    @property
    def rewriting(self) -> bool:
        """Whether equal terms are represented by one of them."""
        return self.equality == "rewrite"


def shared_relations(program: Program, other: Program) -> list[str]:
    """Relations of both programs; a hidden one may have the name of another that it replaces."""
    others = other.relations
    return [name for name, r in program.relations.items() if name in others and others[name].types == r.types]


def changed_rules(before: Program, after: Program) -> tuple[list[Rule], list[Rule]]:
    """The rules that a program has no more after a revision, for relations that it still has, and those that it has in addition."""
    old, new = ({str(rule): rule for rule in program.rules} for program in (before, after))
    shared = set(shared_relations(after, before))
    gone = [rule for text, rule in old.items() if text not in new and rule.head.relation.name in shared]
    return gone, [rule for text, rule in new.items() if text not in old]
