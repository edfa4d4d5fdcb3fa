"""Data files of states that tasks write: the driver only commits them, and nothing else of them stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import evermat
from evermat.spark.engine import state_rows
from evermat.spark.engine.state_rows import WriteTask
from evermat.store import bucket as buckets
from evermat.store import chunked_write, remote_write, state_location
from evermat.store.data_files import Part
from evermat.store.disk import TEMPORARY
from tests.runtime.test_disk_full import LOOP, PLENTY, UPDATES, Disk, disk  # noqa: F401
from tests.spark.test_saved_state import everything, saved_on_cluster
from tests.support.environment import LONG
from tests.support.in_process import InProcessCluster, assert_files_right, materialise_in_process
from tests.support.s3 import serving
from tests.support.states import CHAIN, PROGRAM, assert_recomputed, facts_at, tree
from tests.support.updates import facts_of

EVERY = 1 if LONG else 37  # of the moments at which a disk can be full

MANY = """
.decl edge(x:number, y:symbol, u:unsigned, f:float)
.decl copy(x:number, y:symbol, u:unsigned, f:float)
copy(x, y, u, f) :- edge(x, y, u, f).
"""
ROWS = [(x, f"s{x % 50}", 2**64 - 1 - x, x / 8) for x in range(400)]


@pytest.fixture(autouse=True)
def _written_by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_rows, "LARGE", 2)
    monkeypatch.setattr(state_rows, "PER_FILE", 50)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The relations whose rows come to the driver."""
    seen: list[str] = []
    read = state_rows._Rows.read

    def noted(rows: Any, name: str) -> Any:
        seen.append(name)
        return read(rows, name)

    monkeypatch.setattr(state_rows._Rows, "read", noted)
    return seen


def parts_in(folder: Path) -> list[Part]:
    return [Part.of(path.name, path.stat().st_size) for path in sorted(folder.glob("*.parquet"))]


def named(state: Path) -> set[Path]:
    """The data files that logs name."""
    from evermat.store import Store

    with Store.open(state) as store:
        pins = store._commits.pins.values()
        return {store._folder(pin.folder) / part.path for pin in pins for part in store._log(pin).every}


def present(state: Path) -> set[Path]:
    return {path for path in (state / "relations").rglob("*") if path.is_file() and "_delta_log" not in path.parts}


def test_the_driver_sees_no_rows(tmp_path: Path, driver: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_rows, "LARGE", 20)
    state = tmp_path / "state"
    program = evermat.Program.parse(MANY)
    with materialise_in_process(program, {"edge": ROWS}, counters="both", buckets=5) as m:
        m.save(state)
        assert driver == []
        assert len(parts_in(state / "relations/copy")) == 5
        assert sum(part.rows for part in parts_in(state / "relations/copy")) == 400
        more = [(x, "more", x, -0.0) for x in range(1000, 1200)]
        m.update(insert={"edge": more}, delete={"edge": ROWS[:100]})
        m.update(insert={"edge": [(5000, "one", 1, 0.5)]})
        assert driver == ["edge", "copy"], "a single row does"
        expected = facts_of(m)
    assert named(state) == present(state)
    memory = program.materialise({"edge": ROWS}, counters="both")
    memory.save(tmp_path / "memory")
    memory.update(insert={"edge": more}, delete={"edge": ROWS[:100]})
    memory.update(insert={"edge": [(5000, "one", 1, 0.5)]})
    assert facts_at(state) == facts_at(tmp_path / "memory") == expected
    for first, last in ((1, 1), (2, 3)):
        changes, others = evermat.changes(state, first, last), evermat.changes(tmp_path / "memory", first, last)
        for name in ("edge", "copy"):
            assert sorted(changes[name].to_pylist(), key=str) == sorted(others[name].to_pylist(), key=str)
    with evermat.open(state, write=True) as m:
        m.update(insert={"edge": [(6000, "on", 1, 0.5)]})
    evermat.vacuum(state, 1)
    assert facts_at(state)["copy"] == expected["copy"] | {(6000, "on", 1, 0.5)}


def test_snapshots_and_saving_over(tmp_path: Path, driver: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.store.store._MANY_ROWS", 5)
    state = tmp_path / "state"
    program = evermat.Program.parse(PROGRAM)
    with materialise_in_process(program, {"edge": CHAIN}, counters="both") as m:
        m.save(state)
        for i in range(3):
            m.update(insert={"edge": [(i + 20, j) for j in range(30, 36)]})
        assert any(part.snapshot for part in parts_in(state / "relations/edge"))
        expected = facts_of(m)
    assert facts_at(state) == expected
    assert named(state) <= present(state)
    with materialise_in_process(program, {"edge": [(x + 1, y) for x, y in CHAIN]}) as m:
        m.save(state)
        assert m.version == 5
        expected = facts_of(m)
    assert facts_at(state) == expected
    with evermat.open(state, write=True) as m:
        assert_recomputed(m, PROGRAM)
    assert driver.count("path") < 5


def test_damage_is_found(tmp_path: Path) -> None:
    with saved_on_cluster(tmp_path / "state"):
        pass
    for path in sorted(present(tmp_path / "state")):
        raw = path.read_bytes()
        for spoilt in (raw[:-1], raw[:-9] + bytes([raw[-9] ^ 1]) + raw[-8:]):
            path.write_bytes(spoilt)
            with pytest.raises(evermat.StateError, match=path.name):
                facts_at(tmp_path / "state")
        path.write_bytes(raw)
    facts_at(tmp_path / "state")


# --- attempts that do not count ------------------------------------------------------------------------------------


def test_tasks_that_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a task that runs twice only the last outcome counts; the files of the other one, and half of a file, are removed."""
    run = InProcessCluster._run_task

    def twice(cluster: InProcessCluster, packed: bytes, number: int, batches: Any) -> Any:
        given = list(batches)
        run(cluster, packed, number, given)
        return run(cluster, packed, number, given)

    monkeypatch.setattr(InProcessCluster, "_run_task", twice)
    removed: list[Path] = []
    remove = remote_write.remove_together
    monkeypatch.setattr(remote_write, "remove_together", lambda paths: removed.extend(paths) or remove(paths))
    with saved_on_cluster(tmp_path / "state") as m:
        (tmp_path / "state/relations/path" / f".half{TEMPORARY}").write_bytes(b"PAR1")
        m.update(insert={"edge": [(5, 0), (6, 1)]})
        expected = facts_of(m)
    assert len(removed) > 4 and any(path.name.startswith(".half") for path in removed)
    assert named(tmp_path / "state") == present(tmp_path / "state")
    assert facts_at(tmp_path / "state") == expected


@pytest.mark.parametrize("moment", range(3))
def test_a_job_that_fails(tmp_path: Path, moment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its tasks have written until then is removed; neither the state nor the facts change."""
    write, calls = WriteTask._write, []

    def failing(task: WriteTask, number: int) -> Any:
        calls.append(number)
        if len(calls) > moment:
            raise RuntimeError("a task fails")
        return list(write(task, number))

    with saved_on_cluster(tmp_path / "state") as m:
        before, files = everything(m), tree(tmp_path / "state")
        with monkeypatch.context() as patch:
            patch.setattr(WriteTask, "_write", failing)
            patch.setattr(state_rows, "PER_FILE", 1)
            with pytest.raises(evermat.ResourceError, match="a task fails"):
                m.update(insert={"edge": [(x, 50) for x in range(20)]})
            calls.clear()
            with pytest.raises(evermat.ResourceError, match="a task fails"):
                materialise_in_process(evermat.Program.parse(PROGRAM), {"edge": CHAIN}).save(tmp_path / "new")
        assert everything(m) == before
        assert tree(tmp_path / "state") == files
        assert [path.name for path in tmp_path.iterdir()] == ["state"]
        m.update(insert={"edge": [(x, 50) for x in range(20)]})
        expected = facts_of(m)
    assert facts_at(tmp_path / "state") == expected
    assert named(tmp_path / "state") == present(tmp_path / "state")


@pytest.mark.slow
@pytest.mark.parametrize("kind", UPDATES)
def test_a_full_disk(tmp_path: Path, disk: Disk, kind: str) -> None:  # noqa: F811
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
                assert str(path) in str(error)
            else:
                break
            assert everything(m) == before
            assert facts_at(path) == before["facts"]
        assert step > 10
        disk.left = PLENTY
        assert_files_right(m)
        expected = facts_of(m)
    with evermat.open(path) as found:
        assert (found.version, facts_of(found)) == (3, expected)
        assert_recomputed(found, PROGRAM + (LOOP if kind == "rules" else ""))


def test_a_full_disk_for_a_new_state(tmp_path: Path, disk: Disk) -> None:  # noqa: F811
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
        disk.left = PLENTY
        assert step > 10
        assert_files_right(m)


# --- what tasks see ------------------------------------------------------------------------------------------------


def _elsewhere(token: Any) -> bool:
    return token is None


@pytest.mark.parametrize("blind", ["tasks", "driver"])
def test_a_state_that_is_not_shared(
    tmp_path: Path, blind: str, driver: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows come to the driver, as small ones do, and nothing else stays."""
    if blind == "tasks":
        monkeypatch.setattr(state_rows, "is_token_seen", _elsewhere)
    else:
        monkeypatch.setattr(remote_write, "_are_seen", lambda *_: False)
    with saved_on_cluster(tmp_path / "state") as m:
        m.update({"edge": [(7, 8), (9, 10)]})
        expected = facts_of(m)
    assert set(driver) >= {"edge", "path"}
    assert facts_at(tmp_path / "state") == expected
    assert named(tmp_path / "state") == present(tmp_path / "state")


def test_a_late_task_makes_no_folder(tmp_path: Path) -> None:
    target = remote_write.Target(tmp_path / "gone" / "e", chunked_write.PartName(0, 1, 1), (("x", "int64"),))
    import pyarrow as pa

    rows = pa.table({"x": [1], "_origin": ["explicit"], "_op": ["+"]})
    with pytest.raises(FileNotFoundError):
        list(chunked_write.write_parts(target, [rows]))
    assert list(tmp_path.iterdir()) == []


# --- Spark ---------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("where", ["path", "bucket"])
def test_with_spark(where: str, spark: Any, tmp_path: Path, driver: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    program = evermat.Program.parse(MANY)
    with ExitStack() as stack:
        state = str(tmp_path / "state")
        if where == "bucket":
            service = stack.enter_context(serving())
            for name, value in service.settings.items():
                monkeypatch.setenv(name, value)
                monkeypatch.setitem(spark.sparkContext.environment, name, value)
            monkeypatch.setattr(buckets, "_buckets", {})
            state = service.new_folder()
        with program.materialise({"edge": ROWS}, engine=spark, place="cluster", scratch=tmp_path / "scratch") as m:
            m.save(state)
            m.update(insert={"edge": [(x, "more", x, 0.5) for x in range(1000, 1200)]})
            m.update(delete={"edge": ROWS[:200]})
            expected = set(m["copy"])
        assert driver == []
        with evermat.open(state) as found:
            assert set(found["copy"]) == expected and found.version == 3
        with evermat.open(state, engine=spark, scratch=tmp_path / "scratch") as found:
            assert set(found["copy"]) == expected
        if where == "bucket":
            evermat.vacuum(state, 1)
            assert set(evermat.query(state, "copy(x, y, u, f)")) == expected


@pytest.mark.spark
def test_a_bucket_that_refuses_tasks(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence that names the object; the state is as it was, and nothing of the attempt stays."""
    with serving() as service:
        for name, value in service.settings.items():
            monkeypatch.setenv(name, value)
            monkeypatch.setitem(spark.sparkContext.environment, name, value)
        monkeypatch.setattr(buckets, "_buckets", {})
        state = service.new_folder()
        program = evermat.Program.parse(MANY)
        with program.materialise({"edge": ROWS}, engine=spark, place="cluster", scratch=tmp_path / "scratch") as m:
            m.save(state)
            folder: Any = state_location("state", state)
            before = sorted(buckets.bucket_of(folder).below(folder.key))
            monkeypatch.setitem(spark.sparkContext.environment, "AWS_ENDPOINT_URL", "http://127.0.0.1:9")
            with pytest.raises(evermat.ResourceError) as error:
                m.update(insert={"edge": [(x, "more", x, 0.5) for x in range(1000, 1200)]})
            assert str(error.value) == (
                f"error[E600]: cannot write `{state}`: the service cannot be reached\n"
                "  = note: the newest version of the state is what it was"
            )
            assert sorted(buckets.bucket_of(folder).below(folder.key)) == before
            assert len(m["copy"]) == 400
