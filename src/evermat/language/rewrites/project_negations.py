"""Negated atoms with `_`: `!edge(x, _)` becomes `!p(x)` with `p(x) :- edge(x, _)`; `p` is called `edge[x]`.

Afterwards a negated atom stands for exactly one fact under every binding, as the maintenance algorithms need it.
"""

from __future__ import annotations

from dataclasses import replace

from evermat.core import Problems, Span
from evermat.language.model import ANYTHING, Atom, Literal, Negation, Program, Relation, Rule, Variable, Wildcard


def project_negations(program: Program, _problems: Problems) -> Program:
    """Names the projection of a relation wherever a negation asks for one."""
    made: dict[str, Relation] = {}
    extra: list[Rule] = []

    def project(atom: Atom, span: Span) -> Atom:
        kept = [i for i, term in enumerate(atom.terms) if not isinstance(term, Wildcard)]
        columns = tuple(atom.relation.columns[i] for i in kept)
        name = f"{atom.relation.name}[{','.join(c.name for c in columns)}]"
        if name not in made:
            made[name] = Relation(name, columns, hidden=True, origin=atom.relation.shown)
            variables = {i: Variable(atom.relation.columns[i].name, atom.relation.columns[i].type) for i in kept}
            whole = Atom(atom.relation, tuple(variables.get(i, ANYTHING) for i in range(atom.relation.arity)))
            extra.append(Rule(Atom(made[name], tuple(variables.values())), (whole,), span))
        return Atom(made[name], tuple(atom.terms[i] for i in kept))

    def rewrite(literals: tuple[Literal, ...], span: Span) -> tuple[Literal, ...]:
        return tuple(
            Negation(project(literal.atom, span))
            if isinstance(literal, Negation) and _has_wildcard(literal)
            else literal
            for literal in literals
        )

    rules = []
    for rule in program.rules:
        aggregate = rule.aggregate
        if not any(isinstance(literal, Negation) and _has_wildcard(literal) for literal in rule.literals):
            rules.append(rule)
            continue
        if aggregate is not None:
            aggregate = replace(aggregate, alternatives=(rewrite(aggregate.body, rule.span),))
        rules.append(Rule(rule.head, rewrite(rule.body, rule.span), rule.span, aggregate))
    return program.with_rules([*rules, *extra], made.values()) if extra else program


def _has_wildcard(literal: Negation) -> bool:
    return any(isinstance(term, Wildcard) for term in literal.atom.terms)
