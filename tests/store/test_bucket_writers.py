"""States in buckets: whatever request fails, and whatever others write in between, they hold what was committed."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

import evermat.store.bucket
from evermat.core import EvermatError, ResourceError, StateError
from evermat.store import Keep, Store, open_reader
from evermat.store.delta_log import entry_numbers
from evermat.store.location import ObjectPath
from tests.store import crasher
from tests.store.crasher import SCENARIOS, commit
from tests.store.models import PAIRS, SCHEMAS, contents, entry, plus
from tests.store.test_crashes import known, make_small, seen_by_others
from tests.support.environment import LONG
from tests.support.memory_bucket import Killed, MemoryBucket, stop_at

STATE = ObjectPath("memory", "some/state")
_TRIED = 12
STOPS = ["kill before", "kill after", "fail before", "fail after", "fail+ before", "fail+ after"]
Facts = dict[int, dict[str, set]]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    make_small(monkeypatch)
    yield
    use(None)


def use(bucket: MemoryBucket | None) -> None:
    """Has the store find a bucket under the name `memory`."""
    evermat.store.bucket._buckets.pop(STATE.bucket, None)
    if bucket is not None:
        evermat.store.bucket._buckets[STATE.bucket] = bucket


def made(versions: int) -> MemoryBucket:
    """A bucket with a state of some versions."""
    bucket = MemoryBucket()
    use(bucket)
    crasher.first(STATE, lambda _: None)
    with Store.open_to_write(STATE) as store:
        for _ in range(versions - 1):
            commit(store)
    return bucket


def copied(bucket: MemoryBucket, folder: Path) -> Path:
    """The objects of a bucket as files."""
    for key, raw in bucket.objects.items():
        file = folder / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(raw)
    return folder / STATE.key


def check(bucket: MemoryBucket, before: Facts, acknowledged: int, right: Facts, folder: Path | None) -> None:
    """The state is one from before or after a step, for others as well; it can be updated and vacuumed, and has no garbage then."""
    bucket.quiet()
    found = known(STATE)
    newest = max(found)
    assert newest >= max(acknowledged, max(before))
    for number, facts in found.items():
        assert facts == right.get(number, before.get(number)), number
    if folder is not None:
        path = copied(bucket, folder)
        for relation in found[newest].keys() & {"edge", "path"}:
            assert seen_by_others(path, relation) == set(found[newest][relation])
    with Store.open_to_write(STATE) as store:
        newest = store.latest.number
        assert newest - max(found) in (0, 1)  # what was decided is visible now
        facts = {name: set(contents(store, newest, name)) for name in store.latest.relations}
        assert facts == right.get(newest, before.get(newest))
        if facts.keys() == SCHEMAS.keys():
            assert commit(store) == newest + 1
        store.vacuum(1)
        assert facts.keys() <= {pin.relation for pin in store._commits.pins.values()}
        programs = {row.program for row in store._commits.rows() if row.version >= store._commits.base}
        needed = {
            STATE / "evermat.json",
            STATE / "commits" / "_newest",
            *(STATE / "programs" / name for name in programs),
        }
        for folder_, log in [
            (STATE / "commits", store._commits.log),
            *((store._folder(pin.folder), store._log(pin)) for pin in store._commits.pins.values()),
        ]:
            needed |= {folder_ / part.path for part in log.every}
            assert entry_numbers(folder_)[-1] == log.delta
        there = {key for key in bucket.objects if "/_delta_log/" not in key}
        assert there == {path.key for path in needed}


def outcomes(scenario: str, start: MemoryBucket) -> tuple[Facts, int]:
    """What versions hold after a scenario that nothing stops, and how many requests it takes."""
    bucket = start.copy()
    use(bucket)
    found: Facts = {}
    with pytest.MonkeyPatch.context() as patch:
        was = Store.commit

        def committed(store, *given, **options):
            version = was(store, *given, **options)
            found[version.number] = {name: set(contents(store, version.number, name)) for name in version.relations}
            return version

        SCENARIOS[scenario](STATE, lambda _: None)
        count = bucket.requests
        patch.setattr(Store, "commit", committed)
        use(start.copy())
        SCENARIOS[scenario](STATE, lambda _: None)
    return found, count


@pytest.mark.parametrize("scenario", ["first", "commits", "compact", "vacuum", "relations", "recover"])
def test_any_request_may_fail(scenario: str, tmp_path: Path) -> None:
    start = MemoryBucket() if scenario == "first" else made(6)
    before = {} if scenario == "first" else known(STATE)
    right, count = outcomes(scenario, start)
    some = random.Random(scenario)
    all_stops = [(k, how) for k in range(1, count + 1) for how in STOPS]
    for k, how in all_stops if LONG else some.sample(all_stops, min(_TRIED, len(all_stops))):
        bucket, said = start.copy(), list[int]()
        use(bucket)
        stop_at(bucket, how, k)
        try:
            SCENARIOS[scenario](STATE, said.append)
        except (Killed, EvermatError) as error:
            assert isinstance(error, Killed | ResourceError | StateError), (how, k)
        if scenario == "first":
            _check_new(bucket, right)
        else:
            sampled = tmp_path / f"{how}{k}" if some.random() < 0.05 else None
            check(bucket, before, max(said, default=0), right, sampled)


def _check_new(bucket: MemoryBucket, right: Facts) -> None:
    """A new state is not there, or has its first version; in either case it can be saved."""
    bucket.quiet()
    try:
        assert known(STATE) == right
    except StateError as error:
        assert "E500" in str(error)
    try:
        crasher.first(STATE, lambda _: None)
    except StateError as error:
        assert "E508" in str(error)
    assert known(STATE) == right
    check(bucket, right, 1, right, None)


def others(steps: int, *, vacuum: bool) -> Callable[[], None]:
    """A writer that commits some versions, perhaps removes old ones, and ends."""

    def write() -> None:
        with Store.open_to_write(STATE) as store:
            for _ in range(steps):
                store.commit(entry(), {"edge": plus(PAIRS, ("other", store._seen + 1))}, SCHEMAS)
            if vacuum:
                store.vacuum(1)

    return write


@pytest.mark.parametrize(("steps", "vacuum"), [(1, False), (0, True), (9, True)], ids=["commit", "vacuum", "many"])
def test_another_writer_at_any_request(steps: int, vacuum: bool) -> None:
    """At each request of a commit another writer does all that it wants: it succeeds, and the first one does if it had decided."""
    start = made(5)
    with Store.open_to_write(STATE) as store:
        start.quiet()
        commit(store)
        count = start.requests
    start = made(5)
    wins = 0
    for k in range(1, count + 1):
        bucket = start.copy()
        use(bucket)
        with Store.open_to_write(STATE) as store:
            bucket.quiet()

            def interrupt(number: int, *_: str, k: int = k, bucket: MemoryBucket = bucket) -> None:
                if number == k:
                    bucket.before = None
                    others(steps, vacuum=vacuum)()

            bucket.before = interrupt
            try:
                won = commit(store) == 6
            except StateError as error:
                won = False
                assert "E504" in str(error) or (steps == 0 and "E502" in str(error)), error
            except ResourceError as error:
                # So many versions were committed at once that the entry is gone that would tell.
                assert "E601" in str(error)
                assert steps == 9
                won = ("p", 6) in known(STATE)[max(known(STATE))]["path"]
            bucket.quiet()
            wins += won
        newest = 5 + steps + won
        with Store.open_to_write(STATE) as store:
            assert store.latest.number == newest, k
            facts = set(contents(store, newest, "edge"))
            assert (("p", 6) in set(contents(store, newest, "path"))) == won
            assert {("other", number) for number in range(newest - steps + 1, newest + 1)} <= facts or steps == 0
            assert commit(store) == newest + 1
            store.vacuum(1)
            named = {part.path for pin in store._commits.pins.values() for part in store._log(pin).every}
            for key in bucket.objects:
                if "/relations/" in key and key.endswith(".parquet") and "_delta_log" not in key:
                    assert key.rpartition("/")[2] in named
    assert 0 < wins < count


def test_a_loser_removes_its_files() -> None:
    bucket = made(3)
    with Store.open_to_write(STATE) as loser:
        others(1, vacuum=False)()
        with pytest.raises(StateError, match="E504"):
            commit(loser)
    with Store.open_to_write(STATE) as store, Store.open_to_write(STATE) as loser:

        def first(number: int, what: str, key: str) -> None:
            if what == "put new" and "_intents" in key:
                bucket.before = None
                commit(store)
                there.update(bucket.objects)

        there: dict[str, bytes] = {}
        bucket.before = first
        with pytest.raises(StateError, match=r"is at version 5, but this update was computed from version 4"):
            commit(loser)
        own = {key for key in there if key not in bucket.objects}
        assert len([key for key in own if key.endswith(".parquet")]) >= 3
        assert bucket.objects.keys() <= there.keys()
        assert commit(store) == 6


@pytest.mark.parametrize("seed", range(15))
def test_races(seed: int) -> None:
    """Of two writers that begin at the same version exactly one commits; what the other made is gone."""
    bucket = made(2)
    turns, lock = random.Random(seed), threading.Lock()

    def pause(*_: object) -> None:
        with lock:
            wait = turns.random() / 1000
        threading.Event().wait(wait)

    both = threading.Barrier(2)
    done: list[str] = []

    def write() -> None:
        with Store.open_to_write(STATE) as store:
            both.wait()
            try:
                commit(store)
                done.append("won")
            except StateError as error:
                done.append(str(error)[:11])

    bucket.before = pause
    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bucket.quiet()
    assert sorted(done) == ["error[E504]", "won"]
    assert len({found.group() for key in bucket.objects if (found := re.search("w2x[0-9a-f]{8}", key))}) == 1
    check(bucket, known(STATE), 3, {4: known_after(bucket)}, None)


def known_after(bucket: MemoryBucket) -> dict[str, set]:
    """What the next version holds, tried on a copy."""
    use(bucket.copy())
    with Store.open_to_write(STATE) as store:
        number = commit(store)
        found = {name: set(contents(store, number, name)) for name in store.latest.relations}
    use(bucket)
    return found


def test_a_version_that_is_decided_but_not_visible() -> None:
    bucket = made(2)

    def stop(number: int, what: str, key: str) -> None:
        if what == "put new" and "_intents" in key:
            stop_at(bucket, "fail+ before", number)

    bucket.after = stop
    with Store.open_to_write(STATE) as store:
        with pytest.raises(ResourceError) as error:
            commit(store)
        assert str(error.value) == (
            "error[E601]: version 3 of `s3://memory/some/state` could not be completed: the service cannot be reached\n"
            "  = note: it may have been committed: open the state again before you repeat the update"
        )
        bucket.quiet()
        assert max(known(STATE)) == 2  # others see it when the next writer has completed it
        with pytest.raises(StateError, match="E504"):
            commit(store)
    assert max(known(STATE)) == 3


def test_a_damaged_intent_is_found() -> None:
    bucket = made(2)

    def die(number: int, what: str, key: str) -> None:
        if what == "put new" and "_intents" in key:
            stop_at(bucket, "kill before", number)

    bucket.after = die
    with pytest.raises(Killed):
        others(1, vacuum=False)()
    bucket.quiet()
    (key,) = [key for key in bucket.objects if "_intents" in key]
    right = bucket.objects[key]
    for position in range(0, len(right), 97):
        bucket.objects[key] = right[:position] + bytes([right[position] ^ 1]) + right[position + 1 :]
        with pytest.raises(StateError, match="E503"):
            Store.open_to_write(STATE)
    bucket.objects[key] = right
    with Store.open_to_write(STATE) as store:
        assert store.latest.number == 3


def test_keep_holds_in_buckets() -> None:
    made(1)
    with Store.open_to_write(STATE) as store:
        store.keep(Keep.of(3))
        for _ in range(30):
            commit(store)
        assert [version.number for version in store.versions()] == [29, 30, 31]
    with open_reader(STATE) as reader:
        assert reader.latest.number == 31


def test_tables_of_others_are_not_overwritten() -> None:
    bucket = made(3)
    with Store.open_to_write(STATE) as store:
        bucket.objects[f"{STATE.key}/relations/edge/_delta_log/{3:020}.json"] = b"{}"
        with pytest.raises(StateError, match="another program wrote to this table"):
            commit(store)
    assert not [key for key in bucket.objects if "_intents" in key]


def test_deltalake_reads_copies(tmp_path: Path) -> None:
    bucket = made(9)
    path = copied(bucket, tmp_path)
    facts = known(STATE)[9]
    assert DeltaTable(path / "commits").version() == 8
    for relation in ("edge", "path"):
        assert seen_by_others(path, relation) == set(facts[relation])
