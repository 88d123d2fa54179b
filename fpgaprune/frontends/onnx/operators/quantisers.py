"""`Quant`, `BipolarQuant` and `Trunc` of QONNX as `RoundedChannels` between scales."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpgaprune.frontends.onnx.grids import grid_of
from fpgaprune.frontends.onnx.layer_plan import Rounding
from fpgaprune.frontends.onnx.node import NodeStep, Operator
from fpgaprune.frontends.onnx.parameter import Parameter
from fpgaprune.frontends.onnx.value import Value
from fpgaprune.values import FixedType


def quantised(step: NodeStep) -> Value:
    """Return the nearest number of a grid.

    A scale that is a power of two is part of the type; the tensor is divided by any other, rounded, and multiplied by
    it again.
    """
    value = step.value()
    constants = [step.parameter(at).values for at in range(1, len(step.given))]
    if any(one.dtype.kind not in "fiu" or not one.size for one in constants):
        step.refuse("has a scale, zero point or number of bits that is no number")
    try:
        grid = grid_of(step.operator, constants, step.settings)
    except ValueError as error:
        step.refuse(str(error))
    axis = _wide_axis(step, value, grid.divisor, grid.zero, grid.scale, grid.lift)
    if axis is not None:
        value = step.plan.unflattened(value) if axis in value.axes else step.plan.whole(value)
    scaled = _scaled(step, f"{step.name}_steps", value, np.float32(1) / grid.divisor, grid.zero, axis)
    rounded = scaled
    for at, kind in enumerate(grid.kinds):
        more = f"_{at}" if at < len(grid.kinds) - 1 else ""
        rounded = _rounded(step, f"{step.name}{more}", rounded, kind)
    aligned = grid.along([value.size(axis) if one == axis else 1 for one in value.axes])
    step.plan.roundings.append(Rounding((step.inputs[0], step.outputs[0]), value, rounded, aligned))
    unsigned = not grid.kinds[-1].signed and not (grid.offset < 0).any()
    if axis in (None, value.axes[-1]) and not grid.offset.any() and not (grid.factor == 1).all():
        result = step.plan.times(f"{step.name}_scale", rounded, grid.factor.ravel())
    else:
        result = _scaled(step, f"{step.name}_scale", rounded, grid.factor, grid.offset, axis)
    return value.given_by(result.layer, nonnegative=value.nonnegative or unsigned)


def _rounded(step: NodeStep, name: str, value: Value, kind: FixedType) -> Value:
    channels = value.shape[-1]
    parts = {"width": kind.width, "integer": kind.integer, "signed": int(kind.signed)}
    weights = {name: Parameter(np.full(channels, part, np.float32)) for name, part in parts.items()}
    settings = {"rounding": kind.rounding, "overflow": kind.overflow}
    return value.given_by(step.plan.add("RoundedChannels", name, (value,), value.shape, settings, weights))


def _wide_axis(step: NodeStep, value: Value, *constants: NDArray[np.float32]) -> int | None:
    """Return the one axis of ONNX along which `constants` differ; None if each is one number."""
    shapes = [(1,) * (value.rank - one.ndim) + one.shape for one in constants]
    if any(len(shape) > value.rank or shape[0] != 1 for shape in shapes):
        step.refuse(f"has a scale of shape {constants[0].shape} for a tensor of {value.rank} axes with the batch first")
    wide = {axis for shape in shapes for axis, size in enumerate(shape) if size > 1}
    if len(wide) > 1 or any(shape[axis] not in (1, value.size(axis)) for shape in shapes for axis in wide):
        step.refuse(
            f"has scales of shape {constants[0].shape} for samples of shape {value.sizes}; wanted one a channel"
        )
    return next(iter(wide), None)


def _scaled(
    step: NodeStep, name: str, value: Value, factor: NDArray[np.float32], offset: NDArray[np.float32], axis: int | None
) -> Value:
    """Return `value * factor + offset`, or `value` itself if that changes nothing."""
    if (factor == 1).all() and not offset.any():
        return value
    if axis is None:
        return step.plan.scaled(name, value, float(factor.ravel()[0]), float(offset.ravel()[0]))
    size = value.size(axis)
    parts = [Parameter(np.broadcast_to(one.astype(np.float32).ravel(), (size,)).copy()) for one in (factor, offset)]
    return step.plan.scaled_channels(name, value, axis, parts[0], parts[1])


OPERATORS: dict[str, Operator] = dict.fromkeys(("Quant", "IntQuant", "BipolarQuant", "Trunc"), quantised)
