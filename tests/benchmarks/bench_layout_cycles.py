"""Whether `choose_layout` keeps its word: the cycles that it aims at, answers and prices, and those of simulation.

    python tests/benchmarks/bench_layout_cycles.py [--all | NAME...] [--qkeras model_best.h5]

Takes the twenty networks of `layout_networks.py` with random weights, or those named; `--qkeras` adds a network of
QKeras for an xc7z020, as hls4ml's RN07 of MLPerf Tiny v0.7. Without arguments two small networks show that it runs. It
needs Verilator and g++.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

import fpgaprune as fp  # noqa: E402
from fpgaprune.design import Input, VerilogLayout  # noqa: E402
from fpgaprune.quantise import import_qkeras  # noqa: E402
from fpgaprune.target import find_part  # noqa: E402
from tests.benchmarks.layout_networks import TWENTY, network_of  # noqa: E402

LARGE = "xc7z020clg400-1"
HEAD = ("network", "part", "share", "layers", "aimed at", "answer", "estimate", "simulated", "latency", "simulated")
SAMPLES = 5


def row(design: fp.Design, part: str, share: float) -> str:
    """The cycles of the layout that is chosen for `design`, as a row of the table."""
    chosen = fp.choose_layout(design, find_part(part), "xc7", share=share)
    layout = VerilogLayout(**chosen.settings)
    price = fp.verilog_price(design, "xc7", layout=layout)
    shape = next(layer.output_shape for layer in design.layers if isinstance(layer.operation, Input))
    x = np.random.default_rng(0).uniform(0, 1, (SAMPLES, *shape)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        found = fp.to_verilog(design, folder, layout=layout).simulate(x, timeout_s=3600)
    ways = [row.way for row in chosen.layers]
    laid = ", ".join(f"{ways.count(way)} {way}" for way in dict.fromkeys(ways))
    cells = [design.name, chosen.part, f"{share:.0%}", laid]
    cycles = (chosen.allowed, chosen.interval, price.interval_cycles, found.interval_cycles)
    cells += [f"{count:,}" for count in (*cycles, price.latency_cycles, found.latency_cycles)]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["strided", "dense"])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--qkeras", type=Path)
    asked = parser.parse_args()
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|", flush=True)
    for build, (part, share) in TWENTY.items():
        if asked.all or build.__name__ in asked.names:
            print(row(network_of(build), part, share), flush=True)
    if asked.qkeras:
        model = import_qkeras(asked.qkeras).model
        design = fp.make_design(model, fp.Target.of(LARGE, io_type="io_stream"))
        print(row(design, LARGE, 0.8), flush=True)


if __name__ == "__main__":
    main()
