"""`export_onnx` writes a Keras model as an ONNX file that says which initialiser is which weight."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import onnx

from fpgaprune.errors import ExportError, RemovalError
from fpgaprune.export.running import outputs_of, require_runs, session_of
from fpgaprune.files import IR_VERSION, LAYOUT_KEY, Graph, write_bytes
from fpgaprune.network import cloned, copied, find_folds, folded_weights, graph_of, keras_class, unconnected
from fpgaprune.values import Array, uncomputed_names

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
    """Write `model` to `path` as an ONNX file that runs in onnxruntime; the same model gives the same bytes.

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
    model: keras.Model, metadata: Mapping[str, str] | None = None, opset: int = OPSET, batch: int | None = None
) -> bytes:
    """Return the file that `export_onnx` writes; arguments and errors are its own."""
    import onnx

    from fpgaprune.export.canonical import plain_zeros, settle
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


def run_onnx(path: str | os.PathLike[str], x: Array | Sequence[Array]) -> Any:
    """Run the file at `path` in onnxruntime; return its float32 outputs (N, ...), a tuple if there are several.

    `x` is an array (N, ...), or one for each input, and becomes what the file's inputs take, as uint8 of an image.
    A file with a fixed batch size gets that many samples at a time.
    """
    return outputs_of(session_of(os.fspath(path)), [x] if isinstance(x, np.ndarray) else list(x))


def run_logits(
    path: str | os.PathLike[str], x: Array | Sequence[Array], chosen: Sequence[bool]
) -> tuple[Any, tuple[bool, ...]]:
    """Run as `run_onnx`, with what a softmax or sigmoid reads as `chosen` outputs; also return which are that."""
    content, changed = with_logits(path, chosen)
    return outputs_of(session_of(content), [x] if isinstance(x, np.ndarray) else list(x)), changed


_SQUASHING = ("Softmax", "Sigmoid")
# Nodes that hand on every number that they read, at most in another type.
_HANDING_ON = ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")


def with_logits(path: str | os.PathLike[str], chosen: Sequence[bool]) -> tuple[bytes, tuple[bool, ...]]:
    """Put logits in place of `chosen` outputs of the ONNX file at `path`; also tell for each output if it is one.

    An output that no softmax or sigmoid makes, or one that something else reads, stays.
    """
    model = onnx.load(os.fspath(path))
    graph = Graph(model.graph)
    nodes = [
        _squashing(graph, output.name) if one else None for output, one in zip(model.graph.output, chosen, strict=True)
    ]
    for node in filter(None, nodes):
        node.op_type = "Identity"
        del node.attribute[:]
    return model.SerializeToString(), tuple(node is not None for node in nodes)


def _squashing(graph: Graph, output: str) -> Any | None:
    """Return the softmax or sigmoid that makes `output` and nothing else."""
    node = None if graph.readers(output) else graph.producers.get(output)
    while node is not None and node.op_type in _HANDING_ON:
        source = node.input[0]
        # A shape stays as it is.
        readers = [reader for reader in graph.readers(source) if reader.op_type != "Shape"]
        node = graph.producers.get(source) if readers == [node] and source not in graph.outputs else None
    return node if node is not None and node.op_type in _SQUASHING else None


def fold_batch_norms(model: keras.Model) -> tuple[Any, dict[str, str]]:
    """Return a model that computes the same at inference with its BatchNorms folded, and where each was folded.

    A BatchNorm that is the only reader of a linear convolution or Dense layer is folded into it in float64 and rounded
    once, as in `to_hls`, so that file and hardware hold the same bits. A layer of another precision (float64, bfloat16,
    mixed_float16) is made again in float32, which onnxruntime computes in. Layers that are not Keras's own stay as they
    are, and so does a model that contains other models. `model` is unchanged.

    Returns:
        The model, and layer name to the name of the BatchNorm folded into it.
    """
    functional = keras.Model(model.inputs, model.outputs, name=model.name)
    if any(hasattr(layer, "layers") for layer in model.layers):
        return functional, {}
    known = {layer.name: layer for layer in functional.layers if keras_class(layer) is not None}
    folds = {name: bn for name, bn in find_folds(functional).items() if name in known and bn.name in known}
    other = {name for name, layer in known.items() if _is_of_other_precision(layer)}
    if not folds and not other:
        return functional, {}
    folded = {layer: bn.name for layer, bn in folds.items()}

    def clone(layer: keras.Layer) -> keras.Layer:
        if layer.name not in folds and (layer.name not in other or not layer.weights):
            twin = unconnected(layer)
            if layer.name in other:
                twin.dtype_policy = "float32"
            return twin
        more = {"use_bias": True} if layer.name in folds else {}
        return copied(layer, **more, **({"dtype": "float32"} if layer.name in other else {}))

    def call(layer: keras.Layer, *args: object, **kwargs: object) -> keras.KerasTensor:
        return args[0] if layer.name in folded.values() else layer(*args, **kwargs)

    weights = {name: folded_weights(known[name], bn) for name, bn in folds.items()}
    return cloned(functional, clone, call, weights, float_inputs="float32"), folded


def _is_of_other_precision(layer: keras.Layer) -> bool:
    """Return whether `layer` computes with floats other than float32, or keeps such weights."""
    kinds = {layer.compute_dtype, layer.variable_dtype}
    return any(kind and "float" in kind for kind in kinds) and kinds != {"float32"}
