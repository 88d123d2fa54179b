"""What a BatchNorm by itself costs, and whether a network with one can be trained with its rounding.

    python tests/benchmarks/bench_norms.py

Five small networks for 8 x 8 digits are trained, converted with 4-bit weights and 5-bit activations, and trained on as
`fp.quantize` makes them. Accuracy on 597 samples that choose nothing; LUTs of the whole at once, estimated for Gowin.
Run another checkout's package with PYTHONPATH to compare.
"""

from __future__ import annotations

import keras
import numpy as np
from sklearn.datasets import load_digits

import fpgaprune as fp
from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.estimate import verilog_price

TARGET = fp.Target.of("tang-nano-20k")
BITS = fp.Precision(weight_bits=4, activation_bits=5)
kl = keras.layers


def _ordered(order: str, padding: str) -> list[keras.Layer]:
    """Two convolutions, each with a BatchNorm before its ReLU, behind it, or nowhere."""
    layers: list[keras.Layer] = []
    for filters in (8, 12):
        layers.append(kl.Conv2D(filters, 3, padding=padding))
        layers += {
            "none": [kl.ReLU()],
            "before": [kl.BatchNormalization(), kl.ReLU()],
            "behind": [kl.ReLU(), kl.BatchNormalization()],
        }[order]
    return [*layers, kl.GlobalAveragePooling2D(), kl.Dense(10)]


def _gated(entry: keras.KerasTensor) -> keras.KerasTensor:
    x = kl.Activation("hard_swish")(kl.Conv2D(8, 3)(entry))
    gate = kl.Dense(8, activation="hard_sigmoid")(kl.GlobalAveragePooling2D(keepdims=True)(x))
    x = kl.Conv2D(12, 3, activation="relu")(kl.Multiply()([x, gate]))
    return kl.Dense(10)(kl.GlobalAveragePooling2D()(x))


def _sequential(*layers: keras.Layer) -> keras.Model:
    return keras.Sequential([keras.Input((8, 8, 1)), *layers])


def networks() -> dict[str, keras.Model]:
    """Name to network, not trained."""
    entry = keras.Input((8, 8, 1))
    return {
        "no BatchNorm": _sequential(*_ordered("none", "valid")),
        "BatchNorm before each ReLU": _sequential(*_ordered("before", "valid")),
        "BatchNorm behind each ReLU": _sequential(*_ordered("behind", "valid")),
        "BatchNorm behind each ReLU, zeros padded": _sequential(*_ordered("behind", "same")),
        "BatchNorm at the input": _sequential(kl.BatchNormalization(), *_ordered("none", "valid")),
        "hard_swish, squeeze and excite": keras.Model(entry, _gated(entry)),
    }


def main() -> None:
    """The table, a row for each network."""
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8, 1).astype("float32") / 16
    known, unseen = (images[:1200], labels[:1200]), (images[1200:], labels[1200:])

    def correct(outputs: np.ndarray) -> str:
        return f"{(outputs.argmax(axis=-1) == unseen[1]).mean():.1%}"

    def train(model: keras.Model, rate: float) -> None:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(rate), loss)
        model.fit(*known, epochs=20, batch_size=32, verbose=0)

    print("| network | Keras | converted | trained with its rounding | LUT, all at once |", flush=True)
    print("|---|---:|---:|---:|---:|", flush=True)
    keras.utils.set_random_seed(1)
    for name, model in networks().items():
        train(model, 0.005)
        design = fp.make_design(model, TARGET, known[0], BITS)
        cells = [correct(model.predict(unseen[0], verbose=0)), correct(fp.emulate(design, unseen[0]))]
        try:
            rounded = fp.quantize(model, TARGET, known[0], BITS)
            train(rounded, 0.002)
            design = fp.make_design(rounded, TARGET, known[0])
            cells.append(correct(fp.emulate(design, unseen[0])))
        except UnsupportedLayerError:
            cells.append("refused")
        cells.append(f"{verilog_price(design, 'gowin').resources['lut'].value:,}")
        print(f"| {' | '.join([name, *cells])} |", flush=True)


if __name__ == "__main__":
    main()
