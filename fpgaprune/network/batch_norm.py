"""Folds a BatchNorm, at inference a scale and a shift for each channel, into the linear layer before it.

The export and the hardware both use this arithmetic, so they hold the same bits.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.keras_functions import LINEAR, activation_in
from fpgaprune.network.flat import role_of
from fpgaprune.network.graph import producer, readers_of
from fpgaprune.network.role import KERNEL, Role


def scale_and_shift(bn: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The factor and the summand that a BatchNorm applies to each channel at inference, in float64."""
    mean = np.asarray(bn.moving_mean, dtype=np.float64)
    gamma = np.asarray(bn.gamma, dtype=np.float64) if bn.scale else np.ones_like(mean)
    beta = np.asarray(bn.beta, dtype=np.float64) if bn.center else np.zeros_like(mean)
    scale = gamma / np.sqrt(np.asarray(bn.moving_variance, dtype=np.float64) + bn.epsilon)
    return scale, beta - mean * scale


def normalization(layer: keras.Layer) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The factor and the summand of a `Normalization`, (1, ...) as they are broadcast to its input, in float64."""
    mean, variance = (np.asarray(array, dtype=np.float64) for array in (layer.mean, layer.variance))
    deviation = np.maximum(np.sqrt(variance), keras.config.epsilon())
    return (deviation, mean) if layer.invert else (1.0 / deviation, -mean / deviation)


def find_folds(functional: keras.Model) -> dict[str, Any]:
    """Layer name to BatchNorm, for linear layers whose only reader is a BatchNorm that can be folded into them.

    Args:
        functional: a functional model; models inside it are not examined.
    """
    readers = readers_of(functional)
    leaving = {producer(tensor).name for tensor in functional.outputs}
    folds = {}
    for layer in functional.layers:
        reader = readers.get(id(layer), [])
        if not _is_linear(layer) or len(reader) != 1 or layer.name in leaving:
            continue
        if role_of(reader[0]) is Role.NORM and reader[0].axis in (-1, len(layer.output.shape) - 1):
            folds[layer.name] = reader[0]
    return folds


def folded_weights(layer: keras.Layer, bn: object) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Kernel and bias of `layer` with `bn` folded in: computed in float64, rounded once to float32; no -0.0."""
    scale, shift = scale_and_shift(bn)
    kernel = np.asarray(layer.kernel, dtype=np.float64)
    # A depthwise kernel has its outputs on its last two axes.
    kernel = kernel * (scale.reshape(kernel.shape[-2:]) if role_of(layer) is Role.DEPTHWISE else scale)
    bias = shift + (np.asarray(layer.bias, dtype=np.float64) * scale if layer.use_bias else 0.0)
    # + 0.0 turns -0.0, which a negative scale makes, into 0.0.
    return (kernel + 0.0).astype("float32"), (bias + 0.0).astype("float32")


def _is_linear(layer: keras.Layer) -> bool:
    if getattr(layer, "data_format", "channels_last") != "channels_last":
        return False
    return role_of(layer) in KERNEL | {Role.DEPTHWISE} and activation_in(layer) == LINEAR
