"""Hold `W_conv2[:, :, 29, 13]` at zero while the rest of the network trains.

Keras freezes whole layers or nothing. Here one 3x3 kernel, from input channel 29 to output channel 13, is
locked in a network that has trained already, so that Adam's momentum would carry it away from zero even
without a gradient. Run it: `python examples/lock_one_kernel.py`; it takes seconds on a CPU.
"""

import keras
import numpy as np
from sklearn.datasets import load_digits

import fpgaprune as fp

keras.utils.set_random_seed(1)
digits = load_digits()
x = (digits.images / 16.0).astype("float32")[..., None]
y = digits.target

model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        keras.layers.Conv2D(32, 3, activation="relu", name="conv1"),
        keras.layers.Conv2D(32, 3, activation="relu", name="conv2"),
        keras.layers.Flatten(name="flatten"),
        keras.layers.Dense(10, activation="softmax", name="dense"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=2, batch_size=64, verbose=0)

masks = fp.MaskSet.from_slices(model, ["conv2/kernel[:, :, 29, 13]"])
before = model.get_layer("conv2").kernel.numpy()
fp.lock(model, masks)  # from here on, any fit holds the kernel
history = model.fit(x, y, epochs=3, batch_size=64, verbose=0)
after = model.get_layer("conv2").kernel.numpy()

locked = ~masks["conv2/kernel"]
print(f"kernel before: {np.abs(before[locked]).max():.4f} at most; after 3 locked epochs: {after[locked].tolist()}")
print(
    f"of the other {(~locked).size - locked.sum()} weights {np.count_nonzero(after[~locked] != before[~locked])} moved"
)
print(f"accuracy {history.history['accuracy'][-1]:.3f}")

if np.any(after[locked].view(np.int32)):
    raise SystemExit("the kernel moved")

fp.unlock(model)  # the model has its plain Adam back, with its state
