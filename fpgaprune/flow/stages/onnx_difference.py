"""The difference of `model.onnx` from Keras, and the difference that rounding explains."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpgaprune.errors import ExportError
from fpgaprune.export import run_logits, run_onnx
from fpgaprune.flow.task import Samples, arrays_of, for_keras, predict
from fpgaprune.network import largest_difference
from fpgaprune.remove import rebuild, squashing_layers

if TYPE_CHECKING:
    import keras


def onnx_file_error(model: keras.Model, path: Path, x: Samples) -> tuple[float, float]:
    """Measure as `onnx_error` what onnxruntime computes with the file at `path` for samples `x`.

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
    """Return the difference of `found` (ONNX) from `wanted` (Keras) that rounding explains least, and what it explains.

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
