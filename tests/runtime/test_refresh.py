"""Readers of a state directory take over what others commit: when they ask for it, or before each read."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import pytest

import evermat
from evermat import Materialisation
from evermat.runtime import StateBinding
from tests.spark.test_saved_state import open_in_process
from tests.support.environment import LONG
from tests.support.gates import started, updating
from tests.support.randomness import seeds
from tests.support.states import CHAIN, PROGRAM, QUICK, assert_recomputed, explicit_of, facts_at, refused, saved
from tests.support.updates import facts_of

FORMAT_1 = Path(__file__).parent / "format_1" / "states.tar.gz"
SAME = "<http://www.w3.org/2002/07/owl#sameAs>"
EQUALITY = f"""
.decl {SAME}(x:term, y:term) .decl <http://x/p>(x:term, y:term) .decl <http://x/q>(x:term)
<http://x/q>(y) :- <http://x/p>(_, y).
"""
SCHEMES = """
.decl e(x:number, y:number) .decl p(x:number, y:number) .decl u(x:number, y:number) .decl n(x:number, k:number)
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), p(y, z).
u(x, y) :- p(x, y).
n(x, k) :- e(x, _), k = count : { p(x, _) }.
"""


def assert_alike(m: Materialisation, path: Path) -> None:
    """It is what opening the newest version gives."""
    with evermat.open(path) as expected:
        assert (m.version, m.positions, m.stats) == (expected.version, expected.positions, expected.stats)
        assert facts_of(m) == facts_of(expected)
        assert [str(rule) for rule in m.program.rules] == [str(rule) for rule in expected.program.rules]


@pytest.mark.parametrize("live", [False, True])
def test_a_reader_takes_over_newer_versions(live: bool, tmp_path: Path) -> None:
    path = tmp_path / "state"
    with saved(path) as m, evermat.open(path, live=live) as reader:
        edges = reader["edge"]
        assert reader.refresh() is False
        for number in range(3):
            m.update({"edge": [(7, number)]}, {"edge": [(number, number + 1)]})
        assert reader.version == (4 if live else 1)
        assert reader.refresh() is not live
        assert_alike(reader, path)
        assert_recomputed(reader)
        assert set(edges) == set(m["edge"])
        assert m.refresh() is False
        m.close()
        reader.update({"edge": [(9, 9)]})
        assert reader.version == 5
        assert_recomputed(reader)
        assert reader.refresh() is False


def test_a_snapshot_stays_when_newer_versions_are_taken_over(tmp_path: Path) -> None:
    with saved(tmp_path / "state") as m, evermat.open(tmp_path / "state") as reader, reader.snapshot() as old:
        m.update({"edge": [(7, 8)]}, {"edge": [(0, 1)]})
        assert reader.refresh()
        assert (old.version, set(old["edge"])) == (1, CHAIN)


def test_changes_are_taken_in_without_reading_the_rest() -> None:
    """Facts, origins and valid counters are those of a recomputation, and later updates keep them so."""
    for seed in seeds("changes are taken in", 30 if LONG else 4):
        rng, edges = Random(seed), [(x, y) for x in range(5) for y in range(5)]
        kept = rng.choice(["none", "nonrecursive", "both"])
        writer = evermat.Program.parse(PROGRAM).materialise({"edge": rng.sample(edges, 6)}, counters=kept)
        with TemporaryDirectory(dir=QUICK) as folder:
            path = Path(folder) / "state"
            writer.save(path)
            reader = opened_to_follow(path)
            for _ in range(5):
                for _ in range(rng.randrange(1, 4)):
                    insert, delete = ({name: rng.sample(edges, 2) for name in ("edge", "path")} for _ in range(2))
                    writer.update(insert, delete, rng.choice(["auto", "dred", "bf", "dred-c", "bf-c", "remat"]))
                assert reader.refresh()
                assert_recomputed(reader)
                assert_alike(reader, path)
                assert explicit_of(reader) == explicit_of(writer)
                if rng.random() < 0.3:
                    writer.close()
                    writer, reader = reader, opened_to_follow(path)
            writer.close()
            reader.close()


def opened_to_follow(path: Path) -> Materialisation:
    """A reader that cannot read a whole version again."""

    def fail() -> NoReturn:
        raise AssertionError

    m = evermat.open(path)
    m._versions._open_again = fail
    return m


def test_an_old_version_becomes_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with saved(path) as m:
        m.update({"edge": [(7, 8)]})
    with evermat.open(path, 1) as reader:
        assert set(reader["edge"]) == CHAIN
        assert reader.refresh() is True
        assert_alike(reader, path)
        reader.update({"edge": [(9, 9)]})


def test_what_makes_no_version_is_nothing_new(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with saved(path) as m:
        m.update({"edge": [(7, 8)]})
    with evermat.open(path) as reader:
        evermat.vacuum(path, 1)
        assert not reader._versions._binding.seems_current()
        assert reader.refresh() is False
        assert reader._versions._binding.seems_current()
        with evermat.open(path) as m:
            m.update({"edge": [(8, 9)]})
        assert reader.refresh() is True
        assert_alike(reader, path)


def test_many_versions_are_noticed_although_their_log_is_shorter(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with saved(path) as m, evermat.open(path, live=True) as reader:
        known = reader._versions._binding._store._commits.entry
        log = path / "commits" / "_delta_log"
        m.update({"edge": [(7, 8)]})
        (log / f"{known + 1:020}.json").rename(log / f"{known + 1:020}.gone")
        assert not reader._versions._binding.seems_current()  # by the witness
        (log / f"{known + 1:020}.gone").rename(log / f"{known + 1:020}.json")
        assert_alike(reader, path)


@pytest.mark.parametrize("text", [EQUALITY, SCHEMES])
def test_whatever_was_changed_is_taken_over(text: str, tmp_path: Path) -> None:
    path, rng = tmp_path / "state", Random(text)
    names = ["p", "e"] if text is SCHEMES else [SAME, "<http://x/p>"]
    values: Any = range(6) if text is SCHEMES else [f"<http://x/{i}>" for i in range(6)]
    explicit = names[1:] if text is SCHEMES else names

    def some() -> dict[str, Any]:
        return {name: [(rng.choice(values), rng.choice(values)) for _ in range(3)] for name in explicit}

    with evermat.Program.parse(text).materialise(some()) as m:
        m.save(path)
        with evermat.open(path) as reader, evermat.open(path, live=True) as live:
            for number in range(20 if LONG else 5):
                m.update(some(), some())
                if number % 3 == 2:
                    m.update(
                        add_rules=f".decl r{number}(x:{'number' if text is SCHEMES else 'term'}) r{number}(x) :- {names[1]}(x, _)."
                    )
                assert_alike(live, path)
                if rng.random() < 0.5:
                    assert reader.refresh()
                    assert_alike(reader, path)


def test_a_state_that_is_migrated_meanwhile_is_taken_over(tmp_path: Path) -> None:
    with tarfile.open(FORMAT_1) as archive:
        archive.extractall(tmp_path, filter="data")
    for name in ("plain", "equality"):
        path = tmp_path / name
        with evermat.open(path, live=True) as reader:
            before = facts_of(reader)
            evermat.migrate(path)
            assert reader.refresh() is False
            assert facts_of(reader) == before
            with evermat.open(path) as m:
                m.update(add_rules=".decl new(x:number) new(1).")
            assert_alike(reader, path)
            assert set(reader["new"]) == {(1,)}


def test_a_version_that_cannot_be_read_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with saved(path) as m, evermat.open(path) as reader, evermat.open(path, live=True) as live:
        known = {file for file in path.rglob("*.parquet")}
        m.update({"edge": [(7, 8)]})
        new = next(file for file in path.rglob("*.parquet") if file not in known and "edge" in str(file))
        contents = new.read_bytes()
        new.write_bytes(contents[:-1] + b"x")
        for read in (reader.refresh, lambda: live["edge"], lambda: live.version):
            assert refused(read).startswith(f"error[E503]: `{new}` is damaged")
        assert (reader.version, set(reader["edge"])) == (1, CHAIN)
        new.write_bytes(contents)
        assert reader.refresh() is True
        assert_alike(live, path)
        assert_alike(reader, path)


def test_one_thread_takes_over_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    with saved(path) as m, evermat.open(path, live=True) as live:
        opened: list[int] = []
        again = StateBinding.follow
        monkeypatch.setattr(StateBinding, "follow", lambda *arguments: opened.append(1) or again(*arguments))
        m.update({"edge": [(7, 8)]})
        with started(*[lambda: len(live["edge"])] * 4) as found:
            pass
        assert [one.result() for one in found] == [len(CHAIN) + 1] * 4
        assert opened == [1]


def test_a_writer_that_lives_is_not_disturbed(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with saved(path) as m, evermat.open(path, live=True) as live:
        m.update({"edge": [(7, 8)]})
        m.close()
        live.update({"edge": [(8, 9)]})  # of the newest version, which nobody has read here
        assert live.version == 3
        with updating(live, "edge", [(9, 10)]):
            assert (live.version, len(live["edge"])) == (3, len(CHAIN) + 2)
        assert_recomputed(live)
    assert facts_at(path)["edge"] == {*CHAIN, (7, 8), (8, 9), (9, 10)}


def test_facts_on_executors_are_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "state"
    opened: Callable[[], Any] = lambda: open_in_process(path)._versions  # noqa: E731
    with saved(path) as m, open_in_process(path) as reader:
        versions = reader._versions
        versions._open_again = lambda: (
            (made := opened())._published.engine,
            made._binding,
            made._published.opened,
        )
        folder = versions.pin().engine.state.cluster.folder
        s, rows = reader.snapshot(), iter(reader["path"])
        first = next(rows)
        m.update({"edge": [(7, 8)]})
        assert reader.refresh() is True
        assert_alike(reader, path)
        assert {first, *rows} == set(s["path"])
        assert len(s["path"]) == 15
        assert Path(folder).exists()
        s.close()
        del rows
        assert not Path(folder).exists()
        rest, facts = reader.snapshot(), reader["edge"]
        reader.close()
        assert len(rest["edge"]) == len(CHAIN) + 1
        with pytest.raises(evermat.ProgramError) as raised:
            len(facts)
        assert str(raised.value) == (
            "error[E291]: this materialisation is closed\n"
            "  = note: its facts were in files of a cluster, which are deleted"
        )


def test_only_a_state_directory_is_refreshed(tmp_path: Path) -> None:
    told = (
        "error[E294]: this materialisation has no state directory\n"
        "  = note: `refresh` takes over versions that others write to a state"
    )
    m = saved(tmp_path / "state")
    m.close()
    assert refused(m.refresh, exit_code=2) == told
    with pytest.raises(evermat.ArgumentError) as raised:
        evermat.open(tmp_path / "state", 1, live=True)
    assert (
        str(raised.value)
        == "error[E200]: a `live` materialisation is always at the newest version: it has no `version`"
    )
