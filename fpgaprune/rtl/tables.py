"""Activations and softmax as tables, whose entries the emulator computes.

An input with few values reads a table with an entry for each value. Any other input becomes an index into the
template's table, by the template's own arithmetic.
"""

from __future__ import annotations

import numpy as np

from fpgaprune.design import CENTRED, FUNCTIONS, NEGATIVE, RECTIFIED, LookUp, ScalarFunction
from fpgaprune.emulate import (
    Exact,
    Step,
    difference_type,
    exponentials_of,
    inverses_of,
    looked_up,
    scales,
    size_of,
    step_entries,
    sum_type_of,
    table_of,
)
from fpgaprune.errors import RtlError
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.number import Number, in_pairs
from fpgaprune.rtl.solve import Context
from fpgaprune.rtl.sums import summed
from fpgaprune.values import FixedType

_DIRECT_BITS = 10
_INT = FixedType(32, 32, True, "TRN_ZERO")


def look_up(step: Step, x: Number) -> Number:
    """The layer's function of `x`, assigned to its result."""
    function = FUNCTIONS[step.operation(LookUp).function]
    kind = step.result
    if (x.high - x.low).bit_length() <= _DIRECT_BITS:
        raws = np.arange(x.low, x.high + 1, dtype=np.int64)
        every = Exact(raws.astype(np.float64), x.fraction, x.low, x.high)
        table = looked_up(step, every, function).integers().tolist()
        circuit = x.circuit
        offset = x.on(circuit.sub(x.place, circuit.const(x.low)))
        return offset.looked_up(table, kind.fraction)
    return _BY_FORM[table_of(function).form](step, x, function)


def centred(step: Step, x: Number, function: ScalarFunction, kind: FixedType) -> Number:
    """The entry of a table around zero, assigned to `kind`; outside, its ends are repeated."""
    reach, size = table_of(function).reach, size_of(step)
    middle = reach * size // (2 * reach)
    index = _index(x, size, 2 * reach)
    place = x.circuit.clip(x.circuit.add(index.place, x.circuit.const(middle)), 0, size - 1)
    table = table_in(step, function, kind)
    found = Number(x.circuit, place, 0).looked_up(table.integers().reshape(-1).tolist(), table.fraction)
    return found.at_fraction(kind.fraction)


def _negative(step: Step, x: Number, function: ScalarFunction) -> Number:
    """`nnet::elu` and `nnet::selu`: a table below zero."""
    circuit, size, kind = x.circuit, size_of(step), step.result
    negative = x.on(circuit.select(x.negative(), x.place, circuit.const(0)))
    index = _index(negative, size, table_of(function).reach)
    place = circuit.clip(circuit.sub(circuit.const(0), index.place), 0, size - 1)
    below, above = scales(step, function)
    table, other = step_entries(step, function), x
    if below is not None:
        table = below * table
    if above is not None:
        other = Number.constant(circuit, int(above.integers().reshape(-1)[0]), above.fraction) * x
    entries = table.into(kind).integers().reshape(-1).tolist()
    found = Number(circuit, place, 0).looked_up(entries, kind.fraction)
    return found.chosen(x.negative(), other.into(kind))


def _rectified(step: Step, x: Number, function: ScalarFunction) -> Number:
    """An entry of a table at the index of |x|, plus x if that is positive."""
    circuit, size = x.circuit, size_of(step)
    index = _index(x, size, table_of(function).reach)
    magnitude = circuit.larger(index.place, circuit.sub(circuit.const(0), index.place))
    place = circuit.clip(magnitude, 0, size - 1)
    table = step_entries(step, function)
    found = Number(circuit, place, 0).looked_up(table.integers().reshape(-1).tolist(), table.fraction)
    return (x.on(circuit.larger(x.place, circuit.const(0))) + found).into(step.result)


def _centred(step: Step, x: Number, function: ScalarFunction) -> Number:
    return centred(step, x, function, step.result)


def table_in(step: Step, function: ScalarFunction, kind: FixedType) -> Exact:
    """The entries of a table; as they are if `kind` holds all of them, else assigned to it."""
    table = step_entries(step, function)
    return table if table.fits(kind) else table.into(kind)


_BY_FORM = {CENTRED: _centred, NEGATIVE: _negative, RECTIFIED: _rectified}


def _index(x: Number, size: int, span: int) -> Number:
    """`int(x * size / span)`, where division and conversion round towards zero."""
    scaled = x.on(x.circuit.mul(x.place, x.circuit.const(size))).quotient(span)
    whole = scaled.into(_INT)
    if (max(-scaled.low, scaled.high) >> max(scaled.fraction, 0)) << max(-scaled.fraction, 0) >= 1 << 31:
        raise RtlError(f"the index into a table of {size} entries may exceed 32 bits; choose a narrower input type")
    return whole


def softmax(context: Context, chain: Chain) -> None:
    """`nnet::softmax_stable` over the values of a beat."""
    step = context.step
    chain.relaid(step.layer.output_shape[-1])
    norm, accum, sum_type = difference_type(step), step.type("accum"), sum_type_of(step)

    def normalised(values: list[Number]) -> list[Number]:
        top = in_pairs(values, Number.larger)
        exponentials = _table(exponentials_of(step).into(accum))
        powers = [_at_top_bits((top - value).into(norm), norm, *exponentials) for value in values]
        total = summed(powers, accum, tree=True).into(sum_type)
        inverse = _at_top_bits(total, sum_type, *_table(inverses_of(step)))
        return [(power * inverse).into(step.result) for power in powers]

    chain.compute("softmax", normalised, step.result)


def _table(values: Exact) -> tuple[tuple[int, ...], int]:
    """The raw entries of a table, and their fraction bits."""
    return tuple(values.integers().reshape(-1).tolist()), values.fraction


def _at_top_bits(x: Number, kind: FixedType, entries: tuple[int, ...], fraction: int) -> Number:
    """The entry of a table at the index in the highest bits of `x`, a value of type `kind`."""
    circuit = x.circuit
    bits = len(entries).bit_length() - 1
    place = circuit.wrap(circuit.shr(x.place, kind.width - bits), bits, signed=False)
    return Number(circuit, place, 0).looked_up(entries, fraction)
