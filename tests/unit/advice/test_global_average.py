"""The lines of Python that replace an average over a whole map do so as they are printed."""

import keras
import numpy as np
from keras import layers

from fpgaprune.advice import global_average
from tests.unit.emulate.designs import design, layer

POOL = {"pool_op": "Average", "pool_height": 8, "pool_width": 8}
# As hls4ml builds the network below; our own projects have a global pooling there already.
BUILT = design(
    layer("x", "Input", None, (8, 8, 3)),
    layer("mean", "Pooling2D", "x", (1, 1, 3), attributes=POOL),
)


def test_the_lines_run_and_the_network_computes_the_same():
    keras.utils.set_random_seed(0)
    inputs = keras.Input((8, 8, 3), name="x")
    x = layers.AveragePooling2D(8, name="mean")(inputs)
    x = layers.Conv2D(6, 1, activation="relu", name="point")(x)
    model = keras.Model(inputs, layers.Dense(3, name="logits")(layers.Flatten(name="flat")(x)))
    _, text = global_average(BUILT)
    space = {"keras": keras, "model": model}
    exec(text, space)  # noqa: S102
    changed = space["changed"]
    assert isinstance(changed.get_layer("mean"), layers.GlobalAveragePooling2D)
    samples = np.random.default_rng(0).random((4, 8, 8, 3), dtype=np.float32)
    assert np.allclose(model(samples), changed(samples), atol=1e-6)
