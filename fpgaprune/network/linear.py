"""`Linear` describes which output channel of a layer reads which input channel, and what constants add to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.network.channels import AxisChannels, Ids
from fpgaprune.values import Array

_CHUNK = 256


class Taps:
    """A kernel as (taps, C_in / groups, C_out), where a tap is a position of the filter.

    Only the places of zero kernels are kept. The values are read again when needed, so a trace stays small.
    """

    def __init__(self, read: Callable[[], Array], groups: int = 1, tolerance: float = 0.0) -> None:
        """Make the taps of a kernel (..., C_in / groups, C_out).

        Args:
            read: returns the kernel; all leading axes are taps.
            groups: number of groups of channels that do not read each other.
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
        """Yield the kernels of k input channels at a time: indices (k,), and (taps, k, C_out) in float64.

        Kernels to outputs outside a channel's group are 0.
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
        """Return the sum (C_out,) that constants in `channels` of `line` add to an output if every tap reads them."""
        total = np.zeros(self.nonzero.shape[1])
        for part, rows in self.rows(np.flatnonzero(channels & line.known & (line.value != 0))):
            total += np.einsum("tio,i->o", rows, line.value[part])
        return total

    def _kernel(self) -> Array:
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
    """A layer that reads channels through a kernel.

    Attributes:
        path: the layer.
        taps: its kernel.
        source: the channels that it reads, with the constants that are the same in all its calls.
        out_ids: the slots that it writes, (C_out,).
        kernel_path: weight path of the kernel.
        in_axis: axis of the kernel that counts input channels.
        out_axis: axis of the kernel that counts output channels.
        bias_path: weight path of the bias, which may not exist yet.
        bias_shape: shape of a new bias; None for one number for each output that stays.
        absorbs: whether a constant channel adds the same to every output position, which zero padding prevents.
        mergeable: whether the kernels of one constant channel may be added to those of another.
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
        """The input channels that are constants other than 0."""
        return np.asarray(self.source.known & (self.source.value != 0))

    @property
    def free(self) -> NDArray[np.bool_]:
        """The input channels whose removal changes the bias only."""
        return self.source.known if self.absorbs else np.asarray(self.source.known & (self.source.value == 0))

    def output(self, line: AxisChannels, absorbs: bool, bias: NDArray[np.float64]) -> AxisChannels:
        """Return the channels that one call makes of `line`; an output that reads only constants is known."""
        free = line.known if absorbs else line.known & (line.value == 0)
        value = bias + self.taps.constant_part(line, free)
        return AxisChannels(self.out_ids, np.asarray(~self.taps.nonzero[~free].any(axis=0)), value)
