"""The difference of `model.onnx` from Keras, and the difference that rounding explains."""

from __future__ import annotations

from typing import Any

from fpgaprune.errors import ExportError
from fpgaprune.flow.samples import Samples, arrays_of
from fpgaprune.network import largest_difference


def onnx_error(model: Any, x: Samples, wanted: Samples, found: Any) -> tuple[float, float]:
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
