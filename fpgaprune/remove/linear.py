"""A layer seen as a matrix per tap: which output channel reads which input channel, and with what sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.remove.channels import Line
from fpgaprune.remove.slots import Ids

_CHUNK = 256


class Taps:
    """A kernel as (taps, C_in / groups, C_out): all positions of a filter, flat, between two channel axes."""

    def __init__(self, kernel: NDArray[np.generic], groups: int = 1, tolerance: float = 0.0) -> None:
        """A view of `kernel` (..., C_in / groups, C_out).

        Args:
            kernel: any leading axes are taps.
            groups: groups of channels that do not read each other.
            tolerance: elements of at most this size count as zero.
        """
        self.kernel = kernel.reshape(-1, *kernel.shape[-2:])
        self.groups = groups
        # Written so that NaN counts as read.
        local: NDArray[np.bool_] = (self.kernel != 0).any(axis=0)
        if tolerance:
            local = ~(np.abs(self.kernel).max(axis=0) <= tolerance)
        self.nonzero: NDArray[np.bool_] = self._spread(local[None])[0]

    @property
    def shape(self) -> tuple[int, int]:
        """(C_in, C_out)."""
        return self.kernel.shape[1] * self.groups, self.kernel.shape[2]

    def rows(self, channels: NDArray[np.intp]) -> NDArray[np.float64]:
        """What the input channels `channels` feed, (taps, len(channels), C_out) in float64, 0 outside their group."""
        if self.groups == 1:
            return self.kernel[:, channels, :].astype(np.float64)
        _, inside, outputs = self.kernel.shape
        rows = self.kernel[:, channels % inside, :].astype(np.float64)
        reached = np.arange(outputs) // (outputs // self.groups)
        rows[:, (channels // inside)[:, None] != reached[None, :]] = 0.0
        return rows

    def constant_part(self, line: Line, channels: NDArray[np.bool_]) -> NDArray[np.float64]:
        """What the constants in `channels` of `line` add to every output, where every tap reads them; (C_out,)."""
        total = np.zeros(self.shape[1])
        at = np.flatnonzero(channels & line.known & (line.value != 0))
        for start in range(0, at.size, _CHUNK):  # never the whole kernel in float64 at once
            part = at[start : start + _CHUNK]
            total += np.einsum("tio,i->o", self.rows(part), line.value[part])
        return total

    def _spread(self, local: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if self.groups == 1:
            return local
        taps, inside, outputs = local.shape
        width = outputs // self.groups
        full = np.zeros((taps, inside * self.groups, outputs), dtype=bool)
        for group in range(self.groups):
            columns = slice(group * width, (group + 1) * width)
            full[:, group * inside : (group + 1) * inside, columns] = local[:, :, columns]
        return full


@dataclass
class Linear:
    """A read of channels through weights: the places where a class of channels ends.

    Attributes:
        path: the layer.
        taps: its kernel.
        source: the channels that it reads, with what is constant over all its calls.
        out_ids: the slots that it writes, (C_out,).
        kernel_path: weight path of the kernel.
        in_axis, out_axis: where the kernel's two channel axes are.
        bias_path: weight path of the bias, existing or to be made.
        bias_shape: shape of a bias that has to be made; None for one number for each output that stays.
        absorbs: whether a constant channel adds the same to every output position (no zero padding in the way).
        mergeable: whether one constant channel may take over the kernels of another.
    """

    path: str
    taps: Taps
    source: Line
    out_ids: Ids
    kernel_path: str
    in_axis: int
    out_axis: int
    bias_path: str
    bias_shape: tuple[int, ...] | None = None
    absorbs: bool = True
    mergeable: bool = True

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Input channels that are constants other than 0."""
        constant: NDArray[np.bool_] = np.logical_and(self.source.known, self.source.value != 0)
        return constant

    @property
    def free(self) -> NDArray[np.bool_]:
        """Input channels that may leave with no trace but a bias."""
        known = self.source.known
        free: NDArray[np.bool_] = known if self.absorbs else np.logical_and(known, self.source.value == 0)
        return free

    def output(self, line: Line, absorbs: bool, bias: NDArray[np.float64]) -> Line:
        """The channels that one call makes of `line`: known where nothing but constants is read."""
        free = line.known if absorbs else line.known & (line.value == 0)
        value = bias + self.taps.constant_part(line, free)
        known = np.logical_and(~self.taps.nonzero[~free].any(axis=0), np.isfinite(value))
        return Line(self.out_ids, known, np.where(known, value, 0.0))
