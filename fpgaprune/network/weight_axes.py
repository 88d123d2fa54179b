"""`Weight` tells the kind of a weight and which of its axes are channels, by its layer's class, not by its shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.errors import RemovalError
from fpgaprune.network.channels import Role
from fpgaprune.network.flat import role_of
from fpgaprune.network.functions import keras_ancestor
from fpgaprune.values import Array, named_weights

if TYPE_CHECKING:
    import keras


_ATTENTION = frozenset({"EinsumDense", "MultiHeadAttention", "GroupedQueryAttention", "GroupQueryAttention"})


@dataclass(frozen=True)
class ChannelAxes:
    """The axes of a weight, counted from the end, that count the channels it reads and the channels it makes.

    Attributes:
        inputs: -2 for a convolution's `(KH, KW, C_in, C_out)`.
        outputs: -1 for the same; -2 and -1 for a depthwise `(KH, KW, C, M)`, which makes the channels `c * M + m`.
    """

    inputs: tuple[int, ...] = (-2,)
    outputs: tuple[int, ...] = (-1,)

    @property
    def kernel(self) -> tuple[int, ...]:
        """The axes that count kernels."""
        return tuple(sorted({*self.inputs, *self.outputs}))


PLAIN = ChannelAxes()
TRANSPOSED = ChannelAxes(inputs=(-1,), outputs=(-2,))
DEPTHWISE = ChannelAxes(inputs=(-2,), outputs=(-2, -1))
# Projections of attention: (C_in, heads, size) makes the heads, (heads, size, C_out) reads them.
HEADS_OUT = ChannelAxes(inputs=(-3,), outputs=(-2, -1))
HEADS_IN = ChannelAxes(inputs=(-3, -2), outputs=(-1,))


@dataclass(frozen=True)
class Weight:
    """A weight, described by its layer's class and its path.

    Attributes:
        path: weight path.
        layer: the layer that holds it; None if it is unknown, or if the model itself holds it.
        ndim: number of axes.
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
        """Path of the layer: the path of the weight without its last part."""
        return self.path.rpartition("/")[0]

    @property
    def kind(self) -> str:
        """`convolution`, `depthwise`, `dense`, `recurrent`, `attention`, or `other`.

        For an unknown class, the shape of its `kernel` decides: two axes for `dense`, more for `convolution`.
        """
        kind = _class_name(self.layer)
        if self.name == "depthwise_kernel" or (self.name == "kernel" and kind.startswith("Depthwise")):
            return "depthwise"
        if role_of(self.layer) is Role.RECURRENT or kind == "Bidirectional":
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
        """Channel axes of the weight; `PLAIN` if the layer is unknown, and for a vector."""
        kind = _class_name(self.layer)
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


def weights_of(model: keras.Model) -> dict[str, Weight]:
    """Map weight path to `Weight`, for every weight of `model` in the model's order."""
    layers = {id(variable): layer for layer in leaf_layers(model) for variable in layer.variables}
    return {
        path: Weight(path, layers.get(id(variable)), len(variable.shape))
        for path, variable in named_weights(model).items()
    }


def per_output(values: Array, axes: ChannelAxes, shape: tuple[int, ...]) -> Array:
    """Reshape `values`, one for each output channel, so that they broadcast to a weight of `shape`."""
    kept = {axis % len(shape) for axis in axes.outputs}
    return np.reshape(values, tuple(size if axis in kept else 1 for axis, size in enumerate(shape)))


def _class_name(layer: keras.Layer) -> str:
    """Return the name of the class of Keras from which that of `layer` inherits; empty if there is none."""
    known = keras_ancestor(type(layer))
    return "" if known is None else known.__name__


def leaf_layers(model: keras.Model) -> Iterator[Any]:
    """List the layers of `model` and of models inside it; a layer of several models comes several times."""
    for layer in model.layers:
        if hasattr(layer, "layers"):
            yield from leaf_layers(layer)
        else:
            yield layer


def _einsum_axes(equation: str) -> ChannelAxes:
    """Find the axes of a weight of EinsumDense: in `abc,cde->abde` it sums over c, and makes d and e."""
    read, _, rest = equation.replace(" ", "").partition(",")
    weight, _, _ = rest.partition("->")
    axes = range(-len(weight), 0)
    summed = tuple(axis for axis in axes if weight[axis] in read)
    return ChannelAxes(summed, tuple(axis for axis in axes if axis not in summed))


def require_unshared(model: keras.Model) -> None:
    """Check that each weight of `model` is held by one layer; a layer that is called several times is one.

    Raises:
        RemovalError: two layers share a weight, or one computes with the weight of another.
    """
    holders: dict[int, Any] = {}
    for layer in leaf_layers(model):
        for variable in layer.weights:
            holder = holders.setdefault(id(variable), layer)
            if holder is not layer:
                path = next(path for path, one in named_weights(model).items() if one is variable)
                raise RemovalError(
                    f"layers {holder.name!r} and {layer.name!r} share the weight {path!r}, so neither can lose "
                    "channels alone: give each a weight of its own, or call one layer twice"
                )
