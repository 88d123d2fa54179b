"""TF-MOT's turn, in a process with tf_keras: `python mnist_tfmot.py FOLDER`, as `mnist_ways` prepares it.

Reads `job.json`, `weights.npz` and, beside the folder, `data.npz`; writes `pruned.npz`, the stripped weights.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_model_optimization as tfmot
import tf_keras
from mnist_network import BATCH, compiled, get_weights, keras_accuracy, network, saved, set_weights

PRUNED_BY = 0.6  # of the steps: then the schedule is at its end
CHANGES = 12


def main(folder: Path) -> None:
    """Prunes single weights of each convolution to its own share with TF-MOT's `PolynomialDecay` while it trains."""
    job = json.loads((folder / "job.json").read_text())
    data = dict(np.load(folder.parent / "data.npz"))
    weights = dict(np.load(folder / "weights.npz"))
    tf_keras.utils.set_random_seed(job["seed"])
    end = int(PRUNED_BY * job["epochs"] * -(-len(data["x"]) // BATCH))

    def wrap(layer: Any) -> Any:
        if layer.name not in job["sparsities"]:
            return layer
        share = job["sparsities"][layer.name]
        schedule = tfmot.sparsity.keras.PolynomialDecay(0.0, share, 0, end, frequency=max(1, end // CHANGES))
        return tfmot.sparsity.keras.prune_low_magnitude(layer, pruning_schedule=schedule)

    base = network(tf_keras)
    model = tf_keras.models.clone_model(base, clone_function=wrap)
    for layer in model.layers:  # a clone starts from new weights
        inner = getattr(layer, "layer", layer)
        for variable in inner.variables:
            path = f"{inner.name}/{variable.name.split('/')[-1].split(':')[0]}"
            if path in weights:
                variable.assign(weights[path])
    compiled(tf_keras, model, len(data["x"]), job["epochs"])
    step = tfmot.sparsity.keras.UpdatePruningStep()
    model.fit(data["x"], data["y"], batch_size=BATCH, epochs=job["epochs"], callbacks=[step], verbose=0)
    stripped = tfmot.sparsity.keras.strip_pruning(model)
    set_weights(base, get_weights(stripped))
    found = saved(folder / "pruned.npz", get_weights(base))
    kept = {name: int(np.count_nonzero(found[f"{name}/kernel"])) for name in job["sparsities"]}
    print(folder.name, f"{keras_accuracy(base, data):.2f}", kept, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
