"""HGQ2's turn, in a process of its own: `python mnist_hgq.py FOLDER SEED [small]`.

Reads `mnist.npz` and the weights `base_SEED.npz` of the trained network. The bits of every weight, and of what each
layer reads, are trained against their price, which rises from pass to pass and then stays while the rate falls to zero.
Writes `hgq_SEED.keras`, which a flow takes over with every bit.
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
from mnist_network import BATCH, SHAPES

READERS = ("conv1", "conv2", "out")
# The Dense layer is folded in hardware: it has so many clocks for its products.
FOLDED = 400
# The price of each pass, the passes before the rate falls, and the rate until then.
PRICES, LEVEL, RISE = [*np.geomspace(1e-7, 1e-5, 12), *[1e-5] * 4], 12, 3e-3


def main(folder: Path, seed: int, prices: list[float]) -> None:
    """The network with trained bits is in `folder`."""
    data, weights = np.load(folder / "mnist.npz"), np.load(folder / f"base_{seed}.npz")
    x, y = data["x_train"], data["y_train"]
    keras.utils.set_random_seed(seed)
    model = quantised_network()
    for path in SHAPES:
        layer, role = path.split("/")
        getattr(model.get_layer(layer), role).assign(weights[path])
    steps = -(-len(x) // BATCH)
    rate = Rate(RISE, LEVEL * steps, len(PRICES) * steps)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"], jit_compile=False)
    for price in prices:
        for name in READERS:
            model.get_layer(name)._beta.assign(price)
        model.fit(x, y, batch_size=BATCH, verbose=0)
    trace_minmax(model, x[:16384], batch_size=1024)
    # Without its compilation, whose rate is a class of this file.
    keras.Model(model.inputs, model.outputs).save(folder / f"hgq_{seed}.keras")


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


def quantised_network() -> Any:
    """The benchmark's network of HGQ2's layers: bits for each weight, and one type for all that a layer reads."""

    def reads(axes: int) -> Any:
        return QuantizerConfig("kif", "datalane", f0=5, homogeneous_axis=tuple(range(axes)))

    # HGQ2 0.2 asks the price of a bias for every pixel, but one adder adds it: here its bits are free, 8 or more.
    biases = QuantizerConfig("kbi", "bias", bc=MinMax(8, 24))
    # Few epochs take few bits away, about one each: training begins with few.
    weights = QuantizerConfig("kbi", "weight", b0=5, i0=0)
    x = entry = keras.Input((28, 28, 1), name="image")
    for number in (1, 2):
        # The price is that of one window, which moves over the image.
        options = {
            "iq_conf": reads(4),
            "bq_conf": biases,
            "kq_conf": weights,
            "activation": "relu",
            "parallelization_factor": 1,
        }
        x = QConv2D(32, 3, name=f"conv{number}", **options)(x)
        x = keras.layers.MaxPooling2D(2, name=f"pool{number}")(x)
    x = keras.layers.Flatten(name="flat")(x)
    options = {"iq_conf": reads(2), "kq_conf": weights, "ebops_factor": 1 / FOLDED}
    return keras.Model(entry, QDense(10, name="out", **options)(x))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), PRICES[-1:] if "small" in sys.argv else PRICES)
