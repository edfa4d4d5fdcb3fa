"""What is said about folders, versions and names that are not what they should be."""

from __future__ import annotations

from pathlib import Path

import pytest

import evermat
from tests.support.states import CHAIN, facts_at, refused, rows_of, saved, tree

ACTIONS = {"open": evermat.open, "versions": evermat.versions, "changes": evermat.changes}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state with two versions."""
    with saved(tmp_path / "state") as m:
        m.update({"edge": [(7, 7)]})
    return tmp_path / "state"


@pytest.mark.parametrize("action", ACTIONS)
def test_a_folder_that_is_no_state(tmp_path: Path, action: str) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    for path, why in (
        (tmp_path, "it has no file `evermat.json`"),
        (tmp_path / "missing", "there is no such folder"),
        (tmp_path / "letter.txt", "it is a file, not a folder"),
    ):
        message = f"error[E500]: `{path}` is not a state of evermat\n  = note: {why}"
        assert refused(lambda p=path: ACTIONS[action](p)) == message
        assert refused(lambda p=path: evermat.vacuum(p, 1)) == message
    assert tree(tmp_path) == {"letter.txt": b"dear"}


def test_a_state_of_another_format(state: Path) -> None:
    mark = state / "evermat.json"
    mark.write_text('{"format": 3, "kind": "evermat state"}\n')
    before = tree(state)
    message = (
        f"error[E501]: the state `{state}` has the format 3, but this version of evermat knows only the format 1 and 2\n"
        f"  = note: the format is named in `{mark}`"
    )
    m = evermat.Program.parse(".decl a(x:number)").materialise()
    for action in (evermat.open, evermat.versions, evermat.changes, m.save, lambda p: evermat.vacuum(p, 1)):
        assert refused(lambda a=action: a(state)) == message
    assert tree(state) == before


@pytest.mark.parametrize("number", [99, 3, 0, -1])
def test_a_version_that_is_not_there(state: Path, number: int) -> None:
    message = f"error[E505]: there is no version {number}: the state has versions 1 to 2"
    assert refused(lambda: evermat.open(state, version=number)) == message
    assert refused(lambda: evermat.open(state, version=number, write=True)) == message
    assert refused(lambda: evermat.changes(state, number, number)) == message
    with evermat.open(state, write=True) as m:  # it is not locked
        assert m.version == 2


def test_a_version_that_is_no_longer_kept(state: Path) -> None:
    evermat.vacuum(state, 1)
    message = "error[E506]: version 1 is no longer kept: the state has only version 2"
    assert refused(lambda: evermat.open(state, version=1)) == message
    assert refused(lambda: evermat.changes(state, 1, 2)) == message
    assert set(evermat.changes(state)) == {"edge", "path", "node", "apart", "reach"}
    with pytest.raises(evermat.ProgramError, match="`0` does not say how many versions to keep"):
        evermat.vacuum(state, 0)


def test_a_place_that_other_programs_would_misread(tmp_path: Path) -> None:
    m = evermat.Program.parse(".decl a(x:number)").materialise()
    path = tmp_path / "100%25"
    assert refused(lambda: m.save(path)) == (
        f"error[E510]: a state cannot be written at `{path}`\n"
        "  = note: the path contains `%25`, which readers of Delta tables misread: choose another path"
    )
    assert list(tmp_path.iterdir()) == []


def test_relation_names_cannot_leave_the_state(tmp_path: Path) -> None:
    path = tmp_path / "state"
    text = """
    .prefix p: <http://x/../../y#>
    .prefix q: <file:../../>
    .decl p:edge(x:number)
    .decl q:edge(x:number)
    .decl <x:../..>(x:number)
    .decl <file:/etc/passwd>(x:number)
    .decl edge(x:number)
    .decl EDGE(x:number)
    p:edge(x) :- edge(x).
    q:edge(x + 1) :- edge(x).
    <x:../..>(x + 2) :- edge(x).
    <file:/etc/passwd>(x + 3) :- edge(x).
    EDGE(x + 4) :- edge(x).
    """
    with evermat.Program.parse(text).materialise({"edge": [(0,)]}) as m:
        m.save(path)
        m.update({"edge": [(10,)]})
    assert [p.name for p in tmp_path.iterdir()] == ["state"]
    folders = [p.name.lower() for p in (path / "relations").iterdir()]
    assert len(set(folders)) == len(m) == 6
    names = ["<http://x/../../y#edge>", "<file:../../edge>", "<x:../..>", "<file:/etc/passwd>", "EDGE"]
    assert facts_at(path) == {"edge": {(0,), (10,)}} | {name: {(i,), (10 + i,)} for i, name in enumerate(names)}
    assert rows_of(evermat.changes(path, 2, 2)["<x:../..>"]) == [(12, "+", 2)]


def test_columns_may_be_called_as_those_of_the_store(tmp_path: Path) -> None:
    path = tmp_path / "state"
    columns = ["_op", "_version", "_origin", "_nonrecursive", "_recursive", "x", "X"]
    text = f".decl a({', '.join(f'{c}:number' for c in columns)}) .decl b(_op:number) b(x) :- a(x, _, _, _, _, _, _)."
    with evermat.Program.parse(text).materialise({"a": [tuple(range(7))]}, counters="both") as m:
        m.save(path)
        m.update({"a": [(7, *range(1, 7))]}, {"a": [tuple(range(7))]})
    with evermat.open(path) as m:
        assert m["a"].columns == columns
        assert set(m["a"]) == {(7, *range(1, 7))}
        assert set(m["b"]) == {(7,)}
        m.update(delete={"a": [(7, *range(1, 7))]})
        assert set(m["b"]) == set()
    changes = evermat.changes(path, 2, 2)
    assert sorted(rows_of(changes["b"])) == [(0, "-", 2), (7, "+", 2)]
    assert changes["b"].column_names[-2:] == ["_op", "_version"]
    assert sorted(rows_of(changes["a"])) == [(*range(7), "-", 2), (7, *range(1, 7), "+", 2)]


def test_a_wrong_update_leaves_a_state_that_was_opened(state: Path) -> None:
    before = tree(state)
    with evermat.open(state) as m:
        assert refused(lambda: m.update({"nothing": [(1,)]}), exit_code=3)
        assert refused(lambda: m.update(algorithm="magic"), exit_code=2)
        assert m.version == 2
    assert tree(state) == before
    assert facts_at(state)["edge"] == CHAIN | {(7, 7)}
