"""Operators of ONNX that move elements: most of them become no layer, because a `Value` knows the order of its axes."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from fpgaprune.errors import shown
from fpgaprune.frontends.onnx.constants import BATCH
from fpgaprune.frontends.onnx.node import NodeStep, Operator
from fpgaprune.frontends.onnx.value import Value, channels_last


def identity(step: NodeStep) -> Value:
    """Return the tensor itself."""
    return step.value_of_any_batch()


def dropout(step: NodeStep) -> Value:
    """Return the tensor itself, as in every trained network."""
    step.only_first_output()
    training = step.optional(2, "is_test", False, since=7)
    if step.opset >= 12 and training:
        step.refuse("is in training mode; export the network for inference: model.eval()")
    return step.value_of_any_batch()


def cast(step: NodeStep) -> Value:
    """Return the tensor itself, whose type stays float32."""
    if int(step.settings.get("to", 0)) != 1:
        step.refuse("turns a computed tensor into another type; wanted float32")
    return step.value()


def flatten(step: NodeStep) -> Value:
    """Return all axes from `axis` on as one."""
    value = step.value()
    axis = int(step.settings.get("axis", 1))
    axis = axis + value.rank if axis < 0 else axis
    if axis != 1 and not (axis == 0 and step.batch == 1):
        step.refuse(f"keeps {axis} axes; wanted axis 1: the batch stays, and all other axes become one")
    return as_sizes(step, value, (prod(value.sizes),))


def reshape(step: NodeStep) -> Value:
    """Return the elements in another shape; the batch, and the axes before it, stay."""
    value = step.value_of_any_batch()
    batch = value.batch
    asked = step.optional(1, "shape", [], since=5)
    target = [int(size) for size in asked] if isinstance(asked, list) else []
    if not target:
        step.refuse("makes a tensor without axes; wanted the batch first")
    own = [value.size(value.counted(axis)) for axis in range(value.rank)]
    own[batch] = BATCH
    if not step.settings.get("allowzero", 0):
        if any(size == 0 and at >= len(own) for at, size in enumerate(target)):
            step.refuse(f"has the shape {target}, which copies an axis that its input does not have")
        target = [own[at] if size == 0 else size for at, size in enumerate(target)]
    if batch and target[:batch] != own[:batch]:
        step.refuse(f"has the shape {shown(target)}, which moves the batch from axis {batch}")
    target.insert(0, target.pop(batch) if batch < len(target) else 0)
    first, rest = target[0], target[1:]
    if rest.count(-1) > 1 or any(size < -1 or size == BATCH for size in rest):
        step.refuse(f"has the shape {shown(target)}; wanted the batch first, then fixed sizes")
    total = prod(value.sizes)
    if -1 in rest:
        known = -prod(rest)
        if known < 1 or total % known:
            step.refuse(f"makes {rest} of {total} elements of a sample")
        rest[rest.index(-1)] = total // known
    if prod(rest) != total or (first not in (-1, BATCH) and first != step.batch):
        step.refuse(
            f"makes the shape {shown(target)} of samples of shape {value.sizes}: each sample stands alone, so the "
            "first axis must stay the batch"
        )
    return replace(as_sizes(step, value, tuple(rest)), batch=batch)


def squeeze(step: NodeStep) -> Value:
    """Return the tensor without axes of one entry."""
    value = step.value_of_any_batch()
    axes = step.optional(1, "axes", None, since=13)
    if axes is None:
        places = [at for at in range(value.rank) if at != value.batch and value.size(value.counted(at)) == 1]
    else:
        places = [step.axis(int(axis), value.rank, value.batch) for axis in axes]
    gone = {value.counted(place) for place in places}
    if any(value.size(axis) != 1 for axis in gone):
        step.refuse(f"drops the axes {sorted(gone)} of {value.sizes}, of which one has several entries")
    left = as_sizes(step, value, tuple(value.size(axis) for axis in range(1, value.rank) if axis not in gone))
    return replace(left, batch=value.batch - sum(place < value.batch for place in places))


def unsqueeze(step: NodeStep) -> Value:
    """Return the tensor with more axes of one entry."""
    value = step.value()
    axes = step.optional(1, "axes", [], since=13)
    rank = value.rank + len(axes)
    if rank > 8:
        step.refuse(f"makes a tensor of {rank} axes; wanted 8 at most")
    new = {step.axis(int(axis), rank) for axis in axes}
    if len(new) != len(axes):
        step.refuse(f"names an axis twice: {list(axes)}")
    old = iter(value.sizes)
    return as_sizes(step, value, tuple(1 if axis in new else next(old) for axis in range(1, rank)))


def transpose(step: NodeStep) -> Value:
    """Return the axes in another order; no layer."""
    value = step.value_of_any_batch()
    order = [int(axis) for axis in step.settings.get("perm", range(value.rank - 1, -1, -1))]
    if sorted(order) != list(range(value.rank)):
        step.refuse(f"has the order {order}; its input has {value.rank} axes")
    batch = order.index(value.batch)
    # Recurrent layers read (steps, batch, numbers).
    if batch and not value.batch and (batch, value.rank) != (1, 3):
        step.refuse(f"moves the batch to axis {batch}; each sample stands alone, so the batch must stay first")
    counted = [0, *(value.counted(axis) for axis in order if axis != value.batch)]
    if counted == list(range(value.rank)):
        return replace(value, batch=batch)
    value = step.plan.unflattened(value)
    return replace(value, axes=tuple(counted.index(axis) for axis in value.axes), batch=batch)


def depth_to_space(step: NodeStep) -> Value:
    """Return blocks of channels as pixels side by side, as `nn.PixelShuffle`; the channels come to the end first."""
    value, block = _image(step)
    (rows, columns, channels), name = value.shape, step.name
    if channels % block**2:
        step.refuse(f"makes blocks of {block} x {block} of {channels} channels")
    inside = channels // block**2
    if step.text("mode", "DCR") == "CRD" and inside > 1 and block > 1:
        # As if the block, and not the channel, counted first.
        value = _rearranged(step, value, (rows * columns, inside, block**2), (1, 3, 2), value.shape)
    split = (rows, columns, block, block * inside)
    return _rearranged(step, value, split, (1, 3, 2, 4), (rows * block, columns * block, inside), name)


def space_to_depth(step: NodeStep) -> Value:
    """Return blocks of pixels as channels of one pixel; the channels come to the end first."""
    value, block = _image(step)
    rows, columns, channels = value.shape
    if rows % block or columns % block:
        step.refuse(f"makes blocks of {block} x {block} of {rows} x {columns} pixels")
    split = (rows // block, block, columns // block, block * channels)
    return _rearranged(
        step, value, split, (1, 3, 2, 4), (rows // block, columns // block, block**2 * channels), step.name
    )


def _image(step: NodeStep) -> tuple[Value, int]:
    """Return what the node reads with its channels at the end, and the size of a block."""
    value, block = step.value(), int(step.settings.get("blocksize", 0))
    if value.rank != 4 or not 1 <= block < 1 << 15:
        step.refuse(f"has a blocksize of {block} for {value.rank - 2} spatial axes; wanted at least 1, and 2 axes")
    return step.plan.ordered(value, channels_last(4)), block


def _rearranged(
    step: NodeStep, value: Value, split: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, ...], name: str = ""
) -> Value:
    """Return `value` in the shape `split`, with its axes, from 1, in the order `order`, in the shape `shape`."""
    plan, axes, sign = step.plan, value.axes, value.nonnegative
    parted = plan.reshaped(value, split, tuple(range(1, len(split) + 1)), len(split) + 1)
    turned = tuple(split[axis - 1] for axis in order)
    layer = plan.add("Permute", "permute", (parted,), turned, {"dims": order})
    moved = Value(layer, turned, tuple(range(1, len(split) + 1)), len(split) + 1, None, sign)
    return plan.reshaped(moved, shape, axes, len(shape) + 1, name)


def as_sizes(step: NodeStep, value: Value, sizes: tuple[int, ...]) -> Value:
    """Return `value` in the shape `sizes`, both without the batch, with its elements in the order of ONNX."""
    if sizes == value.sizes:
        return value
    if not sizes:
        step.refuse("leaves no axis besides the batch; wanted one")
    rank = len(sizes) + 1
    if len(sizes) == 1 and value.flat is None and len(value.shape) > 1:
        return _flattened(step, value, sizes)
    if value.flat is not None:
        value = step.plan.unflattened(value)
    wide = [axis for axis in range(1, value.rank) if value.size(axis) > 1]
    if [value.size(axis) for axis in wide] == [size for size in sizes if size > 1]:
        return _with_other_units(step, value, wide, sizes)
    if len(sizes) == 1:
        return _flattened(step, value, sizes)
    value = step.plan.logical(value)
    return step.plan.reshaped(value, sizes, tuple(range(1, rank)), rank, step.name)


def _flattened(step: NodeStep, value: Value, sizes: tuple[int, ...]) -> Value:
    wide = [axis for axis in value.axes if value.size(axis) > 1]
    flat = None if wide == sorted(wide) else (value.shape, value.axes)
    return replace(step.plan.reshaped(value, sizes, (1,), 2, step.name), flat=flat)


def _with_other_units(step: NodeStep, value: Value, wide: list[int], sizes: tuple[int, ...]) -> Value:
    """Return `value` in the shape `sizes`, which differs in axes of one entry only; the others are `wide`."""
    names = dict(zip(wide, (axis for axis, size in enumerate(sizes, 1) if size > 1), strict=True))
    units = [axis for axis, size in enumerate(sizes, 1) if size == 1]
    for axis in value.axes:
        if axis not in names and units:
            names[axis] = units.pop(0)
    kept = [axis for axis in value.axes if axis in names]
    shape, axes = tuple(value.size(axis) for axis in kept), tuple(names[axis] for axis in kept)
    if not kept:
        shape, axes = (1,), (1,)
    return step.plan.reshaped(value, shape, axes, len(sizes) + 1, step.name)


OPERATORS: dict[str, Operator] = {
    "Identity": identity,
    "Dropout": dropout,
    "Cast": cast,
    "Flatten": flatten,
    "Reshape": reshape,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Transpose": transpose,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
}
