"""`SlidingWindows`: kernel size, strides, dilations and padding of a convolution or a pooling of ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fpgaprune.frontends.onnx.node import NodeStep
from fpgaprune.frontends.onnx.value import Value


@dataclass(frozen=True)
class SlidingWindows:
    """SlidingWindows over the spatial axes; each tuple has an entry for each of them.

    Attributes:
        size: entries of a window.
        strides: steps between windows.
        dilations: steps between the entries of a window.
        before: entries that are added at the start.
        after: entries that are added at the end.
        inputs: entries of the tensor.
    """

    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    inputs: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """Entries from the first to the last entry of a window."""
        return tuple((size - 1) * step + 1 for size, step in zip(self.size, self.dilations, strict=True))

    @property
    def outputs(self) -> tuple[int, ...]:
        """Number of windows along each axis."""
        found = zip(self.inputs, self.before, self.after, self.reach, self.strides, strict=True)
        return tuple((size + begin + end - reach) // stride + 1 for size, begin, end, reach, stride in found)

    @property
    def is_padded(self) -> bool:
        """Whether entries are added."""
        return any(self.before) or any(self.after)

    @property
    def is_same(self) -> bool:
        """Whether the added entries are those of Keras's padding "same"."""
        totals = [
            max((-(-size // stride) - 1) * stride + reach - size, 0)
            for size, reach, stride in zip(self.inputs, self.reach, self.strides, strict=True)
        ]
        halves = tuple(total // 2 for total in totals)
        return self.before == halves and self.after == tuple(t - h for t, h in zip(totals, halves, strict=True))

    def unpadded(self) -> SlidingWindows:
        """Return the windows over the tensor with the added entries."""
        inputs = tuple(sum(sizes) for sizes in zip(self.inputs, self.before, self.after, strict=True))
        none = (0,) * len(self.size)
        return replace(self, before=none, after=none, inputs=inputs)


def windows_of(step: NodeStep, value: Value, size: Sequence[int]) -> SlidingWindows:
    """Return the windows of `size` entries that the node `step` moves over `value`, (N, C, ...).

    Raises:
        ModelImportError: an attribute contradicts the tensor.
    """
    inputs = value.sizes[1:]
    count = len(inputs)
    size = tuple(int(number) for number in size)
    strides = step.numbers("strides", count, 1)
    dilations = step.numbers("dilations", count, 1)
    pads = step.numbers("pads", 2 * count, 0, least=0)
    if len(size) != count or min(size) < 1:
        step.refuse(f"has windows of {list(size)}; its input has {count} spatial axes")
    windows = SlidingWindows(size, strides, dilations, pads[:count], pads[count:], inputs)
    mode = step.text("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        windows = _same(windows, lower=mode == "SAME_LOWER")
    elif mode == "VALID":
        windows = replace(windows, before=(0,) * count, after=(0,) * count)
    elif mode not in ("NOTSET", ""):
        step.refuse(f"has auto_pad {mode!r}; wanted NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    if step.settings.get("ceil_mode", 0):
        windows = _rounded_up(windows)
    if min(windows.outputs) < 1:
        step.refuse(f"has windows of {list(size)} that are larger than its input of {list(inputs)}")
    return windows


def _same(windows: SlidingWindows, *, lower: bool) -> SlidingWindows:
    before, after = [], []
    for size, reach, stride in zip(windows.inputs, windows.reach, windows.strides, strict=True):
        total = max((-(-size // stride) - 1) * stride + reach - size, 0)
        less, more = total // 2, total - total // 2
        before.append(more if lower else less)
        after.append(less if lower else more)
    return replace(windows, before=tuple(before), after=tuple(after))


def _rounded_up(windows: SlidingWindows) -> SlidingWindows:
    """Extend `windows` by the last one, which begins inside the tensor or its padding, although it ends outside."""
    after = []
    found = zip(windows.inputs, windows.before, windows.after, windows.reach, windows.strides, strict=True)
    for size, begin, end, reach, stride in found:
        count = -(-(size + begin + end - reach) // stride) + 1
        if (count - 1) * stride >= size + begin:
            count -= 1
        after.append(max((count - 1) * stride + reach - size - begin, end))
    return replace(windows, after=tuple(after))


def padded(step: NodeStep, value: Value, windows: SlidingWindows) -> Value:
    """Pad `value`, whose channels are last, with the zeros that `windows` add."""
    if not windows.is_padded:
        return value
    pairs = tuple(zip(windows.before, windows.after, strict=True))
    shape = (*windows.unpadded().inputs, value.shape[-1])
    settings = {"padding": pairs[0] if len(pairs) == 1 else pairs}
    layer = step.plan.add(f"ZeroPadding{len(pairs)}D", f"{step.name}_pad", (value,), shape, settings)
    return Value(layer, shape, value.axes, value.rank, None, value.nonnegative)
