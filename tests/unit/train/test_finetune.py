"""`finetune`: locked, fitted, checked, and left as it was found."""

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import LockError
from fpgaprune.values import named_weights

X = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
Y = np.random.default_rng(1).normal(size=(32, 2)).astype("float32")


def small_model():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(6, name="one"), keras.layers.Dense(2, name="two")])
    model.compile("adam", "mse")
    return model


def masks_of(model):
    return fp.MaskSet.from_slices(model, ["one/kernel[1]", "two/kernel[:, 0]"])


def test_the_model_comes_out_trained_exact_and_unlocked():
    model = small_model()
    adam = model.optimizer
    history = fp.finetune(model, masks_of(model), X, Y, epochs=2, batch_size=8, validation_data=(X, Y), seed=4)
    assert len(history.history["val_loss"]) == 2
    assert history.history["loss"][1] < history.history["loss"][0]
    assert model.optimizer is adam
    assert int(adam.iterations) == 8
    for path, mask in masks_of(model).items():
        assert not named_weights(model)[path].numpy()[~mask].view(np.int32).any()
        assert named_weights(model)[path].constraint is None


def test_the_same_seed_gives_the_same_bits():
    results = []
    for _ in range(2):
        model = small_model()
        fp.finetune(model, masks_of(model), X, Y, epochs=2, batch_size=8, seed=4)
        results.append([v.numpy().tobytes() for v in model.variables])
    assert results[0] == results[1]


def test_a_locked_model_stays_locked_to_the_new_masks():
    model = small_model()
    fp.lock(model, masks_of(model))
    other = fp.MaskSet.from_slices(model, ["one/kernel[2]"])
    fp.finetune(model, other, X, Y, batch_size=8)
    assert isinstance(model.optimizer, fp.LockedOptimizer)
    kernel = named_weights(model)["one/kernel"].numpy()
    assert not kernel[2].any()
    assert kernel[1].all()


class Tampers(keras.callbacks.Callback):
    def on_train_end(self, logs=None):
        kernel = self.model.get_layer("one").kernel
        kernel.assign(kernel.numpy() + np.float32(1e-7))


def test_a_locked_element_that_something_else_moved_is_an_error_and_the_model_is_unlocked():
    model = small_model()
    with pytest.raises(LockError, match=r"locked elements of 'one/kernel' moved during fit"):
        fp.finetune(model, masks_of(model), X, Y, callbacks=[Tampers()])
    assert type(model.optimizer) is keras.optimizers.Adam


def test_values_are_held_as_given():
    model = small_model()
    fp.finetune(model, fp.MaskSet.from_slices(model, ["two/bias"]), X, Y, values={"two/bias": [0.5, -1.0]})
    assert named_weights(model)["two/bias"].numpy().tolist() == [0.5, -1.0]
