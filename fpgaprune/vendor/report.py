"""One vocabulary for what any vendor's tool reports about a design."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fpgaprune.measure import Cycles, Measurement, Resources, Stage

SUMMARY = "summary"
PLATFORM = "platform"


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """One instance inside a design, as its report lists it.

    Attributes:
        name: of the instance.
        module: of what it instantiates; None where the report does not say.
        usage: resources that the row states.
        cycles: cycles that the row states.
        pipeline: the tool's own word (`yes`, `no`, `none`, `dataflow`, ...).
    """

    name: str
    module: str | None = None
    usage: Resources[int] = Resources()
    cycles: Cycles = Cycles()
    pipeline: str | None = None

    def at(self, stage: Stage, layer: str) -> Measurement[int]:
        """What `layer` takes at `stage`, by this row."""
        return Measurement(stage, layer, self.usage, self.cycles)


@dataclass(frozen=True, slots=True)
class VendorReport:
    """What one report of one tool says about one design at one stage.

    Attributes:
        tool: name as printed, as `Vitis HLS`.
        tool_version: as printed, as `2022.2`.
        stage: `csynth` (the estimate of a C-to-RTL tool), `synth` (after logic synthesis), `route` (placed and routed),
            `cosim` (measured in RTL simulation), or a stage of open tools: `synth(open)`, `route(ecp5)`.
        design: top module that the report is about.
        part: device or order number, as printed.
        clock_ns: period asked for.
        est_clock_ns: period that the tool estimates or reached.
        slack_ns: worst setup slack, negative where timing is not met.
        total: resources of the whole design.
        cycles: latency and interval of the whole design.
        rows: one for each instance that the report lists.
        breakdown: parts of `total` by the report's own classes, as `FIFO`. `PLATFORM` stands for the platform of a
            board around the kernels, which is no part of `total`.
        other: counts without a common unit, under the vendor's name, as `alm`, `m20k`, `carry8`.
        pipeline: how the top is pipelined, in the tool's word.
        state: of the netlist, as `Synthesized`; the language of a simulation; `SUMMARY` for a report that leaves out
            zeros.
        passed: whether a simulation's outputs agreed.
        date: as printed.
        source: the file.
        notes: sentences about what the figures mean.
    """

    tool: str
    tool_version: str | None
    stage: Stage
    design: str | None = None
    part: str | None = None
    clock_ns: float | None = None
    est_clock_ns: float | None = None
    slack_ns: float | None = None
    total: Resources[int] = Resources()
    cycles: Cycles = Cycles()
    rows: tuple[ModuleRow, ...] = ()
    breakdown: Mapping[str, Resources[int]] = field(default_factory=dict)
    other: Mapping[str, int] = field(default_factory=dict)
    pipeline: str | None = None
    state: str | None = None
    passed: bool | None = None
    date: str | None = None
    source: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def whole(self) -> Measurement[int]:
        """What the whole design takes at the report's stage."""
        return Measurement(self.stage, None, self.total, self.cycles, self.est_clock_ns)
