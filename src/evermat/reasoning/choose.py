"""`auto`: the algorithm for each stratum, from what the program and the change look like, and from how it goes.

What it goes by, in this order:

1. A stratum whose list of groups is recursive is rematerialised: no algorithm maintains it.
2. A change that reaches a large part of the facts below is cheaper to do from scratch.
3. Without recursive rules every algorithm with counters does what Counting does; without counters DRed is as good.
4. Where rules close a relation, modules do it: B/F^c-Mod deletes exactly, and what it costs to close again lies in what has changed.
   It is given up like others.
5. Where nothing is deleted, insertion is the same for all: the one is taken that keeps the counters that there are.
6. Recursive rules and deletions: how much depends on a fact cannot be seen beforehand. So the cheapest algorithm is attempted, and given up when
   it has considered too many instances, measured by those of a materialisation from scratch: first DRed^c, if its counters are
   valid, which is best where little is overdeleted; then B/F, with its counter if that is valid, which checks before it deletes and on dense data saves most
   of what DRed overdeletes and derives again; at last rematerialisation.
7. Where a recursive rule computes values, a fact has many facts that could derive it and few that do: checking backwards is expensive, and DRed
   takes the place of B/F.
8. Where equal terms are represented by one, B/F≈ does it, and rematerialisation with rewriting where that considers too many instances.
"""

from __future__ import annotations

from evermat.algebra import Counters, StratumRules, Update
from evermat.language import Apply, Atom, Negation, Test
from evermat.reasoning.maintain import Attempt, Choice, fixed_choice

_LARGE = 0.4  # a change of this share of the facts that a stratum reads is done from scratch
_LARGE_FOR_CLOSURES = 0.1  # the same where rules close a relation, if something is lost: to close again costs little

# When attempts are given up: shares of the instances of a materialisation from scratch.
_MOST_FOR_DRED = 0.03
_MOST_FOR_BF = 1.5
_FEW = 50_000  # instances, which are considered before anybody notices


def choose_attempts(update: Update, stratum: StratumRules) -> list[Attempt]:
    """What to attempt for one stratum."""
    first = _first_choice(update, stratum)
    if first is not None:
        return [Attempt(first)]
    what, valid = stratum.stratum, update.state.valid_counters(stratum.stratum)
    if what.equality:
        return _equality_attempts(update, stratum)
    if stratum.closures:
        return _modular_attempts(update, stratum)
    computes = any(isinstance(literal, Test) and _computes(literal) for rule in what.recursive for literal in rule.body)
    work = update.state.work(what)
    few = max(_FEW, int(_MOST_FOR_DRED * work))
    attempts = []
    if valid is Counters.BOTH:
        choice = Choice(what, "dred-c", valid, "recursive rules and deletions, and all derivations are counted")
        attempts.append(Attempt(choice, few))
    elif computes:
        reason = "a recursive rule computes values, which makes checking backwards expensive"
        attempts.append(Attempt(Choice(what, "dred", valid, reason), few))
    if not computes:
        many = max(_FEW, int(_MOST_FOR_BF * work))
        counted = valid >= Counters.NONRECURSIVE
        reason = "nonrecursive derivations are counted" if counted else "derivations are not counted"
        choice = Choice(what, "bf-c" if counted else "bf", valid, f"recursive rules and deletions, and {reason}")
        attempts.append(Attempt(choice, many))
    attempts.append(Attempt(Choice(what, "remat", valid, f"from scratch there are about {work:,} instances")))
    return attempts


def _modular_attempts(update: Update, stratum: StratumRules) -> list[Attempt]:
    """What to attempt where rules close a relation."""
    what, state = stratum.stratum, update.state
    valid, work = state.valid_counters(what), state.work(what)
    closed = "rules close a relation"
    if not _loses(update, stratum) and valid is Counters.MODULAR:
        reason = f"{closed}; nothing can be lost, so that counters stay valid"
        return [Attempt(Choice(what, "dred-c-mod", valid, reason))]
    return [
        Attempt(Choice(what, "bf-c-mod", valid, closed), max(_FEW, int(_MOST_FOR_BF * work))),
        Attempt(Choice(what, "remat", valid, f"from scratch there are about {work:,} instances")),
    ]


def _equality_attempts(update: Update, stratum: StratumRules) -> list[Attempt]:
    """What to attempt where equal terms are represented by one."""
    what, work = stratum.stratum, update.state.work(stratum.stratum)
    first = fixed_choice(update.state, stratum, "bf-eq")
    again = Choice(what, "remat-eq", Counters.NONE, f"from scratch there are about {work:,} instances")
    if first.algorithm == "remat-eq" or not _loses(update, stratum):
        return [Attempt(first)]
    share = _changed_share(update, stratum)
    if share > _LARGE:
        return [Attempt(Choice(what, "remat-eq", Counters.NONE, f"{share:.0%} of what the stratum reads has changed"))]
    return [Attempt(first, max(_FEW, int(_MOST_FOR_BF * work))), Attempt(again)]


def _first_choice(update: Update, stratum: StratumRules) -> Choice | None:
    """The algorithm, if it follows from the program and the change."""
    what, state = stratum.stratum, update.state
    valid = state.valid_counters(what)
    if what.equality:
        return None
    if any(rule.aggregate for rule in what.recursive) or any(closure.only_recomputed for closure in stratum.closures):
        return fixed_choice(state, stratum, "remat")
    share = _changed_share(update, stratum)
    if share > (_LARGE_FOR_CLOSURES if stratum.closures and _loses(update, stratum) else _LARGE):
        return Choice(what, "remat", valid, f"{share:.0%} of what the stratum reads has changed")
    if not what.recursive or stratum.stores:
        if valid >= Counters.NONRECURSIVE:
            return Choice(what, "counting", valid, "no recursive rules, and derivations are counted")
        return Choice(what, "dred", valid, "no recursive rules, and derivations are not counted")
    if stratum.closures:
        return None
    if not _loses(update, stratum):
        name = {Counters.NONE: "dred", Counters.NONRECURSIVE: "bf-c", Counters.BOTH: "dred-c"}[valid]
        return Choice(what, name, valid, "nothing can be lost: insertion only, keeping the counters that are valid")
    return None


def _computes(test: Test) -> bool:
    return test.operator == "=" and (isinstance(test.left, Apply) or isinstance(test.right, Apply))


def _changed_share(update: Update, stratum: StratumRules) -> float:
    """How much of the facts that a stratum reads from below, or has explicitly, changes."""
    own = set(stratum.stratum.relations)
    below = stratum.stratum.reads - own
    changed = sum(s.about(n) for s in (update.overdeleted, update.added) for n in s.names if n in below)
    changed += sum(s.count(n) for s in (update.deleted, update.inserted) for n in s.names if n in own)
    total = sum(update.state.materialised.about(n) for n in below)
    total += sum(update.state.explicit.count(n) for n in own)
    return changed / max(total, 1) if changed > 1000 else 0.0


def _loses(update: Update, stratum: StratumRules) -> bool:
    """Whether an instance can be lost: something positive is deleted, or something negated comes."""
    own = set(stratum.stratum.relations)
    if not own.isdisjoint([*update.deleted.names, *update.doubtful.names]):
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
