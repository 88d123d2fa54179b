"""`Chain`: what a layer does to a stream, as modules in series that pass beats on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fpgaprune.rtl.bus import Bus, Lane
from fpgaprune.rtl.circuit import Circuit, width_of
from fpgaprune.rtl.links import Computation, Link, Module, Need, SerialTrees, Stream, Trees
from fpgaprune.rtl.number import Number
from fpgaprune.rtl.serial import SerialSums
from fpgaprune.values import FixedType

# The readers of a window with more bits are all over the device, so a register stands between its taps and them.
_NEAR_BITS = 512


@dataclass
class Chain:
    """Modules in series, and the stream that leaves the last one.

    Attributes:
        stream: the stream that leaves.
        need: for each beat that leaves, how many beats must have come in before.
        links: the modules, first to last.
        held: beats that all modules together can hold, a measure of delay.
        kept, dropped: multiplications by constants, those computed and those saved by zeros; None if there are none.
        reads: what the sums read that are made at once or bit by bit; None if there are none.
        notes: remarks for those who read the layer's Verilog.
    """

    stream: Stream
    need: Need
    links: list[Link] = field(default_factory=list)
    held: int = 0
    kept: int | None = None
    dropped: int | None = None
    reads: Bus | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, stream: Stream) -> Chain:
        """A chain without modules: `stream` leaves as it comes."""
        return cls(stream, np.arange(1, stream.beats + 1))

    def register(self) -> None:
        """End the chain in a register, so that no path runs from the modules before it to those behind it."""
        self.module("fp_register", self.stream, (), self.need, 2)

    def queue(self, depth: int) -> None:
        """End the chain in a queue of `depth` beats, at least two; it cuts paths as a register does."""
        self.module("fp_fifo", self.stream, (("DEPTH", max(depth, 2)),), self.need, depth)

    def relaid(self, lanes: int) -> None:
        """Give each beat `lanes` values."""
        have = self.stream.lanes
        if lanes % have == 0:
            self.gather(lanes // have)
        elif have % lanes == 0:
            self.scatter(have // lanes)
        else:
            self.gather(self.stream.beats)
            self.scatter(self.stream.lanes // lanes)

    def gather(self, count: int) -> None:
        """Join every `count` beats into one beat."""
        if count == 1:
            return
        s = self.stream
        after = replace(s, beats=s.beats // count, lanes=s.lanes * count, each=s.beside(count))
        self.module("fp_gather", after, (("BEATS", count),), self.need[count - 1 :: count], 1)

    def scatter(self, count: int) -> None:
        """Split every beat into `count` beats."""
        if count == 1:
            return
        self.unpack()
        s = replace(self.stream, each=None)
        after = replace(s, beats=s.beats * count, lanes=s.lanes // count)
        self.module("fp_scatter", after, (("BEATS", count),), np.repeat(self.need, count), count, width=after.bits)

    def fill(self, lanes: int) -> None:
        """Fill each beat up to `lanes` values with zeros behind its own."""
        count = lanes - self.stream.lanes
        if not count:
            return
        self.unpack()
        s = self.stream

        def filled(values: list[Number]) -> list[Number]:
            return values + [Number.constant(values[0].circuit, 0, s.fraction)] * count

        self.compute("fill", filled, s.kind())

    def repeat(self, count: int) -> None:
        """Send each beat `count` times."""
        after = replace(self.stream, beats=self.stream.beats * count)
        self.module("fp_repeat", after, (("BEATS", count),), np.repeat(self.need, count), 0)

    def image(self) -> tuple[int, int]:
        """Rows and columns of the image; from now on each beat is one pixel of it."""
        self.relaid(self.stream.shape[-1])
        return self.stream.sides

    def pixels(self) -> tuple[int, int, int]:
        """Rows and columns of the image, and beats of a pixel: one of all its values, or one for each value."""
        channels = self.stream.shape[-1]
        if self.stream.lanes != 1:
            self.relaid(channels)
        return *self.stream.sides, channels // self.stream.lanes

    def queue_rows(self, count: int, pixels: int) -> None:
        """So many rows of the image can wait; of an image that is one row, so many pixels."""
        rows, columns, beats = self.pixels()
        self.queue((min(rows, count) * columns if rows > 1 else min(columns, pixels)) * beats)

    def pad(self, sides: tuple[int, int, int, int], value: int) -> None:
        """Give the image a border of `value`, of `sides` (top, bottom, left, right) pixels."""
        if not any(sides):
            return
        self.unpack()
        rows, columns, beats = self.pixels()
        top, bottom, left, right = sides
        s = self.stream
        fill = "".join(format(value & ((1 << s.width) - 1), f"0{s.width}b") * s.lanes)
        high, wide = rows + top + bottom, columns + left + right
        after = replace(self._reshaped(high, wide, s.lanes * beats), beats=high * wide * beats, lanes=s.lanes)
        each = None
        if s.each and value == 0:
            each = tuple(Lane(min(lane.low, 0), max(lane.high, 0), lane.zeros) for lane in s.each)
        after = replace(after, low=min(s.low, value), high=max(s.high, value), each=each)
        inside = np.zeros((high, wide * beats), np.int64)
        inside[top : top + rows, left * beats : (left + columns) * beats] = 1
        need = self.need[np.maximum(np.cumsum(inside), 1) - 1]
        names = ("TOP", "BOTTOM", "LEFT", "RIGHT")
        border = (top, bottom, left * beats, right * beats)
        parameters = (("ROWS", rows), ("COLUMNS", columns * beats), *zip(names, border, strict=True))
        self.module("fp_pad", after, (*parameters, ("FILL", f"{s.bits}'h{int(fill, 2):x}")), need, 0)

    def crop(self, sides: tuple[int, int, int, int]) -> None:
        """Cut `sides` (top, bottom, left, right) pixels off the border of the image."""
        rows, columns = self.image()
        top, bottom, left, right = sides
        after = self._reshaped(rows - top - bottom, columns - left - right, self.stream.lanes)
        need = self.need.reshape(rows, columns)[top : rows - bottom, left : columns - right].reshape(-1)
        names = ("TOP", "BOTTOM", "LEFT", "RIGHT")
        parameters = (("ROWS", rows), ("COLUMNS", columns), *zip(names, sides, strict=True))
        self.module("fp_crop", after, parameters, need, 0)

    def upsample(self, factors: tuple[int, int]) -> None:
        """Repeat every pixel by (vertical, horizontal) `factors`."""
        rows, columns = self.image()
        after = self._reshaped(rows * factors[0], columns * factors[1], self.stream.lanes)
        # The first copy of a row waits pixel by pixel; the others begin when the whole row has come.
        pixels = self.need.reshape(rows, columns)
        first = np.repeat(pixels, factors[1], axis=1)
        again = np.repeat(pixels[:, -1:], columns * factors[1], axis=1)
        need = np.concatenate([first[:, None]] + [again[:, None]] * (factors[0] - 1), axis=1).reshape(-1)
        parameters = (("COLUMNS", columns), ("FY", factors[0]), ("FX", factors[1]))
        self.module("fp_upsample", after, parameters, need, 0)

    def window(
        self, size: tuple[int, int], stride: tuple[int, int], many_readers: bool = False, registered: bool = False
    ) -> None:
        """Make each beat a window of the image: its taps, row by row.

        A window of one pixel needs no module, unless it must be `registered`. Where each tap has `many_readers`, a
        register spreads a wide window.
        """
        rows, columns = self.image()
        if size == (1, 1) and stride == (1, 1) and not registered:
            return
        s = self.stream
        high, wide = (rows - size[0]) // stride[0] + 1, (columns - size[1]) // stride[1] + 1
        after = replace(self._reshaped(high, wide, s.lanes * size[0] * size[1]), each=s.beside(size[0] * size[1]))
        ends = self.need.reshape(rows, columns)[size[0] - 1 :: stride[0], size[1] - 1 :: stride[1]]
        numbers = (rows, columns, *size, *stride, int(many_readers and after.bits > _NEAR_BITS))
        parameters = tuple(zip(("ROWS", "COLUMNS", "KH", "KW", "SH", "SW", "SPREAD"), numbers, strict=True))
        self.module("fp_window", after, parameters, ends[:high, :wide].reshape(-1), 3)

    def accumulate(self) -> None:
        """Reduce each sample to one beat: the exact sum of its beats, lane by lane."""
        self.unpack()
        s = replace(self.stream, each=None)
        after = replace(s.summed(s.beats), beats=1)
        parameters = (("LANES", s.lanes), ("OUT_WIDTH", after.width), ("BEATS", s.beats))
        self.module("fp_accumulate", after, parameters, self.need[-1:], 1, width=s.width)

    def largest(self) -> None:
        """Reduce each sample to one beat: the largest of its beats, lane by lane."""
        self.unpack()
        s = self.stream
        parameters = (("LANES", s.lanes), ("BEATS", s.beats))
        self.module("fp_largest", replace(s, beats=1), parameters, self.need[-1:], 1, width=s.width)

    def compute(
        self,
        role: str,
        function: Callable[[list[Number]], list[Number]],
        kind: FixedType | None = None,
    ) -> None:
        """Apply `function` to the values of each beat; they get the type `kind`, else a signed one that just fits."""
        circuit, values = self._values()
        self._computed(role, circuit, function(values), 1, kind)

    def pace(self, size: tuple[int, int], stride: tuple[int, int], cycles: int) -> None:
        """Pixels that complete a window come at least `cycles` cycles apart."""
        rows, columns = self.image()
        names = ("ROWS", "COLUMNS", "KH", "KW", "SH", "SW", "CLOCKS")
        parameters = tuple(zip(names, (rows, columns, *size, *stride, cycles), strict=True))
        self.module("fp_pace", self.stream, parameters, self.need, 0)

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
        """As `compute` or `compute_serial`, of sums whose adders were counted."""
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

    def compute_numbered(
        self,
        role: str,
        function: Callable[[list[Number], Number], list[Number]],
        kind: FixedType | None = None,
        period: int | None = None,
    ) -> None:
        """As `compute`, but `function` also gets the number of the beat in its sample, or in every `period` beats."""
        s = self.stream
        period = period or s.beats
        bits = max(1, (period - 1).bit_length())
        numbered = Module("fp_sequence", _texts((("WIDTH", s.bits), ("BEATS", period), ("BITS", bits))), s.bits, 0)
        self.links.append(replace(numbered, after=s.bits + bits))
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

    def assign(self, kind: FixedType) -> None:
        """Assign each value to a variable of type `kind`."""
        self.compute_lanes("cast", lambda x: x.into(kind), kind)

    def widened(self, width: int) -> None:
        """Give each value `width` bits, signed, which must not be fewer than it has."""
        self.unpack()
        s = self.stream
        if s.signed and s.width == width:
            return
        circuit = Circuit()
        circuit.output(circuit.input(s.width, s.signed, s.low, s.high), width)
        self.links.append(Computation("widen", circuit, s.lanes))
        self.stream = replace(s, width=width, signed=True)

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

    def renamed(self, shape: tuple[int, ...]) -> None:
        """Read the same beats as a sample of another shape."""
        self.stream = replace(self.stream, shape=shape)

    def _last(self) -> Computation | None:
        """The last link, if it computes the values that leave; what follows then joins its circuit."""
        last = self.links[-1] if self.links else None
        if not isinstance(last, Computation) or last.copies > 1 or self.stream.packed:
            return None
        return last

    def _values(self) -> tuple[Circuit, list[Number]]:
        """A circuit to go on with, and the values of a beat in it."""
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
        self.links.append(Computation(role, circuit, copies, trees))
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

    def _reshaped(self, rows: int, columns: int, lanes: int) -> Stream:
        shape = (*(rows, columns)[3 - len(self.stream.shape) :], lanes)
        return replace(self.stream, shape=shape, beats=rows * columns, lanes=lanes)

    def module(
        self,
        name: str,
        after: Stream,
        parameters: Sequence[tuple[str, int | str]],
        need: Need,
        held: int,
        width: int | None = None,
    ) -> None:
        """End the chain in the module `name` of `hw/rtl`; its WIDTH is that of a beat unless `width` is given."""
        before = self.stream
        texts = _texts((("WIDTH", before.bits if width is None else width), *parameters))
        self.links.append(Module(name, texts, before.bits, after.bits))
        self.stream, self.need, self.held = after, need, self.held + held


def _texts(parameters: Sequence[tuple[str, int | str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in parameters)


def _lane(value: Number) -> Lane:
    """The bounds of a value that leaves, and how many of its lowest bits are always zero."""
    node = value.node
    return Lane(value.low, value.high, node.params[0] if node.op == "shl" else 0)
