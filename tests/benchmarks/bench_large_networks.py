"""Networks too large to be parallel, as Verilog that was laid out for a part: clocks, resources, bits.

    python tests/benchmarks/bench_large_networks.py [PART [FOLDER NAME... [--locked 0.75] [--samples 100]]]

FOLDER holds NAME.keras and NAME.npz, trained, as `bench_networks.py` trains them. Weights and activations have 8
bits. `--locked` sets the kernels with the smallest sums of absolute weights of each convolution but the first to zero,
without fine-tuning: for clocks and bits alone. Without a folder one untrained convolution shows that it runs. It needs
Verilator, g++ and pyosys.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import fpgaprune as fp  # noqa: E402
from fpgaprune.design import Convolution, VerilogLayout  # noqa: E402
from fpgaprune.fabric import family_of  # noqa: E402

PART = "xc7z020clg400-1"


def small() -> tuple[fp.Design, np.ndarray]:
    """One convolution and a pool, from random weights."""
    from verilog_networks import Network

    net = Network(5)
    net.bits = 8
    net.input(8, 8, 4)
    net.conv(8)
    net.relu()
    net.pool(False, whole=True)
    return net.design("small"), np.random.default_rng(0).uniform(0, 1, (4, 8, 8, 4)).astype(np.float32)


def trained(folder: Path, name: str, part: str) -> tuple[fp.Design, np.ndarray]:
    """The network with 8 bits, and its held-out samples."""
    import keras

    data = np.load(folder / f"{name}.npz")
    model: Any = keras.models.load_model(folder / f"{name}.keras")
    target = fp.Target.of(part, io_type="io_stream")
    return fp.make_design(model, target, data["x_train"][:64], fp.Precision(8, 8, 16), name), data["x_test"]


def locked(design: fp.Design, share: float) -> fp.Design:
    """`design` with the smallest `share` of the kernels of each convolution but the first at zero."""
    layers, first = [], True
    for layer in design.layers:
        if isinstance(layer.operation, Convolution):
            if not first:
                weight = layer.weights["weight"].copy()
                size = np.abs(weight).reshape(-1, *weight.shape[-2:]).sum(axis=0)
                smallest = np.argsort(size, axis=None)[: round(share * size.size)]
                weight[..., np.unravel_index(smallest, size.shape)[0], np.unravel_index(smallest, size.shape)[1]] = 0
                layer = replace(layer, weights={**layer.weights, "weight": weight})
            first = False
        layers.append(layer)
    return replace(design, layers=tuple(layers))


def row(name: str, design: fp.Design, x: np.ndarray, part: str, share: float, interval: int | None) -> str:
    """What was measured of `design`, as a row of a table."""
    target = fp.find_part(part)
    family = str(family_of(target))
    begin = time.time()
    chosen = fp.choose_layout(design, target, family, interval=interval)
    seconds = time.time() - begin
    for line in chosen.lines():
        print(f"  {line}", flush=True)
    layout = VerilogLayout(**chosen.settings)
    with tempfile.TemporaryDirectory() as folder:
        project = fp.to_verilog(design, folder, layout=layout)
        found = project.simulate(x, timeout_s=3600)
        differ = int((found.output.astype(np.float32) != np.asarray(fp.emulate(design, x))).sum())
        print(f"  {found.interval_cycles} clocks, latency {found.latency_cycles}, {differ} values differ", flush=True)
        total = replace(project, layers=()).synthesize(family, workers=1, timeout_s=3600).whole.cells
    priced = chosen.price.resources
    cells: list[Any] = [name, f"{share:.0%}", found.interval_cycles, chosen.price.interval_cycles, found.latency_cycles]
    for resource in ("lut", "ff", "dsp", "bram18"):
        guess = priced[resource]
        cells.append(f"{None if total is None else total[resource]} ({None if guess is None else guess.value})")
    cells += [f"{differ} in {len(x)} samples", f"{seconds:.0f} s"]
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default=PART)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--locked", type=float, default=0.0)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--interval", type=int)
    asked = parser.parse_args()
    print("| network | locked | clocks (priced) | | latency | LUT (priced) | FF | DSP | BRAM18 | bits | chosen |")
    if asked.folder is None:
        design, x = small()
        print(row("small", design, x, asked.part, 0.0, asked.interval))
    for name in asked.names:
        design, x = trained(asked.folder, name, asked.part)
        if asked.locked:
            design = locked(design, asked.locked)
        print(row(name, design, x[: asked.samples], asked.part, asked.locked, asked.interval), flush=True)


if __name__ == "__main__":
    main()
