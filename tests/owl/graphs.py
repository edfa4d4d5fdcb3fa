"""RDF graphs in tests: read by pyoxigraph, spelled as Evermat holds terms, and what the rule sets derive from them."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pyoxigraph as ox

import evermat
from evermat import Materialisation
from evermat.language.terms import literal_term
from evermat.owl.rulesets.regimes import Regime, entailment

Triple = tuple[str, ...]
Facts = dict[str, set[Triple]]


def spelling(term: object) -> str:
    """The text of a term."""
    match term:
        case ox.NamedNode():
            return f"<{term.value}>"
        case ox.BlankNode():
            return f"_:{term.value}"
        case ox.Literal():
            return literal_term(term.value, language=term.language or "", datatype=term.datatype.value)
    raise AssertionError(term)


def parse(text: str | bytes, form: ox.RdfFormat = ox.RdfFormat.TURTLE, base: str | None = None) -> list[Triple]:
    """The triples of a text."""
    return [tuple(map(spelling, quad.triple)) for quad in ox.parse(text, format=form, base_iri=base)]


def read(path: Path) -> list[Triple]:
    """The triples of a file."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    form = ox.RdfFormat.from_extension(path.name.removesuffix(".gz").rpartition(".")[2])
    assert form is not None
    return parse(data, form, f"http://example.org/{path.name}")


def entails(graph: set[Triple], conclusion: Sequence[Triple]) -> bool:
    """Simple entailment: whether blank nodes of the conclusion can stand for terms so that all its triples are in the graph."""

    def search(rest: Sequence[Triple], known: dict[str, str]) -> bool:
        if not rest:
            return True
        rest = sorted(rest, key=lambda triple: sum(term.startswith("_:") and term not in known for term in triple))
        first = tuple(known.get(term, term) for term in rest[0])
        blank = [i for i, term in enumerate(rest[0]) if term.startswith("_:") and term not in known]
        for found in graph if blank else {first} & graph:
            if all(i in blank or found[i] == first[i] for i in range(3)):
                more = {rest[0][i]: found[i] for i in blank}
                if all(more[rest[0][i]] == found[i] for i in blank) and search(rest[1:], known | more):
                    return True
        return False

    return search(conclusion, {})


@cache
def empty(regime: Regime, trivial: bool) -> Materialisation:
    """All that a rule set derives from nothing."""
    return evermat.Program.parse(entailment(regime, trivial=trivial, forbid=False)).materialise()


class Closure:
    """What a rule set derives from a graph, which may become another one."""

    def __init__(self, materialisation: Materialisation) -> None:
        self.materialisation = materialisation
        self._facts: Facts = {}

    @property
    def triples(self) -> set[Triple]:
        return set(self.materialisation["triple"])

    @property
    def inconsistent(self) -> set[str]:
        """The rules that find a contradiction, by their names."""
        return {text.partition(":")[0] for (text,) in self.materialisation["inconsistent"]}

    def become(self, graph: Iterable[Triple], algorithm: str = "auto", mentioned: Iterable[str] = ()) -> None:
        """Replaces the graph, and the terms that are mentioned elsewhere."""
        facts = {"triple": set(graph), "rl_mentioned": {(term,) for term in mentioned}}
        gone, come = _difference(self._facts, facts), _difference(facts, self._facts)
        self.materialisation.update(insert=come, delete=gone, algorithm=algorithm)
        self._facts = facts


def _difference(facts: Facts, others: Facts) -> Facts:
    found = {name: rows - others.get(name, set()) for name, rows in facts.items()}
    return {name: rows for name, rows in found.items() if rows}


@contextmanager
def closure(
    regime: Regime, graph: Iterable[Triple], *, trivial: bool = False, mentioned: Iterable[str] = ()
) -> Iterator[Closure]:
    """What a rule set derives from a graph; with trivial consequences also about terms that are mentioned elsewhere.

    The graph is put into a materialisation of the empty graph and taken out again, which leaves nothing behind: so the rules
    are compiled once for all tests.
    """
    closed = Closure(empty(regime, trivial))
    before = len(closed.triples)
    closed.become(graph, mentioned=mentioned if trivial else ())
    try:
        yield closed
    finally:
        closed.become((), "remat")  # the fastest where nearly all goes
    assert len(closed.triples) == before
    assert not closed.inconsistent
