"""Deleting facts by every algorithm, and rematerialising: ``python -m bench.maintenance [--quick]``.

The shapes of tables 1 and 2 of *Optimised maintenance of Datalog materialisations*: single-source path enumeration (built-ins), a university (many
rules, little recursion), dense recursion, cliques. For each: the same random facts are deleted, 1,000 at a time (a tenth of the facts where there are few), and
put back, by every algorithm in turn, so that what disturbs the machine disturbs all; afterwards all must hold as many facts as before. Told are CPU seconds of one update, the best of all rounds
but the first, which makes indexes.

`auto` has both counters at the beginning of every deletion; `auto, uncounted` has none.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import evermat
from bench.environment import environment
from bench.report import preamble, save, table
from bench.scaling import RESULTS
from evermat.columns.kernels.warm_up import warm_up

UNCOUNTED = "auto, uncounted"
ALGORITHMS = ("dred", "dred-c", "bf", "bf-c", "remat", "auto", UNCOUNTED)
COUNTERS = {"dred-c": "both", "bf-c": "nonrecursive", "auto": "both"}  # that are kept; others keep none
PUT_BACK = {"auto": "dred-c", UNCOUNTED: "dred"}  # by which algorithm, if not by the same


@dataclass(frozen=True)
class Shape:
    """A program, its facts, and the relation of which facts are deleted."""

    name: str
    program: str
    facts: Callable[[bool], dict[str, np.ndarray]]
    deleted_from: str


def paths(quick: bool) -> dict[str, np.ndarray]:
    """A random DAG whose edges have lengths 1 to 3; nodes 0 to n, edges of limited span so that paths are many."""
    nodes, edges, span = (2_000, 10_000, 300) if quick else (100_000, 1_000_000, 40_000)
    rng = np.random.default_rng(0)
    source = rng.integers(0, nodes - 1, 2 * edges)
    target = source + 1 + rng.integers(0, span, 2 * edges)
    pairs = np.unique(np.c_[source, target][target < nodes], axis=0)
    pairs = rng.permutation(pairs)[:edges]
    return {"B": np.c_[pairs, np.random.default_rng(1).integers(1, 4, len(pairs))]}


def university(quick: bool) -> dict[str, np.ndarray]:
    """People, courses and departments in the manner of LUBM, numbered."""
    departments = 20 if quick else 400
    rng = np.random.default_rng(0)
    professors, students, courses = departments * 30, departments * 400, departments * 60
    base = {"d": 0, "p": 10**6, "s": 2 * 10**6, "c": 3 * 10**6, "u": 4 * 10**6, "g": 5 * 10**6}
    professor = np.arange(professors) + base["p"]
    student = np.arange(students) + base["s"]
    course = np.arange(courses) + base["c"]
    department = np.arange(departments) + base["d"]
    group = np.arange(departments * 10) + base["g"]
    return {
        "worksFor": np.c_[professor, rng.choice(department, professors)],
        "headOf": np.c_[rng.choice(professor, departments), department],
        "memberOf0": np.c_[student, rng.choice(department, students)],
        "advisor": np.c_[student, rng.choice(professor, students)],
        "takes": np.unique(np.c_[rng.choice(student, students * 3), rng.choice(course, students * 3)], axis=0),
        "teaches": np.c_[rng.choice(professor, courses), course],
        "subOrgOf0": np.r_[
            np.c_[department, department // 20 + base["u"]], np.c_[group, rng.choice(department, len(group))]
        ],
        "fullProfessor": professor[::3][:, None],
        "graduate": student[::4][:, None],
    }


UNIVERSITY = """
.decl worksFor, headOf, memberOf0, advisor, takes, teaches, subOrgOf0(x:number, y:number)
.decl fullProfessor, graduate(x:number)
.decl subOrgOf, memberOf, degreeFrom, knows, colleague(x:number, y:number)
.decl professor, faculty, employee, person, chair, student, teacher, busy, organisation(x:number)
professor(x) :- fullProfessor(x).
professor(x) :- worksFor(x, _), teaches(x, _).
faculty(x) :- professor(x).
employee(x) :- faculty(x).
employee(x) :- worksFor(x, _).
person(x) :- employee(x).
person(x) :- student(x).
chair(x) :- person(x), headOf(x, _).
student(x) :- takes(x, _).
student(x) :- graduate(x).
teacher(x) :- teaches(x, _).
memberOf(x, y) :- memberOf0(x, y).
memberOf(x, y) :- worksFor(x, y).
memberOf(x, y) :- headOf(x, y).
memberOf(x, z) :- memberOf(x, y), subOrgOf(y, z).
subOrgOf(x, y) :- subOrgOf0(x, y).
subOrgOf(x, z) :- subOrgOf(x, y), subOrgOf(y, z).
organisation(y) :- memberOf(_, y).
organisation(x) :- subOrgOf(x, _).
knows(x, y) :- advisor(x, y).
knows(x, y) :- takes(x, c), teaches(y, c).
colleague(x, y) :- worksFor(x, d), headOf(y, d).
busy(x) :- teacher(x), chair(x), !fullProfessor(x).
"""


def dense(quick: bool) -> dict[str, np.ndarray]:
    """A cyclic graph with ten edges for each node: one component, closed by the nonlinear rule."""
    nodes, edges = (80, 800) if quick else (400, 4_000)
    rng = np.random.default_rng(0)
    return {"e": np.unique(rng.integers(0, nodes, (edges, 2)), axis=0)}


def cliques(quick: bool) -> dict[str, np.ndarray]:
    """Components of a symmetric and transitive relation."""
    components, size = (5, 30) if quick else (20, 100)
    rng = np.random.default_rng(0)
    edges = []
    for component in range(components):
        base = component * size
        edges += [(base + int(rng.integers(0, i)), base + i) for i in range(1, size)]
        edges += [(base + int(a), base + int(b)) for a, b in rng.integers(0, size, (size * 2, 2)) if a != b]
    return {"e": np.unique(np.array(edges), axis=0)}


SHAPES = [
    Shape(
        "SSPE",
        ".decl B(x:number, y:number, z:number) .decl D(y:number, z:number)"
        " D(y, z) :- B(0, y, z). D(y, z1 + z2) :- D(x, z1), B(x, y, z2).",
        paths,
        "B",
    ),
    Shape("university", UNIVERSITY, university, "memberOf0"),
    Shape(
        "dense recursion",
        ".decl e, t(x:number, y:number) t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z).",
        dense,
        "e",
    ),
    Shape(
        "cliques",
        ".decl e, r(x:number, y:number) r(x, y) :- e(x, y). r(y, x) :- r(x, y). r(x, z) :- r(x, y), r(y, z).",
        cliques,
        "e",
    ),
]


def arrow(rows: np.ndarray) -> pa.Table:
    """Rows of integers as an Arrow table."""
    return pa.table({f"c{i}": rows[:, i] for i in range(rows.shape[1])})


def measure(shape: Shape, quick: bool, algorithms: tuple[str, ...], rounds: int) -> list[dict[str, Any]]:
    """Deletes and puts back the same facts with every algorithm."""
    program = evermat.Program.parse(shape.program)
    data = shape.facts(quick)
    facts = {name: arrow(rows) for name, rows in data.items()}
    rows = data[shape.deleted_from]
    size = min(1000, len(rows) // 10)
    samples = [rows[np.random.default_rng(seed).choice(len(rows), size, replace=False)] for seed in range(rounds + 1)]
    scratch: dict[str, float] = {}
    for _ in range(max(8, 2 * rounds)):
        for counters in ("none", "nonrecursive", "both"):
            took = program.materialise(facts, counters=counters, schemes="plain").stats["cpu_seconds"]["reason"]
            scratch[counters] = min(took, scratch.get(counters, took))
    states = {
        name: program.materialise(facts, counters=COUNTERS.get(name, "none"), schemes="plain") for name in algorithms
    }
    before = {name: len(facts) for name, facts in next(iter(states.values())).items()}
    found: dict[str, dict[str, Any]] = {}
    for warm, sample in enumerate(samples):
        for name, m in states.items():
            algorithm = name.partition(",")[0]
            started = time.process_time()
            stats = m.update(delete={shape.deleted_from: arrow(sample)}, algorithm=algorithm).stats
            deleting = time.process_time() - started
            started = time.process_time()
            m.update(insert={shape.deleted_from: arrow(sample)}, algorithm=PUT_BACK.get(name, algorithm))
            inserting = time.process_time() - started
            if {relation: len(m[relation]) for relation in m} != before:
                raise SystemExit(f"{shape.name}: {name} does not come back to where it was")
            if warm and (name not in found or deleting < found[name]["delete_cpu"]):
                found[name] = {
                    "shape": shape.name,
                    "algorithm": name,
                    "facts": sum(before.values()),
                    "deleted_explicit": size,
                    "delete_cpu": round(deleting, 4),
                    "insert_cpu": round(inserting, 4),
                    **{
                        k: stats[k] for k in ("overdeleted", "rederived", "checked", "proved", "deleted", "derivations")
                    },
                    "chosen": sorted({s["algorithm"] for s in stats["strata"]}),
                }
            print(shape.name, name, round(deleting, 4), file=sys.stderr)
    return [
        *found.values(),
        {"shape": shape.name, "algorithm": "from scratch", "cpu": {k: round(v, 4) for k, v in scratch.items()}},
    ]


def ratios(found: list[dict[str, Any]]) -> list[list[str]]:
    """How the algorithms compare, for each shape."""
    rows = [["shape", "DRed^c / DRed", "B/F^c / B/F", "auto / best", "auto uncounted / best", "Remat-2C / Remat"]]
    for shape in dict.fromkeys(f["shape"] for f in found):
        own = {f["algorithm"]: f for f in found if f["shape"] == shape}
        cpu = {name: f["delete_cpu"] for name, f in own.items() if "delete_cpu" in f}
        best = min(seconds for name, seconds in cpu.items() if not name.startswith("auto"))
        scratch = own["from scratch"]["cpu"]

        def ratio(name: str, other: float, cpu: dict[str, float] = cpu) -> str:
            return f"{cpu[name] / other:.2f}" if name in cpu else ""

        autos = [
            f"{ratio(n, best)} ({1000 * (cpu[n] - best):+,.1f} ms)" if n in cpu else "" for n in ("auto", UNCOUNTED)
        ]
        pairs = [ratio(a, cpu[b]) if b in cpu else "" for a, b in (("dred-c", "dred"), ("bf-c", "bf"))]
        rows.append([shape, *pairs, *autos, f"{scratch['both'] / scratch['none']:.2f}"])
    return rows


def main() -> None:
    """Measures, saves, prints."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--shapes", default=",".join(s.name for s in SHAPES))
    options.add_argument("--algorithms", default=";".join(ALGORITHMS))
    chosen = options.parse_args()
    warm_up()
    found: list[dict[str, Any]] = []
    names = tuple(a for a in ALGORITHMS if a in chosen.algorithms.split(";"))
    for shape in SHAPES:
        if shape.name in chosen.shapes.split(","):
            found += measure(shape, chosen.quick, names, chosen.rounds)
    around = environment([], "python -m bench.maintenance" + "".join(f" {a}" for a in sys.argv[1:]))
    rows = [
        [
            "shape",
            "algorithm",
            "facts",
            "delete, CPU s",
            "put back, CPU s",
            "overdeleted",
            "rederived",
            "checked",
            "deleted",
        ]
    ]
    for f in found:
        if "cpu" in f:
            times = ", ".join(f"{kind} {seconds}" for kind, seconds in f["cpu"].items())
            rows.append([f["shape"], f"from scratch, by counters: {times}", *[""] * 7])
        else:
            keys = ("overdeleted", "rederived", "checked", "deleted")
            rows.append(
                [
                    f["shape"],
                    f["algorithm"],
                    f"{f['facts']:,}",
                    str(f["delete_cpu"]),
                    str(f["insert_cpu"]),
                    *(f"{f[k]:,}" for k in keys),
                ]
            )
    text = "\n\n".join(["# Maintenance", preamble(around), table(ratios(found)), table(rows)]) + "\n"
    save(RESULTS, "maintenance-quick" if chosen.quick else "maintenance", around | {"measured": found}, [], text)
    print(text)


if __name__ == "__main__":
    main()
