"""The stage `export`: the network as an ONNX file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from fpgaprune.certify import check_onnx_file
from fpgaprune.flow.requirements import Row, package
from fpgaprune.flow.samples import count_of, for_keras, predict
from fpgaprune.flow.section import Flow, Section
from fpgaprune.flow.stage import MASKS, NETWORK, FlowStage, ReportPart, Results, StageContext
from fpgaprune.report import Check


class ExportConfig(Section):
    """How `model.onnx` is written, and whether it goes to hls4ml too, as `second_opinion = true`."""

    batch: int | None = Field(default=None, ge=1)
    """Size of the first axis; free if left out."""
    opset: int = Field(default=17, ge=13, le=18)
    """ONNX operator set."""
    second_opinion: bool = False
    """Whether the file goes to hls4ml past Keras, and must give the design that Keras gave; takes a batch that is free
    or 1."""


_LINKS = {"model.onnx": lambda files: check_onnx_file(files.file("model.onnx"), files.masks())}


def _export(context: StageContext) -> dict[str, Any]:
    """`model.onnx` computes in onnxruntime what Keras computes."""
    from fpgaprune.export import export_onnx, run_onnx
    from fpgaprune.flow.onnx_error import onnx_error

    model, x = context.model(), context.data.x_test
    path, settings = context.run.file("model.onnx"), context.config[ExportConfig]
    export_onnx(model, path, {"fpgaprune.masks": context.masks().digest()}, settings.opset, settings.batch)
    error, allowed = onnx_error(model, x, predict(model, x), run_onnx(path, for_keras(x)))
    links = context.artefacts.proven(_LINKS)
    return {"max_abs_error": error, "allowed": allowed, "samples": count_of(x), **links}


def _settings(config: Flow) -> Any:
    settings = config[ExportConfig]
    return [settings.batch, settings.opset]


def _part(_: StageContext, results: Results) -> ReportPart:
    error, allowed, samples = (results[key] for key in ("max_abs_error", "allowed", "samples"))
    return ReportPart(checks=[Check("ONNX against Keras", "largest difference", error, allowed, samples=samples)])


def _needs() -> Iterator[Row]:
    yield package("export", "tf2onnx", "model.onnx")
    yield package("export", "onnxruntime", "the check against Keras")


STAGE = FlowStage(
    "export",
    _export,
    (NETWORK, MASKS),
    ("model.onnx",),
    _settings,
    sections={"export": ExportConfig(second_opinion=True)},
    links=_LINKS,
    part=_part,
    packages=("onnx", "tf2onnx", "onnxruntime"),
    needs=_needs,
)
