"""Clocks of scheduled convolutions against the kernels that they keep, with the same multipliers.

A padded image of SIDE x SIDE x 16 through two convolutions of 3 x 3, to 32 channels with 9 multipliers and from 32 to
32 with 18, random 8-bit weights, every image behind the one before it. Run with
`python tests/benchmarks/bench_scheduled.py SIDE [FAMILY [loadable]]`; with a family, as `xc7`, the Verilog is
synthesised too; with `loadable`, weights can be loaded, and others are loaded before the last images. Without arguments
it takes a side of 6, which shows that it runs. It needs Verilator and g++.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import fpgaprune as fp
import fpgaprune.design as op
from fpgaprune.design import LayerSpec
from fpgaprune.fabric import simulate
from fpgaprune.rtl import weights_stream
from fpgaprune.values import FixedType

LOCKED = (0.0, 0.5, 0.75, 0.9)
MULTIPLIERS = {"conv0": 9, "conv1": 18}
CHANNELS = (16, 32, 32)
ACTIVATION = "ufixed<8,3,RND,SAT>"


def network(side: int, locked: float) -> fp.Design:
    """Two convolutions, `locked` of whose kernels are zero."""
    rng = np.random.default_rng(0)
    layers: list[LayerSpec] = []

    def add(name: str, operation: op.Operation, shape: tuple[int, ...], types: dict[str, str], **fields: Any) -> None:
        parsed = {role: FixedType.parse(text) for role, text in types.items()}
        sources = (layers[-1].name,) if layers else ()
        layers.append(LayerSpec(name, sources, shape, parsed, operation=operation, **fields))

    add("image", op.Input(), (side, side, CHANNELS[0]), {"result": ACTIVATION})
    for number, (inputs, outputs) in enumerate(pairwise(CHANNELS)):
        add(f"pad{number}", op.Pad((1, 1, 1, 1)), (side + 2, side + 2, inputs), {"result": ACTIVATION})
        free = np.ones(inputs * outputs, bool)
        free[rng.permutation(free.size)[: round(locked * free.size)]] = False
        weight = rng.integers(1, 128, (3, 3, inputs, outputs)) * free.reshape(inputs, outputs)
        add(
            f"conv{number}",
            op.Convolution(op.Window((3, 3))),
            (side, side, outputs),
            {"result": ACTIVATION, "weight": "fixed<8,1>", "bias": "fixed<16,6>", "accum": "fixed<32,14>"},
            weights={"weight": weight, "bias": rng.integers(-100, 100, outputs)},
        )
    return fp.Design("scheduled", tuple(layers), ("conv1",))


def halved(design: fp.Design) -> fp.Design:
    """The design with half of every weight, rounded up."""
    layers = [
        replace(layer, weights={**layer.weights, "weight": -(-layer.weights["weight"] // 2)})
        if layer.name in MULTIPLIERS
        else layer
        for layer in design.layers
    ]
    return replace(design, layers=tuple(layers))


def measure(side: int, locked: float, folder: Path, family: str | None, loadable: bool) -> tuple[str, int]:
    """A row of the table, and the clocks between two images."""
    design = network(side, locked)
    project = fp.to_verilog(design, folder, multipliers=MULTIPLIERS, loadable=loadable)
    x = np.random.default_rng(1).uniform(0, 8, (4, side, side, CHANNELS[0])).astype(np.float32)
    found = simulate(project, x)
    same = (found.output == fp.emulate(design, x)).all()
    if loadable:
        beats = weights_stream(halved(design), project)
        after = simulate(project, x, loads={2: beats})
        wanted = np.concatenate([fp.emulate(design, x[:2]), fp.emulate(halved(design), x[2:])])
        same = same and (after.output == wanted).all()
    if not same:
        raise SystemExit("the Verilog and the emulator differ")
    clocks = found.interval_cycles or 0
    kept = {name: int(design[name].weights["weight"].any(axis=(0, 1)).sum()) for name in MULTIPLIERS}
    slowest = max(MULTIPLIERS, key=lambda name: kept[name] / MULTIPLIERS[name])
    groups = MULTIPLIERS[slowest] // 9
    steps = -(-kept[slowest] // groups)
    use = kept[slowest] * side * side / groups / clocks
    balance = steps * groups / kept[slowest]
    row = f"{locked:.0%} | {kept['conv0']} + {kept['conv1']} | {clocks:,} | {balance:.3f} | {use:.1%}"
    if family:
        cells = replace(project, layers=()).synthesize(family).whole.cells
        if cells is None:
            raise SystemExit("synthesis did not end")
        row += f" | {cells.lut:,} | {cells.ff:,} | {cells.dsp} | {cells.bram18}"
    return row, clocks


def main() -> None:
    """Prints one row for each share of locked kernels."""
    side = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    family = sys.argv[2] if len(sys.argv) > 2 else None
    loadable = sys.argv[3:] == ["loadable"]
    more = " | LUT | FF | DSP | BRAM18" if family else ""
    head = "locked | kernels kept | clocks an image | busiest group / mean | multipliers in use, slowest"
    print(f"{head}{more} | clocks / all")
    first = None
    for locked in LOCKED if len(sys.argv) > 1 else LOCKED[::2]:
        with tempfile.TemporaryDirectory() as folder:
            row, clocks = measure(side, locked, Path(folder), family, loadable)
        first = first or clocks
        print(f"{row} | {clocks / first:.3f}", flush=True)


if __name__ == "__main__":
    main()
