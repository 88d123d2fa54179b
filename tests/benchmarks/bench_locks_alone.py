"""What the locks saved, apart from what re-training saved: the same network, the same types, with and without locks.

Prints one row for each of four networks: as trained; trained on without locks; locked and not trained on; locked and
trained on. All have the types of the first. A row is the mean of the seeds, with the smallest and the largest value.
"""

from __future__ import annotations

import argparse

import keras
import numpy as np
from sklearn.datasets import load_digits

import fpgaprune as fp

SPARSITY, EPOCHS = 0.6, 12
PRECISION = fp.Precision(weight_bits=6, activation_bits=8)
NAMES = ("as trained", "trained on", "locked", "locked and trained on")


def trained(seed: int, x, y):
    """The network of the tutorial."""
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(8, 3, activation="relu", name="conv1"),
            keras.layers.MaxPooling2D(2, name="pool"),
            keras.layers.Conv2D(12, 3, activation="relu", name="conv2"),
            keras.layers.Flatten(name="flatten"),
            keras.layers.Dense(10, name="dense"),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.005), loss, metrics=["accuracy"])
    model.fit(x, y, epochs=12, verbose=0)
    return model, loss


def rows(seed: int, samples):
    """Accuracy, LUTs of an hls4ml project, and LUTs of our Verilog, of each of the four networks."""
    x, y, x_test, y_test = samples
    model, loss = trained(seed, x, y)
    target = fp.Target.of("xc7z020clg400-1")
    chosen = fp.select(model, SPARSITY)
    free = fp.MaskSet({path: np.ones_like(mask) for path, mask in chosen.items()})
    for name, masks, epochs in zip(NAMES, (free, free, chosen, chosen), (0, EPOCHS, 0, EPOCHS), strict=True):
        rounded = fp.quantize(model, target, x[:256], PRECISION)
        rounded.compile(keras.optimizers.Adam(0.001), loss, metrics=["accuracy"])
        fp.lock(rounded, masks)
        if epochs:
            rounded.fit(x, y, epochs=epochs, verbose=0)
        fp.certify(rounded, masks).require()
        design = fp.make_design(rounded, target, x[:256])
        correct = (fp.emulate(design, x_test).argmax(axis=-1) == y_test).mean()
        project = fp.estimate(design, target).total["synth"].lut.value
        verilog = fp.verilog_price(design, "xc7").resources.lut.value
        yield name, 100 * correct, project, verilog


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=1)
    images, labels = load_digits(return_X_y=True)
    images = (images.reshape(-1, 8, 8, 1) / 16).astype("float32")
    samples = images[:1000], labels[:1000], images[1000:], labels[1000:]
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in NAMES}
    for seed in range(parser.parse_args().seeds):
        for name, *values in rows(seed, samples):
            found[name].append(tuple(values))
    print("| network | accuracy in hardware, % | LUT, hls4ml | LUT, our Verilog |\n|---|---:|---:|---:|")
    for name, values in found.items():
        cells = []
        for column, digits in zip(zip(*values, strict=True), (1, 0, 0), strict=True):
            mean, low, high = np.mean(column), min(column), max(column)
            cells.append(f"{mean:,.{digits}f} ({low:,.{digits}f}–{high:,.{digits}f})")
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
