"""How each module of `hw/rtl` passes beats on: when it offers them, and when it has room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeGuard

import numpy as np

from fpgaprune.estimate.verilog.loops import looped
from fpgaprune.estimate.verilog.passing import (
    NEVER,
    Cycles,
    Ints,
    Passing,
    Ticks,
    apart,
    by_sample,
    later,
    one_by_one,
    scheduled,
)
from fpgaprune.estimate.verilog.streams import Step, Stream, settled
from fpgaprune.rtl import CONTROLS, Instance, LayerHardware, Looped, Part, Pipeline, completing

# Passes forwards and backwards over one step of a loop, at most.
_PASSES = 300


def flows_of(layer: LayerHardware, beats: Mapping[str, int]) -> list[tuple[Passing, list[str], list[str]]]:
    """Return the parts of `layer` as flows, each with the names of the streams that it reads and that leave it."""
    found: list[tuple[Passing, list[str], list[str]]] = []
    if layer.parts and isinstance(layer.parts[0], Instance) and layer.parts[0].module == "fp_fork":
        return [(_fork(beats[layer.reads[0]]), list(layer.reads), list(layer.leaves))]
    rows = []
    for number, (name, row) in enumerate(zip(layer.reads, layer.rows, strict=True)):
        rows.append(_row(row, name, beats[name], f"{layer.leaves[0]}.{number}", "", found))
    name, count = rows[0]
    if layer.meeting is not None:
        flow = _meeting(layer.meeting, [beat for _, beat in rows])
        name, count = f"{layer.leaves[0]}.meeting", flow.beats[0]
        found.append((flow, [source for source, _ in rows], [name]))
    end, _ = _row(layer.parts, name, count, f"{layer.leaves[0]}.part", layer.leaves[0], found)
    if end != layer.leaves[0]:
        found.append((_wire(count), [end], [layer.leaves[0]]))
    return found


def _row(
    parts: tuple[Part, ...],
    name: str,
    beats: int,
    prefix: str,
    last: str,
    found: list[tuple[Passing, list[str], list[str]]],
) -> tuple[str, int]:
    """Append the flows of `parts` behind stream `name` to `found`; return name and beats of the last stream."""
    runs = _runs(parts)
    for number, run in enumerate(runs):
        flow = _flow(run, beats)
        beats = flow.beats[0]
        after = last if last and number == len(runs) - 1 else f"{prefix}{number}"
        found.append((flow, [name], [after]))
        name = after
    return name, beats


def _runs(parts: tuple[Part, ...]) -> list[list[Part]]:
    """Group the parts that pass beats on together: what a credit lets in, up to the queue, or an enable moves."""
    runs: list[list[Part]] = []
    for part in parts:
        head = runs[-1][0] if runs else None
        name = part.module if isinstance(part, Instance) else ""
        is_open = isinstance(head, Instance) and (
            (head.module == "fp_credit" and not _ends(runs[-1])) or (head.module in CONTROLS and len(runs[-1]) == 1)
        )
        if is_open and not (isinstance(head, Instance) and head.module in CONTROLS and name):
            runs[-1].append(part)
        elif not isinstance(part, Pipeline) or part.plan.depth:
            runs.append([part])
    return runs


def _ends(run: list[Part]) -> bool:
    return isinstance(run[-1], Instance) and run[-1].module == "fp_fifo"


def _flow(run: list[Part], beats: int) -> Passing:
    head = run[0]
    if isinstance(head, Looped):
        return _looped(head)
    if not isinstance(head, Instance):
        return _wire(beats)
    match head.module:
        case "fp_credit":
            return _credit(run, beats)
        case "fp_pipeline":
            return _pipeline(beats, head["DEPTH"])
        case "fp_settle":
            return _settle(beats, head["DEPTH"])
        case "fp_register":
            return Passing((beats,), lambda ins, _: [ins[0][1] + 1], lambda _, outs: [later(outs[0][1], 2) + 1])
        case "fp_fifo":
            return _fifo(beats, head["DEPTH"])
        case "fp_gather":
            return _gather(beats, head["BEATS"])
        case "fp_accumulate" | "fp_largest":
            return _gather(beats, head["BEATS"])
        case "fp_channel_window":
            return _channel_window(head)
        case "fp_pool":
            return _pool(head)
        case "fp_reduce":
            return _reduce(beats, head["BEATS"])
        case "fp_scatter":
            return _scatter(beats, head["BEATS"])
        case "fp_scheduled":
            return scheduled(head)
        case "fp_reverse":
            return _fifo(beats, beats, whole=True)
        case "fp_repeat":
            return _through(beats, np.repeat(np.arange(beats), head["BEATS"]))
        case "fp_pad":
            return _pad(head)
        case "fp_crop":
            return _crop(head)
        case "fp_upsample":
            return _again(head["COLUMNS"], head["FY"], head["FX"], beats)
        case "fp_transpose":
            return _again(head["COLUMNS"], head["PARTS"], 1, beats)
        case "fp_pace":
            return _pace(head, beats)
    return _wire(beats)


def _looped(part: Looped) -> Passing:
    """Return a loop, from the cycles in which one step alone passes its parts."""
    beats = part.module["INPUTS"] + part.module["UNITS"]
    first = busy = beats
    stream = Stream(np.arange(beats), beats)
    steps: list[Step] = []
    runs = [*_runs(part.sums), *_runs(part.state)]
    for run in runs:
        alone = [replace(one, parameters={**one.parameters, "PLACES": 1}) if _schedules(one) else one for one in run]
        flow = _flow(alone, beats)
        beats = flow.beats[0]
        before, stream = stream, Stream(np.zeros(beats, np.int64), beats)
        steps.append(Step(flow, [before], [stream]))
        busy = max([busy, beats, *(max(one["STEPS"], one["TURNS"]) for one in run if _schedules(one))])
    settled(steps, _PASSES, stops=True)
    for step, run in zip(steps, runs, strict=True):
        taken = step.reads[0].taken
        if any(_settles(one) for one in run) and taken.size > 1:
            span = int(taken[-1] - taken[0])
            busy = max(busy, span + -(-span // (taken.size - 1)))
    return looped(part.module, stream.offered - (first - 1), busy)


def _settles(part: Part) -> TypeGuard[Instance]:
    return isinstance(part, Instance) and part.module == "fp_settle"


def _schedules(part: Part) -> TypeGuard[Instance]:
    return isinstance(part, Instance) and part.module == "fp_scheduled"


def _wire(beats: int) -> Passing:
    """Return what computes without registers."""
    return _through(beats, np.arange(beats))


def _pipeline(beats: int, depth: int) -> Passing:
    """Model registers that all move while the last one is empty or leaves."""

    def offers(ins: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        ticks = Ticks(outs[0])
        return [ticks.cycles(ticks.before(ins[0][1]) + depth - 1) + 1]

    def takes(ins: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        ticks = Ticks(outs[0])
        return [np.maximum(ticks.cycles(ticks.before(ins[0][0])), later(outs[0][1], depth))]

    return Passing((beats,), offers, takes)


def _settle(beats: int, depth: int) -> Passing:
    """Model a module at whose input a beat stays until what is made of the beat leaves."""

    def offers(ins: list[Cycles], _: list[Cycles]) -> list[Ints]:
        return [apart(ins[0][0], np.full(ins[0][0].size, depth + 1)) + depth]

    return Passing((beats,), offers, lambda _, outs: [outs[0][1]])


def _fifo(beats: int, depth: int, whole: bool = False) -> Passing:
    """Model a queue; of a `whole` sample none leaves before its last beat has come."""

    def come(ins: list[Cycles]) -> Ints:
        return np.repeat(ins[0][1][beats - 1 :: beats], beats) if whole else ins[0][1]

    def takes(ins: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        return [later(one_by_one(np.maximum(come(ins) + 1, later(outs[0][1], 1))), depth) + 1]

    return Passing((beats,), lambda ins, _: [come(ins) + 2], takes)


def _gather(beats: int, count: int) -> Passing:
    return _kept(beats, np.arange(count - 1, beats, count))


def _pool(i: Instance) -> Passing:
    """Model pooling: a window leaves with its last pixel, beat by beat."""
    whole = np.zeros((i["ROWS"], i["COLUMNS"], i["CHANNELS"]), bool)
    whole[i["KH"] - 1 :: i["KH"], i["KW"] - 1 :: i["KW"]] = True
    return _kept(whole.size, np.flatnonzero(whole))


def _kept(beats: int, ends: Ints) -> Passing:
    """Model a register that holds what leaves after each of the beats `ends`, and makes the next beat wait."""

    def offers(ins: list[Cycles], _: list[Cycles]) -> list[Ints]:
        return [by_sample(ins[0][1], beats)[:, ends].reshape(-1) + 1]

    def takes(ins: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        room = np.full(ins[0][1].size + 1, NEVER)
        samples = np.arange(ins[0][1].size // beats)[:, None] * beats
        room[(samples + ends + 1).reshape(-1)] = outs[0][1]
        return [room[:-1]]

    return Passing((ends.size,), offers, takes)


def _reduce(beats: int, count: int) -> Passing:
    """Model a reduction: a pixel's values leave when all have come; the next pixel but one waits until then."""

    def offers(ins: list[Cycles], _: list[Cycles]) -> list[Ints]:
        return [np.repeat(ins[0][1][count - 1 :: count] + 2, count)]

    def takes(ins: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        begins = np.full(outs[0][1].size, NEVER)
        begins[::count] = later(outs[0][1], count + 1)[::count] + 1
        return [np.maximum(_fifo(beats, count + 1).takes(ins, outs)[0], begins)]

    return Passing((beats,), offers, takes)


def _scatter(beats: int, count: int) -> Passing:
    def takes(_: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        return [later(outs[0][1][count - 1 :: count], 1)]

    return Passing((beats * count,), lambda ins, _: [np.repeat(ins[0][1], count) + 1], takes)


def _through(beats: int, source: Ints) -> Passing:
    """Model wires: beat `j` is beat `source[j]` of the input, in its cycle, and is taken with its last copy."""
    size = source.size
    last = np.full(beats, -1)
    last[source] = np.arange(size)

    def offers(ins: list[Cycles], _: list[Cycles]) -> list[Ints]:
        return [by_sample(ins[0][0], beats)[:, source].reshape(-1)]

    def takes(_: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        room = by_sample(outs[0][1], size)[:, last]
        return [np.where(last >= 0, room, NEVER).reshape(-1)]

    return Passing((size,), offers, takes)


def _channel_window(i: Instance) -> Passing:
    """Return what completes a window leaves with it; the rest is taken at once."""
    ends = np.flatnonzero(np.repeat(completing(i.__getitem__), i["CHANNELS"]))
    return _through(i["ROWS"] * i["COLUMNS"] * i["CHANNELS"], ends)


def _pad(i: Instance) -> Passing:
    """Model padding, whose values come in cycles of their own; an image's first ones wait for its first pixel."""
    rows, columns = i["ROWS"], i["COLUMNS"]
    inside = np.zeros((i["TOP"] + rows + i["BOTTOM"], i["LEFT"] + columns + i["RIGHT"]), bool)
    inside[i["TOP"] : i["TOP"] + rows, i["LEFT"] : i["LEFT"] + columns] = True
    places = np.flatnonzero(inside)
    size, beats = inside.size, rows * columns

    def offers(ins: list[Cycles], _: list[Cycles]) -> list[Ints]:
        offered = by_sample(ins[0][0], beats)
        found = np.full((len(offered), size), NEVER)
        found[:, 0] = offered[:, 0]
        found[:, places] = offered
        return [found.reshape(-1)]

    def takes(_: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        return [by_sample(outs[0][1], size)[:, places].reshape(-1)]

    return Passing((size,), offers, takes)


def _crop(i: Instance) -> Passing:
    inside = np.zeros((i["ROWS"], i["COLUMNS"]), bool)
    inside[i["TOP"] : i["ROWS"] - i["BOTTOM"], i["LEFT"] : i["COLUMNS"] - i["RIGHT"]] = True
    return _through(inside.size, np.flatnonzero(inside))


def _again(columns: int, high: int, wide: int, beats: int) -> Passing:
    """Model rows that leave `high` times: the first time with their pixels, then from a memory, one in each cycle."""
    rows = beats // columns
    fresh = np.zeros((rows, high, columns * wide), bool)
    fresh[:, 0] = True
    places, size = np.flatnonzero(fresh), fresh.size

    def offers(ins: list[Cycles], _: list[Cycles]) -> list[Ints]:
        offered = np.repeat(by_sample(ins[0][0], beats), wide, axis=1)
        found = np.full((len(offered), size), NEVER)
        found[:, places] = offered
        return [found.reshape(-1)]

    def takes(_: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        return [by_sample(outs[0][1], size)[:, places][:, wide - 1 :: wide].reshape(-1)]

    return Passing((size,), offers, takes)


def _pace(i: Instance, beats: int) -> Passing:
    whole, apart = completing(i.__getitem__), i["CLOCKS"]

    def offers(ins: list[Cycles], _: list[Cycles]) -> list[Ints]:
        marks = np.flatnonzero(np.tile(whole, len(ins[0][0]) // beats))
        found = ins[0][0].copy()
        # A cycle for every pixel between two windows, or as many as they are to be apart.
        steps = np.maximum(np.diff(marks, prepend=marks[:1]), apart)
        base = np.cumsum(steps) - steps[:1]
        found = one_by_one(found)
        shifted = np.maximum.accumulate(found[marks] - base) + base
        found[marks] = np.maximum(found[marks], shifted)
        return [found]

    return Passing((beats,), offers, lambda _, outs: [outs[0][1]])


def _credit(run: list[Part], beats: int) -> Passing:
    """Model a window, computations that never wait, and a queue behind them; beats come in while there is room."""
    window = next((part for part in run if isinstance(part, Instance) and part.module == "fp_window"), None)
    credit = run[0]
    through = sum(
        part.plan.depth if isinstance(part, Pipeline) else part.cycles
        for part in run
        if not isinstance(part, Instance | Looped)
    )
    whole = np.ones(beats, bool) if window is None else completing(window.__getitem__)
    if window is not None:
        through += 2 + window["SPREAD"]
    room = credit["ROOM"] if isinstance(credit, Instance) else 1
    wholes = int(whole.sum())

    def offers(ins: list[Cycles], _: list[Cycles]) -> list[Ints]:
        return [ins[0][1][np.tile(whole, ins[0][1].size // beats)] + through + 2]

    def takes(ins: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        # What completes no window gives its place back at once.
        flags = np.tile(whole, ins[0][1].size // beats)
        before = np.cumsum(flags) - flags - room
        return [np.where(before >= 0, outs[0][1][np.maximum(before, 0)] + 1, NEVER)]

    return Passing((wholes,), offers, takes)


def _fork(beats: int) -> Passing:
    return Passing(
        (beats, beats), lambda ins, _: [ins[0][0], ins[0][0]], lambda _, outs: [np.maximum(outs[0][1], outs[1][1])]
    )


def _meeting(i: Instance, beats: list[int]) -> Passing:
    if i.module == "fp_join":
        return Passing(
            (beats[0],), lambda ins, _: [np.maximum(ins[0][0], ins[1][0])], lambda _, outs: [outs[0][1], outs[0][1]]
        )
    size = sum(beats)
    first = np.arange(size) % (i["BEATS_A"] + i["BEATS_B"]) < i["BEATS_A"]

    def offers(ins: list[Cycles], _: list[Cycles]) -> list[Ints]:
        found = np.zeros((len(ins[0][0]) // beats[0], size), np.int64)
        found[:, first], found[:, ~first] = (
            by_sample(cycles[0], count) for cycles, count in zip(ins, beats, strict=True)
        )
        return [found.reshape(-1)]

    def takes(_: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        out = by_sample(outs[0][1], size)
        return [out[:, first].reshape(-1), out[:, ~first].reshape(-1)]

    return Passing((size,), offers, takes)
