"""Rules translated from random ontologies derive what the rules of OWL 2 RL/RDF derive from their triples.

The reference is a naive evaluator of the rules in the OWL 2 Profiles specification (tables 4 to 9, those that random ontologies
can need), in plain Python. Compared are the classes, property values and equalities of named individuals, and whether there is a
contradiction.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat.language.terms import RDF_TYPE as TYPE
from evermat.owl.translation import translate
from tests.owl.graphs import parse

EX, OWL, RDFS = "http://example.org/t#", "http://www.w3.org/2002/07/owl#", "http://www.w3.org/2000/01/rdf-schema#"
PREFIXES = f"@prefix : <{EX}> . @prefix owl: <{OWL}> . @prefix rdfs: <{RDFS}> .\n"
FALSE = ("false", "false", "false")
Triple = tuple[str, ...]


def owl(name: str) -> str:
    return f"<{OWL}{name}>"


def rdfs(name: str) -> str:
    return f"<{RDFS}{name}>"


SAME, THING = owl("sameAs"), owl("Thing")
OWN_PROPERTIES = [f"<{EX}{name}>" for name in "pqr"]


# --- the reference -------------------------------------------------------------------------------------------


class Graph:
    def __init__(self, triples: set[Triple]) -> None:
        self.triples = triples
        self.by_property: dict[str, set[tuple[str, str]]] = {}
        self.by_subject: dict[tuple[str, str], set[str]] = {}
        for s, p, o in triples:
            self.by_property.setdefault(p, set()).add((s, o))
            self.by_subject.setdefault((s, p), set()).add(o)

    def pairs(self, p: str) -> set[tuple[str, str]]:
        return self.by_property.get(p, set())

    def values(self, s: str, p: str) -> set[str]:
        return self.by_subject.get((s, p), set())

    def members(self, c: str) -> set[str]:
        return {s for s, o in self.pairs(TYPE) if o == c}

    def typed(self, name: str) -> set[str]:
        return self.members(owl(name))

    def list(self, head: str) -> list[str]:
        found = []
        while not head.endswith("#nil>"):
            found += self.values(head, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#first>")
            (head,) = self.values(head, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#rest>")
        return found

    def restrictions(self, key: str) -> Iterator[tuple[str, str, str]]:
        for c, value in self.pairs(owl(key)):
            for p in self.values(c, owl("onProperty")):
                yield c, p, value


def consequences(g: Graph) -> Iterator[Triple]:
    """One step of all rules."""
    for x, y in g.pairs(SAME):
        yield (y, SAME, x)
        for p in (TYPE, SAME, owl("differentFrom"), *OWN_PROPERTIES):  # in axioms it would change nothing
            yield from ((y, p, o) for s, o in g.pairs(p) if s == x)
            yield from ((s, p, y) for s, o in g.pairs(p) if o == x)
    yield from (FALSE for x, y in g.pairs(owl("differentFrom")) if x == y or (x, y) in g.pairs(SAME))
    for node in g.typed("AllDifferent"):
        for head in g.values(node, owl("members")):
            for x, y in combinations(g.list(head), 2):
                if x == y or (x, y) in g.pairs(SAME):
                    yield FALSE
    for p, c in g.pairs(rdfs("domain")):
        yield from ((x, TYPE, c) for x, _ in g.pairs(p))
    for p, c in g.pairs(rdfs("range")):
        yield from ((y, TYPE, c) for _, y in g.pairs(p))
    for p in g.typed("FunctionalProperty"):
        yield from ((y, SAME, z) for x, y in g.pairs(p) for u, z in g.pairs(p) if x == u)
    for p in g.typed("InverseFunctionalProperty"):
        yield from ((x, SAME, u) for x, y in g.pairs(p) for u, z in g.pairs(p) if y == z)
    for p in g.typed("SymmetricProperty"):
        yield from ((y, p, x) for x, y in g.pairs(p))
    for p in g.typed("TransitiveProperty"):
        yield from ((x, p, z) for x, y in g.pairs(p) for u, z in g.pairs(p) if y == u)
    for p in g.typed("IrreflexiveProperty"):
        yield from (FALSE for x, y in g.pairs(p) if x == y)
    for p in g.typed("AsymmetricProperty"):
        yield from (FALSE for x, y in g.pairs(p) if (y, x) in g.pairs(p))
    for p, q in g.pairs(rdfs("subPropertyOf")):
        yield from ((x, q, y) for x, y in g.pairs(p))
    for p, q in g.pairs(owl("equivalentProperty")):
        yield from ((p, rdfs("subPropertyOf"), q), (q, rdfs("subPropertyOf"), p))
    for p, q in g.pairs(owl("inverseOf")):
        yield from ((y, q, x) for x, y in g.pairs(p))
        yield from ((y, p, x) for x, y in g.pairs(q))
    for p, q in g.pairs(owl("propertyDisjointWith")):
        yield from (FALSE for pair in g.pairs(p) if pair in g.pairs(q))
    for p, head in g.pairs(owl("propertyChainAxiom")):
        first, *rest = [g.pairs(q) for q in g.list(head)]
        for more in rest:
            first = {(x, z) for x, y in first for u, z in more if y == u}
        yield from ((x, p, y) for x, y in first)
    for c, head in g.pairs(owl("hasKey")):
        keys = g.list(head)
        for x in g.members(c):
            for y in g.members(c):
                if all(g.values(x, p) & g.values(y, p) for p in keys):
                    yield (x, SAME, y)
    for node in g.typed("NegativePropertyAssertion"):
        (s,), (p,) = g.values(node, owl("sourceIndividual")), g.values(node, owl("assertionProperty"))
        yield from (FALSE for o in g.values(node, owl("targetIndividual")) if (s, o) in g.pairs(p))
    yield from (FALSE for _ in g.members(owl("Nothing")))
    for c, head in g.pairs(owl("intersectionOf")):
        parts = g.list(head)
        yield from ((x, TYPE, part) for x in g.members(c) for part in parts)
        common = [everything(g) if part == THING else g.members(part) for part in parts]
        yield from ((x, TYPE, c) for x in set.intersection(*common))
    for c, head in g.pairs(owl("unionOf")):
        yield from ((x, TYPE, c) for part in g.list(head) for x in g.members(part))
    for c, head in g.pairs(owl("oneOf")):
        yield from ((x, TYPE, c) for x in g.list(head))
    for c, d in g.pairs(owl("complementOf")):
        yield from (FALSE for _ in g.members(c) & g.members(d))
    for c, p, d in g.restrictions("someValuesFrom"):
        yield from ((x, TYPE, c) for x, y in g.pairs(p) if d == THING or y in g.members(d))
        for other, q, e in g.restrictions("someValuesFrom"):  # scm-svf1 and scm-svf2
            sub = p == q or q in closure_of(g, rdfs("subPropertyOf"), p)
            if sub and (d == e or e in closure_of(g, rdfs("subClassOf"), d)):
                yield (c, rdfs("subClassOf"), other)
    for c, p, d in g.restrictions("allValuesFrom"):
        yield from ((y, TYPE, d) for x, y in g.pairs(p) if x in g.members(c))
    for c, p, v in g.restrictions("hasValue"):
        yield from ((x, p, v) for x in g.members(c))
        yield from ((x, TYPE, c) for x, y in g.pairs(p) if y == v)
    for c, p, _ in g.restrictions("hasSelf"):  # not a part of OWL 2 RL
        yield from ((x, p, x) for x in g.members(c))
        yield from ((x, TYPE, c) for x, y in g.pairs(p) if x == y)
    for key in ("maxCardinality", "maxQualifiedCardinality"):
        for c, p, n in g.restrictions(key):
            (d,) = g.values(c, owl("onClass")) or {THING}
            counted = [(x, y) for x, y in g.pairs(p) if x in g.members(c) and (d == THING or y in g.members(d))]
            if n.startswith('"0"'):
                yield from (FALSE for _ in counted)
            else:
                yield from ((y, SAME, z) for x, y in counted for u, z in counted if x == u)
    for c, d in g.pairs(rdfs("subClassOf")):
        yield from ((x, TYPE, d) for x in g.members(c))
    for c, d in g.pairs(owl("equivalentClass")):
        yield from ((c, rdfs("subClassOf"), d), (d, rdfs("subClassOf"), c))
    for c, d in g.pairs(owl("disjointWith")):
        yield from (FALSE for _ in g.members(c) & g.members(d))


def everything(g: Graph) -> set[str]:
    return {s for s, _, _ in g.triples}


def closure_of(g: Graph, relation: str, start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = g.values(waiting.pop(), relation) - found
        found |= new
        waiting += new
    return found


def closure(triples: set[Triple]) -> set[Triple]:
    while True:
        new = set(consequences(Graph(triples))) - triples
        if not new:
            return triples
        triples = triples | new


# --- random ontologies ---------------------------------------------------------------------------------------

CLASSES, PROPERTIES, INDIVIDUALS = [":A", ":B", ":C", ":D"], [":p", ":q", ":r"], [":a", ":b", ":c"]
names, properties, individuals = map(st.sampled_from, (CLASSES, PROPERTIES, INDIVIDUALS))
roles = properties | properties.map("[ owl:inverseOf {} ]".format)


def blank(*parts: str) -> str:
    return f"[ {' ; '.join(parts)} ]"


def restriction(property_: str, *parts: str) -> str:
    return blank(f"owl:onProperty {property_}", *parts)


def lists(of: st.SearchStrategy[str], least: int = 2) -> st.SearchStrategy[str]:
    return st.lists(of, min_size=least, max_size=3).map(lambda parts: f"( {' '.join(parts)} )")


def subclasses(depth: int = 2) -> st.SearchStrategy[str]:
    if depth == 0:
        return names
    inner = subclasses(depth - 1)
    return st.one_of(
        names,
        lists(inner).map(lambda parts: blank(f"owl:intersectionOf {parts}")),
        lists(inner).map(lambda parts: blank(f"owl:unionOf {parts}")),
        lists(individuals, 1).map(lambda parts: blank(f"owl:oneOf {parts}")),
        st.builds(lambda p, c: restriction(p, f"owl:someValuesFrom {c}"), roles, inner | st.just("owl:Thing")),
        st.builds(lambda p, x: restriction(p, f"owl:hasValue {x}"), roles, individuals),
    )


def superclasses(depth: int = 2) -> st.SearchStrategy[str]:
    if depth == 0:
        return names
    inner = superclasses(depth - 1)
    return st.one_of(
        names,
        names,
        lists(inner).map(lambda parts: blank(f"owl:intersectionOf {parts}")),
        st.builds(lambda p, c: restriction(p, f"owl:allValuesFrom {c}"), roles, inner),
        st.builds(lambda p, x: restriction(p, f"owl:hasValue {x}"), roles, individuals),
        st.builds(lambda c: blank(f"owl:complementOf {c}"), subclasses(1)),
        st.builds(lambda p, n: restriction(p, f"owl:maxCardinality {n}"), roles, st.integers(0, 1)),
        st.builds(
            lambda p, n, c: restriction(p, f"owl:maxQualifiedCardinality {n}", f"owl:onClass {c}"),
            roles,
            st.integers(0, 1),
            subclasses(1),
        ),
    )


CHARACTERISTICS = ["Functional", "InverseFunctional", "Symmetric", "Transitive", "Irreflexive", "Asymmetric"]
AXIOMS = st.one_of(
    st.builds("{} rdfs:subClassOf {} .".format, subclasses(), superclasses()),
    st.builds("{} rdfs:subClassOf {} .".format, names, names),
    st.builds(
        "{} owl:equivalentClass {} .".format, names, lists(names).map(lambda c: blank(f"owl:intersectionOf {c}"))
    ),
    st.builds("{} owl:disjointWith {} .".format, subclasses(1), subclasses(1)),
    st.builds("{} rdfs:domain {} .".format, properties, superclasses(1)),
    st.builds("{} rdfs:range {} .".format, properties, superclasses(1)),
    st.builds("{} rdfs:subPropertyOf {} .".format, roles, roles),
    st.builds("{} owl:equivalentProperty {} .".format, roles, roles),
    st.builds("{} rdfs:subClassOf {} .".format, properties.map(lambda p: restriction(p, "owl:hasSelf true")), names),
    st.builds("{} rdfs:subClassOf {} .".format, names, properties.map(lambda p: restriction(p, "owl:hasSelf true"))),
    st.builds("{} owl:inverseOf {} .".format, properties, properties),
    st.builds("{} owl:propertyDisjointWith {} .".format, properties, properties),
    st.builds("{} owl:propertyChainAxiom {} .".format, properties, lists(roles)),
    st.builds("{} a owl:{}Property .".format, properties, st.sampled_from(CHARACTERISTICS)),
    st.builds("{} owl:hasKey {} .".format, subclasses(1), lists(roles, 1)),
    st.builds(
        "[] a owl:NegativePropertyAssertion ; owl:sourceIndividual {} ; owl:assertionProperty {} ; owl:targetIndividual {} .".format,
        individuals,
        properties,
        individuals,
    ),
    lists(individuals).map("[] a owl:AllDifferent ; owl:members {} .".format),
    st.builds("{} owl:differentFrom {} .".format, individuals, individuals),
    st.builds("{} a {} .".format, individuals, superclasses(1)),
)
FACTS = st.one_of(
    st.builds("{} a {} .".format, individuals, names),
    st.builds("{} {} {} .".format, individuals, properties, individuals),
    st.builds("{} {} {} .".format, individuals, properties, individuals),
    st.builds("{} owl:sameAs {} .".format, individuals, individuals),
)
# What rules cannot say, but what the reference hands on by way of the nodes that describe classes.
BEYOND = st.one_of(
    st.builds(
        lambda c, p, d: f"{c} rdfs:subClassOf {restriction(p, f'owl:someValuesFrom {d}')} .",
        names,
        properties,
        names | st.just("owl:Thing"),
    ),
    st.builds(lambda x, p, d: f"{x} a {restriction(p, f'owl:someValuesFrom {d}')} .", individuals, properties, names),
    st.builds(
        lambda c, d, p, e: "{} owl:equivalentClass [ owl:intersectionOf ( {} {} ) ] .".format(
            c, d, restriction(p, f"owl:someValuesFrom {e}")
        ),
        names,
        names,
        properties,
        names,
    ),
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ontologies") / "random.ttl"


def derived(file: Path) -> tuple[set[Triple], bool]:
    """What the translation derives, and whether it finds a contradiction."""
    translation = translate([file])
    program = evermat.Program.parse(translation.text(forbid=False, declare=True))
    arities = {name: relation.arity for name, relation in program.compiled.relations.items()}
    facts: dict[str, list[Triple]] = {}
    for s, p, o in zip(*(translation.triples.column(name).to_pylist() for name in "spo"), strict=True):
        if p == TYPE and arities.get(o) == 1:
            facts.setdefault(o, []).append((s,))
        elif arities.get(p) == 2:
            facts.setdefault(p, []).append((s, o))
        else:
            facts.setdefault("other_triple", []).append((s, p, o))
    m = program.materialise(facts)
    found: set[Triple] = set()
    for name in m:
        if name == "other_triple":
            found.update(m[name])
        elif name.startswith("<"):
            found.update((row[0], TYPE, name) if len(row) == 1 else (row[0], name, row[1]) for row in m[name])
    return found, "inconsistent" in arities and len(m["inconsistent"]) > 0


def shown(triples: set[Triple]) -> set[Triple]:
    """What is compared: facts about named individuals; that x is x is not."""
    own = {f"<{EX}{name[1:]}>" for name in INDIVIDUALS}
    kinds = {f"<{EX}{name[1:]}>" for name in (*CLASSES, *PROPERTIES)} | {SAME}
    return {
        (s, p, o)
        for s, p, o in triples
        if s in own and ((p == TYPE and o in kinds) or (p in kinds and o in own and (p, s) != (SAME, o)))
    }


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(AXIOMS, min_size=1, max_size=7), st.lists(FACTS, min_size=2, max_size=8))
def test_ontologies_in_owl_2_rl_derive_what_the_rules_of_rl_derive(
    file: Path, axioms: list[str], facts: list[str]
) -> None:
    text = PREFIXES + "\n".join([*axioms, *facts])
    file.write_text(text, encoding="utf-8")
    reference = closure(set(parse(text)))
    found, contradiction = derived(file)
    assert contradiction == (FALSE in reference)
    if not contradiction:
        assert shown(found) == shown(reference)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(AXIOMS, max_size=4), st.lists(BEYOND, min_size=1, max_size=4), st.lists(FACTS, min_size=2, max_size=6))
def test_what_exists_without_a_name_is_handed_on(
    file: Path, axioms: list[str], beyond: list[str], facts: list[str]
) -> None:
    text = PREFIXES + "\n".join([*axioms, *beyond, *facts])
    file.write_text(text, encoding="utf-8")
    reference = closure(set(parse(text)))
    found, contradiction = derived(file)
    assert contradiction or FALSE not in reference
    if not contradiction:
        assert shown(reference) <= shown(found)
