"""The stage `estimate`: estimates the resources of the network before and after pruning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from fpgaprune.design import Design
from fpgaprune.errors import EstimateError, RtlError, UnsupportedLayerError
from fpgaprune.estimate import verilog_price
from fpgaprune.flow.file import Flow, Section, TargetConfig, section_json
from fpgaprune.flow.run import verilog_on
from fpgaprune.flow.stages.designs_before_training import own_flow
from fpgaprune.flow.stages.measure import MeasureConfig
from fpgaprune.flow.stages.stage import NETWORK, TYPES, FlowStage, OutcomeLine, ReportPart, StageContext, StageResult
from fpgaprune.layout import Advice
from fpgaprune.measure import Estimate, Measured, VerilogPrice, occupancy_of
from fpgaprune.target import Part

# Why there is no estimate of our Verilog.
_NO_ESTIMATE = (EstimateError, RtlError, UnsupportedLayerError)


class EstimateConfig(Section):
    """The estimate of what the network takes on its part."""

    advice: bool = True
    """Look for changes of the flow that make a network fit which does not, and estimate our Verilog of the trained
    network too; for a large network that takes a minute."""


class FitByEstimate(Struct, frozen=True):
    """Whether a network fits its part by its estimate.

    Attributes:
        fits: by the middle of the range of its estimate; None if that cannot be judged.
        fits_upper: by the upper end of the range.
        latency_cycles: cycles from the first input to the last output.
    """

    fits: bool | None
    fits_upper: bool | None
    latency_cycles: int


class VerilogFit(Struct, frozen=True):
    """What our Verilog takes by its estimate.

    Attributes:
        taken: what it takes of the part: count, capacity and share of each resource. The report says whether it fits.
        latency_cycles: cycles from the first input to the last output.
        no_project: why there is no hls4ml project.
    """

    taken: str
    latency_cycles: int
    no_project: str


class EstimateResult(StageResult, frozen=True, kw_only=True, omit_defaults=True):
    """The estimates in short; `estimate.json` holds them whole.

    Attributes:
        before: the network before pruning, None without an estimate of its project.
        after: the network after pruning, None without an estimate of its project.
        advice: the advice as JSON data; None if the flow asks for none, UNSET without an estimate.
        verilog: our Verilog of the network after, where no tool for the part builds a project.
        verilog_before: that of the network before, at the interval of the network after; None without an estimate.
    """

    before: FitByEstimate | None = None
    after: FitByEstimate | None = None
    advice: Mapping[str, object] | UnsetType | None = UNSET
    verilog: VerilogFit | None = None
    verilog_before: VerilogFit | None = None


def _estimate_verilog(context: StageContext, trained: Design, design: Design, part: Part) -> EstimateResult:
    """Write the estimates of our Verilog of `design` and of `trained` to `estimate.json`; null if there is none."""
    try:
        made, _ = verilog_on(design, part, _measured_layout(context), section_json(context.config[MeasureConfig]))
    except _NO_ESTIMATE as error:
        context.run.write_json("estimate.json", None)
        return EstimateResult(left_out=f"{_no_project(part)}, and our Verilog has no estimate: {error}")
    found = {"verilog": made}
    # At the same interval the two differ by what pruning saved. A search asks for no advice, and compares no runs.
    if context.config[EstimateConfig].advice:
        with suppress(*_NO_ESTIMATE):
            found["verilog_before"] = verilog_price(trained, made.family, interval=made.interval_cycles)
    context.run.write_json("estimate.json", {side: price.to_json() for side, price in found.items()})
    fits = {
        side: VerilogFit(occupancy_of(price.resources, part).rows, price.latency_cycles, _no_project(part))
        for side, price in found.items()
    }
    return EstimateResult(verilog=fits["verilog"], verilog_before=fits.get("verilog_before"))


def _measured_layout(context: StageContext) -> dict[str, Any] | None:
    """Read the layout, as fields of `VerilogLayout`, that stage `measure` has measured; None if it has none."""
    content = context.run.read_json("measure.json") if context.run.file("measure.json").is_file() else None
    if content is None:
        return None
    chosen = Measured.from_json(content).layout
    return {"interval": context.config[MeasureConfig].interval} if chosen is None else chosen.settings


def _no_project(part: Part) -> str:
    return "target.route is 'verilog'" if part.compiles_hls else f"no tool of {part.vendor} builds an hls4ml project"


class EstimateStage(FlowStage[EstimateResult]):
    """Estimates the resources of the network before and after pruning."""

    name = "estimate"
    inputs = ("design.json", "design.npz", "design_trained.json", "design_trained.npz", "trained.keras", NETWORK, TYPES)
    outputs = ("estimate.json",)
    sections: ClassVar[Mapping[str, Section]] = {"estimate": EstimateConfig()}
    needs_keras = False
    reported = ("estimate.json",)
    result = EstimateResult

    def run(self, context: StageContext) -> EstimateResult:
        """Write the estimates of the network before and after to `estimate.json`; null if no calibrated model fits it.

        Its `advice` says what the network after lacks on the part, and what each change of the flow would bring. Where
        no tool for the part builds an hls4ml project, it holds the estimates of our `verilog` of the network after and
        of that before, at the same interval.
        """
        from fpgaprune.advice import advise_on_flow
        from fpgaprune.estimate import estimate as price

        target = context.config[TargetConfig].target()
        trained, design = (Design.load(context.run.file(name)) for name in ("design_trained.json", "design.json"))
        if not context.config[TargetConfig].makes_project:
            return _estimate_verilog(context, trained, design, target.part)
        try:
            before, after = price(trained, target), price(design, target)
            asked = context.config[EstimateConfig].advice
            flow = own_flow(context)
            advice = advise_on_flow(flow, design, target, trained=trained).to_json() if asked else None
        except EstimateError as error:
            context.run.write_json("estimate.json", None)
            return EstimateResult(left_out=str(error))
        figures = {"before": before.to_json(), "after": after.to_json()}
        context.run.write_json("estimate.json", {**figures, "advice": advice})
        fit_before, fit_after = (msgspec.convert(figure, FitByEstimate) for figure in figures.values())
        return EstimateResult(before=fit_before, after=fit_after, advice=advice)

    def settings(self, config: Flow) -> object:
        # An edit of the flow is one of all its sections.
        return config.model_dump(mode="json", exclude={"name", "verdict"})

    def part(self, context: StageContext, result: EstimateResult) -> ReportPart:
        figures, target = context.run.read_json("estimate.json") or {}, context.config[TargetConfig].target()
        sides = {side: figures.get(side) and Estimate.from_json(figures[side], target) for side in ("before", "after")}
        advice = figures.get("advice") and Advice.from_json(figures["advice"])
        ours = ("verilog", "verilog_before")
        prices = {side: figures.get(side) and VerilogPrice.from_json(figures[side]) for side in ours}
        no_project = None if result.verilog is None else result.verilog.no_project
        return ReportPart({**sides, **prices, "advice": advice}, left_out=result.left_out or no_project)

    def outcome(self, result: EstimateResult) -> Iterator[OutcomeLine]:
        if result.left_out is not None:
            yield OutcomeLine(f"price       left out: {result.left_out}")
        for side, found in (("before", result.before), ("after", result.after)):
            if found is not None:
                fits = {True: "fits", False: "does not fit", None: "cannot be judged"}[found.fits]
                if found.fits and found.fits_upper is False:
                    fits = "fits by the middle of its range, not by the upper end"
                cycles = f"{found.latency_cycles:,} cycles"
                yield OutcomeLine(f"{side:<11} {fits}, {cycles} (analytic estimate for logic synthesis)")
        if result.verilog is not None:
            for side, verilog in (("before", result.verilog_before), ("after", result.verilog)):
                if verilog is not None:
                    means = "estimate for open synthesis of our Verilog, without a harness"
                    cycles = f"{verilog.latency_cycles:,} cycles ({means})"
                    yield OutcomeLine(f"{side:<11} {verilog.taken}; {cycles}")


STAGE = EstimateStage()
