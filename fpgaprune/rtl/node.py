"""`Node`: one value of a circuit; `computed_node` computes it for many values of its operands at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fpgaprune.rtl.table_index import index_of


def width_of(low: int, high: int) -> int:
    """Count the bits of two's complement that hold every number from `low` to `high`, at least one."""
    return max((-low - 1).bit_length() if low < 0 else 0, max(high, 0).bit_length()) + 1


@dataclass(frozen=True)
class Node:
    """One value of a circuit.

    Attributes:
        op: `input`, `const`, `shl`, `shr`, `wrap` or a key of `COSTS`; `sum` has three operands.
        args: indices of the operands in `Circuit.nodes`.
        params: constants: shifts, bounds, a value, the number of a table; of `lut` index bits of operands and table.
        low, high: smallest and largest value that it can have.
    """

    op: str
    args: tuple[int, ...]
    params: tuple[int, ...]
    low: int
    high: int

    @cached_property
    def width(self) -> int:
        """Bits of two's complement that hold every value, at least one."""
        return width_of(self.low, self.high)

    @property
    def index_bits(self) -> int:
        """Bits that tell its values apart: what is never negative needs no sign."""
        return self.width - int(self.low >= 0)


def computed_node(
    node: Node,
    args: Sequence[NDArray[np.object_]],
    tables: Sequence[Sequence[int]],
    values: Sequence[NDArray[np.int64]] = (),
) -> NDArray[np.object_]:
    """Return the value of `node` for those of its operands; `tables` and `values` of inputs are the circuit's."""
    match node.op:
        case "input":
            return np.asarray(values[node.params[0]]).astype(object)
        case "const":
            return np.full(np.shape(values[0]) if len(values) else (1,), node.params[0], dtype=object)
        case "add":
            result = (args[0] << node.params[0]) + (args[1] << node.params[1])
        case "sub":
            result = (args[0] << node.params[0]) - (args[1] << node.params[1])
        case "sum":
            shifts, signs = node.params[:3], node.params[3:]
            result = sum(sign * (arg << shift) for arg, shift, sign in zip(args, shifts, signs, strict=True))
        case "mul":
            result = args[0] * args[1]
        case "shl":
            result = args[0] << node.params[0]
        case "shr":
            result = args[0] >> node.params[0]
        case "wrap":
            width, signed = node.params
            result = np.vectorize(lambda v: wrapped(v, width, bool(signed)), otypes=[object])(args[0])
        case "clip":
            result = np.minimum(np.maximum(args[0], node.params[0]), node.params[1])
        case "inside":
            low, high = node.params
            result = np.where((args[0] >= low) & (args[0] <= high), args[0], 0)
        case "less":
            result = np.where(args[0] < args[1], 1, 0)
        case "max":
            result = np.maximum(args[0], args[1])
        case "min":
            result = np.minimum(args[0], args[1])
        case "select":
            result = np.where(args[0].astype(bool), args[1], args[2])
        case "lut":
            index = index_of([arg.astype(np.int64) for arg in args], node.params[: len(args)])
            result = np.array(node.params[len(args) :], dtype=object)[index]
        case _:
            table = np.array(tables[node.params[0]], dtype=object)
            result = table[args[0].astype(np.int64)]
    return np.asarray(result, dtype=object)


def wrapped(value: int, width: int, signed: bool) -> int:
    """Return what `width` bits hold of a number, with or without a sign."""
    value &= (1 << width) - 1
    return value - (1 << width) if signed and value >> (width - 1) else value
