"""`UnitPrices`: about how many look-up tables each unit of a chain takes, and how many a change saves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fpgaprune.trim.chain import Chain, ChannelTypes
from fpgaprune.values import signed_digits

# Of a raw weight, at most: those of float32.
_RAW_BITS = 24


@dataclass(frozen=True)
class Fabric:
    """What look-up tables of an FPGA do.

    Attributes:
        operands: of an adder that takes one table a bit: 2 or 3.
        inputs: of a table.
    """

    operands: int = 2
    inputs: int = 4


class UnitPrices:
    """The look-up tables of each unit, its adders and what follows them; what several units share is counted twice.

    Args:
        chain: of the units.
        fabric: what its tables do.
        arriving: types of the input as it arrives.
    """

    def __init__(self, chain: Chain, fabric: Fabric, arriving: ChannelTypes) -> None:
        self.chain, self.fabric, self.arriving = chain, fabric, arriving
        sizes = [len(arriving.width), *(kernel.shape[1] for kernel in chain.kernels)]
        units = [(number - 1, at) for number, size in enumerate(sizes) for at in range(size)]
        self._units = {unit: self._unit(chain, *unit) for unit in units}
        self.total = sum(self._units.values())

    def after(self, changed: Chain) -> float:
        """Return the total for `changed`, a chain of the same layers."""
        return self.total + sum(self._unit(changed, *unit) - self._units[unit] for unit in self._differing(changed))

    def _differing(self, changed: Chain) -> set[tuple[int, int]]:
        """Return layer, -1 for the input, and column of each unit with other weights or types than before."""
        found: set[tuple[int, int]] = set()
        for number, (was, now) in enumerate(zip(self.chain.kernels, changed.kernels, strict=True)):
            if was is not now:
                found.update((number, column) for column in np.flatnonzero((was != now).any(axis=0)).tolist())
            before, types = self.chain.types[number], changed.types[number]
            if before is types:
                continue
            for row in np.flatnonzero((before.width != types.width) | (before.integer != types.integer)).tolist():
                found.add((number - 1, row))
                found.update((number, column) for column in np.flatnonzero(now[row]).tolist())
        return found

    def _unit(self, chain: Chain, number: int, column: int) -> float:
        """Count the tables of a unit: none for a constant, or where nothing reads it."""
        if number < 0:
            # Bits that are cut off are wires; where a channel saturates, each of its bits is a table.
            types = chain.types[0]
            return float(types.width[column]) if types.integer[column] < self.arriving.integer[column] else 0.0
        kernel, types = chain.kernels[number], chain.types[number]
        last = number + 1 == len(chain)
        rows = np.flatnonzero(kernel[:, column])
        if not rows.size or not (last or chain.types[number + 1].width[column]):
            return 0.0
        terms = sorted(
            term for row in rows for term in _terms(float(kernel[row, column]), types.width[row], types.integer[row])
        )
        low, high = terms[0]
        adders = 0.0
        for one_low, one_high in terms[1:]:
            top = max(high, one_high) + 1
            # The bits of one operand below the other are wires.
            adders += top - max(low, one_low)
            low, high = min(low, one_low), top
        count = len(terms) - 1
        merged = count % (self.fabric.operands - 1)
        if self.fabric.operands > 2 and count:
            adders *= math.ceil(count / (self.fabric.operands - 1)) / count
        # All that it reads may fit into one table for each bit that it gives.
        small = int(types.width[rows].sum()) <= self.fabric.inputs
        if last:
            whole = adders + (0 if merged else high - low)
            return min(whole, high - low) if small else whole
        out = chain.types[number + 1]
        width, point = int(out.width[column]), int(out.integer[column] - out.width[column])
        kept = high - max(low, point - 1)
        # Bias, rounding, ReLU and saturation: a table of the sum where it has few bits.
        finished = (0 if merged else max(kept, 0)) + max(high - int(out.integer[column]), 0) / 2 + 1
        if high - low <= self.fabric.inputs:
            finished = min(finished, width)
        return min(adders + finished, width) if small else adders + finished


def _terms(weight: float, width: int, integer: int) -> Iterator[tuple[int, int]]:
    """Yield the lowest bit of each shifted copy of a channel that a product adds up, and the bit above its highest."""
    for shift in _shifts(weight):
        yield int(integer - width) + shift, int(integer) + shift


@lru_cache(maxsize=4096)
def _shifts(weight: float) -> tuple[int, ...]:
    mantissa, exponent = math.frexp(abs(weight))
    raw = int(math.ldexp(mantissa, _RAW_BITS))
    return tuple(place + exponent - _RAW_BITS for place, _ in signed_digits(raw))
