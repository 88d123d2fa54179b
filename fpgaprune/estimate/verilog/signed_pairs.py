"""Signed digits of a matrix, and how often pairs of them occur again: what sharing of adders lives from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Pairs of digits that are looked at; of a larger matrix, those of every second, third, ... input.
_MOST_PAIRS = 50_000
_SHIFTS = 64


@dataclass(frozen=True)
class SignedDigits:
    """The non-zero digits of the canonical signed form of a matrix (inputs, outputs).

    Attributes:
        inputs, outputs: the size of the matrix.
        row, column, shift, sign: of each digit, column by column and in each by row and shift.
    """

    inputs: int
    outputs: int
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    shift: NDArray[np.int64]
    sign: NDArray[np.int64]

    @classmethod
    def of(cls, matrix: NDArray[np.int64]) -> SignedDigits:
        """Return the digits of `matrix`."""
        inputs, outputs = matrix.shape
        column, row = np.nonzero(matrix.T)
        rest = matrix[row, column].astype(np.int64)
        found = []
        shift = 0
        while rest.size:
            odd = np.flatnonzero(rest & 1)
            sign = 2 - (rest[odd] & 3)
            found.append((row[odd], column[odd], np.full(odd.size, shift), sign))
            rest[odd] -= sign
            rest >>= 1
            left = np.flatnonzero(rest)
            row, column, rest = row[left], column[left], rest[left]
            shift += 1
        if not found:
            empty = np.zeros(0, np.int64)
            return cls(inputs, outputs, empty, empty, empty, empty)
        row, column, shifts, signs = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.lexsort((shifts, row, column))
        return cls(inputs, outputs, row[order], column[order], shifts[order], signs[order])

    @property
    def by_column(self) -> NDArray[np.int64]:
        """SignedDigits of each column."""
        return np.bincount(self.column, minlength=self.outputs)

    def repeated(self) -> tuple[float, float]:
        """Return the share of pairs of digits that occur again elsewhere, and the mean number of times that they do.

        Two pairs are equal if one is the other times a power of two, or its negative.
        """
        counts = self.by_column
        pairs = int((counts * (counts - 1)).sum()) // 2
        # Every n-th input has a pair with every other of them just as often.
        step = int(np.ceil(np.sqrt(pairs / _MOST_PAIRS))) if pairs > _MOST_PAIRS else 1
        kept = np.flatnonzero(self.row % step == 0) if step > 1 else slice(None)
        row, shift, sign = self.row[kept], self.shift[kept], self.sign[kept]
        counts = np.bincount(self.column[kept], minlength=self.outputs)
        one, two = _pairs(counts)
        if not one.size:
            return 0.0, 0.0
        keys = ((row[one] * self.inputs + row[two]) * _SHIFTS + shift[two] - shift[one] + _SHIFTS // 2) * 2
        keys += sign[one] == sign[two]
        keys.sort()
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        often = np.diff(starts, append=keys.size)
        return 1 - starts.size / keys.size, float((often * (often - 1)).sum() / keys.size)


def _pairs(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the first and the second member of every pair in runs of `counts` places."""
    ends = np.repeat(np.cumsum(counts), counts)
    first = np.arange(ends.size)
    behind = ends - first - 1
    one = np.repeat(first, behind)
    start = np.cumsum(behind) - behind
    return one, np.arange(one.size) - start[one] + one + 1
