"""HGQ2's turn, in a process of its own: `python mnist_hgq.py FOLDER`, as `mnist_ways` prepares it.

Reads `job.json`, `weights.npz` (the trained float network) and, beside the folder, `data.npz`. The bits of every
weight, and of what each layer reads, are trained against their price, one for each pass; the rate stays for the first
passes, as many as the job's `level`, then it falls to zero. Each pass ends with `pass<number>.npz`: the values of the
quantised weights, the types of what layers read, the logits on the test images.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
from hgq.config import QuantizerConfig
from hgq.constraints import MinMax
from hgq.layers import QConv2D, QDense
from hgq.utils import trace_minmax
from mnist_network import BATCH, SHAPES, saved

READERS = ("conv1", "conv2", "out")
# The Dense layer is folded in hardware: it has so many clocks for its products.
FOLDED = 400


def main(folder: Path) -> None:
    """Every pass that is not there yet is trained."""
    job = json.loads((folder / "job.json").read_text())
    data = dict(np.load(folder.parent / "data.npz"))
    keras.utils.set_random_seed(job["seed"])
    model = quantised_network(job.get("least", {}))
    adopt(model, dict(np.load(folder / "weights.npz")))
    steps = -(-len(data["x"]) // BATCH)
    rate = Rate(job["rate"], job["level"] * steps, len(job["prices"]) * steps)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"], jit_compile=False)
    for number, price in enumerate(job["prices"]):
        state, target = folder / f"pass{number}.weights.h5", folder / f"pass{number}.npz"
        if target.is_file():
            model.load_weights(state)
            continue
        for name in READERS:
            model.get_layer(name)._beta.assign(price)
        # After a stop the slots begin anew, the rate does not.
        model.optimizer.iterations.assign(number * steps)
        model.fit(data["x"], data["y"], batch_size=BATCH, verbose=0)
        trace_minmax(model, data["x"][:16384], batch_size=1024)
        model.save_weights(state)
        found = saved(target, export(model, data))
        print(number, f"{price:.1e}", bits(model), f"{found['accuracy']:.2f}", flush=True)


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


def quantised_network(least: dict[str, int]) -> Any:
    """The benchmark's network of HGQ2's layers: bits for each weight, and one type for all that a layer reads.

    A stream has one type for all its channels in this hardware, in all ways alike.

    Args:
        least: fraction bits that what a layer reads keeps at least, by layer; what is not named may lose all.
    """

    def reads(name: str, axes: int) -> Any:
        options = {"fc": MinMax(least[name], 12)} if name in least else {}
        return QuantizerConfig("kif", "datalane", f0=5, homogeneous_axis=tuple(range(axes)), **options)

    # HGQ2 0.2 asks the price of a bias for every pixel, but one adder adds it: here its bits are free, 8 or more.
    biases = QuantizerConfig("kbi", "bias", bc=MinMax(8, 24))
    # Few epochs take few bits away, about one each: training begins with few.
    weights = QuantizerConfig("kbi", "weight", b0=5, i0=0)
    x = entry = keras.Input((28, 28, 1), name="image")
    for number in (1, 2):
        # The price is that of one window, which moves over the image.
        options = {
            "iq_conf": reads(f"conv{number}", 4),
            "bq_conf": biases,
            "kq_conf": weights,
            "activation": "relu",
            "parallelization_factor": 1,
        }
        x = QConv2D(32, 3, name=f"conv{number}", **options)(x)
        x = keras.layers.MaxPooling2D(2, name=f"pool{number}")(x)
    x = keras.layers.Flatten(name="flat")(x)
    options = {"iq_conf": reads("out", 2), "kq_conf": weights, "ebops_factor": 1 / FOLDED}
    return keras.Model(entry, QDense(10, name="out", **options)(x))


def adopt(model: Any, weights: dict[str, Any]) -> None:
    """`model` has the float network's kernels and biases, with bits enough for all of them."""
    for path in SHAPES:
        layer, role = path.split("/")
        getattr(model.get_layer(layer), role).assign(weights[path])


def bits(model: Any) -> dict[str, int]:
    """Effective bit operations of one window or clock, by layer."""
    return {name: int(model.get_layer(name)._ebops.numpy()) for name in READERS}


def export(model: Any, data: dict[str, Any]) -> dict[str, Any]:
    """Values, types and logits as plain arrays."""
    found: dict[str, Any] = {}
    for name in READERS:
        layer = model.get_layer(name)
        found[f"{name}/kernel"] = np.asarray(layer.qkernel, np.float64)
        found[f"{name}/bias"] = np.asarray(layer.qbias, np.float64)
        quantizer = layer.iq.quantizer
        # Sign, integer bits without it, fraction bits.
        found[f"{name}/reads"] = np.array([int(np.ravel(part)[0]) for part in quantizer.kif], np.int64)
    logits = model.predict(data["x_test"], batch_size=500, verbose=0)
    found["logits"] = logits
    found["accuracy"] = np.float64(100 * (logits.argmax(axis=-1) == data["y_test"]).mean())
    found["ebops"] = np.array(list(bits(model).values()))
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
