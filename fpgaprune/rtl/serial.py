"""`SerialSums`: weighted sums of numbers that come bit by bit, lowest bit first; an addition is one full adder.

A layer that has many cycles for each of its sums needs one full adder for an addition, not one for each bit. A delay of
one cycle is a factor of two. A sum takes a cycle for each of its bits, and one more in which the carries are cleared.
Source: Denyer and Renshaw, VLSI Signal Processing: A Bit-Serial Approach, 1985.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fpgaprune.rtl.adders import AdderGraph
from fpgaprune.rtl.node import width_of
from fpgaprune.rtl.pipelining import Lives, fewest_registers


@dataclass(frozen=True)
class SerialAdder:
    """`plain + (shifted << shift)`, or the difference if `subtract`, of two streams of bits."""

    plain: int
    shifted: int
    shift: int
    subtract: bool


@dataclass(frozen=True)
class SerialExit:
    """An output: `stream * 2 ** exponent`, times -1 if `negate`; a negative stream stands for the number 0."""

    stream: int
    exponent: int
    negate: bool


@dataclass(frozen=True)
class SerialSums:
    """Weighted sums of `lanes` numbers, computed bit by bit, and the cycle in which each stream begins.

    Streams 0 to `lanes` - 1 are the inputs; `adders` follow, each after its operands. The lowest bit of a stream comes
    `stage` + 1 cycles after the inputs are loaded.

    Attributes:
        lanes, width, signed: how many inputs there are, and the type of each.
        adders: the streams that are not inputs.
        exits: the outputs.
        bits: of each sum that leaves; the inputs can be loaded every `bits` + 1 cycles.
        bounds: smallest and largest value of each stream.
        stage: for each stream that is needed, when it begins.
        later: for each stream that is needed, for how many more cycles it is kept.
    """

    lanes: int
    width: int
    signed: bool
    adders: tuple[SerialAdder, ...]
    exits: tuple[SerialExit, ...]
    bits: int
    bounds: tuple[tuple[int, int], ...]
    stage: dict[int, int]
    later: dict[int, int]

    @classmethod
    def of(cls, graph: AdderGraph, lane: tuple[int, bool, int, int], wanted: int | None) -> SerialSums:
        """Return the sums of `graph`.

        Args:
            graph: adders of whole numbers.
            lane: bits, signedness and bounds of each input.
            wanted: how many lowest bits of each output are read; None if all are.
        """
        width, signed, low, high = lane
        build = _Build([(low, high)] * graph.inputs)
        nodes = [(place, 0, False) for place in range(graph.inputs)]
        nodes += [(-1, 0, False)] * len(graph.sums)
        for place, item in enumerate(graph.sums, start=graph.inputs):
            a = nodes[item.a] if item.a >= 0 else (-1, 0, False)
            b = nodes[item.b] if item.b >= 0 else (-1, 0, False)
            nodes[place] = build.sum((a[0], a[1] + item.p, a[2]), (b[0], b[1] + item.q, b[2] != item.subtract))
        exits = []
        for leaving in graph.exits:
            stream, exponent, negative = nodes[leaving.node] if leaving.node >= 0 else (-1, 0, False)
            exits.append(SerialExit(stream, exponent + leaving.shift, negative != leaving.negate))
        bits = 1
        for word in exits:
            if word.stream >= 0:
                have = width_of(*build.bounds[word.stream])
                bits = max(bits, have if wanted is None else min(have, wanted - word.exponent))
        stage, later = _stages(graph.inputs, build.adders, exits)
        adders, bounds = tuple(build.adders), tuple(build.bounds)
        return cls(graph.inputs, width, signed, adders, tuple(exits), bits, bounds, stage, later)

    @property
    def before(self) -> int:
        """Bits of the input stream."""
        return self.lanes * self.width

    @property
    def after(self) -> int:
        """Bits of the output stream: the sums of `words`, side by side."""
        return len(self.words) * self.bits

    @property
    def words(self) -> list[int]:
        """The streams that leave, each once."""
        return sorted({leaving.stream for leaving in self.exits if leaving.stream >= 0})

    @property
    def depth(self) -> int:
        """The latest stage of a stream."""
        return max(self.stage.values(), default=0)

    @property
    def cycles(self) -> int:
        """From the cycle in which the inputs are loaded until the sums stand side by side."""
        return self.depth + 1 + self.bits

    @property
    def period(self) -> int:
        """The fewest cycles between two loads."""
        return self.bits + 1

    def needed(self) -> list[int]:
        """Return the streams that an output needs, operands first."""
        return sorted(self.stage)

    def adder(self, stream: int) -> SerialAdder:
        """Return the adder that makes `stream`."""
        return self.adders[stream - self.lanes]

    @property
    def parallel_bits(self) -> int:
        """Bits of the adders that would make the same sums at once."""
        return sum(width_of(*self.bounds[stream]) for stream in self.stage if stream >= self.lanes)

    @property
    def count(self) -> int:
        """Adders that an output needs."""
        return sum(stream >= self.lanes for stream in self.stage)

    def luts(self) -> int:
        """Estimate 4-input LUTs: two for each adder, and one for each bit of each input that is loaded."""
        return 2 * self.count + self.width * (len(self.stage) - self.count)


# A node of a graph as (stream, exponent, negated): `stream * 2 ** exponent`, or minus that.
_Term = tuple[int, int, bool]


class _Build:
    """The streams that were made so far; equal streams are stored once."""

    def __init__(self, bounds: list[tuple[int, int]]) -> None:
        self.bounds = bounds
        self.lanes = len(bounds)
        self.adders: list[SerialAdder] = []
        self._known: dict[SerialAdder, int] = {}

    def sum(self, a: _Term, b: _Term) -> _Term:
        """Add `a` and `b`: the term that is shifted less keeps its sign, the other is added to it or subtracted."""
        if a[0] < 0 or b[0] < 0:
            return b if a[0] < 0 else a
        plain, shifted = sorted((a, b), key=lambda term: (term[1], term[2], term[0]))
        adder = SerialAdder(plain[0], shifted[0], shifted[1] - plain[1], plain[2] != shifted[2])
        if adder not in self._known:
            self._known[adder] = self.lanes + len(self.adders)
            self.adders.append(adder)
            (low, high), (small, large) = self.bounds[adder.plain], self.bounds[adder.shifted]
            small, large = (-large, -small) if adder.subtract else (small, large)
            self.bounds.append((low + (small << adder.shift), high + (large << adder.shift)))
        return self._known[adder], plain[1], plain[2]


def _stages(
    lanes: int, adders: Sequence[SerialAdder], exits: Sequence[SerialExit]
) -> tuple[dict[int, int], dict[int, int]]:
    """Find when each stream that an output needs is made, and how long it is kept, with the fewest registers."""
    leaving = {item.stream for item in exits if item.stream >= 0}
    needed = set(leaving)
    for place in range(len(adders) - 1, -1, -1):
        if place + lanes in needed:
            needed.update((adders[place].plain, adders[place].shifted))
    streams = sorted(needed)
    number = {stream: n for n, stream in enumerate(streams)}
    first = np.zeros(len(streams), np.int64)
    gaps, reads = [], []
    for n, stream in enumerate(streams):
        if stream < lanes:
            continue
        adder = adders[stream - lanes]
        # The shifted operand is read `shift` cycles after the other, so it may be made that much later.
        for operand, lag in ((number[adder.plain], 0), (number[adder.shifted], adder.shift)):
            first[n] = max(first[n], first[operand] + 1 - lag)
            gaps.append((operand, n, 1 - lag))
            reads.append((operand, n, lag))
    depth = int(first.max(initial=0))
    inputs = np.array([stream < lanes for stream in streams], np.bool_)
    lives = Lives(
        first,
        np.where(inputs, 0, depth),
        np.ones(len(streams), np.int64),
        np.array([stream in leaving for stream in streams], np.bool_),
        # A stream comes a cycle after its stage, so the outputs are read a cycle after the last stage.
        depth + 1,
        np.array(gaps, np.int64).reshape(-1, 3).T,
        np.array(reads, np.int64).reshape(-1, 3).T,
    )
    stage = fewest_registers(lives)
    later = lives.ends(stage) - stage - 1
    return dict(zip(streams, stage.tolist(), strict=True)), dict(zip(streams, later.tolist(), strict=True))
