"""Whether a materialisation says what the naive one says."""

from __future__ import annotations

from collections.abc import Iterable

from evermat import Materialisation
from evermat.language.patterns.triples import OTHER_TRIPLE
from evermat.runtime.change import Change
from tests.support.equality.naive import Result
from tests.support.oracle import Facts
from tests.support.updates import facts_of

PLAIN = ("auto", "dred", "dred-c", "bf", "bf-c", "dred-c-mod", "bf-c-mod", "remat")
ALGORITHMS = ("bf-eq", "remat-eq", *PLAIN)


def assert_names(m: Materialisation, expected: Result) -> None:
    """All facts are there in all names, and no others."""
    assert_same(facts_of(m), expected.facts)


def assert_right(m: Materialisation, expected: Result, terms: Iterable[str]) -> None:
    """All facts are there in all names, held as facts over representatives, which are the right ones."""
    assert_names(m, expected)
    held = {name: list(m[name].representatives) for name in m}
    assert all(len(rows) == len(set(rows)) == len(m[name].representatives) for name, rows in held.items())
    assert_same(
        {name: set(rows) for name, rows in held.items()}, {name: expected.rewritten(name) for name in expected.facts}
    )
    for term in {*terms, *expected.classes}:
        assert m.representative(term) == expected.representative(term)
        assert m.names(term) == expected.names(term)
    for name, rows in expected.facts.items():
        for row in list(rows)[:3]:
            assert row in m[name]
            assert (row in m[name].representatives) == (row in expected.rewritten(name))


def assert_changed(change: Change, before: Facts, after: Facts) -> None:
    """The change is what makes one of the other."""
    found = [{name: sorted(which[name]) for name in which} for which in (change.inserted, change.deleted)]
    assert all(len(rows) == len(set(rows)) for which in found for rows in which.values())
    came, went = ({name: set(rows) for name, rows in which.items()} for which in found)
    assert_same(came, {name: rows - before[name] for name, rows in after.items()})
    assert_same(went, {name: rows - after[name] for name, rows in before.items()})
    assert change.inserted.total == sum(map(len, came.values()))
    assert change.deleted.total == sum(map(len, went.values()))


def assert_same(found: Facts, expected: Facts) -> None:
    """The same facts of the same relations; there may be a relation for triples that have no other, which has none."""
    found, expected = ({n: r for n, r in facts.items() if r or n != OTHER_TRIPLE} for facts in (found, expected))
    assert found.keys() == expected.keys()
    for name, rows in expected.items():
        assert found[name] == rows, f"{name}: {found[name] - rows} too many, {rows - found[name]} missing"
