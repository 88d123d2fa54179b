"""`timed`: in which cycle each beat of a sample is where, from the layout alone.

Every stream has for each beat the cycle in which it is offered and the cycle in which it is taken. A part offers what
it has made of what it took, and takes what it has room for: both are largest of sums, so that passes forwards and
backwards over the design, until no cycle changes, find the cycles of hardware whose every input offers a beat in every
cycle and whose every output is taken at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fpgaprune.estimate.verilog.flows import flows_of
from fpgaprune.estimate.verilog.passing import NEVER, Ints, Passing, one_by_one
from fpgaprune.rtl import DesignHardware

# Samples that follow one another; the interval between the last two is that of all later ones.
_SAMPLES = 4
_MOST_PASSES = 600


@dataclass(frozen=True)
class Timed:
    """Cycles of a design.

    Attributes:
        latency: from the first beat in to the last beat out.
        interval: between two samples.
        ready: for each layer, from the first beat into the network until the layer's last beat leaves.
    """

    latency: int
    interval: int
    ready: Mapping[str, int]


@dataclass
class _Stream:
    """Beats of all samples.

    Attributes:
        offered, taken: in which cycle.
        room: from which cycle on the reader takes it.
        beats: of a sample.
        given: whether it enters the design.
    """

    offered: Ints
    taken: Ints
    room: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    beats: int = 1
    given: bool = False

    @classmethod
    def of(cls, offered: Ints, beats: int) -> _Stream:
        """Beats that are taken as soon as they are offered."""
        taken = one_by_one(offered)
        return cls(offered, taken, np.zeros_like(taken), beats)


def timed(hardware: DesignHardware) -> Timed:
    """The cycles of `hardware` where every input offers a beat in every cycle and every output is taken at once."""
    streams = {name: _Stream.of(np.arange(_SAMPLES * beats, dtype=np.int64), beats) for name, beats in hardware.inputs}
    for name, _ in hardware.inputs:
        streams[name].given = True
    steps: list[tuple[Passing, list[str], list[str]]] = []
    ends: dict[str, str] = {}
    outputs: list[str] = []
    for layer in hardware.layers:
        if not layer.leaves:
            outputs += layer.reads
            continue
        for flow, reads, leaves in flows_of(layer, {name: streams[name].beats for name in layer.reads}):
            for name, beats in zip(leaves, flow.beats, strict=True):
                streams[name] = _Stream.of(np.zeros(_SAMPLES * beats, np.int64), beats)
            steps.append((flow, reads, leaves))
        if layer.layer:
            ends[layer.layer] = layer.leaves[0]
    if not any(not _pass(steps, streams) for _ in range(_MOST_PASSES)):
        # What waits for each other in this picture does not in the queues: there is room for all.
        for stream in streams.values():
            stream.room = np.zeros_like(stream.room)
            stream.taken = one_by_one(stream.offered) if stream.given else np.zeros_like(stream.taken)
            stream.offered = stream.offered if stream.given else np.zeros_like(stream.offered)
        _pass(steps, streams, room=False)
    last = [streams[name].taken.reshape(_SAMPLES, -1)[:, -1] for name in outputs]
    interval = max((int(row[-1] - row[-2]) for row in last), default=1)
    # A padded image takes its first pixel when the rows above it have gone.
    begin = min((int(streams[name].taken[0]) for name, _ in hardware.inputs), default=0)
    latency = max((int(row[0]) for row in last), default=begin) - begin
    ready = {layer: int(streams[name].taken[streams[name].beats - 1]) - begin for layer, name in ends.items()}
    return Timed(latency, interval, ready)


def _pass(steps: list[tuple[Passing, list[str], list[str]]], streams: Mapping[str, _Stream], room: bool = True) -> bool:
    """Whether a cycle changed in one pass forwards and, if `room` counts, one backwards."""
    changed = False
    for flow, reads, leaves in steps:
        offered = flow.offers([(streams[name].offered, streams[name].taken) for name in reads])
        for name, cycles in zip(leaves, offered, strict=True):
            stream = streams[name]
            stream.offered = np.maximum(stream.offered, cycles)
            changed = _take(stream) or changed
    for flow, reads, leaves in reversed(steps) if room else ():
        places = flow.takes(
            [(streams[name].offered, streams[name].taken) for name in reads],
            [streams[name].taken for name in leaves],
        )
        for name, cycles in zip(reads, places, strict=True):
            stream = streams[name]
            stream.room = np.maximum(stream.room, np.where(cycles == NEVER, 0, cycles))
            changed = _take(stream) or changed
    return changed


def _take(stream: _Stream) -> bool:
    """Whether the cycles changed in which the beats are taken: when they are offered, and there is room."""
    taken = one_by_one(np.maximum(stream.offered, stream.room))
    if np.array_equal(taken, stream.taken):
        return False
    stream.taken = taken
    return True
