"""The softmax variants of hls4ml: stable, latency, legacy and argmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Softmax, single_exp
from fpgaprune.emulate.exact import Exact, raw_of_real
from fpgaprune.emulate.step import Step
from fpgaprune.emulate.sums import summed
from fpgaprune.errors import DesignError, UnsupportedLayerError
from fpgaprune.values import Array, FixedType

_INT = FixedType(32, 32, True, "TRN_ZERO")
_LEGACY_TABLE = FixedType(18, 8)


def softmax(step: Step, x: Exact) -> Exact:
    """`nnet::softmax` over the axis that the design says."""
    layer, shape = step.operation(Softmax), step.layer.output_shape
    inner, outer = layer.inner, layer.outer
    slices = x.reshape(x.raw.shape[0], outer, math.prod(shape) // (outer * inner), inner)
    # The normalised axis comes first, because its values are the addends.
    moved = slices.on(np.moveaxis(slices.raw, 2, 0))
    done = _VARIANTS[layer.variant](step, moved)
    return done.on(np.moveaxis(done.raw, 0, 2)).reshape(x.raw.shape[0], *shape)


def check(step: Step) -> None:
    """The layer's variant has an emulation.

    Raises:
        UnsupportedLayerError: it has none.
    """
    name = step.operation(Softmax).variant
    if name not in _VARIANTS:
        raise UnsupportedLayerError(
            f"softmax implementation {name!r} has no emulation; those that have: {', '.join(_VARIANTS)}"
        )


def _stable(step: Step, x: Exact) -> Exact:
    norm = difference_type(step)
    below = (x.on(x.raw.max(axis=0, keepdims=True)) - x).into(norm)
    return _normalised(step, below, norm, negative=True)


def _latency(step: Step, x: Exact) -> Exact:
    return _normalised(step, x, step.sources[0].types["result"], negative=False)


def _normalised(step: Step, x: Exact, address: FixedType, negative: bool) -> Exact:
    accum, sum_type = step.type("accum"), sum_type_of(step)
    exponentials = step.keep("exp", lambda: exponentials_of(step, address, negative))
    inverses = step.keep("inv", lambda: inverses_of(step))
    powers = exponentials.on(exponentials.raw[_top_bits(x, address, _exp_size(step))]).into(accum)
    total = summed([powers.on(power) for power in powers.raw], accum, tree=True).into(sum_type)
    inverse = inverses.on(inverses.raw[_top_bits(total, sum_type, _inverse_size(step))])
    return (powers * inverse).into(step.result)


def _argmax(step: Step, x: Exact) -> Exact:
    first = x.raw.argmax(axis=0)
    chosen = np.arange(x.raw.shape[0]).reshape(-1, *[1] * first.ndim) == first
    return Exact(chosen.astype(np.float32), 0, 0, 1).into(step.result)


def _legacy(step: Step, x: Exact) -> Exact:
    # Its template takes the tables' type from the defaults of nnet::activ_config.
    table_type, exp_size, size = _LEGACY_TABLE, _exp_size(step), _inverse_size(step)
    exponentials = step.keep("exp", lambda: _legacy_exp(exp_size, table_type))
    inverses = step.keep("inv", lambda: _legacy_inverse(size, table_type))
    one = Exact.from_real(np.ones(1), table_type)
    rows = []
    for place in range(x.raw.shape[0]):
        total = Exact(np.zeros(1, np.float32), table_type.fraction, 0, 0)
        for other in range(x.raw.shape[0]):
            if place == other:
                addend = one
            else:
                index = _scaled_index(x.on(x.raw[other]) - x.on(x.raw[place]), exp_size, 16) + 8 * exp_size // 16
                addend = exponentials.on(exponentials.raw[np.clip(index, 0, exp_size - 1)])
            total = (total + addend).into(table_type)
        index = np.clip(_scaled_index(total, size, 64), 0, size - 1)
        rows.append(inverses.on(inverses.raw[index]).into(step.result))
    return rows[0].on(np.stack([row.raw for row in rows]))


_VARIANTS: Mapping[str, Callable[[Step, Exact], Exact]] = {
    "stable": _stable,
    "latency": _latency,
    "legacy": _legacy,
    "argmax": _argmax,
}


def difference_type(step: Step) -> FixedType:
    """The type of the distance from the largest input, in which the exponentials are looked up."""
    if "inp_norm" in step.layer.types:
        return step.type("inp_norm")
    source = step.sources[0].types["result"]
    return FixedType(source.width - source.signed, source.integer - source.signed, signed=False)


def sum_type_of(step: Step) -> FixedType:
    """The type of the sum of exponentials, in which its inverse is looked up."""
    return step.layer.types.get("inv_inp") or step.type("exp_table")


def _inverse_size(step: Step) -> int:
    layer = step.operation(Softmax)
    return _said(layer.inverse_table_size, layer.table_size)


def _exp_size(step: Step) -> int:
    layer, source = step.operation(Softmax), step.sources[0].types["result"]
    if layer.variant == "stable" and source.signed and "inp_norm" not in step.layer.types:
        return min(_inverse_size(step), 1 << (source.width - 1))
    return _said(layer.exp_table_size, layer.table_size)


def _said(*sizes: int | None) -> int:
    """The first size that the design states."""
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
    """(size,) the real values whose top bits are the addresses of the table."""
    raw = np.arange(size, dtype=np.int64) << (kind.width - _address_bits(kind, size))
    if kind.signed:
        raw = np.where(raw > kind.raw_max, raw - (1 << kind.width), raw)
    return kind.to_float(raw).astype(np.float32)


def exponentials_of(step: Step, address: FixedType, negative: bool) -> Exact:
    """The table of exponentials, addressed by the top bits of a number of type `address`, negated if `negative`."""
    scale = np.float32(step.operation(Softmax).exp_scale)
    x = _addressed(address, _exp_size(step)) * scale
    return _entries(single_exp(-x if negative else x), step.type("exp_table"))


def inverses_of(step: Step) -> Exact:
    """The table of inverses, addressed by the top bits of a sum."""
    with np.errstate(divide="ignore"):
        values = np.float32(1) / _addressed(sum_type_of(step), _inverse_size(step))
    return _entries(values, step.type("inv_table"))


def _legacy_exp(size: int, kind: FixedType) -> Exact:
    x = (2 * 8.0 * (np.arange(size) - size / 2.0) / size).astype(np.float32)
    return _entries(single_exp(x), kind)


def _legacy_inverse(size: int, kind: FixedType) -> Exact:
    x = (64.0 * np.arange(size) / np.float64(np.float32(size))).astype(np.float32).astype(np.float64)
    return _entries(np.divide(1.0, x, out=np.zeros_like(x), where=x > 0), kind)


def _entries(values: Array, kind: FixedType) -> Exact:
    return Exact.of(raw_of_real(values.astype(np.float64), kind), kind)


def _scaled_index(x: Exact, size: int, span: int) -> NDArray[np.int64]:
    return (x * Exact(np.full(1, size, np.float64), 0, size, size)).quotient(span).into(_INT).integers()
