"""`export_onnx`: a Keras model as an ONNX file that says which initialiser is which weight."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ExportError
from fpgaprune.files import write_bytes
from fpgaprune.weights import named_weights

# onnx writes newer formats than onnxruntime reads; these are read by every onnxruntime since 1.18.
OPSET = 17
IR_VERSION = 10
_LAYOUT_KEY = "fpgaprune.layout"
# A prime that no layer's shape holds: with a free batch axis tf2onnx leaves chains of Shape, Gather and Slice, and
# which ones differs from run to run; a fixed one is folded into constants, where it is known again.
_TRACED_BATCH = 7919
# Each scaled weight was rounded once to float32.
_SCALE_ROUNDING = 1e-6
_COUNTED = re.compile(r"^(?P<stem>.*)__\d+(?P<rest>\D.*|)$")


def export_onnx(
    model: Any, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None, opset: int = OPSET
) -> Path:
    """`path` is a checked ONNX file of `model`, with a free batch axis and the weights' own names.

    An initialiser that holds a weight carries the weight's path as its name. The metadata `fpgaprune.layout` gives
    the permutation of its axes, and says where a BatchNorm was folded in, which scales each output; elsewhere the
    bits are the weight's. No initialiser holds -0.0.

    Args:
        model: a Keras model, Sequential or functional.
        path: the file to write.
        metadata: further entries for the file's metadata.
        opset: ONNX operator set.

    Raises:
        ExportError: the model has more than one input, or a kernel did not arrive unchanged.
    """
    import onnx

    if len(model.inputs) != 1:
        raise ExportError(f"model {model.name!r} has {len(model.inputs)} inputs; export takes models of one")
    tensor = model.inputs[0]
    exported = _traced(model, (_TRACED_BATCH, *tensor.shape[1:]), tensor.dtype, opset)
    if not _free_batch(exported.graph):
        # Something besides shapes depends on the batch size: let the graph compute it.
        exported = _traced(model, (None, *tensor.shape[1:]), tensor.dtype, opset)
    exported.ir_version = IR_VERSION
    layout = _name_initialisers(exported, model, onnx)
    _plain_zeros(exported.graph)
    _number_from_zero(exported.graph)
    entries = {_LAYOUT_KEY: json.dumps(layout, sort_keys=True), **(metadata or {})}
    for key, value in sorted(entries.items()):
        entry = exported.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.checker.check_model(exported, full_check=True)
    return write_bytes(path, exported.SerializeToString(deterministic=True))


def run_onnx(path: str | os.PathLike[str], x: NDArray[Any]) -> NDArray[np.float32]:
    """What onnxruntime computes for `x` (N, ...) from the file at `path`."""
    import onnxruntime

    session = onnxruntime.InferenceSession(os.fspath(path), providers=["CPUExecutionProvider"])
    result: NDArray[np.float32] = session.run(None, {session.get_inputs()[0].name: x})[0]
    return result


def _traced(model: Any, shape: tuple[int | None, ...], dtype: str, opset: int) -> Any:
    import tensorflow as tf
    import tf2onnx

    signature = (tf.TensorSpec(shape, dtype, name="input"),)
    function = tf.function(lambda x: model(x, training=False), input_signature=signature)
    return tf2onnx.convert.from_function(function, input_signature=signature, opset=opset)[0]


def _free_batch(graph: Any) -> bool:
    """Whether the traced batch size stood in shapes only, where it is now free."""
    from onnx import TensorProto, numpy_helper

    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for tensor in graph.initializer:
        if tensor.data_type not in (TensorProto.INT64, TensorProto.INT32):
            if _TRACED_BATCH in tensor.dims:
                return False
            continue
        values = numpy_helper.to_array(tensor)
        if not (values % _TRACED_BATCH == 0)[values != 0].any():
            continue
        if tensor.name not in shapes or (values == _TRACED_BATCH).sum() != 1 or (values == -1).any():
            return False
        tensor.CopyFrom(numpy_helper.from_array(np.where(values == _TRACED_BATCH, -1, values), tensor.name))
    for value in (*graph.input, *graph.output, *graph.value_info):
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_value == _TRACED_BATCH:
                axis.dim_param = "batch"
    return True


def _name_initialisers(exported: Any, model: Any, onnx: Any) -> dict[str, dict[str, Any]]:
    free = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in exported.graph.initializer}
    weights = {path: variable.numpy() for path, variable in named_weights(model).items()}
    layout: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    # Every unchanged weight finds its place before a scaled one may take it.
    for is_same in (_same_bits, _scaled):
        for path, array in weights.items():
            if path in layout or (is_same is _scaled and array.ndim < 2):
                continue
            found = _find(array, free, is_same, hint=path.rpartition("/")[0].rpartition("/")[2])
            if found is not None:
                name, permutation = found
                del free[name]
                names[name] = path
                layout[path] = {
                    "initializer": path,
                    "permutation": list(permutation),
                    "scaled": is_same is _scaled,
                }
    for path, array in weights.items():
        # BatchNorm's vectors, and biases before one, are merged by the exporter; what multiplies must be there.
        if array.ndim > 1 and path not in layout:
            raise ExportError(f"weight {path!r} of shape {array.shape} is not to be found in the ONNX file")
    for tensor in exported.graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    for node in exported.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    return layout


def _plain_zeros(graph: Any) -> None:
    """No initialiser holds -0.0, which a BatchNorm with a negative scale makes of a locked zero."""
    from onnx import TensorProto, numpy_helper

    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor)
            if (np.signbit(array) & (array == 0)).any():
                tensor.CopyFrom(numpy_helper.from_array(array + np.float32(0), tensor.name))


def _number_from_zero(graph: Any) -> None:
    """Names do not depend on what the process exported before: tf2onnx numbers them through its whole life."""
    renamed: dict[str, str] = {}
    counts: dict[str, int] = {}

    def settled(name: str) -> str:
        if name not in renamed:
            found = _COUNTED.match(name)
            if found is None:
                renamed[name] = name
            else:
                key = f"{found['stem']}__{found['rest']}"
                counts[key] = counts.get(key, 0) + 1
                renamed[name] = f"{found['stem']}__{counts[key]}{found['rest']}"
        return renamed[name]

    for node in graph.node:
        node.input[:] = [settled(name) for name in node.input]
        node.output[:] = [settled(name) for name in node.output]
        node.name = settled(node.name)
    for tensor in graph.initializer:
        tensor.name = settled(tensor.name)
    ordered = sorted(graph.initializer, key=lambda tensor: tensor.name)
    copies = [type(tensor).FromString(tensor.SerializeToString()) for tensor in ordered]
    del graph.initializer[:]
    graph.initializer.extend(copies)
    graph.value_info.sort(key=lambda value: value.name)
    for value in graph.value_info:
        value.name = renamed.get(value.name, value.name)
    for value in (*graph.input, *graph.output, *graph.value_info):
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_param:
                axis.dim_param = "batch"
    graph.name, graph.doc_string = "fpgaprune", ""


def _find(
    array: NDArray[Any],
    stored: Mapping[str, NDArray[Any]],
    is_same: Callable[[NDArray[Any], NDArray[Any]], bool],
    hint: str,
) -> tuple[str, tuple[int, ...]] | None:
    # Layers may hold equal bits: a name that mentions the layer goes first.
    for name in sorted(stored, key=lambda name: (f"/{hint}" not in name, name)):
        if stored[name].size != array.size or stored[name].ndim != array.ndim:
            continue
        for permutation in itertools.permutations(range(array.ndim)):
            found = np.transpose(stored[name], np.argsort(permutation))
            if found.shape == array.shape and is_same(array, found):
                return name, permutation
    return None


def _same_bits(array: NDArray[Any], found: NDArray[Any]) -> bool:
    # tobytes, not ==: -0.0 equals 0.0 as a number.
    return array.tobytes() == found.tobytes()


def _scaled(array: NDArray[Any], found: NDArray[Any]) -> bool:
    """Whether `found` is `array` times a factor for each output, as where a BatchNorm was folded into a kernel."""
    zero = array == 0
    if found.dtype != array.dtype or not np.array_equal(zero, found == 0):
        return False
    ratio = np.divide(found, array, where=~zero, out=np.full(array.shape, np.nan), dtype=np.float64, casting="unsafe")
    for outputs in (1, 2):  # a depthwise kernel has an output for each of its last two axes
        flat = np.ma.masked_invalid(ratio.reshape(-1, *ratio.shape[-outputs:]))
        spread = flat.max(axis=0) - flat.min(axis=0)
        if np.ma.all(spread <= _SCALE_ROUNDING * np.ma.abs(flat).max(axis=0)):
            return True
    return False
