"""The results as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bench.modular.rendering import number
from bench.report import table
from bench.storage.steps import Step
from bench.streams import paper, published
from bench.streams.data import UPDATES
from bench.streams.published import PHASES, Published
from bench.streams.running import Ran, mistakes
from bench.streams.steps import ALONE, FOLLOWED, MEMORY, OFF, ON, REFERENCE, STATE, TOGETHER, Case

PAPER: Mapping[str, tuple[Mapping[int, Published], str]] = {
    "trans": (published.TRANS, "table 1"),
    "seq": (published.SEQ, "table 2"),
    "map": (published.MAP, "table 3"),
}
UNIT = {"trans": "size", "seq": "size", "map": "updates"}


def render(all_ran: Sequence[Ran]) -> list[str]:
    """All tables; nothing but what is wrong, if something is."""
    wrong = mistakes(all_ran)
    if wrong:
        return ["## WRONG", "\n".join(f"- {line}" for line in wrong)]
    parts: list[str] = []
    sections: list[tuple[str, Callable[[str, Sequence[Ran]], Iterator[str]]]] = [
        *((section, render_counts) for section in PAPER),
        ("shares", render_shares),
        ("latency", render_latency),
        ("structured", render_structured),
        ("arrival", render_arrival),
    ]
    for section, rendered in sections:
        if own := [ran for ran in all_ran if ran.section == section]:
            parts += rendered(section, own)
    troubles = [
        f"- {r.section} {r.subject}, {r.algorithm}: {r.status}{_detail(r)}" for r in all_ran if r.status != "ok"
    ]
    return parts + (["## Given up", "\n".join(troubles)] if troubles else [])


def _detail(ran: Ran) -> str:
    if ran.status == "failed":
        return "".join(f" ({line.strip()})" for line in ran.detail.splitlines()[-1:])
    return "".join(f", {step.name}" for step in ran.steps if not step.ok)


def _less(before: float, after: float) -> str:
    """By how much something became less, in per cent."""
    return f"{100 * (1 - after / before):.1f}" if before else "–"


# --- trans, seq, map ---------------------------------------------------------------------------------------


def totals(step: Step) -> dict[str, int]:
    """Applications of all updates, by phase."""
    return {phase: sum(one[phase] for one in step.more["applications"]) for phase in PHASES}


def is_whole(ran: Ran) -> bool:
    """Whether the stream is as long as the paper's."""
    updates = int(ran.subject) if ran.section == "map" else UPDATES
    return all(len(step.more["applications"]) == updates for step in ran.first.values())


def render_counts(section: str, all_ran: Sequence[Ran]) -> Iterator[str]:
    known, where = PAPER[section]
    yield f"## {section}"
    sources = dict.fromkeys(step.more["source"] for ran in all_ran for step in ran.named(OFF))
    roads = " Its tracks are others than the paper's: only their numbers of updates, and about how many facts come and go, are the same."
    yield (
        f"Rule applications of all updates, without marking → with it. *Paper*: {where}. *Algorithm 1*: `paper.py` on our streams, as printed and in the order "
        "that never costs more; counted as the paper counts, a deletion only if its head is not being checked yet. *evermat*: rule instances that are enumerated, by phase; an "
        f"instance counts wherever it is met. Streams: {', '.join(sources)}." + (roads if section == "map" else "")
    )
    yield table([[UNIT[section], "by", *PHASES, "marks ex.", "im.", "all", "less, %"], *count_rows(known, all_ran)])
    yield "CPU seconds of all updates, the least of several runs in turns. The last column: which share of what an update deletes the update before has inserted."
    head = [
        UNIT[section],
        "algorithm",
        "paper, off",
        "on",
        "less, %",
        "evermat, off",
        "on",
        "less, %",
        "inserted before, %",
    ]
    yield table([head, *second_rows(known, all_ran)])
    reasons = dict.fromkeys(reason for ran in all_ran for step in ran.named(ON) for reason in step.more["reasons"])
    if reasons:
        yield "Updates without marks: " + "; ".join(reasons) + "."


def count_rows(known: Mapping[int, Published], all_ran: Sequence[Ran]) -> Iterator[list[str]]:
    told: set[str] = set()
    for ran in all_ran:
        if ran.subject not in told:
            told.add(ran.subject)
            one = known.get(int(ran.subject))
            if one and is_whole(ran):
                yield _count_row(
                    ran.subject, "paper", one.old, one.new, {"explicit": one.explicit, "implicit": one.implicit}
                )
            first = ran.first
            for way in (paper.PRINTED, paper.ORDERED):
                if {REFERENCE + paper.OFF, REFERENCE + way} <= first.keys():
                    off, on = first[REFERENCE + paper.OFF], first[REFERENCE + way]
                    yield _count_row(ran.subject, f"Algorithm 1, {way}", totals(off), totals(on), on.more["marks"])
        if {OFF, ON} <= ran.first.keys():
            off, on = ran.first[OFF], ran.first[ON]
            yield _count_row(ran.subject, f"evermat, {ran.algorithm}", totals(off), totals(on), on.more["marks"])


def _count_row(
    subject: str, who: str, off: Mapping[str, int], on: Mapping[str, int], marks: Mapping[str, int]
) -> list[str]:
    before, after = sum(off.values()), sum(on.values())
    cells = [_pair(off[phase], on[phase]) for phase in PHASES]
    return [
        subject,
        who,
        *cells,
        number(marks["explicit"]),
        number(marks["implicit"]),
        _pair(before, after),
        _less(before, after),
    ]


def _pair(off: int, on: int) -> str:
    return f"{off:,}" if off == on else f"{off:,} → {on:,}"


def second_rows(known: Mapping[int, Published], all_ran: Sequence[Ran]) -> Iterator[list[str]]:
    for ran in all_ran:
        one = known.get(int(ran.subject)) if is_whole(ran) else None
        line = [ran.subject, ran.algorithm]
        line += (
            [f"{one.seconds_old:.2f}", f"{one.seconds_new:.2f}", _less(one.seconds_old, one.seconds_new)]
            if one
            else ["–"] * 3
        )
        if least := least_cpu(ran):
            off, on = least
            line += [f"{off:.4f}", f"{on:.4f}", _less(off, on)]
            yield [*line, f"{100 * ran.first[OFF].more['share']:.0f}"]


def least_cpu(ran: Ran) -> tuple[float, float] | None:
    """Seconds without marking, and with it. The first run of each does not count: it makes what is made on first use."""
    off, on = ([step.cpu for step in ran.named(name) if step.number > 0] for name in (OFF, ON))
    return (min(off), min(on)) if off and on else None


# --- shares ------------------------------------------------------------------------------------------------


def render_shares(section: str, all_ran: Sequence[Ran]) -> Iterator[str]:
    yield "## Facts that go soon"
    yield (
        "Updates that insert as many facts as they delete and are all there from the beginning, without marking and with it. *Share*: of what an update deletes, so much the update before has "
        "inserted; the rest is older. CPU milliseconds per update, the least of several runs in turns; rule instances of all updates, without marking → with it."
    )
    for program in dict.fromkeys(Case.of(ran.subject).program for ran in all_ran):
        yield f"### {program}"
        rows = [["size", "share, %", "algorithm", "off, ms", "on, ms", "on/off", "rule instances"]]
        for ran in all_ran:
            case, least = Case.of(ran.subject), least_cpu(ran)
            if case.program == program and least:
                off, on = least
                updates = len(ran.first[OFF].more["applications"])
                instances = [sum(totals(ran.first[name]).values()) for name in (OFF, ON)]
                milliseconds = [f"{1000 * cpu / updates:,.2f}" for cpu in least]
                line = [number(case.size), f"{100 * case.share:.0f}", ran.algorithm, *milliseconds]
                rows.append([*line, f"{on / off:.2f}", _pair(*instances)])
        yield table(rows)


# --- latency, structured, arrival --------------------------------------------------------------------------

LATENCY = ("updates", "updates/s", "facts/s", "p50, ms", "p99, ms", "most, ms")


def _latency(more: Mapping[str, Any]) -> list[str]:
    rates = [f"{more['updates_per_second']:,.1f}", f"{more['facts_per_second']:,.0f}"]
    return [number(more["updates"]), *rates, *(f"{1000 * more[key]:,.2f}" for key in ("p50", "p99", "most"))]


def render_latency(section: str, all_ran: Sequence[Ran]) -> Iterator[str]:
    yield "## Latency"
    yield (
        "Updates of 100 facts, half of them inserted and half deleted, given as rows of Python, that follow one another; wall time of each. *state*: each is a durable version of a state directory when it is over. "
        "*flat*: joins and negation; *nested*: recursion, too. Facts: all of the materialisation."
    )
    rows = [["policy", "where", "facts", *LATENCY, "CPU, ms per update"]]
    for ran in all_ran:
        for place in (MEMORY, STATE):
            for step in ran.named(place):
                cpu = f"{1000 * step.cpu / step.more['updates']:,.2f}"
                rows.append([ran.subject, place, number(step.facts), *_latency(step.more), cpu])
    yield table(rows)


def render_structured(section: str, all_ran: Sequence[Ran]) -> Iterator[str]:
    yield "## Structured Streaming"
    yield (
        "The same updates as files of Parquet that Spark finds in a folder, one in a batch. *rows*: `follow_frame` of a query that reads them; *files*: `follow_files`, where Spark only says which "
        "are new. Wall time of a batch as Spark tells it, and how much of it is ours: fetching rows or reading the file, and the update."
    )
    rows = [["policy", "what", "where", "facts", *LATENCY, "ours, p50 ms"]]
    for ran in all_ran:
        for kind in FOLLOWED:
            for place in (MEMORY, STATE):
                for step in ran.named(f"{kind}, {place}"):
                    ours = f"{1000 * step.more['update_p50']:,.0f}"
                    rows.append([ran.subject, kind, place, number(step.facts), *_latency(step.more), ours])
    yield table(rows)


def sizes_of(ran: Ran) -> list[Step]:
    """Steps of updates that follow one another, by their size."""
    return sorted(
        (step for step in ran.steps if step.ok and step.name.startswith("size ")), key=lambda step: step.number
    )


def rates_of(ran: Ran, how: str) -> list[Step]:
    """Steps of updates that arrive at a rate."""
    own = [step for step in ran.steps if step.ok and step.name.startswith(how)]
    return sorted(own, key=lambda step: step.more["rate"])


def render_arrival(section: str, all_ran: Sequence[Ran]) -> Iterator[str]:
    yield "## Size and rate of updates"
    for ran in all_ran:
        yield f"Policy *{ran.subject}*, updates of a size that follow one another, half of the facts inserted and half deleted."
        yield table([["facts", *LATENCY], *([number(step.number), *_latency(step.more)] for step in sizes_of(ran))])
        yield (
            "Updates of 100 facts that arrive at a rate: from when an update is due until it is done. *coalesced*: those that are there become one. "
            "Load: the rate, by that at which they can follow one another."
        )
        rows = [["load", "how", "rate/s", "changes", *LATENCY]]
        for how in (ALONE, TOGETHER):
            for step in rates_of(ran, how):
                load = step.name.rpartition(" ")[2]
                rows.append(
                    [load, how, f"{step.more['rate']:,.1f}", number(step.more["changes"]), *_latency(step.more)]
                )
        yield table(rows)
