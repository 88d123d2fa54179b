"""LUTs of our own Verilog against the cycles that a sample may take, for each way to lay layers out.

    python tests/benchmarks/bench_layouts.py [DESIGN.json...] [--image28 0.25] [--plot FOLDER] [--synthesize 1,16]

A row is an interval: the fewest cycles of the network times 1, 2, 4, ... 256. The ways: `parallel` makes every product
at once (a Dense layer behind an image is folded), `bit by bit` lets a layer add bit by bit where there is time,
`scheduled` gives every layer the fewest multipliers that keep the interval, `paired` the same with two values in each.
Figures are the price of open synthesis for xc7; `--synthesize` counts the rows with these factors by yosys.
`--image28` adds the 28 x 28 network of `bench_rtl.py` with that share of its second convolution's kernels. `--plot`
draws a file for each network. Without a design it takes a small network, which shows that it runs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from math import log2
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import fpgaprune as fp  # noqa: E402
from fpgaprune.design import VerilogLayout  # noqa: E402
from fpgaprune.errors import RtlError  # noqa: E402
from fpgaprune.estimate.verilog.candidates import Candidates  # noqa: E402
from fpgaprune.estimate.verilog.fabrics import find_fabric  # noqa: E402

FAMILY = "xc7"
FACTORS = tuple(1 << power for power in range(9))
WAYS = ("parallel", "bit by bit", "scheduled", "paired")


@dataclass(frozen=True)
class Point:
    """One layout: cycles between two samples, and what it takes."""

    cycles: int
    lut: int
    dsp: int
    bram18: int


def layouts(design: fp.Design, interval: int) -> dict[str, VerilogLayout | None]:
    """The layout of each way that keeps `interval`; None where a layer cannot."""
    ways = Candidates(design, find_fabric(FAMILY), VerilogLayout())
    found: dict[str, VerilogLayout | None] = {
        "parallel": VerilogLayout(serial=False, interval=interval),
        "bit by bit": VerilogLayout(interval=interval),
    }
    for name in ("scheduled", "paired"):
        paired = [layer.name for layer in ways.layers if name == "paired" and ways.may_pair(layer)]
        wanted = {layer.name: ways.fewest(layer, interval, layer.name in paired) for layer in ways.layers}
        kept = {layer: number for layer, number in wanted.items() if number is not None}
        whole = len(kept) == len(wanted) and (paired or name == "scheduled")
        found[name] = VerilogLayout(multipliers=kept, paired=paired, interval=interval) if whole else None
    return found


def priced(design: fp.Design, layout: VerilogLayout) -> Point:
    """The price of a layout."""
    price = fp.verilog_price(design, FAMILY, layout=layout)
    lut, dsp, bram18 = (figure.value if (figure := price.resources[name]) else 0 for name in ("lut", "dsp", "bram18"))
    return Point(price.interval_cycles, round(lut), round(dsp), round(bram18))


def synthesised(design: fp.Design, layout: VerilogLayout) -> int | None:
    """The LUTs that yosys counts."""
    with tempfile.TemporaryDirectory() as folder:
        project = replace(fp.to_verilog(design, folder, layout=layout), layers=())
        cells = project.synthesize(FAMILY, workers=1, timeout_s=3600).whole.cells
    return None if cells is None else cells.lut


def measure(design: fp.Design, counted: tuple[int, ...]) -> Mapping[str, list[Point]]:
    """Prints a row for each interval; the points of each way."""
    first = fp.verilog_price(design, FAMILY).interval_cycles
    points: dict[str, list[Point]] = {way: [] for way in WAYS}
    print(f"\n{design.name}: LUT, DSP, BRAM18 by price; LUT by yosys\n| cycles | {' | '.join(WAYS)} |", flush=True)
    for factor in FACTORS:
        cells = []
        for way, layout in layouts(design, first * factor).items():
            if layout is None:
                cells.append("–")
                continue
            try:
                point = priced(design, layout)
            except RtlError as error:
                cells.append(str(error))
                continue
            points[way].append(replace(point, cycles=first * factor))
            text = f"{point.lut:,}, {point.dsp}, {point.bram18}"
            if factor in counted:
                text += f"; {synthesised(design, layout):,}"
            cells.append(text)
        print(f"| {first * factor:,} | {' | '.join(cells)} |", flush=True)
    return points


# Left, top, width and height of the axes.
_LEFT, _TOP, _WIDE, _HIGH = 70.0, 54.0, 560.0, 250.0
_STYLE = """
.card{fill:#ffffff;stroke:#c9d1d9}.axis{stroke:#8a97a3;stroke-width:1;fill:none}.grid{stroke:#e3e8ec;stroke-width:1}
text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif;fill:#1f2933}.soft{fill:#52606d}
.w0{--c:#5b7083}.w1{--c:#b4532a}.w2{--c:#12806f}.w3{--c:#6b4fbb}
polyline{fill:none;stroke:var(--c);stroke-width:2}circle{fill:var(--c)}text.name{fill:var(--c);font-weight:600}
@media (prefers-color-scheme: dark){.card{fill:#171c22;stroke:#3a4450}.axis{stroke:#8fa3b5}.grid{stroke:#2b343d}
text{fill:#e6edf3}.soft{fill:#aab6c2}.w0{--c:#8fa3b5}.w1{--c:#f0936a}.w2{--c:#4fc3ae}.w3{--c:#b39cf0}}
"""


def drawing(title: str, points: Mapping[str, list[Point]]) -> str:
    """LUT against interval, both on scales where a doubling is a step, as an SVG for light and dark pages."""
    every = [point for row in points.values() for point in row]
    low_x, high_x = log2(min(p.cycles for p in every)), log2(max(p.cycles for p in every))
    low_y, high_y = int(log2(min(p.lut for p in every))), int(log2(max(p.lut for p in every))) + 1

    def place(cycles: float, lut: float) -> tuple[float, float]:
        x = _LEFT + _WIDE * (log2(cycles) - low_x) / (high_x - low_x)
        return x, _TOP + _HIGH * (high_y - log2(lut)) / (high_y - low_y)

    body = ""
    for power in range(low_y, high_y + 1):
        _, y = place(2**low_x, 2**power)
        body += f'<path class="grid" d="M{_LEFT:g},{y:.1f}h{_WIDE:g}"/>'
        body += f'<text class="soft" x="{_LEFT - 8:g}" y="{y + 4:.1f}" text-anchor="end">{2**power:,}</text>'
    cycles = sorted({point.cycles for point in every})
    for count in cycles[:: 2 if len(cycles) > 5 else 1]:
        x, _ = place(count, 2**low_y)
        body += f'<text class="soft" x="{x:.1f}" y="{_TOP + _HIGH + 20:g}" text-anchor="middle">{count:,}</text>'
    body += f'<path class="axis" d="M{_LEFT:g},{_TOP:g}v{_HIGH:g}h{_WIDE:g}"/>'
    body += f'<text class="soft" x="{_LEFT:g}" y="{_TOP - 10:g}" text-anchor="end">LUT</text>'
    body += (
        f'<text class="soft" x="{_LEFT + _WIDE:g}" y="{_TOP + _HIGH + 40:g}" text-anchor="end">cycles a sample</text>'
    )
    ends: list[float] = []
    for number, way in enumerate(WAYS):
        row = [(*place(point.cycles, point.lut), point) for point in points[way]]
        if not row:
            continue
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in row)
        dots = "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{escape(way)}, {p.cycles:,} cycles: {p.lut:,} LUT, '
            f"{p.dsp} DSP, {p.bram18} BRAM18</title></circle>"
            for x, y, p in row
        )
        x, y, _ = row[-1]
        while any(abs(y - other) < 15 for other in ends):
            y += 1
        ends.append(y)
        name = f'<text class="name" x="{x + 10:.1f}" y="{y + 4:.1f}">{escape(way)}</text>'
        body += f'<g class="w{number}"><polyline points="{line}"/>{dots}{name}</g>'
    wide, high = _LEFT + _WIDE + 100, _TOP + _HIGH + 56
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" role="img" aria-labelledby="t">\n'
        f'<title id="t">{escape(title)}</title>\n<style>{_STYLE}</style>\n'
        f'<rect class="card" x="1" y="1" width="{wide - 2:g}" height="{high - 2:g}" rx="10"/>\n'
        f'<text x="{_LEFT:g}" y="28">{escape(title)}</text>\n{body}\n</svg>\n'
    )


def small() -> fp.Design:
    """One convolution and a Dense layer, from random weights."""
    from verilog_networks import Network

    net = Network(5)
    net.bits = 8
    net.input(6, 6, 2)
    net.conv(3)
    net.relu()
    net.pool(False, whole=True)
    net.dense(2)
    return net.design("small")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("designs", nargs="*", type=Path)
    parser.add_argument("--image28", type=float)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--synthesize", default="")
    asked = parser.parse_args()
    designs = [fp.Design.load(path) for path in asked.designs]
    if asked.image28 is not None:
        from bench_rtl import network

        designs.append(network(asked.image28))
    counted = tuple(int(factor) for factor in asked.synthesize.split(",") if factor)
    for design in designs or [small()]:
        points = measure(design, counted)
        if asked.plot:
            title = f"LUTs of {design.name} by the price of open synthesis for {FAMILY}, laid out in four ways"
            (asked.plot / f"layouts_{design.name}.svg").write_text(drawing(title, points))


if __name__ == "__main__":
    main()
