"""`rounded`: values as a fixed-point type holds them, with a gradient to train through.

Source: Bengio, Léonard, Courville, "Estimating or Propagating Gradients Through Stochastic Neurons for Conditional
Computation", 2013, section 4 (the straight-through estimator).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import ops

from fpgaprune.fixed import FixedType


def rounded(values: Any, kind: FixedType, *, trains: bool = False) -> Any:
    """What a variable of type `kind` holds once `values` were assigned to it, bit for bit.

    The gradient passes as if nothing had been rounded; it is zero where a type that saturates has cut a value off.

    Args:
        values: a tensor; each value and each of `kind` must be exact in its dtype.
        kind: the type, with any mode of rounding and overflow.
        trains: whether `values` are weights. Of a weight that was cut off the gradient still passes if a step against
            it brings the weight back; otherwise it would stay where it is for ever.
    """
    unit = ops.cast(2.0**-kind.fraction, values.dtype)
    low, high = (ops.cast(float(end), values.dtype) for end in (kind.raw_min, kind.raw_max))
    return rounded_between(values, unit, low, high, kind.rounding, kind.overflow, trains=trains)


def rounded_between(
    values: Any, unit: Any, low: Any, high: Any, rounding: str, overflow: str, *, trains: bool = False
) -> Any:
    """As `rounded`, for whole multiples of `unit` from `low` to `high`: numbers, or tensors of one for each value."""
    saturates = overflow != "WRAP"

    @keras.ops.custom_gradient  # type: ignore[untyped-decorator, unused-ignore]
    def held(given: Any) -> Any:
        raw = _overflowed(_to_whole(given / unit, rounding), low, high, overflow)
        bottom, top = low * unit, high * unit

        def gradient(*upstream: Any) -> Any:
            if not saturates:
                return upstream[0]
            above_bottom, below_top = given >= bottom - unit / 2, given <= top + unit / 2
            if trains:
                above_bottom = ops.logical_or(above_bottom, upstream[0] < 0)
                below_top = ops.logical_or(below_top, upstream[0] > 0)
            passes = ops.logical_and(above_bottom, below_top)
            return ops.where(passes, upstream[0], ops.zeros_like(upstream[0]))

        return raw * unit, gradient

    return held(values)


def _to_whole(scaled: Any, rounding: str) -> Any:
    whole = ops.trunc(scaled)
    # The fraction of a float is itself a float, while `scaled + 0.5` may not be.
    part = scaled - whole
    return whole + ops.cast(_ROUND[rounding](part, whole), scaled.dtype)


def _overflowed(raw: Any, low: Any, high: Any, overflow: str) -> Any:
    if overflow == "WRAP":
        span = high - low + 1
        return raw - span * ops.floor((raw - low) / span)
    if overflow == "SAT_ZERO":
        return ops.where(ops.logical_or(raw < low, raw > high), ops.zeros_like(raw), raw)
    return ops.clip(raw, low, high)


def _number(condition: Any) -> Any:
    return ops.cast(condition, "int32")


def _ties_to_even(part: Any, whole: Any) -> Any:
    is_odd = ops.floor(whole / 2) * 2 != whole
    size = ops.absolute(part)
    beyond = ops.logical_or(size > 0.5, ops.logical_and(is_odd, size == 0.5))
    return _number(beyond) * ops.cast(ops.sign(part), "int32")


# What is added to a number cut towards zero, whose cut-off part is `part`; as in `fixed`, on tensors.
_ROUND: Mapping[str, Callable[[Any, Any], Any]] = {
    "TRN": lambda part, _: -_number(part < 0),
    "TRN_ZERO": lambda part, _: ops.zeros_like(part),
    "RND": lambda part, _: _number(part >= 0.5) - _number(part < -0.5),
    "RND_ZERO": lambda part, _: _number(part > 0.5) - _number(part < -0.5),
    "RND_INF": lambda part, _: _number(part >= 0.5) - _number(part <= -0.5),
    "RND_MIN_INF": lambda part, _: _number(part > 0.5) - _number(part <= -0.5),
    "RND_CONV": _ties_to_even,
}
