"""`Hardware`: what a layer takes, in quantities that coefficients turn into LUTs and flip-flops."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Hardware:
    """The hardware of one layer.

    Attributes:
        lut: name of a coefficient -> quantity, as `{"add_bit": 1024}`; the coefficient states the unit.
        ff: as `lut`, for flip-flops.
        dsp: DSP slices.
        bram18: block RAMs that high-level synthesis reports.
        bram18_placed: block RAMs that logic synthesis leaves.
        latency_cycles: from the first input to the last output.
        interval_cycles: between two samples.
    """

    lut: dict[str, float] = field(default_factory=dict)
    ff: dict[str, float] = field(default_factory=dict)
    dsp: float = 0.0
    bram18: float = 0.0
    bram18_placed: float = 0.0
    latency_cycles: float = 0.0
    interval_cycles: float = 1.0

    def add(self, other: Hardware) -> None:
        """The quantities of `other` are added; latency and interval stay."""
        for mine, theirs in ((self.lut, other.lut), (self.ff, other.ff)):
            for name, amount in theirs.items():
                mine[name] = mine.get(name, 0.0) + amount
        self.dsp += other.dsp
        self.bram18 += other.bram18
        self.bram18_placed += other.bram18_placed

    def repeat(self, times: int) -> None:
        """The quantities are multiplied by `times`; latency and interval stay."""
        for quantities in (self.lut, self.ff):
            for name in quantities:
                quantities[name] *= times
        self.dsp *= times
        self.bram18 *= times
        self.bram18_placed *= times
