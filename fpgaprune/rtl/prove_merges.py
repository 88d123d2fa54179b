"""`prove_merge`: what a layer computes of two streams that meet is right for all values of both.

On its way to the other stream, a value may get more bits, or be assigned to the result's type. A sum or a difference of
two values is followed as a weighted sum of both, and what rounds or limits it is tried for each value of that sum. The
larger, the smaller and the product are tried for all values of both, where these are few.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Design, Merge, Quantise
from fpgaprune.emulate import Exact, Step, computed, steps_of
from fpgaprune.rtl.bus import Bus, Lane, Place, around
from fpgaprune.rtl.project import RtlLayer, VerilogProject
from fpgaprune.rtl.prove_sums import prove_outputs
from fpgaprune.rtl.read_expression import UndecidedError
from fpgaprune.rtl.read_lines import DatapathText
from fpgaprune.rtl.read_meeting import Meeting
from fpgaprune.rtl.wanted_sums import WantedSum, applied
from fpgaprune.values import FixedType

# How often each of two values is added, and how often their sum is halved.
_SUMS = {"add": (1, 1, 0), "subtract": (1, -1, 0), "average": (1, 1, 1)}
# Library modules that send whole beats on, or join them, in their order.
_IN_ORDER = ("fp_fifo", "fp_gather", "fp_register", "fp_repeat", "fp_upsample")
_ASSIGNED = "every value is assigned to the result's type: {:,} tried"


@dataclass(frozen=True)
class _Values:
    """Values side by side, whose bounds repeat.

    Attributes:
        lanes: the bounds.
        width, signed, fraction: of each value.
    """

    lanes: tuple[Lane, ...]
    width: int
    signed: bool
    fraction: int

    def any_of(self) -> _Values:
        """Return values each of which may be what any of these may be."""
        return replace(self, lanes=(around(self.lanes),))

    def in_bits(self, bits: int) -> _Values:
        """Return the values that fill so many bits, with the bounds of each."""
        count, rest = divmod(bits, self.width)
        if rest or not count:
            raise UndecidedError(f"values of {self.width} bits do not fill a bus of {bits} bits")
        return replace(self, lanes=tuple(self.lanes[number % len(self.lanes)] for number in range(count)))

    def beside(self, other: _Values) -> _Values:
        """Return these values and those of another stream behind them."""
        if (self.width, self.signed, self.fraction) != (other.width, other.signed, other.fraction):
            raise UndecidedError("the streams meet in different types")
        return replace(self, lanes=self.lanes + other.lanes)

    def places(self) -> list[Place]:
        """Return where they lie on a bus that carries the zeros of each, too."""
        return [
            Place(
                number * self.width,
                self.width,
                self.signed,
                lane.zeros,
                lane.low >> lane.zeros,
                lane.high >> lane.zeros,
                carried=lane.zeros,
            )
            for number, lane in enumerate(self.lanes)
        ]


@dataclass(frozen=True)
class _Conversion:
    """What a datapath on the way of one stream should make of each of its values."""

    role: str
    text: DatapathText
    before: _Values
    wanted: WantedSum
    leaving: Place


@dataclass(frozen=True)
class _Met:
    """Two streams of a layer where they meet, and the datapaths on their ways."""

    meeting: Meeting
    step: Step
    joined: tuple[Step, ...]
    conversions: tuple[_Conversion, ...]
    streams: tuple[_Values, ...]

    @classmethod
    def of(cls, project: VerilogProject, design: Design, row: RtlLayer, arriving: Sequence[Bus]) -> _Met:
        meeting, steps = Meeting.read(project, row), {step.layer.name: step for step in steps_of(design)}
        step, leaves = steps[row.layer], row.leaves
        kinds = [source.types["result"] for source in step.sources]
        finest = max(kind.fraction for kind in kinds)
        conversions, streams = [], []
        for modules, bus, kind in zip(meeting.branches, arriving, kinds, strict=True):
            if bus.width is None:
                raise UndecidedError("values come in widths of their own")
            values = _Values(bus.lanes, bus.width, bus.signed, kind.fraction)
            for module in modules:
                if module in _IN_ORDER:
                    continue
                # A beat may be split; a datapath here computes one value, several times side by side.
                values = values.any_of()
                if module == "fp_scatter":
                    continue
                made = _converted(DatapathText.read(project, row, module), module, values, finest, step, leaves)
                conversions.append(made[0])
                values = made[1]
            streams.append(values)
        joined = tuple(steps[name] for name in row.joined.get(row.layer, ()))
        return cls(meeting, step, joined, tuple(conversions), tuple(streams))

    @property
    def pair(self) -> _Values:
        """The values of a beat of both, side by side."""
        one, two = (stream.in_bits(bits) for stream, bits in zip(self.streams, self.meeting.bits, strict=True))
        return one.beside(two)


def prove_merge(project: VerilogProject, design: Design, row: RtlLayer, role: str, arriving: Sequence[Bus]) -> str:
    """Prove the datapath `role` of a layer that reads two streams, and return what was proven.

    Args:
        project: the Verilog.
        design: what it should compute.
        row: of the layer.
        role: of the datapath.
        arriving: the values of both layers before, in bounds that are proven.

    Raises:
        CertificateError: it computes something else; `UndecidedError`: that was not decided.
    """
    met = _Met.of(project, design, row, arriving)
    for made in met.conversions:
        if made.role == role:
            checked = prove_outputs(made.text, made.before.places(), [made.leaving], [made.wanted])
            assigned = made.wanted.finish is not None
            return (
                _ASSIGNED.format(checked) if assigned else "every value leaves as it came, in the bits of both inputs"
            )
    if met.meeting.behind != (role,) or row.leaves is None:
        raise UndecidedError("it is not all that follows where the streams meet")
    text, pair = DatapathText.read(project, row, role), met.pair
    if isinstance(met.step.layer.operation, Merge):
        wanted = _merged(met, pair)
        checked = prove_outputs(text, pair.places(), list(row.leaves.places(len(wanted))), wanted)
        what = f"{met.step.layer.operation.function} of {len(wanted):,} pairs of values is right"
        if wanted[0].together is not None:
            return f"{what}: all {checked:,} pairs tried"
        return f"{what}, with no bit lost; what follows was tried for all of its values, {checked:,} together"
    if text.bits_in == pair.width:
        pair = pair.any_of()
    wanted = [_assigned(pair, met.step.result, number) for number in range(len(pair.lanes))]
    leaves = row.leaves.any_of() if len(wanted) == 1 else row.leaves
    checked = prove_outputs(text, pair.places(), list(leaves.places(len(wanted))), wanted)
    return _ASSIGNED.format(checked)


def keeps_bounds(project: VerilogProject, design: Design, row: RtlLayer, arriving: Sequence[Bus]) -> bool:
    """Return whether what leaves a layer that reads two streams is within its bounds, if its datapaths are right.

    Raises:
        CertificateError: the text of its module is gone, or not understood.
    """
    met = _Met.of(project, design, row, arriving)
    if met.meeting.behind:
        return True
    both = [met.pair] if met.meeting.joins else [stream.any_of() for stream in met.streams]
    return row.leaves is not None and all(
        row.leaves.contains(Bus(values.lanes, values.width, values.signed)) for values in both
    )


def _converted(
    text: DatapathText, role: str, before: _Values, finest: int, step: Step, leaves: Bus | None
) -> tuple[_Conversion, _Values]:
    """Return what a datapath on the way of a stream should do, and the values behind it."""
    if len(text.outputs) != 1 or text.bits_in != before.width:
        raise UndecidedError("a value on its way to the other stream is not converted by itself")
    (lane,), width = before.lanes, text.outputs[0][0]
    kind = role.partition("_")[0]
    if kind == "cast" and leaves is not None and leaves.width is not None:
        after = _Values(leaves.any_of().lanes, width, leaves.signed, step.result.fraction)
        (place,) = leaves.any_of().places(1)
        return _Conversion(role, text, before, _assigned(before, step.result, 0), place), after
    if kind not in ("align", "widen"):
        raise UndecidedError("no conversion of each value by itself")
    fraction = finest if kind == "align" else before.fraction
    shift = fraction - before.fraction
    after = _Values((Lane(lane.low << shift, lane.high << shift, lane.zeros + shift),), width, True, fraction)
    wanted = WantedSum(np.ones(1, np.int64), 0, before.fraction, FixedType(width, width - fraction))
    place = Place(0, width, True, 0, after.lanes[0].low, after.lanes[0].high)
    return _Conversion(role, text, before, wanted, place), after


def _merged(met: _Met, pair: _Values) -> list[WantedSum]:
    """Return what each output of a merge should be, one of each stream's values and of what is joined to the layer."""
    step, joined, half = met.step, met.joined, len(pair.lanes) // 2
    if met.meeting.bits[0] != met.meeting.bits[1]:
        raise UndecidedError("the streams meet with different numbers of values")
    function = step.operation(Merge).function
    first, second, halved = _SUMS.get(function, (1, 1, 0))
    own = [_own(one, half) for one in joined]

    def followed(value: Exact, output: int) -> Exact:
        for one, size in zip(joined, own, strict=True):
            value = applied(one, value, output % size)
        return value

    def finish(total: Exact, output: int) -> Exact:
        result = Exact(total.raw, total.fraction + halved, total.low, total.high).into(step.result)
        return followed(result, output)

    # One value of each input becomes one.
    single = replace(step, layer=replace(step.layer, output_shape=(1,)))

    def together(values: Mapping[int, NDArray[np.int64]], output: int) -> Exact:
        both = []
        for number in (output, half + output):
            lane = pair.lanes[number]
            raw = values[number].reshape(-1, 1) << lane.zeros
            both.append(Exact(raw, pair.fraction, lane.low, lane.high))
        merged = computed(single, *both)
        return followed(merged.on(merged.raw.reshape(-1)), output)

    found = []
    for output in range(half):
        column = np.zeros(2 * half, np.int64)
        column[output], column[half + output] = first, second
        whole = WantedSum(column, 0, pair.fraction, _exact(pair), finish)
        found.append(whole if function in _SUMS else replace(whole, finish=None, together=together))
    return found


def _own(step: Step, lanes: int) -> int:
    """Return how many functions a layer has that is computed with a merge, one behind another in a beat.

    Raises:
        UndecidedError: beats have different ones.
    """
    shape = step.layer.output_shape
    row: Sequence[object] = [None]
    if isinstance(step.layer.operation, Quantise):
        row = step.layer.operation.types(shape)
    elif "param" in step.layer.weights:
        row = step.layer.weights["param"].reshape(-1).tolist()
    size = len(row)
    if any(row[number % size] != row[number % lanes % size] for number in range(math.prod(shape))):
        raise UndecidedError("its beats have functions of their own")
    return size


def _assigned(values: _Values, kind: FixedType, number: int) -> WantedSum:
    """Return that an output is the value with its number, assigned to a type."""
    column = (np.arange(len(values.lanes)) == number).astype(np.int64)
    return WantedSum(column, 0, values.fraction, _exact(values), lambda value, _: value.into(kind))


def _exact(values: _Values) -> FixedType:
    """Return a type that holds the sum of two of the values."""
    return FixedType(values.width + 2, values.width + 2 - values.fraction)
