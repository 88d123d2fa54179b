"""Whole layers of the emulator against the loops of hls4ml's templates, one number at a time."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.backends import as_built
from fpgaprune.design import Design, LayerSpec
from fpgaprune.emulate import trace
from fpgaprune.errors import DesignError
from fpgaprune.hls import layer_of
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType

seeds = st.integers(0, 2**31)


def examples(count):
    return settings(derandomize=True, deadline=None, max_examples=count)


def draw(rng: np.random.Generator, width: tuple[int, int], integer: tuple[int, int]) -> FixedType:
    return FixedType(
        int(rng.integers(*width)),
        int(rng.integers(*integer)),
        bool(rng.random() < 0.7),
        str(rng.choice(ROUNDING_MODES)),
        str(rng.choice(OVERFLOW_MODES)),
    )


class Number:
    """One variable of a fixed-point type: assignment, and nothing else, loses anything."""

    def __init__(self, kind: FixedType, value: Any = 0) -> None:
        self.kind = kind
        self.set(value)

    def set(self, value: Any) -> Number:
        exact = value.value if isinstance(value, Number) else Fraction(value)
        scaled = exact * Fraction(2) ** self.kind.fraction
        low, part = math.floor(scaled), scaled - math.floor(scaled)
        half = Fraction(1, 2)
        raw = (
            low
            + {
                "TRN": False,
                "TRN_ZERO": scaled < 0 and part > 0,
                "RND": part >= half,
                "RND_ZERO": part > half or (part == half and scaled < 0),
                "RND_INF": part > half or (part == half and scaled > 0),
                "RND_MIN_INF": part > half,
                "RND_CONV": part > half or (part == half and low % 2 == 1),
            }[self.kind.rounding]
        )
        self.raw = int(self.kind.overflowed(np.array([raw]))[0])
        self.value = Fraction(self.raw) / Fraction(2) ** self.kind.fraction
        return self


def run(layer: LayerSpec, source: FixedType, raw: np.ndarray, io_type: str) -> np.ndarray:
    entry = layer_of("x", "Input", (), raw.shape[1:], {"result": source})
    design = as_built(Design("net", (entry, layer), (layer.name,), io_type))
    values = trace(design, source.to_float(raw).astype(np.float32), [layer.name])[layer.name]
    return np.ldexp(values, layer.types["result"].fraction).astype(np.int64)


def data(rng: np.random.Generator, kind: FixedType, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(kind.raw_min, kind.raw_max, shape, endpoint=True)


def template_sum(pairs: list[tuple[Fraction, Fraction]], bias: Number, accum: FixedType, result: FixedType) -> int:
    total = Number(accum, bias)
    for x, w in pairs:
        total.set(total.value + Number(accum, x * w).value)
    return Number(result, total).raw


@examples(60)
@given(seeds, st.sampled_from(["latency", "resource"]))
def test_dense_layers_add_in_the_order_of_the_templates_loops(seed, strategy):
    rng = np.random.default_rng(seed)
    n_in, n_out = int(rng.choice([2, 4, 6])), int(rng.integers(1, 4))
    source, weight, bias = (draw(rng, (2, 8), (0, 4)) for _ in range(3))
    accum, result = draw(rng, (3, 14), (0, 8)), draw(rng, (3, 12), (0, 6))
    # Divisors of n_in, or multiples that divide all the products.
    allowed = [r for r in range(1, n_in * n_out + 1) if n_in % r == 0 or (r % n_in == 0 and (n_in * n_out) % r == 0)]
    reuse = int(rng.choice(allowed)) if strategy == "resource" else 1
    w, b, x = data(rng, weight, (n_in, n_out)), data(rng, bias, (n_out,)), data(rng, source, (2, n_in))
    layer = layer_of(
        "d", "Dense", ("x",), (n_out,), {"result": result, "weight": weight, "bias": bias, "accum": accum},
        {"weight": w, "bias": b}, reuse_factor=reuse, strategy=strategy,
    )  # fmt: skip
    got = run(layer, source, x, "io_parallel")
    flat = w.T.ravel()
    for sample in range(2):
        pairs: list[list[tuple[Fraction, Fraction]]] = [[] for _ in range(n_out)]
        # The weights are stored with the outputs first; cycle `first` takes every reuse-th of them.
        for first in range(reuse):
            for place in range(first, n_in * n_out, reuse):
                value = Fraction(int(x[sample, place % n_in])) / Fraction(2) ** source.fraction
                factor = Fraction(int(flat[place])) / Fraction(2) ** weight.fraction
                pairs[place // n_in].append((value, factor))
        for out in range(n_out):
            start = Number(bias, Fraction(int(b[out])) / Fraction(2) ** bias.fraction)
            assert got[sample, out] == template_sum(pairs[out], start, accum, result)


@examples(40)
@given(seeds, st.booleans())
def test_convolutions_are_sums_over_windows(seed, depthwise):
    rng = np.random.default_rng(seed)
    # Eight channels and more are added place by place, fewer window by window.
    channels = int(rng.choice([1, 2, 9]))
    filters = channels if depthwise else int(rng.integers(1, 3))
    height, width, kh, kw, sh, sw = (
        4,
        5,
        *(int(v) for v in rng.integers(1, 4, 2)),
        *(int(v) for v in rng.integers(1, 3, 2)),
    )
    pad = [int(v) for v in rng.integers(0, 2, 4)]
    source, weight, bias = (draw(rng, (2, 7), (0, 4)) for _ in range(3))
    accum, result = draw(rng, (3, 16), (0, 9)), draw(rng, (3, 12), (0, 6))
    w = data(rng, weight, (kh, kw, channels, 1 if depthwise else filters))
    b, x = data(rng, bias, (filters,)), data(rng, source, (1, height, width, channels))
    out_h, out_w = (height + pad[0] + pad[1] - kh) // sh + 1, (width + pad[2] + pad[3] - kw) // sw + 1
    names = dict(zip(("pad_top", "pad_bottom", "pad_left", "pad_right"), pad, strict=True))
    attributes = {
        "filt_height": kh, "filt_width": kw, "stride_height": sh, "stride_width": sw, "n_filt": filters, **names
    }  # fmt: skip
    types = {"result": result, "weight": weight, "bias": bias, "accum": accum}
    kind = "DepthwiseConv2D" if depthwise else "Conv2D"
    layer = layer_of(
        "c", kind, ("x",), (out_h, out_w, filters), types, {"weight": w, "bias": b}, {}, attributes, strategy="latency"
    )
    got = run(layer, source, x, "io_parallel")[0]
    image = np.pad(x[0], ((pad[0], pad[1]), (pad[2], pad[3]), (0, 0)))
    for row, column, f in [(0, 0, 0), (out_h - 1, out_w - 1, filters - 1), (out_h // 2, out_w // 2, 0)]:
        pairs = []
        for i in range(kh):
            for j in range(kw):
                for c in [f] if depthwise else range(channels):
                    value = Fraction(int(image[row * sh + i, column * sw + j, c])) / Fraction(2) ** source.fraction
                    factor = Fraction(int(w[i, j, c, 0 if depthwise else f])) / Fraction(2) ** weight.fraction
                    pairs.append((value, factor))
        start = Number(bias, Fraction(int(b[f])) / Fraction(2) ** bias.fraction)
        assert got[row, column, f] == template_sum(pairs, start, accum, result)


@examples(60)
@given(seeds, st.sampled_from(["Max", "Average"]), st.booleans())
def test_pools_are_those_of_the_templates(seed, operation, streamed):
    rng = np.random.default_rng(seed)
    source, accum, result = draw(rng, (2, 9), (0, 5)), draw(rng, (3, 12), (0, 7)), draw(rng, (3, 10), (0, 6))
    size = int(rng.integers(1, 5))
    x = data(rng, source, (1, 3 * size, 1))
    attributes = {"pool_op": operation, "pool_width": size, "stride_width": size, "pad_left": 0, "pad_right": 0}
    layer = layer_of("p", "Pooling1D", ("x",), (3, 1), {"result": result, "accum": accum}, {}, {}, attributes)
    got = run(layer, source, x, "io_stream" if streamed else "io_parallel")[0, :, 0]
    for place in range(3):
        values = [Fraction(int(v)) / Fraction(2) ** source.fraction for v in x[0, place * size : (place + 1) * size, 0]]
        if operation == "Max":
            largest = max(Number(accum, v).value for v in values) if streamed else Number(accum, max(values)).value
            assert got[place] == Number(result, largest).raw
            continue
        total = tree([Number(accum, v) for v in values]) if streamed else Number(accum)
        for value in [] if streamed else values:
            total.set(total.value + value)
        quotient = int(Fraction(total.raw, size))
        assert got[place] == Number(result, Fraction(quotient) / Fraction(2) ** accum.fraction).raw


def tree(numbers: list[Number]) -> Number:
    if len(numbers) == 1:
        return numbers[0]
    left = 2 ** math.floor(math.log2(len(numbers) - 1))
    return Number(numbers[0].kind, tree(numbers[:left]).value + tree(numbers[left:]).value)


@examples(60)
@given(seeds)
def test_batch_normalization_is_exact_until_it_is_assigned(seed):
    rng = np.random.default_rng(seed)
    source, scale, bias, result = (draw(rng, (2, 9), (-1, 5)) for _ in range(4))
    x, s, b = data(rng, source, (2, 3)), data(rng, scale, (3,)), data(rng, bias, (3,))
    types = {"result": result, "scale": scale, "bias": bias}
    got = run(layer_of("n", "BatchNormalization", ("x",), (3,), types, {"scale": s, "bias": b}), source, x, "io_stream")
    for sample, place in np.ndindex(2, 3):
        product = Fraction(int(x[sample, place]) * int(s[place])) / Fraction(2) ** (source.fraction + scale.fraction)
        wanted = Number(result, product + Fraction(int(b[place])) / Fraction(2) ** bias.fraction)
        assert got[sample, place] == wanted.raw


@pytest.mark.parametrize(
    ("name", "function", "span"),
    [
        ("sigmoid", lambda v: 1 / (1 + math.exp(-v)), 16),
        ("tanh", math.tanh, 8),
        ("softplus", lambda v: math.log1p(math.exp(v)), 16),
        ("softsign", lambda v: v / (1 + abs(v)), 16),
    ],
)
def test_tables_hold_the_function_within_a_place_and_their_ends_go_on(name, function, span):
    source, table = FixedType(12, 6), FixedType(18, 8, True, "RND", "SAT")
    x = np.arange(source.raw_min, source.raw_max + 1).reshape(1, -1)
    attributes = {"activation": name, "table_size": 1024}
    layer = layer_of("a", "Activation", ("x",), x.shape[1:], {"result": table, "table": table}, {}, {}, attributes)
    got = table.to_float(run(layer, source, x, "io_parallel"))[0]
    reals = source.to_float(x)[0]
    # The index is cut towards zero, so the entry is that of a place up to one step nearer to zero.
    steps = np.trunc(reals * 1024 / span)
    places = np.clip(steps, -512, 511) * span / 1024
    assert np.abs(got - [function(float(v)) for v in places]).max() <= table.lsb


def test_a_depthwise_layer_of_strategy_resource_is_emulated_as_a_stream_only():
    kind = FixedType(6, 6)
    types = {"result": kind, "weight": kind, "bias": kind, "accum": FixedType(12, 12)}
    weights = {"weight": np.array([[2, 3]]), "bias": np.array([1, -1])}
    attributes = {
        "filt_width": 1, "stride_width": 1, "n_filt": 2, "pad_left": 0, "pad_right": 0
    }  # fmt: skip
    layer = layer_of(
        "d", "DepthwiseConv1D", ("x",), (3, 2), types, weights, {}, attributes, strategy="resource", reuse_factor=1
    )
    x = np.arange(6).reshape(1, 3, 2)
    assert np.array_equal(run(layer, kind, x, "io_stream"), x * [2, 3] + [1, -1])
    with pytest.raises(DesignError, match="strategy 'resource' has no template in io_parallel"):
        run(layer, kind, x, "io_parallel")
