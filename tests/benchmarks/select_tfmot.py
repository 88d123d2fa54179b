"""TF-MOT's turn, in a process with tf_keras: `python select_tfmot.py FOLDER`, as `select_ways` prepares it.

Reads `job.json`, `data.npz` (samples in the order of training) and `weights.npz`; writes `result.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_model_optimization as tfmot
import tf_keras
from select_network import BATCH, accuracy, compiled, network


def main(folder: Path) -> None:
    """Prunes single weights of the convolutions with TF-MOT's `PolynomialDecay` while it trains."""
    job = json.loads((folder / "job.json").read_text())
    data = dict(np.load(folder / "data.npz"))
    weights = dict(np.load(folder / "weights.npz"))
    tf_keras.utils.set_random_seed(job["seed"])
    base = network(tf_keras)
    for variable in base.variables:
        variable.assign(weights[variable.name.split(":")[0]])
    schedule = tfmot.sparsity.keras.PolynomialDecay(
        0.0, job["sparsity"], 0, job["end_step"], frequency=job["frequency"]
    )

    def wrap(layer: Any) -> Any:
        is_conv = isinstance(layer, tf_keras.layers.Conv2D)
        return tfmot.sparsity.keras.prune_low_magnitude(layer, pruning_schedule=schedule) if is_conv else layer

    model = compiled(tf_keras, tf_keras.models.clone_model(base, clone_function=wrap), job["steps"])
    for layer in model.layers:  # a clone starts from new weights
        inner = getattr(layer, "layer", layer)
        for variable in inner.variables:
            path = f"{inner.name}/{variable.name.split('/')[-1].split(':')[0]}"
            if path in weights:
                variable.assign(weights[path])
    step = tfmot.sparsity.keras.UpdatePruningStep()
    model.fit(data["x"], data["y"], batch_size=BATCH, shuffle=False, callbacks=[step], verbose=0)
    stripped = tfmot.sparsity.keras.strip_pruning(model)
    kernels = [layer.kernel.numpy() for layer in stripped.layers if isinstance(layer, tf_keras.layers.Conv2D)]
    zeros = sum(int((kernel == 0).sum()) for kernel in kernels) / sum(kernel.size for kernel in kernels)
    (folder / "result.json").write_text(json.dumps({"accuracy": accuracy(stripped, data), "zeros": zeros}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
