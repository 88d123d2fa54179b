"""The largest allowed difference of `model.onnx` from Keras: both round in float32, but in different orders."""

from __future__ import annotations

from typing import Any

import numpy as np

from fpgaprune.errors import ExportError, RemovalError
from fpgaprune.flow.samples import Samples, arrays_of, at, for_keras, samples_of

# Allowed for every network, relative to the largest output or 1.
TOLERANCE = 1e-5
# Also allowed is this many times the rounding error of Keras: ONNX adds in another order, which may round worse.
_TIMES = 8
# Samples that show the rounding error of Keras.
_SAMPLES = 256


def onnx_error(model: Any, x: Samples, wanted: Samples, found: Any) -> tuple[float, float]:
    """The largest difference of `found` (ONNX) from `wanted` (Keras) for `x`, and the largest allowed difference.

    Both are relative to the largest output or 1.

    1e-5 is allowed, or 8 times the rounding error of Keras if that is more, because a deep network may lose more than
    1e-5. The rounding error is the difference from a copy of the network in float64.

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
    """The largest difference of `wanted` from the outputs of `model` in float64; 0 if it cannot be copied."""
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
