"""Values of literals mean the same in every mode: rule sets, translated ontologies, and every way to treat equality."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat.language.literal_values import different_values
from evermat.language.terms import literal_term
from evermat.owl.vocabulary import XSD, owl, rdf, rdfs, xsd

EX = "http://example.org/"
X, P = f"<{EX}x>", f"<{EX}p>"
TYPE = rdf("type")
MODES = [*product(("entailment", "data property", "property"), ("rewrite", "axiomatise", "off"))]


def typed(text: str, name: str) -> str:
    return literal_term(text, datatype=name if ":" in name else XSD + name)


LITERALS = [
    *(typed("1.85", "decimal"), typed("1.97", "decimal"), typed("1.850", "decimal"), typed("1", "integer")),
    *(typed("01", "byte"), typed("1", "float"), typed("1", "double"), typed("1e0", "double"), typed("-0", "float")),
    *(typed("0", "float"), typed("true", "boolean"), typed("1", "boolean"), '"a"', '"a"@en', typed("a", "token")),
    *(typed("00:00:00Z", "time"), typed("00:00:00.0Z", "time"), typed("00:00:00", "time"), typed("x", "integer")),
    *(typed("1", f"{EX}inch"), typed("01", f"{EX}inch"), typed("P1Y", "duration"), typed("P12M", "duration")),
]


@cache
def program(folder: Path, kind: str, equality: str, axioms: str) -> evermat.Program:
    path = folder / f"{abs(hash((kind, axioms)))}.nt"
    if kind == "entailment":
        return evermat.Program.parse(entailment="owl2rl", equality=equality)
    path.write_text(axioms)
    return evermat.Program.parse(ontology=path, equality=equality)


def refusal(folder: Path, mode: tuple[str, str], axioms: list[tuple[str, str, str]], values: list[str]) -> str:
    """What is said against a thing with some values of `p`, or nothing."""
    kind, equality = mode
    axioms = [*axioms, (P, TYPE, owl("DatatypeProperty") if kind == "data property" else rdf("Property"))]
    text = "".join(f"{' '.join(triple)} .\n" for triple in axioms)
    compiled = program(folder, kind, equality, text)
    triples = [(X, P, value) for value in values] + (axioms if kind == "entailment" else [])
    in_triples = "triple" in compiled.relations
    name = "triple" if in_triples else P
    try:
        compiled.materialise({name: triples if in_triples else [(s, o) for s, _, o in triples]}).close()
    except evermat.DataError as error:
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES, ids=" ".join)
@settings(max_examples=10, deadline=None)
@given(st.tuples(*[st.sampled_from(LITERALS)] * 2))
def test_two_values_of_a_functional_property(
    tmp_path_factory: pytest.TempPathFactory, mode: tuple[str, str], values: tuple[str, str]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    said = refusal(folder, mode, [(P, TYPE, owl("FunctionalProperty"))], [*values])
    assert bool(said) == different_values(*values)


@pytest.mark.parametrize("mode", MODES, ids=" ".join)
def test_one_value_in_two_spellings_and_two_values(tmp_path: Path, mode: tuple[str, str]) -> None:
    functional = [(P, TYPE, owl("FunctionalProperty"))]
    assert refusal(tmp_path, mode, functional, [typed("1.85", "decimal"), typed("1.97", "decimal")])
    assert not refusal(tmp_path, mode, functional, [typed("00:00:00Z", "time"), typed("00:00:00.0Z", "time")])


@pytest.mark.parametrize("mode", MODES, ids=" ".join)
def test_a_literal_of_an_unknown_datatype_may_be_of_any(tmp_path: Path, mode: tuple[str, str]) -> None:
    own = f"<{EX}LatexString>"
    for range_ in (xsd("string"), xsd("integer"), own):
        for more in ([], [(own, TYPE, rdfs("Datatype")), (own, rdfs("subClassOf"), xsd("string"))]):
            axioms = [(P, rdfs("range"), range_), *more]
            assert not refusal(tmp_path, mode, axioms, [typed("x", own[1:-1])])
    wrong = refusal(tmp_path, mode, [(P, rdfs("range"), xsd("string"))], [typed("1", "integer")])
    assert "E380" in wrong


@pytest.mark.parametrize("mode", MODES[3:], ids=" ".join)
def test_values_of_an_enumeration(tmp_path: Path, mode: tuple[str, str]) -> None:
    """In translated ontologies: OWL 2 RL has no rule for them."""
    node, one, two = "_:range", "_:one", "_:two"
    axioms = [
        *[
            (P, rdfs("range"), node),
            (node, TYPE, rdfs("Datatype")),
            (node, owl("oneOf"), one),
            (P, TYPE, owl("DatatypeProperty")),
        ],
        *[(one, rdf("first"), typed("1", "integer")), (one, rdf("rest"), two)],
        *[(two, rdf("first"), typed("1e0", "double")), (two, rdf("rest"), rdf("nil"))],
    ]
    allowed = [typed("01.0", "decimal"), typed("1", "double"), typed("1", f"{EX}inch")]
    assert not any(refusal(tmp_path, mode, axioms, [value]) for value in allowed)
    assert all("E380" in refusal(tmp_path, mode, axioms, [typed("1", kind)]) for kind in ("float", "string", "boolean"))
