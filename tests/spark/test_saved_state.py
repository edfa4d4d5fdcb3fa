"""States of the Spark engine are states like any other: what one engine writes the other opens, version by version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat import Materialisation
from evermat.algebra import Counters
from evermat.core import error_catalogue as errors
from evermat.core.errors import Problem
from evermat.runtime.engines import spark_engine
from evermat.runtime.states import persistence
from evermat.spark.engine import saved, state_rows
from evermat.store import Store
from evermat.store.formats.format_2 import Reader
from evermat.testing import held_facts, state_of
from tests.runtime.test_disk_full import LOOP, PLENTY, UPDATES, Disk, disk  # noqa: F401
from tests.runtime.test_state_round_trip import ALL_TYPES, VALUES, assert_history, random_step
from tests.support.environment import LONG
from tests.support.in_process import (
    InProcessCluster,
    assert_files_right,
    materialise_in_process,
    narrow,
)
from tests.support.states import CHAIN, PROGRAM, QUICK, assert_recomputed, facts_at, refused, rows_of, tree
from tests.support.strategies import RandomProgram, random_program
from tests.support.updates import assert_right, counts, facts_of

NEXT = ".decl edge(x:symbol, y:number) .decl next(y:number) next(y) :- edge(_, y)."
EVERY = 1 if LONG else 61  # of the moments at which a disk can be full


def open_in_process(
    path: Path, version: int | None = None, *, rng: Random | None = None, buckets: int = 3, write: bool = False
) -> Materialisation:
    """A version of a state, opened by the Spark engine; all its jobs run in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_engine, "Cluster", InProcessCluster)
        session: Any = rng or Random(0)  # in the place of the SparkSession
        return Materialisation(*persistence.open_state(path, version, write=write, session=session, buckets=buckets))


def saved_on_cluster(path: Path, counters: str = "both") -> Materialisation:
    """A new state with one version, open for writing."""
    m = materialise_in_process(evermat.Program.parse(PROGRAM), {"edge": CHAIN}, counters=counters)
    assert m.on_cluster
    m.save(path)
    return m


@contextmanager
def any_bounds(rng: Random) -> Iterator[int]:
    """Any of the bounds that decide how work is divided may be tiny within the block; a number of buckets."""
    with narrow(rng) as buckets, pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (saved, "_PACKED", 2),
            (saved, "_TOGETHER", 1),  # a job for every relation
            (state_rows, "_TOGETHER", 1),
            (state_rows, "_PIECE", 2),
            (state_rows, "LARGE", 2),  # tasks write the files of the state
            (state_rows, "PER_FILE", 2),
        ):
            assert hasattr(module, name)
            if rng.random() < 0.5:
                patch.setattr(module, name, value)
        if rng.random() < 0.5:  # files are replaced by fewer all the time
            patch.setattr("evermat.store.delta_table.FAN", rng.randint(2, 4))
            patch.setattr("evermat.store.store._MANY_ROWS", rng.choice([rng.randint(0, 5), PLENTY]))
        yield buckets


def all_counts(m: Materialisation) -> dict[tuple[str, str], Any]:
    """The counters that are valid, of all relations."""
    state, found = state_of(m), {}
    for stratum in m.program.strata:
        for needed, counter in (
            (Counters.NONRECURSIVE, state.nonrecursive_counter),
            (Counters.BOTH, state.recursive_counter),
        ):
            if state.valid_counters(stratum) >= needed:
                found |= {(needed.name, name): counts(m, counter, name) for name in stratum.relations}
    return found


def assert_opened_alike(path: Path, rng: Random, buckets: int) -> None:
    """Both engines find the same in every version."""
    for version in evermat.versions(path):
        with (
            evermat.open(path, version.number) as m,
            open_in_process(path, version.number, rng=rng, buckets=buckets) as found,
        ):
            assert facts_of(found) == facts_of(m)
            assert all_counts(found) == all_counts(m)
            assert list(state_of(found).counters.values()) == list(state_of(m).counters.values())
            one, other = ([state_of(n).work(s) for s in n.program.strata] for n in (found, m))
            assert one == other
            assert found.version == m.version == version.number
            assert found.stats == m.stats == version.stats
            assert_files_right(found)


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_each_engine_goes_on_where_the_other_was(rng: Random) -> None:
    random = random_program(rng)
    explicit = random.facts
    program, kept = evermat.Program.parse(random.text), rng.choice(["none", "nonrecursive", "both"])
    with TemporaryDirectory(dir=QUICK) as home, any_bounds(rng) as buckets:
        path = Path(home) / "state"
        if rng.random() < 0.3:
            m: Materialisation = program.materialise(explicit, counters=kept)
        else:
            m = materialise_in_process(program, explicit, counters=kept, rng=rng, buckets=buckets)
        m.save(path)
        recorded = {1: facts_of(m)}
        for _ in range(3):
            for _ in range(rng.randint(1, 2)):
                random, explicit = random_step(rng, m, random, explicit)
                assert_right(m, random, explicit)
                recorded[m.version] = facts_of(m)
            m.close()
            write = rng.random() < 0.5
            if rng.random() < 0.3:
                m = evermat.open(path, write=write)
            else:
                m = open_in_process(path, rng=rng, buckets=buckets, write=write)
            assert m.version == max(recorded)
            assert_right(m, random, explicit)
        m.close()
        assert_history(path, recorded)
        assert_opened_alike(path, rng, buckets)


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_saving_over_a_state_of_either_engine(rng: Random) -> None:
    first, second = random_program(rng), random_program(rng)
    if rng.random() < 0.3:
        second = RandomProgram(first.relations, second.rules and first.rules[1:], first.facts)
    with TemporaryDirectory(dir=QUICK) as home, any_bounds(rng) as buckets:
        path = Path(home) / "state"
        recorded = {}
        for number, random in enumerate((first, second, first), 1):
            program, kept = evermat.Program.parse(random.text), rng.choice(["none", "both"])
            if rng.random() < 0.3:
                m: Materialisation = program.materialise(random.facts, counters=kept)
            else:
                m = materialise_in_process(program, random.facts, counters=kept, rng=rng, buckets=buckets)
            m.save(path)
            assert m.version == number
            recorded[number] = facts_of(m)
            assert_right(m, random, random.facts)
            m.save(path)  # it is there already
            assert m.version == number
            m.close()
        for number, facts in recorded.items():
            assert facts_at(path, number) == facts
        versions = evermat.versions(path)
        assert [version.facts for version in versions] == [sum(map(len, facts.values())) for facts in recorded.values()]
        for before, after in pairwise(versions):
            assert after.facts == before.facts + after.inserted - after.deleted
        assert_opened_alike(path, rng, buckets)


@pytest.mark.slow
def test_the_changes_of_a_state_that_was_saved_over_are_told(tmp_path: Path) -> None:
    path = tmp_path / "state"
    saved_on_cluster(path).close()
    other = evermat.Program.parse(".decl edge(x:number, y:number) .decl node(x:symbol)")
    with materialise_in_process(other, {"edge": {(0, 1), (9, 9)}, "node": {("a",)}}) as m:
        m.save(path)
    changes = {name: set(rows_of(table)) for name, table in evermat.changes(path, 2).items()}
    assert changes["edge"] == {(9, 9, "+", 2), *((x, y, "-", 2) for x, y in CHAIN if x)}
    assert changes["node"] == {("a", "+", 2)}
    assert len(changes["path"]) == 15
    assert [(v.inserted, v.deleted, v.facts) for v in evermat.versions(path)][1] == (2, 4 + 15 + 6 + 21 + 6, 3)


@pytest.mark.slow
def test_values_of_all_types_come_back(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with materialise_in_process(evermat.Program.parse(ALL_TYPES), {"value": VALUES}) as m:
        m.save(path)
        recorded = {1: facts_of(m)}
        for value in sorted(VALUES):
            m.update(delete={"value": [value]})
            recorded[m.version] = facts_of(m)
        m.update({"value": VALUES})
        recorded[m.version] = facts_of(m)
    assert_history(path, recorded)
    assert_opened_alike(path, Random(0), 2)


@pytest.mark.slow
def test_the_driver_reads_no_rows_when_a_state_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    with saved_on_cluster(path) as m:
        m.update({"edge": [(5, 0)]}, algorithm="dred-c-mod")
        expected = facts_of(m)

    def read(*_: object) -> None:
        raise AssertionError

    for name in ("read", "_loaded"):
        monkeypatch.setattr(Reader, name, read)
    monkeypatch.setattr("evermat.engine.run.Run.next_round", read)  # and nothing is derived
    with open_in_process(path) as found:
        assert state_of(found).cluster.jobs == 1
        assert facts_of(found) == expected
        assert set(state_of(found).counters.values()) == {Counters.MODULAR, Counters.BOTH}
        # What was given is in one file for E and I.
        assert state_of(found).explicit.files("edge") == state_of(found).materialised.files("edge")


@pytest.mark.slow
def test_an_update_writes_what_the_in_memory_engine_writes(tmp_path: Path) -> None:
    in_memory = evermat.Program.parse(PROGRAM).materialise({"edge": CHAIN}, counters="both")
    in_memory.save(tmp_path / "memory")
    on_cluster = saved_on_cluster(tmp_path / "cluster")
    for m in (in_memory, on_cluster):
        m.update({"edge": [(5, 0), (1, 3)]}, {"edge": [(2, 3)]}, algorithm="dred-c-mod")
        m.update({"path": [(0, 1)]}, {"edge": [(5, 0)]}, algorithm="bf-c")
        m.close()
    found = []
    for name in ("memory", "cluster"):
        with Store.open(tmp_path / name) as store:
            relations = store.latest.relations
            stored = {n: [(v, sorted(rows_of(t), key=str)) for v, t in store.read(3, n)] for n in relations}
            found.append((stored, store.latest.counters["hidden"]))
    assert found[0] == found[1]
    assert {row[-1] for _, rows in found[0][0]["path"] for row in rows} == {"+", "-", "="}


def everything(m: Materialisation) -> dict[str, Any]:
    """All that an update must not change if it fails."""
    assert_files_right(m)
    return {"facts": facts_of(m), "explicit": held_facts(m, "asserted"), "version": m.version, "counts": all_counts(m)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", UPDATES)
def test_an_update_that_cannot_be_written_has_not_happened(
    tmp_path: Path,
    disk: Disk,  # noqa: F811
    kind: str,
) -> None:
    path = tmp_path / "state"
    with saved_on_cluster(path) as m:
        m.update({"edge": [(7, 8)]})
        before = everything(m)
        for step in range(0, 400, EVERY):
            disk.left = step
            try:
                m.update(**UPDATES[kind])
            except evermat.ResourceError as error:
                disk.left = PLENTY
                assert "the newest version of the state is what it was" in str(error)
            else:
                break
            assert everything(m) == before
            assert facts_at(path) == before["facts"]
        assert step > 10
        disk.left = PLENTY
        assert m.version == 3
        assert_files_right(m)
        expected = facts_of(m)
    with evermat.open(path) as found:
        assert (found.version, facts_of(found)) == (3, expected)
        assert_recomputed(found, PROGRAM + (LOOP if kind == "rules" else ""))


def test_a_save_that_cannot_be_written_leaves_nothing(tmp_path: Path, disk: Disk) -> None:  # noqa: F811
    with materialise_in_process(evermat.Program.parse(PROGRAM), {"edge": CHAIN}) as m:
        for step in range(0, 400, EVERY):
            disk.left = step
            try:
                m.save(tmp_path / "state")
            except evermat.ResourceError:
                disk.left = PLENTY
            else:
                break
            assert list(tmp_path.iterdir()) == []
            assert m.version is None
        disk.left = PLENTY
        assert step > 10
        assert_files_right(m)
        assert facts_at(tmp_path / "state") == facts_of(m)


class Failing:
    """Jobs of which so many are done, and the next fails."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.left = PLENTY
        execute = InProcessCluster.execute

        def instead(*arguments: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                details = {"what": "do that", "why": "the cluster is gone"}
                raise evermat.ResourceError(Problem(errors.SPARK_FAILED, details))
            return execute(*arguments)

        patch.setattr(InProcessCluster, "execute", instead)

    def fails(self, left: int, action: Callable[[], object]) -> bool:
        """Whether something fails if so many jobs are done."""
        self.left = left
        try:
            action()
        except evermat.ResourceError:
            return True
        finally:
            self.left = PLENTY
        return False


@pytest.mark.slow
def test_an_update_whose_jobs_fail_has_not_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    with saved_on_cluster(path) as m:
        before, files, jobs = everything(m), tree(path), Failing(monkeypatch)
        left = 0
        while jobs.fails(left, lambda: m.update({"edge": [(5, 0)]}, {"edge": [(1, 2)]}, algorithm="dred-c-mod")):
            if left % 12 == 0 or m.version != 1:
                assert everything(m) == before
                assert facts_at(path) == before["facts"]
                assert tree(path).keys() == files.keys()
            left += 4
        assert left > 10
        assert m.version == 2
        assert facts_at(path) == facts_of(m)


def damage(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (damage, "its checksum is wrong"),
        (lambda file: file.write_bytes(b""), "it has 0 bytes instead of "),
        (Path.unlink, "it is missing"),
    ],
)
def test_damage_is_found(tmp_path: Path, spoil: Callable[[Path], object], what: str) -> None:
    path = tmp_path / "state"
    saved_on_cluster(path).close()
    (file,) = (path / "relations" / "path").rglob("*.parquet")
    spoil(file)
    said = refused(lambda: open_in_process(path))
    assert f"error[E503]: `{file}` is damaged: {what}" in said


def test_executors_must_see_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    saved_on_cluster(path).close()
    monkeypatch.setattr(saved, "_exists", lambda _: False)
    said = refused(lambda: open_in_process(path), exit_code=6)
    assert said.startswith("error[E622]: executors do not see `")
    assert "must be in a folder that all machines share" in said


@pytest.mark.slow
def test_writers_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with saved_on_cluster(path) as m:
        with open_in_process(path) as other:
            assert "E502" in refused(lambda: other.update({"edge": [(8, 9)]}))
        m.update({"edge": [(5, 0)]})
        with open_in_process(path, 1) as old:
            assert "E507" in refused(lambda: old.update({"edge": [(8, 9)]}))
    with open_in_process(path, write=True) as m:
        assert "E502" in refused(lambda: evermat.open(path, write=True))
        m.update({"edge": [(8, 9)]})
        assert m.version == 3


@pytest.mark.slow
def test_a_limit_of_an_update_does_not_outlast_it(tmp_path: Path) -> None:
    path = tmp_path / "state"
    saved_on_cluster(path).close()
    with open_in_process(path) as m:
        before = facts_of(m)
        with pytest.raises(evermat.LimitError):
            m.update({"edge": [(5, 0)]}, limit_seconds=0)
        assert (m.version, facts_of(m)) == (1, before)
        m.update({"edge": [(5, 0)]})
        assert m.version == 2


@pytest.mark.spark
def test_with_spark(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path, scratch = tmp_path / "state", tmp_path / "scratch"
    with evermat.Program.parse(NEXT).materialise({"edge": {("a", 1), ("b", 1)}}, counters="nonrecursive") as m:
        m.save(path)
    with evermat.open(path, engine=spark, scratch=scratch) as m:
        assert m.on_cluster
        m.update({"edge": [("c", 2)]}, {"edge": [("a", 1)]}, algorithm="counting")
        assert m.version == 2
        m.save(tmp_path / "other")
    assert list(scratch.iterdir()) == []
    for place, version in ((path, 2), (tmp_path / "other", 1)):
        with evermat.open(place) as found:
            assert found.version == version
            assert facts_of(found) == {"edge": {("b", 1), ("c", 2)}, "next": {(1,), (2,)}}
            assert Counters.NONRECURSIVE in state_of(found).counters.values()
            assert_recomputed(found, NEXT)
    file = min((path / "relations" / "edge").glob("*.parquet"))  # of version 1
    damage(file)
    assert f"`{file}` is damaged" in refused(lambda: evermat.open(path, engine=spark))
