"""`Products`: how many multiplications of which kind a set of raw integer weights needs.

What a multiplication by a constant costs depends on the digits of the constant: nothing for zero, wires for one digit
(a power of two), one adder for two digits, and a DSP slice or a multiplier in look-up tables for three or more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fpgaprune.values import count_digits

# A constant of so many bits, its sign included, takes a DSP slice whatever the width of the input.
WIDE_BITS = 11
# The constants that pruning leaves stand almost evenly: each is the first of its input, and of its output, so often.
_EVENNESS = 0.9


@dataclass(frozen=True, slots=True)
class Products:
    """Multiplications of one layer for each output position, by the kind of their constant.

    Attributes:
        total: all multiplications, those by zero included.
        zero: multiplications by zero.
        power_of_two: multiplications by plus or minus 2**k.
        few: multiplications by a constant of two signed digits.
        many: multiplications by a constant of three signed digits or more.
        distinct_few: as `few`, but equal constants on the same input count once.
        distinct_many: as `many`, but equal constants on the same input count once.
        distinct_wide: those of `distinct_many` with `WIDE_BITS` bits or more.
        constant_bits: bits of the largest constant, sign included.
        magnitude_bits: bits of all constants without their signs, added up.
        live_inputs: inputs with a constant other than zero.
        live_outputs: outputs with a constant other than zero.
    """

    total: int
    zero: int
    power_of_two: int
    few: int
    many: int
    distinct_few: float
    distinct_many: float
    distinct_wide: float
    constant_bits: int
    magnitude_bits: float
    live_inputs: float
    live_outputs: float

    @property
    def nonzero(self) -> int:
        """Multiplications that take hardware."""
        return self.total - self.zero


def count_products(raw: NDArray[np.int64]) -> Products:
    """Count the multiplications by `raw`, (products of an output, outputs); a row holds the constants of one input."""
    matrix = np.asarray(raw, dtype=np.int64).reshape(-1, raw.shape[-1] if raw.ndim else 1)
    return _count(matrix.tobytes(), matrix.shape)


# Advice prices one design in many layouts, with the same weights each time.
@lru_cache(maxsize=64)
def _count(content: bytes, shape: tuple[int, ...]) -> Products:
    matrix = np.frombuffer(content, dtype=np.int64).reshape(shape)
    digits = count_digits(matrix)
    bits = np.frexp(np.abs(matrix).astype(np.float64))[1]
    kinds = np.bincount(np.minimum(digits, 3).ravel(), minlength=4)
    largest = int(np.abs(matrix).max(initial=0))
    return Products(
        total=int(matrix.size),
        zero=int(kinds[0]),
        power_of_two=int(kinds[1]),
        few=int(kinds[2]),
        many=int(kinds[3]),
        distinct_few=_distinct(matrix, digits == 2),
        distinct_many=_distinct(matrix, digits >= 3),
        distinct_wide=_distinct(matrix, (digits >= 3) & (bits >= WIDE_BITS - 1)),
        constant_bits=largest.bit_length() + 1,
        magnitude_bits=float(bits.sum()),
        live_inputs=int(np.count_nonzero(matrix.any(axis=1))),
        live_outputs=int(np.count_nonzero(matrix.any(axis=0))),
    )


def joined(one: Products, other: Products) -> Products:
    """Return the multiplications of `one` and `other` together; they share no multiplier."""
    sums = {f.name: getattr(one, f.name) + getattr(other, f.name) for f in fields(Products)}
    return Products(**{**sums, "constant_bits": max(one.constant_bits, other.constant_bits)})


def scaled(products: Products, factor: float) -> Products:
    """Scale the multiplications by constants other than zero; the rest of the total is multiplied by zero."""
    power, few, many = (round(kind * factor) for kind in (products.power_of_two, products.few, products.many))
    return replace(
        products,
        zero=max(products.total - power - few - many, 0),
        power_of_two=power,
        few=few,
        many=many,
        distinct_few=products.distinct_few * factor,
        distinct_many=products.distinct_many * factor,
        distinct_wide=products.distinct_wide * factor,
        magnitude_bits=products.magnitude_bits * factor,
    )


def multiplier_blocks(weight: NDArray[np.int64], reuse: int) -> NDArray[np.int64] | None:
    """Return each multiplier's weights (multipliers, reuse), consecutive ones of an output; None if uneven."""
    if weight.size % reuse:
        return None
    return np.ascontiguousarray(weight.reshape(-1, weight.shape[-1]).T).reshape(-1, reuse)


def expect_products(
    total: int, zero: int, power_of_two: int, many: int, inputs: int, constant_bits: int, mean_bits: float
) -> Products:
    """Return the multiplications of a layer of which only counts are known; the shared ones are an expected number."""
    few = max(total - zero - power_of_two - many, 0)
    two, three = _values_of(few, many)
    distinct = _expected_distinct(few, inputs, two), _expected_distinct(many, inputs, three)
    nonzero = total - zero
    share = _wide_share(mean_bits) * nonzero / many if many and constant_bits >= WIDE_BITS else 0.0
    wide = distinct[1] * min(share, 1.0)
    outputs = total / max(inputs, 1)
    live = min(inputs, _EVENNESS * nonzero), min(outputs, _EVENNESS * nonzero)
    return Products(total, zero, power_of_two, few, many, *distinct, wide, constant_bits, mean_bits * nonzero, *live)


def scattered(products: Products, inputs: int) -> Products:
    """Return `products` if its non-zero constants stand at random, so that more inputs and outputs have none."""
    outputs = products.total / max(inputs, 1)
    none = products.zero / products.total if products.total else 0.0
    return replace(products, live_inputs=inputs * (1 - none**outputs), live_outputs=outputs * (1 - none**inputs))


def _wide_share(mean_bits: float) -> float:
    """Return the share of constants of `WIDE_BITS` bits or more in a normal distribution with this mean width."""
    # The mean of log2 of the magnitude is 0.916 below log2 of the deviation; a number has half a bit more on average.
    deviation = 2.0 ** (mean_bits + 0.416)
    return math.erfc(2.0 ** (WIDE_BITS - 2) / deviation / math.sqrt(2))


def _distinct(matrix: NDArray[np.int64], chosen: NDArray[np.bool_]) -> float:
    """Count the different values among the chosen elements of each row, summed over rows."""
    rows, columns = np.nonzero(chosen)
    if not rows.size:
        return 0.0
    values = matrix[rows, columns]
    order = np.lexsort((values, rows))
    rows, values = rows[order], values[order]
    new = (rows[1:] != rows[:-1]) | (values[1:] != values[:-1])
    return float(1 + np.count_nonzero(new))


def _expected_distinct(count: float, inputs: int, values: float) -> float:
    """Return how many different values to expect if each of `inputs` rows draws its part of `count` from `values`."""
    if count <= 0 or inputs <= 0:
        return 0.0
    per_input = count / inputs
    # With at most one constant for each input there is nothing to share.
    return float(min(count, inputs * values * -np.expm1(-per_input / values)) if per_input > 1 else count)


def _spread() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    shares, two, three = [], [], []
    for bits in range(3, 14):
        digits = count_digits(np.arange(1, 1 << bits))
        n_two, n_three = int(np.count_nonzero(digits == 2)), int(np.count_nonzero(digits >= 3))
        shares.append(n_three / max(n_two + n_three, 1))
        two.append(2.0 * n_two)
        three.append(max(2.0 * n_three, 1.0))
    return np.asarray(shares), np.asarray(two), np.asarray(three)


_SHARES, _TWO, _THREE = _spread()


def _values_of(few: float, many: float) -> tuple[float, float]:
    """Return the numbers of different constants of two digits, and of three or more, that a layer draws from.

    The wider the constants, the more of them need three digits; all constants up to 2**bits give the relation.
    """
    share = many / (few + many) if few + many > 0 else 0.0
    two = float(np.exp(np.interp(share, _SHARES, np.log(_TWO))))
    three = float(np.exp(np.interp(share, _SHARES, np.log(_THREE))))
    return two, three
