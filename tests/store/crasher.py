"""Writers that die, or whose disk fails, at a given operation: `python -m tests.store.crasher FOLDER`.

Reads lines `SCENARIO ERROR K` and runs each scenario in a process of its own, forked before any thread, on the state
`FOLDER/state` that the test has put there. At the K-th operation that changes the disk the process dies, or the operation
fails with the error, once or from then on. Prints for each line how the process ended, and what it said.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import evermat.store.store as store_module
from evermat.core import ResourceError
from evermat.store import Keep, Store, delta_table, disk
from tests.store.models import PAIRS, SCHEMAS, contents, entry, minus, plus

DIED, REFUSED, DONE = 9, 3, 0
Say = Callable[[object], None]
Action = Callable[[int, str], None]


def small() -> None:
    """Has merges, checkpoints and tidying happen after few versions."""
    delta_table.FAN = 3
    delta_table.CHECKPOINT_EVERY = 4
    delta_table._SPREAD = 1
    store_module._TIDY_EVERY = 2


def fact_of(number: int) -> tuple[str, int]:
    return "n", number % 4


def changes_of(number: int) -> dict:
    """What a version changes: always the same for the same version."""
    made = minus if number // 4 % 2 else plus
    return {"edge": made(PAIRS, fact_of(number)), "path": plus(PAIRS, ("p", number))}


def commit(store: Store) -> int:
    """The next version."""
    number = store._seen + 1
    return store.commit(entry(batch=str(number), program=f"// {number // 3}\n"), changes_of(number), SCHEMAS).number


def first(path: Path, say: Say) -> None:
    with Store.create(path) as store:
        store.keep(Keep.of(5))
        say(commit(store))


def commits(path: Path, say: Say) -> None:
    with Store.open_to_write(path) as store:
        for _ in range(7):
            say(commit(store))


def compact(path: Path, say: Say) -> None:
    with Store.open_to_write(path) as store:
        number = store.latest.number
        for name in ("edge", "path"):
            store.compact({name: plus(PAIRS, *contents(store, number, name))}, None)
        say(commit(store))


def vacuum(path: Path, say: Say) -> None:
    with Store.open_to_write(path) as store:
        store.vacuum(2)
        say(store.latest.number)


def relations(path: Path, say: Say) -> None:
    """A relation comes and goes."""
    with Store.open_to_write(path) as store:
        number = store.latest.number
        store.commit(entry(), {"new": plus(PAIRS, ("x", 1))}, SCHEMAS | {"new": PAIRS})
        store.commit(entry(), {"new": minus(PAIRS, ("x", 1))}, SCHEMAS, dropped=["new"])
        store.vacuum(1)
        say(number + 2)


def migrate(path: Path, say: Say) -> None:
    with Store.open_to_write(path) as store:
        say(store.latest.number)


def recover(path: Path, say: Say) -> None:
    """Nothing but what every writer does first."""
    with Store.open_to_write(path) as store:
        say(store.latest.number)


SCENARIOS = {each.__name__: each for each in (first, commits, compact, vacuum, relations, migrate, recover)}


def at(k: int, action: Action) -> list[int]:
    """Does something at the k-th operation, and at all later ones; returns the counter."""
    taken = [0]

    def watch(operation: str, path: Path) -> None:
        del path
        taken[0] += 1
        if taken[0] >= k:
            action(taken[0] - k, operation)

    disk.watch(watch)
    return taken


def action_of(name: str) -> Action:
    """`kill`, or a number of the system's errors: `ENOSPC` fails once, `ENOSPC+` from then on."""
    if name == "kill":
        return lambda *_: os._exit(DIED)
    lasting = name.endswith("+")
    number = getattr(errno, name.rstrip("+"))

    def fail(later: int, operation: str) -> None:
        if later == 0 or (lasting and operation not in {"unlink", "rmdir"}):
            raise OSError(number, os.strerror(number))

    return fail


def attempt(path: Path, scenario: str, error: str, k: int, say: Say) -> int:
    small()
    taken = at(k, action_of(error))
    try:
        SCENARIOS[scenario](path, say)
    except ResourceError:
        return REFUSED
    except BaseException:
        traceback.print_exc()
        return 1
    return DONE if taken[0] < k else REFUSED


def tell(pipe: int, what: object) -> None:
    os.write(pipe, f"{what} ".encode())


def main() -> None:
    folder = Path(sys.argv[1])
    for line in sys.stdin:
        scenario, error, k = line.split()
        read, write = os.pipe()
        child = os.fork()
        if not child:
            code = attempt(folder / "state", scenario, error, int(k), partial(tell, write))
            sys.stderr.flush()
            os._exit(code)
        os.close(write)
        _, status = os.waitpid(child, 0)
        said = os.read(read, 10_000).decode()
        os.close(read)
        print(os.waitstatus_to_exitcode(status), said, flush=True)


if __name__ == "__main__":
    main()
