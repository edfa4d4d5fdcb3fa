"""The algorithms agree with each other, and it does not matter how changes are cut into updates."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from tests.maintenance.updates import ALGORITHMS, applied, facts_of, random_update
from tests.strategies import Features, random_program


@settings(max_examples=50, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_all_algorithms_report_the_same_change(rng: Random) -> None:
    recursion = rng.random() < 0.7
    random = random_program(rng, Features(recursion=recursion))
    program = evermat.Program.parse(random.text)
    delete, insert = random_update(rng, random.relations, random.facts)
    changes = []
    for algorithm in ALGORITHMS[recursion:]:  # Counting comes first, and does no recursion
        change = program.materialise(random.facts).update(insert=insert, delete=delete, algorithm=algorithm)
        changes.append({n: (set(change.inserted[n]), set(change.deleted[n])) for n in change.inserted})
    assert all(change == changes[0] for change in changes)


@settings(max_examples=50, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_any_split_into_updates_gives_the_same(rng: Random) -> None:
    random = random_program(rng)
    program = evermat.Program.parse(random.text)
    explicit = random.facts
    steps = []
    for _ in range(4):
        delete, insert = random_update(rng, random.relations, explicit)
        steps += [
            ("delete", name, row) for name, rows in delete.items() for row in sorted(rows - insert.get(name, set()))
        ]
        steps += [("insert", name, row) for name, rows in insert.items() for row in sorted(rows)]
        explicit = applied(explicit, delete, insert)
    algorithm = rng.choice(ALGORITHMS[1:])
    results = []
    for _ in range(2):
        m = program.materialise(random.facts)
        position = 0
        while position < len(steps):
            size = rng.randint(1, len(steps))
            batch = {"insert": {}, "delete": {}}
            for kind, name, row in steps[position : position + size]:  # within an update the last word counts
                other = "delete" if kind == "insert" else "insert"
                batch[kind].setdefault(name, set()).add(row)
                batch[other].get(name, set()).discard(row)
            m.update(**batch, algorithm=algorithm)
            position += size
        results.append(facts_of(m))
    assert results[0] == results[1] == facts_of(program.materialise(explicit))
