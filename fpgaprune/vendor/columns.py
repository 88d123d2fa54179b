"""The names under which AMD's HLS tools print their columns, from 2018 to today."""

from __future__ import annotations

from collections.abc import Sequence

from fpgaprune.measure import Cycles, Resources
from fpgaprune.vendor.grid import Table

LUT = ("LUT", "LUTs")
FF = ("FF", "FFs")
DSP = ("DSP", "DSP48E", "DSP48", "DSP58", "DSPs")
BRAM18 = ("BRAM_18K", "BRAM")
URAM = ("URAM",)


def usage_of(table: Table, row: Sequence[str]) -> Resources[int]:
    """The resources of one row of a csynth table."""
    return Resources(
        lut=table.count(row, *LUT),
        ff=table.count(row, *FF),
        dsp=table.count(row, *DSP),
        bram18=table.count(row, *BRAM18),
        uram=table.count(row, *URAM),
    )


def cycles_of(table: Table, row: Sequence[str]) -> Cycles:
    """The latency and interval of one row of a csynth or co-simulation table."""
    latency = ("Latency (cycles)", "Latency", "Latency(Clock Cycles)", "Latency (Clock Cycles)")
    interval = ("Interval", "Interval(Clock Cycles)", "Interval (Clock Cycles)", "Interval (cycles)")
    return Cycles(
        latency_min=table.count(row, *(f"{name} min" for name in latency)),
        latency_max=table.count(row, *(f"{name} max" for name in latency)),
        interval_min=table.count(row, *(f"{name} min" for name in interval)),
        interval_max=table.count(row, *(f"{name} max" for name in interval)),
    )
