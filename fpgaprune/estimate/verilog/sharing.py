"""`DigitCounter`: adders counted from digits: those of trees without sharing, times what sharing leaves of them.

How much is left follows from three numbers: the share of pairs of digits that occur again, how often they do, and
how many digits a sum has. The law was fitted to the adders that `fpgaprune.rtl` makes for random matrices.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Design, VerilogLayout
from fpgaprune.estimate.verilog.plain_trees import PlainTrees, widths
from fpgaprune.estimate.verilog.signed_pairs import SignedDigits
from fpgaprune.files import hardware_path
from fpgaprune.rtl import Counted, SerialTrees, Stream, Trees, operands_of

Ints = NDArray[np.int64]


@cache
def _laws() -> dict[str, list[float]]:
    text = hardware_path("calibration", "verilog.toml").read_text(encoding="utf-8")
    laws: dict[str, list[float]] = tomllib.loads(text)["sharing"]
    return laws


def sharing_terms(repeated: float, again: float, digits: float, width: float) -> Ints:
    """Return the terms of every law: a polynomial of degree two in four logarithms.

    Args:
        repeated: share of the pairs of digits that occur again.
        again: how often a pair occurs again, on average.
        digits: of the column that a digit stands in, on average.
        width: of the inputs in bits.
    """
    logs = np.array([1.0, np.log(repeated + 1e-3), np.log1p(again), np.log(max(digits, 1.0)), np.log(width)])
    found: Ints = np.outer(logs, logs)[np.tril_indices(logs.size)]
    return found


@dataclass(frozen=True)
class Counting:
    """Counts of the adders that multiply by one matrix.

    Attributes:
        plain: those of trees without sharing.
        terms: as `sharing_terms`.
        used: for each input, whether it has a weight.
        by_column: digits of each sum.
    """

    plain: PlainTrees
    terms: Ints
    used: tuple[bool, ...]
    by_column: Ints

    @classmethod
    def of(cls, matrix: Ints, low: Ints, high: Ints) -> Counting:
        """Count for inputs between `low` and `high`, with one bound for each input."""
        # A search for a layout asks for the same few matrices again and again.
        return _counted(matrix.shape, *(np.ascontiguousarray(part, np.int64).tobytes() for part in (matrix, low, high)))

    def left(self, law: str) -> float:
        """Return the share of a quantity that sharing leaves."""
        if self.plain.adders < 2:
            return 1.0
        return float(np.exp(np.clip(self.terms @ np.array(_laws()[law]), -2.5, 0.35)))

    @property
    def depth_of_three(self) -> int:
        """Adders of up to three operands that the longest sum passes: pairs that are shared stay adders of two."""
        most, levels = int(self.by_column.max(initial=1)), 0
        while 3**levels < most:
            levels += 1
        return (self.plain.depth + levels) // 2

    def exits(self, stages: float = 0.0) -> tuple[Counted | None, ...]:
        """Return each sum; None for one without a weight. One that is done early waits `stages` for each adder."""
        plain = self.plain
        ends = (plain.low, plain.high, plain.exponent, plain.early * stages)
        rows = zip(self.by_column, *(end.tolist() for end in ends), strict=True)
        return tuple(Counted(*of) if count else None for count, *of in rows)


@lru_cache(maxsize=64)
def _counted(shape: tuple[int, int], *raw: bytes) -> Counting:
    """Compute `Counting.of` for a matrix of `shape`; it and the bounds are raw int64."""
    matrix, low, high = (np.frombuffer(part, np.int64) for part in raw)
    digits = SignedDigits.of(matrix.reshape(shape))
    width = int(widths(low, high).max(initial=1)) - int(low.min(initial=0) >= 0)
    counts = digits.by_column
    mean = float((counts * counts).sum() / max(counts.sum(), 1))
    return Counting(
        PlainTrees.of(digits, low, high),
        sharing_terms(*digits.repeated(), mean, max(width, 1)),
        tuple((np.bincount(digits.row, minlength=digits.inputs) > 0).tolist()),
        counts,
    )


@dataclass(frozen=True)
class DigitCounter:
    """Counts the adders of weighted sums; see `fpgaprune.rtl.Counter`.

    Attributes:
        levels: adder levels between two registers.
        operands: of an adder, at most: 2 or 3.
    """

    levels: int = 1
    operands: int = 2

    @classmethod
    def of(cls, design: Design, layout: VerilogLayout) -> DigitCounter:
        """Return the counter for the adders that a design gets in a layout."""
        return cls(layout.levels, operands_of(design, layout))

    def trees(self, matrix: Ints, stream: Stream) -> Trees:
        """Count the adders that multiply each beat of `stream` by `matrix` (inputs, outputs) in one pipeline."""
        counting = Counting.of(*_unshifted(matrix, stream))
        plain, left = counting.plain, counting.left("adders")
        chain = plain.chain_bits * counting.left("chain_bits")
        three = self.operands == 3
        stages = counting.left("three_register_bits" if three else "register_bits") / self.levels
        pair = min(plain.pair_bits * counting.left("pair_bits"), chain)
        found = Trees(
            before=stream.bits,
            used=counting.used,
            exits=counting.exits(stages),
            depth=-(-(counting.depth_of_three if three else plain.depth) // self.levels),
            adders=plain.adders * left,
            chain_bits=chain,
            pair_bits=pair,
            lone_bits=plain.lone_bits * (chain - pair) / max(plain.chain_bits - plain.pair_bits, 1),
            differences=plain.differences * left,
            register_bits=plain.register_bits * stages,
        )
        if not three:
            return found
        # Every bit of such an adder is one LUT; a family with small LUTs adds two operands and then the third.
        bits = plain.chain_bits * counting.left("three_bits")
        return replace(found, pair_bits=bits, lone_bits=0.0, differences=0.0)

    def serial(self, matrix: Ints, lane: tuple[int, bool, int, int], wanted: int | None) -> SerialTrees:
        """Count the adders that multiply bit by bit; arguments as for `SerialSums.of`."""
        width, _, low, high = lane
        lows, highs = (np.full(len(matrix), bound, np.int64) for bound in (low, high))
        counting = Counting.of(matrix, lows, highs)
        plain, exits = counting.plain, counting.exits()
        have = widths(plain.low, plain.high)
        if wanted is not None:
            have = np.minimum(have, wanted - plain.exponent)
        adders = plain.adders * counting.left("adders")
        return SerialTrees(
            before=len(matrix) * width,
            used=counting.used,
            exits=exits,
            bits=int(have[counting.by_column > 0].max(initial=1)),
            depth=plain.depth,
            count=adders,
            width=width,
            kept_bits=adders * counting.left("kept_bits"),
            parallel_bits=plain.width_bits * counting.left("width_bits"),
        )


def _unshifted(matrix: Ints, stream: Stream) -> tuple[Ints, Ints, Ints]:
    """Return the matrix and the bounds of its inputs without the lowest bits that are always zero."""
    lanes = stream.each if stream.each is not None and len(stream.each) == len(matrix) else None
    if lanes is None:
        return matrix, np.full(len(matrix), stream.low, np.int64), np.full(len(matrix), stream.high, np.int64)
    zeros = np.array([lane.zeros for lane in lanes])
    low, high = (np.array([getattr(lane, end) for lane in lanes]) >> zeros for end in ("low", "high"))
    return np.where(((low != 0) | (high != 0))[:, None], matrix << zeros[:, None], 0), low, high
