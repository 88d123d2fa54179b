"""The stage `export`: writes the network as an ONNX file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from fpgaprune.certify import check_onnx_file
from fpgaprune.errors import ExportError
from fpgaprune.flow.file import Flow, Section
from fpgaprune.flow.stages.requirements import package
from fpgaprune.flow.stages.stage import MASKS, NETWORK, FlowStage, ReportPart, Results, StageContext
from fpgaprune.flow.task import Dataset, count_of
from fpgaprune.report import Check


class ExportConfig(Section):
    """How `model.onnx` is written. Example: `batch = 1`."""

    batch: int | None = Field(default=None, ge=1)
    """Size of the first axis; free if left out."""
    opset: int = Field(default=17, ge=13, le=18)
    """ONNX operator set."""


_LINKS = {"model.onnx": lambda files: check_onnx_file(files.file("model.onnx"), files.masks())}


def _export(context: StageContext) -> dict[str, Any]:
    """`model.onnx` gives in onnxruntime the outputs that Keras gives."""
    from fpgaprune.export import export_onnx
    from fpgaprune.flow.stages.onnx_error import onnx_file_error

    model, x = context.model(), context.data.x_test
    path, settings = context.run.file("model.onnx"), context.config[ExportConfig]
    export_onnx(model, path, {"fpgaprune.masks": context.masks().digest()}, settings.opset, settings.batch)
    error, allowed = onnx_file_error(model, path, x)
    links = context.artefacts.proven(_LINKS)
    return {"max_abs_error": error, "allowed": allowed, "samples": count_of(x), **links}


def _foresee(config: Flow, _: Dataset, model: Any) -> Iterator[str]:
    """The line in which the export would end after the training: it hangs on the layers, and not on the weights."""
    from fpgaprune.export import onnx_bytes

    settings = config[ExportConfig]
    try:
        onnx_bytes(model, opset=settings.opset, batch=settings.batch)
    except ExportError as error:
        yield str(error)


def _settings(config: Flow) -> Any:
    settings = config[ExportConfig]
    return [settings.batch, settings.opset]


def _part(_: StageContext, results: Results) -> ReportPart:
    error, allowed, samples = (results[key] for key in ("max_abs_error", "allowed", "samples"))
    return ReportPart(checks=[Check("ONNX against Keras", "largest difference", error, allowed, samples=samples)])


STAGE = FlowStage(
    "export",
    _export,
    (NETWORK, MASKS),
    ("model.onnx",),
    _settings,
    foresee=_foresee,
    sections={"export": ExportConfig()},
    links=_LINKS,
    part=_part,
    packages=("onnx", "tf2onnx", "onnxruntime"),
    needs=lambda: [
        package("export", "tf2onnx", "model.onnx"),
        package("export", "onnxruntime", "the check against Keras"),
    ],
)
