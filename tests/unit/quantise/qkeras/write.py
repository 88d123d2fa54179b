"""Writes the files of this folder, with QKeras 0.9.0 and TensorFlow 2.15.1 in an environment of their own.

    python tests/unit/quantise/qkeras/write.py

Each `NAME.h5` is a network with random weights as `model.save` of QKeras writes it, and `NAME.npz` has inputs and what
QKeras predicts. `quantizers.npz` has what quantisers leave of random weights.
"""

from pathlib import Path

import numpy as np
import qkeras as q
from tensorflow import keras

HOME = Path(__file__).parent
L = keras.layers
QUANTIZERS = [
    *(f"quantized_bits({bits},{whole},{sym},alpha={alpha})" for bits, whole, sym in ((4, 0, 0), (6, 1, 1), (8, 2, 0))
      for alpha in (1.0, 0.5, "'auto_po2'")),
    "quantized_bits(1,0,alpha=1)",
    "quantized_bits(5,1,keep_negative=False,alpha=1)", "quantized_bits(4)", "binary(alpha=1)",
    "binary(alpha='auto_po2')",
    "quantized_po2(4)", "quantized_po2(4,1)", "quantized_po2(3,quadratic_approximation=1)",
    "quantized_po2(5,log2_rounding='floor')", "quantized_relu_po2(6,2048)",
    "quantized_relu_po2(6,quadratic_approximation=True)",
    "binary(use_01=1,alpha=1)", "ternary()", "ternary(alpha=0.25,threshold=0.4)", "ternary(alpha='auto_po2')",
]  # fmt: skip


def randomise(model, rng):
    """Random weights, a third of them zero, and sensible statistics of batch normalisations."""
    for layer in model.layers:
        values = []
        for variable in layer.weights:
            shape, name = variable.shape, variable.name
            if "iteration" in name:
                values.append(np.int64(0))
            elif "variance" in name or "gamma" in name:
                values.append(rng.uniform(0.5, 2, shape))
            else:
                values.append(rng.normal(0, 0.5, shape) * (rng.random(shape) > 0.3))
        layer.set_weights(values)


def save(name, model, seed):
    """`NAME.h5` and `NAME.npz`."""
    rng = np.random.default_rng(seed)
    randomise(model, rng)
    x = (np.round(rng.uniform(-1, 1, (60, *model.input_shape[1:])) * 1024) / 1024).astype(np.float32)
    model.save(HOME / f"{name}.h5", include_optimizer=False)
    np.savez_compressed(HOME / f"{name}.npz", x=x, y=model.predict(x, verbose=0))


def mlp():
    """Dense layers with quantisers as objects and as text, and a softmax."""
    bits = q.quantized_bits(6, 0, alpha=1)
    return keras.Sequential(
        [
            q.QDense(16, kernel_quantizer=bits, bias_quantizer=bits, input_shape=(10,), name="fc1"),
            q.QActivation(q.quantized_relu(6), name="relu1"),
            q.QDense(12, kernel_quantizer="quantized_bits(4,0,1)", bias_quantizer=q.quantized_bits(4), name="fc2"),
            q.QActivation("quantized_relu(4,1)", name="relu2"),
            q.QDense(5, kernel_quantizer=q.quantized_bits(5, 0, alpha="auto_po2"), name="out"),
            L.Activation("softmax", name="softmax"),
        ]
    )


def cnn():
    """Images: a normalisation of Keras's, one folded into a convolution, a depthwise convolution."""
    x = given = L.Input((8, 8, 2), name="image")
    bits = q.quantized_bits(4, 0, alpha=1)
    x = q.QActivation(q.quantized_bits(8, 1, alpha=1), name="rounded")(x)
    x = q.QConv2D(4, 3, kernel_quantizer=q.quantized_bits(5, 1, alpha=1), use_bias=False, name="conv1")(x)
    x = L.BatchNormalization(name="norm")(x)
    x = q.QActivation(q.quantized_relu(5, 1), name="relu1")(x)
    x = L.MaxPooling2D(name="pool")(x)
    wide = q.quantized_bits(8, 2, alpha=1)
    x = q.QConv2DBatchnorm(6, 2, kernel_quantizer=q.quantized_bits(6, 0, alpha=1), bias_quantizer=wide, padding="same",
                           name="conv2")(x)  # fmt: skip
    x = q.QActivation(q.quantized_relu(6, 2), name="relu2")(x)
    x = q.QDepthwiseConv2D(2, depthwise_quantizer=bits, bias_quantizer=bits, name="depthwise")(x)
    x = q.QActivation(q.quantized_bits(6, 2, symmetric=1, alpha=1), name="rounded3")(x)
    x = L.Flatten(name="flat")(x)
    x = q.QDense(3, kernel_quantizer=q.ternary(alpha=1), bias_quantizer=q.quantized_bits(8, 2), name="out")(x)
    return keras.Model(given, x, name="cnn")


def skip():
    """A series with a skip connection, binary and ternary weights, activations inside the layers."""
    given = L.Input((20, 3), name="series")
    bits = q.quantized_bits(6, 1)
    x = q.QConv1D(4, 3, strides=2, kernel_quantizer=q.binary(alpha=0.5), bias_quantizer=bits, name="conv1",
                  activation=q.quantized_relu(4, 1))(given)  # fmt: skip
    y = q.QConv1D(
        4, 3, padding="same", kernel_quantizer=q.ternary(alpha="auto_po2"), bias_quantizer=bits, name="conv2"
    )(x)
    y = q.QActivation("quantized_relu(4,2)", name="relu2")(y)
    x = L.Flatten(name="flat")(L.Add(name="add")([x, y]))
    x = q.QDense(2, kernel_quantizer=q.binary(alpha="auto_po2"), bias_quantizer=bits, name="out",
                 activation="quantized_bits(8,3)")(x)  # fmt: skip
    return keras.Model(given, x, name="skip")


def parts():
    """Particles: a normalisation of QKeras's, weights that are powers of two, an average, straight tanh and sigmoid."""
    given = L.Input((8, 3), name="parts")
    wide = q.quantized_bits(8, 1, alpha=1)
    x = q.QActivation(q.quantized_bits(8, 1, alpha=1), name="rounded")(given)
    x = q.QBatchNormalization(beta_quantizer=wide, gamma_quantizer=wide, name="norm")(x)
    x = q.QActivation(q.quantized_bits(8, 2, alpha=1), name="rounded2")(x)
    x = q.QDense(6, kernel_quantizer=q.quantized_po2(4, 1), bias_quantizer=wide, name="phi")(x)
    x = q.QActivation(q.quantized_tanh(6, symmetric=1), name="tanh")(x)
    x = L.GlobalAveragePooling1D(name="mean")(x)
    x = q.QActivation("quantized_sigmoid(5)", name="sigmoid")(x)
    x = q.QDense(2, kernel_quantizer=q.quantized_po2(5), bias_quantizer=q.quantized_po2(4), name="rho")(x)
    return keras.Model(given, x, name="parts")


def quantizers():
    """`quantizers.npz`: texts, weights (12, 3, 5), and what each quantiser leaves of them."""
    weights = np.random.default_rng(7).normal(0, 0.7, (12, 3, 5)).astype(np.float32)
    weights[:, :, 2] /= 16
    weights[0, 0] = 0
    left = [np.asarray(q.get_quantizer(text)(weights)) for text in QUANTIZERS]
    np.savez_compressed(HOME / "quantizers.npz", texts=np.array(QUANTIZERS), weights=weights, left=np.stack(left))


if __name__ == "__main__":
    for number, network in enumerate((mlp, cnn, skip, parts)):
        save(network.__name__, network(), number)
    quantizers()
