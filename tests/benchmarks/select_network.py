"""The network, the images and the order of training that every way of pruning is given alike.

Loads no framework by itself: the module of Keras 3 or of tf_keras is an argument.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np

MNIST = Path(__file__).parents[3] / "shared" / "data" / "mnist"
CONVS = ("conv1/kernel", "conv2/kernel")
BATCH = 64
RATE = 1e-3

Arrays = dict[str, np.ndarray]


def network(keras: Any) -> Any:
    """28 × 28 to ten classes; the second convolution has kernels [3, 3, 32, 32]."""
    layers = keras.layers
    return keras.Sequential(
        [
            layers.InputLayer((28, 28, 1)),
            layers.Conv2D(32, 3, name="conv1"),
            layers.MaxPooling2D(2, name="pool1"),
            layers.BatchNormalization(name="bn1"),
            layers.ReLU(name="relu1"),
            layers.Conv2D(32, 3, name="conv2"),
            layers.MaxPooling2D(2, name="pool2"),
            layers.BatchNormalization(name="bn2"),
            layers.ReLU(name="relu2"),
            layers.Flatten(name="flat"),
            layers.Dense(10, name="out"),
        ]
    )


def compiled(keras: Any, model: Any, steps: int) -> Any:
    """`model` with a new Adam whose rate falls to zero, as a cosine, over `steps`."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    rate = keras.optimizers.schedules.CosineDecay(RATE, steps)
    # Without XLA: on a processor it takes longer for this network.
    model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"], jit_compile=False)
    return model


def read_mnist(train: int, folder: Path = MNIST) -> Arrays:
    """The first `train` training images and all 10,000 test images, as float32 from 0 to 1.

    `folder` may be that of another set in the same four files.
    """

    def read(name: str, offset: int) -> np.ndarray:
        with gzip.open(folder / name) as file:
            return np.frombuffer(file.read(), np.uint8, offset=offset)

    def images(name: str) -> np.ndarray:
        return (read(name, 16).reshape(-1, 28, 28, 1) / np.float32(255)).astype(np.float32)

    return {
        "x": images("train-images-idx3-ubyte.gz")[:train],
        "y": read("train-labels-idx1-ubyte.gz", 8)[:train].astype(np.int32),
        "x_test": images("t10k-images-idx3-ubyte.gz"),
        "y_test": read("t10k-labels-idx1-ubyte.gz", 8).astype(np.int32),
    }


def in_order(data: Arrays, seed: int, epochs: int) -> tuple[np.ndarray, np.ndarray]:
    """The samples of `epochs` passes one after another, each pass in an order of its own that `seed` gives."""
    order = np.concatenate(
        [np.random.default_rng([seed, pass_]).permutation(len(data["x"])) for pass_ in range(epochs)]
    )
    return data["x"][order], data["y"][order]


def accuracy(model: Any, data: Arrays) -> float:
    """In per cent of the test images."""
    guessed = model.predict(data["x_test"], batch_size=500, verbose=0).argmax(axis=-1)
    return 100 * float((guessed == data["y_test"]).mean())
