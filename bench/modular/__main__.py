"""The command; the package tells what it does."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from bench import modular
from bench.environment import environment
from bench.model import Measurement
from bench.modular.measuring import measure_duckdb, measure_graphs, measure_materialisation, measure_warm, peers
from bench.modular.rendering import render_duckdb, render_graphs, render_materialisation, render_updates
from bench.modular.shapes import SHAPES
from bench.modular.updates import measure_updates
from bench.report import preamble, save
from bench.scaling import RESULTS
from evermat.columns.kernels.warm_up import warm_up

PARTS = ("materialisation", "duckdb", "updates", "graphs")


def options() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench.modular", description=modular.__doc__)
    made.add_argument("--quick", action="store_true", help="small sizes, a minute in all")
    made.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    made.add_argument("--shapes", default=";".join(s.name for s in SHAPES), help="some of the shapes, between ;")
    made.add_argument("--limit", type=float, help="seconds after which something is given up (600; quick: 60)")
    made.add_argument("--repeat", type=int, default=10, help="most runs of an algorithm on a shape (10)")
    made.add_argument("--samples", type=int, help="small deletions that are averaged (10; quick: 3)")
    made.add_argument("--data", type=Path, default=os.environ.get("EVERMAT_DATA"), help="folder with graphs/")
    made.add_argument("--out", type=Path, default=RESULTS, help="folder of results")
    return made


def main() -> None:
    """Measures, saves after every shape, prints. Exit code 1 if something was wrong or failed."""
    chosen = options().parse_args()
    limit = chosen.limit or (60.0 if chosen.quick else 600.0)
    samples = chosen.samples or (3 if chosen.quick else 10)
    shapes = [s for s in SHAPES if s.name in chosen.shapes.split(";")]
    around = environment(
        peers() if "duckdb" in chosen.only else [], "python -m bench.modular" + "".join(f" {a}" for a in sys.argv[1:])
    )
    found: dict[str, Any] = {}
    compared: list[Measurement] = []
    warm_up()

    def keep() -> str:
        """What was found so far: the whole takes long, and may be ended."""
        parts = ["# Modules", preamble(around)]
        parts += [render_materialisation(found["materialisation"])] if "materialisation" in found else []
        parts += [render_duckdb(compared, found["warm"])] if compared else []
        parts += [render_updates(found["updates"])] if "updates" in found else []
        parts += [render_graphs(found["graphs"])] if "graphs" in found else []
        text = "\n\n".join(parts) + "\n"
        save(chosen.out, "modular-quick" if chosen.quick else "modular", around | {"measured": found}, compared, text)
        return text

    if "materialisation" in chosen.only:
        for shape in shapes:
            found.setdefault("materialisation", []).append(
                measure_materialisation(shape, chosen.quick, limit, chosen.repeat)
            )
            keep()
    if "duckdb" in chosen.only:
        found["warm"] = measure_warm(chosen.quick, min(3, chosen.repeat))
        compared += measure_duckdb(chosen.quick, limit, min(3, chosen.repeat))
        keep()
    if "updates" in chosen.only:
        for shape in shapes:
            if shape.is_updated:
                found.setdefault("updates", []).append(measure_updates(shape, chosen.quick, limit, samples))
                keep()
    if "graphs" in chosen.only and chosen.data is not None and (Path(chosen.data) / "graphs").is_dir():
        found["graphs"] = measure_graphs(Path(chosen.data), chosen.quick, limit)
    print(keep())
    wrong = [g["graph"] for g in found.get("graphs", []) if g["pairs"] not in (g["expected"], None)]
    sys.exit(int(bool(wrong) or any(m.status in ("wrong", "failed") for m in compared)))


if __name__ == "__main__":
    main()
