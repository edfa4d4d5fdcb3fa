"""How another version of the sources compares with this one: ``python -m bench.regression OTHER/src``.

Both run in turn, whole processes, on start-up and W1–W6; the columns are the best CPU seconds of each, children included, and
their ratio. Machines are shared: only the ratios within one run mean anything.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.environment import environment
from bench.harness import write_facts
from bench.report import preamble, save, table
from bench.scaling import RESULTS
from bench.startup import SMALL
from bench.workloads import FULL, QUICK

OURS = Path(__file__).parent.parent / "src"


def cpu_seconds(arguments: list[str], folder: Path, source: Path) -> float:
    """CPU seconds of a command of one version, children included."""
    before = os.times()
    subprocess.run(
        [sys.executable, "-m", "evermat", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(source)},
        check=True,
        capture_output=True,
    )
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def jobs(folder: Path, *, quick: bool) -> dict[str, tuple[Path, list[str]]]:
    """The commands by name, each with the directory it runs in; writes their files."""
    (folder / "small.dl").write_text(SMALL, encoding="utf-8")
    found = {
        "--help": (folder, ["--help"]),
        "3 rules, 10 facts": (folder, ["run", "small.dl", "--engine", "memory"]),
    }
    for workload in (QUICK if quick else FULL).values():
        home = folder / workload.name
        home.mkdir()
        write_facts(workload, home)
        (home / "program.dl").write_text(workload.programs["dl"], encoding="utf-8")
        found[workload.name] = home, ["run", "program.dl", "--engine", "memory"]
    return found


def compare(other: Path, repeat: int, *, quick: bool = False) -> dict[str, dict[str, float]]:
    """The best CPU seconds of both versions for each job."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for job, (folder, command) in jobs(Path(name), quick=quick).items():
            times: dict[str, list[float]] = {"before": [], "now": []}
            for source in (other, OURS):
                cpu_seconds(command, folder, source)  # compiles and caches what is not yet
            for _ in range(repeat):
                times["before"].append(cpu_seconds(command, folder, other))
                times["now"].append(cpu_seconds(command, folder, OURS))
            found[job] = {version: min(seconds) for version, seconds in times.items()}
            found[job]["ratio"] = found[job]["now"] / found[job]["before"]
            print(job, found[job], flush=True)
    return found


def main() -> None:
    """Measures, saves, prints."""
    parser = argparse.ArgumentParser(description="Compares two versions of the sources within one run.")
    parser.add_argument("other", type=Path, help="the directory `src` of the other version")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    found: dict[str, Any] = compare(options.other.resolve(), options.repeat, quick=options.quick)
    around = environment([], f"python -m bench.regression OTHER/src --repeat {options.repeat}")
    rows = [["job", "before, CPU s", "now, CPU s", "ratio"]]
    rows += [[job, f"{t['before']:.2f}", f"{t['now']:.2f}", f"{t['ratio']:.3f}"] for job, t in found.items()]
    text = "\n\n".join(["# This version beside another", preamble(around), table(rows)]) + "\n"
    save(RESULTS, "regression", around | {"measured": found}, [], text)
    print(text)


if __name__ == "__main__":
    main()
