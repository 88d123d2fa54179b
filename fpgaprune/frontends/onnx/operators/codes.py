"""`with_codes`: sums of products with weights that a quantiser has rounded, over whole numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fpgaprune.frontends.onnx.node import NodeStep
from fpgaprune.frontends.onnx.parameter import Parameter
from fpgaprune.frontends.onnx.value import Value

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
    before, factor = step.before_scale(value)
    if factor is not None and (factor == factor[0]).all():
        value, scale = before, scale * factor[0]
    summed = layer(step, value, weight.as_codes(), None)
    return step.plan.times(f"{step.name}_scale", summed, np.asarray(scale, np.float32), bias)
