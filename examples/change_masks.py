"""Two steps of Adam with another mask each: [0, 1, 1, 0], then [1, 0, 0, 1].

A gradient mask alone lets Adam's momentum move elements that the second mask locks. Here they stand still in
weight and moments, and an element that is freed goes on from the moments that it was held at, without a retrace.
Run it: `python examples/change_masks.py`; it takes seconds on a CPU.
"""

import keras
import numpy as np

import fpgaprune as fp

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, use_bias=False, name="dense")])
model.compile(keras.optimizers.Adam(0.1), "mse")
x = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")
y = np.ones((8, 1), dtype="float32")
kernel = model.get_layer("dense").kernel


def masks(*free):
    """1 = free, 0 = locked."""
    return fp.MaskSet({"dense/kernel": np.array(free, dtype=bool).reshape(4, 1)})


start = kernel.numpy().ravel()
fp.lock(model, masks(0, 1, 1, 0), values="current")
model.train_on_batch(x, y)
first = kernel.numpy().ravel()
fp.relock(model, masks(1, 0, 0, 1), values="current")
model.train_on_batch(x, y)
second = kernel.numpy().ravel()

for name, values in (("start", start), ("0 1 1 0", first), ("1 0 0 1", second)):
    print(f"{name:8}", "  ".join(f"{value:+.6f}" for value in values))
moved = [(first != start).tolist(), (second != first).tolist()]
if moved != [[False, True, True, False], [True, False, False, True]]:
    raise SystemExit(f"wrong elements moved: {moved}")
