"""Chooses finer types for an input whose channels a `Normalization` or a `Rescaling` brings to one scale.

One type holds all channels of an input. Where one of them reaches 5,000 and another 1, a type of 8 bits for both would
be 0 for the second. So the types of the input and of the scales are as fine as the scaled result with the same bits.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import keras
import numpy as np

from fpgaprune.network import producer
from fpgaprune.values import Array, FixedType

_WIDEST = 32


def scales_of_inputs(folded: keras.Model) -> dict[str, Any]:
    """The name of each input of `folded` that is scaled first, to the layer that `with_layers` made for it."""
    found = {}
    for layer in folded.layers:
        if isinstance(layer, keras.layers.BatchNormalization) and layer.epsilon == 0.0:
            source = producer(layer.input)
            while isinstance(source, keras.layers.Reshape):
                source = producer(source.input)
            if isinstance(source, keras.layers.InputLayer):
                found[source.name] = layer
    return found


def finer(kind: FixedType, factor: float, step: float, values: Array | None = None) -> FixedType:
    """`kind` with so many more bits that its last place, times `factor`, is not above `step`.

    Args:
        kind: a type.
        factor: what its values are multiplied by.
        step: the last place that the product needs.
        values: the values that it holds, if known; of whole numbers no place right of the point is needed.
    """
    if factor <= 0 or step <= 0:
        return kind
    needed = math.ceil(math.log2(factor / step))
    if values is not None and (values == np.rint(values)).all():
        needed = min(needed, 0)
    more = min(needed - kind.fraction, _WIDEST - kind.width)
    return replace(kind, width=kind.width + more) if more > 0 else kind
