"""Layers that share a weight: removal refuses them, and a copy for a comparison has the weight in both."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import layers

from fpgaprune.errors import RemovalError
from fpgaprune.remove import equivalence, plan_removal, rebuild


def tied(units=4):
    """Two layers, `a` and `b`, with one kernel."""
    keras.utils.set_random_seed(0)
    entry, first, second = keras.Input((units,)), layers.Dense(units, "relu", name="a"), layers.Dense(units, name="b")
    model = keras.Model(entry, second(first(entry)))
    second._tracker.unlock()
    second._kernel = first._kernel
    second._trainable_variables[:] = [first._kernel, second.bias]
    second._tracker.lock()
    return model


def test_removal_names_the_layers_that_share_a_weight():
    with pytest.raises(RemovalError, match=r"layers 'a' and 'b' share the weight 'a/kernel', so neither"):
        plan_removal(tied())


def test_a_copy_computes_what_the_model_computes():
    model = tied()
    x = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    assert np.array_equal(rebuild(model)(x), model(x))
    apart = keras.models.clone_model(model)
    assert not equivalence(model, apart).ok
