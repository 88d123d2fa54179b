"""The stage `export`: the network as an ONNX file."""

from __future__ import annotations

from typing import Any

from fpgaprune.certify.link_checks import check_onnx_file
from fpgaprune.flow.context import Context
from fpgaprune.flow.facts import proven
from fpgaprune.flow.samples import count_of, for_keras, predict


def export(context: Context) -> dict[str, Any]:
    """`model.onnx` computes in onnxruntime what Keras computes."""
    from fpgaprune.export.onnx_file import export_onnx, run_onnx
    from fpgaprune.flow.onnx_error import onnx_error

    model = context.model("removed.keras")
    masks = context.masks("removed_masks.npz")
    path, settings = context.run.file("model.onnx"), context.config.export
    export_onnx(model, path, {"fpgaprune.masks": masks.digest()}, settings.opset, settings.batch)
    x = context.data.x_test
    error, allowed = onnx_error(model, x, predict(model, x), run_onnx(path, for_keras(x)))
    links = proven(check_onnx_file(path, masks))
    return {"max_abs_error": error, "allowed": allowed, "samples": count_of(x), **links}
