"""Writers that can be killed: `python -m tests.runtime.crasher STATE` starts one for every line that it reads.

A writer is forked from this process, which has everything loaded but has started no thread. It vacuums if the line says so, opens the
state and updates it for ever. It prints `pid`, `open` and every version that it was told is committed; when it has died, this
process prints `dead`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from random import Random

import evermat
import evermat.runtime.states.persistence
import evermat.store.delta_table
import evermat.store.store
from tests.support.states import PROGRAM
from tests.support.strategies import Facts

NODES = 7
KEPT = 5
LOOP = "loop(x) :- path(x, x)."
TEXT = PROGRAM + ".decl loop(x:number)\n"
ALGORITHMS = ("auto", "auto", "dred", "dred-c", "bf", "bf-c", "remat")


def change(number: int) -> tuple[Facts, Facts, dict[str, str]]:
    """What the update that makes a version inserts and deletes, and how: always the same for the same version."""
    rng = Random(number)
    insert, delete = ({(rng.randrange(NODES), rng.randrange(NODES)) for _ in range(n)} for n in (2, 4))
    details = {"algorithm": rng.choice(ALGORITHMS)}
    if number % 40 == 20:
        details["add_rules"] = LOOP
    if number % 40 == 0:
        details["remove_rules"] = LOOP
    return {"edge": insert}, {"edge": delete}, details


def program(number: int) -> str:
    """The program of a version."""
    return TEXT + (LOOP if number % 40 >= 20 else "")


def write(path: str, *, vacuum: bool) -> None:
    """Updates the state for ever."""
    if vacuum:
        evermat.vacuum(path, KEPT)
    m = evermat.open(path, write=True)
    say("open")
    while True:
        insert, delete, details = change(m.version + 1)
        m.update(insert, delete, **details)
        say(m.version)


def say(word: object) -> None:
    """One line, in one piece."""
    os.write(1, f"{word}\n".encode())


def main() -> None:
    evermat.store.delta_table.FAN = 3
    evermat.store.delta_table.CHECKPOINT_EVERY = 6
    evermat.store.store._MANY_ROWS = 20
    warm = evermat.Program.parse(TEXT).materialise({"edge": [(1, 2)]}, counters="both")
    for number in (1, 20, 40):
        insert, delete, details = change(number)
        warm.update(insert, delete, **details)
    assert threading.active_count() == 1, "a process with threads must not be forked"
    for line in sys.stdin:
        child = os.fork()
        if not child:
            signal.alarm(120)  # should it hang
            say(os.getpid())
            try:
                write(sys.argv[1], vacuum=line == "vacuum\n")
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        _, status = os.waitpid(child, 0)
        say(f"dead {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
