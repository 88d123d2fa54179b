"""Chooses fixed-point types for every layer of a folded model.

Integer bits follow from values: for weights from the weights, for activations from the range that the data show or from
the worst case that the types allow, whichever is smaller. Accumulators hold the worst case, so that none overflows or
rounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import HlsError, shown
from fpgaprune.lowering.accumulators import exact_accumulator, recurrent_accumulator
from fpgaprune.lowering.folding import FOLDABLE, PRODUCTS, role_weights
from fpgaprune.lowering.layer_operations import MERGES
from fpgaprune.lowering.layer_options import LayerOptions
from fpgaprune.lowering.ranges import Range
from fpgaprune.lowering.recurrent_layers import RECURRENT
from fpgaprune.lowering.reversed_steps import ReversedSteps
from fpgaprune.lowering.softmax_types import softmax_types
from fpgaprune.lowering.table_sizes import entry_type
from fpgaprune.network import producer, scale_and_shift
from fpgaprune.values import MAX_WIDTH, Array, FixedType

Types = dict[str, dict[str, FixedType]]
AVERAGES = (
    *(keras.layers.AveragePooling1D, keras.layers.AveragePooling2D),
    *(keras.layers.GlobalAveragePooling1D, keras.layers.GlobalAveragePooling2D),
)
_LARGEST = (
    *(keras.layers.MaxPooling1D, keras.layers.MaxPooling2D),
    *(keras.layers.GlobalMaxPooling1D, keras.layers.GlobalMaxPooling2D),
)
# Layers that only choose among their inputs' values, or add zeros.
MOVES = (
    *_LARGEST,
    *(keras.layers.Flatten, keras.layers.Reshape, keras.layers.Permute),
    *(keras.layers.ZeroPadding1D, keras.layers.ZeroPadding2D, keras.layers.Cropping1D, keras.layers.Cropping2D),
    *(keras.layers.UpSampling1D, keras.layers.UpSampling2D, ReversedSteps),
)
_ACTIVATIONS = (
    *(keras.layers.Activation, keras.layers.ReLU, keras.layers.LeakyReLU, keras.layers.ELU, keras.layers.PReLU),
)
TABLE = FixedType(18, 8, True, "RND", "SAT")
# The type of slopes and thresholds up to 2.
_PARAMETER = FixedType(16, 2, True, "RND", "SAT")
_NO_OPTIONS = LayerOptions()


@dataclass(frozen=True)
class Precision:
    """The number of bits of each kind of number; the binary point follows from its range.

    Attributes:
        weight_bits: width of every weight.
        activation_bits: width of the network's inputs, of the outputs of activation layers, and of what a convolution
            or a Dense layer reads of a BatchNorm or a merge; two where they may be negative, if it is 1.
        sum_bits: width of the outputs of convolutions and Dense layers.
        clips: whether weights, inputs and outputs of activation layers may lose their largest few values where that
            makes their squared error less; otherwise all that the data show fits. `quantize` clips.

    Examples:
        >>> design = fp.make_design(model, target, x, fp.Precision(weight_bits=4))
        >>> design.layers[1].types["weight"].width
        4
    """

    weight_bits: int = 8
    activation_bits: int = 8
    sum_bits: int = 16
    clips: bool = False

    def __post_init__(self) -> None:
        for name, least in (("weight_bits", 2), ("activation_bits", 1), ("sum_bits", 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= 32:
                raise HlsError(f"{name} is {shown(value)}; wanted a whole number from {least} to 32")


def choose_types(
    folded: keras.Model,
    ranges: Mapping[str, Range],
    precision: Precision | FixedType,
    options: Mapping[str, LayerOptions] | None = None,
    backend: str = "Vitis",
    observed: Mapping[str, Array] | None = None,
) -> Types:
    """Choose the type of every role of every layer of `folded`, by layer name.

    Args:
        folded: the model from `prepare.fold`.
        ranges: range of every layer's output for some data; not used if `precision` is a type.
        precision: bits to spend, or one type for every weight and every result.
        options: options of single layers, by layer name.
        backend: the backend whose templates compute with the types.
        observed: layer name to the layer's output for some data; read where `precision` clips.

    Raises:
        HlsError: an accumulator would need more than 64 bits, or a scaled input more than an emulation has.
    """
    chooser = _Chooser(ranges, precision, options or {}, _padded_sources(folded), backend, observed or {})
    chooser.scales, chooser.read = scales_of_inputs(folded), read_by_products(folded)
    for layer in folded.layers:
        chooser.add(layer)
    return chooser.types


def _padded_sources(folded: keras.Model) -> set[str]:
    """Find the layers that a padded max pooling reads: it pads with the smallest number, of a signed type."""
    found = set()
    for layer in folded.layers:
        if isinstance(layer, _LARGEST[:2]) and layer.padding == "same":
            waiting = [layer.input]
            while waiting:
                source = producer(waiting.pop())
                if isinstance(source, (*MOVES, keras.layers.Concatenate)):
                    waiting += source.input if isinstance(source.input, list) else [source.input]
                else:
                    found.add(source.name)
    return found


def read_by_products(folded: keras.Model) -> set[str]:
    """Return every BatchNorm and merge of `folded` that a layer with kernels reads, with moves between them at most."""
    found = set()
    for layer in folded.layers:
        waiting = [layer.input] if isinstance(layer, PRODUCTS) else []
        while waiting:
            source = producer(waiting.pop())
            if isinstance(source, (*MOVES, keras.layers.Concatenate)):
                waiting += source.input if isinstance(source.input, list) else [source.input]
            elif isinstance(source, (keras.layers.BatchNormalization, *MERGES)):
                found.add(source.name)
    return found


def is_softmax(layer: keras.Layer) -> bool:
    """Return whether `layer` of a folded model is a softmax."""
    return isinstance(layer, keras.layers.Softmax) or getattr(layer, "activation", None) is keras.activations.softmax


def softmax_layer_types(layer: keras.Layer, backend: str) -> dict[str, FixedType]:
    """Return the types of a softmax that reads any type."""
    return {"result": FixedType(16, 1, False, "RND", "SAT"), **softmax_types(layer.output.shape[-1], backend)}


class _Chooser:
    """Chooses the types of one layer after another, in the order of execution."""

    def __init__(
        self,
        ranges: Mapping[str, Range],
        precision: Precision | FixedType,
        options: Mapping[str, LayerOptions],
        signed: set[str],
        backend: str,
        observed: Mapping[str, Array],
    ) -> None:
        self.observed = observed
        self.ranges, self.options, self.signed, self.backend = ranges, options, signed, backend
        self.scales: Mapping[str, Any] = {}
        self.read: Set[str] = frozenset()
        self.uniform = precision if isinstance(precision, FixedType) else None
        self.precision = precision if isinstance(precision, Precision) else Precision()
        self.types: Types = {}

    def add(self, layer: keras.Layer) -> None:
        """Choose the types of `layer`."""
        own = self.options.get(layer.name, _NO_OPTIONS)
        given = dict(own.types or {})
        if isinstance(layer, keras.layers.InputLayer):
            chosen = {"result": self._input(layer.name, own)}
        elif isinstance(layer, FOLDABLE):
            chosen = self._product(layer, own, given)
        elif isinstance(layer, RECURRENT):
            chosen = self._recurrent(layer, own, given)
        else:
            chosen = self._other(layer, own)
        self.types[layer.name] = chosen | given

    def incoming(self, layer: keras.Layer) -> FixedType:
        """Return the type of the first input of `layer`."""
        source = layer.input[0] if isinstance(layer.input, list) else layer.input
        return self.types[producer(source).name]["result"]

    def _other(self, layer: keras.Layer, own: LayerOptions) -> dict[str, FixedType]:
        incoming = self.incoming(layer)
        if isinstance(layer, keras.layers.BatchNormalization):
            found = {"result": self._own(layer, own, signed=True)}
            source = next((name for name, scaled in self.scales.items() if scaled is layer), None)
            for role, values in zip(("scale", "bias"), scale_and_shift(layer), strict=True):
                kind = self.uniform or fitting(Range.of(values), self.precision.sum_bits, signed=True)
                if source is not None and not self.uniform:
                    factor = self.ranges[source].magnitude if role == "scale" else 1.0
                    kind = finer(kind, factor, self._step(layer))
                found[role] = kind
            if source is not None and (bits := scaled_bits(found["scale"], found["bias"], incoming)) > _EMULATED_BITS:
                raise HlsError(
                    f"layer {layer.name!r} scales values of input {source!r} whose ranges are so unlike that one type "
                    f"for all of them makes products of {bits} bits, more than {_EMULATED_BITS}: {SCALE_COLUMNS}"
                )
            return found
        if is_softmax(layer):
            found = softmax_layer_types(layer, self.backend)
            return found | {"result": self.uniform} if self.uniform else found
        if isinstance(layer, _ACTIVATIONS):
            result = self._activation(layer.name, own)
            if getattr(layer, "activation", None) is keras.activations.relu and own.activation_bits is None:
                result = self._within(result, incoming)
            return {"result": result, "table": entry_type(layer, result, TABLE), "param": _parameter(layer)}
        if isinstance(layer, AVERAGES):
            # The sum over all positions can need this many more bits.
            growth = math.ceil(math.log2(math.prod(layer.input.shape[1:-1])))
            accum = FixedType(incoming.width + growth, incoming.integer + growth, incoming.signed)
            return {"result": self._activation(layer.name, own), "accum": accum}
        if isinstance(layer, MOVES):
            return move_types(layer, incoming)
        if isinstance(layer, keras.layers.Concatenate):
            result = self._joined(layer, own)
            return {"result": result, "accum": result}
        result = self._own(layer, own, True if layer.name in self.signed else None)
        return {"result": result, "accum": result}

    def _own(self, layer: keras.Layer, own: LayerOptions, signed: bool | None) -> FixedType:
        """Return the type of a BatchNorm or a merge: that of an activation if products read it, else that of a sum."""
        if layer.name in self.read:
            return self._activation(layer.name, own)
        return self._sum(layer.name, signed)

    def _joined(self, layer: keras.Layer, own: LayerOptions) -> FixedType:
        """Return the narrowest type that holds every value of all inputs of `layer`, or the given type or width."""
        if self.uniform or own.activation_bits is not None:
            return self._activation(layer.name, own)
        kinds = [self.types[producer(source).name]["result"] for source in layer.input]
        if len(set(kinds)) == 1:
            return kinds[0]
        signed = any(kind.signed for kind in kinds)
        integer = max(kind.integer + int(signed and not kind.signed) for kind in kinds)
        width = integer + max(kind.fraction for kind in kinds)
        return FixedType(width, integer, signed) if width <= MAX_WIDTH else self._sum(layer.name)

    def _within(self, result: FixedType, incoming: FixedType) -> FixedType:
        """Return `result` without the integer bits that no value of type `incoming` can fill."""
        spare = result.integer - int(result.signed) - (incoming.integer - int(incoming.signed))
        if self.uniform or spare <= 0:
            return result
        return replace(result, integer=result.integer - spare)

    def _input(self, name: str, own: LayerOptions) -> FixedType:
        kind = self._activation(name, own)
        if self.uniform or own.activation_bits or name not in self.scales:
            return kind
        layer = self.scales[name]
        largest = float(np.abs(scale_and_shift(layer)[0]).max(initial=0.0))
        return finer(kind, largest, self._step(layer), self.observed.get(name))

    def _step(self, layer: keras.Layer) -> float:
        """Return the last place of the output of `layer` with the bits of an activation."""
        return 2.0 * self.ranges[layer.name].magnitude * 2.0**-self.precision.activation_bits

    def _activation(self, name: str, own: LayerOptions) -> FixedType:
        if self.uniform:
            return self.uniform
        bits = own.activation_bits or self.precision.activation_bits
        clips = self.precision.clips and name in self.observed
        values = Range.with_least_error(self.observed[name], bits) if clips else self.ranges[name]
        return fitting(values, bits, True if name in self.signed else None)

    def _sum(self, name: str, signed: bool | None = None) -> FixedType:
        return self.uniform or fitting(self.ranges[name], self.precision.sum_bits, signed)

    def _product(self, layer: keras.Layer, own: LayerOptions, given: Mapping[str, FixedType]) -> dict[str, FixedType]:
        kernel, bias = (*layer.get_weights(), None)[:2]
        bits = own.weight_bits or self.precision.weight_bits
        spread = Range.with_least_error(kernel, bits) if self.precision.clips else Range.of(kernel)
        weight = given.get("weight") or self.uniform or fitting(spread, bits, signed=True)
        accum = exact_accumulator(layer, weight, self.incoming(layer), kernel, bias, given.get("bias") or self.uniform)
        bias_type = self.uniform or FixedType(accum.width, accum.integer, True, "RND", "SAT")
        if self.uniform:
            return {"result": self.uniform, "accum": accum, "weight": weight, "bias": bias_type}
        # One guard bit more than the data show, because saturation would cost logic in every channel.
        sums = fitting(self.ranges[layer.name].doubled(), self.precision.sum_bits, signed=True)
        result = accum if accum.width <= self.precision.sum_bits else FixedType(sums.width, sums.integer)
        if result.integer > accum.integer:
            result = replace(result, integer=accum.integer)
        return {"result": result, "accum": accum, "weight": weight, "bias": bias_type}

    def _recurrent(self, layer: keras.Layer, own: LayerOptions, given: Mapping[str, FixedType]) -> dict[str, FixedType]:
        weights = role_weights(layer)
        bits = own.weight_bits or self.precision.weight_bits
        kinds = {
            role: given.get(role) or self.uniform or fitting(Range.of(weights[role]), bits, signed=True)
            for role in ("weight", "recurrent_weight")
        }
        table = given.get("table") or TABLE
        result = given.get("result") or self._state(layer, own)
        biases = {role: given.get(role) or self.uniform for role in ("bias", "recurrent_bias")}
        accum = recurrent_accumulator(layer, kinds, self.incoming(layer), result, table, biases)
        exact = FixedType(accum.width, accum.integer, True, "RND", "SAT")
        return {
            **kinds,
            **{role: kind or exact for role, kind in biases.items()},
            "result": result,
            "accum": accum,
            "table": table,
        }

    def _state(self, layer: keras.Layer, own: LayerOptions) -> FixedType:
        """Return the type of a recurrent layer's output and of its state."""
        if self.uniform or own.activation_bits:
            return self._activation(layer.name, own)
        return self._sum(layer.name, signed=True)


def move_types(layer: keras.Layer, incoming: FixedType) -> dict[str, FixedType]:
    """Return the types of a layer of `MOVES` that reads `incoming`."""
    if isinstance(layer, _LARGEST) and not incoming.signed:
        # Templates start from a one in the highest bit, which is the smallest number only of a signed type.
        return {"result": incoming, "accum": FixedType(incoming.width + 1, incoming.integer + 1)}
    return {"result": incoming, "accum": incoming}


def _parameter(layer: keras.Layer) -> FixedType:
    """Return the type of the slopes or the threshold of an activation layer."""
    given = [getattr(layer, name, None) for name in ("negative_slope", "threshold", "alpha")]
    values = [np.abs(np.asarray(value, dtype=np.float64)).max(initial=0.0) for value in given if value is not None]
    found = FixedType.holding(float(max(values, default=0.0)), 16)
    return found if found.integer > _PARAMETER.integer else _PARAMETER


def fitting(values: Range, width: int, signed: bool | None = None) -> FixedType:
    """Return the `width`-bit type with the fewest integer bits that holds `values`; rounds and saturates.

    A sign is a bit of its own, beside one at least.
    """
    has_sign = values.low < 0 if signed is None else signed
    return FixedType.holding(values.magnitude, max(width, 2) if has_sign else width, has_sign)


# One type holds all channels of an input. Where one reaches 5,000 and another 1, a type of 8 bits for both would be 0
# for the second. So an input that is scaled first, and its scales, get types as fine as the scaled result has with the
# same bits, up to so many.
_WIDEST = 32


# An emulation computes in integers of so many bits and a sign.
_EMULATED_BITS = 63
SCALE_COLUMNS = (
    "scale the columns of the data alike, as (x - x.mean(axis=0)) / x.std(axis=0), and train the network on those"
)


def scaled_bits(scale: FixedType, shift: FixedType, incoming: FixedType) -> int:
    """Return the bits of a value of `incoming` times one of `scale`, plus one of `shift`, without the sign."""
    largest = scale.magnitude * incoming.magnitude + shift.magnitude
    return math.ceil(math.log2(largest)) + max(scale.fraction + incoming.fraction, shift.fraction)


def scales_of_inputs(folded: keras.Model) -> dict[str, Any]:
    """Return the name of each input of `folded` that is scaled first, to the BatchNorm that does so."""
    found = {}
    for layer in folded.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            source = producer(layer.input)
            while isinstance(source, keras.layers.Reshape):
                source = producer(source.input)
            if isinstance(source, keras.layers.InputLayer):
                found[source.name] = layer
    return found


def finer(kind: FixedType, factor: float, step: float, values: Array | None = None) -> FixedType:
    """Return `kind` with so many more bits that its last place, times `factor`, is not above `step`.

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
