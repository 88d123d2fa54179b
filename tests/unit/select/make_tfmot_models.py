"""Writes pruned tf_keras models of every form into a folder; started in a process of its own, with tf_keras.

python make_tfmot_models.py FOLDER [FORM ...], a form being `wrapped.h5`, `stripped.keras`, `wrapped_tf`, ...
"""

import sys
from pathlib import Path

import numpy as np
import tensorflow_model_optimization as tfmot
import tf_keras
from tf_keras import layers


def network():
    inputs = tf_keras.Input((8, 8, 2))
    x = layers.Conv2D(4, 3, padding="same", name="stem")(inputs)
    x = layers.BatchNormalization(name="norm")(x)
    x = trunk = layers.ReLU(name="act")(x)
    x = layers.DepthwiseConv2D(3, padding="same", name="depth")(x)
    x = layers.SeparableConv2D(4, 3, padding="same", name="sep")(x)
    x = layers.LeakyReLU(0.1, name="leaky")(x)
    x = layers.Add(name="add")([x, trunk])
    x = layers.Dropout(0.2, name="drop")(x)
    x = layers.MaxPooling2D(2, name="pool")(x)
    x = layers.Flatten(name="flat")(x)
    return tf_keras.Model(inputs, layers.Dense(3, "softmax", name="out")(x), name="pruned")


def main(folder, forms):
    tf_keras.utils.set_random_seed(0)
    schedule = tfmot.sparsity.keras.ConstantSparsity(0.5, 0, frequency=1)
    wrapped = tfmot.sparsity.keras.prune_low_magnitude(network(), pruning_schedule=schedule)
    wrapped.compile("adam", "sparse_categorical_crossentropy")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 8, 8, 2)), rng.integers(0, 3, 64)
    step = tfmot.sparsity.keras.UpdatePruningStep()
    wrapped.fit(x, y, epochs=2, batch_size=16, callbacks=[step], verbose=0)
    stripped = tfmot.sparsity.keras.strip_pruning(wrapped)
    kernel = stripped.get_layer("stem").kernel
    values = kernel.numpy()
    values[0, 0, 0, :2] = [0.0, -0.0]
    kernel.assign(values)
    probe = rng.normal(size=(5, 8, 8, 2)).astype(np.float32)
    answers = {"stripped": stripped.predict(probe, verbose=0)}
    for form in forms:
        if form.startswith("stripped"):
            stripped.save(folder / form)
    # A step outside of the pruning callback leaves masked weights at other values than zero.
    step.set_model(wrapped)
    step.on_train_begin()
    wrapped.train_on_batch(x[:16], y[:16])
    for form in forms:
        if form.startswith("wrapped"):
            wrapped.save(folder / form)
    np.savez(folder / "probe.npz", x=probe, wrapped=wrapped.predict(probe, verbose=0), **answers)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
