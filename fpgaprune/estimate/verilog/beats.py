"""`timed`: in which cycle each beat of a sample is where, from the layout alone.

Every stream has for each beat the cycle in which it is offered and the cycle in which it is taken. A part offers what
it has made of what it took, and takes what it has room for. Both follow from what came before, so that passes forwards
and backwards over the design, until no cycle changes, find the cycles of hardware whose every input offers a beat in
every cycle and whose every output is taken at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from fpgaprune.estimate.verilog.flows import flows_of
from fpgaprune.estimate.verilog.passing import Cycles, Ints, Passing, one_by_one
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


@dataclass
class _Stream:
    """Beats of all samples.

    Attributes:
        made: from which cycle on it is there.
        offered, taken: in which cycle.
        room: from which cycle on the reader takes it.
        beats: of a sample.
        given: whether it enters the design.
        changes: how often its cycles have changed.
    """

    made: Ints
    beats: int
    given: bool = False
    room: Ints = field(init=False)
    offered: Ints = field(init=False)
    taken: Ints = field(init=False)
    changes: int = 0

    def __post_init__(self) -> None:
        self.offered = self.taken = one_by_one(self.made)
        self.room = np.zeros_like(self.taken)

    @property
    def cycles(self) -> Cycles:
        """In which each beat is offered, and in which it is taken."""
        return self.offered, self.taken

    def leaving(self, stops: bool) -> Cycles:
        """Cycles in which beats are offered and taken; a source that `stops` not counts as read at once."""
        return (self.offered if stops else self.taken), self.taken

    def settle(self) -> bool:
        """Whether the cycles change: a beat is offered when the one before it was taken, and taken if there is room."""
        taken = one_by_one(np.maximum(self.made, self.room))
        offered = self.made.copy()
        offered[1:] = np.maximum(offered[1:], taken[:-1] + 1)
        changed = not (np.array_equal(taken, self.taken) and np.array_equal(offered, self.offered))
        if changed:
            self.offered, self.taken = offered, taken
            self.changes += 1
        return changed


@dataclass
class _Step:
    """A part, and the streams that it reads and that leave it.

    Attributes:
        seen: how often these streams had changed when it last offered and took beats.
    """

    flow: Passing
    reads: list[_Stream]
    leaves: list[_Stream]
    seen: dict[str, list[int]] = field(default_factory=dict)

    def cycles(self, stops: bool) -> tuple[list[Cycles], list[Cycles]]:
        """Cycles of the beats of all input streams and of all output streams."""
        return [stream.cycles for stream in self.reads], [stream.leaving(stops) for stream in self.leaves]

    def is_new(self, what: str) -> bool:
        """Whether a stream changed since this was asked last."""
        changes = [stream.changes for stream in (*self.reads, *self.leaves)]
        before, self.seen[what] = self.seen.get(what), changes
        return changes != before


def timed(hardware: DesignHardware) -> Timed:
    """The cycles of `hardware` where every input offers a beat in every cycle and every output is taken at once."""
    streams = {
        name: _Stream(np.arange(_SAMPLES * beats, dtype=np.int64), beats, given=True) for name, beats in hardware.inputs
    }
    steps: list[_Step] = []
    ends: dict[str, str] = {}
    outputs: list[str] = []
    for layer in hardware.layers:
        if not layer.leaves:
            outputs += layer.reads
            continue
        for flow, reads, leaves in flows_of(layer, {name: streams[name].beats for name in layer.reads}):
            for name, beats in zip(leaves, flow.beats, strict=True):
                streams[name] = _Stream(np.zeros(_SAMPLES * beats, np.int64), beats)
            steps.append(_Step(flow, [streams[name] for name in reads], [streams[name] for name in leaves]))
        if layer.layer:
            ends[layer.layer] = layer.leaves[0]
    if not _settled(steps, _MOST_PASSES):
        # What waits for each other in this picture does not in the queues: there is room for all.
        for stream in streams.values():
            stream.room = np.zeros_like(stream.room)
            stream.made = stream.made if stream.given else np.zeros_like(stream.made)
            stream.settle()
        for step in steps:
            step.seen.clear()
        _forwards(steps, stops=False)
    elif (passes := _MOST_BEATS // sum(stream.taken.size for stream in streams.values())) > 0:
        rough = {name: copy(stream) for name, stream in streams.items()}
        if not _settled(steps, min(passes, _MOST_STOPS), stops=True):
            streams = rough
    last = [streams[name].taken.reshape(_SAMPLES, -1)[:, -1] for name in outputs]
    interval = max((int(row[-1] - row[-2]) for row in last), default=1)
    # A padded image takes its first pixel when the rows above it have gone.
    begin = min((int(streams[name].taken[0]) for name, _ in hardware.inputs), default=0)
    latency = max((int(row[0]) for row in last), default=begin) - begin
    ready = {layer: int(streams[name].taken[streams[name].beats - 1]) - begin for layer, name in ends.items()}
    return Timed(latency, interval, ready)


def _settled(steps: list[_Step], passes: int, stops: bool = False) -> bool:
    """Whether no cycle changes any more after at most so many passes forwards and backwards.

    If `stops`, registers that move together stop while a beat cannot leave them; else each beat moves by itself.
    """
    for step in steps:
        step.seen.clear()
    return any(not (_forwards(steps, stops) | _backwards(steps, stops)) for _ in range(passes))


def _forwards(steps: list[_Step], stops: bool) -> bool:
    """Whether a cycle changes when every part offers what it has made of what it took."""
    changed = False
    for step in steps:
        if step.is_new("offers"):
            for stream, cycles in zip(step.leaves, step.flow.offers(*step.cycles(stops)), strict=True):
                stream.made = np.maximum(cycles, 0)
                changed |= stream.settle()
    return changed


def _backwards(steps: list[_Step], stops: bool) -> bool:
    """Whether a cycle changes when every part takes what it has room for."""
    changed = False
    for step in reversed(steps):
        if step.is_new("takes"):
            for stream, cycles in zip(step.reads, step.flow.takes(*step.cycles(stops)), strict=True):
                stream.room = np.maximum(cycles, 0)
                changed |= stream.settle()
    return changed
