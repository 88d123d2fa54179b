"""The stable softmax of hls4ml's Quartus templates, and the tables that its writer makes for them.

The templates address both tables with the bits below the sign, and use address 1 in place of 0 if the number is not 0
(`nnet_activation.h`, `quartus_writer.py` of hls4ml 1.3.0). The entries have the types `exp_table` and `inv_table`, as
`fpgaprune.hls.quartus_tables` writes them; hls4ml's own entries have eight bits right of the point in any case.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Softmax
from fpgaprune.emulate.exact import Exact, raw_of_real
from fpgaprune.emulate.step import Step
from fpgaprune.emulate.sums import summed
from fpgaprune.errors import DesignError
from fpgaprune.fixed import FixedType

# Decimals that the writer prints.
_DECIMALS = 12


def quartus_stable(step: Step, x: Exact) -> Exact:
    """`nnet::softmax_stable` over the first axis of `x`."""
    source, exp_type, inv_type = step.sources[0].types["result"], step.type("exp_table"), step.type("inv_table")
    size = step.operation(Softmax).table_size
    if size is None:
        raise DesignError("the size of its tables is missing")
    difference = FixedType(source.width, source.integer, True, "RND", "SAT")
    below = (x - x.on(x.raw.max(axis=0, keepdims=True))).into(difference)
    exponentials = step.keep("exp", lambda: _table(exponential_entries(source, size), exp_type))
    inverses = step.keep("inv", lambda: _table(inverse_entries(exp_type, size), inv_type))
    powers = exponentials.on(exponentials.raw[_address(below, difference, size)])
    total = summed([powers.on(power) for power in powers.raw], exp_type, tree=True)
    inverse = inverses.on(inverses.raw[_address(total, exp_type, size)])
    return (powers * inverse).into(step.result)


def exponential_entries(source: FixedType, size: int) -> list[float]:
    """`exp_table` for inputs of type `source`: e to the power of the number at most 0 of each address."""
    steps = np.arange(size, dtype=np.int64)
    raw = np.where(steps == 0, 0, steps - size)
    return [round(math.exp(value), _DECIMALS) for value in _addressed(raw, source, size)]


def inverse_entries(exp_type: FixedType, size: int) -> list[float]:
    """`invert_table` for sums of type `exp_type`: one over the number of each address."""
    values = _addressed(np.arange(size, dtype=np.int64), exp_type, size)
    return [round(1.0 / value, _DECIMALS) if value else sys.float_info.max for value in values]


def _addressed(address: NDArray[np.int64], kind: FixedType, size: int) -> list[float]:
    """The real values whose bits below the sign begin with each address."""
    return [float(value) for value in kind.to_float(address << _unaddressed(kind, size))]


def _address(x: Exact, kind: FixedType, size: int) -> NDArray[np.int64]:
    raw = x.integers()
    address = (raw >> _unaddressed(kind, size)) & (size - 1)
    return np.where((address == 0) & (raw != 0), 1, address)


def _unaddressed(kind: FixedType, size: int) -> int:
    """The number of low bits of a number of type `kind` that do not address a table of `size` entries."""
    bits = size.bit_length() - 1
    if size != 1 << bits or bits > kind.width - 1:
        raise DesignError(
            f"a table of {size} entries is addressed with the {kind.width - 1} bits below the sign of {kind}; choose "
            "a power of two that fits"
        )
    if not kind.signed:
        raise DesignError(f"softmax of Quartus takes signed numbers only; got {kind}")
    return kind.width - 1 - bits


def _table(entries: list[float], kind: FixedType) -> Exact:
    return Exact.of(raw_of_real(np.array(entries), kind), kind)
