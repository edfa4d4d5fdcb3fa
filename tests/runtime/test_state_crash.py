"""A writer that is killed at any moment leaves the last version that it committed, whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

import evermat
from tests.runtime.crasher import KEPT, TEXT, change, program
from tests.support.environment import LONG
from tests.support.states import CHAIN, assert_recomputed, explicit_of, facts_at
from tests.support.strategies import Facts
from tests.support.updates import applied

ROOT = Path(__file__).parent.parent.parent
UPDATES = 500 if LONG else 30
KILLS = UPDATES // 2


class Writers:
    """The process that forks writers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, *, vacuum: bool) -> int:
        """Starts a writer and returns its process id."""
        self._process.stdin.write("vacuum\n" if vacuum else "write\n")
        self._process.stdin.flush()
        return int(self.line())

    def line(self) -> str:
        """The next thing that a writer says."""
        line = self._process.stdout.readline().strip()
        assert line, self._process.stderr.read()
        return line

    def rest(self) -> list[str]:
        """What was still said, once the writer has been killed."""
        lines = [self.line()]
        while not lines[-1].startswith("dead"):
            lines.append(self.line())
        assert lines.pop() == f"dead {-signal.SIGKILL}", self._errors()
        return lines

    def _errors(self) -> str:
        self._process.stdin.close()
        return self._process.stderr.read()


@contextmanager
def writers(path: Path) -> Iterator[Writers]:
    command = [sys.executable, "-m", "tests.runtime.crasher", str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:
        try:
            yield Writers(process)
        finally:
            process.kill()


def kill_one(some: Writers, rng: Random) -> int:
    """Starts a writer and kills it; returns the last version that it said is committed, or 0."""
    child = some.start(vacuum=rng.random() < 0.15)
    said: list[str] = []
    try:
        for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])):  # before it has opened the state, or after some versions
            said.append(some.line())
            assert not said[-1].startswith("dead"), some._errors()
        time.sleep(rng.uniform(0, 0.15))  # an update takes about as long
    finally:
        os.kill(child, signal.SIGKILL)
    return max((int(line) for line in said + some.rest() if line != "open"), default=0)


@pytest.mark.slow
def test_a_state_survives_kills_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with evermat.Program.parse(TEXT).materialise({"edge": CHAIN}, counters="both") as m:
        m.save(path)
    explicit: dict[int, Facts] = {1: {"edge": CHAIN}}
    rng = Random(5)
    newest, kills, unsaid = 1, 0, 0
    with writers(path) as some:
        while newest <= UPDATES or kills < KILLS:
            said = kill_one(some, rng)
            kills += 1
            with evermat.open(path) as m:
                version = m.version
                assert max(newest, said) <= version <= max(newest, said) + 1
                unsaid += version > max(newest, said)
                assert_recomputed(m, program(version))
                found = {name: facts for name, facts in explicit_of(m).items() if facts}
            for number in range(newest + 1, version + 1):
                insert, delete, _ = change(number)
                explicit[number] = applied(explicit[number - 1], delete, insert)
            assert found == explicit[version]
            newest = version
            check_versions(path, explicit)
    with evermat.open(path, write=True) as m:  # and another may go on
        insert, delete, details = change(newest + 1)
        m.update(insert, delete, **details)
        assert_recomputed(m, program(newest + 1))
    print(f"{newest - 1} updates, {kills} kills, {unsaid} versions committed just before the writer could say so")


def check_versions(path: Path, explicit: dict[int, Facts]) -> None:
    """The versions that are kept follow one another; the oldest holds what it should."""
    versions = [version.number for version in evermat.versions(path)]
    assert versions == list(range(versions[0], max(explicit) + 1))
    assert len(versions) >= min(KEPT, len(explicit))
    assert facts_at(path, versions[0])["edge"] == explicit[versions[0]]["edge"]
