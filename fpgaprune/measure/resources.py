"""`Figure` and `Resources`: what hardware takes or offers, by resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from msgspec import Struct

from fpgaprune.target import CAPACITIES, Part

# The headings of columns.
LABELS = {
    "lut": "LUT",
    "ff": "FF",
    "carry": "carry",
    "dsp": "DSP",
    "bram18": "BRAM18",
    "bram4": "BRAM4",
    "uram": "URAM",
}
RESOURCES = tuple(LABELS)
# The resources that the analytic estimate of an hls4ml project states, and those that the one of our Verilog does.
ESTIMATED = ("lut", "ff", "dsp", "bram18")
OF_VERILOG = (*ESTIMATED, "bram4")


class Figure(Struct, frozen=True, forbid_unknown_fields=True):
    """An estimated count, with the range that is expected to hold four of five true values.

    Attributes:
        value: the middle of the estimate.
        low: the lower end of the range.
        high: the upper end of the range.
    """

    value: int
    low: int
    high: int


Count = TypeVar("Count", bound="int | Figure")


class Resources(Struct, Generic[Count], frozen=True, kw_only=True, omit_defaults=True):
    """Counts by resource: of a tool (`int`) or of an estimate (`Figure`); an unknown count is None, never 0.

    The JSON form leaves out the unknown counts.

    Attributes:
        lut: look-up tables. An AMD tool counts LUTs, an Intel tool ALUTs, a Microchip tool 4LUTs.
        ff: flip-flops.
        carry: carry cells, as the netlist names them.
        dsp: DSP slices, multipliers or math blocks.
        bram18: block RAMs of 18 Kb; a block of 36 Kb is two.
        bram4: block RAMs of 4 Kb, which iCE40 has in their place.
        uram: UltraRAMs of 288 Kb.
    """

    lut: Count | None = None
    ff: Count | None = None
    carry: Count | None = None
    dsp: Count | None = None
    bram18: Count | None = None
    bram4: Count | None = None
    uram: Count | None = None

    def __getitem__(self, name: str) -> Count | None:
        found: Count | None = getattr(self, name)
        return found

    def against(self, capacity: Resources[int]) -> Iterator[tuple[str, Count, int]]:
        """Yield name, count and capacity of each resource whose count and capacity are known."""
        for name in RESOURCES:
            count, there = self[name], capacity[name]
            if count is not None and there is not None:
                yield name, count, there

    def less(self: Resources[int], other: Resources[int]) -> Resources[int]:
        """Return the counts minus those of `other`; unknown if either is unknown."""
        return Resources(
            **{
                name: None if (mine := self[name]) is None or (theirs := other[name]) is None else mine - theirs
                for name in RESOURCES
            }
        )


def add(counts: Iterable[int | None]) -> int | None:
    """Return the sum of `counts`; None if one of them is None."""
    listed = list(counts)
    return None if None in listed else sum(count for count in listed if count is not None)


def capacity_of(part: Part) -> Resources[int]:
    """Return what `part` offers; a capacity that is not published is unknown."""
    return Resources(**{name: getattr(part, name) for name in CAPACITIES})
