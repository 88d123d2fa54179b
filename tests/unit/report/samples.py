"""Made-up runs that look like real ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import structs

from fpgaprune.measure import Estimate, Figure, LayerEstimate, Measured, Multiplications, Resources
from fpgaprune.report import Check, LayerReport, LinkSummary, Metric, RunReport, StageTime
from fpgaprune.target import Part, Target

PART = Part("xc7z020", "Zynq-7000", "AMD", 53200, 106400, 220, 280, 0, "a data sheet", "2018-07-02")
TARGET = Target(PART, "xc7z020clg400-1")


def conv(
    name: str, shape: tuple[int, int], kept: float = 0.5, removed: tuple[int, ...] = (), seed: int = 1
) -> LayerReport:
    """A convolution with random kernels kept and the output channels `removed`."""
    mask = np.random.default_rng(seed).random(shape) < kept
    mask[:, list(removed)] = False
    left = (shape[0], shape[1] - len(removed))
    count, size = int(mask.sum()), mask.size
    return LayerReport(
        name, "Conv2D", count, size - count, shape, left, 9 * size, 9 * left[0] * left[1], mask, (), removed
    )


def resources(lut: float) -> Resources[Figure]:
    """Figures whose block RAMs are unknown."""
    counts = {"lut": round(lut), "ff": round(lut / 2), "dsp": 7}
    return Resources(**{name: Figure(count, count - 1, count + 1) for name, count in counts.items()})


def layer(name: str, scale: float = 1.0) -> LayerEstimate:
    """A convolution."""
    counts = Multiplications(90, 40, 20, 20, 10)
    return LayerEstimate(name, "Conv2D", counts, resources(2000 * scale), resources(1000 * scale), 77, 64)


def estimate(scale: float = 1.0, **changes: Any) -> Estimate:
    """An estimate of two convolutions."""
    made = Estimate(
        design="digits",
        target=TARGET,
        total={"csynth": resources(4000 * scale), "synth": resources(2000 * scale)},
        layers=(layer("conv1", scale), layer("conv2", scale)),
        latency_cycles=1234,
        interval_cycles=64,
        notes=("a note of the estimate",),
    )
    return structs.replace(made, **changes)


def run_report(**changes: Any) -> RunReport:
    """A whole run."""
    fields: dict[str, Any] = {
        "name": "digits",
        "target": TARGET,
        "metric": Metric(
            "accuracy", 0.975, 0.9722, 360, "handwritten digits", lost=0.0028, lost_error=0.004, max_loss=0.02
        ),
        "layers": [conv("conv1", (1, 16)), conv("conv2", (16, 32), removed=(3, 5))],
        "before": estimate(),
        "after": estimate(0.4),
        "certificate": [LinkSummary("memory", 2, 300, 0), LinkSummary("hls", left_out="not asked for")],
        "checks": [
            Check("ONNX against Keras", "largest difference", 2.5e-7, 1e-5, samples=360),
            Check("C simulation against Keras", "same class", left_out="g++ not found", limit=0.99, at_least=True),
        ],
        "stages": [StageTime("train", 12.5), StageTime("select", None, "unchanged")],
        "versions": {"keras": "3.15.0", "fpgaprune": "0.1.0"},
        "seed": 1,
    }
    if changes.get("measured"):
        changes["measured"] = Measured.from_json(changes["measured"])
    return RunReport(**{**fields, **changes})


def measured(**changes: Any) -> dict[str, Any]:
    """What open tools found of the run, in the form of `measure.json`."""

    def cells(lut: int) -> dict[str, Any]:
        return {"lut": lut, "ff": lut // 2, "carry": 9, "dsp": 0, "bram18": 1, "uram": 0, "own": {}, "types": {}}

    layers = [
        {"layer": name, "module": name, "kept": kept, "dropped": 9, "seconds": 1.5, "left_out": "", "cells": cells(lut)}
        for name, kept, lut in (("conv1", 70, 812), ("conv2", 300, 4321), ("dense", 50, 222))
    ]
    whole = {**layers[0], "layer": None, "module": "top", "cells": cells(5432)}
    synthesis = {
        "stage": "synth(open)",
        "family": "xc7",
        "tool": "Yosys 0.70",
        "note": "lut counts 6-input LUTs",
        "layers": layers,
        "whole": whole,
        "total": whole["cells"],
        "total_of": "whole design, flattened",
    }
    used = {"lut": 9012, "ff": 3000, "dsp": 0, "bram18": 2}
    route = {
        "stage": "route(ecp5)",
        "device": "lfe5u-25f",
        "package": "CABGA381",
        "speed": 6,
        "tool": "nextpnr-ecp5 0.11",
        "target_mhz": 200.0,
        "fmax_mhz": 91.25,
        "fmax_range_mhz": [88.0, 95.5],
        "used": used,
        "capacity": {"lut": 24288, "ff": 24288, "dsp": 28, "bram18": 56},
        "runs": [
            {"seed": seed, "fmax_mhz": mhz, "used": used, "seconds": 9.0, "left_out": ""}
            for seed, mhz in ((1, 88.0), (2, 91.25), (3, 95.5))
        ],
    }
    kernels = [{"layer": "conv1", "kept": 8, "total": 16}, {"layer": "conv2", "kept": 200, "total": 512}]
    simulation = {
        "tool": "verilator 5.48.0",
        "samples": 360,
        "outputs_unlike_emulation": 0,
        "metric": 0.975,
        "latency_cycles": 253,
        "interval_cycles": 100,
    }
    found = {"format": 1, "part_family": "xc7", "kernels": kernels, "simulation": simulation, "bitstream": None}
    return {**found, "synth(open)": {"xc7": synthesis}, "route(ecp5)": route, **changes}
