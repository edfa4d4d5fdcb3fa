"""Takes out rules that hand on what is known anyway.

`Chair ≡ Person ⊓ ∃headOf.Department` says of a chair that there is such a department, and of a person with one that this is a
chair. Handing on what is known from the one to the other would say that a chair is a chair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from evermat.owl.rules.hierarchy import Hierarchy
from evermat.owl.rules.model import Helper, Member, Rule


def without_idle_rules(rules: Iterable[Rule], names: Collection[str], hierarchy: Hierarchy) -> list[Rule]:
    """The rules but for those over the relations `names`, of one column, from which nothing new follows."""
    kept = list(rules)
    while True:
        asking: dict[str, list[Rule]] = {}
        for rule in kept:
            for atom in rule.body:
                if isinstance(atom, Helper):
                    asking.setdefault(atom.name, []).append(rule)
        rest = [rule for rule in kept if not _is_idle(rule, names, asking, hierarchy)]
        made = {rule.head.name for rule in rest if isinstance(rule.head, Helper)}
        empty = {name for name in names if name not in made}
        rest = [rule for rule in rest if not any(isinstance(a, Helper) and a.name in empty for a in rule.body)]
        if len(rest) == len(kept):
            return kept
        kept = rest


def _is_idle(rule: Rule, names: Collection[str], asking: dict[str, list[Rule]], hierarchy: Hierarchy) -> bool:
    """Whether a rule makes a fact of one of the relations from which only follows what the rule needs itself."""
    if not isinstance(rule.head, Helper) or rule.head.name not in names:
        return False
    name, (term,) = rule.head.name, rule.head.terms
    classes = {atom.name for atom in rule.body if isinstance(atom, Member) and atom.term == term}
    wider = {other for class_ in classes for other in (class_, *hierarchy.names_above(class_))}
    return all(
        isinstance(other.head, Member) and other.head.name in wider and Helper(name, (other.head.term,)) in other.body
        for other in asking.get(name, ())
    )
