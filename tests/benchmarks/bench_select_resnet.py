"""Seconds that `fp.select` takes over ResNet50 for each criterion without data; goal: 5 at most.

    python tests/benchmarks/bench_select_resnet.py                  # each once
    python tests/benchmarks/bench_select_resnet.py --repeats 3

The least of the repeats counts, as CPU time of the process and by the wall clock: a busy machine lengthens the second.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).parents[2]))

import keras

import fpgaprune as fp

CASES = (
    *(
        (criterion, granularity)
        for criterion in ("l1", "l2", "random")
        for granularity in ("weight", "kernel", "filter")
    ),
    ("bn_scale", "filter"),
    ("geometric_median", "filter"),
    ("l1", "2:4"),
    ("l1", "block(4, 4)"),
    ("l1", "multiplier(resource_unrolled, 64)"),
)


def main() -> None:
    """A line for each criterion and granularity."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=1)
    repeats = parser.parse_args().repeats
    model = keras.applications.ResNet50(weights=None)
    print("| criterion | granularity | CPU s | wall s |\n|---|---|---:|---:|")
    for criterion, granularity in CASES:
        taken = [seconds(model, criterion, granularity) for _ in range(repeats)]
        cpu, wall = (min(times) for times in zip(*taken, strict=True))
        print(f"| {criterion} | {granularity} | {cpu:.2f} | {wall:.2f} |", flush=True)


def seconds(model: keras.Model, criterion: str, granularity: str) -> tuple[float, float]:
    """CPU and wall seconds of one selection."""
    cpu, wall = time.process_time(), time.perf_counter()
    fp.select(model, None if ":" in granularity else 0.5, granularity, criterion)
    return time.process_time() - cpu, time.perf_counter() - wall


if __name__ == "__main__":
    main()
