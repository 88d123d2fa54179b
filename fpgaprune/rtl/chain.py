"""`Chain`: what a layer does to a stream, as modules in series that move its beats and compute on them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from fpgaprune.rtl.bus import Bus, Lane
from fpgaprune.rtl.datapath import Datapath
from fpgaprune.rtl.links import Module, Need, Stream
from fpgaprune.rtl.number import Number

# The readers of a window with more bits are all over the device, so a register stands between its taps and them.
_NEAR_BITS = 512


@dataclass(kw_only=True)
class Chain(Datapath):
    """A datapath whose beats are also joined, split, delayed, repeated and left out.

    Attributes:
        need: for each beat that leaves, how many beats must have come in before.
        kept, dropped: multiplications by constants, those computed and those saved by zeros; None if there are none.
        reads: what the sums read that are made at once or bit by bit; None if there are none.
        notes: remarks for those who read the layer's Verilog.
    """

    need: Need
    kept: int | None = None
    dropped: int | None = None
    reads: Bus | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, stream: Stream) -> Chain:
        """Return a chain without modules: `stream` leaves as it comes."""
        return cls(stream, need=np.arange(1, stream.beats + 1))

    def module(
        self, name: str, after: Stream, need: Need, held: int, width: int | None = None, **parameters: int | str
    ) -> None:
        """End the chain in the module `name` of `hw/rtl`; its WIDTH is that of a beat unless `width` is given."""
        before = self.stream
        width = before.bits if width is None else width
        self.links.append(Module.of(name, before.bits, after.bits, WIDTH=width, **parameters))
        self.stream, self.need, self.held = after, need, self.held + held

    def register(self) -> None:
        """End the chain in a register, so that no path runs from the modules before it to those behind it."""
        self.module("fp_register", self.stream, self.need, 2)

    def queue(self, depth: int) -> None:
        """End the chain in a queue of `depth` beats, at least two; it cuts paths as a register does."""
        self.module("fp_fifo", self.stream, self.need, depth, DEPTH=max(depth, 2))

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
        self.module("fp_gather", after, self.need[count - 1 :: count], 1, BEATS=count)

    def scatter(self, count: int) -> None:
        """Split every beat into `count` beats."""
        if count == 1:
            return
        self.unpack()
        s = replace(self.stream, each=None)
        after = replace(s, beats=s.beats * count, lanes=s.lanes // count)
        self.module("fp_scatter", after, np.repeat(self.need, count), count, after.bits, BEATS=count)

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
        self.module("fp_repeat", after, np.repeat(self.need, count), 0, BEATS=count)

    def image(self) -> tuple[int, int]:
        """Return rows and columns of the image; from now on each beat is one pixel of it."""
        self.relaid(self.stream.shape[-1])
        return self.stream.sides

    def pixels(self) -> tuple[int, int, int]:
        """Return rows and columns of the image, and beats of a pixel: one of all its values, or one for each value."""
        channels = self.stream.shape[-1]
        if self.stream.lanes != 1:
            self.relaid(channels)
        return *self.stream.sides, channels // self.stream.lanes

    def queue_rows(self, count: int, pixels: int) -> None:
        """Let so many rows of the image wait; of an image that is one row, so many pixels."""
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
        border = {"TOP": top, "BOTTOM": bottom, "LEFT": left * beats, "RIGHT": right * beats}
        filled = f"{s.bits}'h{int(fill, 2):x}"
        self.module("fp_pad", after, need, 0, ROWS=rows, COLUMNS=columns * beats, **border, FILL=filled)

    def crop(self, sides: tuple[int, int, int, int]) -> None:
        """Cut `sides` (top, bottom, left, right) pixels off the border of the image."""
        rows, columns = self.image()
        top, bottom, left, right = sides
        after = self._reshaped(rows - top - bottom, columns - left - right, self.stream.lanes)
        need = self.need.reshape(rows, columns)[top : rows - bottom, left : columns - right].reshape(-1)
        border = {"TOP": top, "BOTTOM": bottom, "LEFT": left, "RIGHT": right}
        self.module("fp_crop", after, need, 0, ROWS=rows, COLUMNS=columns, **border)

    def upsample(self, factors: tuple[int, int]) -> None:
        """Repeat every pixel by (vertical, horizontal) `factors`."""
        rows, columns = self.image()
        after = self._reshaped(rows * factors[0], columns * factors[1], self.stream.lanes)
        # The first copy of a row waits pixel by pixel; the others begin when the whole row has come.
        pixels = self.need.reshape(rows, columns)
        first = np.repeat(pixels, factors[1], axis=1)
        again = np.repeat(pixels[:, -1:], columns * factors[1], axis=1)
        need = np.concatenate([first[:, None]] + [again[:, None]] * (factors[0] - 1), axis=1).reshape(-1)
        self.module("fp_upsample", after, need, 0, COLUMNS=columns, FY=factors[0], FX=factors[1])

    def transpose(self, parts: int, columns: int) -> None:
        """Send the first of `parts` equal parts of each of `columns` beats, then the second of each, and so on."""
        if parts == 1:
            return
        self.unpack()
        s = self.stream
        after = replace(s, beats=s.beats * parts, lanes=s.lanes // parts, each=None)
        pixels = self.need.reshape(-1, columns)
        need = np.concatenate([pixels, np.repeat(pixels[:, -1:], (parts - 1) * columns, axis=1)], axis=1).reshape(-1)
        self.module("fp_transpose", after, need, 0, after.bits, PARTS=parts, COLUMNS=columns)

    def reverse(self) -> None:
        """Send the steps of a sequence from the last to the first."""
        self.relaid(1)
        s, steps = self.stream, self.stream.shape[0]
        need = np.repeat(self.need[-1:], s.beats)
        self.module("fp_reverse", s, need, 0, STEPS=steps, BEATS=s.beats // steps)

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
        spreads = int(many_readers and after.bits > _NEAR_BITS)
        parameters = {**window_parameters(rows, columns, size, stride), "SPREAD": spreads}
        self.module("fp_window", after, ends[:high, :wide].reshape(-1), 3, **parameters)

    def accumulate(self) -> None:
        """Reduce each sample to one beat: the exact sum of its beats, lane by lane."""
        self.unpack()
        s = replace(self.stream, each=None)
        after = replace(s.summed(s.beats), beats=1)
        parameters = {"LANES": s.lanes, "OUT_WIDTH": after.width, "BEATS": s.beats}
        self.module("fp_accumulate", after, self.need[-1:], 1, s.width, **parameters)

    def largest(self) -> None:
        """Reduce each sample to one beat: the largest of its beats, lane by lane."""
        self.unpack()
        s = self.stream
        self.module("fp_largest", replace(s, beats=1), self.need[-1:], 1, s.width, LANES=s.lanes, BEATS=s.beats)

    def reduced(self, largest: bool) -> None:
        """Give each value of a pixel, which come one by one, the largest of them as a second value, or their sum."""
        self.unpack()
        s, count = self.stream, self.stream.shape[-1]
        after = s if largest else s.summed(count)
        self.module(
            "fp_reduce",
            replace(after, lanes=2, each=(Lane(s.low, s.high, 0), Lane(after.low, after.high, 0))),
            np.repeat(self.need[count - 1 :: count], count),
            count + 2,
            s.width,
            OUT_WIDTH=after.width,
            BEATS=count,
            LARGEST=int(largest),
        )

    def pace(self, size: tuple[int, int], stride: tuple[int, int], cycles: int) -> None:
        """Let pixels that complete a window come at least `cycles` cycles apart."""
        windows = window_parameters(*self.image(), size, stride)
        self.module("fp_pace", self.stream, self.need, 0, **windows, CLOCKS=cycles)

    def renamed(self, shape: tuple[int, ...]) -> None:
        """Read the same beats as a sample of another shape."""
        self.stream = replace(self.stream, shape=shape)

    def _reshaped(self, rows: int, columns: int, lanes: int) -> Stream:
        shape = (*(rows, columns)[3 - len(self.stream.shape) :], lanes)
        return replace(self.stream, shape=shape, beats=rows * columns, lanes=lanes)


def window_parameters(rows: int, columns: int, size: tuple[int, int], stride: tuple[int, int]) -> dict[str, int]:
    """Return the parameters of a module that goes through the windows of an image."""
    return {"ROWS": rows, "COLUMNS": columns, "KH": size[0], "KW": size[1], "SH": stride[0], "SW": stride[1]}
