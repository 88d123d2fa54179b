"""Operators of ONNX that join, pad, crop or repeat: `Concat`, `Pad`, `Slice`, `Split`, `Gather`, `Resize`, `Tile`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from fpgaprune.errors import shown
from fpgaprune.frontends.onnx.constants import BATCH
from fpgaprune.frontends.onnx.node import NodeStep, Operator
from fpgaprune.frontends.onnx.operators.recurrent import last_step
from fpgaprune.frontends.onnx.operators.shaping import as_sizes
from fpgaprune.frontends.onnx.value import Value, channels_last

_MOST_FACTOR = 64


def concat(step: NodeStep) -> Value:
    """Join tensors side by side along one axis."""
    values = [step.value_of_any_batch(at) for at in range(len(step.given))]
    first = values[0]
    batch = first.batch
    if "axis" not in step.settings:
        step.refuse("has no axis")
    axis = first.counted(step.axis(int(step.settings["axis"]), first.rank, batch))
    if any(value.batch != batch for value in values):
        step.refuse(f"joins tensors whose batches are the axes {[value.batch for value in values]}; wanted one axis")
    others = [tuple(size for at, size in enumerate(value.sizes, 1) if at != axis) for value in values]
    if any(other != others[0] or value.rank != first.rank for other, value in zip(others, values, strict=True)):
        step.refuse(f"joins tensors of shapes {[value.sizes for value in values]} along axis {axis}")
    if len(values) == 1:
        return first
    joined = (axis, tuple(part for value in values for part in _parts(step, value, axis)))
    first = step.plan.whole(first)
    values = [first, *(step.plan.ordered(value, first.axes) for value in values[1:])]
    at = first.axes.index(axis)
    shape = list(first.shape)
    shape[at] = sum(value.shape[at] for value in values)
    settings = {"axis": first.position(axis)}
    layer = step.plan.add("Concatenate", step.name, values, shape, settings)
    step.plan.joined[layer] = joined
    nonnegative = all(value.nonnegative for value in values)
    return Value(layer, tuple(shape), first.axes, first.rank, None, nonnegative, batch)


def pad(step: NodeStep) -> Value:
    """Put zeros around the spatial axes."""
    if step.text("mode", "constant") != "constant":
        step.refuse(f"pads by mode {step.text('mode', '')!r}; wanted zeros: mode 'constant'")
    value = step.value()
    pads = step.optional(1, "pads", [], since=11)
    filling = step.optional(2, "value", 0.0, since=11)
    axes = step.optional(3, "axes", None, since=18)
    if (filling[0] if isinstance(filling, list) and filling else filling) != 0:
        step.refuse("pads by a number other than 0, which no layer of Keras does")
    before, after = _for_each_axis(step, value, [int(number) for number in pads], axes)
    if not any(before) and not any(after):
        return value
    if min(*before, *after) < 0:
        step.refuse("pads by a negative number; slice the tensor instead")
    return _around(step, value, before, after, "ZeroPadding", 1)


def slice_(step: NodeStep) -> Value:
    """Return the middle of the spatial axes."""
    value = step.value()
    starts = _listed(step.optional(1, "starts", [], since=10))
    ends = _listed(step.optional(2, "ends", [], since=10))
    axes = _listed(step.optional(3, "axes", list(range(len(starts))), since=10))
    steps = _listed(step.optional(4, "steps", [1] * len(starts), since=10))
    if not len(starts) == len(ends) == len(axes) == len(steps):
        step.refuse(f"has {len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps")
    before, after = [0] * (value.rank - 1), [0] * (value.rank - 1)
    for start, end, axis, stride in zip(starts, ends, axes, steps, strict=True):
        if axis in (0, -value.rank) and start == 0 and end >= BATCH and stride == 1:
            continue
        axis = step.axis(axis, value.rank)
        if stride != 1:
            step.refuse(f"takes every {stride}th entry, which no layer of Keras does; use a pooling with this stride")
        size = value.size(axis)
        first, last, _ = slice(start, end).indices(size)
        if last <= first:
            step.refuse(f"takes nothing of axis {axis}, of {size} entries")
        before[axis - 1], after[axis - 1] = first, size - last
    return _cropped(step, value, before, after)


def gather(step: NodeStep) -> Value:
    """Return one entry of an axis, which then is gone, or several that follow each other."""
    value, places = step.value_of_any_batch(), step.parameter(1).values
    axis = value.counted(step.axis(int(step.settings.get("axis", 0)), value.rank, value.batch))
    size = value.size(axis)
    at = [place + size * (place < 0) for place in places.ravel().tolist()]
    if places.ndim > 1 or not at or at != list(range(at[0], at[0] + len(at))) or at[0] < 0 or at[-1] >= size:
        step.refuse(f"takes the entries {shown(places.tolist())} of axis {axis}, of {size}; wanted a row of neighbours")
    found = _part(step, value, axis, at)
    if places.ndim:
        return replace(found, batch=value.batch)
    sizes = tuple(number for one, number in enumerate(found.sizes, 1) if one != axis)
    return replace(as_sizes(step, found, sizes), batch=value.batch - (axis <= value.batch))


def _part(step: NodeStep, value: Value, axis: int, entries: list[int]) -> Value:
    """Return the `entries` of `axis`, of which one follows the other."""
    start = 0
    for part in _parts(step, value, axis):
        # What a Concat has joined just before, such as the last states of several recurrent layers.
        if entries == list(range(start, start + part.size(axis))):
            return replace(part, batch=value.batch)
        start += part.size(axis)
    before, after = [0] * (value.rank - 1), [0] * (value.rank - 1)
    before[axis - 1], after[axis - 1] = entries[0], value.size(axis) - 1 - entries[-1]
    return _cropped(step, value, before, after)


def _parts(step: NodeStep, value: Value, axis: int) -> tuple[Value, ...]:
    """Return what was joined along `axis` to `value`, or `value` itself."""
    joined, parts = step.plan.joined.get(value.layer, (0, ()))
    return parts if joined == axis else (value,)


def _cropped(step: NodeStep, value: Value, before: list[int], after: list[int]) -> Value:
    """Cut `before` entries at the beginning, and `after` at the end, from each axis of `value` but the batch."""
    if not any(before) and not any(after):
        return value
    return last_step(step, value, before, after) or _around(step, value, before, after, "Cropping", -1)


def split(step: NodeStep) -> tuple[Value, ...]:
    """Split an axis into parts, one behind another."""
    value = step.value()
    axis = step.axis(int(step.settings.get("axis", 0)), value.rank)
    size, count = value.size(axis), len(step.outputs)
    given = step.optional(1, "split", None, since=13)
    each = -(-size // count)
    sizes = [each] * (count - 1) + [size - each * (count - 1)] if given is None else _listed(given)
    if len(sizes) != count or sum(sizes) != size or min(sizes) < 1:
        step.refuse(
            f"splits the {size} entries of axis {axis} into parts of {sizes}; wanted {count} parts of 1 or more"
        )
    parts = []
    for at, part in enumerate(sizes):
        before, after = [0] * (value.rank - 1), [0] * (value.rank - 1)
        before[axis - 1], after[axis - 1] = sum(sizes[:at]), sum(sizes[at + 1 :])
        parts.append(_around(step, value, before, after, "Cropping", -1) if part < size else value)
    return tuple(parts)


def resize(step: NodeStep) -> Value:
    """Return each entry of the spatial axes several times, or points between entries."""
    value = step.value()
    mode = step.text("mode", "nearest")
    factors = _factors(step, value)
    if all(factor == 1 for factor in factors):
        return value
    mapping = step.text("coordinate_transformation_mode", "half_pixel" if step.opset >= 11 else "asymmetric")
    if mode == "nearest":
        nearest = step.text("nearest_mode", "round_prefer_floor" if step.opset >= 11 else "floor")
        _require_repeats(step, value, factors, mapping, nearest)
    elif mode != "linear" or mapping not in ("half_pixel", "pytorch_half_pixel") or value.rank != 4:
        step.refuse(
            f"has mode {mode!r} and coordinates {mapping!r}; wanted 'nearest', or 'linear' of an image with "
            "align_corners=False"
        )
    if 1 not in (factors[0], factors[-1]) or value.rank not in (3, 4):
        step.refuse(f"has the factors {factors}; wanted spatial axes of (N, C, ...) or (N, ..., C) only")
    order = channels_last(value.rank) if factors[0] == 1 else tuple(range(1, value.rank))
    value = step.plan.ordered(value, order)
    sizes = [factors[axis - 1] for axis in order[:-1]]
    shape = (*(size * factor for size, factor in zip(value.shape, sizes, strict=False)), value.shape[-1])
    settings: dict[str, Any] = {"size": sizes[0]} if len(sizes) == 1 else {"size": tuple(sizes)}
    if mode == "linear":
        settings["interpolation"] = "bilinear"
    layer = step.plan.add(f"UpSampling{len(sizes)}D", step.name, (value,), shape, settings)
    return Value(layer, shape, value.axes, value.rank, None, value.nonnegative)


def _listed(found: object) -> list[int]:
    return [int(number) for number in found] if isinstance(found, list | tuple) else [int(str(found))]


def _for_each_axis(step: NodeStep, value: Value, pads: list[int], axes: object) -> tuple[list[int], list[int]]:
    named = list(range(value.rank)) if axes is None else [axis % value.rank for axis in _listed(axes)]
    if len(pads) != 2 * len(named) or any(number >= 1 << 31 for number in pads):
        step.refuse(f"has {len(pads)} numbers of padding; wanted two for each of {len(named)} axes")
    before, after = [0] * value.rank, [0] * value.rank
    for at, axis in enumerate(named):
        before[axis], after[axis] = pads[at], pads[at + len(named)]
    if before[0] or after[0]:
        step.refuse("pads the batch: each sample stands alone")
    return before[1:], after[1:]


def _around(step: NodeStep, value: Value, before: list[int], after: list[int], kind: str, sign: int) -> Value:
    """Add entries around one or two axes of `value`, or cut them; another axis stays, as the last in Keras."""
    changed = [axis for axis in range(1, value.rank) if before[axis - 1] or after[axis - 1]]
    if value.rank == 2:
        column = step.plan.unflattened(value)
        column = step.plan.reshaped(column, (column.size(1), 1), (1, 2), 3)
        one = _around(step, column, [*before, 0], [*after, 0], kind, sign)
        return step.plan.reshaped(one, one.shape[:1], (1,), 2)
    if value.rank not in (3, 4) or len(changed) > value.rank - 2:
        step.refuse(
            f"changes the axes {changed} of a tensor of {value.rank} axes; wanted one axis of (N, C, L), or two of "
            "(N, C, H, W)"
        )
    order = channels_last(value.rank)
    if 1 in changed:
        others = [axis for axis in range(1, value.rank) if axis not in changed]
        order = (*changed, *others)
    value = step.plan.ordered(value, order)
    pairs = [(before[axis - 1], after[axis - 1]) for axis in order[:-1]]
    shape = (*(size + sign * sum(pair) for size, pair in zip(value.shape, pairs, strict=False)), value.shape[-1])
    name = "padding" if sign > 0 else "cropping"
    settings = {name: pairs[0] if len(pairs) == 1 else tuple(pairs)}
    layer = step.plan.add(f"{kind}{len(pairs)}D", step.name, (value,), shape, settings)
    return replace(value, layer=layer, shape=shape)


def tile(step: NodeStep) -> Value:
    """Return a tensor whose axes of one entry are repeated, as where tf2onnx spells an upsampling out."""
    value = step.value()
    times = [int(factor) for factor in np.ravel(step.optional(1, "repeats", [], since=6))]
    if len(times) != value.rank or times[0] != 1 or any(not 1 <= factor <= _MOST_FACTOR for factor in times):
        step.refuse(f"has repeats {times}; wanted 1 for the batch, then {value.rank - 1} from 1 to {_MOST_FACTOR}")
    value = step.plan.unflattened(value)
    for axis, factor in enumerate(times):
        if factor > 1:
            value = _repeated(step, value, axis, factor)
    return value


def _repeated(step: NodeStep, value: Value, axis: int, factor: int) -> Value:
    """Return `value` with `factor` entries along `axis`, which has one."""
    if value.size(axis) > 1:
        step.refuse(f"repeats axis {axis}, which has {value.size(axis)} entries, as a whole; wanted an axis of one")
    left = [own for own in value.axes if own != axis]
    # Before the next axis of ONNX, for a reshape joins it with the axis before.
    place = min((left.index(own) for own in left if own > axis), key=lambda at: left[at], default=len(left))
    before, after = left[:place], left[place:]
    rows, pixels = (prod(value.size(own) for own in part) for part in (before, after[:-1]))
    last = value.size(after[-1]) if after else 1
    shape: tuple[int, ...] = (rows, pixels, last) if pixels > 1 else (rows, last)
    wide = (rows * factor, *shape[1:])
    plan = step.plan
    flat = plan.reshaped(value, shape, tuple(range(1, len(shape) + 1)), len(shape) + 1)
    settings = {"size": (factor, 1) if pixels > 1 else factor}
    layer = plan.add(f"UpSampling{len(shape) - 1}D", step.name, (flat,), wide, settings)
    grown = Value(layer, wide, flat.axes, flat.rank, None, value.nonnegative)
    axes = (*before, axis, *after)
    sizes = tuple(factor if own == axis else value.size(own) for own in axes)
    return plan.reshaped(grown, sizes, axes, value.rank)


def _factors(step: NodeStep, value: Value) -> list[int]:
    """Return the whole factor by which each axis but the batch grows."""
    sizes = [1, *value.sizes]
    at = 1 if step.operator == "Upsample" or step.opset < 11 else 2
    scales = step.optional(at, "scales", [], since=9)
    target = step.optional(3, "sizes", [], since=11) if step.operator == "Resize" and step.opset >= 11 else []
    axes = [int(axis) % value.rank for axis in step.settings.get("axes", range(value.rank))]
    if target:
        found = {axis: int(size) / sizes[axis] for axis, size in zip(axes, target, strict=False) if axis}
    else:
        found = {axis: float(scale) for axis, scale in zip(axes, scales, strict=False)}
    if not found or found.get(0, 1.0) != 1:
        step.refuse("has no factor for each axis, or one for the batch")
    factors = [found.get(axis, 1.0) for axis in range(1, value.rank)]
    if any(not math.isfinite(factor) or factor != int(factor) or not 1 <= factor <= _MOST_FACTOR for factor in factors):
        step.refuse(f"grows by {factors}; wanted whole factors of 1 to {_MOST_FACTOR}")
    return [int(factor) for factor in factors]


_MAPPINGS: dict[str, Callable[[int, int], float]] = {
    "asymmetric": lambda at, factor: at / factor,
    "half_pixel": lambda at, factor: (at + 0.5) / factor - 0.5,
    "pytorch_half_pixel": lambda at, factor: (at + 0.5) / factor - 0.5,
    "half_pixel_symmetric": lambda at, factor: (at + 0.5) / factor - 0.5,
}
_ROUNDINGS: dict[str, Callable[[float], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda place: math.ceil(place - 0.5),
    "round_prefer_ceil": lambda place: math.floor(place + 0.5),
}


def _require_repeats(step: NodeStep, value: Value, factors: list[int], mapping: str, nearest: str) -> None:
    """Check that each entry comes `factor` times, one behind another."""
    place, rounded = _MAPPINGS.get(mapping), _ROUNDINGS.get(nearest)
    for size, factor in zip(value.sizes, factors, strict=True):
        taken = (
            [min(max(rounded(place(at, factor)), 0), size - 1) for at in range(size * factor)]
            if place is not None and rounded is not None
            else []
        )
        if factor > 1 and taken != [at // factor for at in range(size * factor)]:
            step.refuse(f"has coordinates {mapping!r} and rounding {nearest!r}, by which entries do not just repeat")


OPERATORS: dict[str, Operator] = {
    "Concat": concat,
    "Pad": pad,
    "Slice": slice_,
    "Split": split,
    "Gather": gather,
    "Resize": resize,
    "Upsample": resize,
    "Tile": tile,
}
