"""The lock, over optimizers: locked bits stay, free ones move as without a lock."""

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.weights import named_weights


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "adamw"])
def test_locked_elements_stay_zero_on_a_model_that_was_fitted_before(optimizer):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(5, name="d1"), keras.layers.Dense(3, name="d2")])
    model.compile(optimizer, "mse")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(32, 4)), rng.normal(size=(32, 3))
    model.fit(x, y, verbose=0)
    masks = fp.MaskSet({"d1/kernel": rng.random((4, 5)) < 0.5})
    fp.lock(model, masks)
    model.fit(x, y, verbose=0)
    after = named_weights(model)["d1/kernel"].numpy()
    assert not after[~masks["d1/kernel"]].view(np.int32).any()
    assert after[masks["d1/kernel"]].all()
