"""`VendorReport`: what a tool of any vendor reports about a design, in one vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fpgaprune.measure import Cycles, Measurement, Resources, Stage

SUMMARY = "summary"
PLATFORM = "platform"


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """One instance inside a design, as a report lists it.

    Attributes:
        name: name of the instance.
        module: name of its module; None if the report does not state it.
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
        """Return what `layer` takes at `stage`, if this is its row."""
        return Measurement(stage, layer, self.usage, self.cycles)


@dataclass(frozen=True, slots=True)
class VendorReport:
    """What one report of one tool says about one design at one stage.

    Attributes:
        tool: printed name of the tool, as `Vitis HLS`.
        tool_version: printed version of the tool, as `2022.2`.
        stage: `csynth` (the estimate of a C-to-RTL tool), `synth` (after logic synthesis), `route` (placed and routed),
            `cosim` (measured in RTL simulation), or a stage of open tools: `synth(open)`, `route(ecp5)`.
        design: top module of the design.
        part: printed device or order number.
        clock_ns: period asked for.
        est_clock_ns: period that the tool estimates or reached.
        slack_ns: worst setup slack; negative if timing is not met.
        total: resources of the whole design.
        cycles: latency and interval of the whole design.
        rows: one for each instance that the report lists.
        breakdown: parts of `total` by the report's own classes, as `FIFO`; also `PLATFORM`, the platform of a board
            around the kernels, which is no part of `total`.
        other: counts without a common unit, by the vendor's name, as `alm`, `m20k`, `carry8`.
        pipeline: how the top module is pipelined, in the tool's word.
        state: state of the netlist, as `Synthesized`; language of a simulation; `SUMMARY` for a report that leaves out
            zeros.
        passed: whether the outputs of a simulation agreed.
        date: printed date.
        source: the file.
        notes: sentences on what the figures mean.
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
