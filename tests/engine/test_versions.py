"""What readers have pinned stays as it was, whenever they begin to read: ahead of an update, in the middle of it, or many updates later."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import evermat
from evermat.columns import decode_rows, encode_rows, rows_of
from evermat.engine import Run
from evermat.language import Queries
from tests.support.engines import Engine, randomly
from tests.support.strategies import Facts, RandomProgram, random_program, random_query
from tests.support.updates import ALGORITHMS, applied, facts_of, random_revision, random_update


class _Pinned:
    """A snapshot of a materialisation, and what it must give: the facts of another one, which was made of the same explicit facts."""

    def __init__(self, m: evermat.Materialisation, random: RandomProgram, explicit: Facts) -> None:
        self._snapshot, self._program, self._random, self._explicit = (
            m._versions.pin().reading,
            m.program,
            random,
            explicit,
        )
        self._oracle = evermat.Program.parse(random.text).materialise(explicit)
        self._expected = facts_of(self._oracle)

    def check(self, rng: Random, others: Facts) -> None:
        """Reads some relations, which are captured then if no update has done that; `others` are facts of other versions."""
        for name, expected in self._expected.items():
            if rng.random() < 0.5:
                self._check_relation(name, expected, rng.sample(sorted(others[name]), min(len(others[name]), 5)), rng)
        if rng.random() < 0.5:
            text, _ = random_query(rng, self._random.relations)
            query = Queries(self._program).compile(text)
            solutions = self._snapshot.evaluate(query, Run())
            dictionary = solutions.dictionary or self._snapshot.dictionary
            found = [r for b in rows_of(solutions.gather()) for r in decode_rows(b, query.answer.types, dictionary)]
            assert set(found) == set(self._oracle.query(text)), text

    def _check_relation(self, name: str, expected: set[Any], others: list[Any], rng: Random) -> None:
        types, snapshot = self._program.relations[name].types, self._snapshot
        if rng.random() < 0.5:
            assert snapshot.count(name) == len(expected)
            assert snapshot.count_explicit(name) == len(self._explicit.get(name, ()))
        for row in [*others, *rng.sample(sorted(expected), min(len(expected), 5))]:
            if all(snapshot.dictionary.lookup(value) >= 0 for value in row if isinstance(value, str)):
                assert snapshot.contains(name, encode_rows([row], types, snapshot.dictionary)) == (row in expected)
        rows = [row for batch in snapshot.scan(name) for row in self._decoded(batch, types)]
        assert len(rows) == len(expected) and set(rows) == expected
        explicit = {row for batch in snapshot.scan(name, "asserted") for row in self._decoded(batch, types)}
        assert explicit == self._explicit.get(name, set())

    def _decoded(self, batch: Any, types: Any) -> list[Any]:
        return list(decode_rows(batch, types, self._snapshot.dictionary))


@pytest.mark.slow
@randomly(memory=80, spark=2)
def test_versions_stay_as_they_are(engine: Engine, rng: Random) -> None:
    random = random_program(rng)
    explicit = {relation.name: set(random.facts.get(relation.name, ())) for relation in random.relations}
    m = engine.materialise(random.text, explicit)
    pinned: list[_Pinned] = []

    def pin(*_: object) -> None:
        pinned.append(_Pinned(m, random, explicit))
        if rng.random() < 0.5:
            pinned[-1].check(rng, facts_of(m))

    for _ in range(6):
        delete, insert = random_update(rng, random.relations, explicit)
        revised, removed, added = (random, [], []) if rng.random() < 0.7 else random_revision(rng, random)
        with pytest.MonkeyPatch.context() as patch:
            if rng.random() < 0.4:  # nothing is committed yet when the update looks for forbidden facts
                patch.setattr("evermat.runtime.update.refuse_forbidden", pin)
            m.update(
                insert=insert, delete=delete, algorithm="auto" if removed or added else rng.choice(ALGORITHMS[1:]),
                remove_rules="\n".join(removed), add_rules="\n".join(added),
            )  # fmt: skip
        random, explicit = revised, applied(explicit, delete, insert)
        if rng.random() < 0.5:
            pin()
        for one in rng.sample(pinned, min(len(pinned), 2)):
            one.check(rng, facts_of(m))
    for one in pinned:
        one.check(rng, facts_of(m))
