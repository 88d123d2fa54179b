"""HGQ2's turn beside `fit`, in a process of its own: `python fit_hgq.py START.keras DATA.npz PRICE CYCLES OUT.keras`.

HGQ2's layers begin with the weights of START. The bits of every weight, and of every channel that a layer reads (of
every input, in a Dense network), are trained against their price, which rises for half of the epochs to PRICE and then
stays while the rate falls. A Dense layer behind convolutions has CYCLES clocks for its products, so it costs so many
times less. Writes OUT, which a flow takes over with every bit.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
from hgq.config import QuantizerConfig
from hgq.constraints import MinMax
from hgq.layers import QConv1D, QConv2D, QDense
from hgq.utils import trace_minmax
from hgq.utils.sugar import BetaScheduler, FreeEBOPs, PieceWiseSchedule
from mnist_hgq import Rate

BATCH, EPOCHS, RATE = 512, 60, 5e-3
_CONVOLUTIONS = {keras.layers.Conv1D: QConv1D, keras.layers.Conv2D: QConv2D}


def main(start: Path, data: Path, price: float, cycles: int, out: Path) -> None:
    """The network with trained bits is in `out`."""
    with np.load(data) as arrays:
        x, y = arrays["x_train"], arrays["y_train"]
    keras.utils.set_random_seed(0)
    trained = keras.models.load_model(start, compile=False)
    model = quantised(trained, cycles)
    steps = -(-len(x) // BATCH)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    rate = Rate(RATE, EPOCHS * steps * 6 // 10, EPOCHS * steps)
    model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"], steps_per_execution=math.gcd(steps, 16))
    rising = BetaScheduler(PieceWiseSchedule([(0, price / 100, "log"), (EPOCHS // 2, price, "constant")]))
    model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0, callbacks=[rising, FreeEBOPs()])
    trace_minmax(model, x[:16384], batch_size=1024)
    # Without its compilation, whose rate is a class of this folder.
    keras.Sequential([keras.Input(model.input_shape[1:]), *model.layers]).save(out)


def quantised(trained: Any, cycles: int) -> Any:
    """HGQ2's layers in the place of those of `trained`, with its weights."""
    convolutional = any(type(layer) in _CONVOLUTIONS for layer in trained.layers)
    # HGQ2 0.2 asks the price of a bias for every pixel, but one adder adds it: here its bits are free, 8 or more.
    options = {"bq_conf": QuantizerConfig("kbi", "bias", bc=MinMax(8, 24))} if convolutional else {}
    made = [keras.Input(trained.input_shape[1:])]
    for layer in trained.layers:
        made.append(_quantised(layer, options, cycles if convolutional else 1))
    model = keras.Sequential(made)
    for one, other in zip(model.layers, trained.layers, strict=True):
        if other.weights:
            one.kernel.assign(other.kernel)
            one.bias.assign(other.bias)
    return model


def _quantised(layer: Any, options: dict[str, Any], cycles: int) -> Any:
    config, kind = layer.get_config(), type(layer)
    if not layer.weights:
        return kind.from_config(config)
    own = {"name": config["name"], "activation": config["activation"], **options}
    # Few epochs take few bits away, about one each: training begins with few.
    own["kq_conf"] = QuantizerConfig("kbi", "weight", b0=5, i0=0)
    if kind is keras.layers.Dense:
        if cycles > 1:
            own |= {"iq_conf": _reads(2), "ebops_factor": 1 / cycles}
        return QDense(config["units"], **own)
    if kind not in _CONVOLUTIONS:
        raise SystemExit(f"HGQ2 has no layer for {layer.name!r}, a {kind.__name__}")
    # The price is that of one window, which moves over the positions. All axes but the channels share a type.
    own |= {key: config[key] for key in ("filters", "kernel_size", "strides", "padding")}
    return _CONVOLUTIONS[kind](**own, iq_conf=_reads(len(layer.input.shape) - 1), parallelization_factor=1)


def _reads(axes: int) -> Any:
    """One type for each channel of what a layer reads; one for all of it, if `axes` are all axes."""
    return QuantizerConfig("kif", "datalane", f0=5, homogeneous_axis=tuple(range(axes)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
