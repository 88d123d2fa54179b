"""Networks too large to be parallel, as Verilog that was laid out for a part: clocks, resources, bits.

    python tests/benchmarks/bench_large_networks.py [PART [FOLDER NAME... [--locked 0.75] [--samples 100] [--priced]]]

FOLDER holds NAME.keras and NAME.npz, trained, as `bench_networks.py` trains them. Weights and activations have 8
bits. `--locked` sets the kernels with the smallest sums of absolute weights of each convolution but the first to zero,
without fine-tuning: for clocks and bits alone. `--priced` leaves synthesis out. Without a folder one untrained
convolution shows that it runs. It needs Verilator, g++ and pyosys.
"""

from __future__ import annotations

import argparse
import resource
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
from fpgaprune.fabric.verilator import build  # noqa: E402
from fpgaprune.target import find_part  # noqa: E402

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


def row(name: str, design: fp.Design, x: np.ndarray, part: str, share: float, asked: argparse.Namespace) -> str:
    """What was measured of `design`, as a row of a table."""
    target = find_part(part)
    family = str(family_of(target))
    begin = time.time()
    chosen = fp.choose_layout(design, target, family, share=asked.share, interval=asked.interval)
    chose = time.time() - begin
    for line in chosen.lines():
        print(f"  {line}", flush=True)
    for laid in chosen.layers:
        print(f"    {laid.layer}: {laid.way} {laid.multipliers or ''}{' paired' if laid.paired else ''}", flush=True)
    layout = VerilogLayout(**chosen.settings)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.time()
        project = fp.to_verilog(design, folder, layout=layout)
        wrote = time.time() - begin
        # Of this process, with TensorFlow: more than the generation takes.
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        begin = time.time()
        build(project, Path(folder) / "sim", 3600)
        built = time.time() - begin
        print(f"  written in {wrote:.1f} s, at most {memory:.1f} GB; simulator built in {built:.0f} s", flush=True)
        begin = time.time()
        found = project.simulate(x, timeout_s=3600)
        minute = 60 * len(x) / (time.time() - begin)
        differ = int((found.output.astype(np.float32) != np.asarray(fp.emulate(design, x))).sum())
        print(f"  {found.interval_cycles} clocks, latency {found.latency_cycles}, {differ} values differ", flush=True)
        total = None
        if not asked.priced:
            total = replace(project, layers=()).synthesize(family, workers=1, timeout_s=3600).whole.cells
    priced = chosen.price.resources
    cells: list[Any] = [name, f"{share:.0%}", f"{found.interval_cycles:,} ({chosen.price.interval_cycles:,})"]
    cells.append(f"{found.latency_cycles:,}")
    for count in ("lut", "ff", "dsp", "bram18"):
        guess = priced[count]
        counted = "–" if total is None else f"{total[count]:,}"
        cells.append(f"{counted} ({None if guess is None else round(guess.value):,})")
    cells += [f"{differ} in {len(x)} samples", f"{chose:.0f} s", f"{wrote:.1f} s", f"{memory:.1f} GB", f"{minute:.0f}"]
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default=PART)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--locked", type=float, default=0.0)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--interval", type=int)
    parser.add_argument("--share", type=float, default=0.8)
    parser.add_argument("--priced", action="store_true")
    asked = parser.parse_args()
    head = "network | locked | clocks (priced) | latency | LUT (priced) | FF | DSP | BRAM18 | values that differ"
    print(f"| {head} | chosen in | written in | memory | samples a minute |")
    if asked.folder is None:
        design, x = small()
        print(row("small", design, x, asked.part, 0.0, asked))
    for name in asked.names:
        design, x = trained(asked.folder, name, asked.part)
        if asked.locked:
            design = locked(design, asked.locked)
        print(row(name, design, x[: asked.samples], asked.part, asked.locked, asked), flush=True)


if __name__ == "__main__":
    main()
