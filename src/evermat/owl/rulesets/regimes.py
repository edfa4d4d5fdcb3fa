"""The rules of RDFS and of OWL 2 RL as programs over `triple`: the ontology is data like all other, and may change with it.

The rules are texts in this folder; here is decided which of them make a program. Relations that only help begin with `rl_`.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import get_args

from evermat.core import Entailment
from evermat.owl.rulesets.datatypes import datatype_rules
from evermat.owl.vocabulary import PREFIXES

Regime = Entailment
REGIMES: tuple[Regime, ...] = get_args(Regime)

_PREFIXES = "".join(f".prefix {prefix}: <{namespace}>\n" for prefix, namespace in PREFIXES.items())
_RULES: dict[Regime, tuple[str, ...]] = {
    "rdfs": ("rdfs",),
    "owl2rl": ("schema", "owl2rl", "datatypes", "data_ranges"),
}
_TRIVIAL: dict[Regime, tuple[str, ...]] = {
    "rdfs": ("datatypes", "trivial", "trivial_rdfs"),
    "owl2rl": ("trivial", "trivial_owl2rl"),
}

_TERMS = """
.decl rl_term(term:term)
.decl rl_canonical(literal:term, value:term)
rl_canonical(v, c) :- rl_term(v), match("\\".*", v), c = canonical_term(v).
"""


def entailment(name: Regime, *, trivial: bool = False, forbid: bool = True) -> str:
    """The program whose consequences are those of RDFS or of OWL 2 RL.

    It declares `triple(s, p, o)` and `inconsistent(axiom)`, whose facts say which rules find a contradiction.

    With `trivial` it has also what is rarely asked for: that everything is the same as itself and a thing or a resource, that
    classes are subclasses of themselves, the types of literals, and the axioms of the vocabularies. Then RDFS knows datatypes,
    too. With `forbid` a contradiction is an error.
    """
    files = _RULES[name] + (_TRIVIAL[name] if trivial else ())
    parts = [
        _PREFIXES,
        ".decl triple(s:term, p:term, o:term)\n",
        f".decl inconsistent(axiom:symbol){' forbidden' if forbid else ''}\n",
        "" if forbid else '.pragma "equality" "axiomatise"\n',  # for what is inconsistent about equal terms
        *(f"\n{_rules(file)}" for file in files),
        f"\n{datatype_rules(trivial=trivial)}" if "datatypes" in files else "",
    ]
    return "".join(parts)


def schema_rules() -> str:
    """The rules of OWL 2 RL about classes and properties alone, for programs with relations instead of `triple`."""
    return f"{_PREFIXES}\n{_rules('schema')}"


def trivial_rules() -> str:
    """What is rarely asked for in OWL 2 RL, for programs with relations, which say what a term is: `rl_term`."""
    return f"{_PREFIXES}{_TERMS}{_rules('trivial_owl2rl')}"


@cache
def _rules(file: str) -> str:
    return resources.files("evermat.owl").joinpath("rulesets", f"{file}.dl").read_text(encoding="utf-8")
