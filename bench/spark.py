"""The pipeline on Spark against the same in memory: ``python -m bench.spark [--quick] [--only pipeline,start,triples]``.

*start*: a program with ten facts, by both engines: what Spark takes more is its own start. *pipeline*: `evermat run` on text files of edges, by both engines, whole
processes, interleaved; all paths of length two are counted, and a tenth of the edges written. Told is the best of some runs by wall time, and how Spark compares apart from its start. *triples*: N-Triples
parsed and written as Arrow by the code that tasks run, in this process, by CPU time; and encoded by the driver.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from bench.environment import environment
from bench.report import preamble, save, table
from bench.scaling import RESULTS

PARTS = ("start", "pipeline", "triples")
SIZES = (1_000_000, 5_000_000, 20_000_000)
PROGRAM = """
.decl edge(x:{type}, y:{type}) .input edge
.decl some(x:{type}) .input some
.decl two(x:{type}, z:{type}) .printsize two
.decl chosen(x:{type}, y:{type}) .output chosen
two(x, z) :- edge(x, y), edge(y, z).
chosen(x, y) :- some(x), edge(x, y).
"""


def make_edges(folder: Path, type_: str, edges: int) -> None:
    """A random graph with as many nodes as edges, so that there are as many paths of length two."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    prefix = "http://example.org/node/" if type_ == "symbol" else ""

    def named(numbers: np.ndarray) -> Any:
        return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")

    plain = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    pairs = pa.table({"x": named(rng.integers(0, edges, edges)), "y": named(rng.integers(0, edges, edges))})
    csv.write_csv(pairs, folder / "edge.facts", plain)
    csv.write_csv(pa.table({"x": named(rng.integers(0, edges, edges // 10))}), folder / "some.facts", plain)
    (folder / "program.dl").write_text(PROGRAM.format(type=type_), encoding="utf-8")


def timed(folder: Path, engine: str) -> dict[str, Any]:
    """One run of the whole command; CPU is that of all processes."""
    command = [sys.executable, "-m", "evermat", "run", "program.dl", "--engine", engine, "--stats", f"{engine}.json"]
    before, started = os.times(), time.perf_counter()
    done = subprocess.run([*command, "-D", engine], cwd=folder, check=True, capture_output=True, text=True)
    wall, after = time.perf_counter() - started, os.times()
    stats = json.loads((folder / f"{engine}.json").read_text(encoding="utf-8"))
    return {
        "engine": engine,
        "wall": round(wall, 2),
        "cpu": round(after.children_user + after.children_system - before.children_user - before.children_system, 2),
        "seconds": {phase: round(value, 2) for phase, value in stats["seconds"].items()},
        "facts": sum(stats["facts"].values()),
        "said": done.stdout,
    }


def both(place: Path, rounds: int) -> dict[str, dict[str, Any]]:
    """The best run of each engine; they must agree."""
    best: dict[str, dict[str, Any]] = {}
    for _ in range(rounds):
        for engine in ("memory", "spark"):
            took = timed(place, engine)
            best[engine] = min(best.get(engine, took), took, key=lambda t: t["wall"])
    if best["memory"]["said"] != best["spark"]["said"]:
        raise SystemExit(f"{place.name}: the engines disagree")
    return best


def pipeline(folder: Path, quick: bool, sizes: tuple[int, ...] = SIZES) -> Iterator[dict[str, Any]]:
    """Both engines on the same files, in turn."""
    for type_ in ("number", "symbol"):
        for edges in (10_000,) if quick else sizes:
            place = folder / f"{type_}{edges}"
            make_edges(place, type_, edges)
            best = both(place, 1 if quick else 5 if edges <= 1_000_000 else 2)  # of short runs more, for they vary more
            yield {"type": type_, "edges": edges, **best}
            shutil.rmtree(place)


def start(folder: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Ten facts: until the first file has been read, and what that takes more than in memory."""
    place = folder / "small"
    make_edges(place, "number", 10)
    yield both(place, 1 if quick else 5)


def triples(folder: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """The code of tasks, and then what the driver does with their files."""
    from evermat.columns.storage.dictionary import Dictionary
    from evermat.core.source import Source
    from evermat.language.compile import compile_program
    from evermat.spark.input.arrow_files import ArrowFileFacts
    from evermat.spark.input.read_task import Split, SplitReader

    count = 20_000 if quick else 2_000_000
    rng = np.random.default_rng(0)
    file = folder / "data.nt"
    with file.open("w", encoding="utf-8") as out:
        for s, p, o in zip(*(rng.integers(0, n, count).tolist() for n in (count // 8, 40, count // 4)), strict=True):
            value = f"<http://example.org/resource/{o}>" if o % 3 else f'"label {o}"@en'
            out.write(f"<http://example.org/resource/{s}> <http://example.org/property/{p}> {value} .\n")
    text = '.decl triple(s:term, p:term, o:term) .input triple(filename="data.nt")'
    program = compile_program(Source("<bench>", text))
    io = program.inputs[0]
    reader = SplitReader((Split(io, str(file), 0, file.stat().st_size),), str(folder))
    reader.read(0)  # whatever is loaded or compiled is so now
    begun = time.process_time()
    outcome = reader.read(0)
    parsing = time.process_time() - begun
    assert outcome.rows == count, outcome
    dictionary = Dictionary()
    begun = time.process_time()
    for _ in ArrowFileFacts([Path(outcome.file)], outcome.rows).batches(io.relation, dictionary):
        pass
    encoding = time.process_time() - begun
    yield {
        "triples": count,
        "terms": len(dictionary),
        "parse_cpu_s": round(parsing, 2),
        "encode_cpu_s": round(encoding, 2),
        "per_cpu_second": round(count / (parsing + encoding)),
    }


def render(around: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """The results as Markdown."""
    parts = ["# Spark", preamble(around)]
    if rows := [one for one in found if one["part"] == "start"]:
        parts.append(
            "## Start\n\nTen facts, seconds. Wanted: until the first file has been read, that is start and read, under 8."
        )
        head = [["engine", "start", "read", "whole process", "CPU"]]
        cells = [
            [
                engine,
                *(str(r[engine]["seconds"][phase]) for phase in ("start", "read")),
                *map(str, (r[engine]["wall"], r[engine]["cpu"])),
            ]
            for r in rows
            for engine in ("memory", "spark")
        ]
        parts.append(table(head + cells))
    own = next((one["spark"]["wall"] - one["memory"]["wall"] for one in found if one["part"] == "start"), 0.0)
    if rows := [one for one in found if one["part"] == "pipeline"]:
        parts.append(
            f"## End to end\n\nWhole processes, seconds; the ratio leaves out Spark's own start, {own:.1f} s, which is what it takes more for ten facts. Wanted: at most 1.5."
        )
        head = [["columns", "edges", "facts", "memory", "Spark", "ratio", "memory, CPU", "Spark, CPU"]]
        cells = [
            [
                r["type"],
                f"{r['edges']:,}",
                f"{r['spark']['facts']:,}",
                *map(str, (r["memory"]["wall"], r["spark"]["wall"])),
                f"{(r['spark']['wall'] - own) / r['memory']['wall']:.2f}",
                *map(str, (r["memory"]["cpu"], r["spark"]["cpu"])),
            ]
            for r in rows
        ]
        parts.append(table(head + cells))
        head = [["columns", "edges", "engine", *rows[0]["spark"]["seconds"]]]
        cells = [
            [r["type"], f"{r['edges']:,}", engine, *map(str, r[engine]["seconds"].values())]
            for r in rows
            for engine in ("memory", "spark")
        ]
        parts.append(table(head + cells))
    if rows := [one for one in found if one["part"] == "triples"]:
        parts.append(
            "## N-Triples\n\nParsed by the code of tasks and encoded by the driver; wanted: 150,000 per CPU second."
        )
        head = [["triples", "terms", "parse, CPU s", "encode, CPU s", "triples per CPU second"]]
        cells = [
            [
                f"{r['triples']:,}",
                f"{r['terms']:,}",
                str(r["parse_cpu_s"]),
                str(r["encode_cpu_s"]),
                f"{r['per_cpu_second']:,}",
            ]
            for r in rows
        ]
        parts.append(table(head + cells))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measures, saves, prints."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", default=",".join(PARTS))
    options.add_argument("--edges", default=",".join(map(str, SIZES)), help="sizes that the pipeline is measured at")
    chosen = options.parse_args()
    sizes = tuple(map(int, chosen.edges.split(",")))
    name = "spark-quick" if chosen.quick else "spark"
    only = chosen.only.split(",")
    file = RESULTS / f"{name}.json"
    before = json.loads(file.read_text(encoding="utf-8"))["measured"] if file.exists() else []
    around = environment([], "python -m bench.spark" + "".join(f" {a}" for a in sys.argv[1:]))
    found = [one for one in before if one["part"] not in only or one.get("edges", sizes[0]) not in sizes]
    with tempfile.TemporaryDirectory() as folder:
        measures = (start, partial(pipeline, sizes=sizes), triples)
        for part, measure in zip(PARTS, measures, strict=True):
            for one in measure(Path(folder), chosen.quick) if part in only else ():
                found.append({"part": part, "date": around["date"], **one})
                print(found[-1], file=sys.stderr)
    found.sort(key=lambda one: (PARTS.index(one["part"]), one.get("type", ""), one.get("edges", 0)))
    text = render(around, found)
    save(RESULTS, name, around | {"measured": found}, [], text)
    print(text)


if __name__ == "__main__":
    main()
