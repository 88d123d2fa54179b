"""The networks that the field deploys, built with Keras, and data for each that ship or are made.

`NETWORKS["ds_cnn"]()` gives a `Case`: a compiled, untrained model and its data. Architectures are the published ones;
the data stand in for theirs (scikit-learn's digits, enlarged or turned into sequences, and signals that are made).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A network as its owner has it.

    Attributes:
        model: compiled with its own loss, metric and optimizer; untrained.
        data: x_train, y_train, x_test, y_test, as a flow's `.npz` holds them.
        epochs: of its training.
        batch_size: of its training.
    """

    model: Any
    data: Arrays
    epochs: int
    batch_size: int = 32


def resnet8() -> Case:
    """MLPerf Tiny's image classification: ResNet8 for CIFAR-10, 32 × 32 × 3."""
    import keras
    from keras import layers

    def block(x: Any, filters: int, stride: int) -> Any:
        y = layers.Conv2D(filters, 3, strides=stride, padding="same")(x)
        y = layers.Activation("relu")(layers.BatchNormalization(momentum=0.9)(y))
        y = layers.BatchNormalization(momentum=0.9)(layers.Conv2D(filters, 3, padding="same")(y))
        if stride > 1:
            x = layers.Conv2D(filters, 1, strides=stride, padding="same")(x)
        return layers.Activation("relu")(layers.Add()([x, y]))

    inputs = keras.Input((32, 32, 3))
    x = layers.Conv2D(16, 3, padding="same")(inputs)
    x = layers.Activation("relu")(layers.BatchNormalization(momentum=0.9)(x))
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        x = block(x, filters, stride)
    x = layers.Flatten()(layers.AveragePooling2D(8)(x))
    model = keras.Model(inputs, layers.Dense(10, activation="softmax")(x), name="resnet8")
    return Case(_classifier(model), _split(*_images(32, 3)), epochs=12)


def ds_cnn() -> Case:
    """MLPerf Tiny's keyword spotting: DS-CNN, 49 × 10 × 1."""
    import keras
    from keras import layers

    def block(x: Any) -> Any:
        x = layers.DepthwiseConv2D(3, padding="same")(x)
        x = layers.Activation("relu")(layers.BatchNormalization(momentum=0.9)(x))
        x = layers.Conv2D(64, 1, padding="same")(x)
        return layers.Activation("relu")(layers.BatchNormalization(momentum=0.9)(x))

    inputs = keras.Input((49, 10, 1))
    x = layers.Conv2D(64, (10, 4), strides=2, padding="same")(inputs)
    x = layers.Dropout(0.2)(layers.Activation("relu")(layers.BatchNormalization(momentum=0.9)(x)))
    for _ in range(4):
        x = block(x)
    x = layers.Flatten()(layers.AveragePooling2D((25, 5))(layers.Dropout(0.4)(x)))
    model = keras.Model(inputs, layers.Dense(10, activation="softmax")(x), name="ds_cnn")
    x, y = _digits()
    tall = np.repeat(x, 6, axis=1)
    frames = np.pad(tall, ((0, 0), (0, 1), (1, 1)))[..., None]
    return Case(_classifier(model), _split(frames, y), epochs=20)


def mobilenet() -> Case:
    """MLPerf Tiny's visual wake words: MobileNetV1 of width 0.25, 96 × 96 × 3."""
    import keras
    from keras import layers

    inputs = keras.Input((96, 96, 3))

    def normed(x: Any) -> Any:
        return layers.Activation("relu")(layers.BatchNormalization(momentum=0.9)(x))

    x = normed(layers.Conv2D(8, 3, strides=2, padding="same")(inputs))
    plan = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1)]
    for filters, stride in plan:
        x = normed(layers.DepthwiseConv2D(3, strides=stride, padding="same")(x))
        x = normed(layers.Conv2D(filters, 1, padding="same")(x))
    x = layers.Flatten()(layers.AveragePooling2D(3)(x))
    model = keras.Model(inputs, layers.Dense(2, activation="softmax")(x), name="mobilenet")
    x, y = _images(96, 3)
    # Round digits against the others: a question with two answers.
    return Case(_classifier(model), _split(x, np.isin(y, (0, 6, 8, 9)).astype(np.int64)), epochs=6)


def autoencoder() -> Case:
    """MLPerf Tiny's anomaly detection: the Dense autoencoder 640-128-128-128-128-8-128-128-128-128-640."""
    import keras
    from keras import layers

    inputs = keras.Input((640,))
    x: Any = inputs
    for width in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = layers.Activation("relu")(layers.BatchNormalization(momentum=0.9)(layers.Dense(width)(x)))
    model = keras.Model(inputs, layers.Dense(640)(x), name="autoencoder")
    model.compile("adam", "mean_squared_error")
    rng = np.random.default_rng(3)
    time = np.arange(128) / 128
    pitch, phase, loud = (rng.uniform(low, high, (2400, 1)) for low, high in ((2, 9), (0, 6.28), (0.4, 1)))
    frames = [loud * np.sin(6.28 * pitch * time * (1 + 0.02 * n) + phase) for n in range(5)]
    x = np.concatenate(frames, axis=1).astype(np.float32)
    return Case(model, _split(x, x), epochs=12)


def jet_mlp() -> Case:
    """hls4ml's jet tagger: Dense 64-32-32-5 on 16 features."""
    import keras
    from keras import layers

    model = keras.Sequential(
        [
            keras.Input((16,)),
            *(layers.Dense(width, activation="relu", name=f"fc{n}") for n, width in enumerate((64, 32, 32), start=1)),
            layers.Dense(5, activation="softmax", name="output"),
        ],
        name="jet_mlp",
    )
    rng = np.random.default_rng(4)
    y = rng.integers(0, 5, 6000)
    mix = rng.normal(size=(5, 16, 16)) / 3
    x = rng.normal(size=(5, 16))[y] * 0.6 + np.einsum("nij,nj->ni", mix[y], rng.normal(size=(6000, 16)))
    return Case(_classifier(model), _split(x.astype(np.float32), y), epochs=15)


def svhn_cnn() -> Case:
    """hls4ml's SVHN network: three convolutions of 16, 16 and 24 filters, Dense 42 and 64, 32 × 32 × 3."""
    import keras
    from keras import layers

    inputs = keras.Input((32, 32, 3))
    x: Any = inputs
    for filters in (16, 16, 24):
        x = layers.Conv2D(filters, 3, use_bias=False)(x)
        x = layers.Activation("relu")(layers.BatchNormalization(momentum=0.9)(x))
        x = layers.MaxPooling2D(2)(x)
    x = layers.Flatten()(x)
    for width in (42, 64):
        x = layers.Dense(width, use_bias=False)(x)
        x = layers.Activation("relu")(layers.BatchNormalization(momentum=0.9)(x))
    model = keras.Model(inputs, layers.Activation("softmax")(layers.Dense(10)(x)), name="svhn_cnn")
    return Case(_classifier(model), _split(*_images(32, 3)), epochs=12)


def unet() -> Case:
    """A small U-Net: 32 × 32 × 1 to a mask of the strokes, with two skips."""
    import keras
    from keras import layers

    def pair(x: Any, filters: int) -> Any:
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        return x

    inputs = keras.Input((32, 32, 1))
    first = pair(inputs, 8)
    second = pair(layers.MaxPooling2D()(first), 16)
    x = pair(layers.MaxPooling2D()(second), 32)
    x = pair(layers.Concatenate()([layers.UpSampling2D()(x), second]), 16)
    x = pair(layers.Concatenate()([layers.UpSampling2D()(x), first]), 8)
    model = keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(x), name="unet")
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    x, _ = _images(32, 1)
    clean = _enlarged(32)[..., None] > 0.5
    return Case(model, _split(x, clean.astype(np.float32)), epochs=6)


def cnn_1d() -> Case:
    """A 1-D CNN with BatchNorm on made waveforms of five shapes, 128 × 1."""
    import keras
    from keras import layers

    stack: list[Any] = [keras.Input((128, 1))]
    for filters in (16, 32, 32):
        stack += [
            layers.Conv1D(filters, 5, padding="same"),
            layers.BatchNormalization(momentum=0.9),
            layers.ReLU(),
            layers.MaxPooling1D(2),
        ]
    stack += [layers.GlobalAveragePooling1D(), layers.Dense(32, activation="relu"), layers.Dense(5, "softmax")]
    return Case(_classifier(keras.Sequential(stack, name="cnn_1d")), _split(*_waves(128)), epochs=10)


def gru() -> Case:
    """hls4ml's top tagger in small: a GRU of 20 units over 20 steps of 6 features."""
    return _recurrent("gru")


def lstm() -> Case:
    """The same with an LSTM of 20 units."""
    return _recurrent("lstm")


def attention() -> Case:
    """A block of multi-head attention over 16 steps of 8 features."""
    import keras
    from keras import layers

    inputs = keras.Input((16, 8))
    x = layers.Dense(16)(inputs)
    x = layers.LayerNormalization()(layers.Add()([x, layers.MultiHeadAttention(2, 8)(x, x)]))
    x = layers.GlobalAveragePooling1D()(layers.Dense(16, activation="relu")(x))
    model = keras.Model(inputs, layers.Dense(5, activation="softmax")(x), name="attention")
    x, y = _waves(128)
    return Case(_classifier(model), _split(x.reshape(len(x), 16, 8), y), epochs=8)


NETWORKS: Mapping[str, Callable[[], Case]] = {
    build.__name__: build
    for build in (
        *(resnet8, ds_cnn, mobilenet, autoencoder, jet_mlp, svhn_cnn),
        *(unet, cnn_1d, gru, lstm, attention),
    )
}


def _recurrent(kind: str) -> Case:
    import keras
    from keras import layers

    cell = {"gru": layers.GRU, "lstm": layers.LSTM}[kind]
    model = keras.Sequential(
        [
            keras.Input((20, 6)),
            cell(20, name=kind),
            layers.Dense(64, activation="relu", name="dense"),
            layers.Dense(5, activation="softmax", name="output"),
        ],
        name=kind,
    )
    x, y = _waves(120)
    return Case(_classifier(model), _split(x.reshape(len(x), 20, 6), y), epochs=15)


def _classifier(model: Any) -> Any:
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def _digits() -> tuple[np.ndarray, np.ndarray]:
    images, labels = load_digits(return_X_y=True)
    return (images.reshape(-1, 8, 8) / 16).astype(np.float32), labels.astype(np.int64)


def _enlarged(side: int) -> np.ndarray:
    images, _ = _digits()
    return np.kron(images, np.ones((1, side // 8, side // 8), dtype=np.float32))


def _images(side: int, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """The digits in a random colour, on noise."""
    rng = np.random.default_rng(1)
    _, labels = _digits()
    shape = _enlarged(side)[..., None]
    colour = rng.uniform(0.5, 1, (len(labels), 1, 1, channels)).astype(np.float32)
    noise = rng.normal(0, 0.08, (*shape.shape[:3], channels)).astype(np.float32)
    return np.clip(shape * colour + noise, 0, 1), labels


def _waves(length: int) -> tuple[np.ndarray, np.ndarray]:
    """Sine, square, saw, chirp and burst, each with a random pitch and phase, in noise."""
    rng = np.random.default_rng(2)
    count = 2500
    y = rng.integers(0, 5, count)
    pitch, phase = rng.uniform(2, 6, (count, 1)), rng.uniform(0, 1, (count, 1))
    turn = pitch * np.linspace(0, 1, length) + phase
    shapes = [
        np.sin(2 * np.pi * turn),
        np.sign(np.sin(2 * np.pi * turn)),
        2 * (turn % 1) - 1,
        np.sin(2 * np.pi * turn**2 / 2),
        np.sin(2 * np.pi * 3 * turn) * ((turn % 2) < 0.7),
    ]
    x = np.choose(y[:, None], shapes) + rng.normal(0, 0.25, (count, length))
    return x.astype(np.float32)[..., None], y


def _split(x: np.ndarray, y: np.ndarray) -> Arrays:
    held_out = np.arange(len(x)) % 5 == 0
    return {"x_train": x[~held_out], "y_train": y[~held_out], "x_test": x[held_out], "y_test": y[held_out]}
