"""Shorter steps train a kernel that a fold made smaller as the kernel before it."""

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.train import shorten_steps

ko = keras.optimizers
FACTOR = 2.0**-7
# Small enough to make no difference beside a gradient.
OPTIMIZERS = [
    lambda: ko.SGD(0.01),
    lambda: ko.SGD(0.01, momentum=0.9),
    lambda: ko.Adam(0.01, epsilon=1e-20),
    lambda: ko.AdamW(0.01, weight_decay=0.1, epsilon=1e-20),
    lambda: ko.Nadam(0.01, epsilon=1e-20),
    lambda: ko.RMSprop(0.01, epsilon=1e-20),
    lambda: ko.Lion(0.01),
]


def network(optimizer, factor):
    """Dense 4-3-2, whose first kernel is `factor` times that of the usual one."""
    rng = np.random.default_rng(3)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, "tanh", name="first"), layers.Dense(2, name="last")])
    model.set_weights([rng.standard_normal(weight.shape).astype("float32") for weight in model.weights])
    model.get_layer("first").kernel.assign(model.get_layer("first").kernel * factor)
    model.compile(optimizer, "mse")
    return model


def trained(model, factor):
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((12, 4)).astype("float32"), rng.standard_normal((12, 2)).astype("float32")
    model.fit(x / np.float32(factor), y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    return [np.asarray(weight) for weight in model.weights]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda made: type(made()).__name__)
def test_a_smaller_kernel_is_trained_as_the_usual_one(optimizer):
    wanted = trained(network(optimizer(), 1.0), 1.0)
    smaller = network(optimizer(), FACTOR)
    shorten_steps(smaller, {"first": FACTOR})
    found = trained(smaller, FACTOR)
    np.testing.assert_allclose(found[0] / FACTOR, wanted[0], rtol=2e-4, atol=1e-5)
    for one, other in zip(found[1:], wanted[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-5)


def test_without_them_a_smaller_kernel_is_lost():
    wanted, found = (trained(network(ko.Adam(0.01), factor), factor) for factor in (1.0, FACTOR))
    assert np.abs(found[0] / FACTOR - wanted[0]).max() > 1


def test_locks_hold_under_them():
    model = network(ko.Adam(0.01), FACTOR)
    shorten_steps(model, {"first": FACTOR, "not there": 0.5})
    fp.lock(model, {"first/kernel": np.arange(12).reshape(4, 3) % 2 == 0})
    before = model.get_layer("first").kernel.numpy()
    after = trained(model, FACTOR)[0]
    assert (after.reshape(-1)[1::2].view(np.uint32) == 0).all()
    assert (after != before).reshape(-1)[::2].all()


def test_nothing_changes_where_no_kernel_is_smaller():
    model = network(ko.Adam(0.01), 1.0)
    shorten_steps(model, {})
    assert "update_step" not in vars(model.optimizer)
