"""What training under the types of the hardware gives back of what rounding takes, under the same locks.

    python tests/benchmarks/bench_quantize.py                       # small: shows that it runs
    python tests/benchmarks/bench_quantize.py FOLDER [--networks jet_mlp,svhn_cnn] [--bits 6,4,3] [--epochs 4]

Each network of `networks.py` (trained once, FOLDER keeps it) is selected at 0.6, fine-tuned, rounded to so many bits of
weights and activations, and trained on with its rounding. Test accuracy in %, all of it in Keras; the last column says
on how many of 200 samples `emulate` gives another class than the rounded network.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
from bench_networks import train

import fpgaprune as fp

# What is measured without arguments.
SMALL = ["networks", "--networks", "jet_mlp", "--bits", "4", "--epochs", "1"]
TARGET = fp.Target.of("xc7z020clg400-1", io_type="io_parallel")


def main() -> None:
    """The table, a row for each network and width."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--networks", default="jet_mlp,svhn_cnn")
    parser.add_argument("--bits", default="6,4,3")
    parser.add_argument("--epochs", type=int, default=4)
    chosen = parser.parse_args(sys.argv[1:] or SMALL)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    print("| network | bits | floating point | rounded | trained on rounded | other classes |", flush=True)
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    for name in chosen.networks.split(","):
        train(name, chosen.folder)
        model, data = pruned(name, chosen)
        for bits in (int(text) for text in chosen.bits.split(",")):
            print(f"| {name} | {bits} | {' | '.join(row(model, data, bits, chosen.epochs))} |", flush=True)


def pruned(name: str, chosen: argparse.Namespace) -> tuple[Any, dict[str, np.ndarray]]:
    """The network, 60 % of it locked and fine-tuned, and its data."""
    with np.load(chosen.folder / f"{name}.npz") as file:
        data = dict(file)
    model = keras.models.load_model(chosen.folder / f"{name}.keras")
    keras.utils.set_random_seed(0)
    masks = fp.select(model, 0.6)
    model.compile(keras.optimizers.Adam(1e-3), model.loss, metrics=["accuracy"])
    fp.finetune(model, masks, data["x_train"], data["y_train"], epochs=chosen.epochs, batch_size=32, verbose=0)
    return model, data


def row(model: Any, data: dict[str, np.ndarray], bits: int, epochs: int) -> list[str]:
    """The cells of one width."""

    def accuracy(network: Any) -> str:
        return f"{100 * network.evaluate(data['x_test'], data['y_test'], verbose=0)[1]:.2f}"

    some = data["x_train"][:512]
    rounded = fp.quantize(model, TARGET, some, fp.Precision(bits, bits, 16))
    rounded.compile(keras.optimizers.Adam(5e-4), model.loss, metrics=["accuracy"])
    before = accuracy(rounded)
    masks = fp.from_zeros(rounded)
    fp.finetune(rounded, masks, data["x_train"], data["y_train"], epochs=epochs, batch_size=32, verbose=0)
    fp.certify(rounded, masks).require()
    x = data["x_test"][:200]
    given, found = rounded.predict(x, verbose=0), fp.emulate(fp.make_design(rounded, TARGET, some), x)
    others = int((given.argmax(axis=-1) != found.reshape(given.shape).argmax(axis=-1)).sum())
    return [accuracy(model), before, accuracy(rounded), str(others)]


if __name__ == "__main__":
    main()
