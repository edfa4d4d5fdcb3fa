"""The results as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.modular.rendering import factor, number, plain_seconds
from bench.report import table
from bench.storage.asking import ALL_KINDS, SMALL_KINDS
from bench.storage.running import Ran, disagreements
from bench.storage.shapes import GRAPHS, LARGE, ROADS, SHAPES, SMALL, W1, WIDE
from bench.storage.steps import AUTO, PLAIN, Step

MB = 1e6
FASTER, LESS_MEMORY = 7, 8  # than plain tables, in the protocol of table 1
MOST_SMALL, MOST_ALL = 1.5, 3.0  # times what a query takes on plain tables
W1_MB, W1_SECONDS, WIDE_MB = 20, 0.5, 80
ROAD_PAIRS, ROAD_MB = 800_000_000, 1_000


class Line(NamedTuple):
    """Something that is wanted."""

    what: str
    wanted: str
    reached: str
    is_reached: bool | None
    """None: it was not measured."""


class Found:
    """All that was measured."""

    def __init__(self, all_ran: Sequence[Ran]) -> None:
        self.all_ran = all_ran

    def ran(self, shape: str, protocol: str, schemes: str) -> Ran | None:
        """A process."""
        own = [r for r in self.all_ran if (r.shape, r.protocol, r.schemes) == (shape, protocol, schemes)]
        return own[0] if own else None

    def steps(self, shape: str, protocol: str, schemes: str, what: str = "materialise", name: str = "") -> list[Step]:
        """The steps of a process that could be done."""
        ran = self.ran(shape, protocol, schemes)
        return [s for s in ran.steps if s.ok and (s.what, s.name) == (what, name)] if ran else []

    def materialised(self, shape: str, schemes: str) -> tuple[Step, Step] | None:
        """The run with the least CPU, and the first one, whose memory is that of a new process."""
        own = self.steps(shape, "load", schemes)
        return (min(own, key=lambda step: step.cpu), own[0]) if own else None

    def shapes(self, protocol: str) -> list[str]:
        """All shapes that were measured in a way."""
        return list(dict.fromkeys(ran.shape for ran in self.all_ran if ran.protocol == protocol))


def render(all_ran: Sequence[Ran]) -> list[str]:
    """All tables."""
    found = Found(all_ran)
    parts = [render_wanted(found)]
    for protocol, section in (("updates", render_updates), ("load", render_load), ("queries", render_queries)):
        if found.shapes(protocol):
            parts += section(found)
    troubles = [f"- {r.shape}, {r.protocol}, {r.schemes}: {r.status}{_detail(r)}" for r in all_ran if r.status != "ok"]
    wrong = [f"- {line}" for line in disagreements(all_ran)]
    parts += ["## Given up", "\n".join(troubles)] if troubles else []
    parts += ["## WRONG", "\n".join(wrong)] if wrong else []
    return parts


def _detail(ran: Ran) -> str:
    """What could not be done; of what failed, the last line that it told."""
    if ran.status == "failed":
        return "".join(f" ({line.strip()})" for line in ran.detail.splitlines()[-1:])
    steps = [" ".join(filter(None, [step.what, step.name])) for step in ran.steps if not step.ok]
    return "".join(f", {step}" for step in dict.fromkeys(steps))


# --- what is wanted ----------------------------------------------------------------------------------------


def render_wanted(found: Found) -> str:
    words = {True: "yes", False: "NO", None: "–"}
    rows = [["what", "wanted", "reached", ""]]
    rows += [[line.what, line.wanted, line.reached, words[line.is_reached]] for line in wanted(found)]
    return "\n\n".join(["## Wanted and reached", table(rows)])


def wanted(found: Found) -> Iterator[Line]:
    """Everything that is wanted, measured or not."""
    yield from _wanted_loads(found)
    for shape in (SMALL, LARGE):
        times = [protocol_seconds(found, shape, schemes) for schemes in (PLAIN, AUTO)]
        yield _at_least(f"{shape}, load and three insertions: times faster than plain tables", FASTER, *times)
    memory = [protocol_memory(found, LARGE, schemes) for schemes in (PLAIN, AUTO)]
    for what, plain, ours in zip(("stored", "peak"), *(m or (None, None) for m in memory), strict=True):
        yield _at_least(f"{LARGE}, the same: times less memory, {what}", LESS_MEMORY, plain, ours)
    yield from _wanted_queries(found)
    graphs = [shape for shape in found.shapes("load") if shape.startswith(GRAPHS)]
    exact = [shape for shape in graphs if found.steps(shape, "load", AUTO)]
    what, reached = "real graphs: exact", f"{len(exact)} of {len(graphs)}"
    yield Line(what, "all", reached if graphs else "–", len(exact) == len(graphs) if graphs else None)


def _wanted_loads(found: Found) -> Iterator[Line]:
    made = found.materialised(W1, AUTO)
    yield from _weights(W1, W1_MB, made[1] if made else None)
    yield _at_most(f"{W1}: CPU s of the whole call", W1_SECONDS, made[0].cpu if made else None)
    made = found.materialised(WIDE, AUTO)
    yield from _weights(WIDE, WIDE_MB, made[1] if made else None)
    ran = found.ran(ROADS, "load", AUTO)
    made = found.materialised(ROADS, AUTO)
    pairs = made[0].facts - made[0].more["explicit"] if made else None
    is_more = None if pairs is None else pairs > ROAD_PAIRS
    yield Line(f"{ROADS}: pairs", f"> {ROAD_PAIRS:,}", number(pairs), is_more)
    yield _at_most(f"{ROADS}: MB of the process", ROAD_MB, ran.peak_mb if ran and made else None)


def _wanted_queries(found: Found) -> Iterator[Line]:
    for shape in [name for name, shape in SHAPES.items() if "queries" in shape.protocols and shape.is_wanted]:
        for relation in SHAPES[shape].asked:
            for kind in (*SMALL_KINDS, *ALL_KINDS):
                times = [query_seconds(found, shape, schemes, f"{relation}, {kind}") for schemes in (AUTO, PLAIN)]
                most = MOST_ALL if kind in ALL_KINDS else MOST_SMALL
                ours, plain = times
                ratio = ours / plain if ours is not None and plain else None
                yield _at_most(f"{shape}: {relation}, {kind}: times what it takes on plain tables", most, ratio)


def _at_most(what: str, most: float, reached: float | None) -> Line:
    told = "–" if reached is None else factor(reached)
    return Line(what, f"≤ {most:g}", told, None if reached is None else reached <= most)


def _at_least(what: str, least: float, plain: float | None, ours: float | None) -> Line:
    if plain is None or not ours:
        return Line(what, f"≥ {least:g}", "–", None)
    return Line(what, f"≥ {least:g}", factor(plain / ours), plain / ours >= least)


def _weights(shape: str, most: float, step: Step | None) -> Iterator[Line]:
    """MB of the relation that is weighed: of intervals and graph, and with the rows of its inputs."""
    told = step.more["schemes"].get(SHAPES[shape].weighed) if step else None
    for what, key in (("intervals and graph", "scheme_bytes"), ("with the rows of its inputs", "bytes")):
        reached = told[key] / MB if told else None
        yield _at_most(f"{shape}: MB of the closure, {what}", most, reached)


def _protocol_steps(found: Found, shape: str, schemes: str) -> list[Step] | None:
    """Loading and the insertions, if all were done."""
    made = found.steps(shape, "updates", schemes)
    inserted = found.steps(shape, "updates", schemes, "insert")
    ran = found.ran(shape, "updates", schemes)
    begun = [step for step in ran.steps if step.what in ("materialise", "insert")] if ran else []
    return [*made, *inserted] if made and inserted and len(begun) == 1 + len(inserted) else None


def protocol_seconds(found: Found, shape: str, schemes: str) -> float | None:
    """CPU of loading and all insertions."""
    steps = _protocol_steps(found, shape, schemes)
    return sum(step.cpu for step in steps) if steps else None


def protocol_memory(found: Found, shape: str, schemes: str) -> tuple[float, float] | None:
    """The most that was stored, and the peak of the growth of the process."""
    steps = _protocol_steps(found, shape, schemes)
    return (max(s.stored for s in steps), max(s.peak for s in steps)) if steps else None


def query_seconds(found: Found, shape: str, schemes: str, name: str) -> float | None:
    """CPU of a query, the least of several runs."""
    return min((step.cpu for step in found.steps(shape, "queries", schemes, "query", name)), default=None)


# --- tables ------------------------------------------------------------------------------------------------

MEMORY = ("stored MB", "grown MB", "peak MB")


def _memory(step: Step | None) -> list[str]:
    return [f"{value / MB:,.1f}" for value in (step.stored, step.grown, step.peak)] if step else ["–"] * 3


def _ratio(plain: float | None, ours: float | None) -> str:
    return factor(plain / ours) if plain is not None and ours else "–"


def _cpu(step: Step | None) -> str:
    return plain_seconds(step.cpu) if step else "–"


def render_updates(found: Found) -> list[str]:
    """Table 1."""
    rows = [["shape", "step", "facts", "schemes, CPU s", "plain, CPU s", "times"]]
    rows[0] += [*(f"schemes, {word}" for word in MEMORY), *(f"plain, {word}" for word in MEMORY), "times less stored"]
    for shape in found.shapes("updates"):
        own = {
            schemes: {step.key: step for step in ran.steps if step.ok}
            for schemes in (AUTO, PLAIN)
            if (ran := found.ran(shape, "updates", schemes))
        }
        keys = list(dict.fromkeys(key for steps in own.values() for key in steps))
        for key in keys:
            ours, plain = (own.get(schemes, {}).get(key) for schemes in (AUTO, PLAIN))
            what, _, place = key
            line = [shape, what if what == "materialise" else f"{what} {place + 1}"]
            line += [number((ours or plain).facts), _cpu(ours), _cpu(plain)]  # type: ignore[union-attr]
            line.append(_ratio(plain.cpu if plain else None, ours.cpu if ours else None))
            less = _ratio(plain.stored if plain else None, ours.stored if ours else None)
            rows.append([*line, *_memory(ours), *_memory(plain), less])
    return [
        "## Loading and inserting (table 1)",
        "All facts but some are materialised; the others are inserted in three parts, and deleted again, the last first. CPU of whole calls. Stored: what the "
        "engine says of all relations; grown: how much larger the process is than before it materialised; peak: how much it was at most in this step.",
        table(rows),
    ]


def render_load(found: Found) -> list[str]:
    """Table 2."""
    rows = [["shape", "explicit", "facts", "schemes"]]
    rows[0] += ["schemes, CPU s", "reason", "plain, CPU s", "reason", "times"]
    rows[0] += [*(f"schemes, {word}" for word in MEMORY), *(f"plain, {word}" for word in MEMORY), "times less stored"]
    for shape in found.shapes("load"):
        made = {schemes: found.materialised(shape, schemes) for schemes in (AUTO, PLAIN)}
        known = made[AUTO] or made[PLAIN]
        if known is None:
            continue
        line = [shape, number(known[0].more["explicit"]), number(known[0].facts), _schemes(known[1])]
        for pair in made.values():
            line += [plain_seconds(pair[0].cpu), plain_seconds(pair[0].reason_cpu)] if pair else ["–", "–"]
        ours, plain = made[AUTO], made[PLAIN]
        line.append(_ratio(plain[0].cpu if plain else None, ours[0].cpu if ours else None))
        less = _ratio(plain[1].stored if plain else None, ours[1].stored if ours else None)
        rows.append([*line, *_memory(ours and ours[1]), *_memory(plain and plain[1]), less])
    return [
        "## Materialising (table 2)",
        "By modules, with schemes and on plain tables: CPU of the run with the least, memory of the first.",
        table(rows),
    ]


def _schemes(step: Step) -> str:
    """How many relations are stored how."""
    names = [one["scheme"] for one in step.more["schemes"].values()]
    return ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names)) or "–"


def render_queries(found: Found) -> list[str]:
    """Table 3."""
    rows = [["shape", "query", "rows", "schemes, CPU s", "plain, CPU s", "schemes / plain"]]
    for shape in found.shapes("queries"):
        names = [
            step.name
            for ran in found.all_ran
            if (ran.shape, ran.protocol) == (shape, "queries")
            for step in ran.steps
            if step.what == "query"
        ]
        for name in dict.fromkeys(names):
            ours, plain = (query_seconds(found, shape, schemes, name) for schemes in (AUTO, PLAIN))
            steps = [s for schemes in (AUTO, PLAIN) for s in found.steps(shape, "queries", schemes, "query", name)]
            cells = [f"{s:.6f}" if s is not None and s < 0.1 else plain_seconds(s) if s else "–" for s in (ours, plain)]
            rows.append([shape, name, number(steps[0].facts if steps else None), *cells, _ratio(ours, plain)])
    return [
        "## Queries (table 3)",
        "CPU of one query, the average over many constants; of all pairs that are looked for by `in`; of one enumeration. Of each the least of several runs. Rows are those of all answers together. "
        "Enumerations are read as Arrow batches.",
        table(rows),
    ]
