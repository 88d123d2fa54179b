"""Chooses the types and sizes of a softmax layer's tables, so that every probability is within a stated bound.

hls4ml's stable softmax reads the exponential of each input's distance from the largest input from one table, adds the
exponentials, and reads the inverse of the sum from another table. By default it addresses the second table with the top
ten bits of `fixed<18,8>`. This resolves the sum to a quarter only, so the probabilities of a sample may add up to 1.25.
A distance also has one integer bit less than the input, so the largest distances wrap around.

Here a probability differs from the softmax of the layer's own inputs by less than `BOUND`, plus the rounding of its
result type, for up to 127 classes. For Vitis and Vivado the error is the sum of these terms, each at its worst:

- a distance is rounded to 1/64, which changes an exponential by 1/128 of itself, and a probability by a third of that;
- a sum, which is 1 at least and the number of classes at most, is rounded to 1/128: 1/256 of a probability;
- N exponentials and an inverse are rounded to 16 bits right of the point: at most N / 2**17.

Quartus's templates truncate where those of Vitis round, but address their tables with one more bit: the same bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fpgaprune.design import AP_BACKENDS
from fpgaprune.errors import HlsError
from fpgaprune.fixed import FixedType, integer_bits

BOUND = 1 / 128

# The exponential of a distance of 16 or more is below the last place of the table.
_DISTANCE = FixedType(10, 4, False, "RND", "SAT")
# With a sign this type has 18 bits, the width of AMD's multipliers.
_ENTRY = FixedType(17, 1, False, "RND", "SAT")
_SUM_FRACTION = 7
# Bits of an entry where none are chosen.
_USUAL_WIDTH = 18
_LARGEST_TABLE_BITS = 14


def softmax_types(classes: int, backend: str) -> dict[str, FixedType]:
    """Role to type of the tables and of the sum of a softmax of `classes` classes, for any input type.

    Empty for a backend with another softmax, which keeps hls4ml's types.
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
    """The signed type that holds all values of `kind` and has the bits that Quartus's softmax needs for `BOUND`."""
    if not kind.signed:
        kind = replace(kind, width=kind.width + 1, integer=kind.integer + 1, signed=True)
    # A distance saturates at the end of the integer bits; the exponential of -16 is below the table's last place.
    integer = max(kind.integer, _DISTANCE.integer + 1)
    return FixedType(
        max(integer + kind.fraction, _address_bits(integer, kind.fraction, integer_bits(classes)) + 1),
        integer,
        True,
        kind.rounding,
        kind.overflow,
    )


def _address_bits(integer: int, fraction: int, sum_integer: int) -> int:
    """The address bits of both tables on Quartus: distances to 1/128, or to the input's last place, sums to 1/256."""
    return max(integer - 1 + min(max(fraction, 0), _SUM_FRACTION), sum_integer + _SUM_FRACTION + 1)


def softmax_table_sizes(types: Mapping[str, FixedType], size: int, source: FixedType, backend: str) -> dict[str, Any]:
    """`table_size`, `exp_table_size` and `inverse_table_size` of a softmax with `types`, as far as it has them.

    Args:
        types: types of the layer, by role.
        size: the number of entries that both tables have where nothing else is said.
        source: type of the layer's input.
        backend: the backend whose templates address the tables.
    """
    if "inp_norm" in types:
        return {
            "table_size": size,
            "exp_table_size": 1 << min(types["inp_norm"].width, _LARGEST_TABLE_BITS),
            "inverse_table_size": 1 << min(types["inv_inp"].width, _LARGEST_TABLE_BITS),
        }
    # A table has no more entries than the bits that address it tell apart; Quartus leaves out the sign.
    bits = min(source.width, types["inv_table"].width if "inv_table" in types else _USUAL_WIDTH)
    return {"table_size": min(size, 1 << (bits - (backend == "Quartus")))}


def quartus_table_size(name: str, types: Mapping[str, FixedType], source: FixedType) -> int:
    """The number of entries that both tables of softmax `name` need on Quartus for `BOUND`.

    Args:
        name: name of the layer.
        types: types of the layer, by role.
        source: type of its input.

    Raises:
        HlsError: no size is enough for inputs of type `source`; the message names a type that fits.
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
