"""Translates a Keras model with tf2onnx, with a free or fixed batch axis and every shape known."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.errors import ExportError, FpgaPruneError
from fpgaprune.export.ordered_sets import ordered_sets
from fpgaprune.export.recurrent_nodes import put_nodes, with_stand_ins
from fpgaprune.export.rewriting import rewrite
from fpgaprune.export.tags import can_be_tagged
from fpgaprune.export.weight_inputs import Constants, find_constants
from fpgaprune.files import in_a_line
from fpgaprune.values import Array, named_weights

if TYPE_CHECKING:
    import keras
    import onnx

# tf2onnx writes no later opset. In earlier ones axes are attributes, which the rewriting does not know.
OPSETS = range(13, 19)
# A prime that is in no layer's shape. With a free batch axis, tf2onnx leaves chains of Shape, Gather and Slice that
# differ from run to run. A fixed batch size is folded into constants, where this number can be recognised.
_TRACED_BATCH = 7919
# An input that is a weight is named by this and a number.
_WEIGHT = "weight_"
# Behind this, Keras names the layer and what it raised.
_KERAS_SAYS = "Exception encountered when "


def trace(functional: keras.Model, opset: int, batch: int | None) -> tuple[Any, Constants]:
    """Return the rewritten ONNX model of `functional` with all shapes, and the tags that stand for its weights.

    Args:
        functional: a functional Keras model.
        opset: ONNX operator set, one of `OPSETS`.
        batch: size of the first axis of every input; None leaves it free.

    Raises:
        ExportError: a layer has no translation, or a shape stays unknown although the batch is fixed.
    """
    try:
        return _with_batch(functional, opset, batch)
    except FpgaPruneError:
        raise
    except Exception as error:  # a layer, TensorFlow, tf2onnx and onnx raise what they like
        said = in_a_line(error, after=_KERAS_SAYS)
        raise ExportError(f"model {functional.name!r} cannot be written as ONNX: {said}; use another layer") from error


def _with_batch(functional: keras.Model, opset: int, batch: int | None) -> tuple[Any, Constants]:
    exported, constants = _traced(functional, _TRACED_BATCH if batch is None else batch, opset)
    if batch is not None:
        _require_known_shapes(exported.graph, functional.name)
    elif not _free_batch(exported.graph):
        # Not only shapes depend on the batch size, so the graph has to compute it.
        exported, constants = _traced(functional, None, opset)
    return exported, constants


def _traced(functional: keras.Model, batch: int | None, opset: int) -> tuple[Any, Constants]:
    # All of tf2onnx is loaded before its sets are replaced.
    import tf2onnx.tfonnx  # noqa: F401
    from tf2onnx.optimizer import optimize_graph

    traced, marks = with_stand_ins(functional)
    own = {id(variable) for variable in traced.variables}
    paths = {id(variable): path for path, variable in named_weights(functional).items()}
    given = [v for v in named_weights(functional).values() if id(v) in own and can_be_tagged(v.numpy())]
    # tf2onnx reports what it cannot translate; the error is raised below.
    log = logging.getLogger("tf2onnx")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with ordered_sets():
            translated = _translated(traced, given, batch, opset)
            exported = translated.make_model(functional.name)
            _require_translated(exported, functional, opset)
            values = {f"{_WEIGHT}{number}:0": (paths[id(v)], v.numpy()) for number, v in enumerate(given)}
            constants = find_constants(exported, values)
            _put_in(translated, constants, values)
            exported = optimize_graph(translated).make_model(functional.name)
    finally:
        log.setLevel(level)
    put_nodes(exported.graph, marks, lambda variable: constants.tags.add(paths[id(variable)], variable.numpy()))
    return rewrite(exported), constants


def _put_in(translated: Any, constants: Constants, inputs: Iterable[str]) -> None:
    """Replace what `translated` computes from weights by the constants, and remove its `inputs` that were weights."""
    from tf2onnx.utils import make_name

    for name, array in constants.arrays.items():
        translated.replace_all_inputs(name, translated.make_const(make_name("constant"), array).output[0])
    translated.delete_unused_nodes(translated.outputs)
    for name in inputs:
        translated.remove_node(translated.get_node_by_output(name).name)
    for node in translated.get_nodes():
        # If a constant is the second operand, tf2onnx multiplies it into the convolution before it.
        if node.type == "Mul" and node.inputs[1].is_const() and not node.inputs[0].is_const():
            translated.replace_inputs(node, list(reversed(node.input)))


def _translated(functional: keras.Model, variables: list[Any], batch: int | None, opset: int) -> onnx.ModelProto:
    """Translate `functional` with tf2onnx, before its optimisation; the values of `variables` are further inputs."""
    import keras
    import tensorflow as tf
    from tf2onnx import tf_loader
    from tf2onnx.tfonnx import process_tf_graph

    count = len(functional.inputs)
    names = [f"input_{number}" for number in range(1, 1 + count)] if count > 1 else ["input"]
    given = zip(names, functional.inputs, strict=True)
    signature = [tf.TensorSpec((batch, *tensor.shape[1:]), tensor.dtype, name=name) for name, tensor in given]
    signature += [tf.TensorSpec(v.shape, v.dtype, name=f"{_WEIGHT}{number}") for number, v in enumerate(variables)]

    def call(*tensors: object) -> Any:
        with keras.StatelessScope(state_mapping=list(zip(variables, tensors[count:], strict=True))):
            return functional(list(tensors[:count]) if count > 1 else tensors[0], training=False)

    function = tf.function(call, input_signature=signature).get_concrete_function()
    # What the model captured, such as a tensor of a Lambda, follows the inputs of the signature; it becomes a constant.
    inputs, outputs = ([t.name for t in ts] for ts in (function.inputs[: len(signature)], function.outputs))
    with tf.device("/cpu:0"):
        frozen = tf_loader.from_function(function, inputs, outputs)
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(_inlined(frozen, inputs, outputs), name="")
            return process_tf_graph(
                graph,
                continue_on_error=True,
                opset=opset,
                custom_op_handlers={"Erfc": (_complement, []), "Conv3D": (_volume_convolution, [])},
                input_names=inputs,
                output_names=outputs,
            )


def _inlined(frozen: Any, inputs: list[str], outputs: list[str]) -> Any:
    """Replace calls of functions that XLA has to compile by their nodes; Keras puts a grouped convolution in one."""
    from tf2onnx import tf_loader

    marked = [node for node in (*frozen.node, *frozen.library.function) if "_XlaMustCompile" in node.attr]
    for node in marked:
        for mark in ("_XlaMustCompile", "_noinline"):
            node.attr.pop(mark, None)
    return tf_loader.tf_optimize(inputs, outputs, frozen) if marked else frozen


def _complement(context: Any, node: onnx.NodeProto, name: str, _: Any) -> None:
    """Translate TensorFlow's `Erfc`, which Keras's gelu uses, to 1 - `Erf`."""
    erf = context.make_node("Erf", [node.input[0]])
    one = context.make_const(f"{name}_one", np.ones(1, np.float32))
    context.remove_node(name)
    context.make_node("Sub", [one.output[0], erf.output[0]], name=name, outputs=node.output)


def _volume_convolution(context: Any, node: Any, *_: object) -> None:
    """Translate TensorFlow's `Conv3D`; tf2onnx counts the groups of a convolution in one or two dimensions only."""
    from tf2onnx.onnx_opset.nn import ConvOp

    first = node.attr["data_format"].s.startswith(b"NC")
    channels, read = context.get_shape(node.input[0])[1 if first else -1], context.get_shape(node.input[1])[-2]
    ConvOp.any_version(context.opset, context, node)
    node.set_attr("group", channels // read)


def _require_translated(exported: onnx.ModelProto, functional: keras.Model, opset: int) -> None:
    from onnx import defs

    for node in exported.graph.node:
        if node.domain in ("", "ai.onnx") and not defs.has(node.op_type, opset):
            parts = node.name.split("/")
            # Keras adds a number to the names of traced layers.
            found = [layer for layer in functional.layers if {layer.name, f"{layer.name}_1"} & set(parts)]
            where = f"layer {found[0].name!r} ({type(found[0]).__name__})" if found else f"node {node.name!r}"
            raise ExportError(
                f"{where} of model {functional.name!r} needs an operation {node.op_type!r}, which ONNX does not have "
                f"in opset {opset}: use another layer or activation"
            )


def _require_known_shapes(graph: onnx.GraphProto, model: str) -> None:
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


def _free_batch(graph: onnx.GraphProto) -> bool:
    """Free the batch axis of all shapes; False if the batch size appears anywhere else."""
    from onnx import TensorProto, numpy_helper

    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for tensor in graph.initializer:
        values = numpy_helper.to_array(tensor)
        if tensor.data_type not in (TensorProto.INT64, TensorProto.INT32):
            if _TRACED_BATCH in tensor.dims or _is_computed_from_batch(values):
                return False
            continue
        holds = (values != 0) & (values % _TRACED_BATCH == 0)
        if not holds.any():
            continue
        if tensor.name not in shapes or holds.sum() != 1 or (values == -1).any():
            return False
        # The axis whose size follows from the others: the batch, or the batch times axes that are merged with it.
        tensor.CopyFrom(numpy_helper.from_array(np.where(holds, -1, values), tensor.name))
    for value in (*graph.input, *graph.output, *graph.value_info):
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_value == _TRACED_BATCH:
                axis.dim_param = "batch"
            elif axis.dim_value and axis.dim_value % _TRACED_BATCH == 0:
                axis.Clear()
    return True


def _is_computed_from_batch(values: Array) -> bool:
    """Return whether floats are a multiple of the batch size, or one over it, as in a batch's mean; tags are larger."""
    if values.dtype.kind != "f":
        return False
    sizes = values.astype(np.float64)
    sizes = np.abs(sizes[(np.abs(sizes) > 2.0**-32) & (np.abs(sizes) < 2.0**32)])
    multiples = np.concatenate([sizes, 1 / sizes]) / _TRACED_BATCH
    # One over a number of 24 bits, of which one over is taken again.
    return bool(((multiples > 0.5) & (np.abs(multiples - np.round(multiples)) <= 2.0**-22 * multiples)).any())
