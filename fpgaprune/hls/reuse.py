"""Reuse factors: which ones hls4ml's templates compute correctly, layer by layer, and the nearest to one that is not.

hls4ml replaces a factor that it does not allow by another and goes on; here it is refused, so that a design never has
another layout than was asked for.
"""

from __future__ import annotations

import math
from bisect import bisect_left


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


def reuse_problem(n_in: int, n_out: int, strategy: str, wanted: int, also: tuple[int, int] | None = None) -> str | None:
    """Why a layer of this size cannot have reuse factor `wanted`, with the nearest that it can have; None if it can.

    `also` is the size of a second product of the layer, which has the same factor.
    """
    valid = valid_reuse_factors(n_in, n_out, strategy)
    size = f"{n_in} inputs, {n_out} outputs"
    if also is not None:
        both = set(valid_reuse_factors(*also, strategy))
        valid = tuple(factor for factor in valid if factor in both)
        size += f", and {also[0]} inputs of the same outputs"
    if strategy == "latency" or wanted in valid:
        return None
    if not valid:
        return f"{size}: none for strategy {strategy!r}, choose 'latency' for it"
    near = nearest(valid, wanted)
    return f"{size}: {' or '.join(map(str, near))}"


def nearest(valid: tuple[int, ...], wanted: int) -> tuple[int, ...]:
    """The valid factors next below and next above `wanted`."""
    place = bisect_left(valid, wanted)
    return valid[max(place - 1, 0) : place + 1]


def product_size(kernel_shape: tuple[int, ...], depthwise: bool) -> tuple[int, int]:
    """Inputs and outputs per position, as hls4ml counts them, of a layer whose Keras kernel has this shape."""
    if depthwise:
        return math.prod(kernel_shape[:-1]), kernel_shape[-2]
    return math.prod(kernel_shape[:-1]), kernel_shape[-1]
