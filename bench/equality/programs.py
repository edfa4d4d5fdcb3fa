"""The rules of the shapes."""

from __future__ import annotations

from bench.equality.data import CLIQUE, CYC, OWL, RDFS
from bench.universities import ONTOLOGIES

IDLE = 200  # rules of `CYCLOPAEDIA` that never fire: backward chaining considers them all the same

CLIQUES = f"""
.prefix owl: <{OWL}>
.prefix e: <{CLIQUE}>
.decl owl:sameAs(x:term, y:term)
y = z :- e:main(x, y), e:main(x, z), y != z.
x = z :- e:passport(x, y), e:passport(z, y), x != z.
e:knows(y, x) :- e:knows(x, y).
e:part(x, z) :- e:part(x, y), e:part(y, z).
e:lives(x, z) :- e:lives(x, y), e:part(y, z).
e:fellow(x, y) :- e:knows(x, y), e:lives(x, z), e:lives(y, z).
e:Traveller(x) :- e:Person(x), e:passport(x, _).
e:Reader(x) :- e:Person(x), e:owns(x, _).
e:Agent(x) :- e:Person(x).
"""

CYCLOPAEDIA = f"""
.prefix owl: <{OWL}>
.prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
.prefix rdfs: <{RDFS}>
.prefix e: <{CYC}>
.decl triple(s:term, p:term, o:term)
triple(x, rdf:type, d) :- triple(x, rdf:type, c), triple(c, rdfs:subClassOf, d).
triple(x, q, y) :- triple(x, p, y), triple(p, rdfs:subPropertyOf, q).
triple(x, rdf:type, c) :- triple(x, p, y), triple(p, rdfs:domain, c).
triple(y, e:related, x) :- triple(x, e:related, y).
""" + "\n".join(f"triple(x, rdf:type, y) :- triple(x, e:idle{number}, y)." for number in range(IDLE))


def university_ontology() -> str:
    """That of `bench.universities`, in which no two people have the same e-mail address."""
    return ONTOLOGIES["uobm"]() + "\n:emailAddress a owl:InverseFunctionalProperty .\n"
