"""Vacuumed states of format 1 become states of format 2 with all that they held.

`format_1/vacuumed.tar.gz` was written by the last release of format 1, which vacuumed both states in the middle of their lives: `people` (equal
terms with representatives, a closure, an aggregate and negation over them) and `numbers` (a closure, aggregates over it and over these).
`vacuumed.json` has what that release read in every version that is kept, and the changes from the version `first` on.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evermat
from evermat.store import open_reader, read_format
from evermat.testing import state_of
from tests.runtime.test_state_format import HERE, extracted, rows
from tests.spark.test_saved_state import open_in_process
from tests.support.states import assert_recomputed, refused, rows_of
from tests.support.updates import facts_of

EXPECTED: dict[str, Any] = json.loads((HERE / "vacuumed.json").read_text(encoding="utf-8"))
NEW = {
    "people": ({"person": [("<http://example.org/p1>", "n0"), ("<http://example.org/p9>", "n9")]}, "knows"),
    "numbers": ({"edge": [(6, 50), (50, 0)]}, "edge"),
}


def first_write(path: Path) -> None:
    """The first update of a state migrates it; here one that changes nothing, and is a version all the same."""
    with evermat.open(path, keep=100) as m:
        m.update()


WAYS: dict[str, Callable[[Path], object]] = {
    "migrate": evermat.migrate,
    "first write": first_write,
    "open to write": lambda path: evermat.open(path, write=True).close(),
}


@pytest.fixture
def path(tmp_path: Path, name: str) -> Path:
    return extracted(tmp_path, "vacuumed") / name


def check(path: Path, expected: dict[str, Any], more: int = 0) -> None:
    """All versions and changes are those of the release that wrote them; `more` versions change nothing."""
    numbers = [version.number for version in evermat.versions(path)]
    versions = {int(number): rows(facts) for number, facts in expected["versions"].items()}
    assert numbers == [*versions, *range(max(versions) + 1, max(versions) + 1 + more)]
    for number, facts in versions.items():
        with evermat.open(path, number) as m:
            assert facts_of(m) == facts
        assert set(evermat.query(path, "path(x, y), !apart(y, x)", number)) == {
            (x, y) for x, y in facts["path"] if (y, x) not in facts["apart"]
        }
    found = {name: set(rows_of(table)) for name, table in evermat.changes(path, expected["first"]).items()}
    assert found == {name: set(map(tuple, changes)) for name, changes in expected["changes"].items()}
    assert refused(lambda: evermat.open(path, numbers[0] - 1)) == (
        f"error[E506]: version {numbers[0] - 1} is no longer kept: the state has versions {numbers[0]} to {numbers[-1]}"
    )


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EXPECTED)
def test_a_vacuumed_state_keeps_all_that_it_held(path: Path, name: str, way: str) -> None:
    expected = EXPECTED[name]
    assert read_format(path) == 1
    check(path, expected)
    assert read_format(path) == 1  # reading changes nothing
    WAYS[way](path)
    assert read_format(path) == 2
    check(path, expected, more=way == "first write")


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_a_migrated_state_goes_on(path: Path, name: str) -> None:
    """Updates of it have the result of computing everything again; it is vacuumed, and opened on a cluster."""
    evermat.migrate(path)
    again = shutil.copytree(path, path.with_name("again"))
    insert, relation = NEW[name]
    with evermat.open(path) as m, evermat.open(again) as recomputed:
        before = facts_of(m)
        gone = {relation: sorted(m[relation])[:2]}
        changes = ({"insert": insert}, {"delete": gone}, {"delete": insert}, {"insert": gone})
        for change in changes:
            m.update(**change)
            recomputed.update(**change, algorithm="remat-eq" if name == "people" else "remat")
            assert facts_of(m) == facts_of(recomputed)
            if name == "numbers":
                with open_reader(path) as reader:
                    assert_recomputed(m, reader.program(m.version or 0))
        assert (state_of(m).representatives is not None) == (name == "people")
        after = facts_of(m)
    assert name == "people" or after == before
    with open_in_process(path) as m:
        assert facts_of(m) == after
    first = min(map(int, EXPECTED[name]["versions"]))
    with evermat.open(path, first) as m:
        assert facts_of(m) == rows(EXPECTED[name]["versions"][str(first)])
    evermat.vacuum(path, 2)
    with evermat.open(path) as m:
        assert facts_of(m) == after
        m.update(insert)
        assert m.version == evermat.versions(path)[-1].number
