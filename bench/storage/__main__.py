"""The command; the package tells what it does."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from bench import storage
from bench.environment import environment
from bench.report import preamble, save
from bench.scaling import RESULTS
from bench.storage.rendering import render
from bench.storage.running import Ran, disagreements, measure
from bench.storage.shapes import PROTOCOLS, SHAPES, shapes
from bench.storage.steps import AUTO, Task


def options() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m bench.storage",
        description=storage.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--small", action="store_true", help="small sizes, a minute or two in all")
    made.add_argument("--only", nargs="+", metavar="SHAPE", help=", ".join([*SHAPES, "graph …"]))
    made.add_argument("--protocols", nargs="+", choices=PROTOCOLS, default=PROTOCOLS, metavar="PROTOCOL")
    made.add_argument(
        "--repeat",
        type=int,
        default=5,
        help="most materialisations, and runs of all queries of a kind, in a process (5)",
    )
    made.add_argument("--limit", type=float, help="seconds for a materialisation or an update (600; small: 60)")
    made.add_argument("--memory", type=float, help="GB for a process (12; small: 6)")
    made.add_argument("--data", default=os.environ.get("EVERMAT_DATA") or None, help="folder with graphs/")
    made.add_argument(
        "--remark", default="", help="what else there is to say about this run, such as what ran beside it"
    )
    made.add_argument("--out", type=Path, default=RESULTS, help="folder of results")
    return made


def main() -> None:
    """Measures, saves after every process, prints; what is left out is taken from the results that are there. Exit code 1 if something was wrong or failed."""
    parser = options()
    chosen = parser.parse_args()
    small, known = chosen.small, shapes(chosen.data)
    if unknown := [name for name in chosen.only or () if name not in known]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    name = "storage-small" if small else "storage"
    command = "python -m bench.storage" + "".join(
        f" {a}" for a in sys.argv[1:] if a not in ("--remark", chosen.remark, "--data", chosen.data)
    )
    around = environment([], command)
    file = chosen.out / f"{name}.json"
    stored: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    measured: dict[str, list[Ran]] = {
        key: [Ran.of(ran) for ran in all_ran] for key, all_ran in stored.get("measured", {}).items()
    }
    made_by: dict[str, list[str]] = stored.get("made_by", {})
    order = [f"{shape}, {protocol}" for shape in known for protocol in PROTOCOLS]

    def keep() -> str:
        """What was found so far: the whole takes long, and may be ended."""
        keys = sorted(measured, key=lambda key: order.index(key) if key in order else len(order))
        by_command: dict[tuple[str, ...], list[str]] = {}
        for key in keys:
            by_command.setdefault(tuple(made_by[key]), []).append(key)
        runs = [f"- {'; '.join(own)}: `{how}`. {remark}".rstrip() for (how, remark), own in by_command.items()]
        all_ran = [ran for key in keys for ran in measured[key]]
        text = (
            "\n\n".join(
                [
                    "# Storage, small sizes" if small else "# Storage",
                    preamble(around),
                    "\n".join(runs),
                    *render(all_ran),
                ]
            )
            + "\n"
        )
        data = {key: [ran.as_json() for ran in measured[key]] for key in keys}
        save(chosen.out, name, around | {"made_by": made_by, "measured": data}, [], text)
        return text

    for shape in [known[name] for name in chosen.only or known]:
        for protocol in shape.protocols:
            if protocol not in chosen.protocols:
                continue
            task = Task(
                shape.name,
                protocol,
                AUTO,
                small,
                chosen.repeat,
                chosen.limit or (60.0 if small else 600.0),
                chosen.memory or (6.0 if small else 12.0),
                chosen.data,
            )
            key = f"{shape.name}, {protocol}"
            measured[key], made_by[key] = [], [command, chosen.remark]
            for ran in measure(task, shape):
                measured[key].append(ran)
                print(key, ran.schemes, ran.status, len(ran.steps), "steps", file=sys.stderr, flush=True)
                if ran.status == "failed":
                    print(ran.detail, file=sys.stderr, flush=True)
                keep()
    print(keep())
    all_ran = [ran for runs in measured.values() for ran in runs]
    sys.exit(int(bool(disagreements(all_ran)) or any(ran.status in ("failed", "wrong") for ran in all_ran)))


if __name__ == "__main__":
    main()
