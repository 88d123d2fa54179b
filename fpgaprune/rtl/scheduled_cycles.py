"""Beats and cycles of a scheduled layer for one sample, by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Convolution, Design, LayerSpec, Pad, Pooling, Recurrent, VerilogLayout
from fpgaprune.rtl.scheduled import program_of
from fpgaprune.rtl.scheduled_sums import BEATS_FREE, LEAVES, SUMS_FREE, ScheduledSums


def pads(layer: LayerSpec) -> bool:
    """Return whether a layer puts values around its image."""
    return any(_sides(layer))


def _sides(layer: LayerSpec) -> tuple[int, int, int, int]:
    """Return the rows and columns that a layer puts around its image: top, bottom, left, right."""
    operation = layer.operation
    if isinstance(operation, Pad):
        return operation.sides
    window = operation.window if isinstance(operation, Convolution | Pooling) else None
    return window.pad if window is not None else (0, 0, 0, 0)


def padded_sides(design: Design, layer: LayerSpec) -> tuple[int, int]:
    """Return rows and columns of the image that a layer reads, with the border that it puts around it."""
    *positions, _ = design[layer.inputs[0]].output_shape
    rows, columns = (1, 1, *positions)[-2:]
    top, bottom, left, right = _sides(layer)
    return rows + top + bottom, columns + left + right


def most_beats(design: Design, layer: LayerSpec) -> int:
    """Return the most beats of a sample that pass through a layer one after another."""
    shapes = [layer.output_shape, *(design[name].output_shape for name in layer.inputs)]
    # What a layer of zeros hands on has its border already.
    top, bottom, left, right = (0, 0, 0, 0) if isinstance(layer.operation, Pad) else _sides(layer)
    found = 1
    for *positions, _ in shapes:
        if len(positions) == 2:
            positions = [positions[0] + top + bottom, positions[1] + left + right]
        elif positions:
            positions = [positions[0] + left + right]
        found = max(found, math.prod(positions))
    return found


# Samples that follow one another, beside those that fill the memories; the last two are as far apart as all later ones.
_SAMPLES = 3


def cycles_of(design: Design, layer: LayerSpec, layout: VerilogLayout) -> int:
    """Count a scheduled layer's cycles for a sample if it never waits for its values, and none of its sums waits.

    Its values come one a cycle, also those that complete no window. The places of a row of the image may come faster
    than its multipliers take them; what does not fit into its memory then holds all later values up.

    A recurrent layer takes more than the cycles of its sums, which are counted here: it also waits for its states.
    """
    weight = layer.weights["weight"]
    if isinstance(layer.operation, Recurrent):
        program = program_of(layer, layout.multipliers[layer.name])
        return design[layer.inputs[0]].output_shape[0] * (program.steps + len(program.turns))
    channels = weight.shape[-2]
    ends, beats = _ends(design, layer)
    # Neither the types of the values nor those of the sums take time.
    sums = ScheduledSums(
        program_of(layer, layout.multipliers[layer.name]),
        channels,
        width=1,
        signed=True,
        bits=1,
        places=len(ends),
        pause=(weight.shape[-3] - 1) * channels if isinstance(layer.operation, Convolution) else 0,
        together=2 if layer.name in layout.paired else 1,
        in_luts=layer.name in layout.in_luts,
    )
    buffers, turns, levels = sums.buffers, len(sums.program.turns), sums.levels + sums.product
    waits = _Waits(channels, beats, sums.together, sums.sides, buffers, sums.program.steps, turns, levels)
    return _interval(ends.tobytes(), waits)


def _ends(design: Design, layer: LayerSpec) -> tuple[NDArray[np.int64], int]:
    """Return for each place of a layer the number of its last beat, and the beats of a sample."""
    channels = layer.weights["weight"].shape[-2]
    rows, columns = padded_sides(design, layer)
    pixels = np.arange(np.prod(layer.output_shape[:-1], dtype=np.int64))
    if isinstance(layer.operation, Convolution):
        (high, wide), (down, across) = layer.operation.window.size, layer.operation.window.stride
        pixels = (np.arange(high - 1, rows, down)[:, None] * columns + np.arange(wide - 1, columns, across)).ravel()
        return (pixels + 1) * channels - 1, rows * columns * channels
    return (pixels + 1) * channels - 1, len(pixels) * channels


@dataclass(frozen=True)
class _Waits:
    """What decides when a group of places begins, and when it ends.

    Attributes:
        channels: beats of a place.
        beats: of a sample.
        together: places in a group.
        sides: groups whose beats are in memory.
        buffers: groups whose sums are under way.
        steps: cycles of a group.
        turns: cycles in which the sums of a place leave.
        levels: of the product and of the additions behind it.
    """

    channels: int
    beats: int
    together: int
    sides: int
    buffers: int
    steps: int
    turns: int
    levels: int


@lru_cache(maxsize=4096)
def _interval(last_beats: bytes, of: _Waits) -> int:
    """Count the cycles between two samples; the same layer is asked for in many layouts.

    A group of places begins when its beats have come, the steps of the group before are done, and there is a memory
    for its sums. Its beats come when there is a memory for them.

    Args:
        last_beats: the number of the last beat of each place, as an array of int64.
        of: the multipliers.
    """
    places = np.frombuffer(last_beats, np.int64)
    parts = [places[start : start + of.together] for start in range(0, len(places), of.together)]
    groups = [(int(part[0]) - of.channels + 1, int(part[-1]), len(part) * of.turns) for part in parts]
    begins: list[int] = []
    ends: list[int] = []
    held = 0
    for sample in range(_SAMPLES + max(of.sides, of.buffers) // len(groups)):
        for first, last, turns in groups:
            if len(begins) >= of.sides:
                held = max(held, begins[-of.sides] + of.steps + BEATS_FREE - first - sample * of.beats)
            begin = last + 1 + sample * of.beats + held
            if begins:
                begin = max(begin, begins[-1] + of.steps)
            if len(ends) >= of.buffers:
                begin = max(begin, ends[-of.buffers] - SUMS_FREE)
            leaves = begin + of.steps + of.levels + LEAVES
            begins.append(begin)
            ends.append((max(leaves, ends[-1]) if ends else leaves) + turns)
    return ends[-1] - ends[-1 - len(groups)]
