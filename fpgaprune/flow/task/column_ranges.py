"""`unlike_columns` names inputs whose columns are so unlike that one type of few bits leaves some of them nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fpgaprune.flow.task.samples import Samples, arrays_of
from fpgaprune.network import network_of

if TYPE_CHECKING:
    import keras

# The width with which a search begins, and the bits of it that a column needs.
_BITS, _LEAST = 8, 2
# A few border pixels of images are as good as constant.
_FEW = 0.1
# Layers behind which each column has a scale of its own, or whose columns are places of a text.
_SCALED = ("BatchNormalization", "Normalization", "Embedding")


def unlike_columns(model: keras.Model, x: Samples) -> list[str]:
    """Return a line for each input of `model` that has few bits left for many of its columns.

    All columns have one type. Inputs that the network scales first are left out: their type is as fine as the scaled
    values need.

    Args:
        model: the network.
        x: samples (N, ...), or one such array for each input.
    """
    network, found = network_of(model), []
    if network is None:
        return []
    for tensor, array in zip(network.inputs, arrays_of(x), strict=True):
        scaled = any(type(step.layer).__name__ in _SCALED for step in network.consumers(tensor))
        if scaled or array.ndim < 2 or not array.size:
            continue
        columns = array.reshape(-1, array.shape[-1])
        spread = columns.max(axis=0).astype(np.float64) - columns.min(axis=0)
        largest = float(np.abs(columns).max())
        sign = int(columns.min() < 0)
        step = 2.0 ** (math.ceil(math.log2(largest)) + sign - _BITS) if largest else 0.0
        varying = int((spread > 0).sum())
        flat = int(((spread > 0) & (spread < 2**_LEAST * step)).sum())
        if flat > _FEW * varying:
            found.append(
                f"input {network.tensors[tensor].name!r} holds values up to {largest:.4g}, and {flat} of its "
                f"{columns.shape[1]} columns have fewer than {2**_LEAST} steps of one type of {_BITS} bits: train "
                "it on columns scaled alike, or let it begin with keras.layers.Normalization, adapted to x_train"
            )
    return found
