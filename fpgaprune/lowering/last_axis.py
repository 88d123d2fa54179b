"""Writes layers that work along another axis than the last, and merges that repeat positions, as those of a design.

The operations of a design have the channels last. A layer with the channels first stands between two `Permute`, which
vanish between two such layers. A `Softmax` along another axis, or several, stands between a `Permute` and a `Reshape`
and their inverses. A `BatchNormalization` along another axis scales each element. A merge repeats a vector with a value
for each channel; any other smaller input is spread before it: of (H, 1, C), each of H rows of C values is repeated W
times by an `UpSampling1D` between two `Reshape`.
"""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import RemovalError
from fpgaprune.lowering.convertible_layers import adds_bias_along_width
from fpgaprune.lowering.keras_operations import scaled_and_shifted
from fpgaprune.lowering.layer_names import free_name
from fpgaprune.lowering.layer_operations import EACH_VALUE, MERGES
from fpgaprune.network import activation_in, cloned, copied, graph_of, scale_and_shift

_Shape = tuple[int, ...]


def on_last_axis(functional: keras.Model) -> keras.Model:
    """Put layers along the last axis, and merges that a design has, in place of others; itself if it has no others.

    Args:
        functional: a functional model of Keras's own layers, each used once; it is not changed.
    """
    if not any(map(_changes, functional.layers)):
        return functional
    return _LastAxis(functional).made()


def with_channels_last(model: keras.Model) -> keras.Model:
    """Return a network that computes the same with the channels last; itself if no layer has them first.

    On a CPU, TensorFlow has no convolution with the channels first unless it was built and started with oneDNN. Layers
    and weights keep their names and shapes. A network that cannot be taken apart stays as it is, and so does one whose
    biases Keras adds along the width.
    """
    if not any(map(_is_first, model.layers)) or any(map(adds_bias_along_width, model.layers)):
        return model
    try:
        graph_of(model)
    except RemovalError:
        return model
    same = on_last_axis(keras.Model(model.inputs, model.outputs))
    if isinstance(model, keras.Sequential):
        return keras.Model(same.inputs[0], same.outputs[0], name=model.name)
    packed = keras.tree.pack_sequence_as
    return keras.Model(packed(model.input, same.inputs), packed(model.output, same.outputs), name=model.name)


def _changes(layer: keras.Layer) -> bool:
    if isinstance(layer, MERGES):
        return any(not _is_merged(tuple(tensor.shape[1:]), tuple(layer.output.shape[1:])) for tensor in layer.input)
    return _is_first(layer) or bool(_other_axes(layer))


def _is_first(layer: keras.Layer) -> bool:
    return getattr(layer, "data_format", None) == "channels_first"


def _other_axes(layer: keras.Layer) -> _Shape:
    """Return the axes along which `layer` works, from 1, if that is not the last one alone."""
    if not isinstance(layer, keras.layers.Softmax | keras.layers.BatchNormalization):
        return ()
    rank = len(layer.input.shape)
    given = layer.axis if isinstance(layer.axis, list | tuple) else [layer.axis]
    axes = tuple(sorted(axis % rank for axis in given))
    return () if axes == (rank - 1,) else axes


def _is_merged(shape: _Shape, wanted: _Shape) -> bool:
    """Return whether a merge to `wanted` takes an input of `shape`: all of it, or one value for each channel."""
    return shape == wanted or (math.prod(shape) == wanted[-1] == shape[-1])


class _LastAxis:
    """One model on its way to the last axis."""

    def __init__(self, functional: keras.Model) -> None:
        self.functional = functional
        self.layers = {layer.name: layer for layer in functional.layers}
        self.taken = set(self.layers)
        self.weights: dict[str, Any] = {}
        # Id of a tensor with the channels first, to that tensor and the same values with the channels last.
        self.twins: dict[int, tuple[Any, Any]] = {}

    def made(self) -> keras.Model:
        return cloned(self.functional, self._clone, self._call, self.weights)

    def _clone(self, layer: keras.Layer) -> keras.Layer:
        if _is_first(layer):
            return copied(layer, data_format="channels_last")
        return copied(layer, axis=-1) if _other_axes(layer) else copied(layer)

    def _call(self, layer: keras.Layer, *args: Any, **kwargs: Any) -> keras.KerasTensor:
        old = self.layers[layer.name]
        axes = _other_axes(old)
        if isinstance(old, MERGES):
            return self._merged(layer, list(args[0]), tuple(old.output.shape[1:]))
        if (
            isinstance(old, keras.layers.BatchNormalization)
            and axes
            and (axes != (1,) or id(args[0]) not in self.twins)
        ):
            return self._scaled(old, args[0], axes[0])
        if _is_first(old) or axes == (1,) or (isinstance(old, EACH_VALUE) and self._has_twin(old, args[0])):
            y = layer(self._last(args[0], layer.name), **kwargs)
            return self._first(y, layer.name) if len(y.shape) == len(args[0].shape) else y
        return self._grouped(layer, args[0], axes) if axes else layer(*args, **kwargs)

    def _has_twin(self, layer: keras.Layer, x: keras.KerasTensor) -> bool:
        known = activation_in(layer)
        return id(x) in self.twins and known is not None and known.name != "softmax"

    def _merged(self, layer: keras.Layer, tensors: list[keras.KerasTensor], wanted: _Shape) -> keras.KerasTensor:
        if all(id(tensor) in self.twins and tuple(tensor.shape[1:]) == wanted for tensor in tensors):
            return self._first(layer([self.twins[id(tensor)][1] for tensor in tensors]), layer.name)
        return layer([self._spread(tensor, wanted, layer.name) for tensor in tensors])

    def _spread(self, x: keras.KerasTensor, wanted: _Shape, name: str) -> keras.KerasTensor:
        """Repeat `x` to the shape `wanted`, unless a merge does so itself."""
        own = tuple(x.shape[1:])
        if _is_merged(own, wanted):
            return x
        own = (1,) * (len(wanted) - len(own)) + own
        while own != wanted:
            # Axes of one place that lie side by side become one step.
            end = max(axis for axis, size in enumerate(own) if size != wanted[axis]) + 1
            begin = end - 1
            while begin and own[begin - 1] == 1:
                begin -= 1
            x = self._reshaped(x, (math.prod(own[:begin]), math.prod(own[end:])), f"{name}_rows")
            x = keras.layers.UpSampling1D(math.prod(wanted[begin:end]), name=self._named(f"{name}_spread"))(x)
            own = own[:begin] + wanted[begin:end] + own[end:]
        return self._reshaped(x, wanted, f"{name}_whole")

    def _scaled(self, layer: keras.Layer, x: keras.KerasTensor, axis: int) -> keras.KerasTensor:
        """Return a BatchNormalization along `axis` as a scale and a shift of each element."""
        shape = tuple(x.shape[1:])
        own = [1] * len(shape)
        own[axis - 1] = -1
        numbers = (np.broadcast_to(np.reshape(part, own), shape) for part in scale_and_shift(layer))
        made, y = scaled_and_shifted(layer.name, x, *numbers)
        self.weights[layer.name] = made.get_weights()
        return y

    def _grouped(self, layer: keras.Layer, x: keras.KerasTensor, axes: _Shape) -> keras.KerasTensor:
        """Return what a softmax along `axes` gives: they come last, as one."""
        shape = tuple(x.shape[1:])
        others = tuple(axis for axis in range(1, len(shape) + 1) if axis not in axes)
        order = (*others, *axes)
        turned = self._turned(x, order, f"{layer.name}_in")
        moved = tuple(turned.shape[1:])
        groups = (*moved[: len(others)], math.prod(moved[len(others) :]))
        y = self._reshaped(layer(self._reshaped(turned, groups, f"{layer.name}_groups")), moved, f"{layer.name}_map")
        return self._turned(y, tuple(order.index(axis) + 1 for axis in range(1, len(order) + 1)), f"{layer.name}_out")

    def _last(self, x: keras.KerasTensor, name: str) -> keras.KerasTensor:
        if id(x) in self.twins:
            return self.twins[id(x)][1]
        return self._turned(x, (*range(2, len(x.shape)), 1), f"{name}_last")

    def _first(self, y: keras.KerasTensor, name: str) -> keras.KerasTensor:
        axes = len(y.shape) - 1
        x = self._turned(y, (axes, *range(1, axes)), f"{name}_first")
        self.twins[id(x)] = (x, y)
        return x

    def _turned(self, x: keras.KerasTensor, order: _Shape, name: str) -> keras.KerasTensor:
        return x if order == tuple(sorted(order)) else keras.layers.Permute(order, name=self._named(name))(x)

    def _reshaped(self, x: keras.KerasTensor, shape: _Shape, name: str) -> keras.KerasTensor:
        return x if tuple(x.shape[1:]) == shape else keras.layers.Reshape(shape, name=self._named(name))(x)

    def _named(self, name: str) -> str:
        self.taken.add(found := free_name(name, self.taken))
        return found
