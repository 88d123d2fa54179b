"""The network that a flow trains if its configuration names none."""

from __future__ import annotations

from typing import Any

from fpgaprune.values import NamedWeights, keras_names

NAME = "small_cnn"
FILTERS = (32, 32, 16)


def small_cnn(input_shape: tuple[int, ...], classes: int) -> Any:
    """An uncompiled Keras CNN: three 3x3 convolutions with BatchNorm and ReLU, one pooling, a Dense head."""
    import keras
    from keras import layers

    stack: list[Any] = [keras.Input(input_shape, name="input")]
    for number, filters in enumerate(FILTERS, start=1):
        padding = "same" if number < len(FILTERS) else "valid"
        stack += [
            layers.Conv2D(filters, 3, padding=padding, name=f"conv{number}"),
            layers.BatchNormalization(momentum=0.9, name=f"bn{number}"),
            layers.ReLU(name=f"relu{number}"),
        ]
        if number == 2:
            stack.append(layers.MaxPooling2D(name="pool"))
    stack += [
        layers.Flatten(name="flatten"),
        layers.Dropout(0.2, name="dropout"),
        layers.Dense(classes, name="dense"),
        layers.Softmax(name="softmax"),
    ]
    return keras.Sequential(stack, name=NAME)


def small_cnn_shapes(input_shape: tuple[int, ...], classes: int) -> NamedWeights[tuple[int, ...]]:
    """Weight path to shape in `small_cnn`, without loading TensorFlow."""
    height, width, channels = input_shape
    shapes: dict[str, tuple[int, ...]] = {}
    for number, filters in enumerate(FILTERS, start=1):
        shapes[f"conv{number}/kernel"] = (3, 3, channels, filters)
        shapes[f"conv{number}/bias"] = (filters,)
        for vector in ("gamma", "beta", "moving_mean", "moving_variance"):
            shapes[f"bn{number}/{vector}"] = (filters,)
        channels = filters
    shapes["dense/kernel"] = ((height // 2 - 2) * (width // 2 - 2) * channels, classes)
    shapes["dense/bias"] = (classes,)
    return NamedWeights(shapes, {path: keras_names(NAME, "", path) for path in shapes})
