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
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fpgaprune.backends import AP_BACKENDS
from fpgaprune.values import FixedType, integer_bits

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
    """Map role to type of the tables and of the sum of a softmax of `classes` classes, for any input type.

    Empty for a backend with another softmax, which keeps hls4ml's types.
    """
    integer = integer_bits(classes)
    if backend not in AP_BACKENDS:
        return {}
    return {
        "inp_norm": _DISTANCE,
        "exp_table": _ENTRY,
        "accum": FixedType(_ENTRY.fraction + integer, integer, False),
        "inv_inp": FixedType(min(integer + _SUM_FRACTION, _LARGEST_TABLE_BITS), integer, False, "RND", "SAT"),
        "inv_table": _ENTRY,
    }


def softmax_table_sizes(types: Mapping[str, FixedType], size: int, source: FixedType) -> dict[str, Any]:
    """Return a softmax's `table_size`, `exp_table_size` and `inverse_table_size`, as far as `types` has them.

    Args:
        types: types of the layer, by role.
        size: the number of entries that both tables have where nothing else is said.
        source: type of the layer's input.
    """
    if "inp_norm" in types:
        return {
            "table_size": size,
            "exp_table_size": 1 << min(types["inp_norm"].width, _LARGEST_TABLE_BITS),
            "inverse_table_size": 1 << min(types["inv_inp"].width, _LARGEST_TABLE_BITS),
        }
    # A table has no more entries than the bits that address it tell apart.
    bits = min(source.width, types["inv_table"].width if "inv_table" in types else _USUAL_WIDTH)
    return {"table_size": min(size, 1 << bits)}
