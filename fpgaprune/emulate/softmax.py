"""The softmax of hls4ml's variant `stable`: exponentials and the inverse of their sum come from tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Softmax, single_exp
from fpgaprune.emulate.exact import Exact, raw_of_real
from fpgaprune.emulate.step import Step
from fpgaprune.emulate.sums import summed
from fpgaprune.errors import DesignError
from fpgaprune.values import Array, FixedType


def softmax(step: Step, x: Exact) -> Exact:
    """Compute `nnet::softmax_stable` over the last axis."""
    # The normalised axis comes first, because its values are the addends.
    moved = x.on(np.moveaxis(x.raw, -1, 0))
    norm, accum, sum_type = difference_type(step), step.type("accum"), sum_type_of(step)
    below = (moved.on(moved.raw.max(axis=0, keepdims=True)) - moved).into(norm)
    exponentials = step.keep("exp", lambda: exponentials_of(step))
    inverses = step.keep("inv", lambda: inverses_of(step))
    powers = exponentials.on(exponentials.raw[_top_bits(below, norm, _exp_size(step))]).into(accum)
    total = summed([powers.on(power) for power in powers.raw], accum, tree=True).into(sum_type)
    inverse = inverses.on(inverses.raw[_top_bits(total, sum_type, _inverse_size(step))])
    done = (powers * inverse).into(step.result)
    return done.on(np.moveaxis(done.raw, 0, -1))


def difference_type(step: Step) -> FixedType:
    """Return the type of the distance from the largest input, in which the exponentials are looked up."""
    if "inp_norm" in step.layer.types:
        return step.type("inp_norm")
    source = step.sources[0].types["result"]
    return FixedType(source.width - source.signed, source.integer - source.signed, signed=False)


def sum_type_of(step: Step) -> FixedType:
    """Return the type of the sum of exponentials, in which its inverse is looked up."""
    return step.layer.types.get("inv_inp") or step.type("exp_table")


def _inverse_size(step: Step) -> int:
    layer = step.operation(Softmax)
    return _said(layer.inverse_table_size, layer.table_size)


def _exp_size(step: Step) -> int:
    layer, source = step.operation(Softmax), step.sources[0].types["result"]
    if source.signed and "inp_norm" not in step.layer.types:
        return min(_inverse_size(step), 1 << (source.width - 1))
    return _said(layer.exp_table_size, layer.table_size)


def _said(*sizes: int | None) -> int:
    """Return the first size that the design states."""
    for size in sizes:
        if size is not None:
            return size
    raise DesignError("the sizes of its tables are missing")


def _address_bits(kind: FixedType, size: int) -> int:
    bits = size.bit_length() - 1
    if size != 1 << bits:
        raise DesignError(f"a table of {size} entries is read past its end; choose a power of two")
    if bits > kind.width:
        raise DesignError(f"a table of {size} entries is addressed with the {kind.width} bits of {kind}; shorten it")
    return bits


def _top_bits(x: Exact, kind: FixedType, size: int) -> NDArray[np.int64]:
    bits = _address_bits(kind, size)
    return (x.integers() >> (kind.width - bits)) & (size - 1)


def _addressed(kind: FixedType, size: int) -> NDArray[np.float32]:
    """Return the real values (size,) whose top bits are the addresses of the table."""
    raw = np.arange(size, dtype=np.int64) << (kind.width - _address_bits(kind, size))
    if kind.signed:
        raw = np.where(raw > kind.raw_max, raw - (1 << kind.width), raw)
    return kind.to_float(raw).astype(np.float32)


def exponentials_of(step: Step) -> Exact:
    """Return the table of exponentials of what is below zero, addressed by the top bits of a distance."""
    x = _addressed(difference_type(step), _exp_size(step))
    return _entries(single_exp(-x), step.type("exp_table"))


def inverses_of(step: Step) -> Exact:
    """Return the table of inverses, addressed by the top bits of a sum."""
    with np.errstate(divide="ignore"):
        values = np.float32(1) / _addressed(sum_type_of(step), _inverse_size(step))
    return _entries(values, step.type("inv_table"))


def _entries(values: Array, kind: FixedType) -> Exact:
    return Exact.of(raw_of_real(values.astype(np.float64), kind), kind)
