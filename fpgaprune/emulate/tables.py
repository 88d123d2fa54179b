"""Activations that hls4ml looks up in a table, and how it computes table and index.

The C++ evaluates most functions in single precision with the C library; here they are evaluated in double
and rounded once, which differs from a C library by at most its last bit, far below a table's last place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.emulate.exact import Exact, raw_of_real
from fpgaprune.emulate.step import Step
from fpgaprune.fixed import FixedType

_INT = FixedType(32, 32, True, "TRN_ZERO")
# ap_ufixed<16, 1> lambda = 1.0507..., in nnet::selu.
_SELU_SCALE = 1.0507009873554805
_SELU_SCALE_TYPE = FixedType(16, 1, signed=False)

Floats = NDArray[np.float32]


def single_exp(x: Floats) -> Floats:
    """`std::exp` of single-precision numbers."""
    with np.errstate(over="ignore"):
        return np.exp(x.astype(np.float64)).astype(np.float32)


def _sigmoid(x: Floats) -> NDArray[Any]:
    return 1.0 / (np.float32(1) + single_exp(-x)).astype(np.float64)


def _softplus(x: Floats) -> NDArray[Any]:
    return np.log(single_exp(x).astype(np.float64) + 1.0)


def _softsign(x: Floats) -> NDArray[Any]:
    wide = x.astype(np.float64)
    return wide / (np.abs(wide) + 1.0)


def _elu(x: Floats) -> NDArray[Any]:
    return single_exp(x).astype(np.float64) - 1.0


def _selu(x: Floats) -> NDArray[Any]:
    return 1.0507009873554804934193349852946 * (1.6732632423543772848170429916717 * _elu(x))


def _tanh(x: Floats) -> NDArray[Any]:
    return np.tanh(x.astype(np.float64))


# Name to function and half the width of the interval around zero that the table covers.
_CENTRED: Mapping[str, tuple[Callable[[Floats], NDArray[Any]], int]] = {
    "sigmoid": (_sigmoid, 8),
    "tanh": (_tanh, 4),
    "softplus": (_softplus, 8),
    "softsign": (_softsign, 8),
}
CENTRED = frozenset(_CENTRED)


def centred(step: Step, x: Exact) -> Exact:
    """`nnet::sigmoid`, `tanh`, `softplus`, `softsign`: a table around zero, its ends repeated outside."""
    return centred_entries(step, step.attribute("activation").lower(), x).into(step.result)


def centred_entries(step: Step, name: str, x: Exact) -> Exact:
    """What the layer's table of function `name` of `CENTRED` holds for `x`."""
    half, size = _CENTRED[name][1], step.number("table_size")
    # The sum is an int, and wraps like one.
    index = (_index(x, size, 2 * half) + half * size // (2 * half)).astype(np.int32)
    return _looked_up(centred_table(step, name), index, size)


def centred_table(step: Step, name: str) -> Exact:
    """The entries of the layer's table of function `name` of `CENTRED`, made once."""
    function, half = _CENTRED[name]
    size = step.number("table_size")

    def table() -> Exact:
        places = 2.0 * half * (np.arange(size) - np.float32(size) / 2.0) / np.float64(size)
        return _entries(step, function(places.astype(np.float32)))

    return step.keep(f"table of {name}", table)


def elu(step: Step, x: Exact) -> Exact:
    """`nnet::elu`: alpha times a table of exp(x) - 1 where x is negative."""
    alpha = step.keep("alpha", lambda: parameter(step))
    negative = alpha * _looked_up(step.keep("table", lambda: _negative_table(step, _elu)), *_negative_index(step, x))
    return where_negative(x, negative.into(step.result), x.into(step.result))


def selu(step: Step, x: Exact) -> Exact:
    """`nnet::selu`: a table where x is negative, lambda times x elsewhere."""
    # The streaming template writes lambda in the type of the data.
    kind = step.sources[0].types["result"] if step.streamed else _SELU_SCALE_TYPE
    scale = step.keep("lambda", lambda: constant(_SELU_SCALE, kind))
    negative = _looked_up(step.keep("table", lambda: _negative_table(step, _selu)), *_negative_index(step, x))
    return where_negative(x, negative.into(step.result), (scale * x).into(step.result))


def parameter(step: Step) -> Exact:
    """The layer's `activ_param` in its type."""
    return constant(float(step.attribute("activ_param")), step.type("param"))


def constant(value: float, kind: FixedType) -> Exact:
    """A C++ literal assigned to `kind`."""
    return Exact.of(raw_of_real(np.full(1, value), kind), kind)


def where_negative(x: Exact, negative: Exact, other: Exact) -> Exact:
    """`negative` where `x` is below zero, else `other`; both of one type."""
    low, high = min(negative.low, other.low), max(negative.high, other.high)
    return Exact(np.where(x.raw < 0, negative.raw, other.raw), other.fraction, low, high)


def _negative_table(step: Step, function: Callable[[Floats], NDArray[Any]]) -> Exact:
    size = step.number("table_size")
    return _entries(step, function((-8.0 * np.arange(size) / np.float64(size)).astype(np.float32)))


def _negative_index(step: Step, x: Exact) -> tuple[NDArray[np.int64], int]:
    size = step.number("table_size")
    index = -_index(x.on(np.minimum(x.raw, 0)), size, 8)
    # An index that wrapped below zero is compared as an unsigned number, but for nnet::selu in io_parallel.
    unsigned = step.streamed or step.attribute("activation") != "selu"
    return (np.where(index < 0, size - 1, index) if unsigned else index), size


def _entries(step: Step, values: NDArray[Any]) -> Exact:
    kind = step.type("table")
    return Exact.of(raw_of_real(values.astype(np.float32).astype(np.float64), kind), kind)


def _index(x: Exact, size: int, span: int) -> NDArray[np.int64]:
    """`int(x * size / span)`, each division and conversion cut towards zero."""
    scaled = x * Exact(np.full(1, size, np.float64), 0, size, size)
    return scaled.quotient(span).into(_INT).integers()


def _looked_up(table: Exact, index: NDArray[Any], size: int) -> Exact:
    return table.on(table.raw[np.clip(index, 0, size - 1)])
