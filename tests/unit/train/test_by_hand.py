"""A model that was never compiled, whose optimizer was set by hand, is locked and unlocked as any other."""

import keras
import numpy as np
import tensorflow as tf

import fpgaprune as fp


def test_an_optimizer_that_was_set_by_hand_is_locked_and_given_back():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, name="one")])
    model.optimizer = sgd = keras.optimizers.SGD(0.5)
    fp.lock(model, {"one/kernel": np.array([[False, True], [True, True]])})
    kernel = model.get_layer("one").kernel
    model.optimizer.apply([tf.ones((2, 2)), tf.ones(2)], model.trainable_variables)
    assert kernel.numpy()[0, 0] == 0
    assert kernel.numpy()[1, 1] != 0
    fp.unlock(model)
    assert model.optimizer is sgd
    assert kernel.constraint is None
