"""The stage `estimate`: estimates the resources of the network before and after pruning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fpgaprune.design import Design
from fpgaprune.errors import EstimateError, RtlError, UnsupportedLayerError
from fpgaprune.flow.file import Flow, Section, TargetConfig
from fpgaprune.flow.run import verilog_on
from fpgaprune.flow.stages.edits import own_flow
from fpgaprune.flow.stages.stage import NETWORK, TYPES, FlowStage, ReportPart, Results, StageContext
from fpgaprune.layout import Advice
from fpgaprune.measure import Estimate, VerilogPrice, occupancy_of
from fpgaprune.target import Part


class EstimateConfig(Section):
    """The estimate of what the network takes on its part."""

    advice: bool = True
    """Look for changes of the flow that make a network fit which does not; for a large network that takes a minute."""


def _estimate(context: StageContext) -> dict[str, Any]:
    """`estimate.json` holds the estimates of the network before and after; null if no calibrated model fits it.

    Its `advice` says what the network after lacks on the part, and what each change of the flow would bring. Where no
    tool for the part builds an hls4ml project, it holds the estimate of our `verilog` of the network after, and nothing
    else.
    """
    from fpgaprune.advice import advise_on_flow
    from fpgaprune.estimate import estimate as price

    target = context.config[TargetConfig].target()
    trained, design = (Design.load(context.run.file(name)) for name in ("design_trained.json", "design.json"))
    if not context.config[TargetConfig].makes_project:
        return _estimate_verilog(context, design, target.part)
    try:
        figures = {"before": price(trained, target).to_json(), "after": price(design, target).to_json()}
        asked = context.config[EstimateConfig].advice
        flow = own_flow(context)
        advice = advise_on_flow(flow, design, target, trained=trained).to_json() if asked else None
    except EstimateError as error:
        context.run.write_json("estimate.json", None)
        return {"left_out": str(error)}
    context.run.write_json("estimate.json", {**figures, "advice": advice})
    sides = {
        side: {key: figure[key] for key in ("fits", "fits_upper", "latency_cycles")} for side, figure in figures.items()
    }
    return {**sides, "advice": advice}


def _estimate_verilog(context: StageContext, design: Design, part: Part) -> dict[str, Any]:
    """`estimate.json` holds the estimate of our Verilog of `design`, or null if there is none."""
    try:
        made = verilog_on(design, part)
    except (EstimateError, RtlError, UnsupportedLayerError) as error:
        context.run.write_json("estimate.json", None)
        return {"left_out": f"{_no_project(part)}, and our Verilog has no estimate: {error}"}
    context.run.write_json("estimate.json", {"verilog": made.to_json()})
    words = occupancy_of(made.resources, part).words
    return {"verilog": {"words": words, "latency_cycles": made.latency_cycles, "no_project": _no_project(part)}}


def _no_project(part: Part) -> str:
    return "target.route is 'verilog'" if part.compiles_hls else f"no tool of {part.vendor} builds an hls4ml project"


def _part(context: StageContext, results: Results) -> ReportPart:
    figures, target = context.run.read_json("estimate.json") or {}, context.config[TargetConfig].target()
    sides = {side: figures.get(side) and Estimate.from_json(figures[side], target) for side in ("before", "after")}
    advice = figures.get("advice") and Advice.from_json(figures["advice"])
    verilog = figures.get("verilog") and VerilogPrice.from_json(figures["verilog"])
    found = results.get("verilog", {})
    return ReportPart(
        {**sides, "advice": advice, "verilog": verilog}, left_out=results.get("left_out") or found.get("no_project")
    )


def _outcome(results: Results) -> Iterator[tuple[str, str]]:
    if "left_out" in results:
        yield f"price       left out: {results['left_out']}", ""
    for side in (side for side in ("before", "after") if side in results):
        figure = results[side]
        fits = {True: "fits", False: "does not fit", None: "cannot be judged"}[figure["fits"]]
        if figure["fits"] and figure["fits_upper"] is False:
            fits = "fits by the middle of its range, not by the upper end"
        cycles = f"{figure['latency_cycles']:,} cycles"
        yield f"{side:<11} {fits}, {cycles} (analytic estimate for logic synthesis)", ""
    if "verilog" in results:
        made = results["verilog"]
        yield f"price       {made['no_project']}; our Verilog is judged", ""
        cycles = f"{made['latency_cycles']:,} cycles"
        yield f"after       {made['words']}; {cycles} (estimate for open synthesis, without a harness)", ""


def _settings(config: Flow) -> Any:
    # An edit of the flow is one of all its sections.
    return config.model_dump(mode="json", exclude={"name", "verdict"})


STAGE = FlowStage(
    "estimate",
    _estimate,
    ("design.json", "design.npz", "design_trained.json", "design_trained.npz", "trained.keras", NETWORK, TYPES),
    ("estimate.json",),
    _settings,
    sections={"estimate": EstimateConfig()},
    needs_keras=False,
    reported=("estimate.json",),
    part=_part,
    outcome=_outcome,
)
