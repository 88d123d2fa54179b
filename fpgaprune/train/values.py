"""Reads and checks the values of locked elements that a caller gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from fpgaprune.errors import LockError
from fpgaprune.values import Array, Mask, MaskSet, by_weight_path, near_misses

if TYPE_CHECKING:
    import keras

Values = Literal["zero", "current"] | Mapping[str, ArrayLike]


def held_values(values: Values, masks: MaskSet, weights: Mapping[str, object]) -> dict[str, Array]:
    """Map weight path to an array of the weight's shape and dtype; only its locked elements matter.

    Args:
        values: "zero", "current" (the current values of `weights`), or weight path (or Keras's own path) to an array
            that broadcasts to the weight's shape, one for each path in `masks` that locks an element.
        masks: True = free, False = locked.
        weights: the variables, by weight path.

    Raises:
        LockError: an array is missing, has a wrong shape, or has a locked element that is not a finite number.
    """
    if isinstance(values, str):
        if values not in ("zero", "current"):
            raise LockError(f"values {values!r} is unknown; wanted 'zero', 'current' or weight path to array")
        return {path: _checked(path, _named(values, weights[path]), mask) for path, mask in masks.items()}
    if not isinstance(values, Mapping):
        raise LockError(f"values is a {type(values).__name__}; wanted 'zero', 'current' or weight path to array")
    values = by_weight_path(values, weights)
    for path in values:
        if path not in masks:
            raise LockError(f"values for {path!r} have no mask; {near_misses(path, masks)}")
    held = {}
    for path, mask in masks.items():
        if path not in values and mask.all():
            held[path] = np.zeros_like(read(weights[path]))
            continue
        if path not in values:
            raise LockError(f"values for {path!r} are missing; give an array for each mask, or 'zero' or 'current'")
        held[path] = _checked(path, _given(path, values[path], weights[path]), mask)
    return held


def read(variable: keras.Variable) -> Array:
    """Return a copy of the bits of `variable`, a Keras variable or a tf.Variable."""
    return np.array(variable.numpy())


def _named(values: str, variable: keras.Variable) -> Array:
    current = read(variable)
    return current if values == "current" else np.zeros_like(current)


def _given(path: str, value: ArrayLike, variable: keras.Variable) -> Array:
    current = read(variable)
    try:
        return np.array(np.broadcast_to(np.asarray(value).astype(current.dtype), current.shape))
    except (TypeError, ValueError) as error:
        raise LockError(
            f"values for {path!r} have shape {np.shape(value)}; wanted numbers that broadcast to {current.shape}"
        ) from error


def _checked(path: str, held: Array, mask: Mask) -> Array:
    strange = np.count_nonzero(~np.isfinite(held[~mask].astype(np.float64)))
    if strange:
        raise LockError(
            f"values for {path!r} hold {strange} locked elements at NaN or infinity; "
            "wanted finite numbers: use values='zero' or mend the weights first"
        )
    return held
