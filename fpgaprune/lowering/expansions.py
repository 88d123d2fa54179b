"""Writes a layer that no single operation computes as several layers that compute the same over the reals.

`Add` of three tensors becomes two additions, `hard_sigmoid` of x becomes relu6(x + 3) / 6, and `hard_silu` the product
of x and that. What is bounded elsewhere than at 6 is scaled before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import keras
import numpy as np

from fpgaprune.keras_classes import keras_class
from fpgaprune.keras_functions import activation_in
from fpgaprune.lowering.keras_operations import scaled_and_shifted

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


def expands(operation: Any, args: tuple[Any, ...]) -> bool:
    """Whether `operation`, called with `args`, is written as several layers."""
    if keras_class(operation) in _JOINED:
        return bool(args) and isinstance(args[0], list | tuple) and len(args[0]) > 2
    return _bounds(operation) is not None


def expanded(operation: Any, name: str, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """What the layers that stand for `operation` make of its arguments; the last of them is called `name`.

    Args:
        operation: a layer that `expands`.
        name: the name of the layer in the network that is made.
        call: makes a copy of a layer with the options given by name, and calls it.
        args: what `operation` is called with.
        kwargs: further arguments of the call.
    """
    kind = keras_class(operation)
    if kind in _JOINED:
        return _in_pairs(operation, kind, name, list(args[0]))
    found = _bounds(operation)
    if kind in _APPLIES and kind is not keras.layers.Activation:
        x = call(operation, name, args, kwargs, activation="linear")
        return _bounded(found, f"{name}_{_function(operation)}", x)
    return _bounded(found, name, args[0])


def _in_pairs(operation: Any, kind: Any, name: str, tensors: list[Any]) -> Any:
    options = {"axis": operation.axis} if kind is keras.layers.Concatenate else {}
    averages = kind is keras.layers.Average
    layer = keras.layers.Add if averages else kind
    names = [f"{name}_{number}" for number in range(1, len(tensors) - 1)] + [f"{name}_sum" if averages else name]
    pairs = iter(names)
    whole = reduce(lambda one, other: layer(name=next(pairs), **options)([one, other]), tensors)
    if not averages:
        return whole
    return scaled_and_shifted(name, whole, np.array([1 / len(tensors)]), np.zeros(1))[1]


def _function(operation: Any) -> str:
    known = activation_in(operation)
    return "bounded" if known is None else known.name


def _bounds(operation: Any) -> tuple[float, float, float, float, bool] | None:
    """Scale and shift before relu6 and after it, and whether x is multiplied by the result; None for other layers."""
    kind = keras_class(operation)
    relu: Any = operation if kind is keras.layers.ReLU else getattr(operation, "activation", None)
    if kind in (keras.layers.ReLU, *_APPLIES) and keras_class(relu) is keras.layers.ReLU:
        limit = relu.max_value
        if limit is None or limit == 6 or not limit > 0 or relu.negative_slope or relu.threshold:
            return None
        return (6 / limit, 0.0, limit / 6, 0.0, False)
    known = activation_in(operation) if kind in _APPLIES else None
    if known is None or known.name not in _HARD:
        return None
    return (*_HARD[known.name], known.name == "hard_silu")


def _bounded(found: tuple[float, float, float, float, bool] | None, name: str, x: Any) -> Any:
    if found is None:
        return x
    scale, shift, after, lowered, times_x = found
    y = scaled_and_shifted(f"{name}_shifted", x, np.array([scale]), np.array([shift]))[1]
    y = keras.layers.Activation("relu6", name=f"{name}_relu6")(y)
    y = scaled_and_shifted(f"{name}_factor" if times_x else name, y, np.array([after]), np.array([lowered]))[1]
    return keras.layers.Multiply(name=name)([x, y]) if times_x else y
