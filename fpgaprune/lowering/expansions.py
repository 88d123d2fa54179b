"""Writes a layer that no single operation computes as several layers that compute the same over the reals.

`Add` of three tensors becomes two additions, `hard_sigmoid` of x becomes relu6(x + 3) / 6, and `hard_silu` the product
of x and that. What is bounded elsewhere than at 6 is scaled before and after. A `ReLU` with more than one setting is
its bounded part, less its slope times relu(threshold - x). `Dot` of two vectors is the sum of their products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import keras
import numpy as np

from fpgaprune.lowering.keras_operations import scaled_and_shifted
from fpgaprune.network import activation_in, keras_class

_PAIRWISE = (keras.layers.Add, keras.layers.Multiply, keras.layers.Maximum, keras.layers.Minimum)
_JOINED = (*_PAIRWISE, keras.layers.Average, keras.layers.Concatenate)
_APPLIES = (
    *(keras.layers.Activation, keras.layers.Dense, keras.layers.Conv1D, keras.layers.Conv2D),
    *(keras.layers.DepthwiseConv1D, keras.layers.DepthwiseConv2D, keras.layers.SeparableConv1D),
    keras.layers.SeparableConv2D,
)
# The scale and the shift of x before relu6, and those of what relu6 gives.
_HARD: Mapping[str, tuple[float, float, float, float]] = {
    "hard_sigmoid": (1.0, 3.0, 1 / 6, 0.0),
    "hard_silu": (1.0, 3.0, 1 / 6, 0.0),
    "hard_tanh": (3.0, 3.0, 1 / 3, -1.0),
}
Call = Callable[..., Any]
Free = Callable[[str], str]


def expands(operation: keras.Operation, args: tuple[Any, ...]) -> bool:
    """Return whether `operation`, called with `args`, is written as several layers."""
    if keras_class(operation) in _JOINED:
        return bool(args) and isinstance(args[0], list | tuple) and len(args[0]) > 2
    if keras_class(operation) is keras.layers.Dot:
        return not operation.normalize and all(len(tensor.shape) == 2 for tensor in args[0])
    return _bounds(operation) is not None or _several(operation) is not None


def expanded(
    operation: keras.Operation, name: str, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, object], free: Free
) -> Any:
    """Return the output of the layers that replace `operation`, applied to its arguments; the last is called `name`.

    Args:
        operation: a layer that `expands`.
        name: the name of the layer in the network that is made.
        call: makes a copy of a layer with the options given by name, and calls it.
        args: what `operation` is called with.
        kwargs: further arguments of the call.
        free: makes a name for a layer before the last, from a wanted one, that no layer has.
    """
    kind = keras_class(operation)
    if kind in _JOINED:
        return _in_pairs(operation, kind, name, list(args[0]), free)
    if kind is keras.layers.Dot:
        return _summed(name, keras.layers.Multiply(name=free(f"{name}_products"))(list(args[0])))
    if kind in _APPLIES and kind is not keras.layers.Activation:
        x, name = call(operation, name, args, kwargs, activation="linear"), free(f"{name}_{_function(operation)}")
    else:
        x = args[0]
    relu = _several(operation)
    return _rectified(relu, name, x, free) if relu is not None else _bounded(_bounds(operation), name, x, free)


def _in_pairs(
    operation: keras.Operation, kind: Any, name: str, tensors: list[keras.KerasTensor], free: Free
) -> keras.KerasTensor:
    options = {"axis": operation.axis} if kind is keras.layers.Concatenate else {}
    averages = kind is keras.layers.Average
    layer = keras.layers.Add if averages else kind
    names = [free(f"{name}_{number}") for number in range(1, len(tensors) - 1)]
    names.append(free(f"{name}_sum") if averages else name)
    pairs = iter(names)
    whole = reduce(lambda one, other: layer(name=next(pairs), **options)([one, other]), tensors)
    if not averages:
        return whole
    return scaled_and_shifted(name, whole, np.array([1 / len(tensors)]), np.zeros(1))[1]


def _summed(name: str, x: keras.KerasTensor) -> keras.KerasTensor:
    layer = keras.layers.Dense(1, use_bias=False, name=name)
    y = layer(x)
    layer.set_weights([np.ones((x.shape[-1], 1))])
    return y


def _function(operation: keras.Operation) -> str:
    known = activation_in(operation)
    return "bounded" if known is None else known.name


def _bounds(operation: keras.Operation) -> tuple[float, float, float, float, bool] | None:
    """Scale and shift before relu6 and after it, and whether x is multiplied by the result; None for other layers."""
    kind = keras_class(operation)
    relu = _relu(operation)
    if relu is not None:
        limit = relu.max_value
        return None if limit == 6 or not _is_bounded(relu) or _several(operation) else _to_six(limit)
    known = activation_in(operation) if kind in _APPLIES else None
    if known is None or known.name not in _HARD:
        return None
    return (*_HARD[known.name], known.name == "hard_silu")


def _relu(operation: keras.Operation) -> Any:
    """Return the `ReLU` that `operation` is, or applies; None if there is none."""
    kind = keras_class(operation)
    relu: Any = operation if kind is keras.layers.ReLU else getattr(operation, "activation", None)
    return relu if kind in (keras.layers.ReLU, *_APPLIES) and keras_class(relu) is keras.layers.ReLU else None


def _is_bounded(relu: Any) -> bool:
    return relu.max_value is not None and relu.max_value > 0


def _to_six(limit: float) -> tuple[float, float, float, float, bool]:
    return 6 / limit, 0.0, limit / 6, 0.0, False


def _several(operation: keras.Operation) -> Any:
    """Return the `ReLU` that `operation` is, or applies, if it has two settings or more that no single function has."""
    relu = _relu(operation)
    if relu is None or (relu.max_value is not None and not _is_bounded(relu)):
        return None
    return relu if (relu.max_value is not None) + bool(relu.negative_slope) + bool(relu.threshold) > 1 else None


def _rectified(relu: Any, name: str, x: keras.KerasTensor, free: Free) -> keras.KerasTensor:
    positive, slope = x, relu.negative_slope
    above = free(f"{name}_positive") if slope else name
    if relu.threshold:
        own = free(f"{name}_above") if relu.max_value is not None else above
        positive = keras.layers.ReLU(threshold=relu.threshold, name=own)(positive)
    if relu.max_value is not None:
        positive = _bounded(_to_six(relu.max_value), above, positive, free)
    if not slope:
        return positive
    below = scaled_and_shifted(free(f"{name}_below"), x, -np.ones(1), np.full(1, relu.threshold))[1]
    below = keras.layers.Activation("relu", name=free(f"{name}_negative"))(below)
    below = scaled_and_shifted(free(f"{name}_slope"), below, np.full(1, -slope), np.zeros(1))[1]
    return keras.layers.Add(name=name)([positive, below])


def _bounded(
    found: tuple[float, float, float, float, bool] | None, name: str, x: keras.KerasTensor, free: Free
) -> keras.KerasTensor:
    if found is None:
        return x
    scale, shift, after, lowered, times_x = found
    y = scaled_and_shifted(free(f"{name}_shifted"), x, np.array([scale]), np.array([shift]))[1]
    y = keras.layers.Activation("relu6", name=free(f"{name}_relu6"))(y)
    y = scaled_and_shifted(free(f"{name}_factor") if times_x else name, y, np.array([after]), np.array([lowered]))[1]
    return keras.layers.Multiply(name=name)([x, y]) if times_x else y
