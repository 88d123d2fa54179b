"""Errors of the price of our own Verilog, on random networks that were left out of its fit.

    python tests/benchmarks/bench_verilog_price.py [--more N] [--laws SECONDS] [--write]

The rows beside this script are counts of open synthesis, layer by layer, of the networks of `verilog_networks.py`.
`--more` synthesises N further networks and adds their rows; `--laws` fits anew what sharing leaves of adder trees, to
random matrices; `--write` puts coefficients and ranges into `hw/calibration/verilog.toml`.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from verilog_networks import random_network  # noqa: E402
from verilog_price_fit import PRIORS, ROWS, Fitted, counted, errors, fit, interval, read_rows  # noqa: E402
from verilog_sharing import fit_laws  # noqa: E402

import fpgaprune as fp  # noqa: E402
from fpgaprune.estimate import find_fabric  # noqa: E402

TOML = ROOT / "hw" / "calibration" / "verilog.toml"
# Multiplications by constants of a network that is worth its time.
SIZES = range(8, 420)
HEAD = """\
# What our own Verilog takes after open synthesis (pyosys 0.70): LUTs and flip-flops of one of each quantity, fitted to
# syntheses of the layers of random networks. tests/benchmarks/bench_verilog_price.py makes, fits and writes them.
# ranges: true count over price, of whole networks and of layers left out of the fit; four of five lie between.
"""


def synthesise(count: int) -> None:
    """Rows of `count` networks more are in the file."""
    seed = max((row["seed"] for row in read_rows()), default=-1)
    while count:
        seed += 1
        design, cycles = random_network(seed)
        with tempfile.TemporaryDirectory() as folder:
            project = fp.to_verilog(design, folder, interval=cycles)
            if sum(layer.kept or 0 for layer in project.layers) not in SIZES:
                continue
            found = {family: project.synthesize(family, whole=False, workers=1) for family in PRIORS}
        rows = [
            [
                seed,
                family,
                layer.layer,
                *(layer.cells[name] or 0 for name in ("lut", "ff", "dsp", find_fabric(family).memory["block"])),
            ]
            for family, made in found.items()
            for layer in made.layers
            if layer.cells is not None
        ]
        with ROWS.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        print(f"network {seed}: {sum(row[3] for row in rows)} LUT")
        count -= 1


def table() -> dict[str, dict[str, Fitted]]:
    """The table of errors, and the fits."""
    print("| family | figure | layers | median | 90th | networks | median | 90th | 80 % range of a network |")
    print("|---|---|---|---|---|---|---|---|---|")
    fits: dict[str, dict[str, Fitted]] = {}
    for family, resources in PRIORS.items():
        for resource in resources:
            made = fits.setdefault(family, {})[resource] = fit(family, resource)
            cells = [family, resource.upper()]
            for pairs in (made.layers, made.networks):
                found = errors(pairs)
                cells += [str(len(found)), f"{np.median(found):.1%}", f"{np.percentile(found, 90):.1%}"]
            low, high = interval(made.networks)
            print(f"| {' | '.join(cells)} | x{low:.2f} to x{high:.2f} |")
        exact(family)
    return fits


def exact(family: str) -> None:
    """How many layers have exactly the DSP blocks and the block memories that were priced."""
    rows = [row for row in read_rows() if row["family"] == family]
    for resource in ("dsp", "block"):
        priced = [find_fabric(family).mapped(counted(row["seed"])[row["layer"]])[resource] for row in rows]
        right = sum(row[resource] == one for row, one in zip(rows, priced, strict=True))
        print(
            f"| {family} | {resource.upper()} | {right} of {len(rows)} exact, {sum(one > 0 for one in priced)} not 0 |"
        )


def write(fits: dict[str, dict[str, Fitted]], laws: dict[str, list[float]]) -> None:
    """The file of coefficients holds `fits` and `laws`; what was not fitted stays."""
    kept = tomllib.loads(TOML.read_text())
    text = HEAD + "\n# What sharing leaves of adder trees: terms as in fpgaprune/estimate/verilog/sharing.py.\n"
    text += _section("sharing", laws)
    for family, made in fits.items():
        ranges: dict[str, Any] = {"dsp": [1.0, 1.0], kept[family]["memory"]["block"]: [1.0, 1.0]}
        layers = dict(ranges)
        for resource, one in made.items():
            ranges[resource] = [round(end, 3) for end in interval(one.networks)]
            layers[resource] = [round(end, 3) for end in interval(one.layers)]
        text += _section(f"{family}.ranges", ranges) + _section(f"{family}.layer_ranges", layers)
        for resource, one in made.items():
            # What `bench_scheduled_price.py` fitted stays.
            others = {name: value for name, value in kept[family][resource].items() if name not in one.coefficients}
            values = {name: round(value, 4) for name, value in one.coefficients.items() if value} | others
            text += _section(f"{family}.{resource}", values)
        text += _section(f"{family}.memory", kept[family]["memory"])
        text += _section(f"{family}.product", kept[family]["product"])
    # iCE40 HX has the fit of iCE40 UltraPlus, and multipliers of LUTs.
    for family in kept.keys() - fits.keys() - {"sharing"}:
        text += _section(family, {"like": kept[family].pop("like")})
        text += "".join(_section(f"{family}.{name}", values) for name, values in kept[family].items())
    TOML.write_text(text)


def _section(name: str, values: dict[str, Any]) -> str:
    return f"\n[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--more", type=int, default=0)
    parser.add_argument("--laws", type=float, default=0.0)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    synthesise(asked.more)
    laws = fit_laws(asked.laws) if asked.laws else tomllib.loads(TOML.read_text())["sharing"]
    fits = table()
    if asked.write:
        write(fits, laws)


if __name__ == "__main__":
    main()
