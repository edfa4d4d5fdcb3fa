"""Commands that write a state are stopped at each operation, and killed at any moment: nothing that was acknowledged is lost."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

import evermat
from evermat.runtime.streams.folder_stream import stream_name
from tests.runtime.test_state_format import EXPECTED, extracted, rows
from tests.runtime.test_stream_crash import KILLED, Streams, streams
from tests.store.crasher import REFUSED
from tests.store.test_crashes import ERRORS
from tests.support.environment import LONG
from tests.support.states import PROGRAM, QUICK, assert_recomputed, explicit_of, saved, tree
from tests.support.updates import facts_of

KILLS = 2000 if LONG else 8
NODES = 6
Edges = frozenset[tuple[int, int]]


@pytest.fixture
def quick_path() -> Iterator[Path]:
    """A folder where nothing waits for a disk."""
    with TemporaryDirectory(dir=QUICK) as home:
        yield Path(home)


def told(said: Iterable[str]) -> int:
    """The newest version that a command said is committed."""
    return max((int(found.group(1)) for line in said if (found := re.match(r"version (\d+): ", line))), default=0)


def check_goes_on(path: Path, rng: Random) -> None:
    """The state can be updated, vacuumed and queried."""
    edge = (rng.randrange(NODES), rng.randrange(NODES))
    with evermat.open(path) as m:
        version, facts = m.version, facts_of(m)
        m.update({"edge": [edge]})
        after = facts_of(m)
        assert (m.version, after["edge"]) == (version + 1, facts["edge"] | {edge})
    assert set(evermat.query(path, "path(x, y)")) == after["path"]
    assert set(evermat.query(path, "path(x, y)", version)) == facts["path"]
    evermat.vacuum(path, 2)
    assert set(evermat.query(path, "path(x, y)", version)) == facts["path"]
    with evermat.open(path) as m:
        assert facts_of(m) == after
        assert_recomputed(m)


@pytest.fixture(scope="module")
def some() -> Iterator[Streams]:
    with streams() as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
def test_every_operation_of_saving_over_a_state(quick_path: Path, some: Streams, error: str) -> None:
    """Another program with other types of a relation, so that relations are dropped, created and changed."""
    before = quick_path / "before"
    text = PROGRAM.replace("reach(x:number, n:number)", "reach(x:number, n:number, s:symbol)")
    text = text.replace("reach(x, n) :- node(x)", 'reach(x, n, "s") :- node(x)') + ".decl gone(x:number)\n"
    with evermat.Program.parse(text).materialise({"edge": [(i, i + 1) for i in range(4)], "gone": [(1,)]}) as m:
        m.save(before, keep=4)
        m.update({"edge": [(7, 8)]}, position=("orders", "1"))
        old = facts_of(m)
    path, rng = quick_path / "state", Random(error)
    ends = Counter[bool]()
    for k in range(10_000) if LONG else range(0, 10_000, 53):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(before, path)
        code, said = some.run_until(["save", str(path), "[[0, 1], [1, 2]]"], "operation", k, error)
        with evermat.open(path) as m:
            happened = m.version == 3
            assert happened or m.version == 2 > told(said)
            assert m.positions == {"orders": "1"}
            if happened:
                assert explicit_of(m)["edge"] == {(0, 1), (1, 2)}
                assert "gone" not in m
                assert_recomputed(m)
            else:
                assert facts_of(m) == old
        if not happened:
            with evermat.open(path) as m:
                m.save(path)
                m.update({"edge": [(8, 9)]})
            with evermat.Program.parse(PROGRAM).materialise({"edge": [(0, 1)]}, counters="both") as m:
                m.save(path, positions="keep")
        check_goes_on(path, rng)
        ends[happened] += 1
        if not code:
            break
        assert code in ({*KILLED} if error == "kill" else {REFUSED, 1}), said
        assert code != 1 or "cannot write" in " ".join(said)
    assert ends[False] > 1
    print(f"{error}: {ends.total()} moments, {ends[True]} of them after the commit")


class Life:
    """A state, what it should hold, and commands that write it."""

    def __init__(self, home: Path, rng: Random) -> None:
        self._home, self._rng = home, rng
        self.path, self.source, self._old = home / "state", home / "source", home / "format 1"
        self.source.mkdir()
        self.edges: Edges = frozenset({(0, 1), (1, 2)})
        saved(self.path, set(self.edges)).close()
        (home / "p.dl").write_text(PROGRAM + ".input edge\n")
        (home / "facts").mkdir()
        self.version = 1
        self._files = 0
        extracted(home / "archive")

    def command(self, kind: str) -> tuple[list[str], list[Edges]]:
        """The arguments of a command, and the edges after each version that it makes."""
        state = ["--state", str(self.path)]
        match kind:
            case "update":
                files, after = self._changes(self._home, self.edges)
                return ["update", *state, *map(str, files)], after
            case "stream":
                self._changes(self.source, self.edges)
                with evermat.open(self.path) as m:
                    done = m.positions.get(stream_name(self.source), "")
                now, after = self.edges, []
                for file in sorted(self.source.iterdir()):
                    if file.name > done:
                        now = changed(now, file)
                        after.append(now)
                return ["stream", *state, "--source", str(self.source), "--once"], after
            case "run":
                new = self._some(5)
                (self._home / "facts" / "edge.facts").write_text("".join(f"{x}\t{y}\n" for x, y in new))
                arguments = ["run", str(self._home / "p.dl"), "-F", str(self._home / "facts"), *state]
                return [*arguments, "--engine", "memory", "--keep-positions"], [new]
            case "save":
                new = self._some(5)
                return ["save", str(self.path), json.dumps(sorted(new))], [new]
        return ["vacuum", *state, "--keep", str(self._rng.randint(1, 4))], []

    def _changes(self, folder: Path, now: Edges) -> tuple[list[Path], list[Edges]]:
        """New files of changes, and the edges after each."""
        files, after = [], []
        for _ in range(self._rng.randint(1, 3)):
            self._files += 1
            files.append(folder / f"{self._files:06}.tsv")
            lines = [f"+\tedge\t{x}\t{y}\n" for x, y in self._some(2)] + [
                f"-\tedge\t{x}\t{y}\n" for x, y in self._some(1)
            ]
            files[-1].write_text("".join(lines))
            now = changed(now, files[-1])
            after.append(now)
        return files, after

    def _some(self, count: int) -> Edges:
        return frozenset((self._rng.randrange(NODES), self._rng.randrange(NODES)) for _ in range(count))

    def check(self, after: list[Edges], acknowledged: int, *, complete: bool) -> None:
        """The state is at one of the versions that the command made, and all that was acknowledged is there."""
        with evermat.open(self.path) as m:
            assert max(self.version, acknowledged) <= m.version <= self.version + len(after)
            assert m.version == self.version + len(after) or not complete
            self.edges = [self.edges, *after][m.version - self.version]
            assert explicit_of(m)["edge"] == self.edges
            assert_recomputed(m)
        check_goes_on(self.path, self._rng)
        with evermat.open(self.path) as m:
            self.version, self.edges = m.version, frozenset(explicit_of(m)["edge"])
        assert [v.number for v in evermat.versions(self.path)] == [self.version - 1, self.version]

    def migrate(self) -> list[str]:
        """The arguments of a migration."""
        shutil.rmtree(self._old, ignore_errors=True)
        shutil.copytree(self._home / "archive" / "plain", self._old)
        return ["migrate", "--state", str(self._old)]

    def check_migrated(self) -> None:
        versions = EXPECTED["plain"]["versions"]
        number = self._rng.choice(list(versions))
        with evermat.open(self._old, int(number)) as m:
            assert facts_of(m) == rows(versions[number])
        with evermat.open(self._old) as m:
            assert m.positions == {"directory:/changes": "0002.tsv"}
            m.update({"edge": [("new", "a")]})
            facts = facts_of(m)
        evermat.vacuum(self._old, 1)
        assert set(evermat.query(self._old, "path(x, y)")) == facts["path"]
        assert {name.split("/")[0] for name in tree(self._old)} == {
            "commits",
            "relations",
            "programs",
            "lock",
            "evermat.json",
        }


def changed(edges: Edges, file: Path) -> Edges:
    """Edges after a file of changes, of which the last line about a fact counts."""
    found = set(edges)
    for line in file.read_text().splitlines():
        sign, _, x, y = line.split("\t")
        (found.add if sign == "+" else found.discard)((int(x), int(y)))
    return frozenset(found)


class Moments:
    """Moments at which commands are killed: these last about as long as they do."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._most: dict[tuple[str, str], float] = {}

    def choose(self, kind: str) -> tuple[str, float]:
        moment = self._rng.choice(["operation", "time"])
        most = self._most.setdefault((kind, moment), 40 if moment == "operation" else 0.2)
        return moment, self._rng.randrange(int(most)) if moment == "operation" else self._rng.uniform(0, most)

    def learn(self, kind: str, moment: str, after: float, *, killed: bool) -> None:
        most = self._most[kind, moment]
        if killed and after > 0.8 * most:
            self._most[kind, moment] = 1.25 * most
        elif not killed:
            self._most[kind, moment] = max(0.93 * most, 4 if moment == "operation" else 0.02)


@pytest.mark.slow
def test_commands_that_are_killed_lose_nothing(quick_path: Path, some: Streams) -> None:
    rng = Random(17)
    killed, ran, begun = Counter[str](), Counter[str](), time.monotonic()
    life, moments = Life(quick_path, rng), Moments(rng)
    while killed.total() < KILLS:
        kind = rng.choice(["update", "update", "stream", "run", "save", "vacuum", "migrate"])
        moment, after = moments.choose(kind)
        arguments, versions = (life.migrate(), []) if kind == "migrate" else life.command(kind)
        code, said = some.run_until(arguments, moment, after)
        assert code in {0, *KILLED}, said
        moments.learn(kind, moment, after, killed=code != 0)
        killed[kind] += code != 0
        ran[kind] += 1
        if kind == "migrate":
            life.check_migrated()
        else:
            life.check(versions, told(said), complete=not code)
        if killed.total() % 100 == 0 and code:
            print(f"{killed.total()} kills in {time.monotonic() - begun:.0f} s: {dict(killed)}", flush=True)
    print(f"{ran.total()} commands, {killed.total()} kills in {time.monotonic() - begun:.0f} s: {dict(killed)}")
