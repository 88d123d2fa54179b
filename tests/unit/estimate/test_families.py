"""Every layer class that has a hardware model is priced, in a stream and in parallel."""

import numpy as np
import pytest

from fpgaprune.design import Design
from fpgaprune.estimate import FAMILIES, UNPRICED, design_features, estimate, family_of, unpriced
from fpgaprune.hls import layer_of
from fpgaprune.target import Target

from .designs import T16

TARGET = Target.of("xc7z020clg400-1")
RNG = np.random.default_rng(0)


def weight(*shape):
    return {"weight": RNG.integers(-60, 60, shape)}


# Class: output shape for an input of 6 x 6 x 4, weights, attributes.
CASES = {
    "Reshape": ((144,), {}, {}),
    "Conv2D": ((4, 4, 8), weight(3, 3, 4, 8), {"in_width": 6}),
    "PointwiseConv2D": ((6, 6, 8), weight(1, 1, 4, 8), {"in_width": 6}),
    "DepthwiseConv2D": ((4, 4, 4), weight(3, 3, 4, 1), {"in_width": 6}),
    "BatchNormalization": ((6, 6, 4), {"scale": RNG.integers(-60, 60, 4)}, {}),
    "Activation": ((6, 6, 4), {}, {"activation": "sigmoid", "table_size": 1024}),
    "ParametrizedActivation": ((6, 6, 4), {}, {"activation": "leakyrelu"}),
    "HardActivation": ((6, 6, 4), {}, {"activation": "hard_sigmoid"}),
    "PReLU": ((6, 6, 4), {}, {"activation": "prelu"}),
    "Pooling2D": ((3, 3, 4), {}, {"pool_op": "Average", "pool_height": 2, "pool_width": 2, "in_width": 6}),
    "GlobalPooling2D": ((4,), {}, {"pool_op": "Average"}),
    "ZeroPadding2D": ((8, 8, 4), {}, {}),
    "Cropping2D": ((4, 4, 4), {}, {}),
    "Resize": ((12, 12, 4), {}, {}),
    "Transpose": ((4, 6, 6), {}, {"perm": [2, 0, 1]}),
    "Clone": ((6, 6, 4), {}, {}),
    "Merge": ((6, 6, 4), {}, {"op": "multiply"}),
    "Concatenate": ((6, 6, 8), {}, {"axis": 3}),
    "Softmax": ((6, 6, 4), {}, {}),
}


@pytest.mark.parametrize("kind", sorted(CASES))
@pytest.mark.parametrize("io_type", ["io_stream", "io_parallel"])
@pytest.mark.parametrize("backend", ["Vivado", "Vitis"])
def test_one_layer_of_each_class(kind, io_type, backend):
    shape, arrays, attributes = CASES[kind]
    inputs = ("in", "in") if kind in ("Merge", "Concatenate") else ("in",)
    types = {"result": T16, **dict.fromkeys(arrays, T16)}
    layer = layer_of("it", kind, inputs, shape, types, arrays, {}, attributes, strategy="latency" if arrays else None)
    last = layer_of("end", "Activation", ("it",), shape, {"result": T16}, attributes={"activation": "relu"})
    first = layer_of("in", "Input", (), (6, 6, 4), {"result": T16})
    made = estimate(Design("d", (first, layer, last), ("end",), io_type=io_type, backend=backend), TARGET)
    it = made.layers[1]
    assert it.multiplications is None or it.multiplications.total == sum(a.size for a in arrays.values())
    assert made.total["csynth"].lut.value >= it.csynth.lut.value >= 0
    assert made.latency_cycles >= it.latency_cycles
    wires = io_type == "io_parallel" or kind == "Reshape"
    assert wires or it.csynth.lut.value > 0


def test_a_depthwise_weight_meets_no_other_on_its_input():
    shape, arrays, attributes = CASES["DepthwiseConv2D"]
    arrays = {"weight": np.full_like(arrays["weight"], 11)}
    layer = layer_of("it", "DepthwiseConv2D", ("in",), shape, {"result": T16, "weight": T16}, arrays, {}, attributes)
    first = layer_of("in", "Input", (), (6, 6, 4), {"result": T16})
    features = design_features(Design("d", (first, layer), ("it",)), TARGET)
    assert features.layers[1].products.distinct_many == 36


def test_a_layer_of_no_operation_has_no_price():
    first = layer_of("in", "Input", (), (6, 6, 4), {"result": T16})
    dense = layer_of("fc", "Dense", ("in",), (4,), {"result": T16, "weight": T16}, weight(144, 4))
    odd = layer_of("x", "SimpleRNN", ("fc",), (4,), {"result": T16})
    features = design_features(Design("d", (first, dense, odd), ("x",)), TARGET)
    assert features.layers[2].family == UNPRICED
    assert "layer 'x' is a 'SimpleRNN', which no hardware model prices" in features.left_out[0]


def test_unknown_classes_have_no_model():
    assert set(FAMILIES.values()) >= {"dense", "conv", "softmax"}
    assert family_of("SimpleRNN") == UNPRICED
    assert unpriced("SimpleRNN", "layer 'x'").startswith(
        "layer 'x' is a 'SimpleRNN', which no hardware model prices; known classes: Input"
    )
