"""The picture: panels with logarithmic axes, as SVG. It has no background; its colours show on light and on dark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from bench.streams.rendering import rates_of, sizes_of
from bench.streams.running import Ran
from bench.streams.steps import ALONE, TOGETHER

WIDTH, HEIGHT = 330, 300  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 34, 78
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #444 }
  .title { font-weight: 600; font-size: 13px }
  .axis { stroke: #777; fill: none }
  .grid { stroke: #8884; fill: none }
  .a { stroke: #2f7ed8; fill: #2f7ed8 } .b { stroke: #e06c1f; fill: #e06c1f } .c { stroke: #2a9d5c; fill: #2a9d5c } .d { stroke: #b0489f; fill: #b0489f }
  polyline { fill: none !important; stroke-width: 2 }
  polyline.dashed, path.dashed { stroke-dasharray: 5 4 }
  @media (prefers-color-scheme: dark) { text { fill: #ccc } .axis { stroke: #999 } }
"""


@dataclass(frozen=True)
class Series:
    """A line: its name, and its points."""

    name: str
    points: Sequence[tuple[float, float]]
    style: str


@dataclass(frozen=True)
class Panel:
    """Lines over the same axes, both logarithmic."""

    title: str
    across: str
    up: str
    lines: Sequence[Series]


class Scale:
    """From values to places: whole powers of ten around all values."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        self._low = math.floor(math.log10(min(values)) + 1e-9)
        self._high = max(math.ceil(math.log10(max(values)) - 1e-9), self._low + 1)
        self._begin, self._end = begin, end

    def __call__(self, value: float) -> float:
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return round(self._begin + share * (self._end - self._begin), 1)

    @property
    def marks(self) -> list[float]:
        """The powers of ten."""
        return [10.0**power for power in range(self._low, self._high + 1)]


def shown(value: float) -> str:
    """A power of ten, as short as can be."""
    for factor, letter in ((1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:g}{letter}"
    return f"{value:g}"


def _panel(panel: Panel, left: float) -> Iterator[str]:
    points = [point for line in panel.lines for point in line.points]
    right, bottom = left + WIDTH - RIGHT, HEIGHT - BOTTOM
    left += LEFT
    x = Scale([point[0] for point in points], left, right)
    y = Scale([point[1] for point in points], bottom, TOP)
    middle = (left + right) / 2
    yield f'<text class="title" x="{middle}" y="18" text-anchor="middle">{escape(panel.title)}</text>'
    for mark in x.marks:
        yield f'<path class="grid" d="M{x(mark)} {bottom}V{TOP}"/>'
        yield f'<text x="{x(mark)}" y="{bottom + 16}" text-anchor="middle">{shown(mark)}</text>'
    for mark in y.marks:
        yield f'<path class="grid" d="M{left} {y(mark)}H{right}"/>'
        yield f'<text x="{left - 6}" y="{y(mark) + 4}" text-anchor="end">{shown(mark)}</text>'
    yield f'<path class="axis" d="M{left} {TOP}V{bottom}H{right}"/>'
    yield f'<text x="{middle}" y="{bottom + 34}" text-anchor="middle">{escape(panel.across)}</text>'
    turned = left - 46
    yield f'<text x="{turned}" y="{(TOP + bottom) / 2}" text-anchor="middle" transform="rotate(-90 {turned} {(TOP + bottom) / 2})">{escape(panel.up)}</text>'
    for place, line in enumerate(panel.lines):
        joined = " ".join(f"{x(a)},{y(b)}" for a, b in line.points)
        yield f'<polyline class="{line.style}" points="{joined}"/>'
        for a, b in line.points:
            yield f'<circle class="{line.style}" cx="{x(a)}" cy="{y(b)}" r="2.5"/>'
        row, column = divmod(place, 2)
        at, below = left + column * (right - left) / 2, bottom + 52 + 16 * row
        yield f'<path class="{line.style}" stroke-width="2" d="M{at} {below - 4}h22"/>'
        yield f'<text x="{at + 27}" y="{below}">{escape(line.name)}</text>'


def drawn(panels: Sequence[Panel]) -> str:
    """Panels side by side."""
    width = WIDTH * len(panels)
    parts = [line for place, panel in enumerate(panels) for line in _panel(panel, place * WIDTH)]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" role="img">'
    title = "<title>Latency and throughput of update streams</title>"
    return "\n".join([head, title, f"<style>{STYLE}</style>", *parts, "</svg>"]) + "\n"


def panels(ran: Ran) -> list[Panel]:
    """What is shown of the section `arrival`."""
    sizes = sizes_of(ran)
    styles = {("p50", ALONE): "a", ("p99", ALONE): "b dashed", ("p50", TOGETHER): "c", ("p99", TOGETHER): "d dashed"}
    return [
        Panel(
            "Latency by size",
            "facts in an update",
            "ms",
            [
                Series(p, [(step.number, 1000 * step.more[p]) for step in sizes], styles[p, ALONE])
                for p in ("p50", "p99")
            ],
        ),
        Panel(
            "Throughput by size",
            "facts in an update",
            "facts per second",
            [Series("facts given", [(step.number, step.more["facts_per_second"]) for step in sizes], "a")],
        ),
        Panel(
            "Latency by arrival rate (100 facts each)",
            "updates per second",
            "ms",
            [
                Series(f"{p}, {how}", [(s.more["rate"], 1000 * s.more[p]) for s in rates_of(ran, how)], styles[p, how])
                for how in (ALONE, TOGETHER)
                for p in ("p50", "p99")
            ],
        ),
    ]
