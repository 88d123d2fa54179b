"""What the module of a layer is made of."""

from __future__ import annotations

from collections.abc import Sequence

from fpgaprune.estimate.verilog.datapaths import Counts, Needed, count_datapath
from fpgaprune.estimate.verilog.modules import count_gather, count_instance, count_signed_accumulate, count_window
from fpgaprune.rtl import CONTROLS, Instance, LayerHardware, Looped, Part, Pipeline, SerialSums, SerialTrees

# Modules that move values from place to place; those of which nothing is read need no registers.
_SHIFTING = {"fp_window": count_window, "fp_gather": count_gather}


def count_layer(layer: LayerHardware) -> Counts:
    """Count the quantities of hardware of `layer`, by name."""
    found = Counts()
    for row in (*layer.rows, layer.parts):
        _count_row(row, found)
    if layer.meeting is not None:
        found.more(count_instance(layer.meeting))
    return found


# Bits that are read of each value, and how many of the lowest ones are not.
_Ends = list[tuple[int, int]]


def _count_row(row: Sequence[Part], found: Counts, ends: _Ends | None = None) -> _Ends:
    """Count the parts from the last to the first: what a part needs follows from what reads it.

    Args:
        row: the parts.
        found: gets what they take.
        ends: what is read of each value that leaves, if that is known.

    Returns:
        What is read of each value that comes in; empty if that is not known.
    """
    reader: list[bool] = []
    ends = ends or []
    for place in range(len(row) - 1, -1, -1):
        part = row[place]
        if isinstance(part, Pipeline):
            needed = Needed.of(part, ends)
            found.more(count_datapath(part, needed, _datapath(row[:place][::-1])))
            ends = needed.ends(part)
            reader = [bits > 0 for bits, _ in ends]
        elif isinstance(part, Instance):
            before = row[place - 1] if place else None
            if part.module in _SHIFTING:
                found.more(_shifting(part, reader))
            elif part.module == "fp_accumulate" and isinstance(before, Pipeline) and _is_signed(before):
                found.more(count_signed_accumulate(part))
            else:
                found.more(count_instance(part))
            if part.module not in CONTROLS:
                ends = []
        elif isinstance(part, Looped):
            found.more(count_instance(part.module))
            # The last of the values that a new state is made of is the state before.
            _count_row(part.sums, found, _count_row(part.state, found)[:-1])
            ends = []
        else:
            found.more(_serial(part))
            ends = []
            reader = list(part.used) if isinstance(part, SerialTrees) else [n in part.stage for n in range(part.lanes)]
    return ends


def _is_signed(path: Pipeline) -> bool:
    return any(path.circuit.nodes[place].low < 0 for place, _ in path.circuit.outputs)


def _datapath(parts: Sequence[Part]) -> Pipeline | None:
    """Return the first of `parts` that is a datapath, with nothing but control before it."""
    for part in parts:
        if not isinstance(part, Instance):
            return part if isinstance(part, Pipeline) else None
        if part.module not in CONTROLS:
            return None
    return None


def _shifting(part: Instance, used: Sequence[bool]) -> Counts:
    """Count a window or gathered beats of which only the values `used` are read."""
    places = part["BEATS"] if part.module == "fp_gather" else part["KH"] * part["KW"]
    lanes, bits = len(used), part["WIDTH"] * places
    if not lanes or lanes % places or bits % lanes:
        return count_instance(part)
    return _SHIFTING[part.module](part, used, bits // lanes)


def _serial(sums: SerialSums | SerialTrees) -> Counts:
    if isinstance(sums, SerialSums):
        inputs = sum(stream < sums.lanes for stream in sums.stage)
        words, kept = len(sums.words), float(sum(sums.later.values()))
    else:
        inputs, words, kept = sum(sums.used), sums.words, sums.kept_bits
    return Counts(
        {
            "serial_adder": sums.count,
            "serial_input_bit": inputs * sums.width,
            "serial_kept": kept,
            "register": words * sums.bits,
        }
    )


def adders_of(layer: LayerHardware) -> int | None:
    """Count the additions of a layer's weighted sums; None where it has none."""
    found = [part.count for part in layer.parts if isinstance(part, SerialSums | SerialTrees)]
    found += [part.trees.adders for part in layer.parts if isinstance(part, Pipeline) and part.trees]
    return round(sum(found)) if found else None
