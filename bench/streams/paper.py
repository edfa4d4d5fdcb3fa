"""Algorithm 1 of *Backward/Forward with marking for update streams*, one fact and one rule application at a time.

It is here to count what the paper counts. Sets keep the order in which facts came, and what the paper leaves open is taken in that order. There are three ways:

- `OFF`: B/F; the next update is not looked at.
- `PRINTED`: W begins with the marked facts, as in line 32.
- `ORDERED`: W begins empty; a marked fact that block c comes to enters W without the rule being applied. All is done in the order of B/F, so no update costs more.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

OFF, PRINTED, ORDERED = "off", "printed", "ordered"
WAYS = (OFF, PRINTED, ORDERED)

Fact: TypeAlias = tuple[object, ...]
"""The name of a relation, and its arguments. An atom is written the same way, with variables."""


class Rule(NamedTuple):
    """A rule; all terms are variables."""

    head: Fact
    body: tuple[Fact, ...]
    different: tuple[tuple[str, str], ...]


class Instance(NamedTuple):
    """A rule whose variables have values."""

    rule: int
    head: Fact
    body: tuple[Fact, ...]


@dataclass
class Count:
    """Rule applications of one update: lines 23, 20, 11 and 28; and the facts that are marked for the next."""

    deletions: int = 0
    backward: int = 0
    forward: int = 0
    insertions: int = 0
    explicit: int = 0
    implicit: int = 0

    @property
    def applications(self) -> int:
        return self.deletions + self.backward + self.forward + self.insertions


def rules_of(text: str) -> list[Rule]:
    """Rules that are written plainly: atoms over variables, and `!=`."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        head, *body = (
            (name, *(term.strip() for term in terms.split(",")))
            for name, terms in re.findall(r"(\w+)\(([^)]*)\)", line)
        )
        found.append(Rule(head, tuple(body), tuple(re.findall(r"(\w+) != (\w+)", line))))
    return found


class Instances:
    """ρ(P, I): the facts, and all instances of rules over them."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self.implicit = {rule.head[0] for rule in rules}
        self.facts: dict[Fact, None] = {}
        self.by_head: defaultdict[Fact, dict[Instance, None]] = defaultdict(dict)
        self.by_body: defaultdict[Fact, dict[Instance, None]] = defaultdict(dict)
        self._having: defaultdict[tuple[object, ...], dict[Fact, None]] = defaultdict(dict)

    def add(self, fact: Fact) -> Iterator[Instance]:
        """Adds a fact that is not there; the instances that there are now because of it."""
        self.facts[fact] = None
        for key in self._keys(fact):
            self._having[key][fact] = None
        for number, rule in enumerate(self._rules):
            for place, atom in enumerate(rule.body):
                for values in self._join([*rule.body[:place], *rule.body[place + 1 :]], _match(atom, fact, {})):
                    if any(values[x] == values[y] for x, y in rule.different):
                        continue
                    one = Instance(number, _with(rule.head, values), tuple(_with(a, values) for a in rule.body))
                    if one not in self.by_head[one.head]:  # which it is if the fact is twice in the body
                        self.by_head[one.head][one] = None
                        for part in one.body:
                            self.by_body[part][one] = None
                        yield one

    def remove(self, fact: Fact) -> None:
        """Removes a fact and the instances with it in their bodies."""
        del self.facts[fact]
        for key in self._keys(fact):
            del self._having[key][fact]
        for one in self.by_body.pop(fact, ()):
            del self.by_head[one.head][one]
            for part in set(one.body) - {fact}:
                del self.by_body[part][one]

    @staticmethod
    def _keys(fact: Fact) -> Iterator[tuple[object, ...]]:
        yield fact[:1]
        yield from ((fact[0], place, value) for place, value in enumerate(fact[1:], 1))

    def _join(self, atoms: list[Fact], values: dict[object, object] | None) -> Iterator[dict[object, object]]:
        """All ways to find atoms among the facts."""
        if values is None:
            return
        if not atoms:
            yield values
            return
        atom, *rest = atoms
        known = ((atom[0], place, values[term]) for place, term in enumerate(atom[1:], 1) if term in values)
        for fact in list(self._having[next(known, atom[:1])]):
            yield from self._join(rest, _match(atom, fact, values))


def _match(atom: Fact, fact: Fact, values: dict[object, object]) -> dict[object, object] | None:
    if atom[0] != fact[0]:
        return None
    found = dict(values)
    for term, value in zip(atom[1:], fact[1:], strict=True):
        if found.setdefault(term, value) != value:
            return None
    return found


def _with(atom: Fact, values: dict[object, object]) -> Fact:
    return (atom[0], *(values[term] for term in atom[1:]))


class Stream:
    """A materialisation that is updated, each time with a look at the next update."""

    def __init__(self, rules: Sequence[Rule], way: str = PRINTED) -> None:
        self.i = Instances(rules)
        self._way = way
        self._marked: dict[Fact, None] = {}  # implicit facts that the update before has marked

    def update(self, delete: Iterable[Fact], insert: Iterable[Fact], next_delete: Iterable[Fact] = ()) -> Count:
        """One update: facts that are there, facts that are not, and what the next update, if it is known, deletes."""
        self._count = Count()
        insert = list(insert)
        ahead = () if self._way == OFF else next_delete
        self._leaving = {fact for fact in ahead if fact in self.i.facts or fact in insert}  # line 9
        before, self._marked = self._marked, {}
        self._delete(list(delete), before)
        self._insert(insert)
        self._count.explicit, self._count.implicit = len(self._leaving), len(self._marked)
        return self._count

    def _mark(self, one: Instance) -> None:
        """Lines 12 and 29. Explicit facts alone hand marks on."""
        if any(fact in self._leaving for fact in one.body):
            self._marked[one.head] = None

    def _delete(self, going: list[Fact], marked: dict[Fact, None]) -> None:
        """Phase 1."""
        self._d = dict.fromkeys(going)
        self._c: dict[Fact, None] = {}
        self._v: dict[Fact, None] = {}
        self._y: dict[Fact, None] = {}
        self._w: dict[Fact, None] = dict(marked) if self._way == PRINTED else {}
        self._provable: deque[Instance] = deque()  # instances with a fact that has entered V
        self._check()
        pending = deque(going)
        while pending:
            while pending:
                for one in self.i.by_body[pending.popleft()]:  # block c, line 23
                    if one.head not in self._w and one.head not in self._c:
                        if self._way != ORDERED or one.head not in marked:
                            self._count.deletions += 1
                        self._w[one.head] = None
                        self._check()
            disproved = [fact for fact in self._c if fact not in self._v and fact not in self._d]
            self._d |= dict.fromkeys(disproved)  # block d
            pending.extend(disproved)
        for fact in self._d:  # block e
            self.i.remove(fact)

    def _check(self) -> None:
        """Blocks a and b, until nothing waits."""
        while True:
            if self._provable:
                one = self._provable.popleft()
                if self._v.keys() >= set(one.body) and one.head not in self._v and one.head not in self._y:  # line 11
                    self._count.forward += 1
                    self._mark(one)
                    if one.head in self._w or one.head in self._c:
                        self._prove(one.head)
                    else:
                        self._y[one.head] = None
            elif self._w:
                fact = next(reversed(self._w))
                if (fact[0] not in self.i.implicit and fact not in self._d) or fact in self._y:  # line 18
                    self._prove(fact)
                elif body := next(filter(None, map(self._unchecked, self.i.by_head[fact])), None):  # line 20
                    self._count.backward += 1
                    self._w |= body
                else:
                    self._c[fact] = None
                    del self._w[fact]
            else:
                return

    def _unchecked(self, one: Instance) -> dict[Fact, None]:
        """Facts of a body without deleted ones that wait to be checked."""
        if any(fact in self._d for fact in one.body):
            return {}
        return dict.fromkeys(fact for fact in one.body if fact not in self._w and fact not in self._c)

    def _prove(self, fact: Fact) -> None:
        self._v[fact] = self._c[fact] = None
        self._w.pop(fact, None)
        self._provable.extend(self.i.by_body[fact])

    def _insert(self, coming: list[Fact]) -> None:
        """Phase 2."""
        found = deque(one for fact in coming for one in self.i.add(fact))
        while found:
            one = found.popleft()
            if one.head not in self.i.facts:  # line 28
                self._count.insertions += 1
                self._mark(one)
                found.extend(self.i.add(one.head))
