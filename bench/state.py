"""Durable states: ``python -m bench.state [--quick] [--only updates,opening,versions,life,relations] [--updates 20000]``.

- An update of 100 facts on a state of 1 M facts, by a process that has it open: the commit, and the whole update.
- Opening 20 M facts, numbers and symbols, by a new process; and what they take on disk, against the same facts as Parquet.
- A thousand small versions: opening, listing and reading them.
- Many durable updates of one fact on a state of 1 M facts, in one process: `--updates N` measures only these.
- Updates of one of 5,000 relations; with `--before SRC` also by another version of the package.

With `--only` the results of the other parts stay as they were measured before, and those of a long life on another file system.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import evermat
from bench.environment import environment
from bench.report import preamble, save, table
from bench.scaling import RESULTS
from bench.state_relations import one_of_many, rendered
from evermat.columns.kernels.warm_up import warm_up

GRAPH = """
.decl edge(x:{type}, y:{type})
.decl two(x:{type}, z:{type})
.decl source(x:{type})
two(x, z) :- edge(x, y), edge(y, z).
source(x) :- edge(x, _).
"""
DEGREES = """
.decl edge(x:{type}, y:{type})
.decl two(x:{type}, z:{type})
.decl degree(x:{type}, n:number)
two(x, z) :- edge(x, y), edge(y, z).
degree(x, n) :- edge(x, _), n = count : {{ edge(x, _) }}.
"""
PAIRS = """
.decl edge(x:{type}, y:{type})
.decl back(x:{type}, y:{type})
back(y, x) :- edge(x, y).
"""
COMMIT_MS, OPEN_S, SIZE_RATIO = 60, 10, 1.5
KINDS = ("commit", "commit_cpu", "reason", "wall", "cpu")
PARTS = ("updates", "opening", "versions", "life", "relations")


def named(numbers: np.ndarray, type_: str) -> pa.Array:
    """Numbers, or names made of them."""
    if type_ == "number":
        return pa.array(numbers)
    if len(numbers) > numbers.max(initial=0):
        used, codes = np.arange(numbers.max() + 1), numbers
    else:
        used, codes = np.unique(numbers, return_inverse=True)
    names = pa.array([f"http://example.org/resource/{n}" for n in used.tolist()])
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), names)


def pairs(edges: np.ndarray, type_: str) -> pa.Table:
    """Edges as an Arrow table."""
    return pa.table({f"c{i}": named(edges[:, i], type_) for i in range(2)})


def distinct_pairs(rng: np.random.Generator, nodes: int, edges: int) -> np.ndarray:
    """So many different edges, in no order."""
    codes = np.sort(rng.integers(0, nodes * nodes, edges + edges // 8 + 100))
    codes = rng.permutation(codes[np.r_[True, codes[1:] != codes[:-1]]])[:edges]
    return np.c_[codes // nodes, codes % nodes]


def spread(times: list[float], digits: int = 1) -> dict[str, float]:
    """The least, the middle and the largest."""
    return {
        "min": round(min(times), digits),
        "median": round(statistics.median(times), digits),
        "max": round(max(times), digits),
    }


# --- updates of a state that is open -----------------------------------------------------------------------


def small_updates(folder: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Deletes 50 edges and inserts 50, which changes three relations, or five tables where there is a count."""
    nodes, edges = (2_000, 3_300) if quick else (200_000, 330_000)
    rng = np.random.default_rng(0)
    timed, compacting = (3, 0) if quick else (30, 20)
    variants = (
        ("joins", GRAPH, "number", "none"),
        ("joins", GRAPH, "symbol", "both"),
        ("count", DEGREES, "number", "both"),
    )
    for number, (rules, text, type_, counters) in enumerate(variants):
        data = distinct_pairs(rng, nodes, edges)
        place = folder / f"graph{number}"
        program = evermat.Program.parse(text.format(type=type_))
        with program.materialise({"edge": pairs(data, type_)}, counters=counters) as made:
            made.save(place)
        with evermat.open(place, write=True) as m:
            facts = sum(len(m[name]) for name in m)
            first = _updated(m, data, rng, nodes, type_)
            taken = {pause: [_updated(m, data, rng, nodes, type_, pause) for _ in range(timed)] for pause in (0.1, 0.0)}
            later = [_updated(m, data, rng, nodes, type_) for _ in range(compacting)]
        for pause, times in taken.items():
            yield {
                "rules": rules,
                "type": type_,
                "counters": counters,
                "facts": facts,
                "pause_s": pause,
                "changed": {name: spread([t["changed"][name] for t in times], 0) for name in first["changed"]},
                "first_ms": round(first["wall"], 1),
                **{kind: spread([t[kind] for t in times]) for kind in KINDS},
                "slowest_later_ms": round(max((t["wall"] for t in later), default=0.0), 1),
            }
        shutil.rmtree(place)


def _updated(
    m: Any, data: np.ndarray, rng: np.random.Generator, nodes: int, type_: str, pause: float = 0.0
) -> dict[str, Any]:
    """One update after a pause, in milliseconds; `data` follows."""
    half = 50
    which = rng.choice(len(data), half, replace=False)
    new = distinct_pairs(rng, nodes, half)
    old = {"edge": pairs(data[which], type_)}
    coming = {"edge": pairs(new, type_)}
    data[which] = new
    time.sleep(pause)
    cpu, wall = time.process_time(), time.perf_counter()
    change = m.update(insert=coming, delete=old)
    took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    seconds, cpu_seconds = change.stats["seconds"], change.stats["cpu_seconds"]
    took |= {"commit": seconds["write"], "commit_cpu": cpu_seconds["write"], "reason": seconds["reason"]}
    changed = {name: len(change.inserted[name]) + len(change.deleted[name]) for name in change.inserted}
    return {"changed": changed} | {kind: 1e3 * value for kind, value in took.items()}


# --- opening, and size on disk -----------------------------------------------------------------------------


def opening(folder: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Half of the facts explicit, half derived."""
    nodes, edges = (2_000, 10_000) if quick else (1_000_000, 10_000_000)
    for type_ in ("number", "symbol"):
        data = distinct_pairs(np.random.default_rng(0), nodes, edges)
        given = pairs(data, type_)
        parquet: dict[str, int] = {}
        for counters in ("none", "both") if type_ == "number" and not quick else ("both",):
            place = folder / f"pairs-{type_}-{counters}"
            m = evermat.Program.parse(PAIRS.format(type=type_)).materialise({"edge": given}, counters=counters)
            started = time.perf_counter()
            m.save(place)
            saving = time.perf_counter() - started
            m.close()
            facts = {name: len(m[name]) for name in m}
            if not parquet:
                parquet = {name: _parquet_bytes(m[name].to_arrow(), folder) for name in m}
            del m
            gc.collect()
            opened = [_opened(place, sum(facts.values()))]
            while not quick and len(opened) < 3 and opened[0]["process_wall"] < 3 * OPEN_S:
                opened.append(_opened(place, sum(facts.values())))
            yield {
                "type": type_,
                "counters": counters,
                "facts": sum(facts.values()),
                "save_s": round(saving, 2),
                **{k: spread([o[k] for o in opened], 2) for k in ("wall", "cpu", "process_wall", "process_cpu")},
                "peak_mb": round(min(o["peak_mb"] for o in opened)),
                "bytes": _bytes(place),
                "parquet_bytes": sum(parquet.values()),
                "ratio": round(_bytes(place) / sum(parquet.values()), 2),
            }
            shutil.rmtree(place)


def _parquet_bytes(rows: pa.Table, folder: Path) -> int:
    """What a relation takes as Parquet."""
    file = folder / "facts.parquet"
    pq.write_table(rows, file, compression="zstd")
    size = file.stat().st_size
    file.unlink()
    return size


def _bytes(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


def _opened(place: Path, facts: int) -> dict[str, float]:
    """A new process opens the state."""
    before, started = os.times(), time.perf_counter()
    command = [sys.executable, "-m", "bench.state", "--open", str(place)]
    root = Path(__file__).resolve().parents[1]
    told = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    wall, after = time.perf_counter() - started, os.times()
    found: dict[str, float] = json.loads(told)
    if found["facts"] != facts:
        raise SystemExit(f"{found['facts']} facts instead of {facts}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return found | {"process_wall": wall, "process_cpu": cpu}


def open_here(place: str) -> None:
    """What the new process does."""
    from evermat.core.memory import peak_bytes

    cpu, wall = time.process_time(), time.perf_counter()
    m = evermat.open(place)
    found = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    print(json.dumps(found | {"facts": sum(len(m[name]) for name in m), "peak_mb": peak_bytes() / 2**20}))
    sys.stdout.flush()
    os._exit(0)  # what it takes to free everything is of no interest


# --- many versions -----------------------------------------------------------------------------------------


def many_versions(folder: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Updates of two facts, each a version."""
    versions = 20 if quick else 1_000
    place = folder / "versions"
    m = evermat.Program.parse(DEGREES.format(type="number")).materialise({"edge": [(0, 1), (1, 2)]}, counters="both")
    m.save(place)
    times = []
    for i in range(2, versions + 1):
        started = time.perf_counter()
        m.update(insert={"edge": [(i, i + 1), (i - 1, 5 * i)]})
        times.append(1e3 * (time.perf_counter() - started))
    facts = sum(len(m[name]) for name in m)
    m.close()
    repeat = 1 if quick else 5

    def best(work: Callable[[], Any]) -> float:
        took = []
        for _ in range(repeat):
            started = time.perf_counter()
            work()
            took.append(1e3 * (time.perf_counter() - started))
        return round(min(took), 1)

    if len(evermat.versions(place)) != versions:
        raise SystemExit(f"{len(evermat.versions(place))} versions instead of {versions}")
    fresh = min((_opened(place, facts) for _ in range(repeat)), key=lambda o: o["wall"])
    yield {
        "versions": versions,
        "facts": facts,
        "update": spread(times),
        "last_updates": spread(times[-100:]),
        "open_fresh_ms": round(1e3 * fresh["wall"], 1),
        "open_ms": best(lambda: evermat.open(place).close()),
        "open_middle_ms": best(lambda: evermat.open(place, version=versions // 2).close()),
        "versions_ms": best(lambda: evermat.versions(place)),
        "changes_ms": best(lambda: evermat.changes(place)),
        "bytes": _bytes(place),
        "files": sum(1 for f in place.rglob("*") if f.is_file()),
    }


# --- a long life -------------------------------------------------------------------------------------------


def long_life(folder: Path, quick: bool, updates: int) -> Iterator[dict[str, Any]]:
    """One fact is inserted or deleted, again and again, each time as a durable version, in one process."""
    from evermat.core.memory import resident_bytes

    nodes, edges = (2_000, 3_300) if quick else (200_000, 330_000)
    window = min(1_000, max(1, updates // 4))
    data = distinct_pairs(np.random.default_rng(0), nodes, edges)
    place = folder / "long"
    with evermat.Program.parse(GRAPH.format(type="number")).materialise({"edge": pairs(data, "number")}) as made:
        facts = sum(len(made[name]) for name in made)
        made.save(place)
    wall, cpu, memory = [], [], {}
    with evermat.open(place, write=True) as m:
        for number in range(updates):
            edge = {"edge": [(int(data[number // 2 % 1000, 0]), nodes)]}
            begun, started = time.process_time(), time.perf_counter()
            m.update(**({"delete": edge} if number % 2 else {"insert": edge}))
            cpu.append(1e3 * (time.process_time() - begun))
            wall.append(1e3 * (time.perf_counter() - started))
            if (number + 1) % max(updates // 10, 1) == 0:
                memory[number + 1] = round(resident_bytes() / 2**20)
    files, size = sum(1 for f in place.rglob("*") if f.is_file()), _bytes(place)

    def opened() -> dict[str, float]:
        times = [_opened(place, facts + updates % 2) for _ in range(1 if quick else 5)]
        return {kind: round(1e3 * min(one[kind] for one in times), 1) for kind in ("wall", "cpu")}

    before = opened()
    evermat.vacuum(place, 1)
    after = opened()
    yield {
        "updates": updates,
        "facts": facts,
        "first_wall": quartiles(wall[:window]),
        "last_wall": quartiles(wall[-window:]),
        "first_cpu": quartiles(cpu[:window]),
        "last_cpu": quartiles(cpu[-window:]),
        "most_cpu": round(max(cpu), 1),
        "window": window,
        "resident_mb": memory,
        "files": files,
        "bytes": size,
        "open_ms": before,
        "open_after_vacuum_ms": after,
        "file_system": _file_system(place),
    }
    shutil.rmtree(place)


def quartiles(times: list[float]) -> dict[str, float]:
    """The quartiles and the 99th percentile."""
    found = np.percentile(times, [25, 50, 75, 99])
    return {name: round(float(value), 2) for name, value in zip(("p25", "p50", "p75", "p99"), found, strict=True)}


def _file_system(place: Path) -> str:
    """The type of the file system that a path is on."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    home = str(place.resolve())
    return max((m for m in mounts if home.startswith(m[1].rstrip("/") + "/")), key=lambda m: len(m[1]))[2]


# --- telling -----------------------------------------------------------------------------------------------


def render(around: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """A section for each part."""
    sections = ["# Durable states", preamble(around)]
    updates = [f for f in found if f["part"] == "updates"]
    if updates:
        head = ["rules", "columns", "counters", "facts", "pause, s", "commit, ms", "its CPU, ms", "whole update, ms"]
        rows = [[*head, "CPU, ms", "first, ms", "slowest of 20 more, ms"]]
        rows += [
            [
                f["rules"],
                f["type"],
                f["counters"],
                f"{f['facts']:,}",
                str(f["pause_s"]),
                *(_spread(f[kind]) for kind in ("commit", "commit_cpu", "wall", "cpu")),
                str(f["first_ms"]),
                str(f["slowest_later_ms"]),
            ]
            for f in updates
        ]
        told = (
            f"50 edges deleted and 50 inserted by the process that has the state open; wanted: a commit under {COMMIT_MS} ms. "
            "Three relations change (with a count, two hidden ones in addition). Least / median / most of 30; with a pause before "
            "each, the tidying that follows a commit in the background has ended. Some of 20 more updates merge the files of changes to one."
        )
        sections += ["## Updates", _measured_at(updates[0]) + told, table(rows)]
    opened = [f for f in found if f["part"] == "opening"]
    if opened:
        head = ["columns", "counters", "facts", "save, s", "open, s", "open, CPU s", "process, s", "peak, MB"]
        rows = [[*head, "MB on disk", "MB as Parquet", "ratio"]]
        rows += [
            [
                f["type"],
                f["counters"],
                f"{f['facts']:,}",
                str(f["save_s"]),
                *(str(f[kind]["min"]) for kind in ("wall", "cpu", "process_wall")),
                f"{f['peak_mb']:,}",
                _megabytes(f["bytes"]),
                _megabytes(f["parquet_bytes"]),
                str(f["ratio"]),
            ]
            for f in opened
        ]
        told = (
            "Half explicit, half derived, in no order; a new process opens them, the best of three. "
            f"Wanted: under {OPEN_S} s, and at most {SIZE_RATIO} times the size of the same facts in the same order, written by pyarrow with zstd."
        )
        sections += ["## Opening and size", _measured_at(opened[0]) + told, table(rows)]
    for f in (f for f in found if f["part"] == "versions"):
        rows = [["what", "ms"]]
        rows += [[what, _spread(f[kind])] for what, kind in (("an update", "update"), ("the last 100", "last_updates"))]
        rows += [
            [what, str(f[kind])]
            for what, kind in (
                ("`open` in a new process", "open_fresh_ms"),
                ("`open`", "open_ms"),
                ("`open` of the version in the middle", "open_middle_ms"),
                ("`versions`", "versions_ms"),
                ("`changes` of all", "changes_ms"),
            )
        ]
        told = f"{f['versions']:,} versions, {f['facts']:,} facts, {f['files']:,} files of {_megabytes(f['bytes'])} MB."
        sections += ["## Many versions", _measured_at(f) + told, table(rows)]
    for f in (f for f in found if f["part"] == "life"):
        percentiles = ("p25", "p50", "p75", "p99")
        rows = [["ms", *percentiles]]
        rows += [
            [f"{which} {f['window']:,} updates{what}", *(str(f[kind][p]) for p in percentiles)]
            for which, kind, what in (
                ("first", "first_wall", ""),
                ("last", "last_wall", ""),
                ("first", "first_cpu", ", CPU"),
                ("last", "last_cpu", ", CPU"),
            )
        ]
        numbers = [f"{int(number):,}" for number in f["resident_mb"]]
        sizes = ", ".join(f"{size:,}" for size in f["resident_mb"].values())
        after = ", ".join(numbers if len(numbers) < 4 else [*numbers[:2], "…", numbers[-1]])
        memory = f"{sizes} MB after {after} updates"
        told = (
            f"{f['updates']:,} durable updates of one fact on {f['facts']:,} facts, in one process, on {f['file_system']}. "
            f"At the end {f['files']:,} files of {_megabytes(f['bytes'])} MB; a new process opens them in {_wall_and_cpu(f['open_ms'])}, "
            f"and after `vacuum --keep 1` in {_wall_and_cpu(f['open_after_vacuum_ms'])}. Resident: {memory}."
        )
        sections += ["## A long life", _measured_at(f) + told, table(rows)]
    many = [f for f in found if f["part"] == "relations"]
    if many:
        told, rows = rendered(many)
        sections += ["## One of many relations", _measured_at(many[0]) + told, table(rows)]
    return "\n\n".join(sections) + "\n"


def _measured_at(one: dict[str, Any]) -> str:
    return f"{one['date']}, `{one['command']}`. {one.get('note', '')}"


def _wall_and_cpu(times: dict[str, float]) -> str:
    return f"{times['wall']} ms ({times['cpu']} ms of CPU)"


def _spread(times: dict[str, float]) -> str:
    return f"{times['min']} / {times['median']} / {times['max']}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f}"


def _measured_before(file: Path) -> list[dict[str, Any]]:
    return json.loads(file.read_text(encoding="utf-8"))["measured"] if file.exists() else []


def main() -> None:
    """Measures, saves, prints."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", default="")
    options.add_argument("--updates", type=int, default=0, help="so many updates of one fact")
    options.add_argument("--before", type=Path, action="append", default=[], help="the folder of another package")
    options.add_argument("--work", help="where states are made for the time of the run")
    options.add_argument("--open", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.open:
        open_here(chosen.open)
    warm_up()
    name = "state-quick" if chosen.quick else "state"
    only = (chosen.only or ("life" if chosen.updates else ",".join(PARTS))).split(",")
    updates = chosen.updates or (200 if chosen.quick else 20_000)
    command = "python -m bench.state" + "".join(f" {a}" for a in sys.argv[1:])
    around = environment([], command)
    with tempfile.TemporaryDirectory(dir=chosen.work) as folder:
        here = _file_system(Path(folder))  # a long life on another one is another measurement
        before = _measured_before(RESULTS / f"{name}.json")
        found = [f for f in before if f["part"] not in only or f.get("file_system", here) != here]
        life = partial(long_life, updates=updates)
        relations = partial(one_of_many, sources=chosen.before)
        for part, measure in zip(PARTS, (small_updates, opening, many_versions, life, relations), strict=True):
            for one in measure(Path(folder), chosen.quick) if part in only else ():
                found.append({"part": part, "date": around["date"], "command": command, **one})
                print(found[-1], file=sys.stderr)
    text = render(around, found)
    save(RESULTS, name, around | {"measured": found}, [], text)
    print(text)


if __name__ == "__main__":
    main()
