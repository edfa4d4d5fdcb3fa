"""The syntax tests of the W3C for N-Triples and Turtle, from the folder that the environment variable EVERMAT_DATA names."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pyoxigraph as rdf
import pytest

from evermat.core.errors import DataError
from evermat.io import Outputs, RdfOptions, read_triples
from evermat.io.error_report import Findings
from evermat.io.rdf.turtle import Careful
from tests.io.relations import rows_of
from tests.support.environment import DATA, NEEDS_DATA

SUITES = {"rdf-n-triples": {True: 41, False: 29}, "rdf-turtle": {True: 219, False: 94}}
BASE = "https://w3c.github.io/rdf-tests/rdf/rdf11/rdf-turtle/"
TESTS = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
# Tests that do not pass, and why.
EXCEPTIONS: dict[str, str] = {}

pytestmark = NEEDS_DATA


@cache
def manifest(suite: str) -> list[tuple[str, Path, Path | None]]:
    """The kind of each test, the file that is read, and the one with its triples, if there is any."""
    store = rdf.Store()
    folder = DATA / "rdf-tests" / suite
    store.load(path=str(folder / "manifest.ttl"), format=rdf.RdfFormat.TURTLE, base_iri="http://m/")
    query = (
        f"SELECT ?kind ?file ?result {{ ?t a ?kind ; <{TESTS}action> ?file OPTIONAL {{ ?t <{TESTS}result> ?result }} }}"
    )

    def path(node: rdf.NamedNode | None) -> Path | None:
        return None if node is None else folder / node.value.rpartition("/")[2]

    return [(kind.value, path(file), path(result)) for kind, file, result in store.query(query)]


def graph(rows: Iterable[tuple[str, ...]]) -> set[rdf.Quad]:
    """Triples, with names for blank nodes that depend on nothing but the triples."""
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in rows).encode()
    found = rdf.Dataset(rdf.parse(text, format=rdf.RdfFormat.N_TRIPLES))
    found.canonicalize(rdf.CanonicalizationAlgorithm.UNSTABLE)
    return set(found)


def parsed(path: Path) -> set[rdf.Quad]:
    """What pyoxigraph says is in a file."""
    form = {".nt": rdf.RdfFormat.N_TRIPLES, ".ttl": rdf.RdfFormat.TURTLE}[path.suffix]
    found = rdf.Dataset(rdf.parse(path=str(path), format=form, base_iri=BASE + path.name))
    found.canonicalize(rdf.CanonicalizationAlgorithm.UNSTABLE)
    return set(found)


@pytest.mark.parametrize("suite", SUITES)
def test_the_tests_of_the_w3c(suite: str) -> None:
    checked = {True: 0, False: 0}
    failed = set()
    for kind, path, result in manifest(suite):
        positive = "Negative" not in kind
        checked[positive] += 1
        try:
            found = rows_of(read_triples(path, RdfOptions(base=BASE + path.name)).table)
            right = positive and graph(found) == parsed(result or path)
        except DataError as error:
            problem = error.problems[0]
            right = not positive and problem.source is not None and problem.span is not None
        if not right:
            failed.add(path.name)
    assert failed == set(EXCEPTIONS)
    assert checked == SUITES[suite]


def test_statements_are_cut_where_they_end() -> None:
    """What is read statement by statement is the same, in all texts that are right."""
    for kind, path, _ in manifest("rdf-turtle"):
        if "Negative" not in kind:
            rows = rows_of(read_triples(path, RdfOptions(base=BASE + path.name)).table)
            careful = Careful(path.read_bytes(), "ttl", BASE + path.name, Findings(path.name))
            parts = [rows_of(quads.encoded()) for quads in careful.read()]
            assert graph(row for part in parts for row in part) == graph(rows), path.name
            assert careful.wrong == 0, path.name


@pytest.mark.parametrize("name", ["lubm/univ-bench.owl", "ontologies/ro.owl.gz"])
def test_elements_are_statements(name: str) -> None:
    path = DATA / name
    rows = rows_of(read_triples(path).table)
    text = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    careful = Careful(text, "rdf", None, Findings(name))
    parts = [rows_of(quads.encoded()) for quads in careful.read()]
    assert careful.wrong == 0
    assert graph(row for part in parts for row in part) == graph(rows)


@pytest.mark.parametrize("name", ["skos/unesco-2022.nt.gz", "lubm/lubm1.nt.gz", "sameas/wikicompany_links.nt.gz"])
def test_every_format_holds_real_data(name: str, tmp_path: Path) -> None:
    table = read_triples(DATA / name).table.slice(0, 5_000)
    for ending in ("nt.gz", "nq", "ttl", "trig", "rdf"):
        with Outputs() as outputs:
            done = outputs.write_graph(tmp_path / f"x.{ending}", table)
            outputs.commit()
        assert done == (table.num_rows, 0)
        assert set(rows_of(read_triples(tmp_path / f"x.{ending}").table)) == set(rows_of(table))
