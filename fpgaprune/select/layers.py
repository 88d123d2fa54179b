"""Which axes of a weight are channels: a layer's class decides, not the weight's shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.weights import named_weights


@dataclass(frozen=True)
class ChannelAxes:
    """Axes, counted from the end, that number the channels that a weight reads and those that it makes.

    Attributes:
        inputs: of a convolution's `(KH, KW, C_in, C_out)`: -2.
        outputs: of the same: -1. A depthwise weight `(KH, KW, C, M)` makes channel `c * M + m`: both -2 and -1.
    """

    inputs: tuple[int, ...] = (-2,)
    outputs: tuple[int, ...] = (-1,)

    @property
    def kernel(self) -> tuple[int, ...]:
        """The axes that number kernels."""
        return tuple(sorted({*self.inputs, *self.outputs}))


PLAIN = ChannelAxes()
TRANSPOSED = ChannelAxes(inputs=(-1,), outputs=(-2,))
DEPTHWISE = ChannelAxes(inputs=(-2,), outputs=(-2, -1))


def weight_owners(model: Any) -> dict[str, Any]:
    """Weight path to the layer that holds the weight; a model's own variables are not in it."""
    by_identity = {id(variable): layer for layer in _layers(model) for variable in layer.variables}
    return {
        path: by_identity[id(variable)]
        for path, variable in named_weights(model).items()
        if id(variable) in by_identity
    }


def channel_axes(path: str, layer: Any) -> ChannelAxes:
    """The channel axes of weight `path` of `layer`; `PLAIN` where the layer is unknown."""
    kind = type(layer).__name__
    if kind.startswith("Depthwise") or path.endswith("/depthwise_kernel"):
        return DEPTHWISE
    if kind.startswith("Conv") and kind.endswith("Transpose"):
        return TRANSPOSED
    return PLAIN


def per_output(values: NDArray[Any], axes: ChannelAxes, shape: tuple[int, ...]) -> NDArray[Any]:
    """`values`, one for each output channel, in a form that broadcasts to a weight of `shape`."""
    kept = {axis % len(shape) for axis in axes.outputs}
    return np.reshape(values, tuple(size if axis in kept else 1 for axis, size in enumerate(shape)))


def _layers(model: Any) -> Iterator[Any]:
    for layer in model.layers:
        if hasattr(layer, "layers"):
            yield from _layers(layer)
        else:
            yield layer
