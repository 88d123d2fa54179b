"""Layers that compute each value by itself: batch normalisation, and merges of two inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from fpgaprune.design import Merge
from fpgaprune.emulate.exact import Exact, carrier
from fpgaprune.emulate.step import Step
from fpgaprune.errors import DesignError, UnsupportedLayerError

_HALF = Exact(np.ones(1, np.float32), 1, 1, 1)


def batch_normalization(step: Step, x: Exact) -> Exact:
    """Compute `nnet::normalize`: scale times x plus bias, exact until it is assigned to the result's type."""
    scale, bias = step.constants("scale"), step.constants("bias")
    length = math.prod(x.raw.shape[1:])
    if scale.raw.size not in (x.raw.shape[-1], length):
        raise DesignError(f"{scale.raw.size} scales do not fit an input of shape {x.raw.shape[1:]}")
    flat = x.reshape(x.raw.shape[0], length // scale.raw.size, scale.raw.size)
    total = flat * scale.reshape(-1) + bias.reshape(-1)
    return total.into(step.result).reshape(*x.raw.shape)


def merge(step: Step, a: Exact, b: Exact) -> Exact:
    """Compute `nnet::add`, `subtract`, `multiply`, `average`, `maximum` or `minimum`; the smaller input is repeated."""
    count = a.raw.shape[0]
    length = max(math.prod(a.raw.shape[1:]), math.prod(b.raw.shape[1:]))
    a, b = _repeated(a.flat(), length), _repeated(b.flat(), length)
    return _OPERATIONS[step.operation(Merge).function](step, a, b).reshape(count, *step.layer.output_shape)


def check(step: Step) -> None:
    """Check that the layer's merge has an emulation.

    Raises:
        UnsupportedLayerError: it has none.
    """
    name = step.operation(Merge).function
    if name not in _OPERATIONS:
        raise UnsupportedLayerError(f"merge {name!r} has no emulation; those that have: {', '.join(_OPERATIONS)}")


def _repeated(x: Exact, length: int) -> Exact:
    # The template takes flat indices modulo the shorter length.
    return x.on(np.tile(x.raw, (1, length // x.raw.shape[1])))


def _chosen(step: Step, a: Exact, b: Exact, first: np.ndarray) -> Exact:
    a, b = a.into(step.result), b.into(step.result)
    low, high = min(a.low, b.low), max(a.high, b.high)
    return Exact(np.where(first, a.raw, b.raw).astype(carrier(low, high), copy=False), a.fraction, low, high)


_OPERATIONS: Mapping[str, Callable[[Step, Exact, Exact], Exact]] = {
    "add": lambda step, a, b: (a + b).into(step.result),
    "subtract": lambda step, a, b: (a - b).into(step.result),
    "multiply": lambda step, a, b: (a * b).into(step.result),
    "average": lambda step, a, b: ((a + b) * _HALF).into(step.result),
    "maximum": lambda step, a, b: _chosen(step, a, b, a > b),
    "minimum": lambda step, a, b: _chosen(step, a, b, b > a),
}
