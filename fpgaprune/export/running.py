"""Runs ONNX files in onnxruntime, and refuses one that does not run with the model's inputs alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.errors import ExportError
from fpgaprune.files import in_a_line
from fpgaprune.values import Array

if TYPE_CHECKING:
    import keras
    import onnxruntime

# An axis of unknown size has this one in a trial; networks of images halve their axes up to six times.
_SIZE = 64
_FATAL = 4


def session_of(source: str | bytes) -> onnxruntime.InferenceSession:
    """Open a session of onnxruntime, without warnings, for the file at a path, or with the content `source`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def outputs_of(session: onnxruntime.InferenceSession, given: Sequence[Array]) -> Any:
    """Return the outputs (N, ...) for one array (N, ...) for each input; a tuple if there are several."""
    names = [entry.name for entry in session.get_inputs()]
    arrays = [array.astype(_dtype(entry.type)) for array, entry in zip(given, session.get_inputs(), strict=True)]
    fixed = session.get_inputs()[0].shape[0]
    count = len(arrays[0])
    step = fixed if isinstance(fixed, int) else max(count, 1)
    # The last batch is padded with samples whose outputs are dropped.
    padded = [np.concatenate([array, np.repeat(array[:1], -count % step, axis=0)]) for array in arrays]
    parts = [
        session.run(None, {name: array[start : start + step] for name, array in zip(names, padded, strict=True)})
        for start in range(0, max(count, 1), step)
    ]
    outputs = tuple(np.concatenate(column)[:count] for column in zip(*parts, strict=True))
    return outputs[0] if len(outputs) == 1 else outputs


def require_runs(content: bytes, functional: keras.Model) -> None:
    """Check that onnxruntime runs the file `content`: it has the inputs of `functional`, and outputs of their shapes.

    The trial is one batch of zeros. If an axis has no known size, the file may fail at the size of the trial.

    Raises:
        ExportError: it does not.
    """
    name = functional.name
    try:
        session = session_of(content)
    except Exception as error:  # onnxruntime raises classes of its own, which derive from Exception alone
        raise ExportError(_refusal(name, error)) from error
    wanted = [tuple(tensor.shape[1:]) for tensor in functional.inputs]
    found = [tuple(n if isinstance(n, int) else None for n in entry.shape[1:]) for entry in session.get_inputs()]
    if found != wanted:
        raise ExportError(
            f"the ONNX file of model {name!r} would have inputs of shapes {found}; the model has {wanted}: report this"
        )
    zeros = [np.zeros((1, *(size or _SIZE for size in shape)), np.float32) for shape in wanted]
    try:
        outputs = outputs_of(session, zeros)
    except Exception as error:
        if any(None in shape for shape in wanted):
            return  # the size may be too small for the model itself
        raise ExportError(_refusal(name, error)) from error
    arrays = outputs if isinstance(outputs, tuple) else (outputs,)
    shapes = [tuple(tensor.shape[1:]) for tensor in functional.outputs]
    fits = [
        len(array.shape[1:]) == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape[1:], strict=True))
        for array, shape in zip(arrays, shapes, strict=False)
    ]
    if len(arrays) != len(shapes) or not all(fits):
        raise ExportError(
            f"the ONNX file of model {name!r} gives outputs of shapes {[array.shape[1:] for array in arrays]}; the "
            f"model gives {shapes}: report this"
        )


def _refusal(name: str, error: Exception) -> str:
    return (
        f"onnxruntime cannot run the ONNX file of model {name!r}: {in_a_line(error)}; make the layer named there of "
        "float32, or of other operations"
    )


def _dtype(kind: str) -> np.dtype[Any]:
    """Return NumPy's type of onnxruntime's `kind`, such as `tensor(float)` or `tensor(uint8)`."""
    name = kind.removeprefix("tensor(").removesuffix(")")
    return np.dtype({"float": "float32", "double": "float64"}.get(name, name))
