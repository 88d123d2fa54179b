"""Activations that are looked up, with the tables that the emulator makes.

A narrow input is looked up directly: the emulator computes the function of every value once. A wide one goes
through the template's own arithmetic to the template's own table.
"""

from __future__ import annotations

import numpy as np

from fpgaprune.emulate.activations import rule
from fpgaprune.emulate.exact import Exact
from fpgaprune.emulate.step import Step
from fpgaprune.emulate.tables import CENTRED, centred_table, elu, parameter
from fpgaprune.errors import RtlError
from fpgaprune.fixed import FixedType
from fpgaprune.rtl.number import Number

TABLES = frozenset({*CENTRED, "elu", "selu"})

_DIRECT_BITS = 10
_INT = FixedType(32, 32, True, "TRN_ZERO")
# Half the width of the interval around zero that each table covers.
_HALF = {"sigmoid": 8, "tanh": 4, "softplus": 8, "softsign": 8}


def look_up(step: Step, x: Number) -> Number:
    """The activation of `x`, assigned to the layer's result."""
    name = str(step.layer.attributes.get("activation", step.layer.kind)).lower()
    kind = step.result
    function = elu if name == "elu" else rule(step)
    if (x.high - x.low).bit_length() <= _DIRECT_BITS:
        raws = np.arange(x.low, x.high + 1, dtype=np.int64)
        every = Exact(raws.astype(np.float64), x.fraction, x.low, x.high)
        table = function(step, every).integers().tolist()
        circuit = x.circuit
        offset = x.on(circuit.sub(x.place, circuit.const(x.low)))
        return offset.looked_up(table, kind.fraction)
    if name in _HALF:
        return _centred(step, x, name)
    # Computed once for one value, so that the step keeps its table.
    function(step, Exact(np.zeros((1, 1)), x.fraction, 0, 0))
    return _negative(step, x, name)


def _centred(step: Step, x: Number, name: str) -> Number:
    half, size = _HALF[name], step.number("table_size")
    middle = half * size // (2 * half)
    index = _index(x, size, 2 * half)
    place = x.circuit.clip(x.circuit.add(index.place, x.circuit.const(middle)), 0, size - 1)
    table = centred_table(step, name).into(step.result).integers().reshape(-1).tolist()
    return Number(x.circuit, place, 0).looked_up(table, step.result.fraction)


def _negative(step: Step, x: Number, name: str) -> Number:
    """`nnet::elu` and `nnet::selu`: a table below zero."""
    circuit, size, kind = x.circuit, step.number("table_size"), step.result
    below = x.on(circuit.select(x.negative(), x.place, circuit.const(0)))
    index = _index(below, size, 8)
    place = circuit.clip(circuit.sub(circuit.const(0), index.place), 0, size - 1)
    table: Exact = step.kept["table"]
    if name == "elu":
        table = parameter(step) * table
        other = x
    else:
        scale: Exact = step.kept["lambda"]
        other = Number.constant(circuit, int(scale.integers().reshape(-1)[0]), scale.fraction) * x
    entries = table.into(kind).integers().reshape(-1).tolist()
    found = Number(circuit, place, 0).looked_up(entries, kind.fraction)
    return found.chosen(x.negative(), other.into(kind))


def _index(x: Number, size: int, span: int) -> Number:
    """`int(x * size / span)`, each division and conversion cut towards zero."""
    scaled = x.on(x.circuit.mul(x.place, x.circuit.const(size))).quotient(span)
    whole = scaled.into(_INT)
    if (max(-scaled.low, scaled.high) >> max(scaled.fraction, 0)) << max(-scaled.fraction, 0) >= 1 << 31:
        raise RtlError(f"the index into a table of {size} entries may leave 32 bits; choose a narrower input type")
    return whole
