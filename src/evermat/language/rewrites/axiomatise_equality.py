"""Equality: by representatives, or by axioms: owl:sameAs is symmetric and transitive, and what holds of a term holds of all that are equal to it.

x = x is left out, as it says nothing; it follows where x is equal to anything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from evermat.core import Problems, Span
from evermat.language.builtins import Type
from evermat.language.model import Atom, Constant, Program, Relation, Rule, Variable
from evermat.language.patterns.equality import AXIOMATISE, EQUALITY_AUTO, EQUALITY_OFF, REWRITE, equality_of
from evermat.language.patterns.triples import TRIPLE
from evermat.language.rewrites.expose_names import can_be_represented, use_representatives
from evermat.language.terms import SAME_AS

_X, _Y, _Z = (Variable(name, Type.TERM) for name in "xyz")
_NOWHERE = Span(0, 0)


def treat_equality(program: Program, problems: Problems) -> Program:
    """Does about equality what the program asks for; `auto`: representatives, wherever that is possible."""
    how = program.equality if equality_of(program.relations) is not None else EQUALITY_OFF
    if how == EQUALITY_AUTO:
        how = REWRITE if can_be_represented(program) else AXIOMATISE
    program = replace(program, equality=how)
    if how == REWRITE:
        return use_representatives(program, problems)
    return _axiomatised(program) if how == AXIOMATISE else program


def _axiomatised(program: Program) -> Program:
    relations = program.relations
    axioms = [
        Rule(_same(relations, _Y, _X), (_same(relations, _X, _Y),), _NOWHERE),
        Rule(_same(relations, _X, _Z), (_same(relations, _X, _Y), _same(relations, _Y, _Z)), _NOWHERE),
    ]
    for relation in relations.values():
        if relation.name != SAME_AS and not relation.hidden:
            axioms += _replacement(relation, relations)
    return program.with_rules([*program.rules, *axioms])


def _same(relations: dict[str, Relation], left: Variable, right: Variable) -> Atom:
    if TRIPLE in relations:
        return Atom(relations[TRIPLE], (left, Constant(SAME_AS, Type.TERM), right))
    return Atom(relations[SAME_AS], (left, right))


def _replacement(relation: Relation, relations: dict[str, Relation]) -> Iterator[Rule]:
    """For each column of terms, that equal ones may stand for each other."""
    columns = [Variable(f"c{position}", type_) for position, type_ in enumerate(relation.types)]
    for position, type_ in enumerate(relation.types):
        if type_ is Type.TERM:
            before = [*columns[:position], _X, *columns[position + 1 :]]
            after = [*columns[:position], _Y, *columns[position + 1 :]]
            body = (Atom(relation, tuple(before)), _same(relations, _X, _Y))
            yield Rule(Atom(relation, tuple(after)), body, _NOWHERE)
