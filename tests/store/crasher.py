"""A writer that dies at a given step: `python -m tests.store.crasher FOLDER STEP…`.

Each step is tried in a process of its own, forked before `deltalake` has started any thread, on the state
`FOLDER/STEP`. What the writer was told is committed stands in `FOLDER/STEP.done`.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

import deltalake.transaction  # noqa: F401 - loaded once, for all the processes

from evermat.store import Store
from evermat.store.delta_table import TableWriter
from tests.store.models import PAIRS, SCHEMAS, contents, entry, merged, plus, table

DIED = 9


def scenario(path: Path, done) -> None:
    """Two versions, compactions and a vacuum on top of `small_state`."""
    with Store.open(path) as store:
        store.lock()
        store.commit(entry(program="// new\n"), {"edge": plus(PAIRS, ("n", 5)), "path": plus(PAIRS, ("n", 5))}, SCHEMAS)
        done(5)
        facts = contents(store, 5, "path")
        store.compact({"path": table(PAIRS, [("+", f, of) for f, of in facts.items()])}, None)
        store.compact({}, None, {"edge": merged(store, "edge")})
        store.vacuum(2)
        store.commit(entry(), {"path": plus(PAIRS, ("n", 6)), "new": plus(PAIRS, ("n", 6))}, SCHEMAS | {"new": PAIRS})
        done(6)


def count_steps(step, act) -> None:
    """Calls `act` before the given step; a step is anything that changes the disk."""
    taken = [0]

    def counted(function):
        def instead(*args, **kwargs):
            taken[0] += 1
            if taken[0] == step:
                act()
            return function(*args, **kwargs)

        return instead

    for name in ("write", "fsync"):
        setattr(os, name, counted(getattr(os, name)))
    for name in ("rename", "replace", "unlink", "mkdir", "rmdir"):
        setattr(Path, name, counted(getattr(Path, name)))
    for name in ("_append", "_create", "tidy", "make_checkpoint"):
        setattr(TableWriter, name, counted(getattr(TableWriter, name)))


def attempt(folder: Path, step: int) -> None:
    """The scenario up to a step; never returns."""
    told = (folder / f"{step}.done").open("w")
    count_steps(step, lambda: os._exit(DIED))
    try:
        scenario(folder / str(step), lambda number: (told.write(f"{number}\n"), told.flush()))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def main() -> None:
    folder = Path(sys.argv[1])
    for step in map(int, sys.argv[2:]):
        child = os.fork()
        if not child:
            attempt(folder, step)
        _, status = os.waitpid(child, 0)
        print(step, os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
