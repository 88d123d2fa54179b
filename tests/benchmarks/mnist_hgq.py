"""HGQ2's turn, in a process of its own: `python mnist_hgq.py START.keras MNIST.npz PRICE OUT.keras [small]`.

START is the network without the filters that a flow removed. The bits of every weight, and of every channel that a
convolution reads, are trained against their price, which rises from pass to pass to PRICE and then stays while the rate
falls to zero. Writes OUT, which a flow takes over with every bit.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
from hgq.config import QuantizerConfig
from hgq.constraints import MinMax
from hgq.layers import QConv2D, QDense
from hgq.utils import trace_minmax
from mnist_network import BATCH

READERS = ("conv1", "conv2", "out")
# The Dense layer is folded in hardware: it has so many clocks for its products.
FOLDED = 400
# Passes while the price rises, passes at the price, the rate, and the passes before it falls.
RISING, LEVEL, RATE, HELD = 12, 6, 3e-3, 12


def main(start: Path, data: Path, price: float, out: Path, *, small: bool) -> None:
    """The network with trained bits is in `out`."""
    with np.load(data) as arrays:
        x, y = arrays["x_train"], arrays["y_train"]
    keras.utils.set_random_seed(0)
    trained = keras.models.load_model(start, compile=False)
    model = quantised_network(*(trained.get_layer(name).filters for name in READERS[:2]))
    for name in READERS:
        for role in ("kernel", "bias"):
            getattr(model.get_layer(name), role).assign(getattr(trained.get_layer(name), role))
    prices = [price] if small else [*np.geomspace(price / 100, price, RISING), *[price] * LEVEL]
    steps = -(-len(x) // BATCH)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    rate = Rate(RATE, HELD * steps, (RISING + LEVEL) * steps)
    model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"], jit_compile=False, steps_per_execution=16)
    for one in prices:
        for name in READERS:
            model.get_layer(name)._beta.assign(one)
        model.fit(x, y, batch_size=BATCH, verbose=0)
    trace_minmax(model, x[:16384], batch_size=1024)
    # Without its compilation, whose rate is a class of this file.
    keras.Model(model.inputs, model.outputs).save(out)


@keras.saving.register_keras_serializable("fpgaprune_benchmark")
class Rate(keras.optimizers.schedules.LearningRateSchedule):
    """`rate` for `level` steps, then down to zero at `end` as a cosine."""

    def __init__(self, rate: float, level: int, end: int) -> None:
        self.rate, self.level, self.end = rate, level, end

    def __call__(self, step: Any) -> Any:
        done = (keras.ops.cast(step, "float32") - self.level) / max(self.end - self.level, 1)
        return self.rate * 0.5 * (1 + keras.ops.cos(np.pi * keras.ops.clip(done, 0, 1)))

    def get_config(self) -> dict[str, Any]:
        return {"rate": self.rate, "level": self.level, "end": self.end}


def quantised_network(first: int, second: int) -> Any:
    """HGQ2's layers for so many filters: bits for each weight, and for each channel that a convolution reads.

    What the Dense layer reads has one type: it takes a pixel after another in hardware, from one multiplier's input.
    """

    def reads(axes: int) -> Any:
        return QuantizerConfig("kif", "datalane", f0=5, homogeneous_axis=tuple(range(axes)))

    # HGQ2 0.2 asks the price of a bias for every pixel, but one adder adds it: here its bits are free, 8 or more.
    biases = QuantizerConfig("kbi", "bias", bc=MinMax(8, 24))
    # Few epochs take few bits away, about one each: training begins with few.
    weights = QuantizerConfig("kbi", "weight", b0=5, i0=0)
    x = entry = keras.Input((28, 28, 1), name="image")
    for number, filters in ((1, first), (2, second)):
        # The price is that of one window, which moves over the image. All axes but the channels share a type.
        options = {
            "iq_conf": reads(3),
            "bq_conf": biases,
            "kq_conf": weights,
            "activation": "relu",
            "parallelization_factor": 1,
        }
        x = QConv2D(filters, 3, name=f"conv{number}", **options)(x)
        x = keras.layers.MaxPooling2D(2, name=f"pool{number}")(x)
    x = keras.layers.Flatten(name="flat")(x)
    options = {"iq_conf": reads(2), "kq_conf": weights, "ebops_factor": 1 / FOLDED}
    return keras.Model(entry, QDense(10, name="out", **options)(x))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]), small="small" in sys.argv)
