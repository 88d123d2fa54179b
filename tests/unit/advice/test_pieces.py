"""Pieces of suggestions: padding in a stream, averages of a whole map, knobs that were turned, widths."""

from dataclasses import replace

import pytest

from fpgaprune.advice import retype, sparser
from fpgaprune.layout import products, project_layouts
from fpgaprune.values import FixedType
from tests.unit.emulate.designs import design, layer
from tests.unit.estimate.designs import cnn


def test_the_padding_of_a_stream_is_as_large_as_both_sides_together():
    source = layer("x", "Input", None, (5, 7, 2))
    pads = {"pad_top": 1, "pad_bottom": 2, "pad_left": 2, "pad_right": 3}
    size = {"filt_height": 3, "filt_width": 3}
    padding = project_layouts._padding
    found = padding(layer("c", "Conv2D", "x", (1, 1, 1), attributes=pads | size), source)
    assert (found.name, found.kind, found.inputs, found.output_shape) == ("zp_c", "ZeroPadding2D", ("x",), (8, 12, 2))
    line = layer("x", "Input", None, (7, 2))
    assert padding(layer("c", "Conv1D", "x", (1, 1), attributes=pads | size), line).output_shape == (12, 2)
    assert padding(layer("c", "Conv2D", "x", (1, 1, 1), attributes=dict.fromkeys(pads, 0) | size), source) is None


@pytest.mark.parametrize(
    ("shape", "size", "whole"), [((1, 1, 2), 4, True), ((4, 4, 2), 4, False), ((2, 2, 2), 2, False)]
)
def test_an_average_is_of_the_whole_map_where_one_window_is_the_map(shape, size, whole):
    attributes = {"pool_op": "Average", "pool_height": size, "pool_width": size}
    pool = layer("p", "Pooling2D", "x", shape, attributes=attributes)
    assert sparser._is_whole_average(pool, design(layer("x", "Input", None, (4, 4, 2)), pool)) is whole


def test_the_knobs_of_a_change_are_those_that_differ():
    before = cnn()
    now = {x.name: (x.strategy, x.reuse_factor) for x in products(before)}
    assert project_layouts._knobs(before, now) == ()
    assert project_layouts._knobs(before, {name: (strategy, reuse + 1) for name, (strategy, reuse) in now.items()}) == (
        "reuse_factor",
    )
    assert project_layouts._knobs(before, {name: ("other", reuse) for name, (_, reuse) in now.items()}) == ("strategy",)
    assert project_layouts._knobs(before, {name: ("other", reuse + 1) for name, (_, reuse) in now.items()}) == (
        "strategy",
        "reuse_factor",
    )


@pytest.mark.parametrize(("width", "bits", "left"), [(16, 3, 13), (16, 0, 16), (5, 4, 2), (5, 9, 2)])
def test_a_type_loses_bits_down_to_two(width, bits, left):
    kind = FixedType(width, 3, True, "RND", "SAT")
    assert retype._cut(kind, bits) == replace(kind, width=left)


def test_the_sparsities_that_are_tried_grow_and_are_fractions():
    assert list(sparser.SPARSITIES) == sorted(sparser.SPARSITIES)
    assert all(0 < sparsity < 1 for sparsity in sparser.SPARSITIES)
