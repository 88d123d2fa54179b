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


@dataclass(frozen=True)
class Weight:
    """What a weight is, as its layer's class and its own path tell.

    Attributes:
        path: of the weight.
        layer: that holds it; None where it is unknown, or where the model itself holds it.
        ndim: axes of the weight.
    """

    path: str
    layer: Any
    ndim: int

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def layer_path(self) -> str:
        """Its path without the last part."""
        return self.path.rpartition("/")[0]

    @property
    def kind(self) -> str:
        """`convolution`, `depthwise`, `dense`, `recurrent`, `attention`, or `other`.

        A class that is not known goes by the shape of its `kernel`: that of a Dense layer has two axes, that of a
        convolution more.
        """
        kind = type(self.layer).__name__
        if self.name == "depthwise_kernel" or (self.name == "kernel" and kind.startswith("Depthwise")):
            return "depthwise"
        if role_of(self.layer) is Role.RECURRENT:
            return "recurrent" if self.name in ("kernel", "recurrent_kernel") else "other"
        if self.name not in ("kernel", "pointwise_kernel"):
            return "other"
        if kind in _ATTENTION:
            return "attention"
        if self.ndim == 2:
            return "dense"
        return "convolution" if self.ndim > 2 else "other"

    @property
    def axes(self) -> ChannelAxes:
        """Its channel axes; `PLAIN` where the layer is unknown, and for a vector."""
        kind = type(self.layer).__name__
        if self.ndim < 2:
            return PLAIN
        if kind.startswith("Depthwise") or self.path.endswith("/depthwise_kernel"):
            return DEPTHWISE
        if kind.startswith("Conv") and kind.endswith("Transpose"):
            return TRANSPOSED
        if kind == "EinsumDense":
            return _einsum_axes(self.layer.equation)
        if kind in _ATTENTION:
            return HEADS_IN if "/attention_output/" in self.path else HEADS_OUT
        return PLAIN


def weights_of(model: Any) -> dict[str, Weight]:
    """What every weight of `model` is, by weight path, in the model's order."""
    layers = {id(variable): layer for layer in _layers(model) for variable in layer.variables}
    return {
        path: Weight(path, layers.get(id(variable)), len(variable.shape))
        for path, variable in named_weights(model).items()
    }


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
