"""Reuse factors: which ones a layer can have, and the nearest to one that it cannot.

A layer of 9 inputs and 4 outputs can use one multiplier 1, 3, 9, 18 or 36 times for each output position. The layers of
one network seldom allow the same factors, and they allow other ones once channels are removed: then the nearest is
taken and said.

Source: hls4ml 1.3.0, `FPGABackend._validate_reuse_factor` and `get_closest_reuse_factor`.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

STRATEGIES = ("latency", "resource", "resource_unrolled", "distributed_arithmetic")


class ReuseWarning(UserWarning):
    """A layer has another reuse factor than the target's."""


def warn_of_moved_reuse(notes: Sequence[str]) -> None:
    """Give a `ReuseWarning` if there are `notes` (`Reuse.note`)."""
    if notes:
        warnings.warn("; ".join(notes), ReuseWarning, stacklevel=3)


def legal_reuse_factors(n_in: int, n_out: int, strategy: str) -> tuple[int, ...]:
    """Return the reuse factors of a layer of `n_in` inputs and `n_out` outputs per position, ascending.

    With `latency` any factor is legal, and the answer is empty. Kernels of one point are no exception: with other
    factors their templates read past the weights.

    Args:
        n_in: inputs of one output, as KH * KW * C_in.
        n_out: outputs.
        strategy: one of `fpgaprune.design.STRATEGIES`.
    """
    if strategy == "latency":
        return ()
    if strategy == "distributed_arithmetic":
        return (1,)
    divisors = [d for d in range(1, n_in + 1) if n_in % d == 0]
    # Beyond the inputs: whole multiples of them that share out the outputs evenly.
    legal = divisors + [n_in * d for d in range(2, n_out + 1) if n_out % d == 0]
    if strategy == "resource_unrolled":
        # 1 is 'resource'; the largest has one multiplier for everything.
        legal = [factor for factor in legal if 1 < factor < n_in * n_out]
    return tuple(legal)


@dataclass(frozen=True)
class Reuse:
    """Which reuse factor a layer has.

    Attributes:
        wanted: the factor that was asked for.
        factor: the factor that it has: `wanted`, or the nearest legal one; None where none is legal.
        near: the legal factors next below and next above `wanted`.
        size: of the layer, in words.
    """

    wanted: int
    factor: int | None
    near: tuple[int, ...]
    size: str

    def note(self, layer: str, strategy: str) -> str | None:
        """Say which factor `layer` has in place of the one asked for; None where it has that one."""
        if self.factor == self.wanted:
            return None
        return (
            f"layer {layer!r} ({self.size}) has reuse factor {self.factor}, the nearest to {self.wanted} that strategy "
            f"{strategy!r} can build"
        )


def settle_reuse(sizes: Sequence[tuple[int, int]], strategy: str, wanted: int) -> Reuse:
    """Settle the reuse factor of a layer whose products, all with the same factor, have `sizes` (inputs, outputs)."""
    size = f"{sizes[0][0]} inputs, {sizes[0][1]} outputs"
    size += "".join(f", and {n_in} inputs of the same outputs" for n_in, _ in sizes[1:])
    if strategy == "latency":
        return Reuse(wanted, wanted, (wanted,), size)
    shared = set.intersection(*(set(legal_reuse_factors(*one, strategy)) for one in sizes))
    legal = tuple(sorted(shared))
    if not legal:
        return Reuse(wanted, None, (), size)
    return Reuse(wanted, nearest_reuse_factor(legal, wanted), neighbours(legal, wanted), size)


def nearest_reuse_factor(legal: Sequence[int], wanted: int) -> int:
    """Return the legal factor nearest to `wanted`, of two equally near the smaller; there is at least one."""
    return min(legal, key=lambda factor: (abs(factor - wanted), factor))


def neighbours(legal: tuple[int, ...], wanted: int) -> tuple[int, ...]:
    """Return the legal factors next below and next above `wanted`."""
    place = bisect_left(legal, wanted)
    return legal[max(place - 1, 0) : place + 1]


def product_size(kernel_shape: tuple[int, ...], depthwise: bool) -> tuple[int, int]:
    """Return the inputs and outputs per position of a layer whose Keras kernel has this shape."""
    if depthwise:
        return math.prod(kernel_shape[:-1]), kernel_shape[-2]
    return math.prod(kernel_shape[:-1]), kernel_shape[-1]
