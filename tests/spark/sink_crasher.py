"""A stream that is written into a state and can be killed: `python -m tests.spark.sink_crasher STATE FOLDER CHECKPOINT`.

It prints `following` when it has begun, every version that it has reached, and `done` when all files that are there are processed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import evermat
from evermat.spark.launch.session import session
from tests.spark.streaming_crasher import say


def main() -> None:
    state, folder, checkpoint = map(Path, sys.argv[1:])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with session(master="local[1]", memory=1 << 30, conf={}, name="crasher") as spark:
        evermat.register_source(spark)
        reader = spark.readStream.schema("op string, relation string, x long, y long").option("sep", "\t")
        changes = reader.option("maxFilesPerTrigger", 1).csv(str(folder)).select("op", "x", "y")
        writer = changes.writeStream.format("evermat").option("state", str(state)).option("relation", "edge")
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        say("following")

        def report() -> None:
            before = None
            while True:
                reached = evermat.versions(state)[-1].number
                if reached != before:
                    before = reached
                    say(reached)
                time.sleep(0.01)

        threading.Thread(target=report, daemon=True).start()
        query.awaitTermination()
    say("done")


if __name__ == "__main__":
    main()
