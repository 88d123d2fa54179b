"""Chooses how many entries the table of each activation has, and says what a table costs that is too small.

hls4ml takes the entry at or next to zero of an input, which its own 1,024 entries put off by 0.4 % (sigmoid) or 0.8 %
(tanh), always towards zero, however many bits the layers have; three layers of tanh add that up to 3 %. Here a table
has as many entries as its input and its result can tell apart, as far as the copies of it stay affordable.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from fpgaprune.backends import AP_BACKENDS
from fpgaprune.design import CENTRED, FUNCTIONS, USUAL_SIZE, ScalarFunction
from fpgaprune.errors import HlsError
from fpgaprune.lowering.layer_options import LayerOptions
from fpgaprune.lowering.recurrent_layers import RECURRENT, functions_of
from fpgaprune.network import activation_in, producer
from fpgaprune.values import Array, FixedType

_LARGEST = 1 << 14
# A template of ours holds its entries as text, of which g++ compiles a few hundred a second.
_LARGEST_OWN = 1 << 12
# Every number that a layer computes at once has a copy of its table; together they have at most so many entries.
_LARGEST_TOGETHER = 1 << 18


@dataclass(frozen=True)
class TableSizes:
    """The tables of a network.

    Attributes:
        entries: layer name to the number of entries of its table, where that is not hls4ml's own.
        notes: a line for each table whose steps cost more than rounding its result does.
    """

    entries: Mapping[str, int]
    notes: tuple[str, ...] = ()


def looked_up(layer: keras.Layer) -> ScalarFunction | None:
    """Return the function that `layer` of a folded model looks up in a table; None if it has no table of that kind."""
    known = activation_in(layer) if isinstance(layer, keras.layers.ELU | keras.layers.Activation) else None
    function = None if known is None else FUNCTIONS.get(known.name)
    return function if function is not None and function.table is not None else None


def entry_type(layer: keras.Layer, result: FixedType, usual: FixedType) -> FixedType:
    """Return the type of the entries of the table of `layer`: `usual`, unless `result` tells more numbers apart.

    Then it is the type of as many bits with the fewest left of the point that holds every entry. Where `usual` does not
    hold every entry, it is the type with as many bits more.
    """
    function = looked_up(layer)
    if function is None or function.table is None or function.values is None:
        return usual
    largest = float(abs(function.values(function.table.places(USUAL_SIZE))).max())
    held = FixedType.holding(largest, usual.width, True)
    if held.integer > usual.integer:
        return FixedType.holding(largest, held.integer + max(usual.fraction, result.fraction), True)
    return usual if result.lsb >= usual.lsb else held


def table_sizes(
    folded: keras.Model,
    types: Mapping[str, Mapping[str, FixedType]],
    options: Mapping[str, LayerOptions],
    backend: str,
    io_type: str,
) -> TableSizes:
    """Return the sizes of the tables of every layer of `folded`.

    Args:
        folded: the model from `prepare.fold`.
        types: layer name to role to type.
        options: layer name to the options that the user gave; its `table_size` is taken as it is.
        backend: hls4ml's backend; only the templates of Vitis and Vivado take any size.
        io_type: `io_parallel` or `io_stream`; it says how many numbers a layer computes at once.
    """
    entries: dict[str, int] = {}
    notes: list[str] = []
    for layer in folded.layers:
        given = options[layer.name].table_size if layer.name in options else None
        function = _coarsest(layer)
        if function is None or function.table is None:
            continue
        source, result = types[producer(layer.input).name]["result"], types[layer.name]["result"]
        # A recurrent layer looks sums up, which are finer than its input.
        source = types[layer.name]["accum"] if isinstance(layer, RECURRENT) else source
        needed = function.table.needed(source, result)
        most = _affordable(layer, function, backend, io_type)
        size = given or function.table.entries(source, result, most)
        if size != USUAL_SIZE:
            entries[layer.name] = size
        if size < needed:
            notes.append(_note(layer, function, size, needed, result, backend))
    return TableSizes(_one_size_each(folded, entries), tuple(notes))


def size_problems(network: Any, options: Mapping[str, LayerOptions], named: Collection[str], backend: str) -> list[str]:
    """Return a line for each layer whose `table_size` means nothing: it has no table, or the backend one size for all.

    Args:
        network: the folded model.
        options: layer name to the options that the user gave.
        named: the names and globs that the user wrote; a glob may cover layers without a table.
        backend: hls4ml's backend.
    """
    problems = []
    for layer in network.layers:
        size = options[layer.name].table_size if layer.name in options else None
        if size is None:
            continue
        if backend not in AP_BACKENDS:
            problems.append(
                f"layer {layer.name!r} has table_size {size}; the tables of backend {backend} have {USUAL_SIZE:,} "
                f"entries: leave it out, or choose backend {' or '.join(AP_BACKENDS[:2])}"
            )
        elif layer.name in named and _coarsest(layer) is None:
            tables = [other.name for other in network.layers if _coarsest(other) is not None]
            problems.append(
                f"layer {layer.name!r} has table_size {size} and no table; "
                + (f"these layers have one: {', '.join(tables)}" if tables else "no layer of the network has one")
            )
    return problems


def _coarsest(layer: keras.Layer) -> ScalarFunction | None:
    """Return the function that `layer` looks up; of the two of a recurrent layer that of the larger steps."""
    if not isinstance(layer, RECURRENT):
        return looked_up(layer)
    both = map(FUNCTIONS.get, functions_of(layer).values())
    tables = [(each.table.slope or 0.0, each) for each in both if each is not None and each.table is not None]
    return max(tables, key=lambda found: found[0])[1] if tables else None


def _affordable(layer: keras.Layer, function: ScalarFunction, backend: str, io_type: str) -> int:
    """Return the most entries that the table of `layer` may have."""
    if isinstance(layer, RECURRENT) or backend not in AP_BACKENDS:
        # Each gate of each unit has a copy, and hls4ml's other backends have ready-made tables.
        return USUAL_SIZE
    shape = layer.output.shape[1:]
    copies: int = shape[-1] if io_type == "io_stream" else math.prod(shape)
    most = min(_LARGEST_TOGETHER // copies, _LARGEST_OWN if function.has_exact_table else _LARGEST)
    return 1 << max(most.bit_length() - 1, 0)


def _one_size_each(folded: keras.Model, entries: Mapping[str, int]) -> dict[str, int]:
    """Give the layers of each function for which fpgaprune writes the one template their largest size in `entries`."""
    found = dict(entries)
    own: dict[str, list[str]] = {}
    for layer in folded.layers:
        function = looked_up(layer)
        if function is not None and function.has_exact_table:
            own.setdefault(function.name, []).append(layer.name)
    for names in own.values():
        largest = max(found.get(name, USUAL_SIZE) for name in names)
        found |= dict.fromkeys(names, largest) if largest > USUAL_SIZE else {}
    return found


def _note(layer: keras.Layer, function: ScalarFunction, size: int, needed: int, result: FixedType, backend: str) -> str:
    error = function.table.error(size, result) if function.table is not None else 0.0
    text = (
        f"layer {layer.name!r}: its table of {function.name} has {size:,} entries, so a value can be off by "
        f"{error:.2g}, and its result rounds to {result.lsb:.2g}"
    )
    return f"{text}; table_size = {needed} would be as fine" if backend in AP_BACKENDS else text


# One step of a table, which is also its error between its ends.
_STEP = 1 / 64


def require_within_tables(folded: keras.Model, observed: Mapping[str, Array]) -> None:
    """Check that no activation reads values beyond its table, where the template returns the last entry.

    Args:
        folded: the model from `prepare.fold`.
        observed: layer name to the layer's output for some data; other layers are skipped.

    Raises:
        HlsError: an activation does; the message gives the error and says what to do.
    """
    for layer in folded.layers:
        function = looked_up(layer)
        if function is None or function.table is None or function.values is None:
            continue
        values = observed.get(producer(layer.input).name)
        if values is None or not values.size:
            continue
        reach = float(function.table.reach)
        # Above the upper end of other tables, the template computes the function itself.
        ends = (-reach, reach if function.table.form == CENTRED else np.inf)
        seen = np.array([values.min(), values.max()], np.float64)
        off = np.abs(function.values(seen) - function.values(np.clip(seen, *ends)))
        if off.max() > _STEP:
            raise HlsError(
                f"layer {layer.name!r} is a {function.name} that reads numbers up to {abs(seen[off.argmax()]):.4g}; "
                f"its table ends at {reach:g}, so that the result would be off by {off.max():.2g}: scale what comes "
                "before it, or use relu"
            )
