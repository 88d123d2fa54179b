"""What a field of the layout saves in our Verilog: LUT, FF and latency of networks, with one value and with another.

    python tests/benchmarks/bench_layout_field.py operands 2 3 RUN [RUN ...] [--family xc7]
    python tests/benchmarks/bench_layout_field.py tables 0 6 RUN [RUN ...]

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
    parser.add_argument("field", help="of VerilogLayout")
    parser.add_argument("values", type=int, nargs=2)
    parser.add_argument("runs", type=Path, nargs="+", help="folders with a design.json")
    parser.add_argument("--family", default="xc7", help="of open synthesis")
    chosen = parser.parse_args()
    columns = [f"{name}, {chosen.field} {value}" for value in chosen.values for name in ("LUT", "FF", "latency")]
    print(f"| network | {' | '.join(columns)} | LUT, share |\n|---|{'---:|' * 7}")
    for run in chosen.runs:
        design = fp.Design.load(run / "design.json")
        one, other = (measured(design, chosen.family, **{chosen.field: value}) for value in chosen.values)
        figures = " | ".join(f"{figure:,}" for figure in (*one, *other))
        print(f"| {run.name} | {figures} | {other[0] / one[0]:.2f} |", flush=True)


def measured(design: fp.Design, family: str, **fields: int) -> tuple[int, int, int]:
    """LUT, FF and latency in cycles of `design` in the layout with these fields."""
    rng = np.random.default_rng(0)
    shape = next(layer.output_shape for layer in design.layers if isinstance(layer.operation, Input))
    samples = rng.normal(size=(16, *shape)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        project = fp.to_verilog(design, folder, **fields)
        found = project.simulate(samples)
        if not np.array_equal(found.outputs[0].reshape(16, -1), fp.emulate(design, samples).reshape(16, -1)):
            raise SystemExit(f"{design.name}: the Verilog with {fields} gives other bits than the emulator")
        cells = project.synthesize(family).total
    return cells.lut, cells.ff or 0, found.latency_cycles


if __name__ == "__main__":
    main()
