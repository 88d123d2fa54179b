"""LUTs of our own Verilog against the cycles that a sample may take, for each way to lay layers out.

    python tests/benchmarks/bench_layouts.py [DESIGN.json...] [--image28 0.25] [--synthesize 1,16]

A row is an interval: the fewest cycles of the network times 1, 2, 4, ... 256. The ways: `parallel` makes every product
at once (a Dense layer behind an image is folded), `bit by bit` lets a layer add bit by bit where there is time,
`scheduled` gives every layer the fewest multipliers that keep the interval, `paired` the same with two values in each.
Figures are the price of open synthesis for xc7; `--synthesize` counts the rows with these factors by yosys.
`--image28` adds the 28 x 28 network of `bench_rtl.py` with that share of its second convolution's kernels. Without a
design it takes a small network, which shows that it runs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import fpgaprune as fp  # noqa: E402
from fpgaprune.design import VerilogLayout  # noqa: E402
from fpgaprune.estimate import find_fabric  # noqa: E402
from fpgaprune.layout import Candidates  # noqa: E402

FAMILY = "xc7"
FACTORS = tuple(1 << power for power in range(9))
WAYS = ("parallel", "bit by bit", "scheduled", "paired")


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


def priced(design: fp.Design, layout: VerilogLayout) -> str:
    """LUTs, DSP blocks and block memories by the price of a layout."""
    found = fp.verilog_price(design, FAMILY, layout=layout).resources
    return ", ".join(f"{round(figure.value):,}" for name in ("lut", "dsp", "bram18") if (figure := found[name]))


def synthesised(design: fp.Design, layout: VerilogLayout) -> int | None:
    """The LUTs that yosys counts."""
    with tempfile.TemporaryDirectory() as folder:
        project = replace(fp.to_verilog(design, folder, layout=layout), layers=())
        cells = project.synthesize(FAMILY, workers=1, timeout_s=3600).whole.cells
    return None if cells is None else cells.lut


def measure(design: fp.Design, counted: tuple[int, ...]) -> None:
    """Prints a row for each interval."""
    first = fp.verilog_price(design, FAMILY).interval_cycles
    print(f"\n{design.name}: LUT, DSP, BRAM18 by price; LUT by yosys\n\n| cycles | {' | '.join(WAYS)} |", flush=True)
    print("|---|" + "---|" * len(WAYS))
    for factor in FACTORS:
        cells = []
        for layout in layouts(design, first * factor).values():
            text = "–" if layout is None else priced(design, layout)
            if layout is not None and factor in counted:
                text += f"; {synthesised(design, layout):,}"
            cells.append(text)
        print(f"| {first * factor:,} | {' | '.join(cells)} |", flush=True)


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
    parser.add_argument("--synthesize", default="")
    asked = parser.parse_args()
    designs = [fp.Design.load(path) for path in asked.designs]
    if asked.image28 is not None:
        from bench_rtl import network

        designs.append(network(asked.image28))
    counted = tuple(int(factor) for factor in asked.synthesize.split(",") if factor)
    for design in designs or [small()]:
        measure(design, counted)


if __name__ == "__main__":
    main()
