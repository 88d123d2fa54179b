"""The stage `export`: writes the network as an ONNX file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from fpgaprune.certify import check_onnx_file
from fpgaprune.errors import ExportError
from fpgaprune.flow.file import Flow, Section
from fpgaprune.flow.stages.requirements import Row, package
from fpgaprune.flow.stages.stage import MASKS, NETWORK, FlowStage, ReportPart, StageContext, StageResult
from fpgaprune.flow.task import Dataset, count_of
from fpgaprune.report import Check

if TYPE_CHECKING:
    import keras


class ExportConfig(Section):
    """How `model.onnx` is written. Example: `batch = 1`."""

    batch: int | None = Field(default=None, ge=1)
    """Size of the first axis; free if left out."""
    opset: int = Field(default=17, ge=13, le=18)
    """ONNX operator set."""


_LINKS = {"model.onnx": lambda files: check_onnx_file(files.file("model.onnx"), files.masks())}


class ExportResult(StageResult, frozen=True, kw_only=True, omit_defaults=True):
    """The differences of `model.onnx` from Keras.

    Attributes:
        max_abs_error: the largest difference of an output.
        allowed: the difference that rounding explains there.
        samples: number of compared samples.
    """

    max_abs_error: float
    allowed: float
    samples: int


class ExportStage(FlowStage[ExportResult]):
    """Writes the network as an ONNX file."""

    name = "export"
    inputs = (NETWORK, MASKS)
    outputs = ("model.onnx",)
    sections: ClassVar[Mapping[str, Section]] = {"export": ExportConfig()}
    links = _LINKS
    packages = ("onnx", "tf2onnx", "onnxruntime")
    result = ExportResult

    def run(self, context: StageContext) -> ExportResult:
        """Write `model.onnx`; check that it gives in onnxruntime the outputs that Keras gives."""
        from fpgaprune.export import export_onnx
        from fpgaprune.flow.stages.onnx_difference import onnx_file_error

        model, x = context.model(), context.data.x_test
        path, settings = context.run.file("model.onnx"), context.config[ExportConfig]
        export_onnx(model, path, {"fpgaprune.masks": context.masks().digest()}, settings.opset, settings.batch)
        error, allowed = onnx_file_error(model, path, x)
        links = context.artefacts.proven(_LINKS)
        return ExportResult(max_abs_error=error, allowed=allowed, samples=count_of(x), links=links)

    def settings(self, config: Flow) -> object:
        settings = config[ExportConfig]
        return [settings.batch, settings.opset]

    def foresee(self, config: Flow, _: Dataset, model: keras.Model) -> Iterator[str]:
        """Yield the error in which the export would end after training: it hangs on the layers, not the weights."""
        from fpgaprune.export import onnx_bytes

        settings = config[ExportConfig]
        try:
            onnx_bytes(model, opset=settings.opset, batch=settings.batch)
        except ExportError as error:
            yield str(error)

    def part(self, context: StageContext, result: ExportResult) -> ReportPart:
        error, samples = result.max_abs_error, result.samples
        check = Check("ONNX against Keras", "largest difference", error, result.allowed, samples=samples)
        return ReportPart(checks=[check])

    def needs(self) -> list[Row]:
        return [package("export", "tf2onnx", "model.onnx"), package("export", "onnxruntime", "the check against Keras")]


STAGE = ExportStage()
