"""`Datapath`: what a layer computes on the values of a stream's beats, as circuits that join one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from fpgaprune.rtl.bus import Lane
from fpgaprune.rtl.circuit import Circuit
from fpgaprune.rtl.links import Computation, Link, Module, SerialTrees, Stream, Trees
from fpgaprune.rtl.node import width_of
from fpgaprune.rtl.number import Number
from fpgaprune.rtl.serial import SerialSums
from fpgaprune.values import FixedType


@dataclass
class Datapath:
    """Modules in series that compute, and the stream that leaves the last one.

    Attributes:
        stream: the stream that leaves.
        links: the modules, first to last.
        held: beats that all modules together can hold, a measure of delay.
    """

    stream: Stream
    links: list[Link] = field(default_factory=list)
    held: int = 0

    def compute(
        self, role: str, function: Callable[[list[Number]], list[Number]], kind: FixedType | None = None
    ) -> None:
        """Apply `function` to the values of each beat; they get the type `kind`, else a signed one that just fits."""
        circuit, values = self._values()
        self._computed(role, circuit, function(values), 1, kind)

    def compute_numbered(
        self,
        role: str,
        function: Callable[[list[Number], Number], list[Number]],
        kind: FixedType | None = None,
        period: int | None = None,
    ) -> None:
        """Compute as `compute`, but `function` also gets the beat's number in its sample, or in each `period` beats."""
        s = self.stream
        period = period or s.beats
        bits = max(1, (period - 1).bit_length())
        self.links.append(Module.of("fp_sequence", s.bits, s.bits + bits, WIDTH=s.bits, BEATS=period, BITS=bits))
        circuit = Circuit()
        values = self._inputs(circuit, s.lanes)
        number = Number(circuit, circuit.input(bits, False, 0, period - 1), 0)
        self._computed(role, circuit, function(values, number), 1, kind)

    def compute_lanes(self, role: str, function: Callable[[Number], Number], kind: FixedType | None = None) -> None:
        """Apply `function` to each value."""
        self.unpack()
        if self._last() is not None:
            self.compute(role, lambda values: [function(value) for value in values], kind)
            return
        circuit = Circuit()
        self._computed(role, circuit, [function(self._inputs(circuit, 1)[0])], self.stream.lanes, kind)

    def compute_serial(
        self, sums: SerialSums, finish: Callable[[list[tuple[Number, bool]]], list[Number]], kind: FixedType
    ) -> None:
        """Apply `finish` to the `sums` of each beat, as values of `kind`; a flag says which sums come negated."""
        s = self.stream
        self.links.append(sums)
        self.held += 1
        low, high = -(1 << (sums.bits - 1)), (1 << (sums.bits - 1)) - 1
        self.stream = replace(s, lanes=len(sums.words), width=sums.bits, signed=True, low=low, high=high)
        circuit = Circuit()
        words = {}
        for stream in sums.words:
            # If only the lowest bits of a sum are made, the word can be any number of so many bits.
            bounds = sums.bounds[stream] if width_of(*sums.bounds[stream]) <= sums.bits else (low, high)
            words[stream] = Number(circuit, circuit.input(sums.bits, True, *bounds), s.fraction)
        zero = Number.constant(circuit, 0, s.fraction)
        totals = [
            (words[leaving.stream].shifted(leaving.exponent) if leaving.stream >= 0 else zero, leaving.negate)
            for leaving in sums.exits
        ]
        self._computed("finish", circuit, finish(totals), 1, kind)

    def compute_counted(
        self, sums: Trees | SerialTrees, finish: Callable[[list[Number]], list[Number]], kind: FixedType
    ) -> None:
        """Compute as `compute` or `compute_serial`, with `sums` whose adders were counted, not made."""
        circuit, fraction = Circuit(), self.stream.fraction
        trees = sums if isinstance(sums, Trees) else None
        if isinstance(sums, SerialTrees):
            self.links.append(sums)
            self.held += 1
        totals = []
        for leaving in sums.exits:
            place = circuit.const(0)
            if leaving is not None:
                word = circuit.input(width_of(leaving.low, leaving.high), True, leaving.low, leaving.high)
                place = circuit.shl(word, leaving.exponent)
            totals.append(Number(circuit, place, fraction))
        self._computed("sums" if trees else "finish", circuit, finish(totals), 1, kind, trees)

    def assign(self, kind: FixedType) -> None:
        """Assign each value to a variable of type `kind`."""
        self.compute_lanes("cast", lambda x: x.into(kind), kind)

    def cast(self, types: Sequence[FixedType | None], result: FixedType) -> None:
        """Assign each value of a beat to its own one of `types`; if that is None, the value becomes zero."""

        def own(values: list[Number]) -> list[Number]:
            zero = Number.constant(values[0].circuit, 0, result.fraction)
            return [
                zero if kind is None else value.into(kind).at_fraction(result.fraction)
                for value, kind in zip(values, types, strict=True)
            ]

        circuit, values = self._values()
        self._computed("cast", circuit, own(values), 1, result)

    def widened(self, width: int) -> None:
        """Give each value `width` bits, signed, which must not be fewer than it has."""
        self.unpack()
        s = self.stream
        if s.signed and s.width == width:
            return
        circuit = Circuit()
        circuit.output(circuit.input(s.width, s.signed, s.low, s.high), width)
        self.links.append(Computation("widen", circuit, s.lanes, s.beats))
        self.stream = replace(s, width=width, signed=True)

    def pack(self) -> None:
        """Give each value of a beat only the bits that its bounds need, without bits that are always zero."""
        s = self.stream
        if s.each is None or s.packed or len(s.each) != s.lanes:
            return
        circuit, values = self._values()
        for value, lane in zip(values, s.each, strict=True):
            if lane.width:
                circuit.output(circuit.shr(value.place, lane.zeros), lane.width)
        if circuit.outputs:
            self._append("pack", circuit)
            self.stream = replace(s, packed=True)

    def unpack(self) -> None:
        """Give all values the same number of bits."""
        s = self.stream
        if s.packed:
            self.compute("unpack", lambda values: values, s.kind())
            self.stream = replace(self.stream, each=s.each)

    def _last(self) -> Computation | None:
        """Return the last link, if it computes the values that leave; what follows then joins its circuit."""
        last = self.links[-1] if self.links else None
        if not isinstance(last, Computation) or last.copies > 1 or self.stream.packed:
            return None
        return last

    def _values(self) -> tuple[Circuit, list[Number]]:
        """Return a circuit to go on with, and the values of a beat in it."""
        last = self._last()
        if last is None:
            circuit = Circuit()
            return circuit, self._inputs(circuit, self.stream.lanes)
        circuit = last.circuit.continued()
        return circuit, [Number(circuit, place, self.stream.fraction) for place, _ in last.circuit.outputs]

    def _append(self, role: str, circuit: Circuit, copies: int = 1, trees: Trees | None = None) -> None:
        """End the chain in `circuit`, in the place of the circuit that it goes on with."""
        last = self._last()
        if last is not None and copies == 1 and trees is None:
            self.links[-1] = replace(last, circuit=circuit)
            return
        self.links.append(Computation(role, circuit, copies, self.stream.beats, trees))
        self.held += 1

    def _inputs(self, circuit: Circuit, count: int) -> list[Number]:
        s = self.stream
        if s.each is None or len(s.each) != count:
            return [Number(circuit, circuit.input(s.width, s.signed, s.low, s.high), s.fraction) for _ in range(count)]
        return [Number(circuit, self._input(circuit, lane), s.fraction) for lane in s.each]

    def _input(self, circuit: Circuit, lane: Lane) -> int:
        s = self.stream
        if not s.packed:
            whole = circuit.input(s.width, s.signed, lane.low, lane.high)
            return circuit.shl(circuit.shr(whole, lane.zeros), lane.zeros)
        if not lane.width:
            return circuit.const(0)
        bits = circuit.input(lane.width, lane.signed, lane.low >> lane.zeros, lane.high >> lane.zeros)
        return circuit.shl(bits, lane.zeros)

    def _computed(
        self,
        role: str,
        circuit: Circuit,
        results: Sequence[Number],
        copies: int,
        kind: FixedType | None,
        trees: Trees | None = None,
    ) -> None:
        s = self.stream
        low, high = min(r.low for r in results), max(r.high for r in results)
        width = kind.width if kind else max(r.node.width for r in results)
        after = replace(
            s,
            lanes=copies * len(results),
            width=width,
            signed=kind.signed if kind else True,
            fraction=results[0].fraction,
            low=low,
            high=high,
            each=tuple(_lane(r) for r in results) if copies == 1 else None,
            packed=False,
        )
        last = self._last()
        before = range(len(circuit.inputs)) if last is None else [place for place, _ in last.circuit.outputs]
        same = [r.place for r in results] == list(before)
        if not trees and same and width == s.width and after.signed == s.signed and not s.packed:
            self.stream = replace(after, each=s.each)
            return
        for result in results:
            circuit.output(result.place, width)
        self._append(role, circuit, copies, trees)
        self.stream = after


def _lane(value: Number) -> Lane:
    """Return the bounds of a value that leaves, and how many of its lowest bits are always zero."""
    node = value.node
    return Lane(value.low, value.high, node.params[0] if node.op == "shl" else 0)
