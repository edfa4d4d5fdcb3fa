"""Updates of one of thousands of relations, for `bench.state`; `python -m bench.state_relations FOLDER RELATIONS UPDATES` prints one measurement.

Of the package that Python finds: with `PYTHONPATH`, of another one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import evermat

ROOT = Path(__file__).resolve().parents[1]


def measured(folder: Path, relations: int, updates: int) -> dict[str, Any]:
    """What it takes, in milliseconds of CPU, to make an update of one fact durable: the first one, and the median of all later ones."""
    text = "".join(f".decl r{number}(x:number)\n" for number in range(relations))
    place = folder / "relations"
    with evermat.Program.parse(text).materialise({f"r{number}": [(number,)] for number in range(relations)}) as made:
        made.save(place)
    cpu, writing = [], []
    with evermat.open(place, write=True) as m:
        for number in range(updates + 1):
            begun = time.process_time()
            change = m.update(insert={f"r{number % 7 * relations // 7}": [(-1 - number,)]})
            cpu.append(1e3 * (time.process_time() - begun))
            writing.append(1e3 * change.stats["cpu_seconds"]["write"])
    return {
        "relations": relations,
        "first_cpu_ms": round(cpu[0], 1),
        "cpu_ms": round(statistics.median(cpu[1:]), 2),
        "commit_cpu_ms": round(statistics.median(writing[1:]), 2),
        "files": sum(1 for file in place.rglob("*") if file.is_file()),
    }


def one_of_many(folder: Path, quick: bool, sources: list[Path]) -> list[dict[str, Any]]:
    """The measurement with this package, and with those in other folders."""
    found = []
    for number, source in enumerate([ROOT / "src", *sources]):
        place = folder / f"many{number}"
        place.mkdir()
        arguments = [str(place), str(100 if quick else 5_000), str(5 if quick else 50)]
        done = subprocess.run(
            [sys.executable, "-m", "bench.state_relations", *arguments],
            cwd=ROOT,
            env=dict(os.environ, PYTHONPATH=str(source)),
            check=True,
            capture_output=True,
            text=True,
        )
        found.append({"package": "this one" if number == 0 else "the one before", **json.loads(done.stdout)})
    return found


def rendered(found: list[dict[str, Any]]) -> tuple[str, list[list[str]]]:
    """The text and the table of a section."""
    told = (
        "Updates that insert one fact into one of many relations, in one process that has the state open: CPU of the first one, and the "
        "median of 50 later ones; the commit is a part of that."
    )
    rows = [["package", "relations", "first, ms", "later, ms", "the commit of it, ms", "files"]]
    rows += [
        [
            f["package"],
            f"{f['relations']:,}",
            str(f["first_cpu_ms"]),
            str(f["cpu_ms"]),
            str(f["commit_cpu_ms"]),
            f"{f['files']:,}",
        ]
        for f in found
    ]
    return told, rows


if __name__ == "__main__":
    print(json.dumps(measured(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
