"""Activations that hls4ml looks up in a table, and how it computes the table and the index.

The C++ evaluates most functions in single precision with the C library. Here they are evaluated in double precision and
rounded once; the difference is at most the last bit of single precision, far below the last place of a table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import CENTRED, FUNCTIONS, RECTIFIED, SELU_SCALE, FunctionTable, LookUp, Recurrent, ScalarFunction
from fpgaprune.emulate.exact import Exact, raw_of_real
from fpgaprune.emulate.step import Step
from fpgaprune.errors import DesignError
from fpgaprune.values import Array, FixedType

_INT = FixedType(32, 32, True, "TRN_ZERO")


def table_of(function: ScalarFunction) -> FunctionTable:
    """Return how `function` is looked up.

    Raises:
        DesignError: it is computed without a table.
    """
    if function.table is None:
        raise DesignError(f"{function.name} is computed without a table")
    return function.table


def entries(function: ScalarFunction, size: int, kind: FixedType) -> Exact:
    """Return the `size` entries of type `kind` in the table of `function`, as in the templates for `ap_fixed`."""
    table = table_of(function)
    places = table.places(size)
    if table.written is not None:
        values = table.written(places).astype(np.float32).astype(np.float64)
    else:
        values = function.values(places) if function.values else places
    return Exact.of(raw_of_real(values, kind), kind)


def step_entries(step: Step, function: ScalarFunction) -> Exact:
    """Return the entries of the layer's table of `function`; they are computed once."""
    return step.keep(f"table of {function.name}", lambda: entries(function, size_of(step), step.type("table")))


def size_of(step: Step) -> int:
    """Return the number of entries of the layer's tables."""
    found = step.layer.operation
    return found.table_size if isinstance(found, Recurrent) else step.operation(LookUp).table_size


def look_up(step: Step, x: Exact) -> Exact:
    """Return the layer's function of `x`."""
    return looked_up(step, x, FUNCTIONS[step.operation(LookUp).function])


def looked_up(step: Step, x: Exact, function: ScalarFunction) -> Exact:
    """Look `x` up in the table of `function`, as `nnet::sigmoid` or `nnet::elu` does, in the result's type."""
    if table_of(function).form == CENTRED:
        return centred(step, x, function).into(step.result)
    if table_of(function).form == RECTIFIED:
        return _rectified(step, x, function)
    return _negative(step, x, function)


def centred(step: Step, x: Exact, function: ScalarFunction) -> Exact:
    """Return the entry of a table around zero; outside, its ends are repeated."""
    reach, size = table_of(function).reach, size_of(step)
    # The sum is an int of C++, which wraps.
    index = (_index(x, size, 2 * reach) + reach * size // (2 * reach)).astype(np.int32)
    return _entry(step_entries(step, function), index, size)


def _negative(step: Step, x: Exact, function: ScalarFunction) -> Exact:
    """Return a table for negative x; for any other x, `nnet::elu` gives x and `nnet::selu` gives lambda times x."""
    size = size_of(step)
    index = -_index(x.on(np.minimum(x.raw, 0)), size, table_of(function).reach)
    index = index if step.operation(LookUp).signed_index else np.where(index < 0, size - 1, index)
    below, above = scales(step, function)
    entry = _entry(step_entries(step, function), index, size)
    negative, other = entry if below is None else below * entry, x if above is None else above * x
    return where_negative(x, negative.into(step.result), other.into(step.result))


def _rectified(step: Step, x: Exact, function: ScalarFunction) -> Exact:
    """Return a table of the function of -|x|, plus x if it is positive, as in fpgaprune's own template."""
    size = size_of(step)
    index = np.abs(_index(x, size, table_of(function).reach))
    positive = Exact(np.maximum(x.raw, 0), x.fraction, max(x.low, 0), max(x.high, 0))
    return (positive + _entry(step_entries(step, function), index, size)).into(step.result)


def scales(step: Step, function: ScalarFunction) -> tuple[Exact | None, Exact | None]:
    """Return the factors of an entry for a negative input, and of an input that is not negative; None for 1."""
    if function.name == "elu":
        alpha = step.operation(LookUp).parameter
        return step.keep("alpha", lambda: constant(alpha, step.type("param"))), None
    if function.name == "selu":
        kind = step.operation(LookUp).scale_type or step.sources[0].types["result"]
        return None, step.keep("lambda", lambda: constant(SELU_SCALE, kind))
    return None, None


def constant(value: float | None, kind: FixedType) -> Exact:
    """Return a C++ literal assigned to `kind`.

    Raises:
        DesignError: the design does not state its value.
    """
    if value is None:
        raise DesignError("a slope, a threshold or another parameter of its function is missing")
    return Exact.of(raw_of_real(np.full(1, value), kind), kind)


def where_negative(x: Exact, negative: Exact, other: Exact) -> Exact:
    """Return `negative` where `x` is below zero, else `other`; both have one type."""
    low, high = min(negative.low, other.low), max(negative.high, other.high)
    return Exact(np.where(x.raw < 0, negative.raw, other.raw), other.fraction, low, high)


def _index(x: Exact, size: int, span: int) -> NDArray[np.int64]:
    """Compute `int(x * size / span)`; the division and the conversion truncate towards zero."""
    scaled = x * Exact(np.full(1, size, np.float64), 0, size, size)
    return scaled.quotient(span).into(_INT).integers()


def _entry(table: Exact, index: Array, size: int) -> Exact:
    return table.on(table.raw[np.clip(index, 0, size - 1)])
