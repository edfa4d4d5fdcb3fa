"""Pivots: a column of each relation of a recursive stratum that all recursive rules keep unchanged.

    path(x, z) :- path(x, y), edge(y, z).      the first column of `path` is a pivot

Facts with different values in it never meet in an instance of a recursive rule, and the head has the value of the body.
So the fixpoint can be computed for each value by itself, and the union is the whole.

Each recursive atom of a rule says which pairs of columns, of the head's relation and of its own, hold the same variable;
the choice must take one of these pairs everywhere. While no variable stands twice in an atom, a column of one relation
decides about all that it is linked to. Where one does, there is a choice to make and perhaps to take back, and no quick
way is known (3-colouring can be written so); the search is given up after so many dead ends that no written program
comes near. Then there may be a pivot that is not found, which costs speed, never answers.
"""

from __future__ import annotations

from evermat.language import Atom, Stratum, Variable

Columns = frozenset[int]
Pairs = frozenset[tuple[int, int]]

_DEAD_ENDS = 1_000


def pivots(stratum: Stratum) -> dict[str, int] | None:
    """For each relation of a recursive stratum the column that all its recursive rules keep, or None if there is no such choice.

    Of several choices it is the one with the lowest columns, earlier relations first. A stratum without recursive rules
    has nothing to keep: None. So has one where a recursive rule aggregates.
    """
    if not stratum.recursive or any(rule.aggregate for rule in stratum.recursive):
        return None
    members = set(stratum.relations)
    columns: dict[str, Columns] = {}
    links: dict[tuple[str, str], Pairs] = {}
    for rule in stratum.recursive:
        for atom in (a for a in rule.body if isinstance(a, Atom) and a.relation.name in members):
            for relation in (rule.head.relation, atom.relation):
                columns.setdefault(relation.name, frozenset(range(relation.arity)))
            ends = (rule.head.relation.name, atom.relation.name)
            pairs = _pairs(rule.head, atom)
            links[ends] = links[ends] & pairs if ends in links else pairs
    order = [name for name in stratum.relations if name in columns]
    return _Search(order, columns, links).first()


def _pairs(head: Atom, atom: Atom) -> Pairs:
    """The columns of the head and of a body atom that hold the same variable; equal constants do not count."""
    return frozenset(
        (i, j)
        for i, term in enumerate(head.terms)
        if isinstance(term, Variable)
        for j, other in enumerate(atom.terms)
        if term == other
    )


class _Search:
    """The columns that each relation may still have as its pivot; every one of them has a partner at each link.

    What was narrowed is kept in `_narrowed`, so that a guess can be taken back without copies.
    """

    def __init__(self, order: list[str], columns: dict[str, Columns], links: dict[tuple[str, str], Pairs]) -> None:
        self._order = order
        self._columns = columns
        self._narrowed: list[tuple[str, Columns]] = []
        self._partners: dict[str, list[tuple[str, Pairs]]] = {name: [] for name in order}
        for (head, other), pairs in links.items():
            if head == other:  # one relation has one pivot
                columns[head] &= frozenset(i for i, j in pairs if i == j)
            else:
                self._partners[head].append((other, pairs))
                self._partners[other].append((head, frozenset((j, i) for i, j in pairs)))

    def first(self) -> dict[str, int] | None:
        """The first choice that agrees with all links."""
        guesses: list[tuple[int, int, list[int]]] = []  # a place in the order, what was narrowed before, what to try
        dead_ends = 0
        place = 0
        possible = self._follow(self._order)
        while True:
            if possible:
                while place < len(self._order) and len(self._columns[self._order[place]]) == 1:
                    place += 1
                if place == len(self._order):
                    return {name: min(self._columns[name]) for name in self._order}
                guesses.append((place, len(self._narrowed), sorted(self._columns[self._order[place]], reverse=True)))
            else:
                dead_ends += 1
            while guesses and not guesses[-1][2]:
                guesses.pop()
            if not guesses or dead_ends > _DEAD_ENDS:
                return None
            place, narrowed, untried = guesses[-1]
            while len(self._narrowed) > narrowed:
                name, columns = self._narrowed.pop()
                self._columns[name] = columns
            name = self._order[place]
            self._narrow(name, frozenset([untried.pop()]))
            possible = self._follow([name])

    def _follow(self, changed: list[str]) -> bool:
        """Narrows all that is linked to the changed relations, and so on; False if some relation is left without columns."""
        waiting = dict.fromkeys(changed)
        while waiting:
            name, _ = waiting.popitem()
            own = self._columns[name]
            for other, pairs in self._partners[name]:
                left = self._columns[other] & {j for i, j in pairs if i in own}
                if not left:
                    return False
                if left != self._columns[other]:
                    self._narrow(other, left)
                    waiting[other] = None
        return True

    def _narrow(self, name: str, columns: Columns) -> None:
        self._narrowed.append((name, self._columns[name]))
        self._columns[name] = columns
