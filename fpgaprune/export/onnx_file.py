"""`export_onnx` writes a Keras model as an ONNX file that says which initialiser is which weight."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ExportError, RemovalError
from fpgaprune.export.logits import with_logits
from fpgaprune.export.running import outputs_of, require_runs, session_of
from fpgaprune.files import IR_VERSION, LAYOUT_KEY, write_bytes
from fpgaprune.network import graph_of
from fpgaprune.values import uncomputed_names

if TYPE_CHECKING:
    import keras

OPSET = 17


def export_onnx(
    model: keras.Model,
    path: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
    opset: int = OPSET,
    batch: int | None = None,
) -> Path:
    """Writes `model` to `path` as an ONNX file that runs in onnxruntime; the same model gives the same bytes.

    The file's inputs and outputs are the model's. It computes in float32, whatever precision the model has; weights of
    float64 are rounded once. What the model captured, such as a tensor that a `Lambda` reads, is a constant.
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
        ExportError: the opset or the batch is not allowed, a layer has no translation or keeps a state from call to
            call, a kernel did not arrive unchanged, a shape stays unknown, or onnxruntime cannot run the file. Nothing
            is written then.

    Examples:
        >>> print(fp.export_onnx(model, "net.onnx"))
        net.onnx
    """
    return write_bytes(path, onnx_bytes(model, metadata, opset, batch))


def onnx_bytes(
    model: Any, metadata: Mapping[str, str] | None = None, opset: int = OPSET, batch: int | None = None
) -> bytes:
    """The file that `export_onnx` writes; arguments and errors are its own."""
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
    try:
        graph_of(model)
    except RemovalError as error:
        raise ExportError(str(error)) from error
    for layer in model._flatten_layers():
        if getattr(layer, "stateful", False):
            raise ExportError(
                f"layer {layer.name!r} ({type(layer).__name__}) of model {model.name!r} is stateful, and an ONNX file "
                "keeps no state from call to call: make it with stateful=False"
            )
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
    content: bytes = exported.SerializeToString(deterministic=True)
    require_runs(content, written)
    return content


def run_onnx(path: str | os.PathLike[str], x: NDArray[Any] | Sequence[NDArray[Any]]) -> Any:
    """The float32 outputs (N, ...) that onnxruntime computes with the file at `path`; a tuple if there are several.

    `x` is an array (N, ...), or one for each input, and becomes what the file's inputs take, as uint8 of an image.
    A file with a fixed batch size gets that many samples at a time.
    """
    return outputs_of(session_of(os.fspath(path)), [x] if isinstance(x, np.ndarray) else list(x))


def run_logits(
    path: str | os.PathLike[str], x: NDArray[Any] | Sequence[NDArray[Any]], chosen: Sequence[bool]
) -> tuple[Any, tuple[bool, ...]]:
    """As `run_onnx`, with what a softmax or sigmoid reads as `chosen` outputs; and which outputs are that."""
    content, changed = with_logits(path, chosen)
    return outputs_of(session_of(content), [x] if isinstance(x, np.ndarray) else list(x)), changed
