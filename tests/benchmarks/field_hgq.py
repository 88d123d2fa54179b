"""HGQ2's turn in `bench_field.py`: `python field_hgq.py TASK SEED PRICE EPOCHS OUT [shared]`.

As HGQ2's authors use it: from scratch, bits for every weight and for every value that a layer reads, trained against
their price, which rises for half of the epochs to PRICE and then stays while the rate falls. Writes OUT.keras and
OUT.json: accuracy and cells of alkaid's Verilog of the whole network. With `shared` all positions of a convolution
share the types of a channel and the price is that of one window, as our Verilog moves it over the sample; then alkaid
has no turn.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np
from field_tasks import TASKS, Arrays, network
from hgq.config import LayerConfigScope, QuantizerConfig, QuantizerConfigScope
from hgq.constraints import MinMax
from hgq.layers import QConv1D, QConv2D, QDense
from hgq.utils import trace_minmax
from hgq.utils.sugar import BetaScheduler, FreeEBOPs, PieceWiseSchedule
from mnist_hgq import Rate

RATE = 5e-3
_LAYERS = {keras.layers.Dense: QDense, keras.layers.Conv1D: QConv1D, keras.layers.Conv2D: QConv2D}


def main(name: str, seed: int, price: float, epochs: int, out: Path, *, shared: bool) -> None:
    """`out`.keras has the network with trained bits, `out`.json what there is to say of it."""
    task = TASKS[name]
    arrays = task.arrays()
    plain = network(task, arrays, seed)
    with (
        QuantizerConfigScope(place="all", default_q_type="kbi", overflow_mode="SAT_SYM"),
        QuantizerConfigScope(place="datalane", default_q_type="kif", overflow_mode="WRAP"),
        LayerConfigScope(enable_ebops=True, beta0=1e-7),
    ):
        made = [keras.Input(plain.input_shape[1:]), *(_quantised(one, task.interval, shared) for one in plain.layers)]
        model = keras.Sequential(made)
    x, y = arrays["x_train"], arrays["y_train"]
    steps = -(-len(x) // task.batch)
    began = time.process_time()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    rate = Rate(RATE, epochs * steps * 6 // 10, epochs * steps)
    model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"], steps_per_execution=math.gcd(steps, 16))
    rising = BetaScheduler(PieceWiseSchedule([(0, min(1e-7, price), "log"), (max(epochs // 2, 1), price, "constant")]))
    model.fit(x, y, batch_size=task.batch, epochs=epochs, verbose=0, callbacks=[rising, FreeEBOPs()])
    trace_minmax(model, x[:16384], batch_size=1024)
    said: dict[str, Any] = {"seconds": time.process_time() - began}
    # Without its compilation, whose rate is a class of this folder.
    keras.Sequential([keras.Input(model.input_shape[1:]), *model.layers]).save(out.with_suffix(".keras"))
    if not shared:
        said |= in_alkaid(model, arrays, out)
    out.with_suffix(".json").write_text(json.dumps(said) + "\n")


def in_alkaid(model: Any, arrays: Arrays, out: Path, inputs_kif: tuple[int, int, int] | None = None) -> dict[str, Any]:
    """Accuracy on validation and test samples, cells and latency of alkaid's Verilog of `model`, in `out`.rtl."""
    from mnist_alkaid import verilog

    logic, cells, latency = verilog(model, "network", out.with_suffix(".rtl"), inputs_kif)
    said: dict[str, Any] = {}
    for part in ("valid", "test"):
        samples = arrays[f"x_{part}"]
        found = np.asarray(logic.predict(samples.reshape(len(samples), -1).astype(np.float64)))
        said[part] = float((found.reshape(len(samples), -1).argmax(1) == arrays[f"y_{part}"]).mean())
    said |= {"lut": cells.lut, "ff": cells.ff, "dsp": cells.dsp, "bram18": cells.bram18}
    return said | {"interval_cycles": 1, "latency_cycles": int(latency), "samples": len(arrays["y_test"])}


def _quantised(layer: Any, interval: int, shared: bool) -> Any:
    config, kind = layer.get_config(), type(layer)
    if kind not in _LAYERS:
        return kind.from_config(config)
    own = {"name": config["name"], "activation": config["activation"]}
    if shared:
        # HGQ2 0.2 asks the price of a bias for every position, but one adder adds it: its bits are free, 8 or more.
        own["bq_conf"] = QuantizerConfig("kbi", "bias", bc=MinMax(8, 24))
        axes = tuple(range(len(layer.input.shape) - (kind is not keras.layers.Dense)))
        own["iq_conf"] = QuantizerConfig("kif", "datalane", homogeneous_axis=axes)
    if kind is keras.layers.Dense:
        # Behind convolutions, a Dense layer has `interval` cycles for its products.
        return QDense(config["units"], **own, **({"ebops_factor": 1 / interval} if shared else {}))
    own |= {key: config[key] for key in ("filters", "kernel_size", "strides", "padding")}
    return _LAYERS[kind](**own, **({"parallelization_factor": 1} if shared else {}))


if __name__ == "__main__":
    main(
        sys.argv[1],
        int(sys.argv[2]),
        float(sys.argv[3]),
        int(sys.argv[4]),
        Path(sys.argv[5]),
        shared="shared" in sys.argv,
    )
