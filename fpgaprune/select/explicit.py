"""Masks without scores: of a model's zeros, and of the elements that a fixed-point type rounds to zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import DesignError, MaskError
from fpgaprune.network import require_whole
from fpgaprune.values import Array, FixedType, MaskSet, match_paths, named_weights

if TYPE_CHECKING:
    import keras

KERNELS = ("*kernel",)


def from_zeros(model: keras.Model, paths: Sequence[str] = KERNELS) -> MaskSet:
    """Return masks that lock exactly the elements of `model` that are zero now, including -0.0.

    Args:
        model: a Keras model.
        paths: globs of weight paths; the default is every kernel.

    Raises:
        MaskError: a glob matches no weight, or LoRA or Keras's `quantize` has split its layer's kernel.

    Examples:
        >>> _ = model.get_layer("conv1").kernel.assign(model.get_layer("conv1").kernel * [1, 0, 1, 1])
        >>> fp.from_zeros(model).locked_count
        9
    """
    return MaskSet({path: array != 0 for path, array in _chosen(model, paths).items()})


def from_fixed(model: keras.Model, types: str | FixedType | Mapping[str, str | FixedType]) -> MaskSet:
    """Return masks that lock exactly the elements that the type rounds to zero, so that no weight in it changes.

    The hardware stays the same where it holds the weights in that type, and no BatchNorm is folded into them. An
    element that overflow wraps to zero stays free, because it is not small.

    Args:
        model: a Keras model.
        types: a type as `fixed<8,1>` for every kernel, or globs of weight paths to types, of which the first match
            counts.

    Raises:
        DesignError: a type cannot be read.
        MaskError: a glob matches no weight, a weight holds NaN, or its layer's kernel is split as by LoRA.
    """
    by_pattern = types if isinstance(types, Mapping) else {KERNELS[0]: types}
    masks: dict[str, NDArray[np.bool_]] = {}
    for pattern, given in by_pattern.items():
        fixed = FixedType.parse(given) if isinstance(given, str) else given
        for path, array in _chosen(model, [pattern]).items():
            if path not in masks:
                masks[path] = ~_rounds_to_zero(path, array, fixed)
    return MaskSet(masks)


def _rounds_to_zero(path: str, array: Array, fixed: FixedType) -> NDArray[np.bool_]:
    small: NDArray[np.bool_] = np.abs(array.astype(np.float64)) < fixed.lsb
    try:
        raw = fixed.to_raw(np.where(small | ~np.isfinite(array), array, 0.0))
    except DesignError as error:
        raise MaskError(f"weight {path!r}: {error}") from error
    rounded: NDArray[np.bool_] = small & (raw == 0)
    return rounded


def _chosen(model: keras.Model, patterns: Sequence[str]) -> dict[str, Array]:
    if isinstance(patterns, str):
        raise MaskError(f"paths is the string {patterns!r}; wanted a sequence of globs, as [{patterns!r}]")
    weights = named_weights(model)
    chosen = [path for pattern in patterns for path in match_paths(pattern, weights)]
    require_whole(model, chosen, MaskError)
    return {path: np.asarray(weights[path].numpy()) for path in dict.fromkeys(chosen)}
