"""`LayerPlan`: the layers of Keras that compute what an ONNX graph does, and the model made of them.

So a graph that cannot come in is refused before TensorFlow starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ModelImportError
from fpgaprune.files import in_a_line
from fpgaprune.frontends.onnx.grids import Grid
from fpgaprune.frontends.onnx.parameter import Parameter
from fpgaprune.frontends.onnx.value import Value
from fpgaprune.values import Array

if TYPE_CHECKING:
    import keras

_UNIT_EPSILON = 2.0**-10
_RESHAPES = ("Reshape", "Flatten")


@dataclass
class PlannedLayer:
    """A layer of Keras.

    Attributes:
        kind: name of its class in `keras.layers`.
        name: its name.
        given: names of the layers whose outputs it reads.
        settings: arguments of its class.
        weights: its variables in their order, by name.
        shape: shape of its output, without the batch.
    """

    kind: str
    name: str
    given: tuple[str, ...]
    settings: dict[str, Any]
    weights: dict[str, Parameter]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Rounding:
    """A place where the network rounds.

    Attributes:
        names: names in the file of the tensor that is rounded and of the result.
        given: that tensor.
        rounded: what its types leave of it, before it is scaled back.
        grid: what the quantiser does, with its scales along the axes of Keras.
    """

    names: tuple[str, str]
    given: Value
    rounded: Value
    grid: Grid


@dataclass
class LayerPlan:
    """The network as it grows.

    Attributes:
        layers: name to layer, in the order of their calls.
        inputs: the inputs of the network.
        outputs: the outputs of the network.
        watched: name in the file to a tensor before a last function that flattens differences, such as a softmax.
        roundings: where quantisers round, in order.
        scales: layer that only multiplies to what it multiplies, and its factors along the last axis or the one factor;
            None if they lie along another axis.
        joined: layer that joins tensors to the axis of ONNX along which it does, and these tensors.
    """

    layers: dict[str, PlannedLayer] = field(default_factory=dict)
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    watched: dict[str, Value] = field(default_factory=dict)
    roundings: list[Rounding] = field(default_factory=list)
    scales: dict[str, tuple[Value, NDArray[np.float32] | None]] = field(default_factory=dict)
    joined: dict[str, tuple[int, tuple[Value, ...]]] = field(default_factory=dict)

    def free_name(self, wanted: str) -> str:
        """Return `wanted`, or `wanted` with a number if a layer has that name; TensorFlow tells no cases apart."""
        taken = {name.lower() for name in self.layers}
        name, number = wanted, 1
        while name.lower() in taken:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def add(
        self,
        kind: str,
        name: str,
        given: Sequence[Value],
        shape: Sequence[int],
        settings: Mapping[str, Any] | None = None,
        weights: Mapping[str, Parameter] | None = None,
    ) -> str:
        """Add a layer and return its name."""
        free = self.free_name(name)
        self.layers[free] = PlannedLayer(
            kind, free, tuple(value.layer for value in given), dict(settings or {}), dict(weights or {}), tuple(shape)
        )
        return free

    def enter(self, name: str, sizes: tuple[int, ...], axes: tuple[int, ...]) -> Value:
        """Add an input whose shape in ONNX is `sizes`, with its axes in the order `axes`."""
        shape = tuple(sizes[axis - 1] for axis in axes)
        value = Value(self.add("Input", name, (), shape, {"shape": shape}), shape, axes, len(sizes) + 1)
        self.inputs.append(value)
        return value

    def each(self, kind: str, name: str, value: Value, settings: Mapping[str, object], *, nonnegative: bool) -> Value:
        """Add a layer that treats each element alone."""
        return value.given_by(self.add(kind, name, (value,), value.shape, settings), nonnegative=nonnegative)

    def scaled(self, name: str, value: Value, scale: float, offset: float) -> Value:
        """Add a layer that computes `value * scale + offset`."""
        return self.each("Rescaling", name, value, {"scale": scale, "offset": offset}, nonnegative=False)

    def scaled_channels(self, name: str, value: Value, axis: int, scale: Parameter, offset: Parameter) -> Value:
        """Add a layer that computes `value * scale + offset` with a number for each entry of the axis `axis`.

        A BatchNormalization whose variance plus epsilon is 1 is exact.
        """
        size = value.size(axis)
        zeros, ones = np.zeros(size, np.float32), np.full(size, 1 - _UNIT_EPSILON, np.float32)
        weights = {
            "gamma": self.in_columns(value, scale),
            "beta": self.in_columns(value, offset),
            "moving_mean": Parameter(zeros),
            "moving_variance": Parameter(ones),
        }
        settings = {"axis": value.position(axis), "epsilon": _UNIT_EPSILON}
        return value.given_by(self.add("BatchNormalization", name, (value,), value.shape, settings, weights))

    def times(self, name: str, value: Value, factor: NDArray[np.float32], offset: Parameter | None = None) -> Value:
        """Add a layer that computes `value * factor + offset`, each one number or one for each entry of the last axis.

        Without an offset, a later layer may take the factor into its own numbers.
        """
        size = value.shape[-1]
        if offset is None and (factor == factor.ravel()[0]).all():
            result = self.scaled(name, value, float(factor.ravel()[0]), 0.0)
        else:
            factors = Parameter(np.broadcast_to(factor.astype(np.float32).ravel(), (size,)).copy())
            shift = Parameter(np.zeros(size, np.float32)) if offset is None else offset
            result = self.scaled_channels(name, value, value.axes[-1], factors, shift)
        if offset is None:
            self.scales[result.layer] = (value, factor)
        return result

    @staticmethod
    def in_columns(value: Value, parameter: Parameter, axis: int = 0) -> Parameter:
        """Return `parameter` with the entries of `axis` in the order of the columns of `value`."""
        order = value.column_order()
        return parameter if order is None else parameter.taken(order, axis)

    def whole(self, value: Value) -> Value:
        """Return `value` with every axis of ONNX, and with its columns in the order of ONNX."""
        value = self.unflattened(value)
        missing = [axis for axis in range(1, value.rank) if axis not in value.axes]
        if not missing:
            return value
        axes = (*missing, *value.axes)
        return self.reshaped(value, tuple(value.size(axis) for axis in axes), axes, value.rank)

    def unflattened(self, value: Value) -> Value:
        """Return `value` with its columns in the order of ONNX."""
        if value.flat is None:
            return value
        shape, axes = value.flat
        whole = self.reshaped(replace(value, flat=None), shape, axes, len(axes) + 1)
        ordered = self.ordered(whole, tuple(sorted(axes)))
        return self.reshaped(ordered, value.shape, value.axes, value.rank)

    def ordered(self, value: Value, axes: tuple[int, ...]) -> Value:
        """Return `value` with its axes in the order `axes`, which names each axis of ONNX."""
        value = self.unflattened(value)
        if value.axes == axes:
            return value
        shape = tuple(value.size(axis) for axis in axes)
        # Axes of one entry can be anywhere.
        if [axis for axis in value.axes if value.size(axis) > 1] == [axis for axis in axes if value.size(axis) > 1]:
            return self.reshaped(value, shape, axes, value.rank)
        value = self.whole(value)
        settings = {"dims": tuple(value.axes.index(axis) + 1 for axis in axes)}
        return replace(value, layer=self.add("Permute", "permute", (value,), shape, settings), shape=shape, axes=axes)

    def logical(self, value: Value) -> Value:
        """Return `value` with each axis of ONNX, in the order of ONNX."""
        return self.ordered(value, tuple(range(1, value.rank)))

    def reshaped(self, value: Value, shape: tuple[int, ...], axes: tuple[int, ...], rank: int, name: str = "") -> Value:
        """Return `value` with its elements in the shape `shape`, read in the order of Keras.

        A factor of the whole tensor moves behind it, where a layer that multiplies can take it.
        """
        layer = value.layer
        before, factor = self.scales.get(layer, (value, None))
        if factor is not None and shape != value.shape and (factor == factor.ravel()[0]).all():
            moved = self.reshaped(replace(before, nonnegative=value.nonnegative), shape, axes, rank, name)
            return self.times(f"{layer}_moved", moved, factor)
        if shape != value.shape:
            if len(shape) == 1:
                layer = self.add("Flatten", name or "flatten", (value,), shape)
            else:
                layer = self.add("Reshape", name or "reshape", (value,), shape, {"target_shape": shape})
        return Value(layer, shape, axes, rank, None, value.nonnegative)

    def unshaped(self, layer: PlannedLayer) -> tuple[str, ...]:
        """Return what `layer` reads; before every reshaping, if it gives another shape itself."""
        if layer.kind not in _RESHAPES:
            return layer.given
        (source,) = layer.given
        while self.layers[source].kind in _RESHAPES:
            (source,) = self.layers[source].given
        return (source,)

    def looked_at(self) -> frozenset[str]:
        """Return the layers whose output is compared with the file, or leaves the network."""
        values = [*self.outputs, *self.watched.values()]
        values += [value for one in self.roundings for value in (one.given, one.rounded)]
        return frozenset(value.layer for value in values)

    def readers(self, layer: str) -> int:
        """Return how many layers and outputs read the output of `layer`."""
        return sum(one.given.count(layer) for one in self.layers.values())


def largest(plan: LayerPlan) -> int:
    """Count the elements of the largest tensor of one sample."""
    return max((prod(layer.shape) for layer in plan.layers.values()), default=0)


def column_parameter(values: Array, size: int) -> Parameter:
    """Return `values`, one or `size` numbers, as a parameter of `size` numbers."""
    return Parameter(np.broadcast_to(values.astype(np.float32).ravel(), (size,)).copy())


def _made(kind: str, **settings: Any) -> Any:
    """Return a layer of the class of Keras, or of fpgaprune, that is called `kind`."""
    import keras

    if kind == "RoundedChannels":
        from fpgaprune.quantise import RoundedChannels

        return RoundedChannels(**settings)
    if kind == "Bidirectional":
        inner, of_inner = settings.pop("layer")
        settings["layer"] = _made(inner, dtype="float32", **of_inner)
    return getattr(keras.layers, kind)(**settings)


def build_model(plan: LayerPlan, name: str, path: str) -> keras.Model:
    """Return the model of `plan`, not compiled.

    Raises:
        ModelImportError: Keras cannot make a layer, or makes it with another shape.
    """
    import keras

    tensors: dict[str, Any] = {}
    made: dict[str, Any] = {}
    looked_at = plan.looked_at()
    for layer in plan.layers.values():
        if layer.kind == "Input":
            tensors[layer.name] = keras.Input(name=layer.name, dtype="float32", **layer.settings)
            continue
        sources = plan.unshaped(layer)
        if layer.kind == "Reshape" and plan.layers[sources[0]].shape == layer.shape and layer.name not in looked_at:
            tensors[layer.name] = tensors[sources[0]]
            continue
        given = [tensors[one] for one in sources]
        try:
            made[layer.name] = _made(layer.kind, name=layer.name, dtype="float32", **layer.settings)
            tensors[layer.name] = made[layer.name](given[0] if len(given) == 1 else given)
        except Exception as error:
            # Keras raises anything over settings that it does not take.
            raise ModelImportError(
                f"{path}: Keras makes no {layer.kind} of {layer.name!r}: {in_a_line(error)}"
            ) from error
        found = tuple(tensors[layer.name].shape[1:])
        if found != layer.shape:
            raise ModelImportError(
                f"{path}: the {layer.kind} {layer.name!r} gives the shape {found}; the graph has {layer.shape}"
            )
    ends = [[tensors[value.layer] for value in values] for values in (plan.inputs, plan.outputs)]
    inputs, outputs = (one[0] if len(one) == 1 else one for one in ends)
    model = keras.Model(inputs, outputs, name=name)
    for layer in plan.layers.values():
        if layer.weights and any(layer.name == one.name for one in model.layers):
            made[layer.name].set_weights([parameter.values for parameter in layer.weights.values()])
    return model
