"""`Grid`: what a quantiser of QONNX makes of a computed tensor, as scales around fixed-point types."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.frontends.onnx.qonnx import are_powers, checked_scale, steps_type
from fpgaprune.values import Array, FixedType

Floats = NDArray[np.float32]
_ZERO = np.zeros(1, np.float32)
_ONE = np.ones(1, np.float32)
# -1 below zero, and 0 from zero on.
_SIGN = FixedType(1, 1, True, "TRN", "SAT")
# Bits that a sum before `Trunc` may have beyond those that `Trunc` says.
_SPARE = 2
_LARGEST = 2.0**40


@dataclass(frozen=True)
class Grid:
    """`(whole * gain + lift) * scale`, where `whole` is `x / divisor + zero` in one type after another.

    Attributes:
        divisor: what x is divided by.
        zero: what is added to that.
        kinds: the types.
        gain: what the rounded number is multiplied by.
        lift: what is added to that.
        scale: what that is multiplied by.
    """

    divisor: Floats
    zero: Floats
    kinds: tuple[FixedType, ...]
    gain: float
    lift: Floats
    scale: Floats

    @property
    def factor(self) -> Floats:
        """What the rounded number is multiplied by in the end."""
        return np.float32(self.gain) * self.scale

    @property
    def offset(self) -> Floats:
        """Constant that is added to the scaled product."""
        return self.lift * self.scale

    def whole(self, x: Array) -> NDArray[np.float64]:
        """Return what the types leave of `x`."""
        with np.errstate(all="ignore"):
            found = np.clip(np.nan_to_num(x / self.divisor + self.zero), -_LARGEST, _LARGEST).astype(np.float64)
        for kind in self.kinds:
            found = kind.to_float(kind.to_raw(found))
        return found

    def whole_of(self, y: Array) -> NDArray[np.float64]:
        """Return the rounded numbers of which the quantiser makes `y`."""
        places = 2.0 ** self.kinds[-1].fraction
        return np.rint((y.astype(np.float64) / self.scale - self.lift) / self.gain * places) / places

    def along(self, shape: Sequence[int]) -> Grid:
        """Reshape every constant of several numbers to `shape`, so that the numbers lie along one axis."""
        parts = {name: getattr(self, name) for name in ("divisor", "zero", "lift", "scale")}
        return replace(self, **{name: one.reshape(shape if one.size > 1 else (1,)) for name, one in parts.items()})

    def in_one_type(self) -> Grid:
        """Express the grid by its type alone, if its scale is a power of two; else return it unchanged."""
        plain = not self.zero.any() and not self.lift.any() and are_powers(self.scale)
        if not plain or len(self.kinds) != 1 or self.divisor.size != 1 or self.gain != 1:
            return self
        power = int(math.log2(float(self.divisor.ravel()[0])))
        kind = replace(self.kinds[0], integer=self.kinds[0].integer + power)
        return Grid(_ONE, _ZERO, (kind,), 1.0, _ZERO, _ONE)


def grid_of(operator: str, given: Sequence[Array], settings: Mapping[str, object]) -> Grid:
    """Return what the quantiser `operator` does, whose inputs besides the tensor are `given`.

    Raises:
        ValueError: it has too few inputs, a scale that is not above zero, or rounds as no fixed-point type does.
    """
    if len(given) not in {"BipolarQuant": (1,), "Trunc": (4, 5)}.get(operator, (3,)):
        raise ValueError(f"has {len(given)} inputs besides the tensor, which are too few or too many")
    scale = checked_scale(given[0])
    if operator == "BipolarQuant":
        return Grid(_ONE, _ZERO, (_SIGN,), 2.0, _ONE, scale)
    zero, bits = given[1].astype(np.float32), given[2]
    if not np.isfinite(zero).all():
        raise ValueError("has a zero point that is no number")
    if operator == "Trunc":
        return _cut(scale, zero, bits, given[3:], settings)
    if settings.get("signed", 1) and bits.size == 1 and bits.ravel()[0] == 1:
        return Grid(scale, zero, (_SIGN,), 2.0, 1 - zero, scale)
    kind = steps_type(bits, settings)
    return Grid(scale, zero, (kind,), 1.0, -zero, scale).in_one_type()


def _cut(scale: Floats, zero: Floats, bits: Array, given: Sequence[Array], settings: Mapping[str, object]) -> Grid:
    """Compute `Trunc`: whole numbers lose their last bits."""
    before = replace(steps_type(bits + _SPARE, {}), rounding="RND_CONV")
    if len(given) == 1:
        cut = float(bits.ravel()[0]) - float(given[0].ravel()[0])
        after = steps_type(given[0] + _SPARE, {"rounding_mode": settings.get("rounding_mode", "FLOOR")})
        out, lift = scale, -zero
    else:
        out = checked_scale(given[0])
        cuts = np.round(np.log2(out / scale))
        cut = float(cuts.ravel()[0])
        if (cuts != cut).any():
            raise ValueError("cuts another number of bits off each channel; wanted one number")
        after = steps_type(given[1], settings, "FLOOR")
        lift = -zero / np.float32(2.0**cut)
    if cut != int(cut) or not 0 <= cut <= 32:
        raise ValueError(f"cuts {cut:g} bits off; wanted 0 to 32")
    after = replace(after, integer=after.integer + int(cut))
    return Grid(scale, zero, (before, after), 2.0**-cut, lift, out)
