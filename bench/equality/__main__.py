"""The command; the package tells what it does."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from bench import equality
from bench.environment import environment
from bench.equality.rendering import render
from bench.equality.running import Ran, disagreements, measure
from bench.equality.shapes import SHAPES
from bench.equality.steps import ALGORITHMS, Task
from bench.report import preamble, save
from bench.scaling import RESULTS


def options() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m bench.equality",
        description=equality.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--small", action="store_true", help="50,000 explicit facts instead of a million")
    made.add_argument(
        "--only", nargs="+", choices=SHAPES, default=list(SHAPES), metavar="SHAPE", help=", ".join(SHAPES)
    )
    made.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS), metavar="ALGORITHM")
    made.add_argument("--sizes", nargs="+", type=int, help="facts that are deleted (100 5000; small: 100 1000)")
    made.add_argument(
        "--samples", type=int, help="updates of a size that are averaged, besides the first (3; small: 2)"
    )
    made.add_argument("--repeat", type=int, default=3, help="most materialisations in a process (3)")
    made.add_argument("--limit", type=float, help="seconds for a materialisation or an update (600; small: 60)")
    made.add_argument("--memory", type=float, help="GB for a process (12; small: 6)")
    made.add_argument(
        "--remark", default="", help="what else there is to say about this run, such as what ran beside it"
    )
    made.add_argument("--out", type=Path, default=RESULTS, help="folder of results")
    return made


def main() -> None:
    """Measures, saves after every process, prints; shapes that are left out are taken from the results that are there. Exit code 1 if something was wrong or failed."""
    chosen = options().parse_args()
    small = chosen.small
    name = "equality-small" if small else "equality"
    command = "python -m bench.equality" + "".join(
        f" {a}" for a in sys.argv[1:] if a not in ("--remark", chosen.remark)
    )
    around = environment([], command)
    file = chosen.out / f"{name}.json"
    known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    before: dict[str, Any] = known.get("measured", {})
    made_by: dict[str, list[str]] = known.get("made_by", {})
    measured = {shape: [Ran.of(ran) for ran in before[shape]] for shape in SHAPES if shape in before}

    def keep() -> str:
        """What was found so far: the whole takes long, and may be ended."""
        in_order = {shape: measured[shape] for shape in SHAPES if shape in measured}
        runs = [f"- {shape}: `{made_by[shape][0]}`. {made_by[shape][1]}".rstrip() for shape in in_order]
        text = "\n\n".join(["# Equality", preamble(around), "\n".join(runs), *render(in_order)]) + "\n"
        data = {shape: [ran.as_json() for ran in all_ran] for shape, all_ran in in_order.items()}
        save(chosen.out, name, around | {"made_by": made_by, "measured": data}, [], text)
        return text

    for shape in chosen.only:
        task = Task(
            shape,
            small,
            (),
            tuple(chosen.sizes or ((100, 1_000) if small else (100, 5_000))),
            chosen.samples or (2 if small else 3),
            chosen.repeat,
            chosen.limit or (60.0 if small else 600.0),
            chosen.memory or (6.0 if small else 12.0),
        )
        measured[shape], made_by[shape] = [], [command, chosen.remark]
        for ran in measure(task, chosen.algorithms):
            measured[shape].append(ran)
            print(shape, *ran.algorithms, ran.status, len(ran.steps), "steps", file=sys.stderr, flush=True)
            if ran.status == "failed":
                print(ran.detail, file=sys.stderr, flush=True)
            keep()
    print(keep())
    wrong = [line for shape, all_ran in measured.items() for line in disagreements(shape, all_ran)]
    sys.exit(int(bool(wrong) or any(ran.status == "failed" for all_ran in measured.values() for ran in all_ran)))


if __name__ == "__main__":
    main()
