"""What training with its rounding gives back to networks of PReLU, padded averages, GRU and LSTM.

    python tests/benchmarks/bench_rounded_layers.py UCR_SMALL.npz

Each network is trained, and trained on as long again: as it is, which is then rounded, and as `fp.quantize` makes it.
Accuracy in hardware (emulated) on samples that choose nothing. 8 x 8 digits are an image for PReLU and averages; the
spoken vowels of `JapaneseVowels` (UCR archive, 25 steps of 12) go to GRU and LSTM.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import keras
import numpy as np
from sklearn.datasets import load_digits

import fpgaprune as fp

TARGET = fp.Target.of("tang-nano-20k")
kl = keras.layers
Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _digits() -> Data:
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8, 1).astype("float32") / 16
    return images[:1200], labels[:1200], images[1200:], labels[1200:]


def _vowels(path: str) -> Data:
    with np.load(path) as arrays:
        parts = [arrays[f"JapaneseVowels/{part}"] for part in ("x_train", "y_train", "x_test", "y_test")]
    return parts[0], parts[1], parts[2], parts[3]


def _image(*layers: keras.Layer) -> keras.Model:
    return keras.Sequential([keras.Input((8, 8, 1)), *layers, kl.GlobalAveragePooling2D(), kl.Dense(10)])


NETWORKS: dict[str, tuple[str, Callable[[], keras.Model]]] = {
    "PReLU": (
        "digits",
        lambda: _image(
            *(kl.Conv2D(8, 3), kl.PReLU(shared_axes=[1, 2])),
            *(kl.Conv2D(12, 3), kl.PReLU(shared_axes=[1, 2])),
        ),
    ),
    "averages padded same": (
        "digits",
        lambda: _image(
            *(kl.Conv2D(8, 3, activation="relu"), kl.AveragePooling2D(3, 2, padding="same")),
            kl.Conv2D(12, 3, activation="relu"),
        ),
    ),
    "GRU": ("vowels", lambda: keras.Sequential([keras.Input((25, 12)), kl.GRU(16), kl.Dense(9)])),
    "LSTM": ("vowels", lambda: keras.Sequential([keras.Input((25, 12)), kl.LSTM(16), kl.Dense(9)])),
}


def main() -> None:
    """The table, a row for each network and width."""
    data = {"digits": _digits(), "vowels": _vowels(sys.argv[1])}
    print("| network | bits | Keras | trained on, then rounded | trained with its rounding |", flush=True)
    print("|---|---:|---:|---:|---:|", flush=True)
    for name, (source, build) in NETWORKS.items():
        x, y, unseen, labels = data[source]
        epochs = 20 if source == "digits" else 60

        def train(model: keras.Model, rate: float, x: np.ndarray = x, y: np.ndarray = y, epochs: int = epochs) -> None:
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model.compile(keras.optimizers.Adam(rate), loss)
            model.fit(x, y, epochs=epochs, batch_size=32, verbose=0)

        def correct(outputs: np.ndarray, labels: np.ndarray = labels) -> str:
            return f"{(outputs.argmax(axis=-1) == labels).mean():.1%}"

        keras.utils.set_random_seed(1)
        model = build()
        train(model, 0.005)
        longer = keras.models.clone_model(model)
        longer.set_weights(model.get_weights())
        train(longer, 0.002)
        for bits in (6, 4, 3):
            precision = fp.Precision(bits, bits)
            before = fp.make_design(longer, TARGET, x, precision)
            rounded = fp.quantize(model, TARGET, x, precision)
            train(rounded, 0.002)
            after = fp.make_design(rounded, TARGET, x)
            cells = [correct(longer.predict(unseen, verbose=0))]
            cells += [correct(fp.emulate(design, unseen)) for design in (before, after)]
            print(f"| {' | '.join([name, str(bits), *cells])} |", flush=True)


if __name__ == "__main__":
    main()
