"""One who follows files and can be killed: `python -m tests.spark.streaming_crasher STATE FOLDER CHECKPOINT`.

It prints `following` when it has begun, every position that it has reached, and `done` when all files that are there are processed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import evermat
from evermat.spark.launch.session import session

FILES_PER_BATCH = 4


def say(word: object) -> None:
    """One line, in one piece."""
    os.write(1, f"{word}\n".encode())


def main() -> None:
    state, folder, checkpoint = map(Path, sys.argv[1:])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    memory = 1 << 30
    with (
        session(master="local[1]", memory=memory, conf={}, name="crasher") as spark,
        evermat.open(state, write=True) as m,
    ):
        query = m.follow_files(
            spark, folder, checkpoint=checkpoint, files_per_batch=FILES_PER_BATCH, available_now=True
        )
        say("following")

        def report() -> None:
            before = None
            while True:
                reached = next(iter(m.positions.values()), None)
                if reached != before:
                    before = reached
                    say(reached)
                time.sleep(0.002)

        threading.Thread(target=report, daemon=True).start()
        query.awaitTermination()
    say("done")


if __name__ == "__main__":
    main()
