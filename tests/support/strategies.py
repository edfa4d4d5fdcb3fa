"""Random programs and data, for every test that compares an algorithm with the oracle.

A program has a few relations with numbers and symbols from tiny domains, in levels: rules may read positively what is on
their own level (recursion) and below; negation and aggregates read only below. Arithmetic is taken modulo a small
number, so that every fixpoint is finite. Explicit facts may be of any relation, derived ones too.

The generators take a `random.Random`, so that they serve hypothesis (`programs()`, `updates()`) and long fuzzing runs alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from hypothesis import strategies as st

DOMAIN = {"number": [-1, 0, 1, 2], "symbol": ["a", "é", ""]}
VARIABLES = ("x", "y", "z", "w")
Facts = dict[str, set[tuple]]


@dataclass
class Sketch:
    """A random relation: its name, the types of its columns, and its level."""

    name: str
    types: list[str]
    level: int
    nodes: int = 0  # explicit facts are edges between so many nodes

    @property
    def declaration(self) -> str:
        return f".decl {self.name}({', '.join(f'c{i}:{t}' for i, t in enumerate(self.types))})"


@dataclass
class RandomProgram:
    """A program's text and facts for its relations."""

    relations: list[Sketch]
    rules: list[str]
    facts: Facts = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "\n".join([*(r.declaration for r in self.relations), *self.rules])

    def __repr__(self) -> str:
        return f"\n{self.text}\n{self.facts}\n"


@dataclass(frozen=True)
class Features:
    """What random rules may contain."""

    recursion: bool = True
    negation: bool = True
    builtins: bool = True
    aggregates: bool = True
    closures: float = 0.4  # how many programs have rules that close a relation
    unions: float = 0.15  # how many have relations that copy others


def programs(features: Features = Features()) -> st.SearchStrategy[RandomProgram]:
    """Random programs with facts."""
    return st.randoms(use_true_random=True).map(lambda rng: random_program(rng, features))


def random_program(rng: Random, features: Features = Features()) -> RandomProgram:
    """A program with facts for its relations."""
    count = rng.randint(2, 6)
    relations = []
    for i in range(count):
        arity = rng.choice([0, 1, 1, 2, 2, 2, 2, 3])
        types = [rng.choice(["number", "number", "number", "symbol"]) for _ in range(arity)]
        relations.append(Sketch(f"r{i}", types, rng.randint(0, 2) if features.recursion else i))
    rules = []
    if features.recursion and rng.random() < features.closures:
        for _ in range(rng.choice([1, 1, 2])):
            rules += _closure(rng, relations)
    for _ in range(rng.randint(1, 7)):
        head = rng.choice(relations)
        readable = [r for r in relations if r.level < head.level or (features.recursion and r.level == head.level)]
        if readable:
            rules.append(random_rule(rng, head, readable, features))
    if rng.random() < features.unions:
        rules += _unions(rng, relations, replace(features, recursion=False))
    return RandomProgram(relations, rules, random_facts(rng, relations))


def _unions(rng: Random, relations: list[Sketch], features: Features) -> list[str]:
    """Rules that copy relations into new ones, chains and diamonds of them; some other rules read and derive these."""
    rules = []
    for _ in range(rng.randint(1, 3)):
        like = rng.choice(relations)
        union = Sketch(f"r{len(relations)}", like.types, 3 + len(relations), like.nodes)
        terms = ", ".join(VARIABLES[: len(like.types)])
        sources = [r for r in relations if r.types == like.types]
        for source in rng.sample(sources, rng.randint(1, min(len(sources), 3))):
            rules.append(f"{union.name}({terms}) :- {source.name}({terms}).")
        relations.append(union)
        if rng.random() < 0.6:
            reader = Sketch(f"r{len(relations)}", ["number"], union.level + 1)
            rules.append(random_rule(rng, reader, list(relations), features))
            relations.append(reader)
    return rules


def _closure(rng: Random, relations: list[Sketch]) -> list[str]:
    """Rules that close new relations, in one of the usual ways; other rules may read and derive them."""
    nodes, level = rng.choice([3, 5, 8]), rng.randint(0, 2)
    names = [f"r{len(relations) + i}" for i in range(3)]
    r, s, b = names
    relations += [Sketch(name, ["number", "number"], level, nodes) for name in (r, s)]
    relations.append(Sketch(b, ["number", "number"], level - rng.randint(0, 1), nodes))
    transitive = [f"{r}(x, z) :- {r}(x, y), {r}(y, z).", f"{r}(a, c) :- {r}(b, c), {r}(a, b)."]
    left = [f"{r}(x, z) :- {r}(x, y), {b}(y, z).", f"{r}(x, z) :- {b}(z, y), {r}(x, y)."]
    right = [f"{r}(x, z) :- {b}(x, y), {r}(y, z).", f"{r}(x, z) :- {r}(y, z), {b}(y, x)."]
    pair = [f"{s}(y, x) :- {r}(x, y).", f"{r}(y, x) :- {s}(x, y)."]
    same = [f"{s}(x, y) :- {r}(x, y).", f"{r}(x, y) :- {s}(x, y)."]
    kinds: list[list[str]] = [
        [rng.choice(transitive)],
        [rng.choice(transitive), f"{r}(y, x) :- {r}(x, y)."],
        [rng.choice(transitive), *pair],
        [rng.choice(transitive), *pair, f"{s}(x, z) :- {s}(x, y), {s}(y, z)."],
        [rng.choice(transitive), *same],
        [rng.choice(transitive), *pair, f"{s}(x, y) :- {s}(y, x)."],
        [rng.choice(left)],
        left,
        [rng.choice(right)],
        [rng.choice(left), rng.choice(right)],
        [rng.choice(transitive), rng.choice(left)],
    ]
    others = [[], [f"{r}(x, y) :- {b}(x, y)."], [f"{r}(x, y) :- {s}(x, y)."], [f"{s}(x, z) :- {r}(x, y), {r}(z, y)."]]
    return [*rng.choice(kinds), *rng.choice(others)]


def random_facts(rng: Random, relations: list[Sketch], most: int = 8) -> Facts:
    """Explicit facts for any relations; some have none."""
    facts: Facts = {}
    for relation in relations:
        size = rng.choice([0, rng.randint(0, most), rng.randint(0, most)])
        domain = DOMAIN | ({"number": list(range(relation.nodes))} if relation.nodes else {})
        facts[relation.name] = {tuple(rng.choice(domain[t]) for t in relation.types) for _ in range(size)}
    return facts


def random_rule(rng: Random, head: Sketch, readable: list[Sketch], features: Features) -> str:
    """A safe rule for a relation; what is negated or aggregated lies below the head."""
    body = _Body(rng)
    below = [r for r in readable if r.level < head.level]
    for _ in range(rng.choice([1, 2, 2, 3])):
        body.positive(rng.choice(readable))
    if features.builtins and rng.random() < 0.3:
        body.test()
    if features.builtins and rng.random() < 0.3:
        body.compute()
    if features.negation and below and rng.random() < 0.5:
        body.negative(rng.choice(below))
    if features.aggregates and below and rng.random() < 0.35:
        body.aggregate(rng.choice(below))
    arguments = [body.known(type_) for type_ in head.types]
    rng.shuffle(body.literals)
    return f"{head.name}({', '.join(arguments)}) :- {', '.join(body.literals)}."


def random_query(rng: Random, relations: list[Sketch], features: Features = Features()) -> tuple[str, dict[str, str]]:
    """A safe body about any relations, and its variables with their types."""
    body = _Body(rng)
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3])):
        body.positive(rng.choice(relations))
    if features.builtins and rng.random() < 0.3:
        body.test()
    if features.builtins and rng.random() < 0.3:
        body.compute()
    if features.negation and rng.random() < 0.4:
        body.negative(rng.choice(relations))
    if features.aggregates and rng.random() < 0.35:
        body.aggregate(rng.choice(relations))
    if rng.random() < 0.3:
        before = len(body.literals)
        body.test()
        body.negative(rng.choice(relations))
        body.literals[before:] = [f"({' ; '.join(body.literals[before:])})"]
    rng.shuffle(body.literals)
    return ", ".join(body.literals) or "true", body.bound


class _Body:
    """A body under construction, with the variables that it binds and their types."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.literals: list[str] = []
        self.bound: dict[str, str] = {}

    def constant(self, type_: str) -> str:
        value = self.rng.choice(DOMAIN[type_])
        return f'"{value}"' if type_ == "symbol" else str(value)

    def known(self, type_: str) -> str:
        """A bound variable of a type, or a constant."""
        names = sorted(v for v, t in self.bound.items() if t == type_)
        return self.rng.choice(names) if names and self.rng.random() < 0.9 else self.constant(type_)

    def positive(self, relation: Sketch) -> None:
        arguments = []
        for type_ in relation.types:
            names = [v for v in VARIABLES if self.bound.get(v, type_) == type_]
            chance = self.rng.random()
            if chance < 0.85 and names:
                name = self.rng.choice(names)
                self.bound[name] = type_
                arguments.append(name)
            else:
                arguments.append("_" if chance < 0.94 else self.constant(type_))
        self.literals.append(f"{relation.name}({', '.join(arguments)})")

    def negative(self, relation: Sketch) -> None:
        arguments = ["_" if self.rng.random() < 0.2 else self.known(t) for t in relation.types]
        self.literals.append(f"!{relation.name}({', '.join(arguments)})")

    def test(self) -> None:
        type_ = self.rng.choice(["number", "number", "symbol"])
        operator = self.rng.choice(["=", "!=", "<", "<=", ">", ">="])
        self.literals.append(f"{self.known(type_)} {operator} {self.known(type_)}")

    def compute(self) -> None:
        name = f"c{len(self.bound)}"
        kind = self.rng.random()
        if kind < 0.5:  # without the modulus a recursive rule could count for ever
            operator = self.rng.choice(["+", "-", "*", "/", "%"])
            self.literals.append(f"{name} = ({self.known('number')} {operator} {self.known('number')}) % 4")
            self.bound[name] = "number"
        elif kind < 0.75:  # an equation that can be solved for either side
            self.literals.append(f"{self.known('number')} = {self.known('number')} {self.rng.choice('+-')} 1")
        else:
            self.literals.append(f"{name} = substr(cat({self.known('symbol')}, {self.known('symbol')}), 0, 1)")
            self.bound[name] = "symbol"

    def aggregate(self, relation: Sketch) -> None:
        """An aggregate over a relation; arguments are keys, local variables or `_`."""
        name = f"n{len(self.bound)}"
        outer = {v: t for v, t in self.bound.items() if v in VARIABLES}
        arguments, numbers = [], []
        for i, type_ in enumerate(relation.types):
            keys = sorted(v for v, t in outer.items() if t == type_)
            chance = self.rng.random()
            if chance < 0.4 and keys:
                arguments.append(self.rng.choice(keys))
            elif chance < 0.5:
                arguments.append("_")
            else:
                arguments.append(f"i{i}")
                numbers += [f"i{i}"] if type_ == "number" else []
        body = f"{relation.name}({', '.join(arguments)})"
        if numbers and self.rng.random() < 0.4:
            limits = [*numbers, "1", *sorted(v for v, t in outer.items() if t == "number")]
            body += f", {numbers[0]} {self.rng.choice(['<=', '!='])} {self.rng.choice(limits)}"
        function = self.rng.choice(["count", "sum", "min", "max"]) if numbers else "count"
        value = f" {numbers[-1]}" if function != "count" else ""
        # The result may be a new number: the modulus keeps recursion through other relations finite.
        self.literals.append(f"{name} = ({function}{value} : {{ {body} }}) % 5")
        self.bound[name] = "number"
