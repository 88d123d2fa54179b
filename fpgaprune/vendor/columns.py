"""The names of the columns in reports of AMD's HLS tools, from 2018 to today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from fpgaprune.measure import Cycles, Resources
from fpgaprune.vendor.grid import PrintedTable

# Resource -> the names of its column.
COLUMNS = {
    "lut": ("LUT", "LUTs"),
    "ff": ("FF", "FFs"),
    "dsp": ("DSP", "DSP48E", "DSP48", "DSP58", "DSPs"),
    "bram18": ("BRAM_18K", "BRAM"),
    "uram": ("URAM",),
}


def usage_of(
    table: PrintedTable, row: Sequence[str], columns: Mapping[str, tuple[str, ...]] = MappingProxyType(COLUMNS)
) -> Resources[int]:
    """The resources of one row; `columns` names the columns of each resource."""
    return Resources(**{name: table.count(row, *names) for name, names in columns.items()})


def cycles_of(table: PrintedTable, row: Sequence[str]) -> Cycles:
    """The latency and interval of one row of a csynth or co-simulation table."""
    latency = ("Latency (cycles)", "Latency", "Latency(Clock Cycles)", "Latency (Clock Cycles)")
    interval = ("Interval", "Interval(Clock Cycles)", "Interval (Clock Cycles)", "Interval (cycles)")
    return Cycles(
        latency_min=table.count(row, *(f"{name} min" for name in latency)),
        latency_max=table.count(row, *(f"{name} max" for name in latency)),
        interval_min=table.count(row, *(f"{name} min" for name in interval)),
        interval_max=table.count(row, *(f"{name} max" for name in interval)),
    )
