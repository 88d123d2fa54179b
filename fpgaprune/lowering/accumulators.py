"""Chooses accumulators that hold every sum of a layer, in any order and for any input."""

from __future__ import annotations

from collections.abc import Mapping

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import HlsError
from fpgaprune.lowering.folding import role_weights
from fpgaprune.values import MAX_WIDTH, Array, FixedType, integer_bits

# The emulator computes in 63 bits, one of them for the sign.
_PRODUCT = 62


def recurrent_accumulator(
    layer: keras.Layer,
    kinds: Mapping[str, FixedType],
    incoming: FixedType,
    result: FixedType,
    table: FixedType,
    biases: Mapping[str, FixedType | None],
) -> FixedType:
    """Return the narrowest type for a layer's products, their sum, biases and gates, for any input and state.

    Of weights that are all small it cuts off the last places: a gate times a sum shall have 63 bits.

    Args:
        layer: a GRU or LSTM.
        kinds: types of `weight` and `recurrent_weight`.
        incoming: type of the inputs.
        result: type of the state.
        table: type of the entries of its tables.
        biases: types of `bias` and `recurrent_bias`; None for a bias with the accumulator's last place.

    Raises:
        HlsError: the type needs more than 64 bits.
    """
    weights = role_weights(layer)
    read = {"weight": incoming, "recurrent_weight": result}
    fraction = max(
        *(kinds[role].fraction + read[role].fraction for role in read),
        *(kind.fraction for kind in biases.values() if kind is not None),
        table.fraction,
    )
    sums = {
        role: _largest_sums(weights[role], kinds[role], read[role], weights.get(bias), fraction)
        for role, bias in (("weight", "bias"), ("recurrent_weight", "recurrent_bias"))
    }
    # A gate is 1 at most, but relu has no upper bound, so the state may reach the largest value of its type.
    relu = layer.activation is keras.activations.relu
    largest = max(1.0, float(np.add(*sums.values()).max()), result.magnitude if relu else 0.0)
    # A gate scales a number of this type, at most the sums of the state.
    scaled = max(1.0, float(sums["recurrent_weight"].max()), largest if relu else 0.0)
    return _holding(layer.name, largest, min(fraction, (_PRODUCT - integer_bits(scaled)) // 2))


def exact_accumulator(
    layer: keras.Layer,
    weight: FixedType,
    incoming: FixedType,
    kernel: Array,
    bias: Array | None,
    bias_type: FixedType | None = None,
) -> FixedType:
    """Return the narrowest type that holds every partial sum of `layer`, in any order and for any input, and the bias.

    Raises:
        HlsError: the type needs more than 64 bits.
    """
    fraction = max(weight.fraction + incoming.fraction, bias_type.fraction if bias_type else -MAX_WIDTH)
    outputs = -2 if type(layer).__name__.startswith("Depthwise") else -1
    sums = _largest_sums(np.moveaxis(kernel, outputs, -1), weight, incoming, bias, fraction)
    return _holding(layer.name, float(sums.max()), fraction)


def _largest_sums(
    kernel: Array, weight: FixedType, incoming: FixedType, bias: Array | None, fraction: int
) -> NDArray[np.float64]:
    """Bound, for each output (last axis of `kernel`), the magnitude of its partial sums in any order."""
    # Quantisation changes each weight by at most this much. Zeros stay zeros.
    moved = weight.lsb / 2 if weight.rounding.startswith("RND") else weight.lsb
    magnitudes = np.where(kernel == 0, 0.0, np.abs(kernel.astype(np.float64)) + moved)
    constant = 0.0 if bias is None else np.abs(bias) + 2.0 ** -(fraction + 1)
    return np.asarray(magnitudes.reshape(-1, kernel.shape[-1]).sum(axis=0) * incoming.magnitude + constant)


def _holding(layer: str, magnitude: float, fraction: int) -> FixedType:
    """Return the narrowest accumulator that holds numbers up to `magnitude` with `fraction` bits right of the point."""
    integer = integer_bits(magnitude) + 1
    if integer + fraction > MAX_WIDTH:
        raise HlsError(
            f"layer {layer!r} needs an accumulator of {integer + fraction} bits; hardware types end at "
            f"{MAX_WIDTH}: use fewer weight or activation bits"
        )
    # In some backends, ac_fixed needs at least two bits.
    return FixedType(max(integer + fraction, 2), integer)
