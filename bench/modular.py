"""Closures by modules and instance by instance: ``python -m bench.modular [--quick] [--only PART …]``.

The shapes of tables 1 and 2 of *Modular materialisation of Datalog programs*, in four parts:

- `materialisation`: Mat-Mod (`modular`) and Mat (`seminaive`) in turns, each as often as it takes little time. Told is the run with the least
  CPU, that of the phase `reason`; both must find the same numbers of facts.
- `duckdb`: w1, w2 and w3, written with the nonlinear rule for us and as a linear recursive query for DuckDB, files to files.
- `updates`: facts are drawn from all explicit ones, deleted and put back by every algorithm in turns, so that what disturbs the machine disturbs
  all; afterwards there must be as many facts as before. Told are CPU seconds of whole calls of `update`, the average of all samples but the
  first, which makes indexes. Then a quarter of all facts is deleted at once.
- `graphs`: real graphs with known closures, from the folder that `--data` or the variable EVERMAT_DATA names.

What takes longer than `--limit` seconds is given up, and told as `> limit`.
"""

from __future__ import annotations

import argparse
import csv
import gc
import gzip
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import evermat
from bench import maintenance
from bench.environment import environment
from bench.harness import measure
from bench.maintenance import arrow
from bench.model import Measurement, Peer, Workload
from bench.peers import peer_duckdb, peer_evermat
from bench.report import best, preamble, save, table
from bench.scaling import RESULTS
from bench.workloads import FULL, QUICK, Rows, dag_edges, declarations, distinct
from evermat.columns.kernels import warm_up
from evermat.errors import LimitError
from evermat.materialisation import Materialisation

Data = dict[str, Rows]
Sizes = dict[str, int]

MODULAR, SEMINAIVE = "modular", "seminaive"
LITTLE = 30.0  # seconds that all runs of one algorithm on one shape may take before it is repeated no more
LARGE = 0.25  # of the explicit facts, in a large deletion
AGAIN = 3  # samples after whose deletion everything is computed from scratch


# --- shapes ------------------------------------------------------------------------------------------------

CLOSURE = "t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z)."
GRAPH = f".decl e, t(x:number, y:number) {CLOSURE}"

CLOSURE_OF_E = declarations({"E": 2}, "T", 2) + "T(x,y) :- E(x,y).\nT(x,z) :- T(x,y), T(y,z).\n"
NONLINEAR = {"w1": CLOSURE_OF_E, "w2": CLOSURE_OF_E, "w3": CLOSURE_OF_E + "T(y,x) :- T(x,y).\n"}

SKOS = """
.decl broader, narrower, related, broadMatch, narrowMatch, relatedMatch, closeMatch, exactMatch(x:number, y:number)
.decl broaderTransitive, narrowerTransitive, mappingRelation, semanticRelation(x:number, y:number)
.decl inScheme, topConceptOf, hasTopConcept(x:number, y:number)
.decl concept, conceptScheme(x:number)
narrower(x, y) :- broader(y, x).
broader(x, y) :- narrower(y, x).
broaderTransitive(x, y) :- broader(x, y).
narrowerTransitive(x, y) :- narrower(x, y).
broaderTransitive(x, z) :- broaderTransitive(x, y), broaderTransitive(y, z).
narrowerTransitive(x, z) :- narrowerTransitive(x, y), narrowerTransitive(y, z).
narrowerTransitive(x, y) :- broaderTransitive(y, x).
broaderTransitive(x, y) :- narrowerTransitive(y, x).
related(x, y) :- related(y, x).
broader(x, y) :- broadMatch(x, y).
narrower(x, y) :- narrowMatch(x, y).
related(x, y) :- relatedMatch(x, y).
closeMatch(x, y) :- exactMatch(x, y).
narrowMatch(x, y) :- broadMatch(y, x).
broadMatch(x, y) :- narrowMatch(y, x).
relatedMatch(x, y) :- relatedMatch(y, x).
closeMatch(x, y) :- closeMatch(y, x).
exactMatch(x, y) :- exactMatch(y, x).
exactMatch(x, z) :- exactMatch(x, y), exactMatch(y, z).
mappingRelation(x, y) :- broadMatch(x, y).
mappingRelation(x, y) :- narrowMatch(x, y).
mappingRelation(x, y) :- relatedMatch(x, y).
mappingRelation(x, y) :- closeMatch(x, y).
semanticRelation(x, y) :- broaderTransitive(x, y).
semanticRelation(x, y) :- narrowerTransitive(x, y).
semanticRelation(x, y) :- related(x, y).
semanticRelation(x, y) :- mappingRelation(x, y).
inScheme(x, y) :- topConceptOf(x, y).
hasTopConcept(x, y) :- topConceptOf(y, x).
topConceptOf(x, y) :- hasTopConcept(y, x).
conceptScheme(y) :- inScheme(_, y).
concept(x) :- inScheme(x, _).
concept(x) :- semanticRelation(x, _).
concept(y) :- semanticRelation(_, y).
"""

PLACES = """
.decl near, relatedPlaces, within, foundAt, foundNear, inRegion(x:number, y:number)
.decl place, lonely(x:number)
relatedPlaces(x, y) :- near(x, y).
relatedPlaces(y, x) :- relatedPlaces(x, y).
relatedPlaces(x, z) :- relatedPlaces(x, y), relatedPlaces(y, z).
place(x) :- near(x, _).
place(x) :- foundAt(_, x).
lonely(x) :- place(x), !relatedPlaces(x, _).
foundNear(object, y) :- foundAt(object, x), relatedPlaces(x, y).
inRegion(x, region) :- within(x, region).
inRegion(x, region) :- within(y, region), relatedPlaces(y, x).
"""

HARD_RULES = """
.decl worksWith0, worksWith, doctoralAdvisor, academicAncestor, academicRelative(x:number, y:number)
worksWith(x, y) :- worksWith0(x, y).
worksWith(y, x) :- worksWith(x, y).
worksWith(x, z) :- worksWith(x, y), worksWith(y, z).
academicAncestor(x, y) :- doctoralAdvisor(x, y).
academicAncestor(x, z) :- academicAncestor(x, y), academicAncestor(y, z).
academicRelative(x, z) :- graduate(x), advisor(x, y), academicAncestor(y, z).
"""


def random_dag(nodes: int, edges: int) -> Data:
    """A random DAG, as w1."""
    return {"e": dag_edges(nodes, edges)}


def categories(quick: bool) -> Data:
    """Categories in the manner of DBpedia, in layers: half of them in few deep fields, half in many shallow ones.

    Each has one broader category or two in the layer above, near its own place. Now and then one is also under a category that
    lies layers below it, so that there are cycles.
    """
    deep = (2, 60, 5) if quick else (5, 400, 5)  # fields, layers of each, categories of each layer
    shallow = (30, 4, 5) if quick else (500, 4, 5)
    rng = np.random.default_rng(0)
    parts: list[Data] = []
    start = 0
    for fields, layers, width in (deep, shallow):
        number = np.arange(fields * layers * width)
        layer, place = number // width % layers, number % width
        again = rng.random(len(number)) < 0.3
        lower = np.r_[number, number[again]]
        lower = lower[layer[lower] > 0]
        upper = lower - place[lower] - width + (place[lower] + rng.integers(-1, 2, len(lower))) % width
        turned = number[rng.random(len(number)) < 0.005]
        down = rng.integers(1, 80, len(turned))
        turned, down = turned[fit := layer[turned] + down < layers], down[fit]
        scheme = number // (layers * width)
        parts.append(
            {
                "broader": np.r_[np.c_[lower, upper], np.c_[turned, turned + down * width]] + start,
                "inScheme": np.c_[number + start, scheme - start - 1],
                "topConceptOf": np.c_[number + start, scheme - start - 1][layer == 0],
            }
        )
        start += len(number)
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    joined["related"] = rng.integers(0, start, (start, 2))
    joined["exactMatch"] = rng.integers(0, start, (start // 20, 2))
    joined["broadMatch"] = joined["broader"][rng.random(len(joined["broader"])) < 0.02]
    return {name: distinct(rows) for name, rows in joined.items()}


def places(quick: bool) -> Data:
    """Places in the manner of Claros: few large components and many small ones; objects found there; regions.

    A component is a random tree with some further edges.
    """
    large, small = ((4, 30, 60), (12, 2, 8)) if quick else ((60, 300, 700), (240, 2, 40))  # how many, of which sizes
    rng = np.random.default_rng(0)
    near = []
    start = 0
    for components, smallest, largest in (large, small):
        for size in rng.integers(smallest, largest + 1, components):
            edges = np.r_[random_tree(int(size), rng), rng.integers(0, size, (size // 10, 2))]
            near.append(edges[edges[:, 0] != edges[:, 1]] + start)
            start += int(size)
    objects, regions = start // 10, start // 200 + 1
    return {
        "near": distinct(np.concatenate(near)),
        "foundAt": np.c_[np.arange(objects) + 10**6, rng.integers(0, start + objects, objects)],
        "within": np.c_[rng.choice(start, regions, replace=False), np.arange(regions) + 2 * 10**6],
    }


def random_tree(nodes: int, rng: np.random.Generator) -> Rows:
    """Edges to each node but the first, from any before it."""
    node = np.arange(1, nodes)
    edges: Rows = np.c_[(rng.random(len(node)) * node).astype(np.int64), node]
    return edges


def university(quick: bool) -> Data:
    """Several universities of `bench.maintenance`, in which groups have groups, people work together, and professors had advisors."""
    systems, levels, sizes, generation = (2, 3, (10, 30), 60) if quick else (4, 8, (60, 140), 300)
    parts = []
    for system in range(systems):
        rng = np.random.default_rng(system)
        own = maintenance.university(quick)
        professor = own["worksFor"][:, 0]
        group = own["subOrgOf0"][own["subOrgOf0"][:, 1] < 10**6, 0]  # those that are part of a department
        above, nested = group, []
        for level in range(1, levels):
            below = group + level * 10**5
            nested.append(np.c_[below, rng.choice(above, len(below))])
            above = below
        own["subOrgOf0"] = np.r_[own["subOrgOf0"], *nested]
        researcher = rng.choice(own["memberOf0"][:, 0], len(professor), replace=False)
        own["memberOf0"] = np.r_[own["memberOf0"], np.c_[researcher, rng.choice(above, len(researcher))]]
        own["worksWith0"] = teams(professor, sizes, rng)
        younger = np.arange(generation, len(professor))
        older = younger // generation * generation - 1 - rng.integers(0, generation, len(younger))
        own["doctoralAdvisor"] = np.c_[professor[younger], professor[older]]
        parts.append({name: rows + system * 10**7 for name, rows in own.items()})
    return {name: distinct(np.concatenate([part[name] for part in parts])) for name in parts[0]}


def teams(people: Rows, sizes: tuple[int, int], rng: np.random.Generator) -> Rows:
    """Pairs that hold teams of some sizes together."""
    pairs = []
    start = 0
    while start < len(people):
        size = min(int(rng.integers(*sizes)), len(people) - start)
        pairs.append(random_tree(size, rng) + start)
        start += size
    members: Rows = people[np.concatenate(pairs)]
    return members


@dataclass(frozen=True)
class Shape:
    """A program and its facts."""

    name: str
    program: str
    facts: Callable[[bool], Data]
    wanted: float
    """How many times faster Mat-Mod is to be."""
    expected: Callable[[bool], Sizes] = lambda _quick: {}
    """Numbers of facts that are known from elsewhere."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Update algorithms that are not run, and why."""
    is_updated: bool = True


def workload(name: str) -> Shape:
    """A program of `bench.workloads` that has no transitive rule, in the size that is asked for."""
    known = {True: QUICK[name], False: FULL[name]}
    return Shape(
        name,
        known[False].programs["dl"],
        lambda quick: dict(known[quick].facts()),
        1 / 1.1,
        lambda quick: {known[quick].result: known[quick].expected.rows},
        is_updated=False,
    )


SHAPES = [
    Shape(
        "DAG-R",
        GRAPH,
        lambda quick: random_dag(500, 3_000) if quick else random_dag(10_000, 100_000),
        100,
        lambda quick: {"t": (QUICK if quick else FULL)["w1"].expected.rows},
        {"dred-c": "left out, for its counters alone are 8.8 billion instances"},
    ),
    Shape(
        "small DAG",
        GRAPH,
        lambda quick: random_dag(200, 1_000) if quick else random_dag(1_000, 10_000),
        1,
        lambda quick: {} if quick else {"t": 302_880},
    ),
    Shape("SKOS-like", SKOS, categories, 30),
    Shape("cliques", PLACES, places, 30),
    Shape("LUBM-like, hard rules", maintenance.UNIVERSITY + HARD_RULES, university, 3),
    workload("w4"),
    workload("w5"),
    workload("w6"),
]


# --- taking time -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Took:
    """Seconds of CPU, of the clock, and of CPU in the phase `reason`; if it was given up, those until then."""

    cpu: float
    wall: float
    reason: float
    given_up: bool = False

    def __str__(self) -> str:
        return f"{self.cpu:.4f} s CPU, {self.reason:.4f} of it reasoning" + (", given up" if self.given_up else "")


def timed(work: Callable[[], Any]) -> tuple[Any, Took]:
    """What a materialisation or an update handed back, and what it took; None if it was given up."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        done = work()
    except LimitError:
        done = None
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return done, Took(cpu, wall, cpu if done is None else done.stats["cpu_seconds"]["reason"], done is None)


def average(all_took: Sequence[Took]) -> Took | None:
    """The average of several, if there are any; given up if one of them was."""
    if not all_took:
        return None
    given_up = [took for took in all_took if took.given_up]
    if given_up:
        return given_up[0]
    columns = zip(*((t.cpu, t.wall, t.reason) for t in all_took), strict=True)
    return Took(*(sum(column) / len(all_took) for column in columns))


def sizes_of(m: Materialisation) -> Sizes:
    """The number of facts of every relation."""
    return {name: len(facts) for name, facts in m.items()}


def tables(data: Data) -> dict[str, pa.Table]:
    """Relations as Arrow tables."""
    return {name: arrow(rows) for name, rows in data.items()}


def draw(data: Data, count: int, seed: int) -> tuple[Data, Data]:
    """Facts at random from all relations alike; and the rest."""
    total = sum(map(len, data.values()))
    chosen = np.zeros(total, bool)
    chosen[np.random.default_rng(seed).choice(total, count, replace=False)] = True
    parts = np.split(chosen, np.cumsum([len(rows) for rows in data.values()])[:-1])
    named = list(zip(data.items(), parts, strict=True))
    return {name: rows[part] for (name, rows), part in named if part.any()}, {
        name: rows[~part] for (name, rows), part in named
    }


def agree(what: str, found: Sizes, expected: Sizes) -> None:
    """Ends everything if there are other numbers of facts than there should be: times of wrong results are worth nothing."""
    wrong = {name: (found[name], size) for name, size in expected.items() if found[name] != size}
    if wrong:
        raise SystemExit(f"{what}: facts found and expected: {wrong}")


def tell(*words: object) -> None:
    """One line of progress."""
    print(*words, file=sys.stderr, flush=True)


# --- materialisation ---------------------------------------------------------------------------------------


def measure_materialisation(shape: Shape, quick: bool, limit: float, repeat: int) -> dict[str, Any]:
    """Mat-Mod and Mat in turns, each until its runs have taken long enough; of each the best."""
    program = evermat.Program.parse(shape.program)
    facts = tables(shape.facts(quick))
    taken: dict[str, list[Took]] = {MODULAR: [], SEMINAIVE: []}
    found: dict[str, Any] = {
        "shape": shape.name,
        "wanted": round(shape.wanted, 2),
        "closures": [closure.kind for stratum in program.strata for closure in stratum.closures],
    }
    for _ in range(repeat):
        for algorithm, all_took in taken.items():
            if sum(took.wall for took in all_took) > LITTLE:
                continue
            m, took = timed(partial(program.materialise, facts, algorithm=algorithm, limit_seconds=limit))
            all_took.append(took)
            tell(shape.name, algorithm, took)
            if m is not None:
                agree(f"{shape.name} by {algorithm}", sizes_of(m), shape.expected(quick) | found.get("facts", {}))
                found |= {"facts": sizes_of(m), "explicit": m.stats["explicit"]}
                found |= {f"{algorithm}_instances": m.stats["derivations"], f"{algorithm}_mb": m.stats["peak_rss_mb"]}
            del m
    for algorithm, all_took in taken.items():
        found[algorithm] = asdict(min(all_took, key=lambda took: took.reason)) | {"runs": len(all_took)}
    return found


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


# --- beside DuckDB -----------------------------------------------------------------------------------------


def peers() -> list[Peer]:
    """Evermat by modules, and DuckDB."""
    return [peer_evermat.peer(options=("--algorithm", MODULAR)), peer_duckdb.PEER]


def closures(quick: bool) -> list[Workload]:
    """The closures among the workloads, with nonlinear rules for us."""
    known = QUICK if quick else FULL
    return [replace(known[name], programs={**known[name].programs, "dl": text}) for name, text in NONLINEAR.items()]


def measure_duckdb(quick: bool, limit: float, repeat: int) -> list[Measurement]:
    """Both engines, each in processes of its own; results are compared with the recorded ones."""
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        return measure(
            peers(),
            closures(quick),
            work=Path(work),
            repeat=repeat,
            timeout=limit,
            tell=lambda m: tell(m.workload, m.engine, m.status, m.phases.cpu, m.cpu, m.detail),
        )


def measure_warm(quick: bool, repeat: int) -> dict[str, dict[str, Any]]:
    """The same in this process, which has loaded all kernels: what reasoning takes where it is not the first."""
    found = {}
    for workload in closures(quick):
        program, facts = evermat.Program.parse(workload.programs["dl"]), tables(dict(workload.facts()))
        all_took = []
        for _ in range(repeat):
            m, took = timed(partial(program.materialise, facts, algorithm=MODULAR))
            agree(workload.name, sizes_of(m), {workload.result: workload.expected.rows})
            all_took.append(took)
            del m
        found[workload.name] = asdict(min(all_took, key=lambda took: took.reason))
    return found


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


# --- updates -----------------------------------------------------------------------------------------------

UPDATES = {  # by which algorithm the state is made that an algorithm updates, and with which counters
    "dred-c-mod": (MODULAR, "both"),
    "bf-c-mod": (MODULAR, "nonrecursive"),
    "remat": (MODULAR, "none"),
    "dred-c": (SEMINAIVE, "both"),
}
FIGURES = ("overdeleted", "rederived", "checked", "proved", "deleted", "derivations")


class Subject:
    """A materialisation that one algorithm updates again and again, as long as it has time left."""

    def __init__(self, shape: str, algorithm: str, m: Materialisation, limit: float) -> None:
        self.name, self.algorithm, self.m, self.limit = f"{shape} by {algorithm}", algorithm, m, limit
        self.before = sizes_of(m)
        self.deleting: list[Took] = []
        self.inserting: list[Took] = []
        self.large: Took | None = None
        self.figures: dict[str, list[int]] = {}
        self._left = limit
        self._is_whole = True

    def round(self, sample: dict[str, pa.Table]) -> None:
        """Deletes facts and puts them back, unless the time for that is over."""
        if self._left <= 0:
            return
        self.deleting.append(self._update(delete=sample))
        if not self.deleting[-1].given_up:
            self.inserting.append(self._update(insert=sample))
            if self.inserting[-1].given_up:
                self._is_whole = False
                return
        agree(self.name, sizes_of(self.m), self.before)

    def delete_many(self, facts: dict[str, pa.Table], expected: Sizes) -> None:
        """Deletes very many facts."""
        if self._is_whole:
            self.large = self._update(delete=facts)
            agree(self.name, sizes_of(self.m), self.before if self.large.given_up else expected)

    def _update(self, **change: Any) -> Took:
        done, took = timed(partial(self.m.update, **change, algorithm=self.algorithm, limit_seconds=self.limit))
        self._left = 0.0 if took.given_up else self._left - took.wall
        (kind,) = change
        if done is not None and kind == "delete":
            for figure in FIGURES:
                self.figures.setdefault(figure, []).append(done.stats[figure])
        tell(self.name, kind, took)
        return took

    def told(self) -> dict[str, Any]:
        """Averages over all samples but the first, if there are others; the large deletion."""
        counted = slice(min(1, len(self.deleting) - 1), None)
        return {
            "algorithm": self.algorithm,
            "samples": len(self.deleting[counted]),
            "small_deletion": as_json(average(self.deleting[counted])),
            "small_insertion": as_json(average(self.inserting[counted])),
            "large_deletion": as_json(self.large),
            "each_deletion_cpu": [round(took.cpu, 4) for took in self.deleting],
            "figures_of_each_deletion": self.figures,
        }


def measure_updates(shape: Shape, quick: bool, limit: float, samples: int) -> dict[str, Any]:
    """Small deletions and insertions, and a large deletion, by every algorithm; and everything from scratch instead."""
    program = evermat.Program.parse(shape.program)
    data = shape.facts(quick)
    total = sum(map(len, data.values()))
    size = min(1_000, total // 10)
    facts = tables(data)
    subjects: list[Subject] = []
    notes = dict(shape.left_out)
    for algorithm, (how, counters) in UPDATES.items():
        if algorithm in notes:
            continue
        m, took = timed(partial(program.materialise, facts, algorithm=how, counters=counters, limit_seconds=limit))
        tell(shape.name, algorithm, "materialised:", took)
        if m is None:
            notes[algorithm] = f"counting its derivations alone took longer than {limit:g} s"
            continue
        agree(f"{shape.name} for {algorithm}", sizes_of(m), subjects[0].before if subjects else shape.expected(quick))
        subjects.append(Subject(shape.name, algorithm, m, limit))
    scratch: list[Took] = []
    for seed in range(samples + 1):
        sample, rest = draw(data, size, seed)
        for subject in subjects:
            subject.round(tables(sample))
        if seed in range(1, AGAIN + 1):
            scratch.append(from_scratch(program, rest)[1])
    many, rest = draw(data, int(LARGE * total), samples + 1)
    expected, scratch_large = from_scratch(program, rest)
    for subject in subjects:
        subject.delete_many(tables(many), expected)
    return {
        "shape": shape.name,
        "facts": sum(subjects[0].before.values()) if subjects else None,
        "explicit": total,
        "changed": size,
        "changed_large": int(LARGE * total),
        "algorithms": [subject.told() for subject in subjects],
        "scratch": {"small_deletion": as_json(average(scratch)), "large_deletion": as_json(scratch_large)},
        "notes": notes,
        "left_out": list(shape.left_out),
        "limit": limit,
    }


def from_scratch(program: evermat.Program, data: Data) -> tuple[Sizes, Took]:
    """Mat-Mod on what is left."""
    facts = tables(data)
    m, took = timed(partial(program.materialise, facts, algorithm=MODULAR))
    return sizes_of(m), took


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


# --- graphs ------------------------------------------------------------------------------------------------


def measure_graphs(data: Path, quick: bool, limit: float) -> list[dict[str, Any]]:
    """The closure of every graph that there is; the smaller ones only, if it is to be quick."""
    program = evermat.Program.parse(GRAPH)
    found = []
    with (data / "graphs" / "EXPECTED-TC.tsv").open(encoding="utf-8") as file:
        known = list(csv.DictReader(file, delimiter="\t"))
    for one in known:
        expected = int(one["computed_TC"])
        if quick and expected > 1_000_000:
            continue
        text = gzip.decompress((data / "graphs" / f"{one['file']}.gz").read_bytes())
        facts = {"e": arrow(np.array(text.split(), np.int64).reshape(-1, 2))}
        m, took = timed(partial(program.materialise, facts, algorithm=MODULAR, limit_seconds=limit))
        tell(one["graph"], took)
        found.append(
            {
                "graph": one["graph"],
                "edges": len(m["e"]) if m else None,
                "expected": expected,
                "pairs": len(m["t"]) if m else None,
                "took": asdict(took),
            }
        )
        del m
    return found


def render_graphs(found: Sequence[dict[str, Any]]) -> str:
    rows = [["graph", "edges", "pairs", "known", "reason, CPU s", "whole call, CPU s", "wall s"]]
    for one in found:
        took = Took(**one["took"])
        pairs = number(one["pairs"]) + ("" if one["pairs"] == one["expected"] else " WRONG")
        times = [seconds(took, t) for t in (took.reason, took.cpu, took.wall)]
        rows.append([one["graph"], number(one["edges"]), pairs, number(one["expected"]), *times])
    return "\n\n".join(["## Graphs", "Closures by the nonlinear rule, by modules, once each.", table(rows)])


# --- words and numbers -------------------------------------------------------------------------------------


def as_json(took: Took | None) -> dict[str, Any] | None:
    return asdict(took) if took else None


def from_json(data: dict[str, Any] | None) -> Took | None:
    return Took(**data) if data else None


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


# --- the command -------------------------------------------------------------------------------------------

PARTS = ("materialisation", "duckdb", "updates", "graphs")


def options() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench.modular", description=__doc__)
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
