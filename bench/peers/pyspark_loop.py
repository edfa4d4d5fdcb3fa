"""The closure of a graph by Spark alone: what one writes who has Spark and no Datalog.

    python -m bench.peers.pyspark_loop EDGES WAY [--cut local] [--partitions 4] …

EDGES is a file of tab-separated numbers. The ways are

- `loop`: round by round, the last round's pairs with the edges, which are broadcast; without repetitions; without those that are there already. The plan of every
  round begins where that of the one before has ended: the lineage is cut.
- `kept`: the same by one who has seen that the rules hand the first column on: everything is partitioned by it, so that nothing moves between rounds.
- `recursive`: one `WITH RECURSIVE`. Spark knows only UNION ALL: pairs are found as often as there are lengths of paths between them, and on a cycle for ever.

The last line of output is a JSON object: the count of the result, rounds, and seconds until it is counted, without the start of Spark.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from functools import reduce
from pathlib import Path
from typing import Any

WAYS = ("loop", "kept", "recursive")
CUTS = ("local", "parquet")
PAIR = "x long, y long"
PAIRED = ["x", "y"]


def session(chosen: argparse.Namespace, folder: Path) -> Any:
    """A plain session, with all that Java does to become fast; only the sizes are those of the machine."""
    from evermat.spark.launch.java import java_home

    if home := java_home(folder):
        os.environ["JAVA_HOME"] = str(home)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": chosen.memory,
        "spark.local.dir": str(folder),
        "spark.sql.adaptive.enabled": str(chosen.adaptive).lower(),
        "spark.sql.shuffle.partitions": str(chosen.partitions),
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
        "spark.sql.join.preferSortMergeJoin": str(chosen.sort_merge).lower(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master(chosen.master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def stop(spark: Any) -> None:
    """Waits for Java, so that the time that it took is known to who waits for us."""
    java = spark.sparkContext._gateway.proc  # noqa: SLF001
    spark.stop()
    java.stdin.close()
    java.wait()


class Cut:
    """Ends the lineage of a frame, and counts it in the same job where that is possible."""

    def __init__(self, spark: Any, folder: Path, how: str) -> None:
        self._spark, self._folder, self._how, self._made = spark, folder, how, 0

    def __call__(self, frame: Any) -> tuple[Any, int]:
        if self._how == "local":
            kept = frame.localCheckpoint(eager=False)  # the count makes it
        else:
            place = str(self._folder / f"cut-{self._made}")
            self._made += 1
            frame.write.option("compression", "lz4").parquet(place)
            kept = self._spark.read.schema(PAIR).parquet(place)
        return kept, kept.count()


def loop(edge: Any, cut: Cut, chosen: argparse.Namespace) -> tuple[int, int]:
    """Round after round until there is nothing new; the count and the number of rounds."""
    from pyspark.sql.functions import broadcast, col

    step = broadcast(edge.select(col("x").alias("y"), col("y").alias("z")))
    start = edge.repartition(chosen.partitions, "x") if chosen.way == "kept" else edge
    delta, count = cut(start.distinct())
    known, total, rounds = [delta], count, 1
    while count:
        found = delta.join(step, "y").select("x", col("z").alias("y")).distinct()
        if count < chosen.few and total > chosen.many:
            # Few pairs against very many: Spark would make a table of the many, or sort them.
            found, _ = cut(found)
            hits = together(known).join(broadcast(found), PAIRED, "left_semi")
            new = found.join(broadcast(hits), PAIRED, "left_anti")
        elif chosen.way == "kept":
            new = found
            for part in known:  # one after another, for a union would forget how its parts are partitioned
                new = new.join(part.hint("shuffle_hash"), PAIRED, "left_anti")
        else:
            new = found.join(together(known), PAIRED, "left_anti")
        delta, count = cut(new)
        known.append(delta)
        total, rounds = total + count, rounds + 1
        if chosen.way == "loop" and len(known) > chosen.compact:  # a plan of many parts takes long to make
            known = [cut(together(known))[0]]
    return total, rounds


def together(parts: list[Any]) -> Any:
    """All the pairs of frames that have none in common."""
    return reduce(lambda left, right: left.union(right), parts)


def recursive(spark: Any, edge: Any, chosen: argparse.Namespace) -> tuple[int, int]:
    """By Spark's own recursion; how many rounds it took, it does not tell."""
    edge.createOrReplaceTempView("edge")
    spark.conf.set("spark.sql.cteRecursionLevelLimit", "-1")
    spark.conf.set("spark.sql.cteRecursionRowLimit", "-1")
    once = "" if chosen.every else "DISTINCT"
    query = f"""
WITH RECURSIVE path(x, y) AS (
    SELECT x, y FROM edge
    UNION ALL
    SELECT {once} path.x, edge.y FROM path JOIN edge ON path.y = edge.x
) SELECT count(*) FROM (SELECT DISTINCT x, y FROM path)"""
    return spark.sql(query).collect()[0][0], 0


def main() -> None:
    """Runs one way once."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("edges", type=Path)
    options.add_argument("way", choices=WAYS)
    options.add_argument("--cut", choices=CUTS, default="local")
    options.add_argument("--partitions", type=int, default=4)
    options.add_argument("--adaptive", action=argparse.BooleanOptionalAction, default=True)
    options.add_argument("--sort-merge", action=argparse.BooleanOptionalAction, default=True)
    options.add_argument("--compact", type=int, default=10, help="parts of what is known, at most")
    options.add_argument("--few", type=int, default=100_000, help="pairs of a round that are few")
    options.add_argument("--many", type=int, default=1_000_000, help="known pairs that are many")
    options.add_argument("--every", action="store_true", help="recursive: keep repetitions within a round")
    options.add_argument("--master", default="local[2]")
    options.add_argument("--memory", default="8g")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        spark = session(chosen, Path(folder))
        started = time.perf_counter()
        edge = spark.read.schema(PAIR).csv(str(chosen.edges.resolve()), sep="\t")
        if chosen.way == "recursive":
            count, rounds = recursive(spark, edge, chosen)
        else:
            count, rounds = loop(edge, Cut(spark, Path(folder), chosen.cut), chosen)
        ended = time.perf_counter()
        stop(spark)
    told = {"count": count, "rounds": rounds, "start": started - begun, "reason": ended - started}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
