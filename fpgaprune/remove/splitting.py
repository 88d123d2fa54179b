"""Splits convolutions whose non-zero kernels form independent groups into smaller convolutions.

Two groups are independent if no non-zero kernel connects an input of one with an output of the other: the matrix of
kernels is block-diagonal after a permutation of the input and the output channels. All kernels outside the blocks are
zero, so the split changes nothing over the reals; float32 may add in another order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import layers
from numpy.typing import NDArray

from fpgaprune.errors import RemovalError
from fpgaprune.network import (
    Role,
    Slots,
    Taps,
    calls_of,
    channel_axis,
    copied,
    count_uses,
    elementwise_of,
    graph_of,
    positions,
    role_of,
    spatial,
    value_of,
)
from fpgaprune.remove.rebuilding import rebuild
from fpgaprune.values import Array

if TYPE_CHECKING:
    import tensorflow as tf


@dataclass(frozen=True)
class KernelGroups:
    """The groups of kernels of one convolution; groups share no channel.

    Attributes:
        path: the layer.
        inputs: the input channels of each group; channels that no kernel reads are in no group.
        outputs: the output channels of each group; channels without a kernel are in the first group.
        multiplications: for one sample, before and after the split.
    """

    path: str
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    multiplications: tuple[int, int]

    @property
    def saved(self) -> int:
        """Multiplications that the split saves."""
        return self.multiplications[0] - self.multiplications[1]

    @property
    def even(self) -> bool:
        """Whether all groups have the same size, so that one grouped convolution can replace the layer."""
        return len({(len(i), len(o)) for i, o in zip(self.inputs, self.outputs, strict=True)}) == 1


@keras.saving.register_keras_serializable("fpgaprune")
class SelectChannels(keras.layers.Layer):
    """The channels `indices` of its input, in that order."""

    def __init__(self, indices: Sequence[int], axis: int = -1, **kwargs: object) -> None:
        """Select `indices` along `axis`, which counts the batch axis."""
        super().__init__(**kwargs)
        self.indices = [int(k) for k in indices]
        self.axis = axis

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Return the chosen channels."""
        return keras.ops.take(inputs, self.indices, axis=self.axis)

    def get_config(self) -> dict[str, Any]:
        """Return the entries that `from_config` needs."""
        return {**super().get_config(), "indices": self.indices, "axis": self.axis}


def find_groups(model: keras.Model) -> tuple[KernelGroups, ...]:
    """Find every convolution of `model` whose kernels form two or more groups; the model is unchanged.

    Only convolutions at the top level are examined that are called once, are not grouped and have an element-wise
    activation.

    Raises:
        RemovalError: the model's graph cannot be read.
    """
    calls = calls_of(graph_of(model))
    uses = count_uses(calls)
    found = []
    for call in calls:
        layer = call.operation
        if role_of(layer) is not Role.CONVOLUTION or layer.groups > 1 or uses[id(layer)] > 1:
            continue
        if elementwise_of(layer.activation) is None:
            continue
        kernel = value_of(layer.kernel)
        inputs, outputs = _components(Taps(partial(value_of, layer.kernel)).nonzero)
        if len(inputs) < 2:
            continue
        places = positions(spatial(layer, tuple(call.outputs[0].shape[1:])))
        block = sum(len(i) * len(o) for i, o in zip(inputs, outputs, strict=True))
        each = places * math.prod(kernel.shape[:-2])
        found.append(KernelGroups(call.path, inputs, outputs, (places * kernel.size, each * block)))
    return tuple(found)


def split_groups(
    model: keras.Model, groups: Sequence[KernelGroups] | None = None, *, grouped: bool = True
) -> keras.Model:
    """Split these convolutions: return a new model, which computes the same; `model` is unchanged.

    If all groups of a layer NAME have the same size, one grouped convolution NAME replaces it, else the parallel
    convolutions NAME_group0, NAME_group1, .... Where needed, `SelectChannels` layers reorder channels. hls4ml supports
    neither `SelectChannels` nor grouped convolutions, so split for other targets, or to count multiplications.

    Args:
        model: a built functional or Sequential keras model.
        groups: from `find_groups`; None for all that it finds.
        grouped: make grouped convolutions where possible; otherwise always separate ones.

    Raises:
        RemovalError: a layer is not in the model, or its kernels do not form these groups.
    """
    chosen = {group.path: group for group in (find_groups(model) if groups is None else groups)}
    fitting = {group.path: group for group in find_groups(model)}
    for path, group in chosen.items():
        if fitting.get(path) != group:
            raise RemovalError(f"layer {path!r} does not have these groups of kernels now; find the groups again")
    made: list[tuple[Any, list[Array]]] = []
    swaps = {
        path: partial(_split, model.get_layer(path), group, grouped and group.even, made)
        for path, group in chosen.items()
    }
    copy = rebuild(model, swaps=swaps)
    for layer, weights in made:
        layer.set_weights(weights)
    return copy


def _split(
    layer: keras.Layer, group: KernelGroups, as_one: bool, made: list[tuple[Any, list[Array]]], tensor: object
) -> Any:
    """Apply the convolutions that replace `layer` to the input `tensor`; `made` gets them, with weights."""
    axis = channel_axis(layer)
    axis = axis if axis < 0 else axis + 1
    kernel = value_of(layer.kernel)
    bias = value_of(layer.bias) if layer.use_bias else None

    def convolution(
        inputs: Sequence[int], weights: Array, outputs: Sequence[int], **changes: object
    ) -> keras.KerasTensor:
        part = copied(layer, **{"filters": len(outputs), **changes})
        made.append((part, [weights] if bias is None else [weights, bias[list(outputs)]]))
        return part(_select(tensor, inputs, axis, f"{changes.get('name', layer.name)}_inputs"))

    blocks = [kernel[..., list(i), :][..., list(o)] for i, o in zip(group.inputs, group.outputs, strict=True)]
    order = [k for outputs in group.outputs for k in outputs]
    if as_one:
        inputs = [k for part in group.inputs for k in part]
        result = convolution(inputs, np.concatenate(blocks, axis=-1), order, groups=len(blocks))
    else:
        parts = zip(group.inputs, blocks, group.outputs, strict=True)
        results = [convolution(i, w, o, name=f"{layer.name}_group{k}") for k, (i, w, o) in enumerate(parts)]
        result = layers.Concatenate(axis=axis, name=f"{layer.name}_joined")(results)
    return _select(result, np.argsort(order).tolist(), axis, f"{layer.name}_outputs")


def _select(tensor: keras.KerasTensor, indices: Sequence[int], axis: int, name: str) -> keras.KerasTensor:
    if list(indices) == list(range(tensor.shape[axis])):
        return tensor
    return SelectChannels(indices, axis=axis, name=name)(tensor)


def _components(nonzero: NDArray[np.bool_]) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """Find input and output channels of each connected component of the non-zero kernels, in the inputs' order."""
    slots = Slots()
    inputs, outputs = slots.fresh(nonzero.shape[0]), slots.fresh(nonzero.shape[1])
    at_input, at_output = np.nonzero(nonzero)
    slots.unite(inputs[at_input], outputs[at_output])
    roots = slots.roots()
    heads = [int(root) for root in np.unique(roots[inputs[nonzero.any(axis=1)]])]
    silent = tuple(int(k) for k in np.flatnonzero(~nonzero.any(axis=0)))
    parts_in = tuple(tuple(np.flatnonzero(roots[inputs] == head).tolist()) for head in heads)
    parts_out = [tuple(np.flatnonzero(roots[outputs] == head).tolist()) for head in heads]
    if silent and parts_out:
        parts_out[0] = tuple(sorted((*parts_out[0], *silent)))
    return parts_in, tuple(parts_out)
