"""`rounded`: values as a fixed-point type holds them, with a gradient to train through.

Source: Bengio, Léonard, Courville, "Estimating or Propagating Gradients Through Stochastic Neurons for Conditional
Computation", 2013, section 4 (the straight-through estimator).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from fpgaprune.values import FixedType

if TYPE_CHECKING:
    import tensorflow as tf


# The gradient at the step of one bit; with 2 it would be the step's height in all.
_STEEPEST = 1.5


def rounded(values: tf.Tensor, kind: FixedType, *, trains: bool = False) -> tf.Tensor:
    """Return what a variable of type `kind` holds once `values` were assigned to it, bit for bit.

    The gradient passes as if nothing had been rounded; it is zero where a type that saturates has cut a value off. Of
    activations of one bit, which are a step, it is the larger the nearer they are to the step (G. Bellec et al., "Long
    short-term memory and learning-to-learn in networks of spiking neurons", 2018, section 2).

    Args:
        values: a tensor; each value and each of `kind` must be exact in its dtype.
        kind: the type, with any mode of rounding and overflow.
        trains: whether `values` are weights. Of a weight that was cut off the gradient still passes if a step against
            it brings the weight back; otherwise it would stay where it is for ever.
    """
    ends = float(kind.raw_min), float(kind.raw_max)
    return rounded_between(values, 2.0**-kind.fraction, *ends, kind.rounding, kind.overflow, trains=trains)


def on_grid(values: tf.Tensor, kind: FixedType) -> tf.Tensor:
    """Round `values`, all in the range of `kind`; the gradient passes as if nothing was rounded."""
    unit = 2.0**-kind.fraction

    @keras.ops.custom_gradient  # type: ignore[untyped-decorator, unused-ignore]
    def held(given: tf.Tensor) -> tf.Tensor:
        return _to_whole(given / unit, kind.rounding) * unit, lambda *upstream: upstream[0]

    return held(values)


def rounded_between(
    values: tf.Tensor, unit: Any, low: Any, high: Any, rounding: str, overflow: str, *, trains: bool = False
) -> Any:
    """Round as `rounded` to whole multiples of `unit` from `low` to `high`, numbers or a tensor with each value's."""
    saturates = overflow != "WRAP"
    bottom, top = low * unit, high * unit
    step = not trains and isinstance(low, float) and high - low == 1 and rounding.startswith("RND")

    @keras.ops.custom_gradient  # type: ignore[untyped-decorator, unused-ignore]
    def held(given: tf.Tensor) -> tf.Tensor:
        if overflow in ("SAT", "SAT_SYM"):
            # Between two whole numbers every mode stays between them.
            found = _to_whole(ops.clip(given, bottom, top) / unit, rounding)
        else:
            found = _overflowed(_to_whole(given / unit, rounding), low, high, overflow)

        def gradient(*upstream: tf.Tensor) -> tf.Tensor:
            if not saturates:
                return upstream[0]
            if step:
                near = 1 - ops.abs(given - (bottom + top) / 2) * (2 / unit)
                return upstream[0] * ops.maximum(near, 0) * _STEEPEST
            least, most = bottom - unit / 2, top + unit / 2
            if trains:
                passes = ops.logical_and(
                    ops.logical_or(given >= least, upstream[0] < 0), ops.logical_or(given <= most, upstream[0] > 0)
                )
            else:
                passes = ops.equal(ops.clip(given, least, most), given)
            return upstream[0] * ops.cast(passes, given.dtype)

        return found * unit, gradient

    return held(values)


# Training spends most of its time here, so each mode takes as few operations as it can.
def _to_whole(scaled: tf.Tensor, rounding: str) -> tf.Tensor:
    if rounding == "TRN":
        return ops.floor(scaled)
    if rounding == "RND":
        whole = ops.floor(scaled)
        # The difference is rounded, but never from below a half to a half. `scaled + 0.5` would be.
        return whole + ops.cast(scaled - whole >= 0.5, scaled.dtype)
    if rounding == "RND_CONV":
        return ops.round(scaled)
    whole = ops.trunc(scaled)
    # The fraction of a float is itself a float.
    part = scaled - whole
    return whole + ops.cast(_ROUND[rounding](part), scaled.dtype)


def _overflowed(raw: tf.Tensor, low: Any, high: Any, overflow: str) -> tf.Tensor:
    if overflow == "WRAP":
        span = high - low + 1
        return raw - span * ops.floor((raw - low) / span)
    # SAT_ZERO
    return ops.where(ops.logical_or(raw < low, raw > high), ops.zeros_like(raw), raw)


def _number(condition: tf.Tensor) -> tf.Tensor:
    return ops.cast(condition, "int32")


# What is added to a number cut towards zero, whose cut-off part is `part`; as in `fixed`, on tensors.
_ROUND: Mapping[str, Callable[[Any], Any]] = {
    "TRN_ZERO": lambda part: ops.zeros_like(part),
    "RND_ZERO": lambda part: _number(part > 0.5) - _number(part < -0.5),
    "RND_INF": lambda part: _number(part >= 0.5) - _number(part <= -0.5),
    "RND_MIN_INF": lambda part: _number(part > 0.5) - _number(part <= -0.5),
}
