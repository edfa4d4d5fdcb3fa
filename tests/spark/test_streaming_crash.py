"""One who follows files, driver and JVM, is killed at any moment: every file has its effect once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import evermat
from tests.support.environment import LASTING
from tests.support.states import assert_recomputed, explicit_of, saved
from tests.support.updates import facts_of

ROOT = Path(__file__).parent.parent.parent
KILLS = 40
NODES = 7


def change(number: int) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """What a file inserts and deletes: always the same for the same file."""
    rng = Random(number)
    inserted, deleted = ({(rng.randrange(NODES), rng.randrange(NODES)) for _ in range(n)} for n in (2, 4))
    return inserted, deleted - inserted


def write_file(folder: Path, number: int) -> None:
    """A file that is whole when it appears."""
    inserted, deleted = change(number)
    written = folder.parent / f"{number:05}.tsv"
    lines = [f"{op}\tedge\t{x}\t{y}\n" for op, some in (("+", inserted), ("-", deleted)) for x, y in sorted(some)]
    written.write_text("".join(lines), encoding="utf-8")
    os.utime(written, (1_700_000_000 + number, 1_700_000_000 + number))
    written.rename(folder / written.name)


class Follower:
    """A process that follows, with all that it has started: they have its environment."""

    def __init__(self, place: Path, module: str) -> None:
        self._mark = f"TMPDIR={place / 'tmp'}"
        command = [
            sys.executable,
            "-m",
            f"tests.spark.{module}",
            place / "state",
            place / "files",
            place / "spark",
        ]
        environment = os.environ | {"TMPDIR": str(place / "tmp")}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(list(map(str, command)), cwd=ROOT, env=environment, text=True, **pipes)

    def line(self) -> str:
        line = self.process.stdout.readline().strip()
        assert line, self.process.stderr.read()
        return line

    def kill(self, rng: Random) -> int:
        """Kills the driver, its JVM and its workers, in any order; how many there were."""
        found = [int(place.name) for place in Path("/proc").glob("[0-9]*") if self._is_ours(place)]
        rng.shuffle(found)
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate()
        return len(found)

    def _is_ours(self, place: Path) -> bool:
        try:
            return self._mark.encode() in (place / "environ").read_bytes().split(b"\0")
        except OSError:
            return False

    def end(self) -> list[str]:
        """What is still said until all is done."""
        out, err = self.process.communicate(timeout=300)
        assert self.process.returncode == 0, err
        return out.split()


def check(place: Path, files: int, newest: int) -> int:
    """What is there is a prefix of the files, each done once: the version that it has reached."""
    with evermat.open(place / "state") as m:
        edges: set[tuple[int, int]] = {(i, i + 1) for i in range(5)}
        for number in range(1, m.version):
            inserted, deleted = change(number)
            edges = (edges - deleted) | inserted
        assert newest <= m.version <= files + 1
        assert explicit_of(m)["edge"] == edges
        assert_recomputed(m)
        return m.version


def run(place: Path, kills: int, seed: int, module: str) -> None:
    (place / "files").mkdir()
    (place / "tmp").mkdir()
    saved(place / "state").close()
    rng, files, newest, killed, amid, with_jvm = Random(seed), 0, 1, 0, 0, 0
    while killed < kills:
        for _ in range(rng.randint(3, 9)):
            files += 1
            write_file(place / "files", files)
        follower = Follower(place, module)
        try:
            before = rng.choice([0, 1, 1, 2, 3, 4, 6])  # things that it says before it is killed
            said = []
            while len(said) < before and "done" not in said:
                said.append(follower.line())
            time.sleep(rng.uniform(0, 0.3) if before else rng.uniform(0, 12))
        finally:
            processes = follower.kill(rng)
        killed += 1
        with_jvm += processes > 1
        reached = check(place, files, newest)
        amid += newest < reached <= files
        newest = reached
    follower = Follower(place, module)
    try:
        assert follower.end()[-1] == "done"
    finally:
        if follower.process.poll() is None:
            follower.kill(rng)
    assert check(place, files, newest) == files + 1
    versions = evermat.versions(place / "state")
    assert [version.number for version in versions] == list(range(1, files + 2))
    batches = [version.batch for version in versions[1:]]
    names = {batch.rpartition(" ")[0] for batch in batches}
    assert len(names) == 1  # the checkpoint was one all the time
    places = [tuple(map(int, batch.rpartition(" ")[2].split("/"))) for batch in batches]
    assert places == sorted(set(places))
    with evermat.open(place / "state") as m:
        assert facts_of(m)["edge"]
        assert m.positions == {names.pop(): "/".join(map(str, places[-1]))}
    print(f"{files} files, {killed} kills, {with_jvm} with a JVM, {amid} when some files were done and some were not")


@pytest.mark.spark
@LASTING
def test_a_follower_survives_kills_at_any_moment(tmp_path: Path) -> None:
    run(tmp_path, KILLS, seed=8, module="streaming_crasher")


@pytest.mark.spark
@pytest.mark.parametrize("kills", [pytest.param(KILLS, marks=LASTING), 1])
def test_a_stream_into_a_state_survives_kills_at_any_moment(kills: int, tmp_path: Path) -> None:
    run(tmp_path, kills, seed=9, module="sink_crasher")
