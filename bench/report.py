"""Results as files: every repetition as JSON, and the tables people read as Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.model import Measurement

Table = Sequence[Sequence[str]]

_WIDTH = 160  # of a line of JSON


def best(measurements: Iterable[Measurement], engine: str, workload: str) -> Measurement | None:
    """The repetition with the least CPU, or the one that tells why there is none."""
    own = [m for m in measurements if m.engine == engine and m.workload == workload]
    timed = [m for m in own if m.status == "ok"]
    if timed and len(timed) == len(own):
        return min(timed, key=lambda m: m.cpu or 0.0)
    return next((m for m in own if m.status != "ok"), None)


def save(
    folder: Path,
    name: str,
    environment: dict[str, Any],
    measurements: Sequence[Measurement],
    text: str,
) -> list[Path]:
    """Write ``name.json`` and ``name.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {**environment, "measurements": [m.as_json() for m in measurements]}
    files = folder / f"{name}.json", folder / f"{name}.md"
    files[0].write_text(_indented(data) + "\n", encoding="utf-8")
    files[1].write_text(text, encoding="utf-8")
    return list(files)


def _indented(value: Any, depth: int = 0) -> str:
    """JSON in which what fits a line stands on one: thousands of short lists would make megabytes of indentation."""
    plain = json.dumps(value)
    if not isinstance(value, dict | list) or len(plain) + depth <= _WIDTH:
        return plain
    inner = "\n" + " " * (depth + 1)
    if isinstance(value, dict):
        parts = [f"{json.dumps(str(key))}: {_indented(part, depth + 1)}" for key, part in value.items()]
        return "{" + inner + f",{inner}".join(parts) + "\n" + " " * depth + "}"
    return "[" + inner + f",{inner}".join(_indented(part, depth + 1) for part in value) + "\n" + " " * depth + "]"


def render(title: str, environment: dict[str, Any], measurements: Sequence[Measurement]) -> str:
    """The tables of a run of engines on workloads. Absent engines are named above them only."""
    measurements = [m for m in measurements if m.status != "absent"]
    engines = list(dict.fromkeys(sorted((m.engine for m in measurements), key=_rank(environment))))
    workloads = list(dict.fromkeys(m.workload for m in measurements))

    def grid(show: Callable[[Measurement], float | None], digits: int) -> str:
        rows = [["engine", *workloads]]
        for engine in engines:
            cells = (best(measurements, engine, workload) for workload in workloads)
            rows.append([engine, *(_cell(m, show, digits) for m in cells)])
        return table(rows)

    repetitions = 1 + max((m.repetition for m in measurements), default=0)
    parts = [
        f"# {title}",
        preamble(environment),
        f"Best of {repetitions} by CPU of the whole process. A time counts only if the result had "
        "the recorded number of rows and checksum. `–`: the engine does not tell this.",
        "## CPU of the reasoning phase, seconds",
        grid(lambda m: m.phases.cpu.get("reason"), 3),
        "## CPU of the whole process, seconds",
        grid(lambda m: m.cpu, 2),
        "## Wall time of the whole process, seconds",
        grid(lambda m: m.wall, 2),
        "## Peak memory, MB",
        grid(lambda m: m.peak_mb, 0),
    ]
    if {"evermat", "duckdb"} <= set(engines):
        rows = [["workload", "best / best", "lowest", "highest"]]
        rows += [[workload, *_ratios(measurements, workload)] for workload in workloads]
        parts += [
            "## Evermat / DuckDB, CPU of the reasoning phase",
            "Below 1 Evermat needs less. Lowest and highest are over the repetitions, each ratio "
            "taken within one repetition.",
            table(rows),
        ]
    troubles = [m for m in measurements if m.status != "ok"]
    if troubles:
        rows = [["engine", "workload", "status", "detail"]]
        rows += [[m.engine, m.workload, m.status, _one_line(m.detail)] for m in troubles]
        parts += ["## Runs without a time", table(rows)]
    return "\n\n".join(parts) + "\n"


def preamble(environment: dict[str, Any]) -> str:
    """Where, when and by which command the numbers came about."""
    engines = [
        f"- {name} {version or '(absent)'}" + _note(environment["notes"].get(name))
        for name, version in environment["engines"].items()
    ]
    machine = (
        f"{environment['date']}, {environment['system']}, {environment['cpu']}, "
        f"{environment['cores']} cores, {environment['memory_gib']} GiB; "
        f"Python {environment['python']}, numpy {environment['numpy']}, "
        f"numba {environment['numba'] or '(absent)'}."
    )
    return "\n".join([f"`{environment['command']}`", "", machine, "", *engines])


def table(rows: Table) -> str:
    """A Markdown table whose first row is its head."""
    head, *body = rows
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _rank(environment: dict[str, Any]) -> Callable[[str], int]:
    order = list(environment["engines"])
    return lambda name: order.index(name) if name in order else len(order)


def _note(note: str | None) -> str:
    return f": {note}" if note else ""


def _one_line(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


def _cell(m: Measurement | None, show: Callable[[Measurement], float | None], digits: int) -> str:
    if m is None:
        return ""
    if m.status != "ok":
        return m.status.upper() if m.status == "wrong" else m.status
    value = show(m)
    return "–" if value is None else f"{value:.{digits}f}"


def _reason(m: Measurement | None) -> float | None:
    return m.phases.cpu.get("reason") if m is not None and m.status == "ok" else None


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None


def _ratios(measurements: Sequence[Measurement], workload: str) -> list[str]:
    """Evermat by DuckDB: the best runs, and the extremes within single repetitions."""
    overall = _ratio(
        _reason(best(measurements, "evermat", workload)),
        _reason(best(measurements, "duckdb", workload)),
    )
    if overall is None:
        return ["", "", ""]
    runs: dict[int, dict[str, float | None]] = {}
    for m in measurements:
        if m.workload == workload:
            runs.setdefault(m.repetition, {})[m.engine] = _reason(m)
    within = [_ratio(run.get("evermat"), run.get("duckdb")) for run in runs.values()]
    known = [ratio for ratio in within if ratio is not None]
    return [f"{overall:.2f}", f"{min(known):.2f}", f"{max(known):.2f}"]
