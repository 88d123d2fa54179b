"""The stage `estimate`: estimates the resources of the network before and after pruning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fpgaprune.design import Design
from fpgaprune.errors import EstimateError
from fpgaprune.flow.dependence import section_json
from fpgaprune.flow.sections import TargetConfig
from fpgaprune.flow.stage import FlowStage, ReportPart, Results, StageContext
from fpgaprune.measure import Advice, Estimate


def _estimate(context: StageContext) -> dict[str, Any]:
    """`estimate.json` holds the estimates of the network before and after; null if no calibrated model fits it.

    Its `advice` says what the network after lacks on the part, and what each change would bring.
    """
    from fpgaprune.advice import advise
    from fpgaprune.estimate import estimate as price

    target = context.config[TargetConfig].target()
    trained, design = (Design.load(context.run.file(name)) for name in ("design_trained.json", "design.json"))
    try:
        figures = {"before": price(trained, target).to_json(), "after": price(design, target).to_json()}
        advice = advise(design, target, trained=trained).to_json()
    except EstimateError as error:
        context.run.write_json("estimate.json", None)
        return {"left_out": str(error)}
    context.run.write_json("estimate.json", {**figures, "advice": advice})
    sides = {
        side: {key: figure[key] for key in ("fits", "fits_upper", "latency_cycles")} for side, figure in figures.items()
    }
    return {**sides, "advice": advice}


def _part(context: StageContext, results: Results) -> ReportPart:
    figures, target = context.run.read_json("estimate.json") or {}, context.config[TargetConfig].target()
    sides = {side: figures.get(side) and Estimate.from_json(figures[side], target) for side in ("before", "after")}
    advice = figures.get("advice") and Advice.from_json(figures["advice"])
    return ReportPart({**sides, "advice": advice}, left_out=results.get("left_out"))


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


STAGE = FlowStage(
    "estimate",
    _estimate,
    ("design.json", "design.npz", "design_trained.json", "design_trained.npz"),
    ("estimate.json",),
    lambda config: section_json(config[TargetConfig]),
    needs_keras=False,
    reported=("estimate.json",),
    part=_part,
    outcome=_outcome,
)
