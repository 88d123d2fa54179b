"""Cleans an ONNX file with qonnx for hls4ml's ONNX front end: a batch of one, channels last.

This module itself does only what qonnx 1.0.0 does not: it writes padding as numbers, writes defaults out, and puts
channels last where qonnx does not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fpgaprune.design import FUNCTIONS
from fpgaprune.errors import HlsError, ToolError, UnsupportedLayerError
from fpgaprune.hls.onnx_layout import keep_channels_last
from fpgaprune.onnx_graph import IR_VERSION, Graph, attributes, read_onnx, set_attribute

# hls4ml 1.3.0 reads these from ONNX with their meaning there, after the rules below.
OPERATIONS = frozenset(
    {
        *("Conv", "Gemm", "MatMul", "Add", "Sub", "Mul", "Concat", "Transpose", "Reshape", "Flatten", "Squeeze", "Pad"),
        *(function.onnx for function in FUNCTIONS.values() if function.converts and function.onnx),
        "Softmax",
        *("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", "Max", "Min"),
    }
)
_WINDOWS = frozenset({"Conv", "MaxPool", "AveragePool"})


def read_clean(path: Path) -> Any:
    """The file at `path` as a model of qonnx, with a batch of one, in the form that hls4ml reads.

    Raises:
        ToolError: qonnx is not installed.
        HlsError: the file is missing, is not ONNX or has another fixed batch size, or qonnx cannot clean it.
        UnsupportedLayerError: an operation cannot take this route; the message names it.
    """
    try:
        from qonnx.core.modelwrapper import ModelWrapper
        from qonnx.transformation.channels_last import ConvertToChannelsLastAndClean
        from qonnx.transformation.gemm_to_matmul import GemmToMatMul
        from qonnx.util.cleanup import cleanup_model
    except ImportError as error:
        raise ToolError(
            "qonnx, which cleans ONNX files for hls4ml, was not found: pip install 'fpgaprune[second-opinion]'"
        ) from error
    model = read_onnx(path, HlsError)
    if not model.graph.node:
        raise HlsError(f"{path} has no nodes")
    model = _one_sample(model, path)
    _require_operations(model.graph, path)
    _say_global_averages(model.graph)
    _say_paddings(model.graph)
    _say_defaults(model.graph)
    _turn_single_channels(model.graph)
    with _readable_nodes():
        try:
            clean = cleanup_model(ModelWrapper(model))
            clean = clean.transform(ConvertToChannelsLastAndClean()).transform(GemmToMatMul())
            clean = cleanup_model(clean)
        except Exception as error:
            # qonnx raises bare Exception and AssertionError.
            raise HlsError(f"qonnx cannot clean {path.name}: {str(error) or type(error).__name__}") from error
    keep_channels_last(clean)
    return clean


def _one_sample(model: Any, path: Path) -> Any:
    import onnx

    weights = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        batch = value.type.tensor_type.shape.dim[0]
        if batch.dim_value > 1:
            raise HlsError(f"{path} is fixed to {batch.dim_value} samples at a time; export it with batch=None or 1")
        if value.name not in weights:
            batch.dim_value = 1
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)


_RECURRENT = ("GRU", "LSTM", "Loop")


def _require_operations(graph: Any, path: Path) -> None:
    view = Graph(graph)
    # A recurrent layer is named before the nodes that reorder its weights.
    for node in sorted(graph.node, key=lambda node: node.op_type not in _RECURRENT):
        where = f"node {node.name or node.output[0]!r} of {path.name} is a {node.op_type}"
        if node.op_type not in OPERATIONS:
            known = ", ".join(sorted(OPERATIONS))
            raise UnsupportedLayerError(f"{where}, which hls4ml does not read from ONNX; this route has {known}")
        rank = len(view.shape(node.input[0]) or ())
        if node.op_type == "MatMul" and rank > 2:
            raise UnsupportedLayerError(f"{where} on several axes, for which hls4ml makes a bias of a wrong shape")
        if node.op_type == "Softmax" and rank > 2:
            raise UnsupportedLayerError(f"{where} on several axes, which hls4ml computes over all axes")
        if node.op_type in ("Add", "Sub", "Mul", "Max", "Min"):
            constants = [name for name in node.input if view.constant(name) is not None]
            maker = view.producers.get(node.input[0])
            is_bias = node.op_type == "Add" and maker is not None and maker.op_type == "MatMul"
            if constants and not is_bias:
                raise UnsupportedLayerError(
                    f"{where} with a constant, such as a BatchNorm that is not folded; this route has no types for it"
                )


def _say_global_averages(graph: Any) -> None:
    """Makes an average over the whole map a global one, as on the direct route."""
    view = Graph(graph)
    for node in graph.node:
        before, after = view.shape(node.input[0]), view.shape(node.output[0])
        if node.op_type != "AveragePool" or before is None or after is None or set(after[2:]) != {1}:
            continue
        found = attributes(node)
        whole = all(size <= pool for size, pool in zip(before[2:], found["kernel_shape"], strict=True))
        if whole and not found.get("count_include_pad", 0):
            del node.attribute[:]
            node.op_type = "GlobalAveragePool"


def _say_paddings(graph: Any) -> None:
    """Writes the padding of every window as numbers."""
    view = Graph(graph)
    for node in graph.node:
        if node.op_type not in _WINDOWS:
            continue
        found, shape = attributes(node), view.shape(node.input[0])
        sizes = list(found["kernel_shape"])
        pads = list(found.get("pads", [0] * 2 * len(sizes)))
        if found.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER") and shape is not None:
            strides = list(found.get("strides", [1] * len(sizes)))
            totals = [
                max((-(-given // stride) - 1) * stride + size - given, 0)
                for given, stride, size in zip(shape[2:], strides, sizes, strict=True)
            ]
            upper = found["auto_pad"] == b"SAME_UPPER"
            less, more = [total // 2 for total in totals], [total - total // 2 for total in totals]
            pads = less + more if upper else more + less
        set_attribute(node, "auto_pad", None)
        set_attribute(node, "pads", pads)


def _say_defaults(graph: Any) -> None:
    """Writes the default slope 1 of `Elu`; without it hls4ml takes 0.01. Removes defaults of `Gemm`.

    qonnx takes a `transB` that is 0 as one that is set.
    """
    for node in graph.node:
        found = attributes(node)
        if node.op_type == "Elu" and "alpha" not in found:
            set_attribute(node, "alpha", 1.0)
        if node.op_type == "Gemm" and not found.get("transB", 1):
            set_attribute(node, "transB", None)


def _turn_single_channels(graph: Any) -> None:
    """Writes a `Reshape` that only moves an axis of size 1 to the front or back as a `Transpose`, which qonnx knows."""
    view = Graph(graph)
    for node in graph.node:
        if node.op_type != "Reshape":
            continue
        before, after = view.shape(node.input[0]), view.shape(node.output[0])
        if before is None or after is None or len(before) != len(after) or len(before) < 3:
            continue
        last = len(before) - 1
        for perm in ((0, last, *range(1, last)), (0, *range(2, last + 1), 1)):
            moved = before[last] if perm[1] == last else before[1]
            if moved == 1 and after == tuple(before[axis] for axis in perm) and before != after:
                del node.input[1:], node.attribute[:]
                node.op_type = "Transpose"
                set_attribute(node, "perm", list(perm))
                break


@contextlib.contextmanager
def _readable_nodes() -> Iterator[None]:
    """Within the block, new ONNX models have a format that onnxruntime reads."""
    # To fold constants, qonnx runs single nodes as models in onnx's newest format.
    import onnx

    newest = onnx.IR_VERSION
    onnx.IR_VERSION = min(newest, IR_VERSION)
    try:
        yield
    finally:
        onnx.IR_VERSION = newest
