"""How far `model.onnx` may lie from Keras: both round in float32, in an order of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from fpgaprune.errors import ExportError, RemovalError
from fpgaprune.flow.samples import Samples, arrays_of, at, for_keras, samples_of

# Allowed to any network, over the largest output or 1.
TOLERANCE = 1e-5
# And this many times Keras's own rounding: ONNX adds in another order, and Keras's order may have been a lucky one.
_TIMES = 8
# Samples that show Keras's own rounding.
_SAMPLES = 256


def onnx_error(model: Any, x: Samples, wanted: Samples, found: Any) -> tuple[float, float]:
    """The largest difference of `found` from `wanted`, over the largest output or 1, and what is allowed.

    Allowed is 1e-5, or 8 times what Keras itself loses to float32 on these samples, where that is more: a deep network
    without a fault in its file may lose more than 1e-5. It is known by a copy of the network in float64.

    Args:
        model: the Keras model.
        x: samples.
        wanted: what Keras gives for them.
        found: what the ONNX file gives for them.

    Raises:
        ExportError: the difference is larger than allowed.
    """
    outputs = arrays_of(wanted)
    scale = max(1.0, *(float(np.abs(array).max(initial=0.0)) for array in outputs))
    error = _largest(arrays_of(found), outputs) / scale
    allowed = TOLERANCE
    if not error <= allowed:
        allowed = max(allowed, _TIMES * _own_rounding(model, x, wanted) / scale)
    if not error <= allowed:
        raise ExportError(f"model.onnx differs from Keras by {error:.3g}; wanted {allowed:.3g} at most")
    return error, allowed


def _own_rounding(model: Any, x: Samples, wanted: Samples) -> float:
    """The largest difference of `wanted` from what `model` gives in float64; 0 where it has no copy in float64."""
    from fpgaprune.remove import rebuild

    some = slice(_SAMPLES)
    try:
        exact = rebuild(model, dtype="float64")
    except RemovalError:
        return 0.0
    inputs = tuple(np.asarray(array, np.float64) for array in arrays_of(at(x, some)))
    outputs = samples_of(exact.predict(for_keras(inputs if isinstance(x, tuple) else inputs[0]), verbose=0))
    return _largest(arrays_of(outputs), arrays_of(at(wanted, some)))


def _largest(found: tuple[Any, ...], wanted: tuple[Any, ...]) -> float:
    return max(float(np.abs(a.astype(np.float64) - b).max()) for a, b in zip(found, wanted, strict=True))
