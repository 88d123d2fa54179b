"""`Frozen`: gradients flow through, parameters are constants."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from fpgaprune.train import Frozen

X = np.random.default_rng(0).normal(size=(8, 5)).astype("float32")
Y = np.random.default_rng(1).normal(size=(8, 2)).astype("float32")


def inner_layers():
    return [
        keras.layers.Dense(4, activation="tanh", name="dense"),
        keras.Sequential([keras.layers.Dense(4, name="deep"), keras.layers.Dense(3, name="deeper")], name="nested"),
    ]


def pair(wrap):
    """The same network twice, the middle wrapped in one."""
    networks = []
    for frozen in (False, True):
        keras.utils.set_random_seed(2)
        middle = [wrap(layer) if frozen else layer for layer in inner_layers()]
        networks.append(
            keras.Sequential(
                [keras.Input((5,)), keras.layers.Dense(5, name="first"), *middle, keras.layers.Dense(2, name="last")]
            )
        )
    networks[1].set_weights(networks[0].get_weights())
    return networks


def gradients(model, variables):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((model(X, training=True) - Y) ** 2)
    return tape.gradient(loss, variables)


def free(model):
    return [*model.get_layer("first").weights, *model.get_layer("last").weights]


def test_gradients_of_free_parameters_are_those_of_the_unwrapped_model():
    plain, frozen = pair(Frozen)
    assert [v.path.split("/")[-2] for v in frozen.trainable_variables] == ["first", "first", "last", "last"]
    for one, other in zip(gradients(plain, free(plain)), gradients(frozen, free(frozen)), strict=True):
        assert np.array_equal(one, other)
        assert np.any(one != 0)


def test_gradients_asked_for_explicitly_are_none():
    _, frozen = pair(Frozen)
    inside = [v for layer in frozen.layers if isinstance(layer, Frozen) for v in layer.layer.weights]
    assert len(inside) == 6
    assert gradients(frozen, inside) == [None] * 6


def test_a_loss_that_does_not_depend_on_the_free_parameters_has_no_gradient_there():
    frozen = Frozen(keras.layers.Dense(3))
    scale = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(frozen(X)) + 0.0 * scale
    assert float(tape.gradient(loss, scale)) == 0.0


def test_the_output_is_differentiable_in_the_input():
    layer = keras.layers.Dense(3)
    frozen = Frozen(layer)
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(frozen(x))
    wanted = np.repeat(layer.kernel.numpy().sum(axis=1)[None], len(X), axis=0)
    np.testing.assert_allclose(tape.gradient(loss, x), wanted, rtol=1e-6)


def test_a_parent_that_becomes_trainable_does_not_thaw_it():
    _, frozen = pair(Frozen)
    frozen.trainable = False
    frozen.trainable = True
    assert len(frozen.trainable_variables) == 4
    frozen.compile("sgd", "mse")
    inside = [v for layer in frozen.layers if isinstance(layer, Frozen) for v in layer.layer.weights]
    before = [v.numpy() for v in inside]
    frozen.fit(X, Y, verbose=0)
    assert all(np.array_equal(v.numpy(), old) for v, old in zip(inside, before, strict=True))


@pytest.mark.parametrize("move", [False, True])
def test_statistics_move_only_if_asked(move):
    norm = keras.layers.BatchNormalization()
    dropout = keras.layers.Dropout(0.5, seed=1)
    frozen = Frozen(keras.Sequential([norm, dropout]), move_statistics=move)
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(5), frozen, keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    before = [v.numpy() for v in norm.weights]
    seed = dropout.seed_generator.state.numpy()
    model.fit(X, Y, verbose=0)
    still = [np.array_equal(v.numpy(), old) for v, old in zip(norm.weights, before, strict=True)]
    assert still == [True, True, not move, not move]
    assert not np.array_equal(dropout.seed_generator.state.numpy(), seed)
    assert len(model.trainable_variables) == 4


def test_it_saves_and_loads_at_any_depth(tmp_path):
    inputs = keras.Input((5,))
    deep = keras.Sequential([keras.Input((5,)), Frozen(keras.layers.Dense(4, name="core"), move_statistics=True)])
    model = keras.Model(inputs, keras.layers.Dense(2)(deep(inputs)))
    model.compile("adam", "mse")
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    assert np.array_equal(loaded.predict(X, verbose=0), model.predict(X, verbose=0))
    assert len(loaded.trainable_variables) == 2
    assert loaded.layers[1].layers[0].move_statistics is True


def test_the_wrapped_layer_computes_in_its_own_precision():
    policy = "mixed_float16"
    layer = keras.layers.Dense(3, dtype=policy)
    wide = keras.layers.Dense(3, dtype="float32")
    frozen, frozen_wide = Frozen(layer, dtype=policy), Frozen(wide, dtype=policy)
    assert frozen(X).dtype == layer.compute_dtype
    assert frozen_wide(X).dtype == "float32"
    np.testing.assert_array_equal(frozen(X), layer(X))
    np.testing.assert_array_equal(frozen_wide(X), wide(X))


def test_recurrent_layers_and_masks():
    embedding = keras.layers.Embedding(5, 3, mask_zero=True)
    frozen = Frozen(embedding)
    lstm = keras.layers.LSTM(4)
    tokens = np.array([[1, 2, 0, 0]])
    np.testing.assert_array_equal(lstm(frozen(tokens)), lstm(embedding(tokens)))
    assert Frozen(keras.layers.LSTM(2))(np.ones((1, 3, 2), "float32")).shape == (1, 2)
