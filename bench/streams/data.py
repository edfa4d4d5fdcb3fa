"""The streams: those of the paper, read or drawn; roads around a car; facts of which a share goes soon; and policies that change all the time. What is drawn is the same each time."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bench.streams import programs
from bench.workloads import Rows

Facts: TypeAlias = dict[str, list[tuple[Any, ...]]]


class Change(NamedTuple):
    """An update: what comes and what goes, by relation. What comes is not there before, what goes is."""

    insert: Facts
    delete: Facts


@dataclass(frozen=True)
class Stream:
    """A program without facts, and updates. The first fills it; it is done before the others are there."""

    program: str
    rules: str
    """The rules alone."""
    derived: tuple[str, ...]
    changes: list[Change]
    expected: list[int] | None = None
    """How many derived facts there are after each update, where that is known from elsewhere."""
    source: str = ""
    """Where it is from, in words."""


def share_inserted_before(changes: Sequence[Change]) -> float:
    """Which share of what updates delete the update before had inserted, from the third on: for the second nobody can look ahead."""
    gone = [
        (set(rows), set(before.insert.get(name, ())))
        for before, change in pairwise(changes[1:])
        for name, rows in change.delete.items()
    ]
    return sum(len(rows & new) for rows, new in gone) / max(sum(len(rows) for rows, _ in gone), 1)


# --- the paper's edges -------------------------------------------------------------------------------------

MARKING, COUNTS = "marking", "EXPECTED-COUNTS.tsv"
UPDATES, FIRST = 50, 100
TRANS, SEQ = "trans", "seq"
NODES = {TRANS: 20, SEQ: 100}
EDGES = {
    TRANS: (programs.TRANS, programs.TRANS_RULES, ("path",)),
    SEQ: (programs.SEQ, programs.SEQ_RULES, ("edge1", "edge2", "edge3", "edge4")),
}
SHARE = 0.45  # of what is deleted, so much was inserted just before: about that of the streams that are read


def edges(kind: str, size: int, folder: str | None, updates: int = UPDATES) -> Stream:
    """The stream of a program whose updates have a size: read if the folder has it, or drawn."""
    program, rules, derived = EDGES[kind]
    files = sorted((Path(folder) / MARKING).glob(f"{kind}_*_u{size:02d}.tsv")) if folder else []
    if not files:
        changes = [Change({"edge": plus}, {"edge": minus}) for plus, minus in drawn_edges(NODES[kind], size, updates)]
        return Stream(program, rules, derived, changes, source="drawn at random")
    changes = read_edges(files[0])
    counts = read_counts(files[0].with_name(COUNTS), files[0].name)
    return Stream(program, rules, derived, changes[:updates], counts[:updates], f"`{files[0].name}`")


def read_edges(file: Path) -> list[Change]:
    """Lines of step, + or -, and the two ends of an edge."""
    steps: dict[int, Change] = {}
    with file.open(encoding="ascii") as lines:
        for step, sign, x, y in csv.reader(lines, delimiter="\t"):
            change = steps.setdefault(int(step), Change({"edge": []}, {"edge": []}))
            change[sign == "-"]["edge"].append((int(x), int(y)))
    return [steps[step] for step in sorted(steps)]


def read_counts(file: Path, name: str) -> list[int]:
    """How many facts are derived after each step of a file."""
    with file.open(encoding="ascii") as lines:
        found = [row for row in csv.reader(lines, delimiter="\t") if row[0] == name]
    return [int(row[-1]) for row in sorted(found, key=lambda row: int(row[1]))]


def drawn_edges(nodes: int, size: int, updates: int, seed: int = 0) -> Iterator[tuple[list[Any], list[Any]]]:
    """Updates with as many new edges as there were drawn that are not there, and as many old ones."""
    rng = np.random.default_rng((seed, nodes, size))
    there: dict[tuple[int, int], None] = {}
    last: list[tuple[int, int]] = []
    for number in range(updates):
        pairs = dict.fromkeys(map(tuple, rng.integers(0, nodes, (size if number else FIRST, 2)).tolist()))
        plus = [pair for pair in pairs if pair not in there]
        recent = rng.permutation(len(last))[: int(SHARE * size)]
        minus = [last[i] for i in recent.tolist()]
        older = [pair for pair in there if pair not in set(last)]
        minus += [older[i] for i in rng.permutation(len(older))[: size - len(minus)].tolist()] if number else []
        for pair in minus:
            del there[pair]
        there |= dict.fromkeys(plus)
        last = plus
        yield plus, minus


# --- roads -------------------------------------------------------------------------------------------------

#: updates, and metres from one to the next on average: as many facts come and go, as on the paper's tracks
TRACKS = {55: 17.0, 83: 13.5, 114: 8.5}
SIGHT = 50.0  # metres
TOWN, BLOCK, POINTS = 2_400, 40, 5  # metres: of a side of the town, between streets, between nodes of a street


def roads(seed: int = 0) -> tuple[Rows, Rows]:
    """The ways of a town whose streets are a grid: node, next node and way; and where each begins, in metres.

    A street is many ways, one after the other, of two to twelve blocks' quarters. Where streets cross they have a node in common.
    """
    rng = np.random.default_rng(seed)
    side, step = TOWN // POINTS + 1, BLOCK // POINTS
    node = np.arange(side * side).reshape(side, side)
    parts, places, ways = [], [], 0
    for street in range(0, side, step):
        for line, across in ((node[street], False), (node[:, street], True)):
            ends = np.cumsum(rng.integers(step // 2, 4 * step, side))
            way = ways + np.searchsorted(ends, np.arange(side - 1), side="right")
            ways = int(way[-1]) + 1
            if rng.random() < 0.5:  # drawn from the other end
                line, way = line[::-1], way[::-1]
            parts.append(np.c_[line[:-1], line[1:], way])
            along = np.arange(side)[:: 1 if line[0] < line[-1] else -1][:-1] * POINTS
            fixed = np.full(side - 1, street * POINTS)
            places.append(np.c_[fixed, along] if across else np.c_[along, fixed])
    return np.concatenate(parts), np.concatenate(places)


def drive(updates: int, metres: float, seed: int = 0) -> Stream:
    """What a car sees: at each place of its track the ways near it. It turns a little all the time, and is slow or quick."""
    rows, places = roads()
    rng = np.random.default_rng((seed, updates))
    here, heading = np.array([TOWN / 2, TOWN / 2]), rng.random() * 2 * np.pi
    seen: dict[tuple[int, ...], None] = {}
    changes = []
    for _ in range(updates):
        near = ((places - here) ** 2).sum(axis=1) < SIGHT**2
        now = dict.fromkeys(map(tuple, rows[near].tolist()))
        plus, minus = [row for row in now if row not in seen], [row for row in seen if row not in now]
        changes.append(Change({"nextInWay": plus}, {"nextInWay": minus}))
        seen = now
        here = here + metres * rng.uniform(0.3, 1.7) * np.array([np.cos(heading), np.sin(heading)])
        heading += rng.normal(0, 0.25)
    return Stream(programs.MAP, programs.MAP_RULES, ("connection",), changes, source="drawn at random")


# --- facts that go soon ------------------------------------------------------------------------------------

GRANTS = "grants"
GROUPS, RESOURCES, SENSITIVE = 1_000, 20, 5


@dataclass(frozen=True)
class Shared:
    """A program, its facts, and updates of one of its relations. All updates are there from the beginning."""

    program: str
    facts: Facts
    changes: list[Change]

    @property
    def after(self) -> Facts:
        """The facts that are given, after the last update."""
        there = {name: dict.fromkeys(rows) for name, rows in self.facts.items()}
        for change in self.changes:
            for name, rows in change.delete.items():
                for row in rows:
                    del there[name][row]
            for name, rows in change.insert.items():
                there[name] |= dict.fromkeys(rows)
        return {name: list(rows) for name, rows in there.items()}


def shared(kind: str, size: int, share: float, updates: int, scale: float = 1.0) -> Shared:
    """Copies of edges, or members of groups: updates insert as many as they delete, but for the first, which deletes nothing."""
    if kind == SEQ:
        base, changes = going_soon(int(100_000 * scale), 1_000_000, size, share, updates)
        return Shared(programs.SEQ, {"edge": base}, [Change({"edge": p}, {"edge": m}) for p, m in changes])
    groups = int(GROUPS * scale)
    base, changes = going_soon(int(20_000 * scale), groups, size, share, updates)
    facts: Facts = {
        "member": base,
        "grants": [(group, resource) for group in range(groups) for resource in range(RESOURCES)],
        "sensitive": [(resource,) for resource in range(SENSITIVE)],
    }
    return Shared(programs.GRANTS, facts, [Change({"member": p}, {"member": m}) for p, m in changes])


SHARED = (SEQ, GRANTS)

Pairs: TypeAlias = list[tuple[int, int]]


def going_soon(
    base: int, rights: int, size: int, share: float, updates: int, seed: int = 0
) -> tuple[Pairs, list[tuple[Pairs, Pairs]]]:
    """Pairs, and updates of them: of what one deletes a share was inserted by the one before, the rest is older. No pair comes twice."""
    rng = np.random.default_rng((seed, base, size, round(100 * share)))
    count = base + size * updates
    drawn = list(zip(rng.permutation(count).tolist(), rng.integers(0, rights, count).tolist(), strict=True))
    older, last = drawn[:base], drawn[:0]
    made = []
    for begin in range(base, count, size):
        soon = round(share * len(last))
        places = set(rng.choice(len(older), len(last) - soon, replace=False).tolist())
        minus = last[:soon] + [older[place] for place in sorted(places)]
        older = [pair for place, pair in enumerate(older) if place not in places] + last[soon:]
        last = drawn[begin : begin + size]
        made.append((last, minus))
    return drawn[:base], made


# --- policies ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Policy:
    """A program, its facts, and what may change: others like them, of which as many are there at any time."""

    program: str
    facts: Mapping[str, Rows]
    spare: Mapping[str, Rows]
    """Facts of the relations that change that are not there in the beginning."""
    names: Mapping[str, str]
    """What the terms of each relation are, as the first letters of their names."""
    weights: Mapping[str, float]
    """Which share of an update is of which relation."""

    def named(self, relation: str, rows: Rows) -> list[tuple[str, ...]]:
        """Rows as users have them."""
        letters = self.names[relation]
        return [tuple(f"{letter}{value}" for letter, value in zip(letters, row, strict=True)) for row in rows.tolist()]


class Churn:
    """Updates of a policy, each with as many facts inserted as deleted, at random."""

    def __init__(self, policy: Policy, seed: int = 0) -> None:
        self._policy = policy
        self._rng = np.random.default_rng(seed)
        self.there: dict[str, Rows] = {name: rows.copy() for name, rows in policy.facts.items()}
        self._spare = {name: rows.copy() for name, rows in policy.spare.items()}

    def take(self, size: int) -> Change:
        """An update of so many facts, half of them inserted; from now on they are there."""
        change = Change({}, {})
        weights = self._policy.weights
        for relation, count in zip(
            weights, self._rng.multinomial(size // 2, [*weights.values()]).tolist(), strict=True
        ):
            there, spare = self.there[relation], self._spare[relation]
            going = self._rng.choice(len(there), count, replace=False)
            coming = self._rng.choice(len(spare), count, replace=False)
            there[going], spare[coming] = spare[coming], there[going]
            change.insert[relation] = self._policy.named(relation, there[going])
            change.delete[relation] = self._policy.named(relation, spare[coming])
        return change


FLAT, NESTED = "flat", "nested"


def pairs(rng: np.random.Generator, lefts: int, rights: int, count: int) -> Rows:
    """Distinct pairs at random."""
    return np.stack(np.divmod(rng.choice(lefts * rights, count, replace=False), rights), axis=1)


def apart(rows: Rows, share: float = 0.5) -> tuple[Rows, Rows]:
    """The first part, and the rest."""
    return rows[: int(share * len(rows))], rows[int(share * len(rows)) :]


def flat(scale: float = 1.0) -> Policy:
    """Users with two roles each, roles that may read four folders. A million facts at scale 1."""
    rng = np.random.default_rng(0)
    users, roles, folders = int(55_000 * scale), max(int(1_000 * scale), 10), max(int(2_000 * scale), 20)
    member, more_members = apart(pairs(rng, users, roles, 4 * users))
    grant, more_grants = apart(pairs(rng, roles, folders, 8 * roles))
    some = rng.permutation(users)[:, None]
    return Policy(
        programs.FLAT,
        {
            "member": member,
            "grant": grant,
            "suspended": some[: users // 100],
            "cleared": some[-users // 3 :],
            "secret": rng.permutation(folders)[: folders // 10, None],
        },
        {"member": more_members, "grant": more_grants},
        {"member": "ur", "grant": "rf", "suspended": "u", "cleared": "u", "secret": "f"},
        {"member": 0.96, "grant": 0.04},
    )


def nested(scale: float = 1.0) -> Policy:
    """Users in two small groups each, within larger ones. All but the largest groups may open folders, and what is in them. A million facts at scale 1."""
    rng = np.random.default_rng(0)
    users, groups, folders = int(26_000 * scale), max(int(2_000 * scale), 30), max(int(12_000 * scale), 60)
    small, leaves = np.arange(groups // 6, groups), np.arange(folders // 6, folders)
    granted, opened = (np.arange(size // 36, until) for size, until in ((groups, groups), (folders, folders // 6)))

    def tree(size: int) -> Rows:
        """Each within one of those before it, about six of them in one: the last five sixths have nothing in them."""
        child = np.arange(1, size)
        return np.c_[child, (child - 1) // 6]

    member, more_members = apart(pairs(rng, users, len(small), 4 * users) + np.array([0, small[0]]))
    some = pairs(rng, len(granted), len(opened), 2 * groups)
    grant, more_grants = apart(some + np.array([granted[0], opened[0]]))
    private, more_private = apart(rng.permutation(leaves)[: len(leaves) // 5, None])
    return Policy(
        programs.NESTED,
        {
            "member": member,
            "within": tree(groups),
            "grant": grant,
            "inside": tree(folders),
            "private": private,
        },
        {"member": more_members, "grant": more_grants, "private": more_private},
        {"member": "ug", "within": "gg", "grant": "gf", "inside": "ff", "private": "f"},
        {"member": 0.92, "grant": 0.04, "private": 0.04},
    )


POLICIES = {FLAT: flat, NESTED: nested}
