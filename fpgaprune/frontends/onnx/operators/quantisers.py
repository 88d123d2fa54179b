"""`Quant` of QONNX as `RoundedChannels`, a layer that rounds as the hardware does."""

from __future__ import annotations

import numpy as np

from fpgaprune.frontends.onnx.node import NodeStep, Operator
from fpgaprune.frontends.onnx.parameter import Parameter
from fpgaprune.frontends.onnx.qonnx import type_of
from fpgaprune.frontends.onnx.value import Value


def quant(step: NodeStep) -> Value:
    """The nearest number of a fixed-point type; the scale is a power of two, and the zero point 0."""
    value = step.value()
    scale, zero_point, bits = (step.parameter(at).values for at in (1, 2, 3))
    try:
        kind = type_of(scale, zero_point, bits, step.settings)
    except ValueError as error:
        step.refuse(str(error))
    channels = value.shape[-1]
    parts = {"width": kind.width, "integer": kind.integer, "signed": int(kind.signed)}
    weights = {name: Parameter(np.full(channels, part, np.float32)) for name, part in parts.items()}
    settings = {"rounding": kind.rounding, "overflow": kind.overflow}
    layer = step.plan.add("RoundedChannels", step.name, (value,), value.shape, settings, weights)
    return value.given_by(layer, nonnegative=value.nonnegative or not kind.signed)


def bipolar_quant(step: NodeStep) -> Value:
    """Of constants only: the sign of a computed tensor is no number of a fixed-point type without zero."""
    step.refuse("rounds a computed tensor to -1 and 1, for which there is no fixed-point type; use Quant with 2 bits")


OPERATORS: dict[str, Operator] = {"Quant": quant, "BipolarQuant": bipolar_quant}
