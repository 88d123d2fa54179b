"""The branches that are tried: every kind of layer that hls4ml's Keras front end accepts and the emulator covers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from keras import layers as kl

Branch = tuple[tuple[int, ...], Callable[[Any], Any]]


def chain(shape: tuple[int, ...], *layers: Any) -> Branch:
    """A branch that applies `layers` one after another."""

    def build(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    return shape, build


def all_branches(rng: np.random.Generator, io_type: str, strategy: str, second: str = "tanh") -> dict[str, Branch]:
    """One branch of each kind, of random size, by name; merges read a ReLU and the activation `second`."""
    parallel, latency = io_type == "io_parallel", strategy == "latency"
    c, f = int(rng.integers(1, 4)), int(rng.integers(2, 4))
    h, w = (int(v) for v in rng.integers(4, 7, 2))
    n = int(rng.integers(2, 7))
    if strategy == "resource":
        # hls4ml takes reuse factors that do not divide a pointwise layer's inputs, and then reads past the weights.
        c, n = 2, n + n % 2
    padding = str(rng.choice(["valid", "same"]))
    kh, kw, sh, sw = (int(v) for v in (rng.integers(2, 4), rng.integers(1, 4), rng.integers(1, 3), rng.integers(1, 3)))
    image, row = (h, w, c), (w + 3, c)
    found = {
        "dense": chain((n,), kl.Dense(f + 1)),
        "flat_dense": chain((3, 2, c), kl.Flatten(), kl.Dense(f)),
        "dense_relu": chain((n,), kl.Dense(f), kl.Activation("relu")),
        "conv2d": chain(image, kl.Conv2D(f, (kh, kw), strides=(sh, sw), padding=padding)),
        "conv2d_plain": chain(image, kl.Conv2D(f, 3, padding="same")),
        "conv1d": chain(row, kl.Conv1D(f, kw, strides=sw, padding=padding)),
        "conv1d_causal": chain(row, kl.Conv1D(f, 3, padding="causal")),
        "pointwise2d": chain(image, kl.Conv2D(f, 1)),
        "pointwise1d": chain(row, kl.Conv1D(f, 1)),
        "batch_norm": chain(image, kl.BatchNormalization()),
        "batch_norm_flat": chain((n,), kl.BatchNormalization()),
        "max_pool": chain(image, kl.MaxPooling2D(2)),
        "average_pool": chain(image, kl.AveragePooling2D((2, 3))),
        "max_pool1d": chain(row, kl.MaxPooling1D(2)),
        "average_pool1d": chain(row, kl.AveragePooling1D(3)),
        "global_max": chain(image, kl.GlobalMaxPooling2D()),
        "global_average": chain(image, kl.GlobalAveragePooling2D()),
        "global_max1d": chain(row, kl.GlobalMaxPooling1D()),
        "global_average1d": chain(row, kl.GlobalAveragePooling1D()),
        "relu": chain(image, kl.Activation("relu")),
        "relu6": chain((n,), kl.Activation("relu6")),
        "gelu": chain((n,), kl.Activation("gelu")),
        "silu": chain((n,), kl.Activation("swish")),
        "exponential": chain((n,), kl.Activation("exponential")),
        "linear_copy": chain((n,), kl.Activation("relu"), kl.Activation("relu")),
        "leaky": chain((n,), kl.LeakyReLU(float(rng.uniform(0.05, 0.9)))),
        "thresholded": chain((n,), kl.ReLU(threshold=float(rng.uniform(0.1, 1.5)))),
        "prelu": chain((n,), kl.PReLU()),
        "elu": chain((n,), kl.ELU(1.0)),
        "selu": chain((n,), kl.Activation("selu")),
        "sigmoid": chain(image, kl.Activation("sigmoid")),
        "tanh": chain((n,), kl.Activation("tanh")),
        "softplus": chain((n,), kl.Activation("softplus")),
        "softsign": chain((n,), kl.Activation("softsign")),
        "softmax": chain((n,), kl.Softmax()),
        "softmax_image": chain((3, n), kl.Softmax()),
        "pad2d": chain(image, kl.ZeroPadding2D(((1, 0), (2, 1)))),
        "pad1d": chain(row, kl.ZeroPadding1D((1, 2))),
        "upsample2d": chain((3, 2, c), kl.UpSampling2D((2, 3))),
        "upsample1d": chain(row, kl.UpSampling1D(2)),
        "reshape": chain((4, 2 * c), kl.Reshape((2 * 4, c)), kl.Activation("relu")),
        "permute": chain((4, 3), kl.Permute((2, 1))),
        "crop2d": chain(image, kl.Cropping2D(((1, 0), (0, 2)))),
        "crop1d": chain(row, kl.Cropping1D((1, 2))),
    }
    for name in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"):
        found[name.lower()] = (image, _merged(getattr(kl, name)(), second))
    for axis in (1, 2, 3):
        found[f"concatenate{axis}"] = (image, _merged(kl.Concatenate(axis=axis), second))
    found["concatenate_flat"] = ((n,), _merged(kl.Concatenate(), second))
    # One of the two in io_parallel, which compiles for longer.
    flat = rng.random() < 0.5
    if not parallel or (latency and not flat):
        found["depthwise2d"] = chain(image, kl.DepthwiseConv2D((kh, 2), padding="valid"))
    if not parallel or (latency and flat):
        found["depthwise1d"] = chain(row, kl.DepthwiseConv1D(2))
    if parallel:
        found["max_pool_padded"] = chain(image, kl.MaxPooling2D((2, 3), strides=(1, 2), padding="same"))
        found["average_pool_padded"] = chain(image, kl.AveragePooling2D(3, strides=2, padding="same"))
        found["softmax_axis"] = chain((n, 3), kl.Softmax(axis=1))
        found["softmax_whole"] = chain((3, n), kl.Activation("softmax"))
        found["permute3"] = chain(image, kl.Permute((3, 1, 2)))
    return found


def _merged(layer: Any, second: str) -> Callable[[Any], Any]:
    def build(x: Any) -> Any:
        return layer([kl.Activation("relu")(x), kl.Activation(second)(x)])

    return build
