"""A BatchNorm behind a ReLU leaves the design, or keeps its shifts alone; the network computes the same."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from fpgaprune.lowering.folding import fold
from fpgaprune.network import scale_and_shift

kl = keras.layers


def norm(x, name="norm", **options):
    return kl.BatchNormalization(name=name, **options)(x)


def first(x, **options):
    return kl.Conv2D(4, 3, activation="relu", name="first", **options)(x)


def gated(x):
    return kl.Multiply()([x, kl.Conv2D(4, 1, activation="sigmoid", name="gate")(x)])


# From the image to what the network gives.
LEAVES = {
    "a convolution": lambda x: kl.Conv2D(3, 3, name="next")(norm(first(x))),
    "a convolution with an activation": lambda x: kl.Conv2D(3, 3, activation="relu", name="next")(norm(first(x))),
    "a depthwise convolution": lambda x: kl.DepthwiseConv2D(3, name="next")(norm(first(x))),
    "a flattened map": lambda x: kl.Dense(5, name="next")(kl.Flatten()(norm(first(x)))),
    "a Dense layer without a bias": lambda x: kl.Dense(5, use_bias=False, name="next")(
        kl.GlobalAveragePooling2D()(norm(first(x)))
    ),
    "the largest": lambda x: kl.Conv2D(3, 2, name="next")(kl.MaxPooling2D(2)(norm(first(x)))),
    "two readers": lambda x: kl.Concatenate()([kl.Conv2D(2, 1, name=n)(y) for y in [norm(first(x))] for n in "ab"]),
    "two in a row": lambda x: kl.Conv2D(3, 2, name="next")(norm(kl.AveragePooling2D(2)(norm(first(x))), "second")),
    "a sigmoid": lambda x: kl.Dense(3, name="next")(norm(kl.Conv2D(4, 3, activation="sigmoid")(x))),
    "a sum": lambda x: kl.Dense(3, name="next")(norm(kl.Add()([first(x), kl.Conv2D(4, 3, name="other")(x)]))),
}
SHIFTS = {
    "zeros that are padded": lambda x: kl.Conv2D(3, 3, padding="same", name="next")(norm(first(x))),
    "a product": lambda x: gated(norm(first(x))),
    "an output": lambda x: norm(first(x)),
    "the largest before it": lambda x: kl.ZeroPadding2D(1)(norm(kl.MaxPooling2D(2)(first(x, padding="same")))),
    "a ReLU by itself": lambda x: gated(norm(kl.ReLU()(kl.Conv2D(4, 3, name="first")(x)))),
    "a depthwise convolution before it": lambda x: kl.ReLU()(
        norm(kl.DepthwiseConv2D(3, activation="relu", name="first")(x))
    ),
}
STAYS = {
    "at the input": lambda x: kl.Conv2D(3, 3, name="next")(norm(x)),
    "a sigmoid before padding": lambda x: kl.Conv2D(2, 3, padding="same")(norm(kl.Conv2D(4, 3, activation="tanh")(x))),
    "another reader of the ReLU": lambda x: kl.Add()([y := first(x), kl.ReLU()(norm(y))]),
}
NEGATIVE = {
    "falling factors before the largest": lambda x: kl.Conv2D(3, 2, name="next")(kl.MaxPooling2D(2)(norm(first(x)))),
}


def network(build, falling=False):
    keras.utils.set_random_seed(3)
    entry = keras.Input((8, 7, 3))
    model = keras.Model(entry, build(entry))
    rng = np.random.default_rng(5)
    for layer in model.layers:
        if isinstance(layer, kl.BatchNormalization):
            for weight in layer.weights:
                weight.assign(rng.uniform(0.5, 2, weight.shape))
            if falling:
                layer.gamma.assign(layer.gamma * np.resize([1.0, -1.0], layer.gamma.shape))
        elif layer.weights:
            kernel, *bias = layer.get_weights()
            kernel[rng.random(kernel.shape) < 0.3] = 0
            layer.set_weights([kernel, *(rng.normal(size=each.shape) for each in bias)])
    return model


def require_same(model):
    folded = fold(model)
    x = np.random.default_rng(6).normal(size=(9, 8, 7, 3)).astype("float32")
    wanted = np.asarray(model(x))
    np.testing.assert_allclose(np.asarray(folded([x])), wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())
    for layer in model.layers:
        if hasattr(layer, "kernel"):
            kernel, held = (np.asarray(found.kernel) for found in (layer, folded.get_layer(layer.name)))
            np.testing.assert_array_equal(held.view(np.int32)[kernel == 0], 0)
    again = fold(folded)
    for layer in folded.layers:
        for one, other in zip(layer.get_weights(), again.get_layer(layer.name).get_weights(), strict=True):
            np.testing.assert_array_equal(one, other)
    return [layer for layer in folded.layers if isinstance(layer, kl.BatchNormalization)]


@pytest.mark.parametrize(
    ("kind", "falling"),
    # The largest of a falling line is the smallest.
    [(kind, falling) for kind in LEAVES for falling in (False, True) if not falling or kind != "the largest"],
)
def test_it_leaves_the_design(kind, falling):
    assert not require_same(network(LEAVES[kind], falling))


@pytest.mark.parametrize(("kind", "falling"), [*((kind, False) for kind in SHIFTS), ("zeros that are padded", True)])
def test_its_shifts_stay_alone(kind, falling):
    [left] = require_same(network(SHIFTS[kind], falling))
    scale, shift = scale_and_shift(left)
    assert (scale == 1).all()
    assert (shift != 0).all()


@pytest.mark.parametrize("kind", STAYS | NEGATIVE)
def test_it_stays_where_nothing_can_take_its_factors(kind):
    [left] = require_same(network((STAYS | NEGATIVE)[kind], falling=kind in NEGATIVE))
    assert not (scale_and_shift(left)[0] == 1).any()
