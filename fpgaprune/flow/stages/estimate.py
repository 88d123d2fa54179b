"""The stage `estimate`: what the network takes of the part, before and after."""

from __future__ import annotations

from typing import Any

from fpgaprune.design import Design
from fpgaprune.errors import EstimateError
from fpgaprune.flow.context import Context


def estimate(context: Context) -> dict[str, Any]:
    """`estimate.json` prices the network before and after for the part; it is null where no calibrated model can.

    Its `advice` says what is short for the network after, and what each change would bring.
    """
    from fpgaprune.advice import advise
    from fpgaprune.estimate import estimate as price

    target = context.config.target.target()
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
