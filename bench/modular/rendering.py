"""The results of all parts as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bench.model import Measurement
from bench.modular.runs import MODULAR, SEMINAIVE, Took, from_json
from bench.report import best, table


def render_materialisation(found: Sequence[dict[str, Any]]) -> str:
    head = ["shape", "closures", "explicit", "facts"]
    head += ["Mat-Mod, CPU s", "wall s", "instances", "Mat, CPU s", "wall s", "instances", "Mat / Mat-Mod", "wanted"]
    rows = [head]
    for one in found:
        ours, plain = Took(**without(one[MODULAR], "runs")), Took(**without(one[SEMINAIVE], "runs"))
        kinds = [f"{one['closures'].count(kind)} {kind}" for kind in dict.fromkeys(one["closures"])]
        rows.append(
            [
                one["shape"],
                ", ".join(kinds) or "none",
                number(one.get("explicit")),
                number(sum(one["facts"].values()) if "facts" in one else None),
                *(seconds(ours, ours.reason), seconds(ours, ours.wall), number(one.get(f"{MODULAR}_instances"))),
                *(seconds(plain, plain.reason), seconds(plain, plain.wall), number(one.get(f"{SEMINAIVE}_instances"))),
                ratio(plain, ours, reason=True),
                f"{one['wanted']:g}",
            ]
        )
    return "\n\n".join(
        [
            "## Materialisation",
            "CPU of the phase `reason`, wall time of the whole call, of the run with the least CPU; the algorithms in turns. w4, w5 "
            "and w6 have no transitive rule: Mat-Mod must not be more than a tenth slower on them. In w6 one rule is taken for a "
            "linear closure within a larger recursion.",
            table(rows),
        ]
    )


def render_duckdb(measurements: Sequence[Measurement], warm: dict[str, dict[str, Any]]) -> str:
    rows = [
        [
            "workload",
            "facts",
            "ours: reason, CPU s",
            "DuckDB's engine, CPU s",
            "DuckDB / ours",
            "lowest – highest",
            "ours, warm: reason, CPU s",
            "DuckDB / ours, warm",
            "ours: process, CPU s",
            "DuckDB: process, CPU s",
            "DuckDB / ours",
        ]
    ]
    for name in dict.fromkeys(m.workload for m in measurements):
        ours, theirs = (best(measurements, engine, name) for engine in ("evermat", "duckdb"))
        if ours is None or theirs is None or ours.answer is None or theirs.answer is None:
            rows.append([name, *(f"{m.engine}: {m.status}" if m else "" for m in (ours, theirs)), *[""] * 8])
            continue
        ratios = [theirs.phases.cpu["reason"] / ours.phases.cpu["reason"] for ours, theirs in turns(measurements, name)]
        warmed = Took(**warm[name])
        rows.append(
            [
                name,
                number(ours.answer.rows),
                plain_seconds(ours.phases.cpu["reason"]),
                plain_seconds(theirs.phases.cpu["reason"]),
                factor(theirs.phases.cpu["reason"] / ours.phases.cpu["reason"]),
                f"{factor(min(ratios))} – {factor(max(ratios))}",
                plain_seconds(warmed.reason),
                factor(theirs.phases.cpu["reason"] / warmed.reason),
                plain_seconds(ours.cpu or 0.0),
                plain_seconds(theirs.cpu or 0.0),
                factor((theirs.cpu or 0.0) / (ours.cpu or 1.0)),
            ]
        )
    return "\n\n".join(
        [
            "## Beside DuckDB",
            "One thread each, all facts stored, in turns; of each the run with the least CPU, and the lowest and highest ratio within a "
            "turn. The process is the job from files to files; the first reasoning of a process loads compiled kernels. Warm: in a process that "
            "has loaded them. Wanted: the engine ten times ahead, w1 in 2 s.",
            table(rows),
        ]
    )


def turns(measurements: Sequence[Measurement], name: str) -> Iterator[tuple[Measurement, Measurement]]:
    """Both engines' runs on a workload, side by side."""
    by_engine = [[m for m in measurements if (m.engine, m.workload) == (e, name)] for e in ("evermat", "duckdb")]
    for engine in by_engine:
        engine.sort(key=lambda m: m.repetition)
    return zip(*by_engine, strict=True)


def render_updates(found: Sequence[dict[str, Any]]) -> str:
    rows = [["shape", "facts", "explicit", "algorithm", "small deletion", "small insertion", "large deletion"]]
    rows[0] += ["samples", "overdeleted", "checked", "deleted"]
    compared = [["shape", "small deletion: DRed^c / best", "remat / best", "from scratch / best"]]
    compared[0] += ["large deletion: DRed^c / best", "remat / best", "from scratch / best"]
    notes = []
    for one in found:
        start = [one["shape"], number(one["facts"]), number(one["explicit"])]
        took: dict[str, dict[str, Took]] = {"small_deletion": {}, "large_deletion": {}}
        for own in one["algorithms"]:
            cells = []
            for what in ("small_deletion", "small_insertion", "large_deletion"):
                t = from_json(own[what])
                cells.append(seconds(t, t.cpu) if t else "–")
                if t and what in took:
                    took[what][own["algorithm"]] = t
            # the figures of the small deletions that are averaged, without the large one, which is the last if it was not given up
            figures = own["figures_of_each_deletion"]
            last = own["samples"] + min(1, len(own["each_deletion_cpu"]) - 1)
            kept = {name: counts[:last][-own["samples"] :] for name, counts in figures.items()}
            done = from_json(own["small_deletion"])
            means = [
                number(round(float(np.mean(kept[name])))) if done and not done.given_up else "–"
                for name in ("overdeleted", "checked", "deleted")
            ]
            rows.append([*start, own["algorithm"], *cells, str(own["samples"]), *means])
            start = ["", "", ""]
        scratch = {what: from_json(one["scratch"][what]) for what in took}
        told = [f"{seconds(t, t.reason)} ({seconds(t, t.cpu)})" if t else "–" for t in scratch.values()]
        rows.append([*start, "from scratch", told[0], "–", told[1], *[""] * 4])
        for name, why in one["notes"].items():
            rows.append([*start, name, "–" if name in one["left_out"] else f"> {one['limit']:g}", "–", "–", *[""] * 4])
            notes.append(f"- {one['shape']}, {name}: {why}")
        line = [one["shape"]]
        for what, by_name in took.items():
            modular = [t for name, t in by_name.items() if name.endswith("-mod") and not t.given_up]
            least = min(modular, key=lambda t: t.cpu, default=None)
            line += [ratio(by_name.get(name), least) for name in ("dred-c", "remat")]
            again = scratch[what]
            line.append(factor(again.reason / least.cpu) if again and least else "–")
        compared.append(line)
    small = ", ".join(f"{one['shape']} {one['changed']:,} and {one['changed_large']:,}" for one in found)
    return "\n\n".join(
        [
            "## Updates",
            "CPU seconds of whole calls of `update`. Small: deleting facts drawn from all explicit ones, and putting them back by the same "
            "algorithm, the average of the samples; a large deletion takes a quarter. From scratch: what is left, by Mat-Mod, CPU "
            f"of the phase `reason` (of the whole call). Facts deleted: {small}.",
            "The best is that of DRed^c-Mod and B/F^c-Mod that takes less; from scratch counts with its reasoning only, which favours it.",
            table(compared),
            "Overdeleted, checked, deleted: averages of the small deletions.",
            table(rows),
            *(["\n".join(notes)] if notes else []),
        ]
    )


def render_graphs(found: Sequence[dict[str, Any]]) -> str:
    rows = [["graph", "edges", "pairs", "known", "reason, CPU s", "whole call, CPU s", "wall s"]]
    for one in found:
        took = Took(**one["took"])
        pairs = number(one["pairs"]) + ("" if one["pairs"] == one["expected"] else " WRONG")
        times = [seconds(took, t) for t in (took.reason, took.cpu, took.wall)]
        rows.append([one["graph"], number(one["edges"]), pairs, number(one["expected"]), *times])
    return "\n\n".join(["## Graphs", "Closures by the nonlinear rule, by modules, once each.", table(rows)])


# --- words and numbers -------------------------------------------------------------------------------------


def without(data: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != name}


def number(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"


def plain_seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}" if value >= 10 else f"{value:.4f}"


def seconds(took: Took, value: float) -> str:
    """One of its times, which is a lower bound if it was given up."""
    return f"> {factor(value)}" if took.given_up else plain_seconds(value)


def factor(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(slow: Took | None, fast: Took | None, *, reason: bool = False) -> str:
    """How many times as long; at least so many times, if the slower was given up."""
    if slow is None or fast is None or fast.given_up:
        return "–"
    times = slow.reason / fast.reason if reason else slow.cpu / fast.cpu
    return f"> {factor(times)}" if slow.given_up else factor(times)
