"""The types and sizes of a softmax layer's tables, such that every probability is within a stated bound.

hls4ml's stable softmax takes the exponential of each input's distance from the largest from one table, adds these, and
takes the inverse of the sum from another. Its defaults address the second table with the top ten bits of
`fixed<18,8>`: they know the sum to a quarter only, so the probabilities of a sample may add up to 1.25. And a distance
has one integer bit less than the input, so the largest distances wrap around.

Here a probability differs from the softmax of the layer's own inputs by less than `BOUND`, plus what its result type
rounds or cuts off, for up to 127 classes. For Vitis and Vivado the error is the sum of these terms, each at its worst:

- a distance is rounded to 1/64, which moves an exponential by 1/128 of itself, and a probability by a third of that;
- a sum, which is 1 at least and the number of classes at most, is rounded to 1/128: 1/256 of a probability;
- N exponentials and an inverse are rounded to 16 bits right of the point: N / 2**17 and less.

Quartus's templates cut off where those of Vitis round, but their tables are addressed one bit finer: the same bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fpgaprune.emulate import AP_BACKENDS
from fpgaprune.errors import HlsError
from fpgaprune.fixed import FixedType, integer_bits

BOUND = 1 / 128

# A distance of 16 and more has an exponential below the last place of the table.
_DISTANCE = FixedType(10, 4, False, "RND", "SAT")
# With a sign it has the 18 bits that AMD's multipliers take.
_ENTRY = FixedType(17, 1, False, "RND", "SAT")
_SUM_FRACTION = 7
_LARGEST_TABLE_BITS = 14
_ROLES = ("inp_norm", "exp_table", "accum", "inv_inp", "inv_table")


def softmax_types(classes: int, backend: str) -> dict[str, FixedType]:
    """Role to type of the tables and of the sum of a softmax of `classes` classes, for any input type.

    Empty for a backend whose softmax is another one and keeps the types of hls4ml.
    """
    integer = integer_bits(classes)
    if backend == "Quartus":
        return {
            "exp_table": FixedType(_ENTRY.fraction + integer + 1, integer + 1, True, "RND", "SAT"),
            "inv_table": FixedType(18, 2, True, "RND", "SAT"),
        }
    if backend not in AP_BACKENDS:
        return {}
    return {
        "inp_norm": _DISTANCE,
        "exp_table": _ENTRY,
        "accum": FixedType(_ENTRY.fraction + integer, integer, False),
        "inv_inp": FixedType(min(integer + _SUM_FRACTION, _LARGEST_TABLE_BITS), integer, False, "RND", "SAT"),
        "inv_table": _ENTRY,
    }


def logits_type(kind: FixedType, classes: int) -> FixedType:
    """`kind` with a sign and as many bits as Quartus's softmax needs for `BOUND`; it holds all values of `kind`."""
    if not kind.signed:
        kind = replace(kind, width=kind.width + 1, integer=kind.integer + 1, signed=True)
    # A distance saturates where the integer bits end; a power of -16 is below the last place of the table.
    integer = max(kind.integer, _DISTANCE.integer + 1)
    return FixedType(
        max(integer + kind.fraction, _address_bits(integer, kind.fraction, integer_bits(classes)) + 1),
        integer,
        True,
        kind.rounding,
        kind.overflow,
    )


def _address_bits(integer: int, fraction: int, sum_integer: int) -> int:
    """The one size of both tables on Quartus: distances to 1/128, or to the input's last place, and sums to 1/256."""
    return max(integer - 1 + min(max(fraction, 0), _SUM_FRACTION), sum_integer + _SUM_FRACTION + 1)


def softmax_entries(types: Mapping[str, FixedType]) -> dict[str, Any]:
    """The entries of hls4ml's configuration for the tables of a softmax with `types`, by role."""
    entries: dict[str, Any] = dict(table_types(types))
    if "inp_norm" in types:
        entries["ExpTableSize"] = 1 << min(types["inp_norm"].width, _LARGEST_TABLE_BITS)
        entries["InvTableSize"] = 1 << min(types["inv_inp"].width, _LARGEST_TABLE_BITS)
    return entries


def quartus_table_size(name: str, types: Mapping[str, FixedType], source: FixedType) -> int:
    """The number of entries that both tables of softmax `name` need on Quartus for `BOUND`.

    Args:
        name: name of the layer.
        types: types of the layer, by role.
        source: type of its input.

    Raises:
        HlsError: no size is enough for inputs of type `source`; the message says which type is.
    """
    sum_integer = types["exp_table"].integer - 1
    bits = _address_bits(source.integer, source.fraction, sum_integer)
    wanted = logits_type(source, (1 << sum_integer) - 1)
    problem = f"softmax {name!r} reads numbers of type {source}; Quartus's tables need "
    if bits > types["inv_table"].width - 1:
        raise HlsError(f"{problem}fewer integer bits: scale what comes before it, or let it saturate")
    if wanted != source:
        raise HlsError(f"{problem}{wanted} for a probability within 1/{1 / BOUND:.0f}: give the layer before it that")
    return 1 << bits


def table_types(types: Mapping[str, FixedType]) -> dict[str, str]:
    """The types of a softmax's tables as settings of hls4ml's configuration, which has no other place for them."""
    return {
        f"{''.join(part.title() for part in role.split('_'))}T": hls_type(types[role])
        for role in _ROLES
        if role in types
    }


def hls_type(kind: FixedType) -> str:
    """`kind` in the words of an hls4ml configuration."""
    return f"{'' if kind.signed else 'u'}fixed<{kind.width},{kind.integer},{kind.rounding},{kind.overflow},0>"
