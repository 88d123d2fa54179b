"""The network of the hardware benchmark, its images, and how every way trains it.

Two convolutions, the second with kernels [3, 3, 32, 32], each with ReLU and pooling, and a Dense layer: no batch
normalisation, so that a weight in Keras is a weight in hardware. Loads no framework by itself: the module of Keras 3 or
of tf_keras is an argument.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from select_network import MNIST, read_mnist

SHAPES = {
    "conv1/kernel": (3, 3, 1, 32),
    "conv1/bias": (32,),
    "conv2/kernel": (3, 3, 32, 32),
    "conv2/bias": (32,),
    "out/kernel": (800, 10),
    "out/bias": (10,),
}
BATCH = 128
RATE = 1e-3

Arrays = dict[str, np.ndarray]


def network(keras: Any) -> Any:
    """28 × 28 to ten logits."""
    layers = keras.layers
    x = entry = keras.Input((28, 28, 1), name="image")
    for number in (1, 2):
        x = layers.Conv2D(32, 3, name=f"conv{number}")(x)
        x = layers.ReLU(name=f"relu{number}")(x)
        x = layers.MaxPooling2D(2, name=f"pool{number}")(x)
    return keras.Model(entry, layers.Dense(10, name="out")(layers.Flatten(name="flat")(x)))


def compiled(keras: Any, model: Any, samples: int, epochs: float, rate: float = RATE) -> Any:
    """`model` with a new Adam whose rate falls to zero, as a cosine, over `epochs` passes."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    steps = max(1, round(epochs * -(-samples // BATCH)))
    optimizer = keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(rate, steps))
    # Without XLA: on a processor it takes longer for this network.
    model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=False)
    return model


def read_data(samples: int, held_out: int, folder: Path = MNIST) -> Arrays:
    """MNIST with values that 8 bits hold exactly, from 0 to 255/256.

    Args:
        samples: of the 60,000 training images, the first so many.
        held_out: the last so many of them, which no training sees: they choose types, and what is compared with what.
        folder: of MNIST, or of another set in the same four files.
    """
    found = read_mnist(samples, folder)
    for name in ("x", "x_test"):
        # What a camera gives the hardware: the byte itself, its point moved.
        found[name] = np.round(found[name] * 255).astype(np.float32) / np.float32(256)
    seen = samples - held_out
    for name in ("x", "y"):
        found[f"{name}_valid"], found[name] = found[name][seen:], found[name][:seen]
    return found


def initial_weights(seed: int) -> Arrays:
    """Kernels of He et al. (2015), biases zero; drawn by NumPy, so that every framework starts alike."""
    rng = np.random.default_rng(seed)
    return {
        path: np.zeros(shape, np.float32)
        if path.endswith("bias")
        else (rng.normal(size=shape) * np.sqrt(2 / np.prod(shape[:-1]))).astype(np.float32)
        for path, shape in SHAPES.items()
    }


def weights_of(model: Any) -> dict[str, Any]:
    """`layer/kernel` to the variable, in Keras 3 and tf_keras alike."""
    return {
        f"{layer.name}/{variable.name.split('/')[-1].split(':')[0]}": variable
        for layer in model.layers
        for variable in layer.weights
    }


def set_weights(model: Any, arrays: Arrays) -> None:
    """Every weight of `model` is that of `arrays`."""
    for path, variable in weights_of(model).items():
        variable.assign(arrays[path])


def get_weights(model: Any) -> Arrays:
    """Every weight by path."""
    return {path: np.array(variable.numpy()) for path, variable in weights_of(model).items()}


def accuracy(logits: np.ndarray, labels: np.ndarray) -> float:
    """In per cent."""
    return 100 * float((logits.reshape(len(labels), -1).argmax(axis=-1) == labels).mean())
