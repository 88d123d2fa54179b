"""What adders of three operands save on AMD's devices: LUT, FF and latency of networks, with two and with three.

    python tests/benchmarks/bench_three_operands.py RUN [RUN ...] [--family xc7]

A RUN is a folder with a `design.json`, as `fpgaprune run` makes it and `bench_field.py` keeps it. Both Verilogs of a
network are synthesised whole, and simulated on random samples: each bit is that of the emulator.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import fpgaprune as fp
from fpgaprune.design import Input


def main() -> None:
    """One row for each network, as soon as it is counted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", help="folders with a design.json")
    parser.add_argument("--family", default="xc7", help="xc7 or xcup")
    chosen = parser.parse_args()
    print("| network | LUT | FF | latency | LUT, three | FF, three | latency, three | LUT, share |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for run in chosen.runs:
        design = fp.Design.load(run / "design.json")
        two, three = (measured(design, operands, chosen.family) for operands in (2, 3))
        figures = " | ".join(f"{figure:,}" for figure in (*two, *three))
        print(f"| {run.name} | {figures} | {three[0] / two[0]:.2f} |", flush=True)


def measured(design: fp.Design, operands: int, family: str) -> tuple[int, int, int]:
    """LUT, FF and latency in cycles."""
    rng = np.random.default_rng(0)
    shape = next(layer.output_shape for layer in design.layers if isinstance(layer.operation, Input))
    samples = rng.normal(size=(16, *shape)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        project = fp.to_verilog(design, folder, operands=operands)
        found = project.simulate(samples)
        if not np.array_equal(found.outputs[0].reshape(16, -1), fp.emulate(design, samples).reshape(16, -1)):
            raise SystemExit(f"{design.name}: the Verilog with {operands} operands gives other bits than the emulator")
        cells = project.synthesize(family).total
    return cells.lut, cells.ff or 0, found.latency_cycles


if __name__ == "__main__":
    main()
