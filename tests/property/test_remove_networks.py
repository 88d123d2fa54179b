"""Random networks with branches: removal keeps the function, a second plan is empty, masks stay true."""

import json

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import RemovalError
from fpgaprune.remove import RemovalPlan
from fpgaprune.values import named_weights

ACTIVATIONS = ["relu", "linear", "tanh", "relu6", "hard_sigmoid"]


def grow(draw, x, budget):
    """A random graph behind `x`; every tensor made so far may be read again."""
    made = [x]
    for _ in range(budget):
        source = made[draw(st.integers(max(0, len(made) - 3), len(made) - 1))]
        kind = draw(
            st.sampled_from(
                ["conv", "conv", "grouped", "depthwise", "separable", "norm", "pool", "pad", "join", "cat", "gate"]
            )
        )
        width = source.shape[-1]
        padding = draw(st.sampled_from(["same", "valid"])) if source.shape[1] > 3 else "same"
        if kind == "conv":
            made.append(
                layers.Conv2D(
                    draw(st.integers(2, 5)),
                    draw(st.sampled_from([1, 3])),
                    padding=padding,
                    use_bias=draw(st.booleans()),
                    activation=draw(st.sampled_from(ACTIVATIONS)),
                )(source)
            )
        elif kind == "grouped" and width % 2 == 0:
            made.append(layers.Conv2D(4, 3, groups=2, padding="same", activation="relu")(source))
        elif kind == "depthwise":
            made.append(
                layers.DepthwiseConv2D(3, padding=padding, activation=draw(st.sampled_from(ACTIVATIONS)))(source)
            )
        elif kind == "separable":
            made.append(layers.SeparableConv2D(3, 3, padding=padding)(source))
        elif kind == "norm":
            made.append(layers.ReLU()(layers.BatchNormalization()(source)))
        elif kind == "pool" and source.shape[1] > 3:
            made.append(
                draw(st.sampled_from([layers.MaxPooling2D, layers.AveragePooling2D]))(2, padding="same")(source)
            )
        elif kind == "pad":
            made.append(layers.Cropping2D(1)(layers.ZeroPadding2D(1)(source)))
        elif kind == "join":
            merge = draw(st.sampled_from([layers.Add, layers.Multiply, layers.Maximum, layers.Average]))
            other = layers.Conv2D(width, 3, padding="same", activation="relu")(source)
            made.append(merge()([source, other]))
        elif kind == "cat":
            made.append(layers.Concatenate()([source, layers.Conv2D(2, 1, activation="relu")(source), source]))
        elif kind == "gate":
            squeezed = layers.GlobalAveragePooling2D(keepdims=True)(source)
            made.append(layers.Multiply()([source, layers.Conv2D(width, 1, activation="sigmoid")(squeezed)]))
    return made[-1]


def fill(model, seed, integral):
    generator = np.random.default_rng(seed)
    share = generator.choice([0.2, 0.5, 0.8])
    for path, variable in named_weights(model).items():
        shape = tuple(variable.shape)
        value = generator.integers(-3, 4, shape).astype(float) if integral else generator.normal(size=shape)
        if "variance" in path:
            value = np.abs(value) + 0.5
        elif "kernel" in path:
            whole = generator.random(shape[-1]) < share / 2
            value[..., whole] = 0.0
            value[..., generator.random(shape[-2:]) < share] = 0.0
        elif "gamma" in path or "bias" in path:
            value[generator.random(shape) < 0.2] = 0.0
        variable.assign(value)


def network(draw):
    keras.utils.clear_session(free_memory=False)
    x = keras.Input((6, 6, 2), name="x")
    body = grow(draw, x, draw(st.integers(2, 6)))
    heads = [layers.Dense(2, name="head")(layers.Flatten()(body))]
    if draw(st.booleans()):
        heads.append(layers.Conv2D(2, 1, name="map")(body))
    model = keras.Model(x, heads, name="net")
    fill(model, draw(st.integers(0, 2**31)), integral=False)
    return model


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.data())
def test_removal_keeps_the_function(data):
    check_network(network(data.draw))


def check_network(model):
    try:
        plan = fp.plan_removal(model, strict=True)
    except RemovalError as error:
        if "the network is dead" not in str(error):
            raise
        return
    small = fp.apply_removal(model, plan, dtype="float64")
    fp.equivalence(model, small, tolerance=1e-10).require()
    again = fp.plan_removal(small)
    assert again.empty, again.explain()
    assert plan.parameters[1] == sum(int(np.prod(v.shape)) for v in named_weights(small).values())
    assert all(len(layer.kept) for layer in plan.channels if layer.path not in plan.dropped)
    check_masks(model, plan)


def check_masks(model, plan):
    """Every element that is locked at zero in the model and locked after `remap` is zero in the small model."""
    values = {path: np.asarray(v) for path, v in named_weights(model).items()}
    masks = fp.MaskSet({path: value != 0 for path, value in values.items()})
    copy = RemovalPlan.from_json(json.loads(json.dumps(plan.to_json())))
    small = fp.apply_removal(model, copy)
    mapped = copy.remap(masks)
    present = named_weights(small)
    for path, mask in mapped.items():
        assert not np.asarray(present[path])[~mask].any()


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.integers(0, 2**31), st.sampled_from(["same", "valid"]), st.booleans())
def test_integer_networks_stay_bit_identical(seed, padding, residual):
    keras.utils.clear_session(free_memory=False)
    x = keras.Input((6, 6, 2))
    y = layers.Conv2D(5, 3, padding=padding, activation="relu")(x)
    z = layers.Conv2D(5, 3, padding="same", activation="relu")(y)
    y = layers.Add()([y, z]) if residual else z
    y = layers.DepthwiseConv2D(3, padding="same")(y)
    model = keras.Model(x, layers.Dense(2)(layers.Flatten()(layers.Conv2D(4, 1)(y))))
    fill(model, seed, integral=True)
    try:
        small = fp.apply_removal(model, fp.plan_removal(model))
    except RemovalError:
        return
    inputs = np.random.default_rng(seed).integers(-2, 3, (6, 6, 6, 2)).astype("float32")
    assert fp.equivalence(model, small, inputs, dtype=None, tolerance=0).require().max_ulp == 0


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_removal_keeps_the_function_of_many_networks(data):
    check_network(network(data.draw))
