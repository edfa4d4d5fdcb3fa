"""Ontologies in Turtle, from words in lines."""

from __future__ import annotations

PREFIXES = """\
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def outline(text: str, type_: str, below: str) -> str:
    """Turtle from a hierarchy: a line may name several, and what stands deeper is below the last one of them."""
    above: list[tuple[int, str]] = []
    lines = []
    for line in filter(str.strip, text.splitlines()):
        depth = len(line) - len(line.lstrip())
        while above and above[-1][0] >= depth:
            above.pop()
        for name in line.split():
            lines.append(f":{name} a {type_}" + (f" ; {below} :{above[-1][1]}" if above else "") + " .")
        above.append((depth, line.split()[-1]))
    return "\n".join(lines) + "\n"


def defined(name: str, property_: str, filler: str) -> str:
    """A class of all people that have a certain thing."""
    return (
        f":{name} owl:equivalentClass [ a owl:Class ; owl:intersectionOf\n"
        f"  ( :Person [ a owl:Restriction ; owl:onProperty :{property_} ; owl:someValuesFrom :{filler} ] ) ] .\n"
    )


def properties(text: str) -> str:
    """Turtle from lines `name domain range type…`; `-` is none."""
    lines = []
    for line in filter(str.strip, text.splitlines()):
        name, domain, range_, *types = line.split()
        parts = ["a " + ", ".join(f"owl:{type_}" for type_ in types)]
        parts += [f"rdfs:domain :{domain}"] if domain != "-" else []
        parts += [f"rdfs:range :{range_}"] if range_ != "-" else []
        lines.append(f":{name} " + " ; ".join(parts) + " .")
    return "\n".join(lines) + "\n"
