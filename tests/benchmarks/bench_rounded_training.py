"""How much longer an epoch takes if the network rounds as its hardware does.

    python tests/benchmarks/bench_rounded_training.py [--full]

Each network of `bench_fit_against.py`, and ResNet8 with `--full`, is trained as it is and as `fp.quantize` makes it,
with 4-bit and with 8-bit weights and activations, on random samples, epoch by epoch in turn. Milliseconds of the
fastest epoch, and the median of the ratios. The seconds of `quantize`, which chooses the types, stand beside them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import keras
import numpy as np
from bench_fit_against import NETWORKS
from networks import resnet8

import fpgaprune as fp

TARGET = fp.Target.of("xc7z020clg400-1")
BITS = (8, 4)


def main() -> None:
    """The table, a row for each network and width."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    full = parser.parse_args().full
    networks = {name: (keras.Sequential(build(), name=name), 256) for name, (build, _) in NETWORKS.items()}
    if full:
        networks["resnet8"] = resnet8().model, 64
    print("| network | bits | types, s | epoch, ms | the same, rounding, ms | ratio |", flush=True)
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    for name, (model, batch_size) in networks.items():
        for bits in BITS:
            print(row(name, model, bits, batch_size, 16 if full else 2), flush=True)


def row(name: str, model: Any, bits: int, batch_size: int, steps: int) -> str:
    """One network in one width."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(batch_size * steps, *model.input_shape[1:])).astype("float32")
    y = rng.integers(0, model.output_shape[-1], len(x))
    began = time.perf_counter()
    rounded = fp.quantize(model, TARGET, x[:512], fp.Precision(bits, bits))
    types = time.perf_counter() - began
    plain = keras.models.clone_model(model)
    for one in (plain, rounded):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        one.compile(keras.optimizers.Adam(1e-3), loss, steps_per_execution=steps)
        epoch(one, x, y, batch_size)
    pairs = [(epoch(plain, x, y, batch_size), epoch(rounded, x, y, batch_size)) for _ in range(7)]
    ratio = statistics.median(second / first for first, second in pairs)
    first, second = (1e3 * min(times) for times in zip(*pairs, strict=True))
    return f"| {name} | {bits} | {types:.1f} | {first:.0f} | {second:.0f} | {ratio:.2f} |"


def epoch(model: Any, x: np.ndarray, y: np.ndarray, batch_size: int) -> float:
    """Seconds of one epoch."""
    began = time.perf_counter()
    model.fit(x, y, batch_size=batch_size, shuffle=False, verbose=0)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
