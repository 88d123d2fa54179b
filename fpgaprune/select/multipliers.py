"""Which weights share one multiplier in hls4ml's dense and convolution layers.

Source: hls4ml 1.3.0, `nnet_utils/nnet_dense_resource.h` (multiplier `im` reads weight `ir + reuse_factor * im` in
cycle `ir`, in all three of its loops), and the pass `ApplyResourceStrategy` (output channels first).
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import product_size, settle_reuse, warn_of_moved_reuse
from fpgaprune.errors import MaskError


def multiplier_labels(shape: tuple[int, ...], reuse_factor: int) -> NDArray[np.intp]:
    """Return the number of the multiplier of each weight `(..., C_in, C_out)`; `reuse_factor` divides the size."""
    outputs_first = (shape[-1], *shape[:-1])
    labels = (np.arange(math.prod(shape), dtype=np.intp) // reuse_factor).reshape(outputs_first)
    return np.ascontiguousarray(np.moveaxis(labels, 0, -1))


def check_sharing(strategy: str, reuse_factor: int | Mapping[str, int]) -> None:
    """Require that `strategy` can fix which weights share a multiplier.

    Raises:
        MaskError: it cannot in any layer.
    """
    if strategy == "distributed_arithmetic":
        raise MaskError("strategy 'distributed_arithmetic' has no multipliers to free; use granularity 'weight'")
    if strategy == "latency" and isinstance(reuse_factor, int) and reuse_factor > 1:
        raise _unplanned(reuse_factor)


def used_reuse_factor(
    path: str, shape: tuple[int, ...], strategy: str, asked: int | Mapping[str, int], io_type: str
) -> int:
    """Return the reuse factor of the weight in a project that asks for `asked`: the nearest legal one.

    Warns:
        ReuseWarning: it is not the asked one.

    Raises:
        MaskError: it is not fixed which weights share a multiplier, or no reuse factor is given or legal.
    """
    wanted = _asked(path, asked)
    if strategy == "latency" and wanted > 1:
        raise _unplanned(wanted)
    if strategy == "resource_unrolled" and io_type == "io_parallel" and len(shape) > 2:
        raise MaskError(
            f"weight {path!r} is of a convolution, for which strategy 'resource_unrolled' has no template in "
            "io_parallel: choose io_stream, or strategy 'resource'"
        )
    reuse = settle_reuse([product_size(shape, depthwise=False)], strategy, wanted)
    if reuse.factor is None:
        raise MaskError(
            f"weight {path!r} ({reuse.size}) can have no reuse factor with strategy {strategy!r}: name the other "
            "weights with 'paths'"
        )
    note = reuse.note(path.rpartition("/")[0], strategy)
    warn_of_moved_reuse([note] if note is not None else [])
    return reuse.factor


def _unplanned(reuse_factor: int) -> MaskError:
    return MaskError(
        f"strategy 'latency' with reuse factor {reuse_factor} leaves it to the synthesis tool which weights share a "
        "multiplier; use 'resource' or 'resource_unrolled', or reuse factor 1"
    )


def _asked(path: str, asked: int | Mapping[str, int]) -> int:
    if isinstance(asked, Mapping):
        found = next((factor for pattern, factor in asked.items() if fnmatch.fnmatchcase(path, pattern)), None)
        if found is None:
            raise MaskError(f"no reuse factor is given for {path!r}; add a pattern that matches it, such as '*'")
        asked = found
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 1:
        raise MaskError(f"reuse factor for {path!r} is {asked!r}; wanted a whole number of 1 or more")
    return asked
