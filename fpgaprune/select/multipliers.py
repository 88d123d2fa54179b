"""Which weights take turns on one multiplier in hls4ml's dense and convolution kernels.

Source: hls4ml 1.3.0, `nnet_utils/nnet_dense_resource.h` (multiplier `im` reads weight `ir + reuse_factor * im` in
cycle `ir`, in all three of its loops), the pass `ApplyResourceStrategy` (output channels first), and
`FPGABackend._validate_reuse_factor` and `get_closest_reuse_factor` (which reuse factors a layer allows).
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError


def multiplier_labels(shape: tuple[int, ...], reuse_factor: int) -> NDArray[np.intp]:
    """Number of the multiplier that each weight of `(..., C_in, C_out)` uses; `reuse_factor` divides the size."""
    outputs_first = (shape[-1], *shape[:-1])
    labels = (np.arange(math.prod(shape), dtype=np.intp) // reuse_factor).reshape(outputs_first)
    return np.ascontiguousarray(np.moveaxis(labels, 0, -1))


def used_reuse_factor(
    path: str, shape: tuple[int, ...], strategy: str, asked: int | Mapping[str, int], io_type: str
) -> int:
    """The reuse factor that hls4ml uses for the weight where `asked` is configured.

    Raises:
        MaskError: the strategy does not share multipliers by plan, or no reuse factor is given.
    """
    wanted = _asked(path, asked)
    if strategy == "distributed_arithmetic":
        raise MaskError("strategy 'distributed_arithmetic' has no multipliers to free; use granularity 'weight'")
    if strategy == "latency":
        if wanted == 1:
            return 1
        raise MaskError(
            f"strategy 'latency' with reuse factor {wanted} in {path!r} leaves it to the synthesis tool which weights "
            "share a multiplier; use 'resource' or 'resource_unrolled', or reuse factor 1"
        )
    valid = valid_reuse_factors(math.prod(shape[:-1]), shape[-1])
    # hls4ml writes unrolled code for streams and for Dense layers, and not for the whole product on one multiplier.
    unrolled = strategy == "resource_unrolled" and wanted > 1 and (io_type == "io_stream" or len(shape) == 2)
    if unrolled and len(valid) > 1:
        valid = valid[:-1]
    return min(valid, key=lambda factor: (abs(factor - wanted), factor))


def valid_reuse_factors(n_in: int, n_out: int) -> list[int]:
    """The reuse factors that a product of `n_in` by `n_out` weights allows, ascending."""
    size = n_in * n_out
    low = [factor for factor in range(1, math.isqrt(size) + 1) if size % factor == 0]
    return [factor for factor in sorted({*low, *(size // factor for factor in low)}) if _is_valid(n_in, n_out, factor)]


def _is_valid(n_in: int, n_out: int, factor: int) -> bool:
    if factor < n_in:
        return -(-n_in * n_out // factor) % n_out == 0
    return factor % n_in == 0


def _asked(path: str, asked: int | Mapping[str, int]) -> int:
    if isinstance(asked, Mapping):
        found = next((factor for pattern, factor in asked.items() if fnmatch.fnmatchcase(path, pattern)), None)
        if found is None:
            raise MaskError(f"no reuse factor is given for {path!r}; add a pattern that matches it, such as '*'")
        asked = found
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        raise MaskError(f"reuse factor for {path!r} is {asked!r}; wanted a whole number of 1 or more")
    return asked
