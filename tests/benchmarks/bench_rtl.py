"""Seconds to write the Verilog of a 28 x 28 network, and images per minute of its simulation.

Two convolutions of 3 x 3 with 32 channels each, the second with a share of its kernels, a pool and a Dense layer of 10.
Run with `python tests/benchmarks/bench_rtl.py SHARE_OF_KERNELS_KEPT [IMAGES]`; without arguments it takes a tenth of
the kernels and 20 images, which shows that it runs. It needs Verilator and g++.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import fpgaprune as fp
import fpgaprune.design as op
from fpgaprune.design import LayerSpec
from fpgaprune.fabric import simulate
from fpgaprune.values import FixedType

ACTIVATION = "ufixed<8,3,RND,SAT>"


def network(kept: float) -> fp.Design:
    """Random weights of 6 bits; `kept` of the second convolution's kernels are not zero."""
    rng = np.random.default_rng(0)
    layers: list[LayerSpec] = []

    def add(
        name: str, kind: op.Operation, source: str | None, shape: tuple[int, ...], types: dict[str, str], **fields: Any
    ) -> None:
        parsed = {role: FixedType.parse(text) for role, text in types.items()}
        layers.append(LayerSpec(name, (source,) if source else (), shape, parsed, operation=kind, **fields))

    def convolution(number: int, source: str, channels: int, kind: str, share: float) -> None:
        add(f"pad{number}", op.Pad((1, 1, 1, 1)), source, (30, 30, channels), {"result": kind})
        weight = rng.integers(-31, 32, (3, 3, channels, 32)) * (rng.random((channels, 32)) < share)
        add(
            f"conv{number}",
            op.Convolution(op.Window((3, 3))),
            f"pad{number}",
            (28, 28, 32),
            {"result": "fixed<16,6>", "weight": "fixed<6,1>", "bias": "fixed<16,6>", "accum": "fixed<24,10>"},
            weights={"weight": weight, "bias": rng.integers(-100, 100, 32)},
            strategy="latency",
        )
        add(f"relu{number}", op.Map("relu"), f"conv{number}", (28, 28, 32), {"result": ACTIVATION})

    add("x", op.Input(), None, (28, 28, 1), {"result": "ufixed<8,0>"})
    convolution(1, "x", 1, "ufixed<8,0>", 1.0)
    convolution(2, "relu1", 32, ACTIVATION, kept)
    pool = op.Pooling(op.Window((2, 2), (2, 2)), largest=True)
    add("pool", pool, "relu2", (14, 14, 32), {"result": ACTIVATION, "accum": ACTIVATION})
    add("flatten", op.Reshape(), "pool", (6272,), {"result": ACTIVATION})
    add(
        "dense",
        op.Dense(),
        "flatten",
        (10,),
        {"result": "fixed<16,7>", "weight": "fixed<6,1>", "bias": "fixed<16,6>", "accum": "fixed<30,16>"},
        weights={"weight": rng.integers(-31, 32, (6272, 10)), "bias": rng.integers(-100, 100, 10)},
        strategy="latency",
    )
    return fp.Design("image28", tuple(layers), ("dense",))


def main(kept: float, images: int = 1000) -> None:
    design = network(kept)
    x = np.random.default_rng(1).random((images, 28, 28, 1))
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        project = fp.to_verilog(design, folder)
        written = time.perf_counter() - start
        start = time.perf_counter()
        simulate(project, x[:1])
        built = time.perf_counter() - start
        start = time.perf_counter()
        found = simulate(project, x, processes=os.cpu_count() or 1)
        ran = time.perf_counter() - start
        largest = max((Path(folder) / name).stat().st_size for name in project.files)
    exact = bool((found.output.astype(np.float32) == fp.emulate(design, x)).all())
    memory = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"kernels kept {kept:.0%}: written in {written:.1f} s (goal 180)")
    print(f"largest file {largest / 1e3:.0f} kB (goal 200)")
    print(f"simulator built in {built:.0f} s; {images * 60 / ran:.0f} images a minute (goal 1000), bits equal: {exact}")
    print(
        f"latency {found.latency_cycles} clocks, interval {found.interval_cycles}; memory at most {memory / 1e6:.2f} GB"
    )


if __name__ == "__main__":
    main(*(kind(text) for kind, text in zip((float, int), sys.argv[1:] or ("0.1", "20"), strict=False)))
