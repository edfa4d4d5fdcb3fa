"""What two programs have in common, and in what they differ. Tasks load this, so it needs nothing of the parser."""

from __future__ import annotations

from evermat.language.model import Program, Rule


def shared_relations(program: Program, other: Program) -> list[str]:
    """Relations of both programs; a hidden one may have the name of another that it replaces."""
    others = other.relations
    return [name for name, r in program.relations.items() if name in others and others[name].types == r.types]


def changed_rules(before: Program, after: Program) -> tuple[list[Rule], list[Rule]]:
    """The rules that a program has no more after a revision, for relations that it still has, and those that it has in addition."""
    old, new = ({str(rule): rule for rule in program.rules} for program in (before, after))
    shared = set(shared_relations(after, before))
    gone = [rule for text, rule in old.items() if text not in new and rule.head.relation.name in shared]
    return gone, [rule for text, rule in new.items() if text not in old]
