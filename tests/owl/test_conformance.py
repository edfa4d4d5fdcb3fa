"""Conformance: the RDF-based tests of OWL 2 RL and RDFS, and the entailment tests of RDF 1.1 Semantics.

They are read from the folder that the environment variable EVERMAT_DATA names; without it these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import pyoxigraph as ox
import pytest

from evermat.owl.rulesets.regimes import Regime
from evermat.owl.vocabulary import RDF
from tests.owl.graphs import Triple, closure, entails, read, spelling
from tests.support.environment import DATA, NEEDS_DATA

pytestmark = NEEDS_DATA

FAILING: dict[str, str] = {}
"""The tests that do not pass, and why."""


def terms(graph: Iterable[Triple]) -> set[str]:
    """The terms of a graph that are no blank nodes."""
    return {term for triple in graph for term in triple if not term.startswith("_:")}


def expect(name: str, passes: bool) -> None:
    """A test passes, or it is known why not."""
    if name in FAILING:
        assert not passes, f"{name} passes, but stands among those that do not"
    else:
        assert passes


# --- OWL 2 RL and RDFS, RDF-based --------------------------------------------------------------------------


def folders(suite: str) -> list[Path]:
    return sorted((DATA / "owl2-rl" / suite).iterdir()) if DATA.is_dir() else []


@pytest.mark.slow
@pytest.mark.parametrize("folder", folders("owl2rl"), ids=lambda folder: folder.name)
def test_owl2rl(folder: Path) -> None:
    run_rdf_based(folder, "owl2rl")


@pytest.mark.parametrize("folder", folders("rdfs"), ids=lambda folder: folder.name)
def test_rdfs(folder: Path) -> None:
    run_rdf_based(folder, "rdfs")


def run_rdf_based(folder: Path, regime: Regime) -> None:
    metadata = ET.parse(folder / f"{folder.name}.metadata.properties").getroot()
    (kind,) = [entry.text for entry in metadata.iter("entry") if entry.get("key") == "testcase.type"]
    if kind == "INCONSISTENCY":
        expect(folder.name, follows(regime, read(folder / f"{folder.name}.graph.ttl"), None))
        return
    assert kind == "POSITIVE_ENTAILMENT"
    premise, conclusion = (read(folder / f"{folder.name}.{part}graph.ttl") for part in ("premise", "conclusion"))
    expect(folder.name, follows(regime, premise, conclusion))


def follows(regime: Regime, premise: list[Triple], conclusion: list[Triple] | None) -> bool:
    """Whether a conclusion, or a contradiction, follows: without trivial consequences, which is faster, or with them."""
    return any(derived(regime, premise, conclusion, trivial=trivial) for trivial in (False, True))


def derived(regime: Regime, premise: list[Triple], conclusion: list[Triple] | None, *, trivial: bool) -> bool:
    """Whether the rules derive a conclusion from a premise that is free of contradictions, or a contradiction."""
    with closure(regime, premise, trivial=trivial, mentioned=terms(conclusion or [])) as closed:
        if conclusion is None:
            return bool(closed.inconsistent)
        return not closed.inconsistent and entails(closed.triples, conclusion)


# --- RDF 1.1 Semantics -------------------------------------------------------------------------------------

MANIFEST = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
FALSE = '"false"^^<http://www.w3.org/2001/XMLSchema#boolean>'


@dataclass(frozen=True)
class Entailment:
    """Whether a graph entails another; `conclusion` is None for a contradiction."""

    name: str
    positive: bool
    regime: str
    recognises: bool  # whether all datatypes are known
    premise: Path
    conclusion: Path | None


def entailments() -> list[Entailment]:
    folder = DATA / "rdf-tests" / "rdf-mt"
    if not folder.is_dir():
        return []
    store = ox.Store()
    store.load(path=str(folder / "manifest.ttl"), format=ox.RdfFormat.TURTLE, base_iri="http://example.org/mt/")
    query = f"""
        PREFIX mf: <{MANIFEST}>
        PREFIX rdf: <{RDF}>
        SELECT ?test ?kind ?regime ?action ?result ?unknown WHERE {{
            ?manifest mf:entries/rdf:rest*/rdf:first ?test .
            ?test a ?kind ; mf:entailmentRegime ?regime ; mf:action ?action ; mf:result ?result ;
                  mf:unrecognizedDatatypes ?unknown .
        }} ORDER BY ?test"""
    found = []
    for row in store.query(query):
        test, kind, regime, action, result, unknown = map(spelling, row)
        paths = [folder / iri[1:-1].removeprefix("http://example.org/mt/") for iri in (action, result)]
        found.append(
            Entailment(
                test[1:-1].partition("#")[2],
                kind == f"<{MANIFEST}PositiveEntailmentTest>",
                regime.strip('"'),
                unknown.endswith("#nil>"),
                paths[0],
                None if result == FALSE else paths[1],
            )
        )
    return found


@pytest.mark.parametrize("test", entailments(), ids=lambda test: test.name)
def test_rdf_semantics(test: Entailment) -> None:
    premise = read(test.premise)
    conclusion = None if test.conclusion is None else read(test.conclusion)
    if test.regime == "simple":
        assert conclusion is not None
        found = entails(set(premise), conclusion)
    elif test.recognises:
        found = derived("rdfs", premise, conclusion, trivial=True)  # what follows under RDF follows under RDFS
    else:
        found = derived("rdfs", premise, conclusion, trivial=False)  # which knows no datatype
    expect(test.name, found == test.positive)
