"""`export_onnx` writes a Keras model as an ONNX file that says which initialiser is which weight."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ExportError
from fpgaprune.files import write_bytes
from fpgaprune.onnx_graph import IR_VERSION, LAYOUT_KEY
from fpgaprune.weights import uncomputed_names

OPSET = 17


def export_onnx(
    model: Any,
    path: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    opset: int = OPSET,
    batch: int | None = None,
) -> Path:
    """Writes `model` to `path` as a checked ONNX file; the same model gives the same bytes.

    Every tensor has a shape, with a free batch axis (`batch` None) or a fixed batch size. An initialiser that holds a
    weight is named by the weight's path; it is found through the graph, not by its values. The metadata
    `fpgaprune.layout` gives the weight's shape and the permutation of its axes, and says where a folded BatchNorm
    scales each output; elsewhere the bits are the weight's. `to_hls` folds the same layers to the same bits. No
    initialiser holds -0.0.

    Args:
        model: a Keras model, Sequential or functional, with models inside it or not.
        path: the file to write.
        metadata: further entries for the file's metadata.
        opset: ONNX operator set, 13 to 18.
        batch: size of the inputs' first axis; None leaves it free.

    Raises:
        ExportError: the opset or the batch is not allowed, a layer has no translation, a kernel did not arrive
            unchanged, or a shape stays unknown. Nothing is written then.
    """
    import onnx

    from fpgaprune.export.canonical import plain_zeros, settle
    from fpgaprune.export.folding import fold_batch_norms
    from fpgaprune.export.naming import name_initialisers
    from fpgaprune.export.tracing import OPSETS, trace

    if opset not in OPSETS:
        raise ExportError(
            f"opset is {opset!r}; tf2onnx writes {OPSETS[0]} to {OPSETS[-1]} here: take the default {OPSET}"
        )
    if batch is not None and (isinstance(batch, bool) or not isinstance(batch, int) or batch < 1):
        raise ExportError(f"batch is {batch!r}; wanted a whole number of samples, or None for any")
    if not getattr(model, "inputs", None):
        raise ExportError(f"model {model.name!r} has no inputs of known shape: make it Sequential or functional")
    for problem in uncomputed_names(model):
        raise ExportError(f"model {model.name!r} cannot be exported: {problem}")
    written, folds = fold_batch_norms(model)
    exported, constants = trace(written, opset, batch)
    exported.ir_version = IR_VERSION
    layout, named = name_initialisers(exported.graph, constants, model, folds)
    plain_zeros(exported.graph)
    settle(exported, named)
    entries = {LAYOUT_KEY: json.dumps(layout, sort_keys=True), **(metadata or {})}
    for key, value in sorted(entries.items()):
        entry = exported.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.checker.check_model(exported, full_check=True)
    return write_bytes(path, exported.SerializeToString(deterministic=True))


def run_onnx(path: str | os.PathLike[str], x: NDArray[Any] | Sequence[NDArray[Any]]) -> Any:
    """The float32 outputs (N, ...) that onnxruntime computes with the file at `path`; a tuple if there are several.

    `x` is an array (N, ...), or one for each input, and becomes what the file's inputs take, as uint8 of an image.
    A file with a fixed batch size gets that many samples at a time.
    """
    import onnxruntime

    session = onnxruntime.InferenceSession(os.fspath(path), providers=["CPUExecutionProvider"])
    given = [x] if isinstance(x, np.ndarray) else list(x)
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


def _dtype(kind: str) -> np.dtype[Any]:
    """NumPy's type of onnxruntime's `kind`, such as `tensor(float)` or `tensor(uint8)`."""
    name = kind.removeprefix("tensor(").removesuffix(")")
    return np.dtype({"float": "float32", "double": "float64"}.get(name, name))
