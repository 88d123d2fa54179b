"""How many answers "it fits" of the route `verilog` open synthesis confirms, on networks that no price was fitted to.

    python tests/benchmarks/bench_fit_confirmed.py [--count 16] [--first 5000]

A row is a random network of `verilog_networks.py` in the layout that `fit` tries first. The limit is as tight as it can
be: each resource may take just the upper end of its price, so that the search says "fits". Synthesis confirms it if it
counts no more. The last line also draws limits at random, up to twice the upper end, as a user's part is: not tight.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from verilog_networks import random_network  # noqa: E402
from verilog_price_fit import read_rows  # noqa: E402

import fpgaprune as fp  # noqa: E402
from fpgaprune.estimate import verilog_price  # noqa: E402

FAMILY = "xc7"
NAMES = ("lut", "ff", "dsp", "bram18")
# Networks with more LUTs than this take minutes to synthesise; with fewer, a LUT more or less decides.
LUTS = range(150, 6_000)


def main() -> None:
    """The table, a row for each network, and the share that is confirmed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--first", type=int, default=5000, help="seed of the first network")
    chosen = parser.parse_args()
    if chosen.first <= max(row["seed"] for row in read_rows()):
        raise SystemExit("these networks were fitted; wanted others")
    rng, seed, ratios = np.random.default_rng(0), chosen.first, []
    print("| network | LUT, price | LUT, counted | FF, price | FF, counted | fits | largest count over upper end |")
    print("|---:|---:|---:|---:|---:|---|---:|")
    at_random = np.zeros(2, int)
    while len(ratios) < chosen.count:
        seed += 1
        design, cycles = random_network(seed)
        price = verilog_price(design, FAMILY, interval=cycles).resources
        if round(price.lut.value) not in LUTS:
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = fp.to_verilog(design, folder, interval=cycles).synthesize(FAMILY, workers=1).total
        over = {name: found[name] / price[name].high for name in NAMES if price[name].high}
        over |= {name: np.inf for name in NAMES if not price[name].high and found[name]}
        ratios.append(max(over.values()))
        limits = rng.uniform(0.5, 2, 1000)
        fits = limits >= 1
        at_random += (int(fits.sum()), int((limits[fits] >= ratios[-1]).sum()))
        cells = (f"{price[name].low:,.0f} to {price[name].high:,.0f} | {found[name]:,}" for name in NAMES[:2])
        said = "yes" if ratios[-1] <= 1 else f"no: {max(over, key=over.get)}"
        print(f"| {seed} | {' | '.join(cells)} | {said} | {ratios[-1]:.2f} |", flush=True)
    print(f"confirmed at the tightest limit: {sum(ratio <= 1 for ratio in ratios)} of {len(ratios)}")
    print(f"confirmed at random limits from half to twice the price: {at_random[1] / at_random[0]:.3f}")


if __name__ == "__main__":
    main()
