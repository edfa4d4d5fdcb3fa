"""The command; the package tells what it does."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import streams
from bench.environment import environment
from bench.harness import ROOT
from bench.report import preamble, save
from bench.scaling import RESULTS
from bench.streams.drawing import drawn, panels
from bench.streams.rendering import render
from bench.streams.running import Ran, mistakes, run, tasks
from bench.streams.steps import ALGORITHMS, SECTIONS, Task

SIZES, QUICK_SIZES = (10, 20, 30, 40, 50, 60, 70, 80), (10, 80)


def options() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m bench.streams",
        description=streams.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--quick", action="store_true", help="small sizes and short streams, a minute in all")
    made.add_argument(
        "--only", nargs="+", choices=SECTIONS, default=SECTIONS, metavar="SECTION", help=", ".join(SECTIONS)
    )
    made.add_argument(
        "--sizes", nargs="+", type=int, help="sizes of updates of trans and seq (10 20 … 80; quick: 10 80)"
    )
    made.add_argument(
        "--algorithms",
        nargs="+",
        choices=ALGORITHMS,
        default=["bf"],
        metavar="ALGORITHM",
        help="of trans, seq and map (bf)",
    )
    made.add_argument("--repeat", type=int, help="runs with marking and without it, in turns (5; quick: 1)")
    made.add_argument("--limit", type=float, help="seconds for a measurement (600; quick: 60)")
    made.add_argument("--data", default=os.environ.get("EVERMAT_DATA") or None, help="folder with marking/")
    made.add_argument(
        "--remark", default="", help="what else there is to say about this run, such as what ran beside it"
    )
    made.add_argument("--out", type=Path, default=RESULTS, help="folder of results")
    made.add_argument("--picture", type=Path, help="the picture (docs/streams.svg; quick: beside the results)")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, saves after every process, prints; sections that are left out are taken from the results that are there. Exit code 1 if something was wrong or failed."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    chosen = options().parse_args(given)
    quick, name = chosen.quick, "streams-quick" if chosen.quick else "streams"
    hidden = {
        "--remark",
        chosen.remark,
        "--data",
        chosen.data,
        "--out",
        str(chosen.out),
        "--picture",
        str(chosen.picture),
    }
    command = "python -m bench.streams" + "".join(f" {a}" for a in given if a not in hidden)
    around = environment([], command)
    file = chosen.out / f"{name}.json"
    stored: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    measured: dict[str, list[Ran]] = {
        key: [Ran.of(ran) for ran in all_ran] for key, all_ran in stored.get("measured", {}).items()
    }
    made_by: dict[str, list[str]] = stored.get("made_by", {})
    picture = chosen.picture or (chosen.out / f"{name}.svg" if quick else ROOT / "docs" / "streams.svg")

    def keep() -> str:
        """What was found so far: the whole takes long, and may be ended."""
        own = {section: measured[section] for section in SECTIONS if section in measured}
        runs = [f"- {section}: `{made_by[section][0]}`. {made_by[section][1]}".rstrip() for section in own]
        tables = render([ran for all_ran in own.values() for ran in all_ran])
        title = "# Streams of updates, small sizes" if quick else "# Streams of updates"
        text = "\n\n".join([title, preamble(around), "\n".join(runs), *tables]) + "\n"
        data = {section: [ran.as_json() for ran in all_ran] for section, all_ran in own.items()}
        save(chosen.out, name, around | {"made_by": made_by, "measured": data}, [], text)
        return text

    for section in chosen.only:
        one = Task(
            section,
            "",
            small=quick,
            repeat=chosen.repeat or (1 if quick else 5),
            limit=chosen.limit or (60.0 if quick else 600.0),
            data=chosen.data,
        )
        measured[section], made_by[section] = [], [command, chosen.remark]
        for task in tasks(one, chosen.algorithms, chosen.sizes or (QUICK_SIZES if quick else SIZES)):
            ran = run(task)
            measured[section].append(ran)
            print(section, ran.subject, ran.algorithm, ran.status, len(ran.steps), "steps", file=sys.stderr, flush=True)
            if ran.status == "failed":
                print(ran.detail, file=sys.stderr, flush=True)
            keep()
        if section == "arrival" and all(ran.status == "ok" for ran in measured[section]):
            picture.write_text(drawn(panels(measured[section][0])), encoding="utf-8")
    print(keep())
    all_ran = [ran for runs in measured.values() for ran in runs]
    sys.exit(int(bool(mistakes(all_ran)) or any(ran.status in ("failed", "wrong") for ran in all_ran)))


if __name__ == "__main__":
    main()
