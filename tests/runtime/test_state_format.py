"""State directories of format 1, written before the packages were rearranged, open and go on as if nothing had happened.

`states.tar.gz` holds three of them: `plain` (all types, negation, an aggregate, an equivalence relation, a change of rules, the position of a
stream), `equality` (terms with representatives) and `schemes` (a closure as intervals, and a union). `expected.json` says what every version of
them holds, and what the versions changed, as the release that wrote them read it.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

import evermat
from evermat.store.formats import FORMATS
from evermat.store.formats.format_1 import Reader
from evermat.testing import state_of
from tests.spark.test_saved_state import open_in_process
from tests.support.updates import facts_of

HERE = Path(__file__).parent / "format_1"
EXPECTED: dict[str, Any] = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
WHOLE = ("plain", "equality")


def extracted(home: Path, name: str = "states") -> Path:
    """A folder with the states of an archive."""
    with tarfile.open(HERE / f"{name}.tar.gz") as archive:
        archive.extractall(home, filter="data")
    return home


@pytest.fixture
def states(tmp_path: Path) -> Path:
    return extracted(tmp_path)


def rows(found: dict[str, list[list[Any]]]) -> dict[str, set[tuple[Any, ...]]]:
    return {name: set(map(tuple, facts)) for name, facts in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_every_version_holds_what_it_held(states: Path, name: str) -> None:
    expected = EXPECTED[name]["versions"]
    assert [str(version.number) for version in evermat.versions(states / name)] == list(expected)
    for number, facts in expected.items():
        with evermat.open(states / name, int(number)) as m:
            assert facts_of(m) == rows(facts)
        with open_in_process(states / name, int(number)) as m:
            assert facts_of(m) == rows(facts)


@pytest.mark.parametrize("name", WHOLE)
def test_versions_changed_what_they_changed(states: Path, name: str) -> None:
    found = {
        relation: sorted((list(row.values()) for row in table.to_pylist()), key=repr)
        for relation, table in evermat.changes(states / name, 2).items()
    }
    assert found == EXPECTED[name]["changes"]


def test_positions_and_rules_are_known(states: Path) -> None:
    with evermat.open(states / "plain") as m:
        assert m.positions == {"directory:/changes": "0002.tsv"}
        assert "far" in m.program.relations
        assert not [rule for rule in m.program.rules if rule.head.relation.name == "flag"]
    assert set(evermat.query(states / "plain", 'path("a", x)')) == {("a",), ("b",), ("c",), ("d",)}


def test_relations_with_schemes_have_them_again(states: Path) -> None:
    expected = EXPECTED["schemes"]
    with evermat.open(states / "schemes") as m:
        assert sorted(state_of(m).stored_by_schemes) == expected["stored"]
        assert {name: len(m[name]) for name in "pu"} == {name: expected[name] for name in "pu"}
    with evermat.open(states / "schemes", 1) as m:
        assert len(m["p"]) == expected["before"]


@pytest.mark.parametrize("name", WHOLE)
def test_an_update_is_the_next_version(states: Path, name: str) -> None:
    newest = len(EXPECTED[name]["versions"])
    with evermat.open(states / name, write=True) as m:
        before = facts_of(m)
        relation = "edge" if name == "plain" else "triple"
        fact = (
            ("new", "a")
            if name == "plain"
            else ("<http://x/n>", "<http://example.org/knows>", "<http://example.org/a>")
        )
        change = m.update({relation: [fact]})
        assert change.inserted.total > 1
        assert m.version == newest + 1
        m.update(delete={relation: [fact]})
        assert facts_of(m) == before
    assert evermat.vacuum(states / name, 1)[0] > 0
    with evermat.open(states / name) as m:
        assert facts_of(m) == before


def test_a_second_format_is_a_row(states: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state directory of another format is read by its own reader, and is not written to; one of an unknown format is refused."""
    mark = states / "plain" / "evermat.json"
    mark.write_text('{"format": 7, "kind": "evermat state"}\n')
    with pytest.raises(
        evermat.StateError, match=r"has the format 7, but this version of evermat knows only the format 1 and 2"
    ):
        evermat.versions(states / "plain")
    opened: list[Path] = []

    def read(path: Path) -> Reader:
        opened.append(path)
        return Reader(path)

    monkeypatch.setitem(FORMATS, 7, read)
    assert [version.number for version in evermat.versions(states / "plain")] == [1, 2, 3, 4, 5]
    assert set(evermat.query(states / "plain", 'path("a", x)')) == {("a",), ("b",), ("c",), ("d",)}
    assert "path" in evermat.changes(states / "plain", 2)
    assert opened == [states / "plain"] * 3
    with pytest.raises(evermat.StateError, match=r"has the format 7"):
        evermat.open(states / "plain", write=True)
