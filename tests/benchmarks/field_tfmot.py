"""TF-MOT's turn in `bench_field.py`, with tf_keras: `field_tfmot.py BASE.keras DATA SPARSITY EPOCHS BATCH OUT.h5`.

Every layer with a kernel but the last is pruned by magnitude to SPARSITY while it trains, as TF-MOT's guide does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow_model_optimization as tfmot
import tf_keras

# Of the steps: then the schedule is at its end.
PRUNED_BY, CHANGES, RATE = 0.6, 12, 1e-3


def main(base: Path, data: Path, sparsity: float, epochs: int, batch: int, out: Path) -> None:
    """The stripped network is in `out`."""
    with np.load(data) as arrays:
        x, y = arrays["x_train"], arrays["y_train"]
    start = rebuilt(base)
    steps = epochs * -(-len(x) // batch)
    end = int(PRUNED_BY * steps)

    def wrap(layer: Any) -> Any:
        if not layer.weights or layer is start.layers[-1]:
            return layer
        schedule = tfmot.sparsity.keras.PolynomialDecay(0.0, sparsity, 0, end, frequency=max(1, end // CHANGES))
        return tfmot.sparsity.keras.prune_low_magnitude(layer, pruning_schedule=schedule)

    model = tf_keras.models.clone_model(start, clone_function=wrap)
    for layer, other in zip(model.layers, start.layers, strict=True):
        inner = getattr(layer, "layer", layer)
        for variable, value in zip(inner.trainable_variables, other.trainable_variables, strict=True):
            variable.assign(value)
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    rate = tf_keras.optimizers.schedules.CosineDecay(RATE, steps)
    model.compile(tf_keras.optimizers.Adam(rate), loss, jit_compile=False)
    model.fit(x, y, batch_size=batch, epochs=epochs, verbose=0, callbacks=[tfmot.sparsity.keras.UpdatePruningStep()])
    tfmot.sparsity.keras.strip_pruning(model).save(out)


def rebuilt(base: Path) -> Any:
    """The Sequential of Keras 3 in `base`, of tf_keras, with its weights."""
    source = keras.models.load_model(base, compile=False)
    made = [tf_keras.layers.InputLayer(source.input_shape[1:])]
    for layer in source.layers:
        kind = getattr(tf_keras.layers, type(layer).__name__)
        if kind is tf_keras.layers.Flatten:
            made.append(kind(name=layer.name))
            continue
        config = layer.get_config()
        names = ("name", "units", "activation", "filters", "kernel_size", "strides", "padding", "pool_size")
        made.append(kind(**{name: config[name] for name in names if name in config}))
    model = tf_keras.Sequential(made)
    model.set_weights(source.get_weights())
    return model


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        float(sys.argv[3]),
        int(sys.argv[4]),
        int(sys.argv[5]),
        Path(sys.argv[6]),
    )
