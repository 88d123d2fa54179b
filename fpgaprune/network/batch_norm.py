"""BatchNorm at inference is a scale and a shift for each channel, which the linear layer before it can take in.

One place for this arithmetic: what is exported and what becomes hardware hold the same bits. No Keras is imported;
layers are only read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LINEAR = frozenset({"Conv1D", "Conv2D", "Conv3D", "DepthwiseConv1D", "DepthwiseConv2D", "Dense"})


def scale_and_shift(bn: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What a BatchNorm multiplies by and then adds at inference, per channel, in float64."""
    mean = np.asarray(bn.moving_mean, dtype=np.float64)
    gamma = np.asarray(bn.gamma, dtype=np.float64) if bn.scale else np.ones_like(mean)
    beta = np.asarray(bn.beta, dtype=np.float64) if bn.center else np.zeros_like(mean)
    scale = gamma / np.sqrt(np.asarray(bn.moving_variance, dtype=np.float64) + bn.epsilon)
    return scale, beta - mean * scale


def find_folds(functional: Any) -> dict[str, Any]:
    """Layer name to the BatchNorm that alone reads it, for linear layers that can take it in.

    Args:
        functional: a functional model; nested models in it are not entered.
    """
    readers: dict[str, list[Any]] = {}
    for node in (node for level in functional._nodes_by_depth.values() for node in level):
        for tensor in node.input_tensors:
            readers.setdefault(tensor._keras_history.operation.name, []).append(node.operation)
    leaving = {tensor._keras_history.operation.name for tensor in functional.outputs}
    folds = {}
    for layer in functional.layers:
        reader = readers.get(layer.name, [])
        if not _is_linear(layer) or len(reader) != 1 or layer.name in leaving:
            continue
        if type(reader[0]).__name__ == "BatchNormalization":
            last = len(layer.output.shape) - 1
            if reader[0].axis in (-1, last):
                folds[layer.name] = reader[0]
    return folds


def folded_weights(layer: Any, bn: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Kernel and bias of `layer` with `bn` taken in: float64, rounded once to float32; no -0.0."""
    scale, shift = scale_and_shift(bn)
    kernel = np.asarray(layer.kernel, dtype=np.float64)
    # A depthwise kernel has its outputs on its last two axes.
    kernel = kernel * (scale.reshape(kernel.shape[-2:]) if type(layer).__name__.startswith("Depthwise") else scale)
    bias = shift + (np.asarray(layer.bias, dtype=np.float64) * scale if layer.use_bias else 0.0)
    # + 0.0 turns the negative zeros of a negative scale into plain ones.
    return (kernel + 0.0).astype("float32"), (bias + 0.0).astype("float32")


def _is_linear(layer: Any) -> bool:
    if type(layer).__name__ not in _LINEAR or getattr(layer, "data_format", "channels_last") != "channels_last":
        return False
    return getattr(layer.activation, "__name__", "") == "linear"
