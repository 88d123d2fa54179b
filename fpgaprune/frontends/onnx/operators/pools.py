"""Pooling operators of ONNX as pooling layers of Keras."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from fpgaprune.frontends.onnx.node import NodeStep, Operator
from fpgaprune.frontends.onnx.sliding_windows import SlidingWindows, padded, windows_of
from fpgaprune.frontends.onnx.value import Value, channels_last


def max_pool(step: NodeStep) -> Value:
    """Return the largest element of each window; what is added around the tensor never counts."""
    step.only_first_output()
    value, windows = _prepared(step)
    if not windows.is_padded:
        return _pooled(step, value, windows, "MaxPooling", "valid")
    if windows.is_same:
        return _pooled(step, value, windows, "MaxPooling", "same")
    if value.nonnegative:  # A zero never wins against what is there.
        return _pooled(step, padded(step, value, windows), windows.unpadded(), "MaxPooling", "valid")
    # SlidingWindows around every element, of which each stride-th is taken.
    middles = tuple((size - 1) // 2 for size in windows.size)
    found = zip(windows.outputs, windows.inputs, windows.strides, strict=True)
    if windows.before != middles or any(count != -(-size // stride) for count, size, stride in found):
        step.refuse(
            f"pads by {list(windows.before)} and {list(windows.after)}, which no pooling of Keras does for windows of "
            f"{list(windows.size)}; put it behind a ReLU, or pad by {list(middles)}"
        )
    ones = (1,) * len(windows.size)
    around = replace(windows, strides=ones, after=tuple(s - 1 - m for s, m in zip(windows.size, middles, strict=True)))
    value = _pooled(step, value, around, "MaxPooling", "same")
    taken = SlidingWindows(ones, windows.strides, ones, (0,) * len(ones), (0,) * len(ones), around.outputs)
    return _pooled(step, value, taken, "MaxPooling", "valid", "_stride")


def average_pool(step: NodeStep) -> Value:
    """Return the mean of each window; with count_include_pad the zeros around the tensor count."""
    value, windows = _prepared(step)
    if not windows.is_padded:
        return _pooled(step, value, windows, "AveragePooling", "valid")
    if step.settings.get("ceil_mode", 0):
        step.refuse("has windows that end outside the tensor (ceil_mode), which no pooling of Keras has")
    if step.settings.get("count_include_pad", 0):
        return _pooled(step, padded(step, value, windows), windows.unpadded(), "AveragePooling", "valid")
    if not windows.is_same:
        step.refuse(
            f"pads by {list(windows.before)} and {list(windows.after)} without counting what is added, which no "
            "pooling of Keras does here; use count_include_pad=True, or pad nothing"
        )
    return _pooled(step, value, windows, "AveragePooling", "same")


def global_average_pool(step: NodeStep) -> Value:
    """Return the mean of each channel."""
    return _over(step, step.value(), range(2, step.value().rank), "GlobalAveragePooling", keep=True)


def global_max_pool(step: NodeStep) -> Value:
    """Return the largest element of each channel."""
    return _over(step, step.value(), range(2, step.value().rank), "GlobalMaxPooling", keep=True)


def reduce_mean(step: NodeStep) -> Value:
    """Return the mean over all axes but the batch and one."""
    return _over(step, *_reduced(step), "GlobalAveragePooling", keep=bool(step.settings.get("keepdims", 1)))


def reduce_sum(step: NodeStep) -> Value:
    """Return the sum over all axes but the batch and one: the mean times their entries."""
    value, axes = _reduced(step)
    entries = prod(value.size(axis) for axis in axes)
    mean = _over(step, value, axes, "GlobalAveragePooling", keep=bool(step.settings.get("keepdims", 1)))
    return step.plan.times(f"{step.name}_entries", mean, np.full(1, entries, np.float32))


def reduce_max(step: NodeStep) -> Value:
    """Return the largest element over all axes but the batch and one."""
    return _over(step, *_reduced(step), "GlobalMaxPooling", keep=bool(step.settings.get("keepdims", 1)))


def _prepared(step: NodeStep) -> tuple[Value, SlidingWindows]:
    value = step.value()
    if value.rank not in (3, 4):
        step.refuse(f"has {value.rank - 2} spatial axes; wanted 1 or 2")
    if "kernel_shape" not in step.settings:
        step.refuse("has no kernel_shape")
    windows = windows_of(step, value, step.settings["kernel_shape"])
    if max(windows.dilations) > 1:
        step.refuse(f"has dilations {list(windows.dilations)}, which no pooling of Keras has")
    return step.plan.ordered(value, channels_last(value.rank)), windows


def _pooled(step: NodeStep, value: Value, windows: SlidingWindows, kind: str, padding: str, more: str = "") -> Value:
    shape = (*windows.outputs, value.shape[-1])
    settings: dict[str, Any] = {"pool_size": windows.size, "strides": windows.strides, "padding": padding}
    if len(windows.size) == 1:
        settings |= {"pool_size": windows.size[0], "strides": windows.strides[0]}
    layer = step.plan.add(f"{kind}{len(windows.size)}D", f"{step.name}{more}", (value,), shape, settings)
    return Value(layer, shape, value.axes, value.rank, None, value.nonnegative)


def _reduced(step: NodeStep) -> tuple[Value, list[int]]:
    since = 13 if step.operator == "ReduceSum" else 18
    value = step.value()
    axes = step.optional(1, "axes", None, since=since)
    if axes is None or not list(axes):
        step.refuse("works across all axes, with the batch: each sample stands alone")
    return value, sorted({step.axis(int(axis), value.rank) for axis in axes})


def _over(step: NodeStep, value: Value, axes: Sequence[int], kind: str, *, keep: bool) -> Value:
    axes = tuple(axes)
    kept = tuple(axis for axis in range(1, value.rank) if axis not in axes)
    if len(axes) not in (1, 2) or len(kept) != 1:
        step.refuse(
            f"works over the axes {list(axes)} of a tensor of {value.rank} axes; wanted one or two, and one axis that "
            "stays besides the batch"
        )
    value = step.plan.ordered(value, (*axes, *kept))
    shape = value.shape[-1:]
    layer = step.plan.add(f"{kind}{len(axes)}D", step.name, (value,), shape)
    if keep:
        return Value(layer, shape, kept, value.rank, None, value.nonnegative)
    return Value(layer, shape, (1,), 2, None, value.nonnegative)


OPERATORS: dict[str, Operator] = {
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "GlobalAveragePool": global_average_pool,
    "GlobalMaxPool": global_max_pool,
    "ReduceMean": reduce_mean,
    "ReduceMax": reduce_max,
    "ReduceSum": reduce_sum,
}
