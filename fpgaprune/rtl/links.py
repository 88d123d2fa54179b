"""`Stream`, `Module`, `Computation`: what a layer's chain is made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.rtl.bus import Bus, Lane
from fpgaprune.rtl.circuit import Circuit
from fpgaprune.rtl.scheduled_sums import ScheduledSums
from fpgaprune.rtl.serial import SerialSums
from fpgaprune.values import FixedType

# Entry j: how many input beats must have come before output beat j leaves.
Need = NDArray[np.int64]


@dataclass(frozen=True)
class Stream:
    """A stream of beats between two modules.

    Attributes:
        shape: of one sample, channels last.
        beats: beats of a sample, position by position.
        lanes: values in one beat, value 0 in the lowest bits.
        width, signed, fraction: of each value.
        low, high: bounds of each raw value.
        each: closer bounds for each value of a beat; None if there are none.
        packed: whether each value takes only the bits that its entry of `each` needs, instead of `width`.
    """

    shape: tuple[int, ...]
    beats: int
    lanes: int
    width: int
    signed: bool
    fraction: int
    low: int
    high: int
    each: tuple[Lane, ...] | None = None
    packed: bool = False

    @classmethod
    def of(cls, shape: tuple[int, ...], kind: FixedType) -> Stream:
        """Return a stream of whole pixels of type `kind`."""
        low = -(1 << (kind.width - 1)) if kind.signed else 0
        return cls(shape, math.prod(shape[:-1]), shape[-1], kind.width, kind.signed, kind.fraction, low, kind.raw_max)

    @property
    def bits(self) -> int:
        """Width of the data bus."""
        return sum(lane.width for lane in self.each) if self.each and self.packed else self.lanes * self.width

    @property
    def sides(self) -> tuple[int, int]:
        """Rows and columns of the image; 1 where it has none."""
        rows, columns = (1, 1, *self.shape[:-1])[-2:]
        return rows, columns

    @property
    def bus(self) -> Bus:
        """The values of a beat."""
        lanes = self.each if self.each and len(self.each) == self.lanes else (Lane(self.low, self.high, 0),)
        return Bus(lanes, None if self.packed else self.width, self.signed)

    def summed(self, count: int) -> Stream:
        """Return the stream of sums of `count` values each: the same beats, with values wide enough."""
        low, high = self.low * count, self.high * count
        width = max(max(-low - 1, high).bit_length() + 1, self.width + 1)
        return replace(self, width=width, low=low, high=high)

    def beside(self, count: int) -> tuple[Lane, ...] | None:
        """Return `each` of a stream in which `count` of these beats are one beat."""
        return self.each and self.each * count

    def kind(self) -> FixedType:
        """Return the type of each value. A stream neither rounds nor overflows: ignore the modes of the type."""
        return FixedType(self.width, self.width - self.fraction, self.signed)


@dataclass(frozen=True)
class Module:
    """A module of `hw/rtl` in a chain.

    Attributes:
        name: of the module.
        parameters: by name.
        before, after: bits of data in and out.
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    before: int
    after: int

    @classmethod
    def of(cls, name: str, before: int, after: int, **parameters: int | str) -> Module:
        """Make module `name`, its parameters as numbers or text."""
        return cls(name, tuple((key, str(value)) for key, value in parameters.items()), before, after)


@dataclass(frozen=True)
class Counted:
    """A sum whose adders were counted: its odd part, between two bounds, times a power of two.

    Attributes:
        low, high, exponent: the bounds, and the power of two.
        waits: registers for each bit until the longest sum is done.
    """

    low: int
    high: int
    exponent: int
    waits: float = 0.0


@dataclass(frozen=True)
class Trees:
    """Weighted sums whose adders were counted, and not made: enough for a price.

    Attributes:
        before: bits of data in.
        used: for each number that comes in, whether it has a weight.
        exits: the sums.
        depth: adders that a sum passes, at most.
        adders: how many.
        chain_bits: bits of their results that are no wires.
        pair_bits: those to which both operands have a bit.
        lone_bits: of differences, those to which only one has.
        differences: adders that subtract.
        register_bits: bits of all registers.
    """

    before: int
    used: tuple[bool, ...]
    exits: tuple[Counted | None, ...]
    depth: int
    adders: float
    chain_bits: float
    pair_bits: float
    lone_bits: float
    differences: float
    register_bits: float


@dataclass(frozen=True)
class SerialTrees:
    """Weighted sums bit by bit whose adders were counted, and not made.

    Attributes:
        before: bits of data in.
        used: for each number that comes in, whether it has a weight.
        exits: the sums.
        bits: of each sum.
        depth: adders that are passed one after another, at most.
        count: how many.
        width: bits of each of them.
        kept_bits: registers that hold a bit for later.
        parallel_bits: bits of the adders that would make the same sums at once.
    """

    before: int
    used: tuple[bool, ...]
    exits: tuple[Counted | None, ...]
    bits: int
    depth: int
    count: float
    width: int
    kept_bits: float
    parallel_bits: float

    @property
    def words(self) -> int:
        """Number of the sums that leave."""
        return sum(leaving is not None for leaving in self.exits)

    @property
    def after(self) -> int:
        """Bits of the module's output stream."""
        return self.words * self.bits

    @property
    def cycles(self) -> int:
        """From the cycle in which the inputs are loaded until the sums stand side by side."""
        return self.depth + 1 + self.bits

    @property
    def period(self) -> int:
        """The fewest cycles between two loads."""
        return self.bits + 1

    def luts(self) -> float:
        """Estimate 4-input LUTs as `SerialSums` does."""
        return 2 * self.count + self.width * sum(self.used)


@dataclass(frozen=True)
class Computation:
    """A circuit in a chain, `copies` times side by side.

    Attributes:
        role: what it computes, part of its module's name.
        circuit: what is computed.
        copies: how many circuits compute side by side.
        beats: of a sample.
        trees: counted sums that are the circuit's inputs; None where it reads what comes in.
    """

    role: str
    circuit: Circuit
    copies: int
    beats: int
    trees: Trees | None = None

    @property
    def before(self) -> int:
        """Bits of the module's input stream."""
        return self.trees.before if self.trees else self.copies * sum(width for width, _ in self.circuit.inputs)

    @property
    def after(self) -> int:
        """Bits of the module's output stream."""
        return self.copies * sum(width for _, width in self.circuit.outputs)


# Cycles of a step of a loop, at most, from when its sums are there until the next step has their unit's outputs.
AROUND = 64


@dataclass(frozen=True)
class Loop:
    """Links whose results come back to them a step later, in a chain.

    Attributes:
        module: of `hw/rtl`; it leads the data through the loop.
        sums: links from the inputs and the outputs of the step before to the sums of each unit.
        state: links from those and the state of the step before to the new ones.
    """

    module: Module
    sums: tuple[Link, ...]
    state: tuple[Link, ...]

    @property
    def before(self) -> int:
        """Bits of the input stream."""
        return self.module.before

    @property
    def after(self) -> int:
        """Bits of the output stream."""
        return self.module.after


Link = Module | Computation | SerialSums | SerialTrees | ScheduledSums | Loop


def queue_depth(through: int, window: Module | None, slack: int, apart: int = 1) -> int:
    """Return the depth in beats of the queue behind a pipeline of `through` cycles; its exit holds one beat more.

    No beat ever waits for room, if a beat enters in every cycle and one that completes a window in every `apart`
    cycles. `slack` more beats can wait for a reader that pauses. The depth is a power of two, as memories are.
    """
    return 1 << max(places(through, window, apart) + slack - 2, 1).bit_length()


def places(through: int, window: Module | None, apart: int = 1) -> int:
    """Return the most beats that occupy a place at one time, if samples follow one another without a gap.

    A beat occupies its place from when it enters until three cycles after it has left the pipeline; a pixel that
    completes no window gives its place back in the second cycle.
    """
    if apart > 1:
        # The beats that complete a window, and two more that do not.
        return -(-(through + 3) // apart) + 2
    if window is None:
        return through + 3
    whole = completing({name: int(value) for name, value in window.parameters}.__getitem__)
    return int((_latest(whole, through + 3) + _latest(~whole, 2)).max())


def completing(of: Callable[[str], int]) -> NDArray[np.bool_]:
    """Return for each pixel of an image whether it completes a window; `of` gives `fp_window`'s parameters."""
    rows, columns = (
        (np.arange(of(size)) >= of(side) - 1) & ((np.arange(of(size)) - of(side) + 1) % of(step) == 0)
        for size, side, step in (("ROWS", "KH", "SH"), ("COLUMNS", "KW", "SW"))
    )
    return np.outer(rows, columns).reshape(-1)


def _latest(flags: NDArray[np.bool_], count: int) -> NDArray[np.int64]:
    """Count how many of the last `count` of `flags`, repeated without end, are set at each place, its own included."""
    whole, rest = divmod(count, len(flags))
    sums = np.concatenate(([0], np.cumsum(np.concatenate((flags, flags)), dtype=np.int64)))
    ends = np.arange(len(flags), 2 * len(flags)) + 1
    return whole * int(flags.sum()) + sums[ends] - sums[ends - rest]
