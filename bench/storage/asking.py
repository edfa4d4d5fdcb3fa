"""The queries of table 3, of any relation with two columns: by both arguments, by one, two atoms, all facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.checksum import mix
from bench.workloads import Rows
from evermat import Materialisation

ASKED = 100  # constants or pairs of constants for each kind, besides the first ones, which make indexes
FIRST = 5
TESTED = 2_000  # pairs that are looked for by `in`

SMALL_KINDS = ("in", "point", "by first", "by second", "two atoms")
ALL_KINDS = ("all facts", "all answers")


@dataclass(frozen=True)
class Question:
    """Queries of one kind, with different constants."""

    kind: str
    ask: Callable[[Materialisation, int], int]
    """Asks the query of a number, and counts the rows of the answer."""
    rows: Callable[[Materialisation, int], Iterable[Rows]]
    """The answer itself, to be compared."""
    count: int
    first: int = 0
    """So many more are asked before, which do not count."""


def batch_rows(batches: Iterable[pa.RecordBatch]) -> Iterable[Rows]:
    """Arrow batches of numbers as rows."""
    for batch in batches:
        yield np.stack([column.to_numpy() for column in batch.columns], axis=1)


def checksum(question: Question, m: Materialisation) -> tuple[int, int]:
    """Rows of all answers, and a sum that tells them apart from others."""
    count = total = 0
    for number in range(question.first, question.first + question.count):
        for rows in question.rows(m, number):
            count += len(rows)
            total += mix(rows)
    return count, total % 2**64


def questions(relation: str, base: str, facts: Rows, seed: int = 0) -> list[Question]:
    """About a relation that holds all facts of an explicit one, and more: pairs that are in it by two steps, and others; arguments of facts."""
    random = np.random.default_rng(seed)

    def pairs(count: int) -> list[tuple[int, int]]:
        """Half of them are in the relation, if it is transitive; the others are any."""
        first = facts[random.integers(0, len(facts), count)]
        order = np.argsort(facts[:, 0], kind="stable")
        at = np.searchsorted(facts[order, 0], first[:, 1])
        follows = facts[order[np.minimum(at, len(facts) - 1)]]
        second = np.where(follows[:, 0] == first[:, 1], follows[:, 1], first[:, 1])
        anywhere = facts[random.integers(0, len(facts), count), 1]
        chosen = np.where(np.arange(count) % 2 == 0, second, anywhere)
        return list(zip(first[:, 0].tolist(), chosen.tolist(), strict=True))

    total = FIRST + ASKED
    points, both = pairs(total), pairs(TESTED)
    lower = facts[random.integers(0, len(facts), total), 0].tolist()
    upper = facts[random.integers(0, len(facts), total), 1].tolist()
    texts = {
        "point": [f"{relation}({x}, {y})" for x, y in points],
        "by first": [f"{relation}({x}, y)" for x in lower],
        "by second": [f"{relation}(x, {y})" for y in upper],
        "two atoms": [f"{relation}({x}, y), {base}(y, z)" for x in lower],
    }

    def tested(m: Materialisation) -> int:
        own = m[relation]
        return sum(pair in own for pair in both)

    def found(m: Materialisation) -> Iterable[Rows]:
        own = m[relation]
        yield np.array([pair for pair in both if pair in own], np.int64).reshape(-1, 2)

    def small(kind: str) -> Question:
        own = texts[kind]
        if kind == "point":
            yes: Rows = np.ones((1, 1), np.int64)
            return Question(
                kind,
                lambda m, i: int(bool(m.query(own[i]))),
                lambda m, i: [yes] if m.query(own[i]) else [],
                ASKED,
                FIRST,
            )
        return Question(
            kind,
            lambda m, i: len(m.query(own[i])),
            lambda m, i: batch_rows(m.query(own[i]).batches()),
            ASKED,
            FIRST,
        )

    everything = f"{relation}(x, y)"
    return [
        Question("in", lambda m, _: tested(m), lambda m, _: found(m), 1, 1),
        *(small(kind) for kind in texts),
        Question(
            "all facts",
            lambda m, _: sum(batch.num_rows for batch in m[relation].batches()),
            lambda m, _: batch_rows(m[relation].batches()),
            1,
        ),
        Question(
            "all answers",
            lambda m, _: sum(batch.num_rows for batch in m.query_batches(everything)),
            lambda m, _: batch_rows(m.query_batches(everything)),
            1,
        ),
    ]
