"""Sums in an accumulator's type: all at once if nothing can be lost, else addend by addend in the hardware's order.

If the accumulator keeps every bit of an addend, and either cannot overflow or wraps, every order gives the same bits
(wrapping is arithmetic modulo 2**width), so a matrix product may be used. If it rounds or saturates, the order matters:
it is that of the template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from fpgaprune.emulate.exact import Exact, carrier
from fpgaprune.values import Array, FixedType

# Products in one call of the BLAS: so few that rows and weights stay in a cache, and that the BLAS starts no threads,
# because the batches have their own.
_BLOCK_PRODUCTS = 1 << 18


@dataclass(frozen=True)
class Kernel:
    """A matrix of weights, and what bounds the sums that it can give.

    Attributes:
        weight: (N_in, N_out) the weights.
        positive: (N_out,) the sum of the positive raw weights of each output.
        negative: (N_out,) the sum of the negative raw weights of each output.
    """

    weight: Exact
    positive: tuple[int, ...]
    negative: tuple[int, ...]

    @classmethod
    def of(cls, raw: NDArray[np.int64], kind: FixedType) -> Kernel:
        """Return the kernel with raw weights `raw` of type `kind`."""
        positive = tuple(int(v) for v in np.maximum(raw, 0).sum(axis=0))
        negative = tuple(int(v) for v in np.minimum(raw, 0).sum(axis=0))
        return cls(Exact.of(raw, kind), positive, negative)

    def partial_bounds(self, low: int, high: int) -> tuple[int, int]:
        """Return the bounds of every partial sum, in any order, for raw inputs from `low` to `high`."""
        lows, highs = zip(*self.output_bounds(low, high), strict=True)
        return min(lows), max(highs)

    def output_bounds(self, low: int, high: int) -> list[tuple[int, int]]:
        """Bound the sums of each output by itself."""
        low, high = min(low, 0), max(high, 0)
        pairs = list(zip(self.positive, self.negative, strict=True))
        return [(p * low + n * high, p * high + n * low) for p, n in pairs]

    def product(self, parts: Sequence[Exact]) -> Exact:
        """Return the exact product (..., N_out) of `parts`, side by side (..., N_in), and the weights."""
        first = parts[0]
        low, high = self.partial_bounds(first.low, first.high)
        # Every product and partial sum is an integer that the dtype holds, so a BLAS in any order is exact.
        dtype = carrier(min(low, first.low, self.weight.low), max(high, first.high, self.weight.high))
        blocks = self.weight.raw.astype(dtype, copy=False).reshape(len(parts), -1, self.weight.raw.shape[1])
        total = _product(first.raw.astype(dtype, copy=False), blocks[0])
        for part, block in zip(parts[1:], blocks[1:], strict=True):
            total += _product(part.raw.astype(dtype, copy=False), block)
        return Exact(total, first.fraction + self.weight.fraction, low, high)


def weighted_sum(
    parts: Sequence[Exact], kernel: Kernel, bias: Exact, accum: FixedType, order: NDArray[np.int64]
) -> Exact:
    """Return the sums (..., N_out) of bias and weighted inputs in type `accum`, beginning with the bias.

    Args:
        parts: the inputs (..., N_in), cut along the last axis into parts of the same size, type and bounds.
        kernel: weights (N_in, N_out).
        bias: (N_out,).
        accum: the accumulator's type; each product is assigned to it before it is added.
        order: (N_in,) the indices of the inputs in the order in which they are added.
    """
    start = bias.into(accum)
    first = parts[0]
    fraction = first.fraction + kernel.weight.fraction
    low, high = kernel.partial_bounds(first.low, first.high)
    if fraction <= accum.fraction:
        shift = accum.fraction - fraction
        stays = start.low + (low << shift) >= accum.raw_min and start.high + (high << shift) <= accum.raw_max
        if stays or accum.overflow == "WRAP":
            return (kernel.product(parts) + start).into(accum)
    total = start.on(np.broadcast_to(start.raw, (*first.raw.shape[:-1], start.raw.shape[-1])))
    size = first.raw.shape[-1]
    for index in order:
        row = kernel.weight.on(kernel.weight.raw[index])
        if row.raw.any():
            addend = (first.on(parts[index // size].raw[..., index % size, None]) * row).into(accum)
            total = (total + addend).into(accum)
    return total


def _product(x: Array, weight: Array) -> Array:
    """Compute `x @ weight`, in blocks of rows if `x` is a matrix.

    No warning is meant: all numbers are finite integers, but a BLAS also multiplies what lies in the unused
    lanes of its buffers, and sets the processor's flags for it.
    """
    with np.errstate(all="ignore"):
        return _product_of_rows(x, weight) if x.ndim == 2 else np.asarray(np.matmul(x, weight))


def _product_of_rows(x: Array, weight: Array) -> Array:
    rows, inputs = x.shape
    block = max(1, _BLOCK_PRODUCTS // max(1, inputs * weight.shape[1]))
    whole = rows - rows % block
    found = np.empty((rows, weight.shape[1]), x.dtype)
    np.matmul(x[:whole].reshape(-1, block, inputs), weight, out=found[:whole].reshape(-1, block, weight.shape[1]))
    np.matmul(x[whole:], weight, out=found[whole:])
    return found


def summed(addends: Sequence[Exact], accum: FixedType, tree: bool) -> Exact:
    """Sum `addends` in type `accum`: in a balanced tree, as in `nnet::reduce`, if `tree`, else one by one.

    The addends of a tree are assigned to `accum` before they are added; those of a running total are not.
    """
    if tree:
        addends = [addend.into(accum) for addend in addends]
    shifts = [accum.fraction - addend.fraction for addend in addends]
    if min(shifts) >= 0:
        low = sum(min(a.low, 0) << shift for a, shift in zip(addends, shifts, strict=True))
        high = sum(max(a.high, 0) << shift for a, shift in zip(addends, shifts, strict=True))
        if accum.overflow == "WRAP" or (accum.raw_min <= low and high <= accum.raw_max):
            return reduce(Exact.__add__, addends).into(accum)
    if tree:
        return _tree(addends, accum)
    total = Exact.of(np.zeros(1, np.int64), accum)
    for addend in addends:
        total = (total + addend).into(accum)
    return total


def _tree(addends: Sequence[Exact], accum: FixedType) -> Exact:
    if len(addends) == 1:
        return addends[0]
    # The left half of nnet::reduce has the largest power of two addends that is below their number.
    left = 1 << ((len(addends) - 1).bit_length() - 1)
    return (_tree(addends[:left], accum) + _tree(addends[left:], accum)).into(accum)
