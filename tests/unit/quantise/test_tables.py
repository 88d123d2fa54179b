"""Layers that look a function up: the entry of the table, with the gradient of the function itself."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from fpgaprune.design import FUNCTIONS
from fpgaprune.quantise import ROUNDED
from fpgaprune.values import FixedType

TYPES = {"table": "fixed<18,8>", "result": "fixed<9,4,RND,SAT>"}
# Between two numbers for which there are entries, below, above and at zero, and far beyond the ends of every table.
X = np.array([[-40.0, -1.3, -0.3, 0.0, 0.3, 1.3, 40.0]], np.float32)
NAMES = ["softmax", *(name for name, function in FUNCTIONS.items() if function.table and function.converts)]


def layer_of(name):
    """The layer that rounds, and that of Keras."""
    if name == "softmax":
        tables = {
            "input": "fixed<9,4>",
            "inp_norm": "ufixed<8,4,RND,SAT>",
            "exp_table": "ufixed<12,1,RND,SAT>",
            "accum": "ufixed<14,3>",
            "inv_inp": "ufixed<8,3,RND,SAT>",
            "inv_table": "ufixed<12,1,RND,SAT>",
        }
        sizes = {"table_size": 256, "exp_table_size": 256, "inverse_table_size": 256}
        types = {"result": "ufixed<8,1,RND,SAT>"}
        return ROUNDED[keras.layers.Softmax](types=types, tables=tables, sizes=sizes), keras.layers.Softmax()
    if name == "elu":
        return ROUNDED[keras.layers.ELU](0.5, types=TYPES, table_size=16, factor=0.5), keras.layers.ELU(0.5)
    factor = 1.0625 if name == "selu" else 1.0
    plain = keras.layers.Activation(name)
    return ROUNDED[keras.layers.Activation](name, types=TYPES, table_size=16, factor=factor), plain


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_that_of_the_function(name):
    gradients = []
    for layer in layer_of(name):
        x = tf.constant(X[:, 1:-1])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)[:, :3]
        gradients.append(tape.gradient(y, x))
    np.testing.assert_allclose(*gradients, rtol=1e-5)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer_of(name)[0]))
    np.testing.assert_array_equal(again(X), layer_of(name)[0](X))
    assert getattr(again, "alpha", 0.5) == 0.5


def test_an_entry_is_that_of_the_nearest_number_towards_zero():
    """16 entries: of tanh one for each half from -4 on, of elu one for each half below zero."""
    kind = FixedType.parse(TYPES["result"])

    def held(values):
        table = FixedType.parse(TYPES["table"])
        return kind.to_float(kind.to_raw(table.to_float(table.to_raw(np.asarray(values)))))

    tanh = np.tanh([-4.0, -1.0, 0.0, 0.0, 0.0, 1.0, 3.5])
    np.testing.assert_array_equal(layer_of("tanh")[0](X)[0], held(tanh))
    elu = 0.5 * np.expm1([-7.5, -1.0, 0.0])
    np.testing.assert_allclose(layer_of("elu")[0](X)[0][:3], elu, atol=kind.lsb)
    np.testing.assert_array_equal(layer_of("elu")[0](X)[0][3:], held(X[0, 3:].clip(None, 7.96875)))
