"""What tf2onnx makes of a Keras model, with a batch axis that is free or fixed, and every shape known."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from fpgaprune.errors import ExportError
from fpgaprune.export.recurrent_nodes import put_nodes, with_stand_ins
from fpgaprune.export.rewriting import rewrite

# tf2onnx writes no later one, and before the first axes were attributes, which the rewriting does not know.
OPSETS = range(13, 19)
# A prime that no layer's shape holds: with a free batch axis tf2onnx leaves chains of Shape, Gather and Slice, and
# which ones differs from run to run; a fixed one is folded into constants, where it is known again.
_TRACED_BATCH = 7919


def trace(functional: Any, opset: int, batch: int | None) -> Any:
    """The ONNX model of `functional`, as tf2onnx names things, tidied, with the shapes of all its tensors.

    Args:
        functional: a functional Keras model.
        opset: ONNX operator set, one of `OPSETS`.
        batch: size of the first axis of every input; None leaves it free.

    Raises:
        ExportError: a layer has no translation, or a shape stays unknown although the batch is fixed.
    """
    if batch is not None:
        exported = rewrite(_traced(functional, batch, opset))
        _require_known_shapes(exported.graph, functional.name)
        return exported
    exported = rewrite(_traced(functional, _TRACED_BATCH, opset))
    if not _free_batch(exported.graph):
        # Something besides shapes depends on the batch size: let the graph compute it.
        exported = rewrite(_traced(functional, None, opset))
    return exported


def _traced(functional: Any, batch: int | None, opset: int) -> Any:
    import tensorflow as tf
    import tf2onnx

    names = [f"input_{number}" for number in range(1, 1 + len(functional.inputs))]
    signature = tuple(
        tf.TensorSpec((batch, *tensor.shape[1:]), tensor.dtype, name=name if len(names) > 1 else "input")
        for name, tensor in zip(names, functional.inputs, strict=True)
    )
    traced, marks = with_stand_ins(functional)
    function = tf.function(lambda *x: traced(x if len(x) > 1 else x[0], training=False), input_signature=signature)
    # It reports what it cannot translate; here that is an error below.
    log = logging.getLogger("tf2onnx")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        exported = tf2onnx.convert.from_function(function, input_signature=signature, opset=opset)[0]
    finally:
        log.setLevel(level)
    put_nodes(exported.graph, marks)
    _require_translated(exported, functional, opset)
    return exported


def _require_translated(exported: Any, functional: Any, opset: int) -> None:
    from onnx import defs

    for node in exported.graph.node:
        if node.domain in ("", "ai.onnx") and not defs.has(node.op_type, opset):
            parts = node.name.split("/")
            # Keras ends the names of traced layers in a number.
            found = [layer for layer in functional.layers if {layer.name, f"{layer.name}_1"} & set(parts)]
            where = f"layer {found[0].name!r} ({type(found[0]).__name__})" if found else f"node {node.name!r}"
            groups = getattr(found[0], "groups", 1) if found else 1
            instead = "split it with fp.split_groups" if groups > 1 else "use another layer or activation"
            raise ExportError(
                f"{where} of model {functional.name!r} needs an operation {node.op_type!r}, which ONNX does not have "
                f"in opset {opset}: {instead}"
            )


def _require_known_shapes(graph: Any, model: str) -> None:
    known = {value.name for value in (*graph.value_info, *graph.output) if _is_static(value)}
    for node in graph.node:
        for tensor in node.output:
            if tensor and tensor not in known:
                raise ExportError(
                    f"the shape of {tensor!r}, which {node.op_type} makes in the ONNX file of model {model!r}, is not "
                    "known although the batch is fixed: give every axis of the model's inputs a size"
                )


def _is_static(value: Any) -> bool:
    kind = value.type.tensor_type
    return kind.HasField("shape") and all(axis.HasField("dim_value") for axis in kind.shape.dim)


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
        holds = (values != 0) & (values % _TRACED_BATCH == 0)
        if not holds.any():
            continue
        if tensor.name not in shapes or holds.sum() != 1 or (values == -1).any():
            return False
        # The one axis that the others leave open: the batch, or the batch times axes that are merged with it.
        tensor.CopyFrom(numpy_helper.from_array(np.where(holds, -1, values), tensor.name))
    for value in (*graph.input, *graph.output, *graph.value_info):
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_value == _TRACED_BATCH:
                axis.dim_param = "batch"
            elif axis.dim_value and axis.dim_value % _TRACED_BATCH == 0:
                axis.Clear()
    return True
