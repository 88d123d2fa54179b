"""Values that cost few adders, and which weights are held at them next.

A product with a constant takes one adder less than the constant has signed digits. Holding weights at values of few
digits, the largest first, while the others train on, loses less than rounding all of them at once.

Source: Zhou, Yao, Guo, Xu, Chen, "Incremental Network Quantization: Towards Lossless CNNs with Low-Precision
Weights", 2017, section 2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError
from fpgaprune.values import Array, FixedType, HeldValues, MaskSet

FORMS = "digits(1), or digits(n) for values of at most n signed digits"
_CALL = re.compile(r"^digits\(\s*(?P<most>\d{1,9})\s*\)$")
# Values of more digits are nearly all values of a type, and the list of them grows with each digit.
_MOST = 4


@dataclass(frozen=True)
class Digits:
    """Values of at most `most` signed digits: with 1 zero and the powers of two, with 2 also 3, 5, 6, 7 and so on.

    Attributes:
        most: digits of a value.
    """

    most: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.most, int) or isinstance(self.most, bool) or not 1 <= self.most <= _MOST:
            raise MaskError(f"hold asks for values of {self.most!r} signed digits; wanted 1 to {_MOST}")

    def raws(self, kind: FixedType) -> NDArray[np.int64]:
        """Return all such integers that `kind` holds, rising."""
        powers = [1 << shift for shift in range(kind.width + 1)]
        found = {0}
        for _ in range(self.most):
            found |= {value + sign * power for value in found for power in powers for sign in (1, -1)}
        return np.array(sorted(value for value in found if kind.raw_min <= value <= kind.raw_max), dtype=np.int64)

    def nearest(self, weights: Array, kind: FixedType) -> Array:
        """Return the nearest value of so few digits in type `kind` to each weight, in its dtype; of two the smaller."""
        choices = self.raws(kind).astype(np.float64) * kind.lsb
        given = np.asarray(weights, dtype=np.float64)
        above = np.clip(np.searchsorted(choices, given), 1, len(choices) - 1)
        low, high = choices[above - 1], choices[above]
        to_low, to_high = given - low, high - given
        takes_low = (to_low < to_high) | ((to_low == to_high) & (np.abs(low) < np.abs(high)))
        return np.where(takes_low, low, high).astype(np.asarray(weights).dtype)


def parse_hold(text: str | Digits) -> Digits:
    """Return the values that `text` names, as `digits(1)`; a `Digits` is returned as it is.

    Raises:
        MaskError: it names none.
    """
    if isinstance(text, Digits):
        return text
    found = _CALL.match(text)
    if found is None:
        raise MaskError(f"hold is {text!r}; wanted {FORMS}")
    return Digits(int(found["most"]))


def hold_largest(
    weights: Mapping[str, Array],
    masks: MaskSet,
    types: Mapping[str, FixedType],
    share: float,
    cheap: str | Digits = "digits(1)",
    held: HeldValues | None = None,
) -> HeldValues:
    """Hold `share` of the kept weights at their nearest cheap values: those of `held`, and the largest of the others.

    Args:
        weights: weight path to array.
        masks: True = kept, False = locked at zero, which is not counted; a weight without a mask is kept.
        types: weight path to the type of its elements in hardware. Weights that are not named are not held.
        share: of the kept elements of all these weights, 0 to 1.
        cheap: the values, as `digits(1)`.
        held: what is held already; it stays as it is.

    Raises:
        MaskError: `share` is no fraction, or `cheap` names no values.
    """
    if not 0 <= share <= 1:
        raise MaskError(f"share of the weights to hold is {share}; wanted a fraction from 0 to 1")
    values, held = parse_hold(cheap), held or HeldValues()
    kept = {path: masks[path] if path in masks else np.ones(weights[path].shape, bool) for path in types}
    # What is held already comes first, whatever its size.
    sizes = {
        path: np.where(_is_held(held, path, weights[path].shape), np.inf, np.abs(weights[path]).astype(np.float64))
        for path in types
    }
    ranked = np.concatenate([sizes[path][kept[path]] for path in types] or [np.zeros(0)])
    count = round(share * ranked.size)
    order = np.argsort(-ranked, kind="stable")
    chosen = np.zeros(ranked.size, dtype=bool)
    chosen[order[:count]] = True
    chosen |= np.isinf(ranked)
    free, given, start = {}, {}, 0
    for path, kind in types.items():
        here = np.zeros(weights[path].shape, dtype=bool)
        end = start + int(kept[path].sum())
        here[kept[path]] = chosen[start:end]
        start = end
        before = _is_held(held, path, here.shape)
        nearest = values.nearest(weights[path], kind)
        free[path] = ~here
        given[path] = np.where(here, np.where(before, held.values.get(path, nearest), nearest), 0).astype(nearest.dtype)
    return HeldValues(MaskSet(free), given)


def _is_held(held: HeldValues, path: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    return ~held.masks[path] if path in held.masks else np.zeros(shape, dtype=bool)
