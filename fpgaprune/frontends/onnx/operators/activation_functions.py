"""Activation functions of ONNX as layers of Keras."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fpgaprune.frontends.onnx.node import NodeStep, Operator
from fpgaprune.frontends.onnx.value import Value

# 1.0507009873554805 and 1.6732632423543772, as far as float32 holds them.
_SELU = {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}
_CLOSE = 1e-6


def relu(step: NodeStep) -> Value:
    """Compute `max(x, 0)`."""
    return step.plan.each("ReLU", step.name, step.value(), {}, nonnegative=True)


def leaky_relu(step: NodeStep) -> Value:
    """Compute `x` above zero, `alpha * x` below."""
    settings = {"negative_slope": float(step.settings.get("alpha", 0.01))}
    return step.plan.each("LeakyReLU", step.name, step.value(), settings, nonnegative=False)


def prelu(step: NodeStep) -> Value:
    """Compute `x` above zero, a trained slope times `x` below."""
    value, slope = step.value(), step.weight(1)
    if slope.ndim > value.rank:
        step.refuse(f"has slopes of shape {slope.values.shape} for a tensor of {value.rank} axes")
    shape = (1,) * (value.rank - slope.ndim) + slope.values.shape
    if shape[0] != 1 or any(size not in (1, own) for size, own in zip(shape[1:], value.sizes, strict=True)):
        step.refuse(f"has slopes of shape {slope.values.shape} for a tensor of shape {value.sizes}")
    value = step.plan.whole(value)
    alpha = slope.reshaped(shape[1:]).transposed([axis - 1 for axis in value.axes])
    shared = [at for at, size in enumerate(alpha.values.shape, 1) if size == 1 != value.shape[at - 1]]
    layer = step.plan.add("PReLU", step.name, (value,), value.shape, {"shared_axes": shared or None}, {"alpha": alpha})
    return value.given_by(layer)


def clip(step: NodeStep) -> Value:
    """Clip `x` between two bounds, of which either may be left out."""
    low = _bound(step, 1, "min", -math.inf)
    high = _bound(step, 2, "max", math.inf)
    if low > high:
        step.refuse(f"has the bounds {low:g} and {high:g}")
    return bounded(step, step.value(), low, high)


def bounded(step: NodeStep, value: Value, low: float, high: float) -> Value:
    """Return `value` between two bounds, of which either may be infinite."""
    if math.isinf(low) and math.isinf(high):
        return value
    if math.isinf(low):  # min(x, high) = high - max(high - x, 0)
        turned = step.plan.scaled(f"{step.name}_below", value, -1.0, high)
        cut = step.plan.each("ReLU", step.name, turned, {}, nonnegative=True)
        return step.plan.scaled(f"{step.name}_back", cut, -1.0, high)
    if (low, high) == (-1.0, 1.0):
        return step.plan.each("Activation", step.name, value, {"activation": "hard_tanh"}, nonnegative=False)
    moved = value if low == 0 else step.plan.scaled(f"{step.name}_from", value, 1.0, -low)
    settings = {} if math.isinf(high) else {"max_value": high - low}
    cut = step.plan.each("ReLU", step.name, moved, settings, nonnegative=True)
    if low == 0:
        return cut
    back = step.plan.scaled(f"{step.name}_back", cut, 1.0, low)
    return back.given_by(back.layer, nonnegative=low > 0)


def hard_sigmoid(step: NodeStep) -> Value:
    """Compute `alpha * x + beta` between 0 and 1."""
    alpha, beta = float(step.settings.get("alpha", 0.2)), float(step.settings.get("beta", 0.5))
    if abs(alpha - 1 / 6) < _CLOSE and abs(beta - 0.5) < _CLOSE:
        return _of_keras("hard_sigmoid", nonnegative=True)(step)
    line = step.plan.scaled(f"{step.name}_line", step.value(), alpha, beta)
    return step.plan.each("ReLU", step.name, line, {"max_value": 1.0}, nonnegative=True)


def gelu(step: NodeStep) -> Value:
    """Compute `x` times the distribution function of a normal variable."""
    if step.text("approximate", "none") != "none":
        step.refuse("is approximated by tanh, which no layer of Keras does: use nn.GELU() as it is")
    return _of_keras("gelu")(step)


def _of_keras(name: str, nonnegative: bool = False) -> Callable[[NodeStep], Value]:
    """Return the operator that Keras computes under `name`."""
    return lambda step: step.plan.each(
        "Activation", step.name, step.value(), {"activation": name}, nonnegative=nonnegative
    )


def elu(step: NodeStep) -> Value:
    """Compute `x` above zero, `alpha * (exp(x) - 1)` below."""
    settings = {"alpha": float(step.settings.get("alpha", 1.0))}
    return step.plan.each("ELU", step.name, step.value(), settings, nonnegative=False)


def selu(step: NodeStep) -> Value:
    """Return the scaled exponential unit with the constants of its authors."""
    for key, wanted in _SELU.items():
        found = float(step.settings.get(key, wanted))
        if not math.isclose(found, wanted, rel_tol=_CLOSE):
            step.refuse(f"has {key} {found:g}; Keras has {wanted:g}")
    return _of_keras("selu")(step)


def softmax(step: NodeStep) -> Value:
    """Compute the softmax over one axis; before opset 13 over all axes from `axis` on."""
    value = step.value()
    if step.opset >= 13:
        axes = [step.axis(int(step.settings.get("axis", -1)), value.rank)]
    else:
        axes = list(range(step.axis(int(step.settings.get("axis", 1)), value.rank), value.rank))
    if any(axis not in value.axes for axis in axes):
        value = step.plan.whole(value)
    places = [value.position(axis) for axis in axes]
    settings: dict[str, Any] = {"axis": places[0] if len(places) == 1 else places}
    return step.plan.each("Softmax", step.name, value, settings, nonnegative=True)


def _bound(step: NodeStep, at: int, key: str, default: float) -> float:
    found = step.optional(at, key, default, since=11)
    number = float(np.float32(np.asarray(found).item() if np.size(found) == 1 else math.nan))
    if math.isnan(number):
        step.refuse(f"has a {key} that is no number")
    return number if abs(number) < 3e38 else math.copysign(math.inf, number)


OPERATORS: dict[str, Operator] = {
    "Relu": relu,
    "LeakyRelu": leaky_relu,
    "PRelu": prelu,
    "Clip": clip,
    "Sigmoid": _of_keras("sigmoid", nonnegative=True),
    "Tanh": _of_keras("tanh"),
    "HardSigmoid": hard_sigmoid,
    "HardSwish": _of_keras("hard_silu"),
    "Gelu": gelu,
    "Mish": _of_keras("mish"),
    "Elu": elu,
    "Selu": selu,
    "Softplus": _of_keras("softplus", nonnegative=True),
    "Softsign": _of_keras("softsign"),
    "Exp": _of_keras("exponential", nonnegative=True),
    "Softmax": softmax,
}
