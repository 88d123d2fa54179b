"""`with_codes`: sums of products with weights that a quantiser has rounded, over whole numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fpgaprune.frontends.onnx.node import NodeStep
from fpgaprune.frontends.onnx.parameter import Parameter
from fpgaprune.frontends.onnx.value import Value

# Layers that commute with a positive factor.
_MOVES = tuple(
    f"{kind}{axes}D" for kind in ("MaxPooling", "AveragePooling", "ZeroPadding", "UpSampling") for axes in (1, 2)
)
Layer = Callable[[NodeStep, Value, Parameter, Parameter | None], Value]


def with_codes(
    step: NodeStep, value: Value, weight: Parameter, axis: int, bias: Parameter | None, layer: Layer
) -> Value:
    """What `layer` gives, with the whole numbers of `weight` as its weights if it has codes, and the scale behind it.

    So a weight of two bits stays one although its scale is no power of two. A scale of the whole tensor `value` moves
    behind the layer, too.

    Args:
        step: the node.
        value: what the layer reads, with its channels last.
        weight: the weights.
        axis: the axis of `weight` that is the output channels.
        bias: what is added for each output channel.
        layer: adds the layer.
    """
    scale = None if weight.codes is None else weight.codes.for_outputs(axis)
    if scale is None:
        return layer(step, value, weight, bias)
    value, factor = _unscaled(step, value)
    scale = scale * factor
    summed = layer(step, value, weight.as_codes(), None)
    return step.plan.times(f"{step.name}_scale", summed, np.asarray(scale, np.float32), bias)


def _unscaled(step: NodeStep, value: Value) -> tuple[Value, np.float32]:
    """`value` without a factor of the whole tensor, and that factor; 1 if there is none.

    Layers between the factor and the value, such as a pooling, read what the factor multiplied.
    """
    layers, last = step.plan.layers, value.layer
    path = [value.layer]
    while layers[last].kind in _MOVES and not step.is_shared(last):
        last = layers[last].given[0]
        path.append(last)
    before, factor = step.before_scale(value.given_by(last))
    if factor is None or not (factor == factor[0]).all() or (len(path) > 1 and factor[0] <= 0):
        return value, np.float32(1)
    if len(path) == 1:
        return before, factor[0]
    layers[path[-2]].given = (before.layer,)
    return value, factor[0]
