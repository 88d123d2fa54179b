"""The stage `opinion`: hls4ml reads the run's ONNX file, and must make the same design as from Keras."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from fpgaprune.design import Design
from fpgaprune.errors import ToolError, UnsupportedLayerError
from fpgaprune.flow.dependence import section_json
from fpgaprune.flow.requirements import package
from fpgaprune.flow.section import Flow
from fpgaprune.flow.stage import FlowStage, ReportPart, Results, StageContext
from fpgaprune.flow.stages.export import ExportConfig
from fpgaprune.report import Check


def opinion(context: StageContext) -> dict[str, Any]:
    """hls4ml makes the design in `design.json` from `model.onnx` too, if the flow asks for this."""
    settings = context.config[ExportConfig]
    if not settings.second_opinion:
        return {}
    if settings.batch not in (None, 1):
        return {"left_out": f"model.onnx takes {settings.batch} samples at a time; hardware takes one"}
    from fpgaprune.hls import second_opinion

    design = Design.load(context.run.file("design.json"))
    try:
        found = second_opinion(context.run.file("model.onnx"), design, seed=context.config.seed).require()
    except (ToolError, UnsupportedLayerError) as error:
        return {"left_out": str(error)}
    return {"differences": len(found.differences), "samples": found.samples, "unlike": found.unlike}


def opinion_checks(found: Results) -> list[Check]:
    """The checks of the stage for the report; none if the flow does not ask for the stage."""
    if not found:
        return []
    name, quantity = "hls4ml from ONNX against hls4ml from Keras", "differences of the two designs"
    if "left_out" in found:
        return [Check(name, quantity, left_out=found["left_out"])]
    return [
        Check(name, quantity, found["differences"], 0),
        Check(name, "random samples with other bits", found["unlike"], 0, samples=found["samples"]),
    ]


def _settings(config: Flow) -> Any:
    # If qonnx was installed since, the stage can do what it left out.
    return [section_json(config[ExportConfig]), find_spec("qonnx") is not None]


STAGE = FlowStage(
    "opinion",
    opinion,
    ("model.onnx", "design.json", "design.npz"),
    (),
    _settings,
    needs_keras=False,
    not_asked="the flow does not ask for it (second_opinion = true in [export])",
    part=lambda _, results: ReportPart(checks=opinion_checks(results)),
    needs=lambda: [package("opinion", "qonnx", "hls4ml from the ONNX file", "second-opinion")],
)
