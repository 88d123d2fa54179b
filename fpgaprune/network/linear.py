"""A layer seen as a matrix per tap: which output channel reads which input channel, and with what sum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.network.channels import AxisChannels
from fpgaprune.network.slots import Ids

_CHUNK = 256


class Taps:
    """A kernel as (taps, C_in / groups, C_out): all positions of a filter, flat, between two channel axes.

    Only which kernels are zero is kept; the values are read again when needed, so that a trace stays small.
    """

    def __init__(self, read: Callable[[], NDArray[Any]], groups: int = 1, tolerance: float = 0.0) -> None:
        """The taps of a kernel (..., C_in / groups, C_out).

        Args:
            read: gives the kernel; any leading axes are taps.
            groups: groups of channels that do not read each other.
            tolerance: elements of at most this size count as zero.
        """
        self._read = read
        self._groups = groups
        kernel = self._kernel()
        local: NDArray[np.bool_] = (kernel != 0).any(axis=0)
        if tolerance:  # written so that NaN counts as read
            local = ~(np.abs(kernel).max(axis=0) <= tolerance)
        self.nonzero: NDArray[np.bool_] = self._spread(local[None])[0]

    def rows(self, channels: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
        """What input channels feed, some channels at a time: (k,) and (taps, k, C_out) in float64.

        Outputs outside a channel's group get 0.
        """
        if not channels.size:
            return
        kernel = self._kernel()
        _, inside, outputs = kernel.shape
        reached = np.arange(outputs) // (outputs // self._groups)
        for start in range(0, channels.size, _CHUNK):  # never the whole kernel in float64 at once
            part = channels[start : start + _CHUNK]
            rows = kernel[:, part % inside, :].astype(np.float64)
            rows[:, (part // inside)[:, None] != reached[None, :]] = 0.0
            yield part, rows

    def constant_part(self, line: AxisChannels, channels: NDArray[np.bool_]) -> NDArray[np.float64]:
        """What the constants in `channels` of `line` add to every output, where every tap reads them; (C_out,)."""
        total = np.zeros(self.nonzero.shape[1])
        for part, rows in self.rows(np.flatnonzero(channels & line.known & (line.value != 0))):
            total += np.einsum("tio,i->o", rows, line.value[part])
        return total

    def _kernel(self) -> NDArray[Any]:
        kernel = self._read()
        return kernel.reshape(-1, *kernel.shape[-2:])

    def _spread(self, local: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if self._groups == 1:
            return local
        taps, inside, outputs = local.shape
        width = outputs // self._groups
        full = np.zeros((taps, inside * self._groups, outputs), dtype=bool)
        for group in range(self._groups):
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
    source: AxisChannels
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

    def output(self, line: AxisChannels, absorbs: bool, bias: NDArray[np.float64]) -> AxisChannels:
        """The channels that one call makes of `line`: known where nothing but constants is read."""
        free = line.known if absorbs else line.known & (line.value == 0)
        value = bias + self.taps.constant_part(line, free)
        return AxisChannels(self.out_ids, np.asarray(~self.taps.nonzero[~free].any(axis=0)), value)
