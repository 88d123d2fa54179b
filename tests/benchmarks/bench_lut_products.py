"""What multipliers of LUTs take beside DSP blocks, counted by open synthesis.

    python tests/benchmarks/bench_lut_products.py xc7,gowin,ecp5 [--full]

A convolution of 3 × 3 on 8 × 8 × 8 with 16 filters and 9 multipliers, in DSP blocks and in LUTs (`in_luts`), with
values and weights of several widths; `--full` has all widths, and 27 multipliers too. The last line of a family is what
`hw/calibration/verilog.toml` should say of `row_bit` and `row_weight`: fitted to what the price lacks with LUTs, beside
what it lacks with DSP blocks.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from verilog_networks import Network  # noqa: E402

import fpgaprune as fp  # noqa: E402
from fpgaprune.design import VerilogLayout  # noqa: E402
from fpgaprune.estimate import Counts, DigitCounter, count_layer, find_fabric  # noqa: E402
from fpgaprune.rtl import plan_verilog  # noqa: E402

# Bits of values, with a sign or without one, and of weights.
WIDTHS = [(8, True, 8), (8, False, 4)]
MORE = [(4, False, 4), (4, False, 6), (6, True, 6), (3, False, 5), (8, False, 5), (5, False, 2), (8, False, 7)]


def main() -> None:
    """A table, and the fit of each family."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="?", default="gowin")
    parser.add_argument("--full", action="store_true")
    asked = parser.parse_args()
    print(
        "| family | value | weight | multipliers | in DSP blocks: LUT, FF, DSP | of LUTs: LUT, FF | price | LUTs each |"
    )
    print("|---|---:|---:|---:|---|---|---|---:|", flush=True)
    for family in asked.families.split(","):
        rows = [
            compared(family, *widths, number)
            for widths in (WIDTHS + MORE if asked.full else WIDTHS)
            for number in ((9, 27) if asked.full else (9,))
        ]
        lut, ff, bits, weight, all_luts, all_ffs = np.array(rows, float).T
        terms = np.stack([bits, weight], axis=1)
        of_lut = np.linalg.lstsq(terms / all_luts[:, None], lut / all_luts, rcond=None)[0]
        of_ff = np.linalg.lstsq((weight / all_ffs)[:, None], ff / all_ffs, rcond=None)[0]
        print(f"{family}: lut row_bit = {of_lut[0]:.3f}, row_weight = {of_lut[1]:.3f}; ff row_weight = {of_ff[0]:.3f}")


def compared(family: str, value: int, signed: bool, weight: int, multipliers: int) -> tuple[float, ...]:
    """Print a row; return what the price lacks of LUTs and FF, the terms of the fit, and the LUTs and FF counted."""
    design, name = layer(value, signed, weight)
    fabric, lacks, found = find_fabric(family), [], []
    for in_luts in ((), (name,)):
        layout = VerilogLayout(multipliers={name: multipliers}, in_luts=in_luts)
        with tempfile.TemporaryDirectory() as folder:
            total: Any = fp.to_verilog(design, folder, layout=layout).synthesize(family).total
        counts, price = Counts(), Counts()
        for part in plan_verilog(design, layout, DigitCounter.of(design, layout)).layers:
            counts.more(count_layer(part))
            price.more(fabric.resources(count_layer(part)))
        found.append((total, price, counts))
        own = {"row_bit": fabric.lut.get("row_bit", 0) * counts["row_bit"]}
        own["row_weight"] = fabric.lut.get("row_weight", 0) * counts["row_weight"]
        lut = total.lut - price["lut"] + sum(own.values())
        ff = total.ff - price["ff"] + fabric.ff.get("row_weight", 0) * counts["row_weight"]
        # Where synthesis makes no DSP blocks of the products, there is nothing to compare with.
        lacks.append((lut, ff) if total.dsp or in_luts else (0.0, 0.0))
    (blocks, *_), (luts, price, counts) = found
    print(
        f"| {family} | {value} | {weight} | {multipliers} | {blocks.lut}, {blocks.ff}, {blocks.dsp} | {luts.lut}, "
        f"{luts.ff} | {price['lut']:.0f}, {price['ff']:.0f} | {(luts.lut - blocks.lut) / multipliers:.0f} |",
        flush=True,
    )
    return (*(b - a for a, b in zip(*lacks, strict=True)), counts["row_bit"], counts["row_weight"], luts.lut, luts.ff)


def layer(value: int, signed: bool, weight: int) -> tuple[fp.Design, str]:
    """A convolution whose values and weights have so many bits."""
    net = Network(0)
    net.bits, net.weight_bits, net.zeros, net.powers, net.kernels = value, weight, 0.0, False, True
    net.input(8, 8, 8)
    net.conv(16)
    design = net.design("lut_products")
    first, conv, *rest = design.layers
    kind = first.types["result"]
    first = replace(first, types={"result": replace(kind, width=value, signed=signed)})
    limit = 1 << weight - 1
    kernels = np.random.default_rng(1).integers(-limit, limit, conv.weights["weight"].shape) | 1
    conv = replace(
        conv,
        weights={**conv.weights, "weight": kernels},
        types={**conv.types, "weight": replace(conv.types["weight"], width=weight)},
    )
    return replace(design, layers=(first, conv, *rest)), conv.name


if __name__ == "__main__":
    main()
