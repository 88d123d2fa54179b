"""Removal around layers of a user's own, and comparisons that know the scale."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from fpgaprune.errors import EquivalenceError, RemovalError
from fpgaprune.remove import apply_removal, equivalence, plan_removal

RNG = np.random.default_rng(0)
ROW = tf.constant([1.0, 2.0, 3.0, 4.0])


class Scaled(layers.Layer):
    """Reads a tensor of float32, and has no config to be made from."""

    def __init__(self, factor, **options):
        super().__init__(**options)
        self.factor = lambda: factor

    def call(self, x):
        return x * self.factor()

    def compute_output_shape(self, shape):
        return shape


class Weighted(Scaled):
    def build(self, shape):
        self.scale = self.add_weight(shape=shape[-1:], name="scale", initializer="ones")

    def call(self, x):
        return super().call(x) * self.scale


def around(middle):
    """A network in which a filter before and a filter behind `middle` hand on nothing."""
    makers = [layers.Conv2D(4, 3, activation="relu", name=name) for name in ("before", "behind")]
    stack = [makers[0], middle, makers[1], layers.Flatten(), layers.Dense(3)]
    model = keras.Sequential([keras.Input((8, 8, 2)), *stack])
    for layer in makers:
        kernel, bias = layer.get_weights()
        kernel[..., 1], bias[1] = 0, 0
        layer.set_weights([kernel, bias])
    return model


@pytest.mark.parametrize("middle", [lambda: layers.Lambda(lambda x: x * ROW), lambda: Scaled(ROW), lambda: Scaled(2.0)])
def test_what_is_removed_elsewhere_leaves_an_own_layer_as_it_is(middle):
    model = around(middle())
    plan = plan_removal(model)
    assert plan.channel_counts[1] < plan.channel_counts[0]
    small = apply_removal(model, plan)
    x = RNG.normal(size=(16, 8, 8, 2)).astype("float32")
    assert np.abs(small.predict(x, verbose=0) - model.predict(x, verbose=0)).max() < 1e-5
    found = equivalence(model, apply_removal(model, plan, dtype="float64"), x).require()
    assert found.max_relative_error < 1e-6


def test_an_own_layer_with_weights_and_no_config_is_refused_in_one_line():
    model = around(Weighted(ROW, name="hers"))
    with pytest.raises(RemovalError, match=r"layer 'hers' \(Weighted\) cannot be made .* a get_config") as refusal:
        apply_removal(model, plan_removal(model))
    assert "\n" not in str(refusal.value)


def test_without_a_tolerance_a_comparison_allows_what_rounding_explains_and_no_more():
    """Terms of 1e9 cancel to results of 1: in float64 1e-9 of the results is less than what the terms lose."""

    def made(change=0.0, order=slice(None)):
        terms = np.repeat(np.linspace(1, 2, 32), 2) * np.resize([1e9, -1e9], 64) + np.linspace(0, 1, 64)
        model = keras.Sequential([keras.Input((64,), dtype="float64"), layers.Dense(1, dtype="float64")], name="sum")
        terms[5] += change
        model.layers[0].set_weights([terms[order, None], np.zeros(1)])
        return model

    x = np.ones((8, 64))
    wanted = float(made().predict(x[:1], verbose=0)[0, 0])
    assert equivalence(made(), made(order=slice(None, None, -1)), x).ok
    found = equivalence(made(), made(change=wanted * 1e-4), x)
    assert not found.ok
    assert found.tolerance < 1e-5


def test_a_state_is_refused():
    model = keras.Sequential([keras.Input((5, 3), batch_size=1), layers.GRU(4, stateful=True, name="memory")])
    with pytest.raises(EquivalenceError, match=r"layer 'memory' \(GRU\) .* stateful=False"):
        equivalence(model, model)
