"""Arithmetic operators of ONNX: of two tensors as layers that merge, with a constant as scale and offset.

`Max` and `Min` of two tensors merge as well, and of a tensor and a number are a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod

import numpy as np

from fpgaprune.errors import shown
from fpgaprune.frontends.onnx.layer_plan import PlannedLayer
from fpgaprune.frontends.onnx.node import NodeStep, Operator
from fpgaprune.frontends.onnx.operators.activation_functions import bounded
from fpgaprune.frontends.onnx.parameter import Parameter
from fpgaprune.frontends.onnx.value import Value
from fpgaprune.values import Array

_WITH_BIAS = (
    *("Dense", "Conv1D", "Conv2D", "DepthwiseConv1D", "DepthwiseConv2D"),
    *("Conv1DTranspose", "Conv2DTranspose"),
)


def add(step: NodeStep) -> Value:
    """Compute `a + b`; a constant for each output channel becomes the bias of the layer before."""
    if _are_computed(step):
        return _merged(step, "Add")
    value, constant, _ = _with_constant(step)
    return _as_bias(step, value, constant) or _shifted(step, value, 1.0, constant)


def sub(step: NodeStep) -> Value:
    """Compute `a - b`."""
    if _are_computed(step):
        return _merged(step, "Subtract")
    value, constant, is_first = _with_constant(step)
    if is_first:
        return _shifted(step, value, -1.0, constant)
    negative = constant.with_values(-constant.values)
    return _shifted(step, value, 1.0, negative)


def mul(step: NodeStep) -> Value:
    """Compute `a * b`."""
    if _are_computed(step):
        return _merged(step, "Multiply")
    value, constant, _ = _with_constant(step)
    return _times(step, value, constant)


def div(step: NodeStep) -> Value:
    """Compute `a / b` for a constant b."""
    if _are_computed(step):
        step.refuse("divides by a computed tensor, which no layer of Keras does; divide by a constant")
    value, constant, is_first = _with_constant(step)
    if is_first:
        step.refuse("divides a constant by a computed tensor, which no layer of Keras does")
    if not np.all(constant.values):
        step.refuse("divides by zero")
    return _times(step, value, constant.with_values(np.float32(1) / constant.values))


def larger(step: NodeStep) -> Value:
    """Compute `max(a, b)` of two tensors."""
    return _chosen(step, "Maximum")


def smaller(step: NodeStep) -> Value:
    """Compute `min(a, b)` of two tensors."""
    return _chosen(step, "Minimum")


def _chosen(step: NodeStep, kind: str) -> Value:
    numbers = [one for one in step.given if isinstance(one, Parameter) and one.size == 1]
    if len(step.given) == 2 and len(numbers) == 1:
        number = float(np.float32(numbers[0].values.item()))
        low, high = (number, math.inf) if kind == "Maximum" else (-math.inf, number)
        return bounded(step, step.value(0 if step.given[1] is numbers[0] else 1), low, high)
    if len(step.given) != 2 or not _are_computed(step):
        step.refuse("chooses among other than two computed tensors, or such a tensor and a number: use torch.clamp")
    return _merged(step, kind)


def neg(step: NodeStep) -> Value:
    """Compute `-a`."""
    return step.plan.scaled(step.name, step.value(), -1.0, 0.0)


def _are_computed(step: NodeStep) -> bool:
    return isinstance(step.given[0], Value) and isinstance(step.given[1], Value)


def absolute(step: NodeStep) -> Value:
    """Compute `|a|`, the larger of `a` and `-a`."""
    value = step.value()
    negative = step.plan.scaled(f"{step.name}_negative", value, -1.0, 0.0)
    layer = step.plan.add("Maximum", step.name, (value, negative), value.shape)
    return value.given_by(layer, nonnegative=True)


def power(step: NodeStep) -> Value:
    """Compute `a * a`, the power of which there is a layer."""
    value, exponent = step.value(), step.parameter(1).values
    if exponent.size != 1 or exponent.item() != 2:
        step.refuse(
            f"has the exponent {shown(exponent.ravel().tolist())}; wanted 2, the product of a tensor and itself"
        )
    layer = step.plan.add("Multiply", step.name, (value, value), value.shape)
    return value.given_by(layer, nonnegative=True)


def total(step: NodeStep) -> Value:
    """Compute the sum of any number of tensors."""
    value = step.value()
    for at in range(1, len(step.given)):
        value = _merge(step, "Add", value, step.value(at))
    return value


def _merged(step: NodeStep, kind: str) -> Value:
    return _merge(step, kind, step.value(0), step.value(1))


def _merge(step: NodeStep, kind: str, first: Value, second: Value) -> Value:
    if first.rank != second.rank:
        step.refuse(f"joins tensors of {first.rank} and {second.rank} axes; wanted as many")
    pairs = list(zip(first.sizes, second.sizes, strict=True))
    if any(one != other and 1 not in (one, other) for one, other in pairs):
        step.refuse(f"joins tensors of shapes {first.sizes} and {second.sizes}")
    if first.flat != second.flat or first.axes != second.axes:
        larger, smaller = (first, second) if prod(first.sizes) >= prod(second.sizes) else (second, first)
        larger = step.plan.whole(larger)
        smaller = step.plan.ordered(smaller, larger.axes)
        first, second = (larger, smaller) if prod(first.sizes) >= prod(second.sizes) else (smaller, larger)
    shape = tuple(max(sizes) for sizes in zip(first.shape, second.shape, strict=True))
    layer = step.plan.add(kind, step.name, (first, second), shape)
    nonnegative = kind != "Subtract" and first.nonnegative and second.nonnegative
    return Value(layer, shape, first.axes, first.rank, first.flat, nonnegative)


def _with_constant(step: NodeStep) -> tuple[Value, Parameter, bool]:
    """Return the tensor, the constant with the axes of the tensor in ONNX, and whether the constant comes first."""
    is_first = isinstance(step.given[0], Parameter)
    value, constant = step.value(1 if is_first else 0), step.weight(0 if is_first else 1)
    if constant.ndim > value.rank:
        step.refuse(f"joins a tensor of {value.rank} axes and a constant of shape {constant.values.shape}")
    shape = (1,) * (value.rank - constant.ndim) + constant.values.shape
    if shape[0] != 1:
        step.refuse(f"has a constant of shape {shape}, with a number for each sample: each sample stands alone")
    if any(size not in (1, own) for size, own in zip(shape[1:], value.sizes, strict=True)):
        step.refuse(f"joins a tensor of shape {value.sizes} and a constant of shape {shape[1:]}")
    return value, constant.reshaped(shape[1:]), is_first


def _wide_axis(step: NodeStep, constant: Parameter) -> int | None:
    """Return the one axis of ONNX along which `constant` differs; None if it is one number."""
    wide = [axis for axis, size in enumerate(constant.values.shape, 1) if size > 1]
    if len(wide) > 1:
        step.refuse(
            f"has a constant of shape {constant.values.shape}, for which Keras has no layer; wanted one number, or one "
            "for each channel: put it into the data"
        )
    return wide[0] if wide else None


def _as_bias(step: NodeStep, value: Value, constant: Parameter) -> Value | None:
    """Return the tensor with `constant` as the bias of the layer that gives it; None if that layer cannot take it."""
    before, factor = step.before_scale(value)
    if factor is not None and _wide_axis(step, constant) in (None, value.axes[-1]) and value.flat is None:
        flat = constant.moved(np.ravel)
        offset = flat if flat.size == value.shape[-1] else _spread(constant, value.shape[-1])
        return step.plan.times(step.name, before, factor, offset)
    layer = _weighted(step, value)
    if layer is None or step.plan.readers(value.layer):
        return None
    channel, size = value.axes[-1], value.shape[-1]
    if _wide_axis(step, constant) not in (None, channel):
        return None
    bias = constant.moved(np.ravel) if constant.size == size else _spread(constant, size)
    layer.weights["bias"] = bias
    layer.settings["use_bias"] = True
    return value


def _weighted(step: NodeStep, value: Value) -> PlannedLayer | None:
    """Return the layer without a bias that gives `value`, perhaps through layers that only drop axes of one entry."""
    layer = step.plan.layers[value.layer]
    while layer.kind == "Reshape" and not step.is_shared(layer.name):
        before = step.plan.layers[layer.given[0]]
        if before.shape[-1] != layer.shape[-1] or step.plan.readers(before.name) != 1:
            return None
        layer = before
    if step.is_shared(layer.name):
        return None
    return layer if layer.kind in _WITH_BIAS and not layer.settings["use_bias"] else None


def _spread(constant: Parameter, size: int) -> Parameter:
    return Parameter(np.broadcast_to(constant.values.ravel(), (size,)).copy())


def _shifted(step: NodeStep, value: Value, sign: float, offset: Parameter) -> Value:
    ones: Callable[[Array], Array] = lambda array: np.full_like(array, sign)  # noqa: E731
    axis = _wide_axis(step, offset)
    if axis is None:
        return step.plan.scaled(step.name, value, sign, float(offset.values.ravel()[0]))
    flat = offset.moved(np.ravel)
    return step.plan.scaled_channels(step.name, value, axis, Parameter(ones(flat.values)), flat)


def _times(step: NodeStep, value: Value, scale: Parameter) -> Value:
    axis = _wide_axis(step, scale)
    if axis is None:
        return step.plan.scaled(step.name, value, float(scale.values.ravel()[0]), 0.0)
    flat = scale.moved(np.ravel)
    return step.plan.scaled_channels(step.name, value, axis, flat, Parameter(np.zeros_like(flat.values)))


OPERATORS: dict[str, Operator] = {
    "Add": add,
    "Sub": sub,
    "Mul": mul,
    "Div": div,
    "Neg": neg,
    "Abs": absolute,
    "Pow": power,
    "Sum": total,
    "Max": larger,
    "Min": smaller,
}
