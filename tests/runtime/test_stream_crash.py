"""A stream that is killed at any moment and started again takes every file once, in order."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

import evermat
from evermat.runtime.streams.folder_stream import stream_name
from tests.store.crasher import DIED
from tests.support import oracle
from tests.support.environment import LONG
from tests.support.states import CHAIN, PROGRAM, assert_recomputed, explicit_of
from tests.support.strategies import Facts
from tests.support.updates import applied, facts_of

ROOT = Path(__file__).parent.parent.parent
FILES, KILLS = (60, 200) if LONG else (24, 4)
EVERY = 1 if LONG else 6  # of the versions are opened
NODES = 7
PATHS = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
.decl loop(x:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
loop(x) :- path(x, x).
"""
MOMENTS = {"": 1, "commit": 8, "sync": 50, "rename": 8}  # and how many of them are survived at most
KILLED = {-signal.SIGKILL, -signal.SIGALRM, DIED}
OPTIONS = (["--marking"], ["--no-marking"], ["--coalesce"], ["--algorithm", "bf"], ["--algorithm", "dred"])


class Streams:
    """The process that forks streams."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.kills = 0

    def run(self, arguments: list[str], rng: Random, *, kill: bool) -> tuple[int, list[str]]:
        """Runs the command, and kills it if it lives so long: how it ended, and what it said."""
        moment = rng.choice(["", *MOMENTS]) if kill else ""
        child = self._begin(arguments, moment, rng.randrange(MOMENTS[moment]))
        said: list[str] = []
        if kill and not moment:
            self._read(said, rng.choice([0, 0, 1, 2, 3, 5, 8]))  # before the state is opened, or after some versions
            if not said or not said[-1].startswith("dead"):
                time.sleep(rng.uniform(0, 0.1))
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
        return self._end(said)

    def run_until(self, arguments: list[str], moment: str, after: float, error: str = "kill") -> tuple[int, list[str]]:
        """Runs the command, which kills itself at a moment or meets an error: how it ended, and what it said."""
        self._begin(arguments, moment, after, error)
        return self._end([])

    def _begin(self, arguments: list[str], moment: str, after: float, error: str = "kill") -> int:
        task = {"arguments": arguments, "moment": moment, "after": after, "error": error}
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def _end(self, said: list[str]) -> tuple[int, list[str]]:
        self._read(said, None)
        code = int(said.pop().removeprefix("dead "))
        self.kills += code in KILLED
        return code, said

    def _read(self, said: list[str], lines: int | None) -> None:
        """Reads so many lines, or until the stream has ended."""
        while (lines is None or len(said) < lines) and not (said and said[-1].startswith("dead")):
            said.append(self._line())

    def _line(self) -> str:
        line = self._process.stdout.readline()
        assert line, "the process that starts streams has ended"
        return self._line() if line.startswith("compiling kernels") else line.strip()


@contextmanager
def streams() -> Iterator[Streams]:
    command = [sys.executable, "-m", "tests.runtime.stream_crasher"]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield Streams(process)
        finally:
            process.kill()


def fill(source: Path, rng: Random) -> dict[str, Facts]:
    """Random files of changes; the explicit facts after each."""
    source.mkdir(parents=True)
    facts: Facts = {"edge": set(CHAIN)}
    after = {}
    insert: set[tuple[int, int]] = set()
    for number in range(FILES):
        passing = set(rng.sample(sorted(insert), len(insert) // 2))  # it comes and goes at once
        insert, delete = ({(rng.randrange(NODES), rng.randrange(NODES)) for _ in range(3)} for _ in range(2))
        delete |= passing
        lines = [f"-\tedge\t{x}\t{y}\n" for x, y in delete] + [f"+\tedge\t{x}\t{y}\n" for x, y in insert]
        name = f"{number:03}.tsv"
        (source / name).write_text("".join(lines))
        facts = applied(facts, {"edge": delete}, {"edge": insert})
        after[name] = facts
    return after


def follow(some: Streams, folder: Path, kills: int, rng: Random, text: str, options: list[str]) -> None:
    """Streams a folder to its end, however often that is cut short, and looks at the state each time."""
    after = fill(folder / "src", rng)
    with evermat.Program.parse(text).materialise({"edge": CHAIN}, counters="both") as m:
        m.save(folder / "state")
    command = ["stream", "--state", str(folder / "state"), "--source", str(folder / "src"), "--once", *options]
    command += ["--changes-out", str(folder / "out"), "--stats", str(folder / "stats.jsonl")]
    newest, begun, code = 1, some.kills, 1
    while code:
        code, said = some.run(command, rng, kill=some.kills - begun < kills)
        assert code in (0, -signal.SIGKILL), said
        told = [int(match.group(1)) for line in said if (match := re.fullmatch(r"version (\d+): .*", line))]
        assert len(told) == len(said), said
        assert told == list(range(told[0], told[0] + len(told))) if told else True
        with evermat.open(folder / "state") as m:
            assert max([newest, *told]) <= m.version <= max([newest, *told]) + 1
            newest = m.version
            position = m.positions.get(stream_name(folder / "src"))
            assert explicit_of(m)["edge"] == (after[position]["edge"] if position else CHAIN)
    check(folder, after, text, coalesced="--coalesce" in options)


def check(folder: Path, after: dict[str, Facts], text: str, *, coalesced: bool) -> None:
    """Every file was taken once, in order; all versions hold what they should, and what each changed was told once."""
    first, *versions = evermat.versions(folder / "state")
    assert first.batch is None
    assert [version.number for version in versions] == list(range(2, 2 + len(versions)))
    names = [version.batch.removeprefix(stream_name(folder / "src") + " ") for version in versions]
    if coalesced:
        assert names == sorted(set(names))
        assert names[-1] == max(after)
    else:
        assert names == list(after)
    with evermat.open(folder / "state") as m:
        assert_recomputed(m, text)
        assert explicit_of(m)["edge"] == after[max(after)]["edge"]
    with evermat.open(folder / "state", 1) as m:
        facts = facts_of(m)
    program = oracle.read(text)
    assert {path.name for path in folder.glob("out/0*")} == {f"{version.number:06}.tsv" for version in versions}
    for version, name in zip(versions, names, strict=True):
        replay(facts, folder / "out" / f"{version.number:06}.tsv")
        if version.number % EVERY == 0:
            with evermat.open(folder / "state", version.number) as m:
                assert facts_of(m) == facts
        if version.number % 12 == 0:
            assert facts == oracle.materialise(program, after[name])


def replay(facts: Facts, feed: Path) -> None:
    """Applies what a version has changed: nothing comes that is there, or goes that is not."""
    for line in feed.read_text().splitlines():
        sign, name, *values = line.split("\t")
        fact = tuple(map(int, values))
        assert (fact in facts[name]) == (sign == "-"), f"{feed}: {line}"
        (facts[name].remove if sign == "-" else facts[name].add)(fact)


@pytest.mark.slow
def test_every_file_is_taken_once_whatever_kills_the_stream(tmp_path: Path) -> None:
    rng = Random(11)
    rounds, begun = 0, time.monotonic()
    with streams() as some:
        while some.kills < KILLS:
            text, options = rng.choice([PROGRAM, PATHS]) if LONG else PROGRAM, OPTIONS[rounds % len(OPTIONS)]
            follow(some, tmp_path / str(rounds), rng.randint(4, 10) if LONG else KILLS, rng, text, options)
            rounds += 1
    print(f"{rounds} folders of {FILES} files, {some.kills} kills, {time.monotonic() - begun:.0f} s")
