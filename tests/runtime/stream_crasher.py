"""Commands that can be killed: `python -m tests.runtime.stream_crasher` runs `evermat` for every line that it reads.

A line is JSON: the arguments, and where the command kills itself, if anywhere: `moment` is `commit`, `sync`, `rename` or `operation`, and `after`
how many of them it survives, or `time`, and `after` seconds. With `error`, an operation fails with this error instead; see `tests.store.crasher`.
The command is forked from this process, which has everything loaded but has started no thread. Everything that it says appears on standard output,
after its process id; when it has died, `dead` and its exit code.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import evermat
import evermat.cli.stream
import evermat.runtime.states.persistence
import evermat.store.delta_table
import evermat.store.store
from evermat.cli.main import main as command_line
from tests.runtime.crasher import change, say
from tests.store.crasher import REFUSED, action_of, at
from tests.support.states import PROGRAM


def die_at(moment: str, after: float, error: str) -> Callable[[], bool]:
    """Has this process kill itself after some commits or seconds, or instead of an operation on the disk; or has that fail.

    Returns whether it has failed, for some failures do no harm.
    """
    if moment == "operation":
        taken = at(int(after) + 1, action_of(error))
        return lambda: taken[0] > after
    if moment == "time":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, after or 1e-6)
        return lambda: False
    left = [after]

    def counted(action: Callable[..., Any], *, first: bool) -> Callable[..., Any]:
        def act(*arguments: Any, **named: Any) -> Any:
            result = action(*arguments, **named) if first else None
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result if first else action(*arguments, **named)

        return act

    if moment == "commit":
        keeper = evermat.runtime.states.persistence.StateBinding
        keeper.commit = counted(keeper.commit, first=True)
    elif moment == "sync":
        os.fsync = counted(os.fsync, first=False)
    else:
        assert moment == "rename"
        os.replace = counted(os.replace, first=False)
    return lambda: False


def run(arguments: list[str], moment: str, after: float, error: str) -> int:
    """The command line, in this process; or `save STATE FACTS`, which is for Python only."""
    os.dup2(1, 2)
    has_failed = die_at(moment, after, error) if moment else bool
    if arguments[0] == "save":
        m = evermat.Program.parse(PROGRAM).materialise({"edge": json.loads(arguments[2])}, counters="both")
        m.save(arguments[1], positions="keep")
        say(f"version {m.version}: saved")
        return REFUSED if has_failed() else 0
    sys.argv = ["evermat", *arguments]
    try:
        command_line()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def main() -> None:
    evermat.store.delta_table.FAN = 3
    evermat.store.delta_table.CHECKPOINT_EVERY = 6
    evermat.store.store._MANY_ROWS = 20
    warm = evermat.Program.parse(PROGRAM).materialise({"edge": [(1, 2)]}, counters="both")
    for number in (1, 2):
        insert, delete, _ = change(number)
        for algorithm in ("auto", "dred", "bf"):
            warm.update(insert, delete, algorithm=algorithm)
    assert threading.active_count() == 1, "a process with threads must not be forked"
    for line in sys.stdin:
        task = json.loads(line)
        child = os.fork()
        if not child:
            signal.alarm(120)  # should it hang
            say(os.getpid())
            code = 1
            try:
                code = run(task["arguments"], task["moment"], task["after"], task.get("error", "kill"))
            except BaseException:
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        say(f"dead {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
