"""Reuse factors: which ones hls4ml's templates compute correctly, layer by layer, and the nearest to one that is not.

hls4ml replaces a factor that it does not allow by another and goes on without a word. Here the nearest is taken and
said: the layers of one network seldom allow the same ones, and other ones when channels are removed. A factor that was
asked for by the layer's own name is refused instead.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass


class ReuseWarning(UserWarning):
    """A layer has another reuse factor than the target's."""


def warn_of_moved_reuse(notes: tuple[str, ...]) -> None:
    """A `ReuseWarning` was given where there are `notes`."""
    if notes:
        warnings.warn("; ".join(notes), ReuseWarning, stacklevel=3)


def valid_reuse_factors(n_in: int, n_out: int, strategy: str) -> tuple[int, ...]:
    """The reuse factors of a layer of `n_in` inputs and `n_out` outputs per position; empty where any is allowed.

    For `resource` and `resource_unrolled` these are the conditions of hls4ml 1.3.0 (its `_validate_reuse_factor`). It
    does not check them for kernels of one point, whose templates then read past the weights.

    Args:
        n_in: inputs of one output, as KH * KW * C_in.
        n_out: outputs.
        strategy: one of `design.STRATEGIES`.
    """
    if strategy == "latency":
        return ()
    if strategy == "distributed_arithmetic":
        return (1,)
    divisors = [d for d in range(1, n_in + 1) if n_in % d == 0]
    # Beyond the inputs: whole multiples of them that share out the outputs evenly.
    valid = divisors + [n_in * d for d in range(2, n_out + 1) if n_out % d == 0]
    if strategy == "resource_unrolled":
        # With 1 hls4ml turns to 'resource'; the largest has one multiplier for everything.
        valid = [factor for factor in valid if 1 < factor < n_in * n_out]
    return tuple(valid)


@dataclass(frozen=True)
class Reuse:
    """Which reuse factor a layer has.

    Attributes:
        wanted: that was asked for.
        factor: that it has: `wanted`, or the nearest possible, of two equally near the smaller; None where it can have
            none.
        near: the possible ones next below and next above `wanted`.
        size: of the layer, in words.
    """

    wanted: int
    factor: int | None
    near: tuple[int, ...]
    size: str


def settle_reuse(sizes: Sequence[tuple[int, int]], strategy: str, wanted: int) -> Reuse:
    """The reuse factor of a layer whose products have `sizes`, inputs and outputs of each; all have the same."""
    size = f"{sizes[0][0]} inputs, {sizes[0][1]} outputs"
    size += "".join(f", and {n_in} inputs of the same outputs" for n_in, _ in sizes[1:])
    if strategy == "latency":
        return Reuse(wanted, wanted, (wanted,), size)
    shared = set.intersection(*(set(valid_reuse_factors(*one, strategy)) for one in sizes))
    valid = tuple(sorted(shared))
    if not valid:
        return Reuse(wanted, None, (), size)
    factor = min(valid, key=lambda one: (abs(one - wanted), one))
    return Reuse(wanted, factor, nearest(valid, wanted), size)


def nearest(valid: tuple[int, ...], wanted: int) -> tuple[int, ...]:
    """The valid factors next below and next above `wanted`."""
    place = bisect_left(valid, wanted)
    return valid[max(place - 1, 0) : place + 1]


def product_size(kernel_shape: tuple[int, ...], depthwise: bool) -> tuple[int, int]:
    """Inputs and outputs per position, as hls4ml counts them, of a layer whose Keras kernel has this shape."""
    if depthwise:
        return math.prod(kernel_shape[:-1]), kernel_shape[-2]
    return math.prod(kernel_shape[:-1]), kernel_shape[-1]
