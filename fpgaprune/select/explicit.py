"""Masks without scores: of the zeros that a model has, and of those that a fixed-point type would make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import DesignError, MaskError
from fpgaprune.fixed import FixedType
from fpgaprune.masks import MaskSet
from fpgaprune.weights import match_paths, named_weights

KERNELS = ("*kernel",)


def from_zeros(model: Any, paths: Sequence[str] = KERNELS) -> MaskSet:
    """Locks exactly the elements of `model` that are zero now, -0.0 included.

    Args:
        model: a Keras model.
        paths: globs of weight paths; every kernel unless given.

    Raises:
        MaskError: a glob matches no weight.
    """
    return MaskSet({path: array != 0 for path, array in _chosen(model, paths).items()})


def from_fixed(model: Any, types: str | FixedType | Mapping[str, str | FixedType]) -> MaskSet:
    """Locks exactly the elements that the fixed-point type would round to zero: the hardware sees no difference.

    An element that overflow would wrap to zero stays free: it is not small.

    Args:
        model: a Keras model.
        types: a type as `fixed<8,1>` for every kernel, or globs of weight paths to types, of which the first that
            matches counts.

    Raises:
        DesignError: a type cannot be read.
        MaskError: a glob matches no weight, or a weight holds NaN.
    """
    by_pattern = types if isinstance(types, Mapping) else {KERNELS[0]: types}
    masks: dict[str, NDArray[np.bool_]] = {}
    for pattern, given in by_pattern.items():
        fixed = FixedType.parse(given) if isinstance(given, str) else given
        for path, array in _chosen(model, [pattern]).items():
            if path not in masks:
                masks[path] = ~_rounds_to_zero(path, array, fixed)
    return MaskSet(masks)


def _rounds_to_zero(path: str, array: NDArray[Any], fixed: FixedType) -> NDArray[np.bool_]:
    small: NDArray[np.bool_] = np.abs(array.astype(np.float64)) < fixed.lsb
    try:
        raw = fixed.to_raw(np.where(small | ~np.isfinite(array), array, 0.0))
    except DesignError as error:
        raise MaskError(f"weight {path!r}: {error}") from error
    rounded: NDArray[np.bool_] = small & (raw == 0)
    return rounded


def _chosen(model: Any, patterns: Sequence[str]) -> dict[str, NDArray[Any]]:
    if isinstance(patterns, str):
        raise MaskError(f"paths is the string {patterns!r}; wanted a sequence of globs, as [{patterns!r}]")
    weights = named_weights(model)
    chosen = [path for pattern in patterns for path in match_paths(pattern, weights)]
    return {path: np.asarray(weights[path].numpy()) for path in dict.fromkeys(chosen)}
