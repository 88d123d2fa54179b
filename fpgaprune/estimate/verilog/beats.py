"""`timed`: in which cycle each beat of a sample is where, from the layout alone.

Every stream has for each beat the cycle in which it is offered and the cycle in which it is taken. A part offers what
it has made of what it took, and takes what it has room for. Both follow from what came before, so that passes forwards
and backwards over the design, until no cycle changes, find the cycles of hardware whose every input offers a beat in
every cycle and whose every output is taken at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass

import numpy as np

from fpgaprune.estimate.verilog.flows import flows_of
from fpgaprune.estimate.verilog.streams import Step, Stream, forwards, settled
from fpgaprune.rtl import DesignHardware

# Samples that follow one another; the interval between the last two is that of all later ones.
_SAMPLES = 4
_MOST_PASSES = 600
# For the cycles in which registers stop together: passes, and beats in all of them, at most. That takes two seconds.
_MOST_STOPS, _MOST_BEATS = 1500, 20_000_000


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


def timed(hardware: DesignHardware) -> Timed:
    """Time `hardware` if every input offers a beat in every cycle and every output is taken at once."""
    streams = {
        name: Stream(np.arange(_SAMPLES * beats, dtype=np.int64), beats, given=True) for name, beats in hardware.inputs
    }
    steps: list[Step] = []
    ends: dict[str, str] = {}
    outputs: list[str] = []
    for layer in hardware.layers:
        if not layer.leaves:
            outputs += layer.reads
            continue
        for flow, reads, leaves in flows_of(layer, {name: streams[name].beats for name in layer.reads}):
            for name, beats in zip(leaves, flow.beats, strict=True):
                streams[name] = Stream(np.zeros(_SAMPLES * beats, np.int64), beats)
            steps.append(Step(flow, [streams[name] for name in reads], [streams[name] for name in leaves]))
        if layer.layer:
            ends[layer.layer] = layer.leaves[0]
    if not settled(steps, _MOST_PASSES):
        # What waits for each other in this picture does not in the queues: there is room for all.
        for stream in streams.values():
            stream.room = np.zeros_like(stream.room)
            stream.made = stream.made if stream.given else np.zeros_like(stream.made)
            stream.settle()
        for step in steps:
            step.seen.clear()
        forwards(steps, stops=False)
    elif (passes := _MOST_BEATS // sum(stream.taken.size for stream in streams.values())) > 0:
        rough = {name: copy(stream) for name, stream in streams.items()}
        if not settled(steps, min(passes, _MOST_STOPS), stops=True):
            streams = rough
    last = [streams[name].taken.reshape(_SAMPLES, -1)[:, -1] for name in outputs]
    interval = max((int(row[-1] - row[-2]) for row in last), default=1)
    # A padded image takes its first pixel when the rows above it have gone.
    begin = min((int(streams[name].taken[0]) for name, _ in hardware.inputs), default=0)
    latency = max((int(row[0]) for row in last), default=begin) - begin
    ready = {layer: int(streams[name].taken[streams[name].beats - 1]) - begin for layer, name in ends.items()}
    return Timed(latency, interval, ready)
