"""A small pruned network for 8 x 8 digits, its design and its held-out samples: what the boards are measured with."""

from pathlib import Path

import numpy as np

# Kernels locked, and the cycles that a sample may take: layers are computed bit by bit where that is enough.
SPARSITY, INTERVAL, SEED = 0.75, 1400, 7


def train_digits(path: Path, epochs: int = 15) -> None:
    """`path` holds the trained network, three quarters of its kernels locked at zero, dead channels removed."""
    import keras

    import fpgaprune as fp

    (x, y), _ = load_digits()
    keras.utils.set_random_seed(SEED)
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(8, 3, activation="relu", name="conv1"),
            keras.layers.MaxPooling2D(name="pool"),
            keras.layers.Conv2D(16, 3, activation="relu", name="conv2"),
            keras.layers.Flatten(name="flatten"),
            keras.layers.Dense(10, name="dense"),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.005), loss, metrics=["accuracy"])
    model.fit(x, y, epochs=epochs, verbose=0)
    masks = fp.select(model, sparsity=SPARSITY, granularity="kernel")
    fp.finetune(model, masks, x, y, epochs=epochs, verbose=0)
    fp.certify(model, masks).require()
    fp.apply_removal(model, fp.plan_removal(model)).save(path)


def digits_design(path: Path):
    """The design of the network in `path`: 6-bit weights, 8-bit activations, at the slowest board's clock."""
    import keras

    import fpgaprune as fp

    (x, _), _ = load_digits()
    model = keras.saving.load_model(path)
    target = fp.Target.of("lfe5u-25f", clock_ns=40.0)
    return fp.make_design(model, target, x[:512], fp.Precision(weight_bits=6, activation_bits=8), "digits")


def load_digits():
    """Digits to train on, and 360 held out: `(x, y), (x, y)`."""
    from sklearn import datasets

    images, labels = datasets.load_digits(return_X_y=True)
    x = (images.reshape(-1, 8, 8, 1) / 16).astype(np.float32)
    order = np.random.default_rng(SEED).permutation(len(x))
    x, y = x[order], labels[order]
    return (x[360:], y[360:]), (x[:360], y[:360])
