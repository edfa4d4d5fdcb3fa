"""`auto`: the algorithm for each stratum, from what the program and the change look like.

What it goes by, in this order:

1. A stratum whose list of groups is recursive is rematerialised: no algorithm maintains it.
2. A change that reaches a large part of the facts below is cheaper to do from scratch.
3. Without recursive rules every algorithm with counters does what Counting does; without counters DRed is as good.
4. Where nothing is deleted, insertion is the same for all: the one is taken that keeps the counters that there are.
5. Where a recursive rule computes values, a fact has many facts that could derive it and few that do: checking backwards is dear, and DRed
   comes first, with its counters if both are valid.
6. Other recursive rules and deletions: B/F checks before it deletes, which on dense data saves most of what DRed overdeletes and derives
   again; it needs no recursive counter, and uses the other one where it is valid.
"""

from __future__ import annotations

from evermat.algebra import Counters, StratumRules, Update
from evermat.program.model import Apply, Atom, Negation, Test
from evermat.reasoning.maintenance import Choice, fixed_choice

_LARGE = 0.4  # a change of this share of the facts that a stratum reads is done from scratch


def choose(update: Update, stratum: StratumRules) -> Choice:
    """The algorithm for one stratum."""
    what, state = stratum.stratum, update.state
    valid = state.valid_counters(what)
    if any(rule.aggregate for rule in what.recursive):
        return fixed_choice(state, what, "remat")
    share = _changed_share(update, stratum)
    if share > _LARGE:
        return Choice(what, "remat", valid, f"{share:.0%} of what the stratum reads has changed")
    if not what.recursive:
        if valid >= Counters.NONRECURSIVE:
            return Choice(what, "counting", valid, "no recursive rules, and derivations are counted")
        return Choice(what, "dred", valid, "no recursive rules, and derivations are not counted")
    if not _loses(update, stratum):
        name = {Counters.NONE: "dred", Counters.NONRECURSIVE: "bf-c", Counters.BOTH: "dred-c"}[valid]
        return Choice(what, name, valid, "nothing can be lost: insertion only, keeping the counters that are valid")
    if any(isinstance(literal, Test) and _computes(literal) for rule in what.recursive for literal in rule.body):
        name = "dred-c" if valid >= Counters.BOTH else "dred"
        return Choice(what, name, valid, "a recursive rule computes values, which makes checking backwards dear")
    if valid >= Counters.NONRECURSIVE:
        return Choice(what, "bf-c", valid, "recursive rules and deletions, and nonrecursive derivations are counted")
    return Choice(what, "bf", valid, "recursive rules and deletions, and derivations are not counted")


def _computes(test: Test) -> bool:
    return test.operator == "=" and (isinstance(test.left, Apply) or isinstance(test.right, Apply))


def _relations(stratum: StratumRules) -> set[str]:
    """Own relations and those that the rules read."""
    names = set(stratum.stratum.relations)
    for rule in stratum.stratum.rules:
        for literal in rule.literals:
            if isinstance(literal, Atom):
                names.add(literal.relation.name)
            elif isinstance(literal, Negation):
                names.add(literal.atom.relation.name)
    return names


def _changed_share(update: Update, stratum: StratumRules) -> float:
    """How much of the facts that a stratum reads from below, or has explicitly, changes."""
    own = set(stratum.stratum.relations)
    below = _relations(stratum) - own
    changed = sum(s.count(n) for s in (update.overdeleted, update.added) for n in s.names if n in below)
    changed += sum(s.count(n) for s in (update.deleted, update.inserted) for n in s.names if n in own)
    total = sum(update.state.materialised.count(n) for n in below)
    total += sum(update.state.explicit.count(n) for n in own)
    return changed / max(total, 1) if changed > 1000 else 0.0


def _loses(update: Update, stratum: StratumRules) -> bool:
    """Whether an instance can be lost: something positive is deleted, or something negated comes."""
    own = set(stratum.stratum.relations)
    if not own.isdisjoint(update.deleted.names):
        return True
    gone, come = set(update.overdeleted.names), set(update.added.names)
    for rule in stratum.stratum.rules:
        for literal in rule.literals:
            if isinstance(literal, Atom) and literal.relation.name in gone:
                return True
            if isinstance(literal, Negation) and literal.atom.relation.name in come:
                return True
            if rule.aggregate is not None and isinstance(literal, Atom) and literal.relation.name in come:
                return True
    return False
