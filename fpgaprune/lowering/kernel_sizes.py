"""`smaller_kernels`: how much smaller `fold` makes the kernel of each layer."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from fpgaprune.lowering.flattening import flattened
from fpgaprune.lowering.folding import FOLDABLE, fold
from fpgaprune.lowering.plain_convolutions import split_separable


def smaller_kernels(model: keras.Model) -> dict[str, float]:
    """Map layer to the size of its kernel in `fold(model)` over that in `model`, 0..1; only layers that get smaller.

    With pixels of 0 to 255 a BatchNorm behind the first convolution makes its kernel a hundred times smaller. A step of
    training that suited the kernel before would now be as large as the kernel itself.

    Raises:
        HlsError: a weight is NaN or infinite.
        UnsupportedLayerError: a layer has no operation, or is used twice; the message names it.
    """
    before = {layer.name: layer for layer in split_separable(flattened(model)).layers}
    found = {}
    for layer in fold(model).layers:
        if isinstance(layer, FOLDABLE) and layer.name in before:
            ratio = _size(layer.kernel) / _size(before[layer.name].kernel)
            if ratio < 1:
                found[layer.name] = ratio
    return found


def _size(kernel: Any) -> float:
    """Return the root of the mean square of the elements that are not zero; 1 if there is none."""
    array = kernel.numpy().astype(np.float64)
    array = array[array != 0]
    return float(np.sqrt(np.mean(array**2))) if array.size else 1.0
