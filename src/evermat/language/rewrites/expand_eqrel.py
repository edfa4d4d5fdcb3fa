"""`eqrel`: the rules that make a relation symmetric and transitive. Reflexivity follows from the two."""

from __future__ import annotations

from evermat.core import Problems, Span
from evermat.language.model import Atom, Program, Relation, Rule, Variable


def expand_equivalences(program: Program, _problems: Problems) -> Program:
    """Adds `r(y, x) :- r(x, y)` and `r(x, z) :- r(x, y), r(y, z)` for every equivalence relation."""
    extra = [rule for r in program.relations.values() if r.equivalence for rule in _rules(r)]
    return program.with_rules([*program.rules, *extra]) if extra else program


def _rules(relation: Relation) -> list[Rule]:
    x, y, z = (Variable(name, relation.columns[0].type) for name in "xyz")
    span = relation.span or Span(0, 0)
    return [
        Rule(Atom(relation, (y, x)), (Atom(relation, (x, y)),), span),
        Rule(Atom(relation, (x, z)), (Atom(relation, (x, y)), Atom(relation, (y, z))), span),
    ]
