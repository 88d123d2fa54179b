"""Activations and softmax as tables, whose entries the emulator computes.

An input with few values reads a table with an entry for each value. Any other input becomes an index into the
template's table, by the template's own arithmetic.
"""

from __future__ import annotations

import math

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
# So many values share the tables of a softmax, one after another.
_IN_TURN = 4
_INT = FixedType(32, 32, True, "TRN_ZERO")


def look_up(step: Step, x: Number) -> Number:
    """Return the layer's function of `x`, assigned to its result."""
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
    """Return the entry of a table around zero, assigned to `kind`; outside, its ends are repeated."""
    reach, size = table_of(function).reach, size_of(step)
    middle = reach * size // (2 * reach)
    index = _index(x, size, 2 * reach)
    place = x.circuit.clip(x.circuit.add(index.place, x.circuit.const(middle)), 0, size - 1)
    table = table_in(step, function, kind)
    found = Number(x.circuit, place, 0).looked_up(table.integers().reshape(-1).tolist(), table.fraction)
    return found.at_fraction(kind.fraction)


def _negative(step: Step, x: Number, function: ScalarFunction) -> Number:
    """Compute `nnet::elu` or `nnet::selu`: a table below zero."""
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
    """Return an entry of a table at the index of |x|, plus x if that is positive."""
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
    """Return the entries of a table; as they are if `kind` holds all of them, else assigned to it."""
    table = step_entries(step, function)
    return table if table.fits(kind) else table.into(kind)


_BY_FORM = {CENTRED: _centred, NEGATIVE: _negative, RECTIFIED: _rectified}


def _index(x: Number, size: int, span: int) -> Number:
    """Compute `int(x * size / span)`, where division and conversion round towards zero."""
    scaled = x.on(x.circuit.mul(x.place, x.circuit.const(size))).quotient(span)
    whole = scaled.into(_INT)
    if (max(-scaled.low, scaled.high) >> max(scaled.fraction, 0)) << max(-scaled.fraction, 0) >= 1 << 31:
        raise RtlError(f"the index into a table of {size} entries may exceed 32 bits; choose a narrower input type")
    return whole


def softmax(context: Context, chain: Chain) -> None:
    """Compute `nnet::softmax_stable` over the last axis: value by value with one table if there is time, or at once."""
    step = context.step
    count = step.layer.output_shape[-1]
    norm, accum, sum_type = difference_type(step), step.type("accum"), sum_type_of(step)
    exponentials, inverses = _table(exponentials_of(step).into(accum)), _table(inverses_of(step))

    def power(top: Number, value: Number) -> Number:
        return _top_bits((top - value).into(norm), norm, exponentials).looked_up(*exponentials)

    def inverse(total: Number) -> Number:
        return _top_bits(total.into(sum_type), sum_type, inverses).looked_up(*inverses)

    # Sums of numbers that are not negative saturate alike in any order.
    in_any_order = min(exponentials[0]) >= 0 and accum.overflow != "SAT_ZERO"
    cycles = math.prod(step.layer.output_shape[:-1]) * (count + 1)
    has_time = chain.stream.lanes == 1 or cycles <= context.beats
    if count >= _IN_TURN and in_any_order and has_time:
        chain.relaid(1)
        chain.compute_lanes("signed", lambda value: value)
        chain.reduced(largest=True)
        chain.compute("exponentials", lambda pair: [power(pair[1], pair[0])])
        chain.reduced(largest=False)
        chain.compute("softmax", lambda pair: [(pair[0] * inverse(pair[1].into(accum))).into(step.result)], step.result)
        return

    def normalised(values: list[Number]) -> list[Number]:
        top = in_pairs(values, Number.larger)
        powers = [power(top, value) for value in values]
        one = inverse(summed(powers, accum, tree=True))
        return [(each * one).into(step.result) for each in powers]

    chain.relaid(count)
    chain.compute("softmax", normalised, step.result)


def _table(values: Exact) -> tuple[tuple[int, ...], int]:
    """Return the raw entries of a table, and their fraction bits."""
    return tuple(values.integers().reshape(-1).tolist()), values.fraction


def _top_bits(x: Number, kind: FixedType, table: tuple[tuple[int, ...], int]) -> Number:
    """Return the highest bits of `x`, a value of type `kind`, as an index into `table`."""
    bits = len(table[0]).bit_length() - 1
    place = x.circuit.wrap(x.circuit.shr(x.place, kind.width - bits), bits, signed=False)
    return Number(x.circuit, place, 0)
