"""`ConvTranspose` of ONNX as Conv1DTranspose or Conv2DTranspose of Keras."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fpgaprune.frontends.onnx.node import NodeStep, Operator
from fpgaprune.frontends.onnx.operators.convolution import with_codes
from fpgaprune.frontends.onnx.parameter import Parameter
from fpgaprune.frontends.onnx.value import Value, channels_last

_NO_PADDING = ("NOTSET", "VALID", "")


def conv_transpose(step: NodeStep) -> Value:
    """Return a transposed convolution of one or two spatial axes; its weight is (C_in, C_out, ...)."""
    value, weight = step.value(), step.weight(1)
    bias = step.weight(2) if len(step.given) > 2 and step.given[2] is not None else None
    if value.rank not in (3, 4):
        step.refuse(f"has {value.rank - 2} spatial axes; wanted 1 or 2")
    channels, axes = value.size(1), value.rank - 2
    groups = int(step.settings.get("group", 1))
    if groups != 1:
        step.refuse(f"has {groups} groups, which no transposed convolution of Keras has: use one")
    if weight.ndim != value.rank or weight.values.shape[0] != channels or not weight.size:
        step.refuse(f"has a weight of shape {weight.values.shape} for an input of {channels} channels")
    filters, size = weight.values.shape[1], weight.values.shape[2:]
    if bias is not None and bias.values.shape != (filters,):
        step.refuse(f"has a bias of shape {bias.values.shape}; wanted ({filters},)")
    if list(step.settings.get("kernel_shape", size)) != list(size):
        step.refuse(f"has kernel_shape {list(step.settings['kernel_shape'])}; its weight has {list(size)}")
    if max(step.numbers("dilations", axes, 1)) > 1:
        step.refuse("has dilations above 1, for which there is no hardware here: use zeros in a larger kernel")
    strides = step.numbers("strides", axes, 1)
    before, outputs = _outputs(step, value.sizes[1:], size, strides)
    value = step.plan.ordered(value, channels_last(value.rank))
    return with_codes(step, value, weight, 1, bias, partial(_layer, strides=strides, before=before, outputs=outputs))


def _outputs(
    step: NodeStep, inputs: tuple[int, ...], size: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what is cut off before the outputs along each axis, and their number."""
    axes = len(inputs)
    mode = step.text("auto_pad", "NOTSET")
    more = step.numbers("output_padding", axes, 0, least=0)
    whole = tuple((n - 1) * s + k + m for n, s, k, m in zip(inputs, strides, size, more, strict=True))
    asked = step.settings.get("output_shape")
    if asked is None and mode in _NO_PADDING:
        pads = step.numbers("pads", 2 * axes, 0, least=0) if mode != "VALID" else (0,) * (2 * axes)
        before = pads[:axes]
        outputs = tuple(w - a - b for w, a, b in zip(whole, before, pads[axes:], strict=True))
    else:
        outputs = step.numbers("output_shape", axes, 1) if asked is not None else ()
        outputs = outputs or tuple(n * s for n, s in zip(inputs, strides, strict=True))
        cut = [max(w - o, 0) for w, o in zip(whole, outputs, strict=True)]
        before = tuple(c // 2 if mode == "SAME_UPPER" else c - c // 2 for c in cut)
    if min(outputs) < 1:
        step.refuse(f"cuts off all of its outputs: {list(whole)} along its axes, of which {list(outputs)} stay")
    return before, outputs


def _layer(
    step: NodeStep,
    value: Value,
    weight: Parameter,
    bias: Parameter | None,
    *,
    strides: tuple[int, ...],
    before: tuple[int, ...],
    outputs: tuple[int, ...],
) -> Value:
    weight = _with_taps(weight, [b + o for b, o in zip(before, outputs, strict=True)], value.shape, strides)
    filters, size = weight.values.shape[1], weight.values.shape[2:]
    axes = tuple(zip(value.shape, strides, size, outputs, before, strict=False))
    same = all(o == n * s and b == max(k - s, 0) // 2 for n, s, k, o, b in axes)
    shape = outputs if same else tuple((n - 1) * s + max(k, s) for n, s, k, _, _ in axes)
    weights = {"kernel": weight.transposed((*range(2, weight.ndim), 1, 0))}
    if bias is not None:
        weights["bias"] = bias
    settings: dict[str, Any] = {"filters": filters, "kernel_size": size, "strides": strides}
    settings |= {"padding": "same" if same else "valid", "use_bias": bias is not None}
    kind = f"Conv{len(size)}DTranspose"
    layer = step.plan.add(kind, step.name, (value,), (*shape, filters), settings, weights)
    made = Value(layer, (*shape, filters), value.axes, value.rank)
    cuts = tuple((b, have - b - o) for have, (_, _, _, o, b) in zip(shape, axes, strict=True))
    if same or not any(map(any, cuts)):
        return made
    cropping = {"cropping": cuts[0] if len(cuts) == 1 else cuts}
    cut = step.plan.add(f"Cropping{len(cuts)}D", f"{step.name}_cut", (made,), (*outputs, filters), cropping)
    return Value(cut, (*outputs, filters), value.axes, value.rank)


def _with_taps(weight: Parameter, ends: list[int], inputs: tuple[int, ...], strides: tuple[int, ...]) -> Parameter:
    """Add taps of zeros, so that there are outputs up to `ends`, where the bias alone stands in the last ones."""
    for axis, (end, places, step) in enumerate(zip(ends, inputs, strides, strict=False), 2):
        have = weight.values.shape[axis]
        if end > (places - 1) * step + max(have, step):
            wider = [(0, 0)] * weight.ndim
            wider[axis] = (0, end - (places - 1) * step - have)
            weight = replace(weight.moved(partial(np.pad, pad_width=wider)), origin=None)
    return weight


OPERATORS: dict[str, Operator] = {"ConvTranspose": conv_transpose}
