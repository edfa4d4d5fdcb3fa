"""A forked child cannot use its parent's materialisations, and does them no harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evermat
from tests.support.gates import updating
from tests.support.states import CHAIN, facts_at, saved

FORKED = (
    "error[E293]: a materialisation cannot be used in a process that was forked from the one that made it\n"
    "  = note: locks and files belong to that process: open the state directory again, or start processes by `spawn`"
)


def in_child(action: Callable[[], Any]) -> str:
    """What an action raises, or returns, in a forked child."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there are other threads: that is what is tested
        child = os.fork()
    if child == 0:
        signal.alarm(60)  # rather than wait for ever
        try:
            try:
                told = str(action())
            except BaseException as error:
                told = str(error)
            os.write(writing, told.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return told


def test_a_child_gets_an_error_also_while_the_parent_updates(tmp_path: Path) -> None:
    with saved(tmp_path / "state") as m, evermat.open(tmp_path / "state", live=True) as live:
        facts, s = m["path"], m.snapshot()
        answer, streamed = m.query("path(0, x)"), evermat.query(tmp_path / "state", "path(x, y)")
        actions: list[Callable[[], Any]] = [
            lambda: len(facts),
            lambda: m.version,
            lambda: m.update({"edge": [(9, 9)]}),
            lambda: list(m.stream([{"insert": {"edge": [(9, 9)]}}])),
            lambda: m.query("path(0, x)"),
            lambda: s["path"],
            lambda: m.snapshot(),
            lambda: m.save(tmp_path / "other"),
            m.refresh,
            lambda: live["edge"],
            lambda: len(streamed),
        ]
        with updating(m, "edge", [(7, 8)]):
            for action in actions:
                assert in_child(action) == FORKED
            assert in_child(lambda: sorted(answer)) == str(sorted(answer))
            assert in_child(m.close) == "None"
            assert in_child(lambda: len(evermat.open(tmp_path / "state")["edge"])) == str(len(CHAIN))
        assert set(m["edge"]) == {*CHAIN, (7, 8)}
    assert facts_at(tmp_path / "state")["edge"] == {*CHAIN, (7, 8)}


def test_a_child_does_not_keep_the_state_locked(tmp_path: Path) -> None:
    m = saved(tmp_path / "state")
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)  # lives until the parent is done
        os._exit(0)
    try:
        assert in_child(lambda: evermat.open(tmp_path / "state", write=True)).startswith("error[E502]")
        m.close()
        with evermat.open(tmp_path / "state", write=True) as other:
            other.update({"edge": [(7, 8)]})
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)


def test_a_child_that_ends_deletes_nothing_of_its_parent(tmp_path: Path) -> None:
    script = """
        import os, sys, tempfile
        from pathlib import Path
        import evermat
        from evermat.spark.scratch import Scratch
        m = evermat.Program.parse('.decl e(x:number) .output e').materialise({"e": [(1,)]})
        m.save("state")

        def fail():
            raise RuntimeError

        def fork(end):
            child = os.fork()
            if child == 0:
                end()
            os.waitpid(child, 0)

        def rows():
            fork(sys.exit)
            yield (2,)

        with Scratch(Path("scratch")) as scratch, m:
            (scratch.path / "facts").write_text("facts")
            m.update({"e": rows()})
            m.write_outputs("out", before_commit=lambda: fork(fail))
            fork(sys.exit)
            assert (scratch.path / "facts").exists()
            m.update({"e": [(3,)]})
            print(sorted(m["e"]), m.version, Path("out/e.csv").read_text().split())
    """
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "[(1,), (2,), (3,)] 3 ['1', '2']\n"), done.stderr
    assert facts_at(tmp_path / "state") == {"e": {(1,), (2,), (3,)}}
