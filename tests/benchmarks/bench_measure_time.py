"""Processor seconds of what `fpgaprune measure` runs, beside the estimate of the design that they depend on.

    python tests/benchmarks/bench_measure_time.py --networks N

Each row that is added to measure_time_rows.csv is one random network of `verilog_networks.py`, as our Verilog:
synthesis of the whole design and of all modules for a family, and a simulation of 100 samples. `fabric/waiting.py` has
the law, and `tests/unit/fabric/test_waiting.py` compares it with each row.
"""

from __future__ import annotations

import argparse
import csv
import resource
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from verilog_networks import random_network  # noqa: E402

import fpgaprune as fp  # noqa: E402
from fpgaprune.fabric import simulate  # noqa: E402

ROWS = Path(__file__).with_name("measure_time_rows.csv")
COLUMNS = ("seed", "family", "modules", "lut", "ff", "interval", "samples", "synthesis_s", "simulation_s")
FAMILIES = ("xc7", "gowin", "ecp5")
SAMPLES = 100
# Beyond this, a network takes too long for a row.
MOST_LUT = 15_000


def spent() -> float:
    """Processor seconds of the programs that ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(seed: int, family: str) -> tuple[object, ...] | None:
    """A row; None if the network is too large, or no Verilog is made of it."""
    design, cycles = random_network(seed)
    price = fp.verilog_price(design, family, interval=cycles)
    lut, ff = price.resources.lut.value, price.resources.ff.value
    if lut > MOST_LUT:
        return None
    with tempfile.TemporaryDirectory() as folder:
        project = fp.to_verilog(design, folder, interval=cycles)
        begun = spent()
        project.synthesize(family, workers=1)
        synthesised = spent()
        rng = np.random.default_rng(seed)
        inputs = [rng.normal(0, 1, (SAMPLES, *layer.output_shape)) for layer in design.layers if not layer.inputs]
        simulate(project, inputs if len(inputs) > 1 else inputs[0])
        ended = spent()
    sizes = (len(project.layers), lut, ff, price.interval_cycles, SAMPLES)
    return (seed, family, *sizes, round(synthesised - begun, 2), round(ended - synthesised, 2))


def add_rows(count: int) -> None:
    """Append `count` rows of networks that are not in the file."""
    known = {int(row["seed"]) for row in read_rows()}
    seed = 100_000
    while count:
        seed += 1
        if seed in known or (row := measure(seed, FAMILIES[seed % len(FAMILIES)])) is None:
            continue
        new = not ROWS.exists()
        with ROWS.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(COLUMNS)
            writer.writerow(row)
        print(*row, flush=True)
        count -= 1


def read_rows() -> list[dict[str, str]]:
    """The rows measured so far."""
    if not ROWS.exists():
        return []
    with ROWS.open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, required=True)
    asked = parser.parse_args()
    add_rows(asked.networks)


if __name__ == "__main__":
    main()
