"""`Network`: all calls of a model and of models inside it, how channels pass them, and which BatchNorms fold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import FUNCTIONS
from fpgaprune.errors import RemovalError
from fpgaprune.network.channels import CHANNELWISE, KERNEL, Ids, Role
from fpgaprune.network.functions import LINEAR, activation_in
from fpgaprune.network.graph import calls_of, graph_of, nested_graph, producer, readers_of
from fpgaprune.values import Array

if TYPE_CHECKING:
    import keras


Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class FlatStep:
    """One call of a layer.

    Attributes:
        path: names of the enclosing models and of the layer, as in weight paths.
        layer: the Keras layer or operation.
        role: what it does to channels; None if unknown, or if its channels are not on the last axis.
        inputs: numbers of the tensors that it reads.
        outputs: numbers of the tensors that it makes.
    """

    path: str
    layer: Any
    role: Role | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @cached_property
    def activation(self) -> str:
        """The name of the activation that it is, or that it applies; "linear" if none, "" if it is unknown."""
        known = activation_in(self.layer)
        return "" if known is None else known.name

    @property
    def keeps_zero(self) -> bool:
        """Whether its activation is known to map 0 to 0."""
        return self.activation in FUNCTIONS and FUNCTIONS[self.activation].at_zero == 0

    @property
    def mixes_channels(self) -> bool:
        """Whether its activation reads several channels at once, or is unknown."""
        return self.activation not in FUNCTIONS

    @property
    def is_ungrouped(self) -> bool:
        """Whether each output channel reads every input channel."""
        return int(getattr(self.layer, "groups", 1) or 1) == 1


@dataclass
class Network:
    """All steps, producers before consumers.

    Attributes:
        steps: the calls of layers.
        tensors: the symbolic tensors, by number.
        inputs: numbers of the model's inputs.
        outputs: numbers of the model's outputs.
    """

    steps: list[FlatStep] = field(default_factory=list)
    tensors: list[Any] = field(default_factory=list)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()

    def shape(self, tensor: int) -> tuple[int | None, ...]:
        """Return the shape of `tensor`, the batch axis first; None for an unknown size."""
        return tuple(self.tensors[tensor].shape)

    def width(self, tensor: int) -> int:
        """Return how many channels `tensor` has on its last axis; 0 if that is unknown."""
        return (self.shape(tensor) or (0,))[-1] or 0

    def flags(self, tensor: int, value: bool) -> Flags:
        """Return `value` for each channel of `tensor`."""
        return np.full(self.width(tensor), value)

    @cached_property
    def by_layer(self) -> dict[int, list[FlatStep]]:
        """The steps of each layer, in order, by `id(layer)`."""
        found: dict[int, list[FlatStep]] = {}
        for step in self.steps:
            found.setdefault(id(step.layer), []).append(step)
        return found

    def consumers(self, tensor: int) -> list[FlatStep]:
        """Return the steps that read `tensor`."""
        return [step for step in self.steps if tensor in step.inputs]

    def routes(self, step: FlatStep) -> list[Ids | None]:
        """Return the input channel of each output channel, for each tensor that `step` reads; -1 for none.

        None for a tensor whose channels may all go into any output channel.
        """
        width = self.width(step.outputs[0])
        if step.role in CHANNELWISE | {Role.NORM, Role.MERGE}:
            return [np.arange(width) if self.width(tensor) == width else None for tensor in step.inputs]
        if step.role is Role.JOIN and self._joins(step):
            starts = np.cumsum([0, *(self.width(tensor) for tensor in step.inputs)])
            at = np.arange(width)
            return [np.where((at >= a) & (at < b), at - a, -1) for a, b in pairwise(starts)]
        channels = self.width(step.inputs[0]) if step.inputs else 0
        if step.role is Role.FLAT and channels and len(self.shape(step.outputs[0])) == 2 and width % channels == 0:
            return [np.arange(width) % channels]
        return [None for _ in step.inputs]

    def carried(
        self, step: FlatStep, facts: Mapping[int, Array], join: Callable[[Any, Any], Any], none: bool | int
    ) -> Array | None:
        """Return the facts of the output channels of `step`, from those of its inputs; None if a route is None.

        Args:
            step: a step of this network.
            facts: tensor to one fact for each channel.
            join: makes one fact of the facts of two inputs.
            none: the fact of a route -1.
        """
        found: Array | None = None
        for tensor, route in zip(step.inputs, self.routes(step), strict=True):
            if route is None:
                return None
            here = np.where(route >= 0, facts[tensor][route], none)
            found = here if found is None else join(found, here)
        return found

    def returned(self, tensor: int, route: Ids, flags: Flags) -> Flags:
        """Return the channels of `tensor` from which a flagged output channel is made."""
        return np.bincount(route[flags & (route >= 0)], minlength=self.width(tensor)) > 0

    def _joins(self, step: FlatStep) -> bool:
        """Return whether `step` joins tensors along the last axis."""
        rank = len(self.shape(step.inputs[0]))
        return step.layer.axis in (-1, rank - 1) and all(self.width(tensor) for tensor in step.inputs)

    def _add(self, tensors: Sequence[object]) -> tuple[int, ...]:
        self.tensors += tensors
        return tuple(range(len(self.tensors) - len(tensors), len(self.tensors)))

    def _enter(self, graph: Any, given: Sequence[int], prefix: str) -> tuple[int, ...]:
        numbers = {id(tensor): number for tensor, number in zip(graph.inputs, given, strict=True)}
        for call in calls_of(graph, path_prefix=prefix):
            inputs = tuple(numbers[id(tensor)] for tensor in call.inputs)
            inner = nested_graph(call)
            if inner is not None:
                outputs = self._enter(inner, inputs, f"{call.path}/")
            else:
                outputs = self._add(call.outputs)
                self.steps.append(FlatStep(call.path, call.operation, _last_axis_role(call.operation), inputs, outputs))
            numbers.update({id(tensor): number for tensor, number in zip(call.outputs, outputs, strict=True)})
        return tuple(numbers[id(tensor)] for tensor in graph.outputs)


def network_of(model: keras.Model) -> Network | None:
    """Return the network of `model`; None if its graph does not say all that it computes (an overridden `call`)."""
    try:
        graph = graph_of(model)
    except RemovalError:
        return None
    network = Network()
    network.inputs = network._add(graph.inputs)
    network.outputs = network._enter(graph, network.inputs, "")
    return network


def role_of(layer: keras.Layer) -> Role | None:
    """Return what `layer`, by its exact class, does to channels; None if that is unknown."""
    from fpgaprune.network.rules import rule_of

    rule = rule_of(type(layer))
    return None if rule is None else rule.role


def _last_axis_role(layer: keras.Layer) -> Role | None:
    return None if getattr(layer, "data_format", None) == "channels_first" else role_of(layer)


def scale_and_shift(bn: keras.Layer) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the factor and the summand that a BatchNorm applies to each channel at inference, in float64."""
    mean = np.asarray(bn.moving_mean, dtype=np.float64)
    gamma = np.asarray(bn.gamma, dtype=np.float64) if bn.scale else np.ones_like(mean)
    beta = np.asarray(bn.beta, dtype=np.float64) if bn.center else np.zeros_like(mean)
    scale = gamma / np.sqrt(np.asarray(bn.moving_variance, dtype=np.float64) + bn.epsilon)
    return scale, beta - mean * scale


def normalization(layer: keras.Layer) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the factor and summand of a `Normalization`, (1, ...) as they are broadcast to its input, in float64."""
    import keras

    mean, variance = (np.asarray(array, dtype=np.float64) for array in (layer.mean, layer.variance))
    deviation = np.maximum(np.sqrt(variance), keras.config.epsilon())
    return (deviation, mean) if layer.invert else (1.0 / deviation, -mean / deviation)


def find_folds(functional: keras.Model) -> dict[str, Any]:
    """Map layer name to BatchNorm, for linear layers whose only reader is a BatchNorm that can be folded into them.

    Args:
        functional: a functional model; models inside it are not examined.
    """
    readers = readers_of(functional)
    leaving = {producer(tensor).name for tensor in functional.outputs}
    folds = {}
    for layer in functional.layers:
        reader = readers.get(id(layer), [])
        if not _is_linear(layer) or len(reader) != 1 or layer.name in leaving:
            continue
        if role_of(reader[0]) is Role.NORM and reader[0].axis in (-1, len(layer.output.shape) - 1):
            folds[layer.name] = reader[0]
    return folds


def folded_weights(layer: keras.Layer, bn: object) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return kernel and bias of `layer` with `bn` folded in: computed in float64, rounded once to float32; no -0.0."""
    scale, shift = scale_and_shift(bn)
    kernel = np.asarray(layer.kernel, dtype=np.float64)
    # A depthwise kernel has its outputs on its last two axes, a transposed one on the last but one.
    if role_of(layer) in (Role.DEPTHWISE, Role.TRANSPOSED):
        scales = scale.reshape(kernel.shape[-2:] if role_of(layer) is Role.DEPTHWISE else (-1, 1))
    else:
        scales = scale
    kernel = kernel * scales
    bias = shift + (np.asarray(layer.bias, dtype=np.float64) * scale if layer.use_bias else 0.0)
    # + 0.0 turns -0.0, which a negative scale makes, into 0.0.
    return (kernel + 0.0).astype("float32"), (bias + 0.0).astype("float32")


def _is_linear(layer: keras.Layer) -> bool:
    if getattr(layer, "data_format", "channels_last") != "channels_last":
        return False
    return role_of(layer) in KERNEL | {Role.DEPTHWISE, Role.TRANSPOSED} and activation_in(layer) == LINEAR
