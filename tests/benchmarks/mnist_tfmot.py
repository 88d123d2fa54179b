"""TF-MOT's turn, in a process with tf_keras: `python mnist_tfmot.py FOLDER SEED [small]`.

Reads `mnist.npz` and the weights `base_SEED.npz` of the trained network; writes `tfmot_SEED.h5`, the stripped network.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_model_optimization as tfmot
import tf_keras
from mnist_network import BATCH, compiled, get_weights, network, set_weights

SPARSITIES = {"conv1": 0.5, "conv2": 0.96}  # the 288 weights of the first convolution matter more
PRUNED_BY = 0.6  # of the steps: then the schedule is at its end
CHANGES = 12


def main(folder: Path, seed: int, epochs: int) -> None:
    """Prunes single weights of each convolution to its own share with TF-MOT's `PolynomialDecay` while it trains."""
    data, weights = np.load(folder / "mnist.npz"), np.load(folder / f"base_{seed}.npz")
    x, y = data["x_train"], data["y_train"]
    tf_keras.utils.set_random_seed(seed)
    end = int(PRUNED_BY * epochs * -(-len(x) // BATCH))

    def wrap(layer: Any) -> Any:
        if layer.name not in SPARSITIES:
            return layer
        share, every = SPARSITIES[layer.name], max(1, end // CHANGES)
        schedule = tfmot.sparsity.keras.PolynomialDecay(0.0, share, 0, end, frequency=every)
        return tfmot.sparsity.keras.prune_low_magnitude(layer, pruning_schedule=schedule)

    base = network(tf_keras)
    model = tf_keras.models.clone_model(base, clone_function=wrap)
    for layer in model.layers:  # a clone starts from new weights
        inner = getattr(layer, "layer", layer)
        for variable in inner.variables:
            path = f"{inner.name}/{variable.name.split('/')[-1].split(':')[0]}"
            if path in weights:
                variable.assign(weights[path])
    compiled(tf_keras, model, len(x), epochs)
    step = tfmot.sparsity.keras.UpdatePruningStep()
    model.fit(x, y, batch_size=BATCH, epochs=epochs, callbacks=[step], verbose=0)
    set_weights(base, get_weights(tfmot.sparsity.keras.strip_pruning(model)))
    base.save(folder / f"tfmot_{seed}.h5")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), 1 if "small" in sys.argv else 4)
