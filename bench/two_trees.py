"""Compares the sources of two versions within processes that live: each job runs in turn in one and in the other.

`bench.regression` compares whole commands, of which the start takes most where jobs are small. Here each version has one process, which
has compiled everything before a job counts, and which tells the CPU seconds of the job alone. What follows is run by these processes; of
the package they use what users may use, so that older versions can run it, too.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.harness import ROOT, THREAD_VARIABLES
from bench.workloads import FULL, QUICK

FAN, MANY = 10, 20_000  # facts of b for each y, and values of y
UPDATES = """
.decl a(x:number, y:number)
.decl b(y:number, z:number)
.decl r(x:number, z:number)
.decl n(x:number, k:number)
r(x, z) :- a(x, y), b(y, z).
n(x, k) :- a(x, _), k = count : { r(x, _) }.
"""
PATHS = """
.decl e(x:number, y:number)
.decl p(x:number, y:number)
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z), x != z.
"""


def _workload(name: str, *, quick: bool) -> Callable[[], int]:
    import pyarrow as pa

    import evermat

    workload = (QUICK if quick else FULL)[name]
    given = {
        relation: pa.table({f"c{i}": rows[:, i].copy() for i in range(rows.shape[1])})
        for relation, rows in workload.facts()
    }
    program = evermat.Program.parse(workload.programs["dl"])
    return lambda: len(program.materialise(given)[workload.result]) - workload.expected.rows


class _Updated:
    """A join that is updated by as many facts as are wanted, inserted and deleted again; and asked."""

    def __init__(self) -> None:
        import numpy as np

        import evermat
        from bench.updates import pairs

        y = np.repeat(np.arange(MANY), FAN)
        facts = {"a": pairs(np.arange(1000), np.arange(1000) * 7 % MANY), "b": pairs(y, np.arange(len(y)) % 1000)}
        self.m = evermat.Program.parse(UPDATES).materialise(facts, counters="both", schemes="plain")
        self._size, self._next = len(self.m["r"]), 1000

    def change(self, facts: int, times: int) -> int:
        for _ in range(times):
            new = [(self._next + i, i * 13 % MANY) for i in range(facts)]
            self._next += facts
            self.m.update({"a": new})
            self.m.update(delete={"a": new})
        return len(self.m["r"]) - self._size

    def ask(self, text: str, times: int, rows: int) -> int:
        return sum(len(self.m.query(text)) for _ in range(times)) - rows * times

    def read(self, times: int) -> int:
        return sum(len(self.m["r"].to_arrow()) for _ in range(times)) - self._size * times


class _Paths:
    """Paths in a graph, without a module: edges are deleted and inserted again."""

    def __init__(self) -> None:
        import numpy as np

        import evermat

        rng = np.random.default_rng(0)
        ends = np.sort(rng.integers(0, 400, (1200, 2)), axis=1)
        self.edges = sorted({(int(x), int(y)) for x, y in ends if x != y})
        self.m = evermat.Program.parse(PATHS).materialise({"e": self.edges}, counters="both", schemes="plain")
        self._size = len(self.m["p"])

    def change(self, algorithm: Any, times: int) -> int:
        for i in range(times):
            some = self.edges[i * 7 % 900 : i * 7 % 900 + 5]
            self.m.update(delete={"e": some}, algorithm=algorithm)
            self.m.update({"e": some}, algorithm=algorithm)
        return len(self.m["p"]) - self._size


def jobs(*, quick: bool) -> Iterator[tuple[str, Callable[[], int]]]:
    """The jobs by name; each returns 0 if its result is right."""
    for name in FULL:
        yield name, _workload(name, quick=quick)
    times = 2 if quick else 20
    updated, paths = _Updated(), _Paths()
    yield "updates of 1 fact", lambda: updated.change(1, 10 * times)
    yield "updates of 1,000 facts", lambda: updated.change(1000, times)
    yield "updates of paths", lambda: paths.change("auto", times)
    yield "updates of paths, dred", lambda: paths.change("dred", times)
    yield "lookups", lambda: updated.ask("r(17, z)", 10 * times, FAN)
    yield "joins", lambda: updated.ask("a(x, y), b(y, z), z < 100, x < 100", times, 100)
    yield "tables as Arrow", lambda: updated.read(10 * times)


class Child:
    """A process with the sources of one version."""

    def __init__(self, source: Path, *, quick: bool) -> None:
        environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
        environment["PYTHONPATH"] = os.pathsep.join([str(source), str(ROOT)])
        command = [sys.executable, "-m", "bench.two_trees", *(["--quick"] if quick else [])]
        self._process = subprocess.Popen(
            command, env=environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        package = Path(self._line()["package"])
        if not package.is_relative_to(source):
            self._process.kill()
            self.close()
            raise SystemExit(f"there is no package in {source}; {package} would be measured")
        self.jobs: list[str] = self._line()["jobs"]

    def _line(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a process with another version ended with {self._process.wait()}")
        return json.loads(line)

    def run(self, job: str) -> float:
        """CPU seconds of a job."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{job}\n")
        self._process.stdin.flush()
        told = self._line()
        if told["wrong"]:
            raise SystemExit(f"{job}: the result is wrong by {told['wrong']}")
        return float(told["cpu"])

    def close(self) -> None:
        with self._process:  # closes its pipes, and waits
            pass


def compare(ours: Path, other: Path, repeat: int, *, quick: bool, only: Sequence[str] = ()) -> dict[str, Any]:
    """For each job the medians of CPU seconds of both, and the median and spread of the ratios of neighbours."""
    children = {"before": Child(other, quick=quick), "now": Child(ours, quick=quick)}
    found: dict[str, Any] = {}
    try:
        for job in only or children["now"].jobs:
            for child in children.values():
                child.run(job)
            times: dict[str, list[float]] = {"before": [], "now": []}
            for number in range(repeat):
                for version in ("before", "now") if number % 2 else ("now", "before"):
                    times[version].append(children[version].run(job))
            ratios = sorted(now / before for before, now in zip(times["before"], times["now"], strict=True))
            found[job] = {version: statistics.median(seconds) for version, seconds in times.items()}
            found[job] |= {"ratio": statistics.median(ratios), "least": ratios[0], "most": ratios[-1], "all": times}
            print(job, {key: value for key, value in found[job].items() if key != "all"}, file=sys.stderr, flush=True)
    finally:
        for child in children.values():
            child.close()
    return found


def main() -> None:
    """Runs jobs whose names come on standard input."""
    import evermat

    told, sys.stdout = sys.stdout, sys.stderr

    def tell(what: dict[str, Any]) -> None:
        told.write(json.dumps(what) + "\n")
        told.flush()

    tell({"package": str(evermat.__file__)})
    ready = dict(jobs(quick="--quick" in sys.argv))
    tell({"jobs": list(ready)})
    for line in sys.stdin:
        cpu = time.process_time()
        wrong = ready[line.strip()]()
        tell({"cpu": time.process_time() - cpu, "wrong": wrong})


if __name__ == "__main__":
    main()
