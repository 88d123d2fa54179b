"""What a weight is: its kind, and which of its axes are channels. A layer's class decides, not the weight's shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.network.flat import role_of
from fpgaprune.network.role import Role
from fpgaprune.weights import named_weights

_ATTENTION = frozenset({"EinsumDense", "MultiHeadAttention", "GroupedQueryAttention", "GroupQueryAttention"})


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
# Attention's projections: (C_in, heads, size) to the heads, (heads, size, C_out) from them.
HEADS_OUT = ChannelAxes(inputs=(-3,), outputs=(-2, -1))
HEADS_IN = ChannelAxes(inputs=(-3, -2), outputs=(-1,))


def weight_owners(model: Any) -> dict[str, Any]:
    """Weight path to the layer that holds the weight; a model's own variables are not in it."""
    by_identity = {id(variable): layer for layer in _layers(model) for variable in layer.variables}
    return {
        path: by_identity[id(variable)]
        for path, variable in named_weights(model).items()
        if id(variable) in by_identity
    }


def kind_of(path: str, layer: Any, ndim: int) -> str:
    """What weight `path` is: `convolution`, `depthwise`, `dense`, `recurrent`, `attention`, or `other`.

    Args:
        path: of the weight.
        layer: that holds it, or None. A class that is not known goes by the shape of its `kernel`: that of a Dense
            layer has two axes, that of a convolution more.
        ndim: axes of the weight.
    """
    kind = type(layer).__name__
    name = path.rsplit("/", maxsplit=1)[-1]
    if name == "depthwise_kernel" or (name == "kernel" and kind.startswith("Depthwise")):
        return "depthwise"
    if role_of(layer) is Role.RECURRENT:
        return "recurrent" if name in ("kernel", "recurrent_kernel") else "other"
    if name not in ("kernel", "pointwise_kernel"):
        return "other"
    if kind in _ATTENTION:
        return "attention"
    if ndim == 2:
        return "dense"
    return "convolution" if ndim > 2 else "other"


def channel_axes(path: str, layer: Any) -> ChannelAxes:
    """The channel axes of weight `path` of `layer`; `PLAIN` where the layer is unknown."""
    kind = type(layer).__name__
    if kind.startswith("Depthwise") or path.endswith("/depthwise_kernel"):
        return DEPTHWISE
    if kind.startswith("Conv") and kind.endswith("Transpose"):
        return TRANSPOSED
    if kind == "EinsumDense":
        return _einsum_axes(layer.equation)
    if kind in _ATTENTION:
        return HEADS_IN if "/attention_output/" in path else HEADS_OUT
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


def _einsum_axes(equation: str) -> ChannelAxes:
    """Of `abc,cde->abde`: the weight's axes that the input has are summed over, the others are made."""
    read, _, rest = equation.replace(" ", "").partition(",")
    weight, _, _ = rest.partition("->")
    axes = range(-len(weight), 0)
    summed = tuple(axis for axis in axes if weight[axis] in read)
    return ChannelAxes(summed, tuple(axis for axis in axes if axis not in summed))
