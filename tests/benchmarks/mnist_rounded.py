"""A trained network whose layers read few bits while it is trained on, so that its weights make up for them.

What is rounded in training has the very type that the design has, so both hand on the same numbers.

Source: Bengio et al., "Estimating or Propagating Gradients Through Stochastic Neurons", 2013 (the straight-through
gradient).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from fpgaprune.fixed import FixedType

# Where the values stand that the next layer reads: after the pooling, which takes the largest.
SEEN_AT = {"image": "image", "relu1": "pool1", "relu2": "pool2"}
# Integer bits that are tried.
INTEGERS = range(-3, 7)


class Rounded(keras.layers.Layer):
    """Hands on what an unsigned `kind` holds of the input, half rounded up, saturated; inside its range the gradient
    passes as if nothing was rounded, outside there is none.
    """

    def __init__(self, kind: FixedType, **options: Any) -> None:
        super().__init__(**options)
        self.kind = kind

    def call(self, inputs: Any) -> Any:
        """The values of `kind` nearest to `inputs`."""
        unit = 2.0**-self.kind.fraction
        inside = keras.ops.clip(inputs, 0.0, self.kind.raw_max * unit)
        nearest = keras.ops.floor(inside / unit + 0.5) * unit
        return inside + keras.ops.stop_gradient(nearest - inside)


def rounded(model: Any, kinds: Mapping[str, FixedType]) -> Any:
    """A chain of the very layers of `model`, weights shared; what each layer of `kinds` hands on is rounded."""
    x = model.input
    for layer in model.layers:
        x = x if isinstance(layer, keras.layers.InputLayer) else layer(x)
        if layer.name in kinds:
            x = Rounded(kinds[layer.name], name=f"{layer.name}_rounded")(x)
    return keras.Model(model.input, x)


def narrow_types(model: Any, x: np.ndarray, bits: Mapping[str, int]) -> dict[str, FixedType]:
    """For each layer of `bits` the unsigned type of that width with the least squared error on what `x` gives there."""
    found = {}
    for name, width in bits.items():
        until = keras.Model(model.input, model.get_layer(SEEN_AT[name]).output)
        values = until.predict(x, batch_size=500, verbose=0)
        errors = {}
        for integer in INTEGERS:
            kind = FixedType(width, integer, False, "RND", "SAT")
            errors[kind] = float(np.square(kind.to_float(kind.to_raw(values)) - values).mean())
        found[name] = min(errors, key=errors.__getitem__)
    return found
