"""Random programs about terms that may be the same, with facts and updates, for every test that compares them with `naive`.

Rules of level 0 say what is the same, and derive from all relations of level 0, also recursively. Those above read what is below, and may negate
and aggregate it. All of them look at names now and then, and mention constants. Programs with `triple` range over properties too, which may be
the same as others, even as owl:sameAs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from random import Random

from evermat.language.model import Program
from evermat.language.terms import RDF_TYPE, SAME_AS, quote
from tests.support import oracle
from tests.support.oracle import Facts
from tests.support.strategies import Sketch

HEADER = ".prefix owl: <http://www.w3.org/2002/07/owl#>\n.prefix e: <http://e/>\n"
TERMS = [f"<http://e/{name}>" for name in ("a", "bb", "c", "ddd", "e", "ff", "g")]
PROPERTIES = ["<http://e/R>", "<http://e/S>"]
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
LITERALS = [f'"1"^^{INTEGER}', f'"01"^^{INTEGER}', '"x"', "_:b"]
NUMBERS = [0, 1, 2]
TRIPLE = "triple"


@dataclass
class Equivalence(Sketch):
    """A relation that is an equivalence by declaration."""

    @property
    def declaration(self) -> str:
        return f"{super().declaration} eqrel"


@dataclass
class Sample:
    """A program and its facts."""

    relations: list[Sketch]
    rules: list[str]
    terms: list[str]
    given: list[str] = field(default_factory=list)  # facts in the text
    facts: Facts = field(default_factory=dict)

    @property
    def text(self) -> str:
        return HEADER + "\n".join([*(r.declaration for r in self.relations), *self.rules, *self.given])

    @property
    def program(self) -> Program:
        """The program as written."""
        return _read(self.text)

    @property
    def explicit(self) -> Facts:
        """All explicit facts, those in the text too."""
        stated = self.program.facts
        return {r.name: self.facts.get(r.name, set()) | set(stated.get(r.name, ())) for r in self.relations}

    def __repr__(self) -> str:
        return f"\n{self.text}\n{self.facts}\n"


@cache
def _read(text: str) -> Program:
    return oracle.read(text)


def random_sample(rng: Random, *, triples: bool = False, upper: bool = True, literals: bool = False) -> Sample:
    """A program with facts."""
    terms = TERMS[: rng.randint(3, 5) if triples else rng.randint(4, 7)]
    if literals:
        terms = terms[:2] + rng.sample(LITERALS, 3)
    if triples:
        relations = [Sketch(TRIPLE, ["term"] * 3, 0)]
    else:
        relations = [Sketch(SAME_AS, ["term", "term"], 0)]
        relations += [_relation(rng, f"p{i}", ["term", "term", "term", "number"], 0) for i in range(rng.randint(2, 4))]
    if rng.random() < 0.3:
        relations.append(Sketch("k", ["number"], -1))  # may be negated by rules about equality: it has no terms
    if upper:
        kinds = ["term", "term", "number", "symbol"]
        relations += [_relation(rng, f"u{i}", kinds, rng.randint(1, 2)) for i in range(rng.randint(1, 3))]
    writer = _Writer(rng, relations, terms)
    rules = [writer.equation() for _ in range(rng.choice([0, 1, 1, 2]))]
    derived = [r for r in relations if r.level >= 0 and r.name != SAME_AS]
    rules += [writer.rule(rng.choice(derived)) for _ in range(rng.randint(1, 5))]
    rules += writer.closure(rng.choice(derived)) if rng.random() < 0.25 else []
    given = [writer.fact() for _ in range(rng.choice([0, 0, 1, 2]))]
    return Sample(relations, rules, terms, given, random_facts(rng, relations, terms))


def _relation(rng: Random, name: str, kinds: list[str], level: int) -> Sketch:
    types = [rng.choice(kinds) for _ in range(rng.choice([1, 2, 2, 2, 3]))]
    if types == ["term", "term"] and rng.random() < 0.1:
        return Equivalence(name, types, level)
    is_rdf = len(types) <= 2 and set(types) == {"term"} and rng.random() < 0.3
    return Sketch(f"<http://e/{name}>" if is_rdf else name, types, level)


def random_facts(rng: Random, relations: list[Sketch], terms: list[str], most: int = 5) -> Facts:
    """Explicit facts for any relations; few that say what is the same, else soon everything would be."""
    facts: Facts = {}
    for relation in relations:
        size = rng.randint(0, 2 if relation.name == SAME_AS else most)
        facts[relation.name] = {random_row(rng, relation, terms) for _ in range(size)}
    return facts


def random_row(rng: Random, relation: Sketch, terms: list[str]) -> tuple:
    if relation.name == TRIPLE:
        things = [*terms, *terms, *PROPERTIES]
        property_ = rng.choice([*PROPERTIES, *PROPERTIES, RDF_TYPE, SAME_AS, rng.choice(terms)])
        value = SAME_AS if rng.random() < 0.02 else rng.choice(things)
        return (rng.choice(things), property_, value)
    domain = {"term": terms, "number": NUMBERS, "symbol": [*terms, ""]}
    return tuple(rng.choice(domain[type_]) for type_ in relation.types)


def random_update(rng: Random, sample: Sample, explicit: Facts, facts: Facts) -> tuple[Facts, Facts]:
    """Facts to delete and to insert; some are no explicit facts, though they follow, and some are in both."""
    delete = {}
    for name, rows in explicit.items():
        delete[name] = set(rng.sample(sorted(rows), min(len(rows), rng.choice([0, 0, 1, 1, 2, 3]))))
        if rng.random() < 0.2:
            delete[name] |= set(rng.sample(sorted(facts[name]), min(len(facts[name]), 2)))
    insert: Facts = {r.name: set() for r in sample.relations}
    for relation in rng.choices(sample.relations, k=rng.choice([0, 1, 1, 2, 4])):
        insert[relation.name].add(random_row(rng, relation, sample.terms))
    return delete, insert


def applied(explicit: Facts, delete: Facts, insert: Facts) -> Facts:
    """The explicit facts after an update."""
    return {name: (rows - delete.get(name, set())) | insert.get(name, set()) for name, rows in explicit.items()}


def random_query(rng: Random, sample: Sample) -> str:
    """A safe body about any relations."""
    body = _Body(rng, sample.terms)
    for _ in range(rng.choice([1, 1, 2])):
        body.positive(rng.choice(sample.relations))
    body.decorate(sample.relations, often=0.3)
    return body.text


class _Writer:
    """Writes facts and rules about some relations."""

    def __init__(self, rng: Random, relations: list[Sketch], terms: list[str]) -> None:
        self._rng, self._relations, self._terms = rng, relations, terms
        self._lowest = [r for r in relations if r.level == 0]

    def fact(self) -> str:
        rng = self._rng
        named = [t for t in self._terms if t.startswith("<")]
        if rng.random() < 0.4:
            return f"{rng.choice(named)} = {rng.choice(named)}."
        relation = rng.choice(self._relations)
        row = random_row(rng, relation, self._terms)
        shown = [quote(v) if type_ == "symbol" else str(v) for v, type_ in zip(row, relation.types, strict=True)]
        return f"{relation.name}({', '.join(shown)})."

    def equation(self) -> str:
        """A rule that says what is the same: a functional property, or anything else."""
        rng, body = self._rng, _Body(self._rng, self._terms)
        functional = [r for r in self._lowest if r.types.count("term") >= 2 and r.name != SAME_AS]
        if functional and rng.random() < 0.6:
            body.functional(rng.choice(functional))
            sides = ["y", "z"]
        else:
            for _ in range(rng.choice([1, 2, 2])):
                body.positive(rng.choice(self._lowest))
            sides = [body.known("term"), body.known("term")]
        body.decorate([r for r in self._relations if r.level < 0], often=0.15)
        if all(side[0] not in '"_' for side in sides) and rng.random() < 0.7:
            return f"{sides[0]} = {sides[1]} :- {body.text}."
        head = "triple({}, owl:sameAs, {})" if self._relations[0].name == TRIPLE else "owl:sameAs({}, {})"
        return f"{head.format(*sides)} :- {body.text}."

    def rule(self, head: Sketch) -> str:
        rng, body = self._rng, _Body(self._rng, self._terms)
        readable = [r for r in self._relations if r.level <= head.level]
        for _ in range(rng.choice([1, 1, 2, 2, 3])):
            body.positive(rng.choice(readable))
        body.decorate([r for r in readable if r.level < head.level], often=0.25)
        arguments = [body.known(type_) for type_ in head.types]
        if head.name == TRIPLE and rng.random() < 0.7:
            arguments[1] = rng.choice([*PROPERTIES, RDF_TYPE])
        return f"{head.name}({', '.join(arguments)}) :- {body.text}."

    def closure(self, head: Sketch) -> list[str]:
        """Rules that close a relation, in one of the usual ways, if it has pairs of terms."""
        atom = {TRIPLE: f"triple({{}}, {PROPERTIES[0]}, {{}})"}.get(head.name, f"{head.name}({{}}, {{}})")
        if head.name != TRIPLE and head.types != ["term", "term"]:
            return []
        steps = [r.name for r in self._relations if r.types == ["term", "term"] and r.level <= head.level]
        step = f"{self._rng.choice(steps)}({{}}, {{}})" if steps else f"triple({{}}, {PROPERTIES[1]}, {{}})"
        transitive = f"{atom.format('x', 'z')} :- {atom.format('x', 'y')}, {atom.format('y', 'z')}."
        linear = f"{atom.format('x', 'z')} :- {atom.format('x', 'y')}, {step.format('y', 'z')}."
        symmetric = f"{atom.format('y', 'x')} :- {atom.format('x', 'y')}."
        return self._rng.choice([[transitive], [linear], [transitive, symmetric], [transitive, linear]])


class _Body:
    """A body under construction, with the variables that it binds and their types."""

    def __init__(self, rng: Random, terms: list[str]) -> None:
        self._rng, self._terms = rng, terms
        self._literals: list[str] = []
        self.bound: dict[str, str] = {}

    @property
    def text(self) -> str:
        self._rng.shuffle(self._literals)
        return ", ".join(self._literals)

    def constant(self, type_: str) -> str:
        if type_ == "symbol":
            return quote(self._rng.choice([*self._terms, ""]))
        return str(self._rng.choice(self._terms if type_ == "term" else NUMBERS))

    def known(self, type_: str) -> str:
        """A bound variable of a type, or a constant."""
        names = sorted(v for v, t in self.bound.items() if t == type_)
        return self._rng.choice(names) if names and self._rng.random() < 0.9 else self.constant(type_)

    def positive(self, relation: Sketch) -> None:
        arguments: list[str] = []
        for type_ in relation.types:
            names = [v for v in "xyzw" if self.bound.get(v, type_) == type_]
            chance = self._rng.random()
            if relation.name == TRIPLE and len(arguments) == 1 and self._rng.random() < 0.6:
                arguments.append(self._rng.choice([*PROPERTIES, *PROPERTIES, RDF_TYPE, SAME_AS]))
            elif chance < 0.8 and names:
                name = self._rng.choice(names)
                self.bound[name] = type_
                arguments.append(name)
            else:
                arguments.append("_" if chance < 0.9 else self.constant(type_))
        self._literals.append(f"{relation.name}({', '.join(arguments)})")

    def functional(self, relation: Sketch) -> None:
        """Two atoms with x in the same column, and y and z in another."""
        keys = self._rng.sample([i for i, type_ in enumerate(relation.types) if type_ == "term"], 2)
        for variable in "yz":
            arguments = ["_"] * len(relation.types)
            arguments[keys[0]], arguments[keys[1]] = "x", variable
            if relation.name == TRIPLE and "_" in arguments and self._rng.random() < 0.8:
                arguments[arguments.index("_")] = PROPERTIES[0]
            self._literals.append(f"{relation.name}({', '.join(arguments)})")
        if self._rng.random() < 0.5:
            self._literals.append("y != z")
        self.bound |= dict.fromkeys("xyz", "term")

    def decorate(self, below: list[Sketch], often: float) -> None:
        """Tests and computations, and what may be said only about relations below."""
        if self._rng.random() < often:
            self.compute()
        while self._rng.random() < often:
            self.test()
        if below and self._rng.random() < 2 * often:
            self.negative(self._rng.choice(below))
        if below and self._rng.random() < 2 * often:
            self.aggregate(self._rng.choice(below))

    def test(self) -> None:
        self._literals.append(self._test(self.known("term"), self.known("term"), self.known("number")))

    def _test(self, x: str, y: str, n: str) -> str:
        tests = [f"{x} != {y}", f"{x} = {y}", f'match(".*[ac]>", {x})', f'contains("d", {x})', f"{n} <= 1"]
        return self._rng.choice([*tests, f"strlen(to_string({x})) != strlen(to_string({y}))"])

    def compute(self) -> None:
        """Something that depends on a name; lengths are taken modulo 3, so that every fixpoint is finite."""
        name = f"v{len(self.bound)}"
        if self._rng.random() < 0.5:
            self._literals.append(f"{name} = strlen(to_string({self.known('term')})) % 3")
            self.bound[name] = "number"
        else:
            self._literals.append(f"{name} = to_string({self.known('term')})")
            self.bound[name] = "symbol"

    def negative(self, relation: Sketch) -> None:
        arguments = ["_" if self._rng.random() < 0.2 else self.known(type_) for type_ in relation.types]
        self._literals.append(f"!{relation.name}({', '.join(arguments)})")

    def aggregate(self, relation: Sketch) -> None:
        """An aggregate over a relation; arguments are keys, local variables, constants or `_`."""
        name = f"n{len(self.bound)}"
        arguments: list[str] = []
        local: dict[str, list[str]] = {"term": [], "number": [], "symbol": []}
        for i, type_ in enumerate(relation.types):
            keys = sorted(v for v, t in self.bound.items() if t == type_ and v in "xyzw")
            chance = self._rng.random()
            if chance < 0.4 and keys:
                arguments.append(self._rng.choice(keys))
            elif chance < 0.55:
                arguments.append("_")
            elif chance < 0.6:
                arguments.append(self.constant(type_))
            else:
                arguments.append(f"i{i}")
                local[type_].append(f"i{i}")
        inner = f"{relation.name}({', '.join(arguments)})"
        while local["term"] and self._rng.random() < 0.3:
            # Names of what it groups by may not be looked at.
            sides = self._rng.choice(local["term"]), self._rng.choice([*local["term"], *self._terms[:2]])
            inner += ", " + self._test(*sides, n=self._rng.choice([*local["number"], "1"]))
        numbers = [*local["number"], *(f"strlen(to_string({v}))" for v in local["term"])]
        if local["term"] and self._rng.random() < 0.2:
            function = f"{self._rng.choice(['min', 'max'])} to_string({self._rng.choice(local['term'])})"
            self.bound[name] = "symbol"
        else:
            function = self._rng.choice(["count", "sum", "min", "max"]) if numbers else "count"
            function += f" {self._rng.choice(numbers)}" if function != "count" else ""
            self.bound[name] = "number"
        self._literals.append(f"{name} = {function} : {{ {inner} }}")
