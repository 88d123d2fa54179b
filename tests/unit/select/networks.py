"""Small Keras networks with every structure that selection reads."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import layers

from fpgaprune.values import named_weights


def residual(seed: int = 0, *, activation: str = "relu") -> Any:
    """Two branches that are added, a depthwise layer, a concatenation, a Flatten and two Dense layers."""
    x = inputs = keras.Input((6, 6, 2))
    x = layers.Conv2D(4, 3, padding="same", name="stem")(x)
    x = layers.BatchNormalization(name="stem_bn")(x)
    x = trunk = layers.Activation(activation, name="stem_act")(x)
    x = layers.Conv2D(4, 3, padding="same", use_bias=False, name="branch")(x)
    x = layers.BatchNormalization(name="branch_bn")(x)
    x = layers.Add(name="add")([x, trunk])
    x = layers.ReLU(name="add_act")(x)
    d = layers.DepthwiseConv2D(3, padding="same", activation=activation, name="depth")(x)
    p = layers.Conv2D(3, 1, activation=activation, name="point")(d)
    x = layers.Concatenate(name="join")([p, x])
    x = layers.MaxPooling2D(2, name="pool")(x)
    x = layers.Conv2D(5, 1, activation=activation, name="mix")(x)
    x = layers.Flatten(name="flat")(x)
    x = layers.Dense(6, activation=activation, name="hidden")(x)
    outputs = layers.Dense(3, activation="softmax", name="out")(x)
    return filled(keras.Model(inputs, outputs, name="residual"), seed)


def plain(seed: int = 0) -> Any:
    """A Sequential network of two convolutions, one with batch normalization, and a Dense layer."""
    return filled(
        keras.Sequential(
            [
                keras.Input((6, 6, 1)),
                layers.Conv2D(4, 3, activation="relu", name="conv1"),
                layers.Conv2D(5, 3, name="conv2"),
                layers.BatchNormalization(name="bn2"),
                layers.ReLU(name="act2"),
                layers.Flatten(name="flat"),
                layers.Dense(3, activation="softmax", name="out"),
            ],
            name="plain",
        ),
        seed,
    )


def filled(model: Any, seed: int) -> Any:
    """`model` with every weight drawn anew, no bias or statistic at its special start value."""
    rng = np.random.default_rng(seed)
    for path, variable in named_weights(model).items():
        values = rng.normal(size=variable.shape) * 0.5
        variable.assign(np.abs(values) + 0.5 if path.endswith("variance") else values)
    return model


def samples(model: Any, seed: int = 0, count: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Samples and class numbers that fit `model`."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, *model.inputs[0].shape[1:])).astype(np.float32)
    return x, rng.integers(0, int(model.outputs[0].shape[-1]), count)


def with_zeros(model: Any, masks: Any) -> None:
    """Locked elements of `model` are zero."""
    weights = named_weights(model)
    for path, mask in masks.items():
        weights[path].assign(np.where(mask, weights[path].numpy(), 0))
