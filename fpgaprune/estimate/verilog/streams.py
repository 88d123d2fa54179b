"""`Stream`, `Step`, `settled`: in which cycle each beat is offered and taken, from the parts that pass beats on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fpgaprune.estimate.verilog.passing import Cycles, Ints, Passing, one_by_one


@dataclass
class Stream:
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
        """Return the cycles in which beats are offered and taken; a source that does not stop is read at once."""
        return (self.offered if stops else self.taken), self.taken

    def settle(self) -> bool:
        """Return whether cycles change: a beat is offered when the one before is taken, and taken if there is room."""
        taken = one_by_one(np.maximum(self.made, self.room))
        offered = self.made.copy()
        offered[1:] = np.maximum(offered[1:], taken[:-1] + 1)
        changed = not (np.array_equal(taken, self.taken) and np.array_equal(offered, self.offered))
        if changed:
            self.offered, self.taken = offered, taken
            self.changes += 1
        return changed


@dataclass
class Step:
    """A part, and the streams that it reads and that leave it.

    Attributes:
        seen: how often these streams had changed when it last offered and took beats.
    """

    flow: Passing
    reads: list[Stream]
    leaves: list[Stream]
    seen: dict[str, list[int]] = field(default_factory=dict)

    def cycles(self, stops: bool) -> tuple[list[Cycles], list[Cycles]]:
        """Return the cycles of the beats of all input streams and of all output streams."""
        return [stream.cycles for stream in self.reads], [stream.leaving(stops) for stream in self.leaves]

    def is_new(self, what: str) -> bool:
        """Return whether a stream changed since this was asked last."""
        changes = [stream.changes for stream in (*self.reads, *self.leaves)]
        before, self.seen[what] = self.seen.get(what), changes
        return changes != before


def settled(steps: list[Step], passes: int, stops: bool = False) -> bool:
    """Return whether no cycle changes any more after at most so many passes forwards and backwards.

    If `stops`, registers that move together stop while a beat cannot leave them; else each beat moves by itself.
    """
    for step in steps:
        step.seen.clear()
    return any(not (forwards(steps, stops) | _backwards(steps, stops)) for _ in range(passes))


def forwards(steps: list[Step], stops: bool) -> bool:
    """Return whether a cycle changes when every part offers what it has made of what it took."""
    changed = False
    for step in steps:
        if step.is_new("offers"):
            for stream, cycles in zip(step.leaves, step.flow.offers(*step.cycles(stops)), strict=True):
                stream.made = np.maximum(cycles, 0)
                changed |= stream.settle()
    return changed


def _backwards(steps: list[Step], stops: bool) -> bool:
    """Return whether a cycle changes when every part takes what it has room for."""
    changed = False
    for step in reversed(steps):
        if step.is_new("takes"):
            for stream, cycles in zip(step.reads, step.flow.takes(*step.cycles(stops)), strict=True):
                stream.room = np.maximum(cycles, 0)
                changed |= stream.settle()
    return changed
