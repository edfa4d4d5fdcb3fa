"""The rule sets of RDFS and OWL 2 RL: each rule by a small graph, and central ones against a naive evaluator on random graphs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat.language.builtins import full_match
from evermat.owl.rulesets.datatypes import SPELLINGS
from evermat.owl.rulesets.regimes import REGIMES, Regime, entailment, schema_rules
from evermat.owl.vocabulary import OWL, RDF, RDFS, XSD, owl, rdf, rdfs, xsd
from tests.owl.graphs import Triple, closure, parse
from tests.owl.naive import NAMES, naive

EX = "http://example.org/"
PREFIXES = "".join(
    f"@prefix {prefix}: <{iri}> .\n"
    for prefix, iri in {"": EX, "rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD}.items()
)


def graph(text: str) -> list[Triple]:
    return parse(PREFIXES + text)


def check(regime: Regime, premise: str, conclusion: str, *, trivial: bool = False) -> None:
    """The conclusion follows; what stands after a `!` does not, and what begins with a `*` names a rule that finds a contradiction."""
    rules = set(re.findall(r"\*([\w-]+)", conclusion))
    positive, _, negative = re.sub(r"\*[\w-]+", "", conclusion).partition("!")
    with closure(regime, graph(premise), trivial=trivial) as closed:
        found = closed.triples
        assert {rule.partition(",")[0] for rule in closed.inconsistent} == rules
        assert set(graph(positive)) <= found
        assert not set(graph(negative)) & found


# --- texts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trivial", [False, True])
@pytest.mark.parametrize("regime", REGIMES)
def test_texts_are_programs_whose_helpers_keep_out_of_the_way(regime: Regime, trivial: bool) -> None:
    program = evermat.Program.parse(entailment(regime, trivial=trivial))
    assert not program.warnings
    assert {name for name in program.relations if not name.startswith("rl_")} == {"triple", "inconsistent"}


def test_rules_of_the_schema_need_no_triples() -> None:
    program = evermat.Program.parse(schema_rules())
    assert not program.warnings
    assert "triple" not in program.relations
    assert all(name.startswith(("<", "rl_")) for name in program.relations)
    a, b, c, p, cell = "<x:a>", "<x:b>", "<x:c>", "<x:p>", "_:cell"
    m = program.materialise(
        {
            rdfs("subClassOf"): [(a, b)],
            rdfs("domain"): [(p, a)],
            owl("unionOf"): [(a, cell)],
            rdf("first"): [(cell, c), ("_:other", "<x:d>")],
        }
    )
    assert set(m[rdfs("subClassOf")]) == {(a, b), (c, a), (c, b)}
    assert set(m[rdfs("domain")]) == {(p, a), (p, b)}


def test_contradictions_are_errors_unless_they_are_allowed() -> None:
    premise = graph(":a a owl:Nothing .")
    allowed = evermat.Program.parse(entailment("owl2rl", forbid=False)).materialise({"triple": premise})
    assert len(allowed["inconsistent"]) == 1
    with pytest.raises(evermat.DataError, match="cls-nothing2") as caught:
        evermat.Program.parse(entailment("owl2rl")).materialise({"triple": premise})
    assert f"from `triple({', '.join(premise[0])})`" in str(caught.value)


# --- RDFS, rule by rule ------------------------------------------------------------------------------------

RDFS_CASES = {
    "rdfs2": (":p rdfs:domain :c . :x :p :y .", ":x a :c . ! :y a :c ."),
    "rdfs3": (":p rdfs:range :c . :x :p :y .", ":y a :c . ! :x a :c ."),
    "rdfs5": (
        ":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :r .",
        ":p rdfs:subPropertyOf :r . ! :p rdfs:subPropertyOf :p .",
    ),
    "rdfs7": (":p rdfs:subPropertyOf :q . :x :p :y .", ":x :q :y . ! :p a rdf:Property ."),
    "rdfs9": (":c rdfs:subClassOf :d . :x a :c .", ":x a :d . ! :x a rdfs:Resource ."),
    "rdfs11": (":c rdfs:subClassOf :d . :d rdfs:subClassOf :e .", ":c rdfs:subClassOf :e . ! :c rdfs:subClassOf :c ."),
    "rdfs12": (
        ":p a rdfs:ContainerMembershipProperty . :x :p :y .",
        ":p rdfs:subPropertyOf rdfs:member . :x rdfs:member :y .",
    ),
    "rdfs13": (":d a rdfs:Datatype .", ":d rdfs:subClassOf rdfs:Literal ."),
    "members": (":x rdf:_1 :y ; rdf:_12 :z ; rdf:_01 :u .", ":x rdfs:member :y, :z . ! :x rdfs:member :u ."),
    "blank properties": (":p rdfs:subPropertyOf [ rdfs:range :c ] . :x :p :y .", ":y a :c ."),
    "the schema of the schema": (
        ":narrower rdfs:subPropertyOf rdfs:subClassOf . :c :narrower :d . :x a :c .",
        ":x a :d .",
    ),
    "a wrong datatype is nothing to RDFS": (':p rdfs:range xsd:integer . :x :p "a" .', ""),
}


@pytest.mark.parametrize("case", RDFS_CASES)
def test_rdfs(case: str) -> None:
    check("rdfs", *RDFS_CASES[case])


# --- OWL 2 RL, rule by rule --------------------------------------------------------------------------------

LISTED = "[ a owl:AllDifferent ; owl:members (:x :y :z) ] ."
OWL_CASES = {
    # equality
    "eq-sym, eq-trans": (":x owl:sameAs :y . :y owl:sameAs :z .", ":z owl:sameAs :x ."),
    "eq-rep": (":x owl:sameAs :y . :x :p :z . :u :x :v .", ":y :p :z . :u :y :v ."),
    "eq-rep-o": (":x owl:sameAs :y . :z :p :x .", ":z :p :y . ! :z owl:sameAs :z ."),
    "eq-diff1": (":x owl:sameAs :y . :y owl:differentFrom :x .", "*eq-diff1"),
    "eq-diff1, itself": (":x owl:differentFrom :x .", "*eq-diff1"),
    "eq-diff2": (f":x owl:sameAs :z . {LISTED}", "*eq-diff2"),
    "eq-diff2, twice": ("[ a owl:AllDifferent ; owl:members (:x :y :x) ] .", "*eq-diff2"),
    "eq-diff2, others": (f":x owl:sameAs :u . {LISTED}", ":u owl:sameAs :x ."),
    "eq-diff3": (":x owl:sameAs :z . [ a owl:AllDifferent ; owl:distinctMembers (:x :y :z) ] .", "*eq-diff2"),
    # properties
    "prp-dom, prp-rng": (":p rdfs:domain :c ; rdfs:range :d . :x :p :y .", ":x a :c . :y a :d . ! :x a :d ."),
    "prp-fp": (":p a owl:FunctionalProperty . :x :p :y, :z . :u :p :v .", ":y owl:sameAs :z . ! :v owl:sameAs :v ."),
    "prp-ifp": (
        ":p a owl:InverseFunctionalProperty . :x :p :z . :y :p :z .",
        ":x owl:sameAs :y . ! :z owl:sameAs :z .",
    ),
    "prp-irp": (":p a owl:IrreflexiveProperty . :x :p :x .", "*prp-irp"),
    "prp-symp": (":p a owl:SymmetricProperty . :x :p :y .", ":y :p :x . ! :x :p :x ."),
    "prp-asyp": (":p a owl:AsymmetricProperty . :x :p :y . :y :p :x .", "*prp-asyp"),
    "prp-trp": (":p a owl:TransitiveProperty . :x :p :y . :y :p :z . :z :p :u .", ":x :p :u . ! :u :p :x ."),
    "prp-spo1": (":p rdfs:subPropertyOf :q . :x :p :y .", ":x :q :y ."),
    "prp-spo2, 1": (":p owl:propertyChainAxiom (:q) . :x :q :y .", ":x :p :y ."),
    "prp-spo2, 2": (":p owl:propertyChainAxiom (:q :r) . :x :q :y . :y :r :z .", ":x :p :z . ! :x :p :y ."),
    "prp-spo2, 3": (
        ":p owl:propertyChainAxiom (:q :r :q) . :x :q :y . :y :r :z . :z :q :u .",
        ":x :p :u . ! :x :p :z .",
    ),
    "prp-spo2, 5": (
        ":p owl:propertyChainAxiom (:a :b :c :d :e) . :1 :a :2 . :2 :b :3 . :3 :c :4 . :4 :d :5 . :5 :e :6 .",
        ":1 :p :6 . ! :1 :p :5 . :2 :p :6 .",
    ),
    "prp-eqp": (":p owl:equivalentProperty :q . :x :p :y . :y :q :x .", ":x :q :y . :y :p :x ."),
    "prp-pdw": (":p owl:propertyDisjointWith :q . :x :p :y ; :q :y .", "*prp-pdw"),
    "prp-adp": ("[ a owl:AllDisjointProperties ; owl:members (:p :q :r) ] . :x :p :y ; :r :y .", "*prp-adp"),
    "prp-adp, others": ("[ a owl:AllDisjointProperties ; owl:members (:p :q) ] . :x :p :y ; :q :z ; :r :y .", ""),
    "prp-inv": (":p owl:inverseOf :q . :x :p :y . :z :q :u .", ":y :q :x . :u :p :z ."),
    "prp-key, 1": (
        ":c owl:hasKey (:p) . :x a :c ; :p 1 . :y a :c ; :p 1 . :z :p 1 .",
        ":x owl:sameAs :y . ! :x owl:sameAs :z .",
    ),
    "prp-key, 2": (
        ":c owl:hasKey (:p :q) . :x a :c ; :p 1 ; :q 2 . :y a :c ; :p 1 ; :q 2 . :z a :c ; :p 1 ; :q 3 .",
        ":x owl:sameAs :y . ! :x owl:sameAs :z .",
    ),
    "prp-key, 3": (
        ":c owl:hasKey (:p :q :r) . :x a :c ; :p 1 ; :q 2 ; :r 3 . :y a :c ; :p 1 ; :q 2 ; :r 3 . "
        ":z a :c ; :p 4 ; :q 2 ; :r 3 . :u :p 1 ; :q 2 ; :r 3 .",
        ":x owl:sameAs :y . ! :x owl:sameAs :z . :x owl:sameAs :u .",
    ),
    "prp-key, 4": (
        ":c owl:hasKey (:p :q :r :s) . :x a :c ; :p 1 ; :q 2 ; :r 3 ; :s 4 . :y a :c ; :p 1 ; :q 2 ; :r 3 ; :s 4 . "
        ":z a :c ; :p 1 ; :q 5 ; :r 3 ; :s 4 .",
        ":x owl:sameAs :y . ! :x owl:sameAs :z .",
    ),
    "prp-npa1": (
        "[ owl:sourceIndividual :x ; owl:assertionProperty :p ; owl:targetIndividual :y ] . :x :p :y .",
        "*prp-npa1",
    ),
    "prp-npa2": ("[ owl:sourceIndividual :x ; owl:assertionProperty :p ; owl:targetValue 5 ] . :x :p 5 .", "*prp-npa2"),
    # classes
    "cls-nothing2": (":x a owl:Nothing .", "*cls-nothing2"),
    "cls-int1": (
        ":c owl:intersectionOf (:d :e :f) . :x a :d, :e, :f . :y a :d, :f .",
        ":x a :c . ! :y a :c .",
    ),
    "cls-int2": (":c owl:intersectionOf (:d :e) . :x a :c .", ":x a :d, :e ."),
    "cls-uni": (":c owl:unionOf (:d :e) . :x a :e . :y a :c .", ":x a :c . ! :y a :d . :y a :e ."),
    "cls-com": (":c owl:complementOf :d . :x a :c, :d .", "*cls-com"),
    "cls-svf1": (
        ":c owl:someValuesFrom :d ; owl:onProperty :p . :x :p :y . :y a :d . :u :p :v .",
        ":x a :c . ! :u a :c .",
    ),
    "cls-svf2": (":c owl:someValuesFrom owl:Thing ; owl:onProperty :p . :x :p :y .", ":x a :c ."),
    "cls-avf": (":c owl:allValuesFrom :d ; owl:onProperty :p . :x a :c ; :p :y .", ":y a :d ."),
    "cls-hv1": (":c owl:hasValue :v ; owl:onProperty :p . :x a :c .", ":x :p :v ."),
    "cls-hv2": (":c owl:hasValue :v ; owl:onProperty :p . :x :p :v . :y :p :u .", ":x a :c . ! :y a :c ."),
    "cls-maxc1": (":c owl:maxCardinality 0 ; owl:onProperty :p . :x a :c ; :p :y .", "*cls-maxc1"),
    "cls-maxc2": (
        ':c owl:maxCardinality "1"^^xsd:nonNegativeInteger ; owl:onProperty :p . :x a :c ; :p :y, :z .',
        ":y owl:sameAs :z .",
    ),
    "cls-maxc2, not two": (
        ":c owl:maxCardinality 2 ; owl:onProperty :p . :x a :c ; :p :y, :z .",
        "! :y owl:sameAs :z .",
    ),
    "cls-maxqc1": (
        ":c owl:maxQualifiedCardinality 0 ; owl:onProperty :p ; owl:onClass :d . :x a :c ; :p :y . :y a :d .",
        "*cls-maxqc1",
    ),
    "cls-maxqc2": (
        ":c owl:maxQualifiedCardinality 0 ; owl:onProperty :p ; owl:onClass owl:Thing . :x a :c ; :p :y .",
        "*cls-maxqc2",
    ),
    "cls-maxqc3": (
        ":c owl:maxQualifiedCardinality 1 ; owl:onProperty :p ; owl:onClass :d . :x a :c ; :p :y, :z, :u . :y a :d . :z a :d .",
        ":y owl:sameAs :z . ! :y owl:sameAs :u .",
    ),
    "cls-maxqc4": (
        ":c owl:maxQualifiedCardinality 1 ; owl:onProperty :p ; owl:onClass owl:Thing . :x a :c ; :p :y, :z .",
        ":y owl:sameAs :z .",
    ),
    "exactly one": (":c owl:cardinality 1 ; owl:onProperty :p . :x a :c ; :p :y, :z .", ":y owl:sameAs :z ."),
    "exactly one of a class": (
        ":c owl:qualifiedCardinality 1 ; owl:onProperty :p ; owl:onClass :d . :x a :c ; :p :y, :z . :y a :d . :z a :d .",
        ":y owl:sameAs :z .",
    ),
    "cls-oo": (":c owl:oneOf (:x :y) .", ":x a :c . :y a :c ."),
    "hasSelf": (":c owl:hasSelf true ; owl:onProperty :p . :x a :c . :y :p :y .", ":x :p :x . :y a :c ."),
    # class axioms
    "cax-sco": (":c rdfs:subClassOf :d . :x a :c .", ":x a :d . ! :c rdfs:subClassOf :c ."),
    "cax-eqc": (":c owl:equivalentClass :d . :x a :c . :y a :d .", ":x a :d . :y a :c ."),
    "cax-dw": (":c owl:disjointWith :d . :x a :c, :d .", "*cax-dw"),
    "cax-adc": ("[ a owl:AllDisjointClasses ; owl:members (:c :d :e) ] . :x a :c, :e .", "*cax-adc"),
    "cax-adc, others": (
        "[ a owl:AllDisjointClasses ; owl:members (:c :d) ] . [ a owl:AllDisjointClasses ; owl:members (:e :f) ] . :x a :c, :e .",
        "",
    ),
    "disjointUnionOf": (":c owl:disjointUnionOf (:d :e) . :x a :d .", ":x a :c . :d rdfs:subClassOf :c ."),
    "disjointUnionOf, both": (":c owl:disjointUnionOf (:d :e) . :x a :d, :e .", "*cax-adc"),
    # datatypes
    "dt-not-type": (':p rdfs:range xsd:integer . :x :p "a" .', "*dt-not-type"),
    "dt-not-type, a wider datatype": (":p rdfs:range xsd:decimal . :x :p 5, 5.5 .", ""),
    "dt-not-type, a narrower datatype": (":p rdfs:range xsd:byte . :x :p 127, 5.0 .", ""),
    "dt-not-type, too large": (":p rdfs:range xsd:byte . :x :p 128 .", "*dt-not-type"),
    "dt-not-type, an unknown datatype": (':p rdfs:range xsd:integer . :x :p "a"^^:dt .', ""),
    "dt-not-type, an IRI": (":p rdfs:range xsd:integer . :x :p :five .", ":five a xsd:integer ."),
    "dt-diff": (":p a owl:FunctionalProperty . :x :p 1, 2 .", "*dt-diff"),
    "dt-diff, texts": (':p a owl:FunctionalProperty . :x :p "a", "a"@en .', "*dt-diff"),
    "dt-diff, one value": (':p a owl:FunctionalProperty . :x :p 1, "01"^^xsd:integer, 1.0 .', ""),
    "a restriction to a datatype": (
        ':c owl:someValuesFrom xsd:integer ; owl:onProperty :p . :x :p 5 . :y :p "5" . :z :q 5 .',
        ":x a :c . ! :y a :c . :z a :c .",
    ),
    "a restriction to several datatypes": (
        ":c owl:someValuesFrom [ a rdfs:Datatype ; owl:intersectionOf (xsd:integer xsd:nonNegativeInteger) ] ; "
        "owl:onProperty :p . :x :p 5 . :y :p -5 .",
        ":x a :c . ! :y a :c .",
    ),
    "at most one of a datatype": (
        ':c owl:maxQualifiedCardinality 1 ; owl:onProperty :p ; owl:onDataRange xsd:string . :x a :c ; :p "a", "b" .',
        "*dt-diff",
    ),
    # schema
    "scm-sco": (":c rdfs:subClassOf :d . :d rdfs:subClassOf :e .", ":c rdfs:subClassOf :e ."),
    "scm-eqc1": (
        ":c owl:equivalentClass :d .",
        ":c rdfs:subClassOf :d . :d rdfs:subClassOf :c . :d owl:equivalentClass :c .",
    ),
    "scm-eqc2": (":c rdfs:subClassOf :d . :d rdfs:subClassOf :c .", ":c owl:equivalentClass :d ."),
    "scm-spo": (":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :r .", ":p rdfs:subPropertyOf :r ."),
    "scm-eqp1": (":p owl:equivalentProperty :q .", ":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p ."),
    "scm-eqp2": (":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p .", ":q owl:equivalentProperty :p ."),
    "scm-dom": (
        ":p rdfs:domain :c . :c rdfs:subClassOf :d . :q rdfs:subPropertyOf :p .",
        ":p rdfs:domain :d . :q rdfs:domain :c, :d . ! :p rdfs:range :c .",
    ),
    "scm-rng": (
        ":p rdfs:range :c . :c rdfs:subClassOf :d . :q rdfs:subPropertyOf :p .",
        ":p rdfs:range :d . :q rdfs:range :c, :d . ! :p rdfs:domain :c .",
    ),
    "scm-hv": (
        ":c owl:hasValue :v ; owl:onProperty :p . :d owl:hasValue :v ; owl:onProperty :q . :p rdfs:subPropertyOf :q .",
        ":c rdfs:subClassOf :d . ! :d rdfs:subClassOf :c .",
    ),
    "scm-svf1": (
        ":c owl:someValuesFrom :a ; owl:onProperty :p . :d owl:someValuesFrom :b ; owl:onProperty :p . :a rdfs:subClassOf :b .",
        ":c rdfs:subClassOf :d . ! :d rdfs:subClassOf :c .",
    ),
    "scm-svf2": (
        ":c owl:someValuesFrom :a ; owl:onProperty :p . :d owl:someValuesFrom :a ; owl:onProperty :q . :p rdfs:subPropertyOf :q .",
        ":c rdfs:subClassOf :d . ! :d rdfs:subClassOf :c .",
    ),
    "scm-avf1": (
        ":c owl:allValuesFrom :a ; owl:onProperty :p . :d owl:allValuesFrom :b ; owl:onProperty :p . :a rdfs:subClassOf :b .",
        ":c rdfs:subClassOf :d . ! :d rdfs:subClassOf :c .",
    ),
    "scm-avf2": (
        ":c owl:allValuesFrom :a ; owl:onProperty :p . :d owl:allValuesFrom :a ; owl:onProperty :q . :p rdfs:subPropertyOf :q .",
        ":d rdfs:subClassOf :c . ! :c rdfs:subClassOf :d .",
    ),
    "scm-int": (":c owl:intersectionOf (:d :e) .", ":c rdfs:subClassOf :d, :e . ! :d rdfs:subClassOf :c ."),
    "scm-uni": (
        ":c owl:unionOf (:d :e) .",
        ":d rdfs:subClassOf :c . :e rdfs:subClassOf :c . ! :c rdfs:subClassOf :d .",
    ),
}


@pytest.mark.parametrize("case", OWL_CASES)
def test_owl2rl(case: str) -> None:
    check("owl2rl", *OWL_CASES[case])


def test_lists_that_no_axiom_mentions_cost_nothing() -> None:
    cells = graph(":x :members (:a :b :c) . :a a :b . :y :b :z .")
    with closure("owl2rl", cells) as closed:
        m = closed.materialisation
        assert closed.triples == set(cells)
        assert {name for name in m if len(m[name])} == {"triple", "rl_spellings", "rl_recognised", "rl_datatype"}


# --- trivial consequences ----------------------------------------------------------------------------------

TRIVIAL_CASES = {
    ("rdfs", "resources"): (":x :p 5 .", ":x a rdfs:Resource . :p a rdf:Property ; rdfs:subPropertyOf :p ."),
    ("rdfs", "classes"): (":x a :c .", ":c a rdfs:Class ; rdfs:subClassOf :c, rdfs:Resource ."),
    ("rdfs", "ill-typed"): (':x :p "a"^^xsd:integer .', "*ill-typed"),
    ("rdfs", "unknown datatypes"): (':x :p "a"^^:dt .', "! :dt a rdfs:Datatype ."),
    ("owl2rl", "eq-ref"): (":x :p :y .", ":x owl:sameAs :x . :p owl:sameAs :p . :y owl:sameAs :y ; a owl:Thing ."),
    ("owl2rl", "scm-cls"): (":c a owl:Class .", ":c rdfs:subClassOf :c, owl:Thing . owl:Nothing rdfs:subClassOf :c ."),
    ("owl2rl", "dt-type1"): ("", "xsd:integer a rdfs:Datatype . rdfs:label a owl:AnnotationProperty ."),
    ("owl2rl", "ill-typed"): (':x :p "256"^^xsd:unsignedByte .', "*ill-typed"),
}


@pytest.mark.parametrize(("regime", "case"), TRIVIAL_CASES)
def test_trivial_consequences(regime: Regime, case: str) -> None:
    check(regime, *TRIVIAL_CASES[regime, case], trivial=True)
    premise = graph(TRIVIAL_CASES[regime, case][0])
    with closure(regime, premise) as closed:
        assert closed.triples == set(premise)


def test_literals_are_of_their_datatypes() -> None:
    with closure("owl2rl", graph(":x :p 5 ."), trivial=True) as closed:
        five = f'"5"^^<{XSD}integer>'
        types = {o for s, p, o in closed.triples if s == five and p == rdf("type")}
    numbers = "decimal integer nonNegativeInteger positiveInteger long int short byte"
    numbers += " unsignedLong unsignedInt unsignedShort unsignedByte"
    assert types == {f"<{XSD}{name}>" for name in numbers.split()} | {rdfs("Literal")}


# --- spellings ---------------------------------------------------------------------------------------------

RANGES = {
    "byte": (-128, 127),
    "unsignedByte": (0, 255),
    "short": (-32768, 32767),
    "unsignedShort": (0, 65535),
    "int": (-2147483648, 2147483647),
    "unsignedInt": (0, 4294967295),
    "long": (-9223372036854775808, 9223372036854775807),
    "unsignedLong": (0, 18446744073709551615),
    "integer": (-(10**30), 10**30),
    "nonNegativeInteger": (0, 10**30),
    "positiveInteger": (1, 10**30),
    "nonPositiveInteger": (-(10**30), 0),
    "negativeInteger": (-(10**30), -1),
}


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_integers_are_of_the_datatypes_whose_ranges_they_are_in(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(RANGES)))
    bound = data.draw(st.sampled_from([0, *(end for ends in RANGES.values() for end in ends)]))
    value = bound + data.draw(st.sampled_from([-1, 0, 1]) | st.integers(-(10**6), 10**6))
    value = max(-(10**30), min(10**30, value))
    zeros = "0" * data.draw(st.integers(0, 3))
    sign = "-" if value < 0 else data.draw(st.sampled_from(["", "+"] + ["-"] * (value == 0)))
    own = data.draw(st.sampled_from(sorted(RANGES)))
    literal = f'"{sign}{zeros}{abs(value)}"^^<{XSD}{own}>'
    of_both = all(least <= value <= greatest for least, greatest in (RANGES[name], RANGES[own]))
    assert full_match(SPELLINGS[xsd(name)], literal) == of_both, literal


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("string", ["", "a b", r"\n\"\\", "é"], []),
        ("normalizedString", ["", "a  b"], [r"a\tb", r"\n"]),
        ("token", ["", "a b"], [" a", "a ", "a  b", r"a\n"]),
        ("language", ["en", "de-CH-1996"], ["", "en-languages1", "e_n"]),
        ("Name", ["a", ":a", "_1", "é"], ["", "1", "a b"]),
        ("NCName", ["a", "_1-2."], ["", ":a", "-a"]),
        ("NMTOKEN", ["1", "a:b"], ["", "a b"]),
        ("decimal", ["1", "+1.", "-.5", "007.50"], ["", ".", "1e0", "INF", " 1"]),
        ("double", ["1", "1e5", "-.5E-3", "INF", "-INF", "NaN"], ["", "inf", "1e", "e5"]),
        ("boolean", ["true", "false", "1", "0"], ["", "True", "yes"]),
        ("hexBinary", ["", "0aF9"], ["a", "0g"]),
        ("base64Binary", ["", "YQ==", "YWI=", "YWJj", "YW Jj"], ["Y", "YQ=", "Y==="]),
        ("anyURI", ["", "http://example.org/?q=a b"], []),
        ("dateTime", ["2024-02-29T12:00:00", "-0044-03-15T24:00:00Z", "12024-01-01T00:00:00.5+14:00"], ["2024-02-29", "2024-13-01T00:00:00", "2024-01-01T25:00:00", "24-01-01T00:00:00"]),
        ("dateTimeStamp", ["2024-02-29T12:00:00Z"], ["2024-02-29T12:00:00"]),
    ],
)  # fmt: skip
def test_spellings(name: str, good: list[str], bad: list[str]) -> None:
    end = "" if name == "string" else f"^^<{XSD}{name}>"
    for text in good:
        assert full_match(SPELLINGS[xsd(name)], f'"{text}"{end}'), text
    for text in bad:
        assert not full_match(SPELLINGS[xsd(name)], f'"{text}"{end}'), text
    assert not full_match(SPELLINGS[xsd(name)], f'"{good[0]}"^^<{EX}dt>')


# --- random graphs -----------------------------------------------------------------------------------------


def some(names: str) -> st.SearchStrategy[str]:
    return st.sampled_from([f"<{EX}{name}>" for name in names.split()])


THINGS, CLASSES, PROPERTIES = some("x y z"), some("a b c d"), some("p q r")
CELLS = ("_:k", "_:l", "_:m")
TRIPLES = st.one_of(
    st.tuples(THINGS, PROPERTIES, THINGS),
    st.tuples(THINGS, PROPERTIES, THINGS),
    st.tuples(THINGS, st.just(NAMES["type"]), CLASSES),
    st.tuples(THINGS, st.just(NAMES["type"]), CLASSES),
    st.tuples(CLASSES, st.sampled_from([NAMES["subClassOf"], NAMES["sameClass"], NAMES["some"], NAMES["all"]]), CLASSES),
    st.tuples(PROPERTIES, st.sampled_from([NAMES["subPropertyOf"], NAMES["sameProperty"], NAMES["inverseOf"]]), PROPERTIES),
    st.tuples(PROPERTIES, st.sampled_from([NAMES["domain"], NAMES["range"]]), CLASSES),
    st.tuples(PROPERTIES, st.just(NAMES["type"]), st.sampled_from([NAMES[name] for name in ("Symmetric", "Transitive")])),
    st.tuples(PROPERTIES, st.just(NAMES["type"]), st.sampled_from([NAMES[name] for name in ("Functional", "InverseFunctional")])),
    st.tuples(CLASSES, st.just(NAMES["on"]), PROPERTIES),
    st.tuples(CLASSES, st.just(NAMES["value"]), THINGS),
    st.tuples(CLASSES, st.sampled_from([NAMES["both"], NAMES["either"]]), st.sampled_from(CELLS)),
    st.tuples(PROPERTIES, st.just(NAMES["chain"]), st.sampled_from(CELLS)),
    st.tuples(st.sampled_from(CELLS), st.just(NAMES["first"]), CLASSES | PROPERTIES),
    st.sampled_from([(a, NAMES["rest"], b) for a, b in zip(CELLS, (*CELLS[1:], NAMES["nil"]), strict=True)]),
    st.tuples(st.sampled_from(CELLS), st.just(NAMES["rest"]), st.just(NAMES["nil"])),
    st.tuples(THINGS | PROPERTIES | CLASSES, st.just(NAMES["sameAs"]), THINGS | PROPERTIES | CLASSES),
)  # fmt: skip
GRAPHS = st.frozensets(TRIPLES, max_size=14)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(GRAPHS, GRAPHS, st.sampled_from(["auto", "dred", "dred-c", "bf-c"]))
def test_random_graphs_and_what_they_become(
    first: frozenset[Triple], second: frozenset[Triple], algorithm: str
) -> None:
    with closure("owl2rl", first) as closed:
        assert closed.triples == naive(first)
        closed.become(second, algorithm)
        assert closed.triples == naive(second)
