"""`freeze`: whole variables by pattern."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import fpgaprune as fp
from fpgaprune.errors import LockError, MaskError
from fpgaprune.train import freeze
from fpgaprune.values import named_weights
from tests.quick import quick

X = np.random.default_rng(0).normal(size=(16, 5, 3)).astype("float32")
Y = np.random.default_rng(1).normal(size=(16, 2)).astype("float32")


def recurrent_model(optimizer="adam"):
    keras.utils.set_random_seed(0)
    nested = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4, name="inner")], name="head")
    inputs = keras.Input((5, 3))
    middle = keras.layers.BatchNormalization(name="norm")(keras.layers.LSTM(4, name="lstm")(inputs))
    model = keras.Model(inputs, keras.layers.Dense(2, name="out")(nested(middle)))
    model.compile(optimizer, "mse")
    return model


def moved(model, before):
    return {path for path, array in values(model).items() if not np.array_equal(array, before[path])}


def values(model):
    return {path: v.numpy() for path, v in named_weights(model).items() if "seed_generator" not in path}


@pytest.mark.parametrize("fitted", quick([True], [False, True]))
def test_the_kernel_of_an_lstm_cell_and_a_nested_layer(fitted):
    model = recurrent_model()
    if fitted:
        model.fit(X, Y, verbose=0)
    before = values(model)
    frozen = freeze(model, ["lstm/*/kernel", "head/*"])
    assert frozen == ["lstm/lstm_cell/kernel", "head/inner/kernel", "head/inner/bias"]
    model.fit(X, Y, verbose=0)
    assert moved(model, before) == set(before) - set(frozen)


def test_a_regular_expression_matches_whole_paths():
    model = recurrent_model()
    assert freeze(model, re.compile(r".*/(recurrent_)?kernel")) == [
        "lstm/lstm_cell/kernel",
        "lstm/lstm_cell/recurrent_kernel",
        "head/inner/kernel",
        "out/kernel",
    ]


def test_frozen_variables_are_saved_and_a_whole_layer_comes_back_frozen(tmp_path):
    model = recurrent_model()
    freeze(model, ["norm/*"])
    model.compile("adam", "mse")
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    before = values(loaded)
    assert all(np.array_equal(before[path], array) for path, array in values(model).items())
    loaded.fit(X, Y, verbose=0)
    assert not {path for path in moved(loaded, before) if path.startswith("norm/")}


def test_disjoint_sets_trained_by_two_optimizers_in_one_loop():
    model = recurrent_model()
    weights = named_weights(model)
    freeze(model, ["head/*"])
    kernel, bias = weights["out/kernel"], weights["lstm/lstm_cell/bias"]
    mask = np.zeros((4, 2), bool)
    mask[0] = True
    one = fp.LockedOptimizer(keras.optimizers.Adam(0.1), {"out/kernel": mask}, weights=weights)
    two = fp.LockedOptimizer(keras.optimizers.SGD(0.1), {"lstm/lstm_cell/bias": np.arange(16) < 4}, weights=weights)
    before = values(model)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(X, training=True) - Y) ** 2)
        first, second = tape.gradient(loss, [kernel, bias])
        one.apply([first], [kernel])
        two.apply([second], [bias])

    for _ in range(3):
        step()
    assert not kernel.numpy()[1:].any()
    assert not bias.numpy()[4:].any()
    assert np.all(kernel.numpy()[0] != before["out/kernel"][0])
    assert moved(model, before) == {"out/kernel", "lstm/lstm_cell/bias", "norm/moving_mean", "norm/moving_variance"}


BAD = {
    "glob": (lambda m: freeze(m, ["lstn/*"]), MaskError, r"'lstn/\*' matches no weight"),
    "near miss": (lambda m: freeze(m, "out/kernle"), MaskError, "did you mean out/kernel"),
    "expression": (lambda m: freeze(m, re.compile("out")), LockError, "the expression 'out' matches no weight"),
    "statistics": (lambda m: freeze(m, "norm/moving_*"), LockError, r"freeze the whole layer, as in 'norm/\*'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_an_error_and_freezes_nothing(name):
    call, error, message = BAD[name]
    model = recurrent_model()
    with pytest.raises(error, match=message):
        call(model)
    assert len(model.trainable_variables) == 9


@pytest.mark.parametrize(
    "optimizer",
    [
        keras.optimizers.Adam(use_ema=True),
        keras.optimizers.MultiOptimizer(keras.optimizers.OptimizerMap(keras.optimizers.SGD())),
    ],
    ids=["ema", "multi"],
)
def test_a_built_optimizer_that_cannot_leave_weights_out_is_an_error(optimizer):
    model = recurrent_model(optimizer)
    model.optimizer.build(model.trainable_variables)
    with pytest.raises(LockError, match="freeze before compile, or compile again after freezing"):
        freeze(model, "out/*")
    assert len(model.trainable_variables) == 9
