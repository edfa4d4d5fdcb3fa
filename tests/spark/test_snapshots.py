"""Versions of facts on a cluster: a reader has one of them, whatever an update, a change of rules or another reader does meanwhile."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

import evermat
from evermat import Materialisation
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.encoding import decode_rows
from evermat.core.errors import LimitError
from evermat.engine.run import Limits, Run
from evermat.language import Queries
from evermat.runtime.engines.spark_engine import SparkUpdate
from evermat.spark import Scratch
from evermat.spark.engine.job_runner import Cluster
from evermat.spark.jobs import configured
from evermat.spark.launch import session as sessions
from evermat.testing import engine_of, state_of
from tests.support.equality import naive
from tests.support.equality.programs import applied, random_sample, random_update
from tests.support.in_process import InProcessCluster, assert_files_right, materialise_in_process, narrow
from tests.support.released import is_emptied

pytestmark = pytest.mark.spark

PATHS = """
.decl edge(x:symbol, y:symbol)
.decl path(x:symbol, y:symbol)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), edge(y, z).
"""
PATIENCE = 300  # seconds in which jobs end; machines are shared
EDGES = [("a", "b"), ("b", "c"), ("c", "d")]
ALL = {*EDGES, ("a", "c"), ("b", "d")}


def content(reading: Any, relations: Any) -> dict[str, Any]:
    """Everything that a snapshot says of some relations."""
    found: dict[str, Any] = {}
    for name, relation in relations.items():
        for which in ("all", "asserted", "inferred"):
            for expanded in (True, False):
                found[name, which, expanded] = {
                    row
                    for batch in reading.scan(name, which, expanded=expanded)
                    for row in decode_rows(batch, relation.types, reading.dictionary)
                }
        found[name] = (reading.count(name), reading.count(name, expanded=False), reading.count_explicit(name))
    return found


def visible(m: Materialisation) -> dict[str, Any]:
    return {name: relation for name, relation in m.program.relations.items() if not relation.hidden}


def files_of(m: Materialisation) -> set[str]:
    return {str(path) for path in Path(state_of(m).cluster.folder).rglob("*.parquet")}


def current_files(m: Materialisation) -> set[str]:
    """The files of the current version."""
    state = state_of(m)
    counters = [files for c in (state.nonrecursive_counter, state.recursive_counter) for files in c.files.values()]
    sets = [files for s in (state.given, state.explicit, state.materialised) for n in s.names for files in s.files(n)]
    return {file.path for files in (*counters, *sets) for file in files}


@contextmanager
def beside(work: Callable[[], Any]) -> Iterator[Any]:
    """Runs something in a thread beside the block, and raises what it raised."""
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(work)
        yield running
        running.result(PATIENCE)


# --- one version, without Spark --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_snapshot_stays_as_it_is(seed: int) -> None:
    """It is held over updates, also failed ones, changes of rules and of what is equal; then only files of the last version are left."""
    rng = Random(seed)
    with narrow(rng, 50) as buckets:
        sample = random_sample(rng, triples=seed == 0)
        while (before := naive.materialise(sample.program, sample.explicit)).clashes:
            sample = random_sample(rng)
        rules = list(sample.rules)
        program = evermat.Program.parse('.pragma "equality" "rewrite"\n' + sample.text)
        explicit, held = sample.explicit, []
        with materialise_in_process(program, sample.facts, buckets=buckets, rng=rng) as m:
            for step in range(4):
                reading, relations, engine = engine_of(m).snapshot(), visible(m), engine_of(m)
                held.append((reading, relations, content(engine.snapshot(), relations)))
                delete, insert = random_update(rng, sample, explicit, before.facts)
                changed = applied(explicit, delete, insert)
                gone = [rules.pop()] if step == 1 and rules else []
                sample.rules = [rule for rule in sample.rules if rule not in gone]
                if naive.materialise(sample.program, changed).clashes:
                    with pytest.raises(evermat.DataError):
                        m.update(insert, delete, remove_rules="\n".join(gone))
                    sample.rules += gone
                else:
                    m.update(insert, delete, remove_rules="\n".join(gone))
                    explicit = changed
                    before = naive.materialise(sample.program, explicit)
                assert engine.snapshot() is not reading
                del engine
            for reading, relations, expected in held:
                assert content(reading, relations) == expected
            del reading, held
            assert_files_right(m)


def test_what_an_update_does_before_its_end_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it: in the middle of an update, and after one that failed there, facts and representatives are those before."""
    text = ".prefix e: <http://e/> .decl e:mail(x:term, y:term) x = y :- e:mail(x, z), e:mail(y, z)."
    mail, a, b, c = "<http://e/mail>", "<http://e/a>", "<http://e/b>", "<http://e/c>"
    program, seen = evermat.Program.parse(text), []
    with materialise_in_process(program, {mail: [(a, '"m"'), (b, '"m"')]}) as m:
        conclude = SparkUpdate.conclude

        def looked(update: SparkUpdate) -> None:
            conclude(update)
            seen.append((m.names(a), content(engine_of(m).snapshot(), visible(m)), set(m.query("e:mail(x, _)"))))
            if len(seen) == 1:
                raise InterruptedError

        before = m.names(a), content(engine_of(m).snapshot(), visible(m)), set(m.query("e:mail(x, _)"))
        assert before[::2] == ([a, b], {(a,), (b,)})
        held = engine_of(m).snapshot()
        with monkeypatch.context() as patch:
            patch.setattr(SparkUpdate, "conclude", looked)
            with pytest.raises(InterruptedError):
                m.update({mail: [(c, '"m"')]}, {mail: [(b, '"m"')]})
            m.update({mail: [(c, '"m"')]}, {mail: [(b, '"m"')]})
        assert seen == [before, before]
        assert (m.names(a), m.names(b), set(m.query("e:mail(x, _)"))) == ([a, c], [b], {(a,), (c,)})
        assert held.union_find.names_of(a) == [a, b]
        assert content(held, visible(m)) == before[1]


def test_the_run_of_a_reader_is_its_own() -> None:
    """Neither limits nor dropped bindings of a query are those of the materialisation, nor the other way round."""
    text = ".decl a(x:number) .decl b(x:number) b(1 / x) :- a(x)."
    with materialise_in_process(evermat.Program.parse(text), {"a": [(0,), (1,)]}) as m:
        engine, reading = engine_of(m), engine_of(m).snapshot()
        query = Queries(m.program).compile("a(x), y = 1 / x")
        state_of(m).jobs.run = Run(Limits(seconds=1e-9))  # the limits of an update that is under way
        assert reading.evaluate(query, Run()).undefined == 1
        assert content(reading, visible(m))["b"] == (1, 1, 0)
        assert sum(engine.undefined().values()) == 1
        state_of(m).jobs.run = Run()
        with pytest.raises(LimitError):
            reading.evaluate(query, Run(Limits(memory=1)))
        assert reading.evaluate(query, Run()).undefined == 1
        assert not [name for name in state_of(m).context.shapes if name.startswith("query")]


def job(cluster: Cluster, *files: str, fails: bool = False) -> Path:
    """The folder of a job with such files."""
    with suppress(InterruptedError), cluster.results() as folder:
        for name in files:
            Path(folder, name).touch()
        if fails:
            raise InterruptedError
    return Path(folder)


def test_a_job_that_fails_leaves_the_files_of_others(tmp_path: Path) -> None:
    with Scratch(tmp_path) as scratch:
        cluster: Cluster = InProcessCluster(Random(0), scratch, 2)
        with cluster.results() as folder:
            Path(folder, "1.parquet").touch()
            assert not job(cluster, "2.parquet", fails=True).exists()
            assert not job(cluster).exists()
        assert job(cluster, "3.parquet").exists()
        assert sorted(path.name for path in cluster.folder.rglob("*.parquet")) == ["1.parquet", "3.parquet"]


def test_a_folder_that_is_written_to_after_its_job_failed_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Scratch(tmp_path) as scratch:
        cluster: Cluster = InProcessCluster(Random(0), scratch, 2)
        with monkeypatch.context() as patch:
            patch.setattr("shutil.rmtree", lambda *_, **__: None)  # as if a task wrote at the same time
            left = job(cluster, fails=True)
        assert left.exists()
        job(cluster)
        assert not left.exists()


def test_threads_extend_a_dictionary() -> None:
    dictionary, start = Dictionary(), threading.Barrier(4)

    def extend(thread: int) -> list[tuple[str, int]]:
        start.wait(PATIENCE)
        made = []
        for step in range(200):
            texts = [f"{(thread + 1) * number * step % 10007}" for number in range(50)]
            made += zip(texts, dictionary.encode(texts).tolist(), strict=True)
            dictionary.hashes()
            assert dictionary.decode(dictionary.encode(texts)) == texts
            assert dictionary.lookup(texts[-1]) >= 0
        return made

    with ThreadPoolExecutor(4) as threads:
        found = [pair for made in threads.map(extend, range(4)) for pair in made]
    assert [dictionary.symbol(number) for _, number in found] == [text for text, _ in found]
    assert len({text for text, _ in found}) == len(dictionary) == len(set(dictionary.decode(dictionary.rank())))


def test_settings_of_blocks_that_overlap() -> None:
    class Conf(dict[str, str]):
        set, unset = dict.__setitem__, dict.__delitem__

    class Session:
        conf = Conf({"one": "before"})

    session, changes = Session(), {"one": "1", "other": "2"}
    first, second = configured(session, changes), configured(session, changes)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert session.conf == changes
    second.__exit__(None, None, None)
    assert session.conf == {"one": "before"}


def test_threads_that_start_spark_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One starts it, the other waits and gets another session of it; the last one stops it."""
    log: list[str] = []

    class Running:
        spark: Any = None
        archive = None

        def start(self, *_: object) -> Any:
            log.append("start")
            time.sleep(0.2)
            self.spark = object()
            return self.spark

        def close(self, *, well: bool) -> None:
            log.append(f"close {well}")

    monkeypatch.setattr(sessions, "Running", Running)
    monkeypatch.setattr(sessions, "_running", None)
    monkeypatch.setattr(sessions, "_blocks", 0)
    monkeypatch.setattr(sessions, "_active", lambda: None)
    monkeypatch.setattr(sessions, "_another", lambda _: log.append("another"))
    both = threading.Barrier(2)

    def use() -> None:
        with sessions.session(master=None, memory=1 << 30, conf={}):
            both.wait(PATIENCE)

    with ThreadPoolExecutor(2) as threads:
        for used in [threads.submit(use), threads.submit(use)]:
            used.result(PATIENCE)
    assert log == ["start", "another", "close True"]


# --- on Spark --------------------------------------------------------------------------------------------------


def test_readers_beside_an_update(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They see the facts before it, and no limit of it holds for them; a DataFrame keeps what it reads, and so does a view."""
    program = evermat.Program.parse(PATHS)
    derived, resume = threading.Event(), threading.Event()
    conclude = SparkUpdate.conclude

    def waiting(update: SparkUpdate) -> None:
        conclude(update)
        derived.set()
        assert resume.wait(PATIENCE)

    with program.materialise({"edge": EDGES}, engine=spark, place="cluster", scratch=tmp_path) as m:
        grouped = m["path"].to_spark(spark).groupBy("x").count()  # nothing here refers to the DataFrame of all facts
        with m.snapshot() as fixed:
            views = fixed.create_views(spark, "before ")
        rows = iter(m["path"])
        some = next(rows)
        with monkeypatch.context() as patch:
            patch.setattr(SparkUpdate, "conclude", waiting)
            with beside(lambda: m.update(insert={"edge": [("d", "a")]}, delete={"edge": [("b", "c")]})):
                assert derived.wait(PATIENCE)
                try:
                    assert set(m["path"]) == ALL
                    assert set(m.query("path(x, y), !edge(x, y)")) == ALL - set(EDGES)
                    assert (("b", "d") in m["path"], ("d", "a") in m["path"], len(m["path"])) == (True, False, 5)
                    held = engine_of(m).snapshot()
                finally:
                    resume.set()
        assert set(m["path"]) == {("a", "b"), ("c", "d"), ("d", "a"), ("c", "a"), ("d", "b")}
        assert {some, *rows} == ALL
        assert content(held, visible(m))["path", "all", True] == ALL
        assert {tuple(row) for row in grouped.collect()} == {("a", 2), ("b", 2), ("c", 1)}
        assert spark.table(views["path"]).count() == 5
        del held, rows, grouped, fixed
        for view in views.values():
            spark.catalog.dropTempView(view.strip("`"))
        until = time.monotonic() + PATIENCE
        while files_of(m) != current_files(m) and time.monotonic() < until:
            gc.collect()
            spark._jvm.System.gc()
            state_of(m).cluster.frame_pins.release()
        assert files_of(m) == current_files(m)
    assert is_emptied(tmp_path)


def test_queries_at_once(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has limits of its own, and the end of one does not end the jobs of the other."""
    program = evermat.Program.parse(PATHS)
    execute, running = Cluster.execute, threading.Barrier(2)

    def together(*args: Any, **kwargs: Any) -> Any:
        running.wait(PATIENCE)
        return execute(*args, **kwargs)

    with (
        program.materialise({"edge": EDGES}, engine=spark, place="cluster", scratch=tmp_path) as m,
        program.materialise({"edge": EDGES[:2]}, engine=spark, place="cluster", scratch=tmp_path) as other,
    ):
        before = files_of(m)
        monkeypatch.setattr(Cluster, "execute", together)
        with ThreadPoolExecutor(2) as threads:
            limited = threads.submit(m.query, "path(x, y), path(y, z)", limit_seconds=0.001)
            free = threads.submit(m.query, "path(x, y), path(y, z)")
            with pytest.raises(LimitError):
                limited.result(PATIENCE)
            expected = {(x, y, z) for x, y in ALL for w, z in ALL if w == y}
            assert set(free.result(PATIENCE)) == expected
            first = threads.submit(m.query, "path(x, _)")
            second = threads.submit(other.query, "path(x, _)")
            assert (set(first.result(PATIENCE)), set(second.result(PATIENCE))) == (
                {("a",), ("b",), ("c",)},
                {("a",), ("b",)},
            )
        del limited, free, first, second
        gc.collect()
        assert files_of(m) == before
        assert state_of(m).cluster.jobs > 2
    assert not list(tmp_path.iterdir())
