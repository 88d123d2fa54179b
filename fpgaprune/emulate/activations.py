"""Activations that are computed without a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from fpgaprune.design import FUNCTIONS, Map, Quantise, function_of
from fpgaprune.emulate.exact import Exact, carrier
from fpgaprune.emulate.step import Step
from fpgaprune.emulate.tables import constant
from fpgaprune.errors import DesignError, UnsupportedLayerError


def linear(step: Step, x: Exact) -> Exact:
    """Compute `nnet::linear`: `x` assigned to the result's type."""
    return x.into(step.result)


def relu(step: Step, x: Exact) -> Exact:
    """Compute `nnet::relu`."""
    return not_negative(x).into(step.result)


def quantised(step: Step, x: Exact) -> Exact:
    """Round each value to the type of its place, then to the type of the result, which holds all of them."""
    operation, shape = step.operation(Quantise), step.layer.output_shape
    period, result = len(operation.places), step.result
    kinds = step.keep("kinds", lambda: operation.types(shape)[:period])
    values = x.raw.reshape(len(x.raw), math.prod(shape) // period, period)
    parts = []
    for kind in dict.fromkeys(kinds):
        if kind is None:
            continue
        chosen = np.array([place for place, own in enumerate(kinds) if own == kind])
        part = x.on(values[:, :, chosen]).into(kind)
        if not part.fits(result):
            raise DesignError(f"its result {result} does not hold every number of {kind}: make the design anew")
        parts.append((chosen, part.at_fraction(result.fraction)))
    low = min((min(part.low, 0) for _, part in parts), default=0)
    high = max((max(part.high, 0) for _, part in parts), default=0)
    raw = np.zeros(values.shape, carrier(low, high))
    for chosen, part in parts:
        raw[:, :, chosen] = part.raw
    return Exact(raw.reshape(x.raw.shape), result.fraction, low, high)


def not_negative(x: Exact) -> Exact:
    """Return `x` with 0 in place of negative numbers."""
    return Exact(np.maximum(x.raw, 0), x.fraction, max(x.low, 0), max(x.high, 0))


def _relu_max(limit: int) -> Callable[[Step, Exact], Exact]:
    def relu_max(step: Step, x: Exact) -> Exact:
        whole = x.at_fraction(max(x.fraction, 0))
        return whole.clipped(0, limit << whole.fraction).into(step.result)

    return relu_max


def leaky_relu(step: Step, x: Exact) -> Exact:
    """Compute `nnet::leaky_relu`: alpha times x if x is not positive."""
    alpha = step.keep("alpha", lambda: constant(step.operation(Map).parameter, step.type("param")))
    return _where_positive(step, x, alpha * x)


def prelu(step: Step, x: Exact) -> Exact:
    """Compute `nnet::prelu`: as `leaky_relu`, with an alpha for each value."""
    alpha = step.constants("param")
    return _where_positive(step, x, alpha.reshape(1, *x.raw.shape[1:]) * x)


def thresholded_relu(step: Step, x: Exact) -> Exact:
    """Compute `nnet::thresholded_relu`: 0 if x is at most theta."""
    theta = step.keep("theta", lambda: constant(step.operation(Map).parameter, step.type("param")))
    passed = x.raw * (x > theta)
    return Exact(passed, x.fraction, min(x.low, 0), max(x.high, 0)).into(step.result)


def _where_positive(step: Step, x: Exact, other: Exact) -> Exact:
    a, b = x.into(step.result), other.into(step.result)
    low, high = min(a.low, b.low), max(a.high, b.high)
    return Exact(np.where(x.raw > 0, a.raw, b.raw).astype(carrier(low, high), copy=False), a.fraction, low, high)


# Functions that comparisons and products compute.
_COMPARED: Mapping[str, Callable[[Step, Exact], Exact]] = {
    "linear": linear,
    "relu": relu,
    "relu6": _relu_max(6),
    "leaky_relu": leaky_relu,
    "thresholded_relu": thresholded_relu,
    "prelu": prelu,
}


def mapped(step: Step, x: Exact) -> Exact:
    """Return the layer's function of `x`."""
    return _COMPARED[step.operation(Map).function](step, x)


def check(step: Step) -> None:
    """Check that the layer's function has an emulation.

    Raises:
        UnsupportedLayerError: it has none.
    """
    name = function_of(step.layer.operation)
    function = FUNCTIONS.get(name)
    if function is None or not function.hardware:
        known = sorted(function.name for function in FUNCTIONS.values() if function.hardware)
        raise UnsupportedLayerError(f"activation {name!r} has no emulation; those that have: {', '.join(known)}")
