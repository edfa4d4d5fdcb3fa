"""How many versions a state keeps, and what begins with the first of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import evermat
from evermat.store import Keep, Store
from evermat.store.retention import DEFAULT
from tests.runtime.test_state_format import extracted
from tests.store.models import PAIRS, contents, entry, plus
from tests.support.states import PROGRAM, facts_at, refused, saved
from tests.support.updates import facts_of


def numbers(path: Path) -> list[int]:
    return [version.number for version in evermat.versions(path)]


def test_a_thousand_versions_are_kept_by_default() -> None:
    assert Keep.of(1000) == DEFAULT
    assert DEFAULT.oldest([(n, datetime.now(UTC)) for n in range(1, 1101)], datetime.now(UTC)) == 101


def test_the_number_is_stored_with_the_state(tmp_path: Path) -> None:
    path = tmp_path / "state"
    m = evermat.Program.parse(PROGRAM).materialise({"edge": [(0, 1)]}, counters="both")
    m.save(path, keep=3)
    facts = {1: facts_of(m)}
    for number in range(2, 8):
        m.update({"edge": [(number, number + 1)]})
        facts[number] = facts_of(m)
    m.close()
    assert numbers(path) == [5, 6, 7]
    with evermat.open(path, write=True) as m:  # what it did
        m.update({"edge": [(8, 0)]})
        facts[8] = facts_of(m)
    assert numbers(path) == [6, 7, 8]
    with evermat.open(path, keep=5) as m:  # from the first update on
        m.update(delete={"edge": [(8, 0)]})
        m.update({"edge": [(8, 0)]})
        facts |= {9: facts[7], 10: facts[8]}
    assert numbers(path) == [6, 7, 8, 9, 10]
    for number in numbers(path):
        assert facts_at(path, number) == facts[number]
    assert refused(lambda: evermat.open(path, 5)) == (
        "error[E506]: version 5 is no longer kept: the state has versions 6 to 10"
    )
    assert refused(lambda: evermat.changes(path, 5)) == (
        "error[E506]: version 5 is no longer kept: the state has versions 6 to 10"
    )
    assert {row["_version"] for table in evermat.changes(path).values() for row in table.to_pylist()} == {*range(6, 11)}


@pytest.mark.parametrize("keep", [0, -1, "0", "-3", "0d", "3x", "d", "1.5", "soon", ""])
def test_what_is_not_a_number_or_an_age_is_refused(tmp_path: Path, keep: int | str) -> None:
    path = tmp_path / "state"
    saved(path).close()
    expected = (
        f"error[E274]: `{keep}` does not say how many versions to keep\n"
        "  = note: write a number from 1 on, or an age: `12h`, `30d`, `4w`"
    )
    m = evermat.Program.parse(PROGRAM).materialise({})
    for action in (
        lambda: evermat.vacuum(path, keep),
        lambda: evermat.open(path, keep=keep),
        lambda: m.save(path, keep=keep),
    ):
        with pytest.raises(evermat.ProgramError) as raised:
            action()
        assert str(raised.value) == expected
    assert numbers(path) == [1]


def test_ages() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    days = [(n, now - timedelta(days=10 - n)) for n in range(1, 11)]  # version 10 is of today
    assert Keep.of("2d").oldest(days, now) == 7  # it was the newest until two days ago
    assert Keep.of("48h").oldest(days, now) == 7
    assert Keep.of("100w").oldest(days, now) == 1
    assert Keep.of("1s").oldest(days, now + timedelta(days=1)) == 10
    assert Keep.of("999999999w").oldest(days, now) == 1


def test_a_clock_that_was_set_back_loses_nothing() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    ahead = [(1, now - timedelta(days=9)), (2, now + timedelta(days=400)), (3, now), (4, now)]
    assert Keep.of("1d").oldest(ahead, now) == 1  # version 1 was the newest until a time that has not come
    behind = [(1, now), (2, now), (3, now)]
    assert Keep.of("1d").oldest(behind, now - timedelta(days=10_000)) == 1


def test_the_writer_removes_versions_by_their_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = [datetime(2030, 1, 1, tzinfo=UTC)]

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return moment[0]

    monkeypatch.setattr("evermat.store.store.datetime", Clock)
    monkeypatch.setattr("evermat.store.store._TIDY_EVERY", 4)
    path = tmp_path / "state"
    with Store.create(path) as store:
        store.keep(Keep.of("10d"))
        for number in range(1, 41):
            store.commit(entry(), {"a": plus(PAIRS, ("x", number))}, {"a": PAIRS})
            moment[0] += timedelta(days=1)
        assert [v.number for v in store.versions()] == list(range(29, 41))  # it looks every four versions
        moment[0] -= timedelta(days=10_000)
        store.commit(entry(), {}, {"a": PAIRS})
        store.vacuum("1h")
        assert [v.number for v in store.versions()] == list(range(29, 42))
    with Store.open(path) as store:
        assert [len(contents(store, n, "a")) for n in (29, 35, 41)] == [29, 35, 40]


def test_changes_begin_with_the_first_kept_version(tmp_path: Path) -> None:
    """Also where they are the difference to the version before it, which is not kept."""
    extracted(tmp_path)
    path = tmp_path / "equality"
    assert evermat.migrate(path) == 2
    kept = numbers(path)
    expected = evermat.changes(path, kept[-2])
    evermat.vacuum(path, 2)
    assert numbers(path) == kept[-2:]
    assert evermat.changes(path) == expected
    assert evermat.changes(path, kept[-2], kept[-1]) == expected
    assert "E506" in refused(lambda: evermat.changes(path, kept[-3]))


def test_changes_of_an_old_state_begin_where_they_are_known(tmp_path: Path) -> None:
    """In format 1 nothing is left of the version before the first one that is kept."""
    extracted(tmp_path)
    path = tmp_path / "plain"
    before = {name: sorted(map(str, table.to_pylist())) for name, table in evermat.changes(path).items()}
    assert evermat.migrate(path) == 2
    assert {name: sorted(map(str, table.to_pylist())) for name, table in evermat.changes(path).items()} == before


def held(path: Path, number: int, state: str) -> dict[str, object]:
    """The facts of a version; of the large state their numbers."""
    if state != "schemes":
        return dict(facts_at(path, number))
    with evermat.open(path, number) as m:
        return {name: len(m[name]) for name in m}


@pytest.mark.slow
def test_a_migrated_state_equals_itself(tmp_path: Path) -> None:
    extracted(tmp_path)
    for name in ("plain", "equality", "schemes"):
        path = tmp_path / name
        before = {number: held(path, number, name) for number in numbers(path)}
        about = [(v.number, v.time, v.batch, v.stats, v.counters) for v in evermat.versions(path)]
        assert '"format": 1' in (path / "evermat.json").read_text()  # reading changes nothing
        assert evermat.migrate(path) == 2
        assert '"format": 2' in (path / "evermat.json").read_text()
        assert {number: held(path, number, name) for number in numbers(path)} == before
        assert [(v.number, v.time, v.batch, v.stats, v.counters) for v in evermat.versions(path)] == about
        assert evermat.migrate(path) == 2
        assert sorted(p.name for p in path.iterdir()) == ["commits", "evermat.json", "lock", "programs", "relations"]


def test_a_stream_of_changes_that_has_fallen_behind(tmp_path: Path) -> None:
    from evermat.runtime.streams.change_source import ChangeStreamReader, Range, StateFeed, schema_of

    path = tmp_path / "state"
    with saved(path) as m:
        for number in range(5):
            m.update({"edge": [(number, 9)]})
    evermat.vacuum(path, 3)
    feed = StateFeed(path, "path")

    def reader(**options: str) -> ChangeStreamReader:
        return ChangeStreamReader(feed, schema_of(feed.columns), options)

    behind, now = {"version": 1, "whole": False}, {"version": 6, "whole": False}
    assert refused(lambda: reader().partitions(behind, now)) == (
        "error[E506]: version 2 is no longer kept: the state has versions 4 to 6"
    )
    assert reader(failOnDataLoss="false").partitions(behind, now) == [Range(4, 6)]
    assert reader(failOnDataLoss="false").partitions(behind, {"version": 3, "whole": False}) == []
    assert reader(failOnDataLoss="False").partitions({"version": 4, "whole": False}, now) == [Range(5, 6)]
    with pytest.raises(ValueError, match="`maybe` cannot be `failOnDataLoss`"):
        reader(failOnDataLoss="maybe").partitions(behind, now)


# --- positions of streams --------------------------------------------------------------------------------------


def followed(tmp_path: Path) -> Path:
    """A state that has followed a folder."""
    extracted(tmp_path)
    return tmp_path / "plain"


def test_positions_are_not_lost_unsaid(tmp_path: Path) -> None:
    path = followed(tmp_path)
    other = evermat.Program.parse(PROGRAM).materialise({"edge": [(0, 1)]})
    assert refused(lambda: other.save(path)) == (
        f"error[E511]: the state `{path}` knows how far these streams have been followed: `directory:/changes`\n"
        "  = note: a stream whose position is lost takes its files again: keep the positions with `--keep-positions` "
        '(`positions="keep"`), or remove them with `--reset-positions` (`positions="reset"`)'
    )
    other.save(path, positions="keep")
    other.close()
    with evermat.open(path) as m:
        assert m.positions == {"directory:/changes": "0002.tsv"}
    again = evermat.Program.parse(PROGRAM).materialise({"edge": [(0, 2)]})
    again.save(path, positions="reset")
    assert again.positions == {}
    again.close()
    evermat.Program.parse(PROGRAM).materialise({"edge": [(0, 3)]}).save(path)


# --- what is removed -------------------------------------------------------------------------------------------


def test_nothing_outside_of_the_state_is_removed(tmp_path: Path) -> None:
    path, outside = tmp_path / "state", tmp_path / "outside"
    outside.mkdir()
    precious = [outside / name for name in ("a.parquet", "b.txt", ".x.part", "c.dl")]
    for file in precious:
        file.write_text("precious")
    with saved(path) as m:
        m.update({"edge": [(9, 9)]})
    (path / "relations" / "link").symlink_to(outside)
    (path / "relations" / "edge" / "link.parquet").symlink_to(precious[0])
    (path / "relations" / "edge" / "folder.parquet").symlink_to(outside)
    (path / "programs" / "link").symlink_to(outside)
    (path / "programs" / "z.dl").symlink_to(precious[3])
    (path / "commits" / "link.parquet").symlink_to(outside)
    (path / "relations.2").symlink_to(tmp_path / "nowhere")
    evermat.vacuum(path, 1)
    assert all(file.read_text() == "precious" for file in precious)
    assert not any(file.is_symlink() for file in path.rglob("*") if file.name != "relations.2")


def test_what_is_put_into_a_state_does_not_stop_its_writer(tmp_path: Path) -> None:
    """Folders too, and with the names of data files."""
    path = tmp_path / "state"
    with saved(path) as m:
        m.update({"edge": [(9, 9)]})
    homes = [path, path / "commits", path / "relations", path / "programs", path / "relations" / "edge"]
    for home in [*homes, *(home / "_delta_log" for home in homes if (home / "_delta_log").is_dir())]:
        for name in ("real", "changes-0-1-1-1-0-0-00000000.parquet", ".x.part"):
            (home / name / "inner").mkdir(parents=True)
            (home / name / "inner" / "file").write_text("text")
    with evermat.open(path) as m:
        m.update({"edge": [(8, 8)]})
    evermat.vacuum(path, 1)
    with evermat.open(path) as m:
        m.update({"edge": [(7, 7)]})
        assert {(9, 9), (8, 8), (7, 7)} <= set(m["edge"])


@pytest.mark.parametrize(
    "name", ["commits", "commits/_delta_log", "relations", "relations/edge", "relations/edge/_delta_log", "programs"]
)
def test_a_folder_that_is_a_link_is_read_but_not_written(name: str, tmp_path: Path) -> None:
    """A writer would delete what it does not know there."""
    path, moved = tmp_path / "state", tmp_path / "moved"
    with saved(path) as m:
        m.update({"edge": [(9, 9)]})
    (path / name).rename(moved)
    (path / name).symlink_to(moved)
    (moved / "mine.txt").write_text("precious")
    before = sorted(moved.rglob("*"))
    message = f"`{path / name}` is damaged: it is a symbolic link, which a writer does not follow"
    with pytest.raises(evermat.StateError, match="E503") as error:
        evermat.vacuum(path, 1)
    assert message in str(error.value)
    with evermat.open(path) as m, pytest.raises(evermat.StateError, match="symbolic link"):
        m.update({"edge": [(8, 8)]})
    assert sorted(moved.rglob("*")) == before
    assert (9, 9) in evermat.open(path)["edge"]
