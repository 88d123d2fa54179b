"""Fixed-point types for every layer of a folded model.

`auto` gives each layer its own integer bits: of weights from their values, of activations from the
range seen on data, of accumulators from the worst case, so that no accumulation can overflow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import HlsError
from fpgaprune.fixed import MAX_WIDTH, FixedType
from fpgaprune.hls.prepare import FOLDABLE, batch_norm_scale_and_shift

Types = dict[str, dict[str, FixedType]]
_AVERAGES = (
    *(keras.layers.AveragePooling1D, keras.layers.AveragePooling2D),
    *(keras.layers.GlobalAveragePooling1D, keras.layers.GlobalAveragePooling2D),
)
# Layers that only choose among the values that come in, or put zeros beside them.
_MOVES = (
    *(keras.layers.MaxPooling1D, keras.layers.MaxPooling2D),
    *(keras.layers.GlobalMaxPooling1D, keras.layers.GlobalMaxPooling2D),
    *(keras.layers.Flatten, keras.layers.Reshape, keras.layers.Permute),
    *(keras.layers.ZeroPadding1D, keras.layers.ZeroPadding2D, keras.layers.Cropping1D, keras.layers.Cropping2D),
    *(keras.layers.UpSampling1D, keras.layers.UpSampling2D),
)
_TABLE = FixedType(18, 8, True, "RND", "SAT")


@dataclass(frozen=True)
class Precision:
    """How many bits `auto` may spend.

    Attributes:
        weight_bits: width of every weight.
        activation_bits: width of inputs and of what an activation layer gives.
        sum_bits: width of what a convolution or Dense layer hands on.
    """

    weight_bits: int = 8
    activation_bits: int = 8
    sum_bits: int = 16

    def __post_init__(self) -> None:
        for name in ("weight_bits", "activation_bits", "sum_bits"):
            value = getattr(self, name)
            if not 2 <= value <= 32:
                raise HlsError(f"{name} is {value}; wanted 2 to 32")


def choose_types(folded: Any, data: NDArray[Any], precision: Precision) -> Types:
    """Layer name to role to type, for every layer of `folded`.

    Args:
        folded: what `prepare.fold` returned.
        data: samples in the model's input shape, (N, ...), that show the range of every layer.
        precision: bits to spend.

    Raises:
        HlsError: an accumulator would need more than 64 bits.
    """
    layers = [layer for layer in folded.layers if not isinstance(layer, keras.layers.InputLayer)]
    observer = keras.Model(folded.inputs, [layer.output for layer in layers])
    seen = observer.predict(data, verbose=0)
    seen = seen if isinstance(seen, list) else [seen]
    types: Types = {}
    for entry in folded.inputs:
        types[entry._keras_history.operation.name] = {"result": _fitting(data, precision.activation_bits)}
    for layer, output in zip(layers, seen, strict=True):
        source = layer.input[0] if isinstance(layer.input, list) else layer.input
        incoming = types[source._keras_history.operation.name]["result"]
        types[layer.name] = _layer_types(layer, incoming, output, precision)
    return types


def _layer_types(layer: Any, incoming: FixedType, output: NDArray[Any], precision: Precision) -> dict[str, FixedType]:
    if isinstance(layer, FOLDABLE):
        return _product_types(layer, incoming, output, precision)
    if isinstance(layer, keras.layers.BatchNormalization):
        scale, shift = batch_norm_scale_and_shift(layer)
        widest = _fitting(output, precision.sum_bits, signed=True)
        kinds = {
            "scale": _fitting(scale, precision.sum_bits, signed=True),
            "bias": _fitting(shift, precision.sum_bits, signed=True),
        }
        return {"result": widest, **kinds}
    if isinstance(layer, keras.layers.Softmax) or getattr(layer, "activation", None) is keras.activations.softmax:
        result = FixedType(16, 1, False, "RND", "SAT")
        return {"result": result, "exp_table": _TABLE, "inv_table": _TABLE, "inv_inp": _TABLE, "accum": _TABLE}
    if isinstance(layer, keras.layers.Activation | keras.layers.ReLU | keras.layers.LeakyReLU):
        return {"result": _fitting(output, precision.activation_bits), "table": _TABLE}
    if isinstance(layer, _AVERAGES):
        # As many bits more as the sum of all positions can need.
        growth = math.ceil(math.log2(math.prod(layer.input.shape[1:-1])))
        accum = FixedType(incoming.width + growth, incoming.integer + growth, incoming.signed)
        return {"result": _fitting(output, precision.activation_bits), "accum": accum}
    if isinstance(layer, _MOVES):
        return {"result": incoming, "accum": incoming}
    return {"result": _fitting(output, precision.sum_bits), "accum": _fitting(output, precision.sum_bits)}


def _product_types(layer: Any, incoming: FixedType, output: NDArray[Any], precision: Precision) -> dict[str, FixedType]:
    kernel, bias = (*layer.get_weights(), None)[:2]
    weight = _fitting(kernel, precision.weight_bits, signed=True)
    fraction = weight.fraction + incoming.fraction
    largest_input = max(abs(incoming.raw_min), abs(incoming.raw_max)) * incoming.lsb
    # Rounding moves each weight by at most half an LSB, so this bounds every partial sum.
    per_output = np.abs(kernel.astype(np.float64)).reshape(-1, kernel.shape[-1]) + weight.lsb / 2
    worst = float((per_output.sum(axis=0) * largest_input + (0.0 if bias is None else np.abs(bias))).max())
    accum_integer = _integer_bits(worst) + 1
    if accum_integer + fraction > MAX_WIDTH:
        raise HlsError(
            f"layer {layer.name!r} needs an accumulator of {accum_integer + fraction} bits; hardware types end at "
            f"{MAX_WIDTH}: use fewer weight or activation bits"
        )
    accum = FixedType(accum_integer + fraction, accum_integer)
    # A guard bit over what the data showed; saturation would cost logic in every channel.
    spread = _fitting(np.concatenate([output.ravel() * 2, [0.0]]), precision.sum_bits, signed=True)
    result = accum if accum.width <= precision.sum_bits else FixedType(spread.width, spread.integer)
    bias_type = FixedType(accum.width, accum.integer, True, "RND", "SAT")
    return {"result": result, "accum": accum, "weight": weight, "bias": bias_type}


def _fitting(values: NDArray[Any], width: int, signed: bool | None = None) -> FixedType:
    """The `width`-bit type with the fewest integer bits that holds `values`; rounds and saturates."""
    low, high = float(values.min()), float(values.max())
    has_sign = low < 0 if signed is None else signed
    integer = _integer_bits(max(abs(low), abs(high)))
    kind = FixedType(width, integer + (1 if has_sign else 0), has_sign, "RND", "SAT")
    # A value just below a power of two may round up to it; one more bit then keeps it.
    overshoot = np.round(max(abs(low), abs(high)) / kind.lsb) > kind.raw_max
    return FixedType(width, kind.integer + int(overshoot), has_sign, "RND", "SAT") if overshoot else kind


def _integer_bits(magnitude: float) -> int:
    return math.floor(math.log2(magnitude)) + 1 if magnitude > 0 else 0


def hls_precision(types: Mapping[str, FixedType]) -> dict[str, str]:
    """`types` in the words of an hls4ml configuration."""
    return {
        role: f"{'' if t.signed else 'u'}fixed<{t.width},{t.integer},{t.rounding},{t.overflow},0>"
        for role, t in types.items()
    }
