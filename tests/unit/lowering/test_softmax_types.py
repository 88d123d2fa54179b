"""A probability of the hardware is within a stated bound, whatever the classes and the width of the logits."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.backends import as_built
from fpgaprune.design import Design
from fpgaprune.emulate import trace
from fpgaprune.hls import layer_of
from fpgaprune.lowering.softmax_types import BOUND, softmax_table_sizes, softmax_types
from fpgaprune.values import FixedType

CLASSES = (2, 3, 4, 7, 10, 15, 16, 31, 33, 64)
WIDTHS = (6, 8, 10, 12, 16, 20, 24)
RESULT = FixedType(16, 1, False, "RND", "SAT")


def design(logits: FixedType, classes: int, backend: str = "Vitis", io_type: str = "io_parallel") -> Design:
    """A softmax behind an input, as `to_hls` lays it out."""
    types = softmax_types(classes, backend)
    attributes = {"axis": -1, "activation": "softmax"}
    sizes = softmax_table_sizes(types, 1024, logits)
    attributes |= {"exp_table_size": sizes["exp_table_size"], "inv_table_size": sizes["inverse_table_size"]}
    layers = (
        layer_of("x", "Input", (), (classes,), {"result": logits}),
        layer_of("soft", "Softmax", ("x",), (classes,), {**types, "result": RESULT}, attributes=attributes),
    )
    return as_built(Design("net", layers, ("soft",), io_type=io_type, backend=backend))


def logits_of(kind: FixedType, classes: int, rng: np.random.Generator, samples: int = 400) -> np.ndarray:
    """Logits over all that `kind` holds, near one another, with one that stands out, and all alike."""
    low, high = kind.raw_min * kind.lsb, kind.raw_max * kind.lsb
    spread = rng.uniform(0, 1, (samples, 1)) ** 3
    x = rng.uniform(low, high, (samples, classes)) * spread
    x[:60, 0] += rng.uniform(0, high, 60)
    x[0] = x[0, 0]
    return kind.to_float(kind.to_raw(np.clip(x, low, high))).astype(np.float32)


def exact(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def require_within_the_bound(backend: str, io_type: str, classes: int, width: int, rng: np.random.Generator) -> None:
    for integer, signed in ((3, True), (5, True), (7, True), (4, False)):
        if integer > width:
            continue
        kind = FixedType(width, integer, signed)
        x = logits_of(kind, classes, rng)
        off = np.abs(fp.emulate(design(kind, classes, backend, io_type), x) - exact(x)).max()
        assert off < BOUND + RESULT.lsb, f"{backend}, {classes} classes of {kind}: off by {off}"


BACKENDS = ("Vitis", "Vivado", "VivadoAccelerator")


@pytest.mark.parametrize(
    ("backend", "io_type", "classes", "width"),
    [
        ("Vitis", "io_parallel", 2, 6),
        ("Vitis", "io_stream", 10, 24),
        ("Vivado", "io_stream", 64, 8),
    ],
)
def test_every_probability_is_within_the_bound(backend, io_type, classes, width):
    require_within_the_bound(backend, io_type, classes, width, np.random.default_rng(classes))


@pytest.mark.slow
@pytest.mark.parametrize("io_type", ["io_parallel", "io_stream"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_probability_of_any_classes_and_widths_is_within_the_bound(backend, io_type):
    for classes, width in product(CLASSES, WIDTHS):
        require_within_the_bound(backend, io_type, classes, width, np.random.default_rng(classes))


def test_the_tables_of_hls4ml_are_beyond_the_bound():
    usual = FixedType(18, 8, True, "RND", "SAT")
    made = design(FixedType(16, 4), 2)
    soft = made["soft"]
    types = {role: usual for role in soft.types if role not in ("result", "inp_norm")} | {"result": RESULT}
    operation = replace(soft.operation, exp_table_size=1024, inverse_table_size=1024)
    old = replace(made, layers=(made["x"], replace(soft, types=types, operation=operation)))
    x = np.array([[1.0, 0.0], [0.0, -1.5], [7.5, -7.5]], np.float32)
    off = np.abs(fp.emulate(old, x) - exact(x))
    assert off[1].max() > 0.1  # the sum, 1.22, is read as 1
    # A distance of 15 wraps around to 7.
    assert trace(old, x)["soft"][2, 1] > 5e-4


def test_what_has_other_templates_keeps_the_types_of_hls4ml():
    assert softmax_types(10, "Catapult") == {}
    assert softmax_table_sizes({"result": RESULT}, 1024, FixedType(16, 6)) == {"table_size": 1024}
    assert softmax_table_sizes({"result": RESULT}, 1024, FixedType(8, 4)) == {"table_size": 256}
