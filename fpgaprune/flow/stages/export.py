"""The stage `export`: writes the network as an ONNX file and compares it with Keras."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from fpgaprune.certify import check_onnx_file
from fpgaprune.errors import ExportError
from fpgaprune.export import run_logits, run_onnx
from fpgaprune.flow.file import Flow, Section
from fpgaprune.flow.stages.requirements import Row, package
from fpgaprune.flow.stages.stage import MASKS, NETWORK, FlowStage, ReportPart, StageContext, StageResult
from fpgaprune.flow.task import Dataset, Samples, arrays_of, count_of, for_keras, predict
from fpgaprune.network import largest_difference
from fpgaprune.remove import rebuild, squashing_layers
from fpgaprune.report import Check

if TYPE_CHECKING:
    import keras


def onnx_file_error(model: keras.Model, path: Path, x: Samples) -> tuple[float, float]:
    """As `onnx_error`, of what onnxruntime computes with the file at `path` for samples `x`.

    The inputs of a final softmax or sigmoid are compared, too: where it saturates, another network has its outputs.

    Raises:
        ExportError: a difference is larger than rounding explains.
    """
    given = for_keras(x)
    found = onnx_error(model, x, predict(model, x), run_onnx(path, given))
    squashed = tuple(layer is not None for layer in squashing_layers(model))
    if not any(squashed):
        return found
    logits, changed = run_logits(path, given, squashed)
    if changed != squashed:
        return found
    bare = rebuild(model, bare=True)
    return max(found, onnx_error(bare, x, predict(bare, x), logits), key=lambda pair: pair[0] / pair[1])


def onnx_error(model: keras.Model, x: Samples, wanted: Samples, found: Any) -> tuple[float, float]:
    """The difference of `found` (ONNX) from `wanted` (Keras) that rounding explains least, and how much it explains.

    Both compute in float32, but add in different orders, and ONNX has BatchNorms folded.

    Raises:
        ExportError: the difference is larger than rounding explains.
    """
    error, allowed = largest_difference(model, arrays_of(x), arrays_of(wanted), arrays_of(found))
    if not error <= allowed:
        raise ExportError(
            f"model.onnx differs from Keras by {error:.3g}; rounding explains {allowed:.3g} at most in that output, so "
            "this is another network: report it, with the model"
        )
    return error, allowed


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
        """`model.onnx` gives in onnxruntime the outputs that Keras gives."""
        from fpgaprune.export import export_onnx

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
        """The line in which the export would end after the training: it hangs on the layers, and not on the weights."""
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
        return [
            package("export", "tf2onnx", "model.onnx"),
            package("export", "onnxruntime", "the check against Keras"),
        ]


STAGE = ExportStage()
