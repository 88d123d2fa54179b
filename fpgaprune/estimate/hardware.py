"""What a piece of hardware is made of, in quantities that coefficients turn into LUTs and flip-flops."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Hardware:
    """Contents of one layer.

    Attributes:
        lut: quantity by coefficient name, as `{"add_bit": 1024}`; the coefficient has the unit.
        ff: quantity by coefficient name, as `{"add_bit": 1024}`; the coefficient has the unit.
        dsp: slices.
        bram18: blocks that high-level synthesis reports.
        bram18_placed: those that logic synthesis leaves.
        latency_cycles: from the first input to the last output.
        interval_cycles: between two inferences.
    """

    lut: dict[str, float] = field(default_factory=dict)
    ff: dict[str, float] = field(default_factory=dict)
    dsp: float = 0.0
    bram18: float = 0.0
    bram18_placed: float = 0.0
    latency_cycles: float = 0.0
    interval_cycles: float = 1.0

    def add(self, other: Hardware) -> None:
        """The contents of `other` are part of this; its latency and interval are not."""
        for mine, theirs in ((self.lut, other.lut), (self.ff, other.ff)):
            for name, amount in theirs.items():
                mine[name] = mine.get(name, 0.0) + amount
        self.dsp += other.dsp
        self.bram18 += other.bram18
        self.bram18_placed += other.bram18_placed

    def repeat(self, times: int) -> None:
        """The contents are there `times` times side by side; latency and interval stay."""
        for quantities in (self.lut, self.ff):
            for name in quantities:
                quantities[name] *= times
        self.dsp *= times
        self.bram18 *= times
        self.bram18_placed *= times
