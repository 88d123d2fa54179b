"""Made-up runs that look like real ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from fpgaprune.report import Accuracy, Check, LayerReport, LinkSummary, RunReport, StageTime
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


def estimate(scale: float = 1.0, **changes: Any) -> dict[str, Any]:
    """An estimate in the JSON form of fpgaprune.estimate."""

    def figures(lut: float) -> dict[str, Any]:
        values = {"lut": round(lut), "ff": round(lut / 2), "dsp": 7, "bram18": None}
        return {key: {"value": v, "low": v and v - 1, "high": v and v + 1} for key, v in values.items()}

    layers = [
        {
            "name": name,
            "kind": "Conv2D",
            "multiplications": {"total": 90, "zero": 40, "power_of_two": 20, "few_digits": 20, "many_digits": 10},
            "csynth": figures(2000 * scale),
            "synth": figures(1000 * scale),
            "latency_cycles": 77,
            "interval_cycles": None,
        }
        for name in ("conv1", "conv2")
    ]
    return {
        "design": "digits",
        "target": {},
        "total": {"csynth": figures(4000 * scale), "synth": figures(2000 * scale)},
        "latency_cycles": 1234,
        "interval_cycles": 64,
        "latency_us": 6.17,
        "fits": True,
        "binding": {"resource": "lut", "layer": "conv2", "used": 2000 * scale, "capacity": 53200, "stage": "synth"},
        "notes": ["a note of the estimate"],
        "layers": layers,
        **changes,
    }


def run_report(**changes: Any) -> RunReport:
    """A whole run."""
    fields: dict[str, Any] = {
        "name": "digits",
        "target": TARGET,
        "accuracy": Accuracy(0.975, 0.9722, 360, "handwritten digits"),
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
    return RunReport(**{**fields, **changes})
