"""`Gemm` and `MatMul` of ONNX as Dense of Keras."""

from __future__ import annotations

import numpy as np

from fpgaprune.frontends.onnx.layer_plan import column_parameter
from fpgaprune.frontends.onnx.node import NodeStep, Operator
from fpgaprune.frontends.onnx.operators.convolution import with_codes
from fpgaprune.frontends.onnx.parameter import Parameter
from fpgaprune.frontends.onnx.value import Value


def gemm(step: NodeStep) -> Value:
    """Compute `alpha * x @ B + beta * C` for a constant B of (C_in, C_out), or its transpose, and a constant C."""
    value, weight = step.value(), step.weight(1)
    if step.settings.get("transA", 0):
        step.refuse("transposes its first input, whose first axis is the batch")
    if value.rank != 2 or weight.ndim != 2:
        step.refuse(f"has inputs of {value.rank} and {weight.ndim} axes; wanted 2 and 2")
    kernel = weight.transposed((1, 0)) if step.settings.get("transB", 0) else weight
    kernel = _times(kernel, float(step.settings.get("alpha", 1.0)))
    given = step.given[2] if len(step.given) > 2 else None
    if given is None:
        return _dense(step, value, kernel, None)
    bias, outputs = step.weight(2), kernel.values.shape[1]
    if bias.size not in (1, outputs) or bias.values.shape[-1:] not in ((), (1,), (outputs,)):
        step.refuse(f"adds a constant of shape {bias.values.shape}; wanted ({outputs},)")
    bias = bias.reshaped((outputs,)) if bias.size == outputs else column_parameter(bias.values, outputs)
    return _dense(step, value, kernel, _times(bias, float(step.settings.get("beta", 1.0))))


def matmul(step: NodeStep) -> Value:
    """Compute `x @ B` for a constant B of (C_in, C_out), over the last axis of x."""
    value, weight = step.value(), step.weight(1)
    if weight.ndim != 2:
        step.refuse(f"multiplies by a constant of shape {weight.values.shape}; wanted two axes, (C_in, C_out)")
    if value.rank < 2:
        step.refuse("has an input without an axis besides the batch")
    return _dense(step, value, weight, None)


def _times(parameter: Parameter, factor: float) -> Parameter:
    return parameter if factor == 1 else parameter.with_values(parameter.values * np.float32(factor))


def _dense(step: NodeStep, value: Value, kernel: Parameter, bias: Parameter | None) -> Value:
    inputs = kernel.values.shape[0]
    last = value.rank - 1
    if not kernel.size or value.size(last) != inputs:
        step.refuse(f"multiplies {value.size(last)} entries by a weight of shape {kernel.values.shape}")
    if value.rank == 2:
        value = value if value.axes == (1,) else step.plan.whole(value)
        kernel = step.plan.in_columns(value, kernel)
    else:
        value = step.plan.whole(value)
        if value.axes[-1] != last:
            value = step.plan.logical(value)
    return with_codes(step, value, kernel, 1, bias, _layer)


def _layer(step: NodeStep, value: Value, kernel: Parameter, bias: Parameter | None) -> Value:
    outputs = kernel.values.shape[1]
    weights = {"kernel": kernel} if bias is None else {"kernel": kernel, "bias": bias}
    shape = (*value.shape[:-1], outputs)
    settings = {"units": outputs, "use_bias": bias is not None}
    layer = step.plan.add("Dense", step.name, (value,), shape, settings, weights)
    return Value(layer, shape, value.axes, value.rank)


OPERATORS: dict[str, Operator] = {"Gemm": gemm, "MatMul": matmul}
