"""A weight's own constraint holds under a lock, because it sees the locked elements as they are held."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from fpgaprune.train import lock, unlock


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize(
    ("constraint", "holds"),
    [
        ("unit_norm", lambda w: np.allclose(np.linalg.norm(w, axis=0), 1, atol=1e-6)),
        ("non_neg", lambda w: (w >= 0).all()),
        (keras.constraints.MaxNorm(0.5), lambda w: (np.linalg.norm(w, axis=0) <= 0.5 + 1e-6).all()),
    ],
)
def test_a_constraint_sees_what_is_held(constraint, holds, eager):
    keras.utils.set_random_seed(0)
    layer = keras.layers.Dense(6, name="a", kernel_constraint=constraint)
    model = keras.Sequential([keras.Input((8,)), layer])
    model.compile(keras.optimizers.Adam(0.1), "mse", run_eagerly=eager)
    free = np.random.default_rng(0).random((8, 6)) > 0.4
    draws = np.random.default_rng(1)
    x, y = draws.normal(size=(64, 8)).astype(np.float32), draws.normal(size=(64, 6)).astype(np.float32)
    lock(model, {"a/kernel": free})
    model.fit(x, y, verbose=0)
    kernel = layer.kernel.numpy()
    assert not kernel[~free].view(np.uint32).any()
    assert holds(kernel)
    unlock(model)
    assert layer.kernel.constraint is layer.kernel_constraint
