"""Errors of the price of scheduled layers, on random layers that open synthesis counted.

    python tests/benchmarks/bench_scheduled_price.py [--layers N]

The rows beside this script are counts of single layers with random sizes, kernels kept and multipliers. `--layers`
synthesises the first N layers as far as they have no rows yet. Three coefficients of each resource are fitted to them,
and one for each bit of a product where products are LUTs; the last lines are what `hw/calibration/verilog.toml` should
say. Errors are those of layers left out of the fit.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from verilog_networks import Network  # noqa: E402

import fpgaprune as fp  # noqa: E402
from fpgaprune.design import VerilogLayout  # noqa: E402
from fpgaprune.estimate import DigitCounter, count_layer, find_fabric  # noqa: E402
from fpgaprune.rtl import may_be_paired, plan_verilog  # noqa: E402

ROWS = Path(__file__).with_name("scheduled_price_rows.csv")
# What scheduled layers alone have.
TERMS = ("instance_scheduled", "piece_bit", "weight_bit")
# And where products are LUTs.
LUT_TERMS = {"nexus": (*TERMS, "multiplier_bit")}
_SMALL = 30
FAMILIES = ("xc7", "ecp5", "gowin", "nexus")
FOLDS = 5
RESOURCES = ("lut", "ff", "dsp", "bram18")


def random_layer(seed: int) -> tuple[fp.Design, VerilogLayout]:
    """A layer of random size and its multipliers: few of them from seed `_SMALL` on."""
    return _small_layer(seed) if seed >= _SMALL else _convolution(seed)


def _small_layer(seed: int) -> tuple[fp.Design, VerilogLayout]:
    """A small convolution or Dense layer with one to six multipliers, as slow layouts for boards have them."""
    net, rng = Network(seed), np.random.default_rng(seed + 1000)
    net.bits, net.weight_bits = int(rng.integers(4, 10)), int(rng.integers(4, 10))
    net.kernels, net.powers, net.zeros = True, False, float(rng.choice([0, 0.5, 0.75]))
    if rng.random() < 0.5:
        net.input(int(rng.integers(4, 24)), int(rng.integers(1, 12)))
        if rng.random() < 0.5:
            net.conv(int(rng.integers(4, 16)), side=int(rng.choice([1, 3])))
        else:
            net.dense(int(rng.integers(4, 32)))
    else:
        net.input(int(rng.integers(5, 12)), int(rng.integers(5, 12)), int(rng.integers(1, 12)))
        net.conv(int(rng.integers(4, 16)), side=int(rng.choice([1, 3])))
    net.relu()
    design = net.design(f"s{seed}")
    layer = next(layer for layer in design.layers if "weight" in layer.weights)
    return design, VerilogLayout(multipliers={layer.name: int(rng.integers(1, 7))})


def _convolution(seed: int) -> tuple[fp.Design, VerilogLayout]:
    """A convolution of random size, its kernels kept, and its multipliers."""
    net, rng = Network(seed), np.random.default_rng(seed + 1000)
    net.bits, net.weight_bits = int(rng.integers(4, 10)), int(rng.integers(4, 9))
    net.kernels, net.powers, net.zeros = True, False, float(rng.choice([0, 0.5, 0.75, 0.9]))
    side, channels = int(rng.integers(5, 20)), int(rng.choice([3, 8, 16, 24, 32]))
    filters = int(rng.choice([8, 16, 32, 48]))
    net.input(side, side, channels)
    kind = int(rng.integers(5))
    taps = 1 if kind == 3 else 9
    if kind < 3:
        net.conv(filters, side=3, stride=int(rng.integers(1, 3)))
    elif kind == 3:
        net.conv(filters, side=1)
    else:
        net.conv(filters, side=3, depthwise=True)
    net.relu()
    design = net.design(f"s{seed}")
    layer = design.layers[1]
    number = int(rng.integers(1, 6)) * taps if rng.random() < 0.75 else int(rng.integers(1, max(taps, 2)))
    pairs = may_be_paired(design, layer) and rng.random() < 0.4 and kind != 4
    return design, VerilogLayout(multipliers={layer.name: number}, paired=(layer.name,) if pairs else ())


def synthesise(count: int) -> None:
    """Make the missing rows of the first `count` layers."""
    known = {(int(row["seed"]), row["family"]) for row in read_rows()}
    for seed in range(count):
        missing = [family for family in FAMILIES if (seed, family) not in known]
        design, layout = random_layer(seed)
        with tempfile.TemporaryDirectory() as folder:
            project = fp.to_verilog(design, folder, layout=layout)
            for family in missing:
                layers = project.synthesize(family, whole=False, workers=1).layers
                found = next(one.cells for one in layers if one.layer in layout.multipliers)
                if found is not None:
                    with ROWS.open("a", newline="") as file:
                        cells = [seed, family, *(found[name] for name in RESOURCES)]
                        csv.writer(file, lineterminator="\n").writerow(cells)


def read_rows() -> list[dict[str, str]]:
    """A row for each layer and family."""
    with ROWS.open(newline="") as file:
        return list(csv.DictReader(file))


def terms_of(family: str, resource: str) -> tuple[str, ...]:
    """Return the quantities whose coefficients are fitted."""
    return LUT_TERMS.get(family, TERMS) if resource == "lut" else TERMS


def fitted(family: str, resource: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True counts, prices of layers that were left out of the fit, and the coefficients of a fit of all."""
    fabric, names = find_fabric(family), terms_of(family, resource)
    rows = [row for row in read_rows() if row["family"] == family]
    true = np.array([float(row[resource]) for row in rows])
    coefficients: Mapping[str, float] = fabric.lut if resource == "lut" else fabric.ff
    terms, rest = [], []
    for row in rows:
        design, layout = random_layer(int(row["seed"]))
        planned = plan_verilog(design, layout, DigitCounter()).layers
        counts = count_layer(next(one for one in planned if one.layer in layout.multipliers))
        mapped = fabric.mapped(counts)
        terms.append([mapped[name] for name in names])
        own = sum(mapped[name] * coefficients.get(name, 0) for name in names)
        rest.append(fabric.resources(counts)[resource] - own)
    x, base = np.array(terms), np.array(rest)
    fold = np.array([int(row["seed"]) % FOLDS for row in rows])
    left_out = np.zeros(len(true))
    for k in range(FOLDS):
        inside = fold != k
        left_out[~inside] = base[~inside] + x[~inside] @ _solved(x[inside], true[inside], base[inside])
    return true, left_out, _solved(x, true, base)


def _solved(x: np.ndarray, true: np.ndarray, base: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(x / true[:, None], (true - base) / true, rcond=None)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=0)
    synthesise(parser.parse_args().layers)
    print("| family | figure | layers | median error | 90th | true / price, 80 % of layers | of networks of eight |")
    print("|---|---|---|---|---|---|---|")
    rng, lines = np.random.default_rng(0), []
    for family in FAMILIES:
        for name in ("lut", "ff"):
            true, guess, found = fitted(family, name)
            some = rng.integers(0, len(true), (2000, 8))
            networks = np.quantile(true[some].sum(axis=1) / guess[some].sum(axis=1), [0.1, 0.9])
            layers = np.quantile(true / guess, [0.1, 0.9])
            errors = np.abs(guess / true - 1)
            ends = [f"{low:.2f} to {high:.2f}" for low, high in (layers, networks)]
            middle = f"{np.median(errors):.1%} | {np.percentile(errors, 90):.1%}"
            print(f"| {family} | {name.upper()} | {len(true)} | {middle} | {' | '.join(ends)} |")
            pairs = zip(terms_of(family, name), found, strict=True)
            lines.append(f"{family}.{name}: " + ", ".join(f"{n} = {v:.2f}" for n, v in pairs))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
