"""Merges, activations, moves and pools of the emulator against loops over single numbers, exact as fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpgaprune.backends import as_built
from fpgaprune.design import Design
from fpgaprune.emulate import emulate, trace
from fpgaprune.errors import DesignError
from fpgaprune.hls import layer_of
from fpgaprune.values import FixedType

from .test_emulate_layers import Number, data, draw, examples, run, seeds


def real(raw, kind: FixedType) -> Fraction:
    return Fraction(int(raw)) / Fraction(2) ** kind.fraction


def assigned(kind: FixedType, value: Fraction) -> int:
    return Number(kind, value).raw


MERGES = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "average": lambda a, b: (a + b) / 2,
    "maximum": max,
    "minimum": min,
}


@examples(50)
@given(seeds, st.sampled_from(list(MERGES)), st.sampled_from([(6, 6), (6, 3), (2, 6)]))
def test_merges_are_computed_number_by_number_and_the_smaller_input_is_repeated(seed, name, sizes):
    rng = np.random.default_rng(seed)
    kinds = [draw(rng, (2, 9), (0, 5)) for _ in sizes]
    result = draw(rng, (3, 12), (0, 6))
    raws = [data(rng, kind, (3, size)) for kind, size in zip(kinds, sizes, strict=True)]
    entries = [
        layer_of(f"x{place}", "Input", (), (size,), {"result": kind})
        for place, (kind, size) in enumerate(zip(kinds, sizes, strict=True))
    ]
    layer = layer_of("m", "Merge", ("x0", "x1"), (2, 3), {"result": result}, attributes={"op": name.title()})
    design = as_built(Design("net", (*entries, layer), ("m",), "io_parallel"))
    values = emulate(design, [kind.to_float(raw).astype(np.float32) for kind, raw in zip(kinds, raws, strict=True)])
    got = np.ldexp(values, result.fraction).astype(np.int64).reshape(3, 6)
    for sample, place in np.ndindex(3, 6):
        a, b = (real(raw[sample, place % size], kind) for raw, kind, size in zip(raws, kinds, sizes, strict=True))
        assert got[sample, place] == assigned(result, MERGES[name](a, b))


ALPHA = FixedType(10, 3)
ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": lambda x: max(x, Fraction(0)),
    "relu6": lambda x: min(max(x, Fraction(0)), Fraction(6)),
    "leaky_relu": lambda x: x if x > 0 else real(-45, ALPHA) * x,
    "thresholded_relu": lambda x: x if x > real(-45, ALPHA) else Fraction(0),
}


@examples(50)
@given(seeds, st.sampled_from(list(ACTIVATIONS)))
def test_activations_without_a_table_are_computed_number_by_number(seed, name):
    rng = np.random.default_rng(seed)
    source, result = draw(rng, (2, 9), (-2, 7)), draw(rng, (3, 12), (0, 6))
    x = np.arange(source.raw_min, source.raw_max + 1).reshape(1, -1)
    attributes = {"activation": name.title(), "activ_param": float(real(-45, ALPHA))}
    types = {"result": result, "param": ALPHA}
    layer = layer_of("a", "Activation", ("x",), x.shape[1:], types, {}, {}, attributes)
    got = run(layer, source, x, "io_parallel")[0]
    assert got.tolist() == [assigned(result, ACTIVATIONS[name](real(each, source))) for each in x[0]]


@examples(30)
@given(seeds)
def test_prelu_has_an_alpha_for_each_value(seed):
    rng = np.random.default_rng(seed)
    source, alpha, result = draw(rng, (2, 9), (0, 5)), draw(rng, (2, 9), (0, 5)), draw(rng, (3, 12), (0, 6))
    x, a = data(rng, source, (3, 2, 5)), data(rng, alpha, (2, 5))
    types = {"result": result, "param": alpha}
    got = run(layer_of("a", "PReLU", ("x",), (2, 5), types, {"param": a}), source, x, "io_parallel")
    for sample, row, place in np.ndindex(*x.shape):
        value = real(x[sample, row, place], source)
        wanted = value if value > 0 else value * real(a[row, place], alpha)
        assert got[sample, row, place] == assigned(result, wanted)


@examples(30)
@given(seeds, st.booleans())
def test_batch_normalization_repeats_its_scales_over_the_map(seed, by_channel):
    rng = np.random.default_rng(seed)
    source, scale, bias, result = (draw(rng, (2, 9), (-1, 5)) for _ in range(4))
    x = data(rng, source, (2, 3, 4))
    size = (4,) if by_channel else (3, 4)
    s, b = data(rng, scale, size), data(rng, bias, size)
    types = {"result": result, "scale": scale, "bias": bias}
    layer = layer_of("n", "BatchNormalization", ("x",), (3, 4), types, {"scale": s, "bias": b})
    got = run(layer, source, x, "io_parallel")
    s, b = np.broadcast_to(s, (3, 4)), np.broadcast_to(b, (3, 4))
    for sample, row, place in np.ndindex(*x.shape):
        exact = real(x[sample, row, place], source) * real(s[row, place], scale) + real(b[row, place], bias)
        assert got[sample, row, place] == assigned(result, exact)


@pytest.mark.parametrize("sizes", [2, 6, 5])
def test_scales_that_fit_neither_the_channels_nor_the_map_are_refused(sizes):
    kind = FixedType(8, 4)
    weights = {"scale": np.ones(sizes, np.int64), "bias": np.ones(sizes, np.int64)}
    layer = layer_of(
        "n", "BatchNormalization", ("x",), (3, 4), dict.fromkeys(("result", "scale", "bias"), kind), weights
    )
    with pytest.raises(DesignError, match=rf"{sizes} scales do not fit an input of shape \(3, 4\)"):
        run(layer, kind, np.zeros((1, 3, 4), np.int64), "io_parallel")


@examples(30)
@given(seeds, st.sampled_from(["ZeroPadding", "Cropping"]), st.booleans())
def test_padding_and_cropping_move_each_value_to_its_place(seed, kind, flat):
    rng = np.random.default_rng(seed)
    source, result = draw(rng, (3, 9), (0, 5)), draw(rng, (3, 12), (0, 6))
    top, bottom, left, right = (int(v) for v in rng.integers(0, 3, 4))
    shape = (6, 2) if flat else (5, 6, 2)
    x = data(rng, source, (2, *shape))
    prefix, sign = ("pad", 1) if kind == "ZeroPadding" else ("crop", -1)
    sides = {"left": left, "right": right} if flat else {"left": left, "right": right, "top": top, "bottom": bottom}
    if flat:
        top = bottom = 0
    height, width = (1 if flat else 5) + sign * (top + bottom), 6 + sign * (left + right)
    out = (width, 2) if flat else (height, width, 2)
    attributes = {f"{prefix}_{side}": size for side, size in sides.items()}
    name = f"{kind}{'1D' if flat else '2D'}"
    layer = layer_of("p", name, ("x",), out, {"result": result}, {}, {}, attributes)
    got = run(layer, source, x, "io_stream").reshape(2, height, width, 2)
    image = x.reshape(2, -1, 6, 2)
    for sample, row, column, channel in np.ndindex(*got.shape):
        r, c = row - sign * top, column - sign * left
        inside = 0 <= r < image.shape[1] and 0 <= c < 6
        value = real(image[sample, r, c, channel], source) if inside else Fraction(0)
        assert got[sample, row, column, channel] == assigned(result, value)


@examples(30)
@given(seeds)
def test_transposing_joining_and_repacking_move_each_value_to_its_place(seed):
    rng = np.random.default_rng(seed)
    source, result = draw(rng, (3, 9), (0, 5)), draw(rng, (3, 12), (0, 6))
    x = data(rng, source, (2, 3, 4, 2))
    cast = np.vectorize(lambda raw: assigned(result, real(raw, source)))(x)
    perm = [int(axis) for axis in rng.permutation(3)]
    shape = tuple(x.shape[1 + axis] for axis in perm)
    layer = layer_of("t", "Transpose", ("x",), shape, {"result": result}, {}, {}, {"perm": perm})
    assert np.array_equal(run(layer, source, x, "io_parallel"), cast.transpose(0, *(1 + axis for axis in perm)))
    axis = int(rng.integers(1, 4))
    out = list(x.shape[1:])
    out[axis - 1] *= 2
    layer = layer_of("c", "Concatenate", ("x", "x"), tuple(out), {"result": result}, {}, {}, {"axis": axis})
    assert np.array_equal(run(layer, source, x, "io_parallel"), np.concatenate([cast, cast], axis=axis))
    layer = layer_of("r", "Repack", ("x",), (12, 2), {"result": result})
    assert np.array_equal(run(layer, source, x, "io_stream"), cast.reshape(2, 12, 2))
    layer = layer_of("r", "Reshape", ("x",), (4, 6), {"result": source})
    assert np.array_equal(run(layer, source, x, "io_stream"), x.reshape(2, 4, 6))
    assert np.array_equal(
        run(layer_of("k", "Clone", ("x",), x.shape[1:], {"result": result}), source, x, "io_stream"), cast
    )


@pytest.mark.parametrize(
    ("before", "after", "whole"), [(4, 2, True), (2, 4, True), (4, 4, True), (4, 6, False), (6, 4, False)]
)
def test_packets_of_no_multiple_are_refused(before, after, whole):
    kind = FixedType(8, 4)
    x = np.arange(12 * 1).reshape(1, 12 // before, before)
    layer = layer_of("r", "Repack", ("x",), (12 // after, after), {"result": kind})
    if whole:
        assert run(layer, kind, x, "io_stream").ravel().tolist() == list(range(12))
        return
    with pytest.raises(DesignError, match=f"repacks packets of {before} values wrongly into packets of {after}"):
        run(layer, kind, x, "io_stream")


@pytest.mark.parametrize(("height", "width"), [(6, 8), (2, 4), (3, 12), (9, 5), (7, 7)])
def test_resizing_takes_the_value_at_the_same_share_of_the_way(height, width):
    kind = FixedType(8, 8)
    x = np.arange(3 * 4 * 2).reshape(1, 3, 4, 2)
    layer = layer_of("r", "Resize", ("x",), (height, width, 2), {"result": kind})
    got = run(layer, kind, x, "io_parallel")[0]
    for row, column in np.ndindex(height, width):
        assert got[row, column].tolist() == x[0, row * 3 // height, column * 4 // width].tolist()
    if height % 3 or width % 4:
        with pytest.raises(DesignError, match="io_stream resizes only by whole factors; got "):
            run(layer, kind, x, "io_stream")
    else:
        assert np.array_equal(run(layer, kind, x, "io_stream")[0], got)


def test_resizing_takes_the_share_that_the_template_rounds_up_by_one_of_65536():
    kind = FixedType(8, 8)
    layer = layer_of("r", "Resize", ("x",), (236, 1, 1), {"result": kind})
    got = run(layer, kind, np.arange(3).reshape(1, 3, 1, 1), "io_parallel").ravel()
    assert np.flatnonzero(np.diff(got)).tolist() == [78, 157]


@examples(30)
@given(seeds, st.sampled_from(["Max", "Average"]), st.booleans())
def test_pools_of_windows_that_overlap_and_reach_over_the_edge(seed, operation, signed):
    rng = np.random.default_rng(seed)
    source = FixedType(int(rng.integers(3, 9)), int(rng.integers(0, 4)), signed)
    accum, result = draw(rng, (3, 12), (0, 7)), draw(rng, (3, 10), (0, 6))
    kh, kw, sh, sw = (int(v) for v in rng.integers(1, 4, 4))
    top, bottom, left, right = (int(v) for v in rng.integers(0, 2, 4))
    x = data(rng, source, (2, 4, 5, 2))
    out_h, out_w = (4 + top + bottom - kh) // sh + 1, (5 + left + right - kw) // sw + 1
    attributes = {
        "pool_op": operation, "pool_height": kh, "pool_width": kw, "stride_height": sh, "stride_width": sw,
        "pad_top": top, "pad_bottom": bottom, "pad_left": left, "pad_right": right,
    }  # fmt: skip
    types = {"result": result, "accum": accum}
    layer = layer_of("p", "Pooling2D", ("x",), (out_h, out_w, 2), types, {}, {}, attributes)
    # The templates take the top bit alone for the smallest number, which it is of a signed type only.
    outside = real(-(1 << source.width - 1) if signed else 1 << source.width - 1, source)
    if operation == "Average":
        outside = Fraction(0)

    def seen(sample, row, column, channel):
        for i in range(kh):
            for j in range(kw):
                r, c = row * sh + i - top, column * sw + j - left
                inside = 0 <= r < 4 and 0 <= c < 5
                yield inside, real(x[sample, r, c, channel], source) if inside else outside

    everywhere = list(np.ndindex(2, out_h, out_w, 2))
    if any(not any(inside for inside, _ in seen(*place)) for place in everywhere):
        return
    got = run(layer, source, x, "io_parallel")
    for place in everywhere:
        values = list(seen(*place))
        if operation == "Max":
            wanted = Number(accum, max(value for _, value in values)).value
        else:
            total = Number(accum)
            for _, value in values:
                total.set(total.value + value)
            padded = top or bottom or left or right
            count = len(values) if not padded else sum(inside for inside, _ in values)
            wanted = Fraction(int(Fraction(total.raw, count))) / Fraction(2) ** accum.fraction
        assert got[place] == assigned(result, wanted)


@examples(30)
@given(seeds, st.sampled_from(["Max", "Average"]), st.booleans())
def test_global_pools_go_through_the_whole_map(seed, operation, streamed):
    rng = np.random.default_rng(seed)
    source, accum, result = draw(rng, (2, 9), (0, 5)), draw(rng, (3, 12), (0, 7)), draw(rng, (3, 10), (0, 6))
    x = data(rng, source, (2, 3, 2, 2))
    types, attributes = {"result": result, "accum": accum}, {"pool_op": operation}
    layer = layer_of("g", "GlobalPooling2D", ("x",), (2,), types, {}, {}, attributes)
    got = run(layer, source, x, "io_stream" if streamed else "io_parallel")
    for sample, channel in np.ndindex(2, 2):
        values = [real(raw, source) for raw in x[sample, :, :, channel].ravel()]
        if operation == "Max":
            brought = [Number(accum, value).value for value in values]
            wanted = max(brought) if streamed else Number(accum, max(values)).value
        else:
            total = Number(accum)
            for value in values:
                total.set(total.value + (Number(accum, value).value if streamed else value))
            wanted = Fraction(int(Fraction(total.raw, 6))) / Fraction(2) ** accum.fraction
        assert got[sample, channel] == assigned(result, wanted)


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({}, False),
        ({"stride_width": 1}, True),
        ({"stride_height": 1}, True),
        ({"pad_left": 1}, True),
        ({"pad_bottom": 1}, True),
    ],
)
def test_streams_pool_windows_that_lie_beside_each_other_only(change, refused):
    kind = FixedType(8, 8)
    attributes = {
        "pool_op": "Max", "pool_height": 2, "pool_width": 2, "stride_height": 2, "stride_width": 2,
        "pad_top": 0, "pad_bottom": 0, "pad_left": 0, "pad_right": 0, **change,
    }  # fmt: skip
    x = np.arange(16).reshape(1, 4, 4, 1)
    layer = layer_of("p", "Pooling2D", ("x",), (2, 2, 1), dict.fromkeys(("result", "accum"), kind), {}, {}, attributes)
    if refused:
        with pytest.raises(DesignError, match="pooling with padding, or with strides other than the pool size"):
            run(layer, kind, x, "io_stream")
        return
    assert run(layer, kind, x, "io_stream").ravel().tolist() == [5, 7, 13, 15]


@pytest.mark.parametrize("name", ["dilation_height", "dilation_width"])
def test_dilated_windows_are_refused(name):
    kind = FixedType(8, 8)
    attributes = {"pool_op": "Max", "pool_width": 2, "stride_width": 2, "pad_left": 0, "pad_right": 0, name: 2}
    types = dict.fromkeys(("result", "accum"), kind)
    with pytest.raises(DesignError, match=f"{name} is 2; the templates of hls4ml know no dilation"):
        layer_of("p", "Pooling1D", ("x",), (2, 1), types, {}, {}, attributes)


def test_a_trace_holds_what_each_layer_hands_on():
    kind, result = FixedType(8, 4), FixedType(6, 3)
    entry = layer_of("x", "Input", (), (2,), {"result": kind})
    first = layer_of("a", "Clone", ("x",), (2,), {"result": result})
    last = layer_of("b", "Merge", ("a", "x"), (2,), {"result": result}, attributes={"op": "minimum"})
    design = as_built(Design("net", (entry, first, last), ("b",), "io_stream"))
    values = trace(design, np.array([[1.3125, -2.5]], np.float32), ["a", "b"])
    assert values["a"].tolist() == [[math.floor(1.3125 * 8) / 8, -2.5]]
    assert values["b"].tolist() == [[1.25, -2.5]]
