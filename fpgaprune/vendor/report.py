"""One vocabulary for what any vendor's tool reports about a design."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

# The last two are of open tools, and of Verilog that no vendor's C synthesis made.
STAGES = ("csynth", "synth", "route", "cosim", "synth(open)", "route(ecp5)")
RESOURCES = ("lut", "ff", "dsp", "bram18", "uram")
SUMMARY = "summary"
PLATFORM = "platform"
CYCLES = ("latency_min", "latency_max", "interval_min", "interval_max")


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources that a report states; None where it states none, which is not the same as 0.

    Attributes:
        lut: lookup tables: LUTs of AMD, ALUTs of Intel, 4LUTs of Microchip. ff: registers.
        dsp: DSP or math blocks. bram18: 18 Kb halves of AMD block RAM. uram: UltraRAM blocks.
    """

    lut: int | None = None
    ff: int | None = None
    dsp: int | None = None
    bram18: int | None = None
    uram: int | None = None

    def to_json(self) -> dict[str, int | None]:
        """The counts by name."""
        return {name: getattr(self, name) for name in RESOURCES}


@dataclass(frozen=True, slots=True)
class Cycles:
    """Clock cycles that a report states; None where it states none.

    Attributes:
        latency_min, latency_max: from first input to last output.
        interval_min, interval_max: between two inputs.
    """

    latency_min: int | None = None
    latency_max: int | None = None
    interval_min: int | None = None
    interval_max: int | None = None

    def to_json(self) -> dict[str, int | None]:
        """The cycles by name."""
        return {name: getattr(self, name) for name in CYCLES}


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """One instance inside a design, as its report lists it.

    Attributes:
        name: of the instance. module: of what it instantiates; None where the report does not say.
        usage, cycles: as the row states them. pipeline: the tool's own word (`yes`, `no`, `none`, `dataflow`, ...).
    """

    name: str
    module: str | None = None
    usage: Usage = Usage()
    cycles: Cycles = Cycles()
    pipeline: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The row as JSON data."""
        return {
            "name": self.name,
            "module": self.module,
            **self.usage.to_json(),
            **self.cycles.to_json(),
            "pipeline": self.pipeline,
        }


@dataclass(frozen=True, slots=True)
class VendorReport:
    """What one report of one tool says about one design at one stage.

    Attributes:
        tool, tool_version: as printed, `Vitis HLS` and `2022.2`.
        stage: `csynth` (the estimate of a C-to-RTL tool), `synth` (after logic synthesis), `route` (placed and
            routed), `cosim` (measured in RTL simulation), or what open tools measured: `synth(open)`, `route(ecp5)`.
        design: top module that the report is about. part: device or order number, as printed.
        clock_ns: period asked for. est_clock_ns: period that the tool estimates or reached.
        slack_ns: worst setup slack, negative where timing is not met.
        total: resources of the whole design. cycles: latency and interval of the whole design.
        rows: one for each instance that the report lists.
        breakdown: parts of `total` by the report's own classes, as `FIFO`; under `PLATFORM` what a board's platform
            takes around the kernels, which is no part of `total`.
        other: counts without a common unit, under the vendor's name, as `alm`, `m20k`, `carry8`.
        pipeline: how the top is pipelined, in the tool's word. state: of the netlist, as
            `Synthesized`; of a simulation its language; `SUMMARY` for a report that leaves out zeros.
        passed: whether a simulation's outputs agreed. date: as printed. source: the file.
        notes: sentences about what the figures mean.
    """

    tool: str
    tool_version: str | None
    stage: str
    design: str | None = None
    part: str | None = None
    clock_ns: float | None = None
    est_clock_ns: float | None = None
    slack_ns: float | None = None
    total: Usage = Usage()
    cycles: Cycles = Cycles()
    rows: tuple[ModuleRow, ...] = ()
    breakdown: Mapping[str, Usage] = field(default_factory=lambda: MappingProxyType({}))
    other: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    pipeline: str | None = None
    state: str | None = None
    passed: bool | None = None
    date: str | None = None
    source: Path | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The report as JSON data; what it does not state is null."""
        plain = ("tool", "tool_version", "stage", "design", "part", "clock_ns", "est_clock_ns", "slack_ns")
        return {
            **{name: getattr(self, name) for name in plain},
            "total": self.total.to_json(),
            **self.cycles.to_json(),
            "rows": [row.to_json() for row in self.rows],
            "breakdown": {name: usage.to_json() for name, usage in self.breakdown.items()},
            "other": dict(self.other),
            **{name: getattr(self, name) for name in ("pipeline", "state", "passed", "date")},
            "source": None if self.source is None else str(self.source),
            "notes": list(self.notes),
        }
