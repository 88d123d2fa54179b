"""Draws a chart as SVG, for light and dark screens, readable on a narrow one."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

WIDTH = 560.0
_LEFT, _RIGHT, _TOP, _PLOT = 80.0, 38.0, 56.0, 270.0
_LEGEND_LINE = 24.0
# The colours of the other pictures: ours, grey, orange, and two more.
_STYLE = """<style>
.card{fill:#ffffff;stroke:#c9d1d9}
text{font:15px system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif;fill:#1f2933}
.bold{font-weight:600}.soft{fill:#52606d}.grid{stroke:#e3e8ed}.axis{stroke:#5b7083;fill:none}
.limit{stroke:#b4532a;stroke-dasharray:5 4}
.c0{--c:#12806f}.c1{--c:#b4532a}.c2{--c:#5b7083}.c3{--c:#6f4fb3}.c4{--c:#9a6b00}
.dot{fill:var(--c);stroke:#ffffff;stroke-width:1.5}.hollow{fill:none;stroke:var(--c);stroke-width:2.2}
.line{fill:none;stroke:var(--c);stroke-width:2}
@media (prefers-color-scheme: dark){
.card{fill:#171c22;stroke:#3a4450}text{fill:#e6edf3}.soft{fill:#aab6c2}.grid{stroke:#2a323b}
.axis{stroke:#8fa3b5}.limit{stroke:#f0936a}.dot{stroke:#171c22}
.c0{--c:#4fc3ae}.c1{--c:#f0936a}.c2{--c:#8fa3b5}.c3{--c:#b79df0}.c4{--c:#e0b04a}
}
</style>"""


@dataclass(frozen=True)
class Series:
    """Points of one kind.

    Attributes:
        name: its text in the legend.
        points: (x, y).
        colour: 0 to 4.
        line: whether a line joins the points.
        hollow: whether a point is a ring.
        labels: a text beside each point, or none.
    """

    name: str
    points: Sequence[tuple[float, float]]
    colour: int
    line: bool = False
    hollow: bool = False
    labels: Sequence[str] = ()


@dataclass(frozen=True)
class Axis:
    """An axis.

    Attributes:
        title: what it shows, with the unit.
        ticks: the values that are named; the first and the last are its ends.
        show: the text of a value.
        limit: a value with a dashed line, and its text.
        doubles: whether twice a value is always as far from it.
    """

    title: str
    ticks: Sequence[float]
    show: Callable[[float], str] = field(default=lambda value: f"{value:,g}")
    limit: tuple[float, str] | None = None
    doubles: bool = False

    def place(self, value: float) -> float:
        """0 at the start of the axis, 1 at its end."""
        if self.doubles:
            return math.log(value / self.ticks[0]) / math.log(self.ticks[-1] / self.ticks[0])
        return (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])


def draw(title: str, across: Axis, up: Axis, series: Sequence[Series]) -> str:
    """The chart as the text of an SVG file."""
    names: list[Series] = [one for one in series if one.name]
    floor = _TOP + _PLOT
    height = floor + 62 + _LEGEND_LINE * len(names)
    end = WIDTH - _RIGHT

    def at(x: float, y: float) -> tuple[float, float]:
        return _LEFT + across.place(x) * (end - _LEFT), floor - up.place(y) * _PLOT

    parts = [f'<rect class="card" x="1" y="1" width="{WIDTH - 2:g}" height="{height - 2:g}" rx="10"/>']
    parts.append(_text(20, 30, title, "bold"))
    for value in up.ticks:
        y = at(across.ticks[0], value)[1]
        parts.append(f'<path class="grid" d="M{_LEFT:g} {y:.1f}H{end:g}"/>')
        parts.append(_text(_LEFT - 8, y + 5, up.show(value), "soft", "end"))
    for value in across.ticks:
        parts.append(_text(at(value, up.ticks[0])[0], floor + 20, across.show(value), "soft", "middle"))
    parts.append(f'<path class="axis" d="M{_LEFT:g} {_TOP:g}V{floor:g}H{end:g}"/>')
    parts.append(_text(end, floor + 42, across.title, "soft", "end"))
    parts.append(_text(_LEFT + 8, _TOP - 4, up.title, "soft"))
    if across.limit:
        x = at(across.limit[0], up.ticks[0])[0]
        parts.append(f'<path class="limit" d="M{x:.1f} {_TOP:g}V{floor:g}"/>')
        parts.append(_text(x - 6, _TOP + 14, across.limit[1], "soft", "end"))
    if up.limit:
        y = at(across.ticks[0], up.limit[0])[1]
        parts.append(f'<path class="limit" d="M{_LEFT:g} {y:.1f}H{end:g}"/>')
        parts.append(_text(end - 4, y - 6, up.limit[1], "soft", "end"))
    for one in series:
        parts.append(_series(one, [at(x, y) for x, y in one.points]))
    for number, one in enumerate(names):
        y = floor + 66 + number * _LEGEND_LINE
        parts.append(_series(Series("", [(28, y - 5)], one.colour, hollow=one.hollow), [(28, y - 5)]))
        if one.line:
            parts.append(f'<path class="line c{one.colour}" d="M16 {y - 5:g}H40"/>')
        parts.append(_text(50, y, one.name))
    return _file(title, height, parts)


def draw_pairs(title: str, across: Axis, rows: Sequence[tuple[str, float, float]], ends: tuple[str, str]) -> str:
    """Two points in each row, joined: the text of an SVG file."""
    left, step = 190.0, 30.0
    floor = 52 + step * len(rows)
    height, end = floor + 86, WIDTH - 34
    parts = [f'<rect class="card" x="1" y="1" width="{WIDTH - 2:g}" height="{height - 2:g}" rx="10"/>']
    parts.append(_text(20, 30, title, "bold"))
    for value in across.ticks:
        x = left + across.place(value) * (end - left)
        parts.append(f'<path class="grid" d="M{x:.1f} 44V{floor:g}"/>')
        parts.append(_text(x, floor + 20, across.show(value), "soft", "middle"))
    parts.append(_text(end, floor + 42, across.title, "soft", "end"))
    for number, (name, first, second) in enumerate(rows):
        y = 64 + number * step
        xs = [left + across.place(value) * (end - left) for value in (first, second)]
        parts.append(_text(left - 14, y + 5, name, "", "end"))
        parts.append(f'<path class="line c2" d="M{xs[0]:.1f} {y:g}H{xs[1]:.1f}"/>')
        parts.append(f'<circle class="hollow c2" cx="{xs[0]:.1f}" cy="{y:g}" r="5"/>')
        parts.append(f'<circle class="dot c0" cx="{xs[1]:.1f}" cy="{y:g}" r="5.5"/>')
    y = floor + 66
    parts.append(f'<circle class="hollow c2" cx="28" cy="{y - 5:g}" r="5"/>{_text(42, y, ends[0])}')
    parts.append(f'<circle class="dot c0" cx="248" cy="{y - 5:g}" r="5.5"/>{_text(262, y, ends[1])}')
    return _file(title, height, parts)


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round values from at or below `low` to at or above `high`, about as many as wanted."""
    raw = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= raw * 0.999)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(index * step, 10) for index in range(first, last + 1)]


def _series(one: Series, places: Sequence[tuple[float, float]]) -> str:
    parts = []
    if one.line:
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts.append(f'<path class="line c{one.colour}" d="M{path}"/>')
    kind, radius = ("hollow", 5) if one.hollow else ("dot", 5.5)
    parts += [f'<circle class="{kind} c{one.colour}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>' for x, y in places]
    for label, (x, y) in zip(one.labels, places, strict=False):
        parts.append(_text(x + 9, y + 5, label, "soft"))
    return "".join(parts)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    shown = f' class="{kind}"' if kind else ""
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text{shown}{at} x="{x:.1f}" y="{y:.1f}">{html.escape(text)}</text>'


def _file(title: str, height: float, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {WIDTH:g} {height:g}" width="{WIDTH:g}" height="{height:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="t">'
    return "\n".join([head, f'<title id="t">{html.escape(title)}</title>', _STYLE, *parts, "</svg>", ""])
