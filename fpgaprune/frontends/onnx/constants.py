"""Computes the nodes of an ONNX graph that read constants only, with the evaluator of the package `onnx`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.frontends.onnx.parameter import Parameter
from fpgaprune.frontends.onnx.qonnx import bipolar_quant, is_quantiser, quant, type_of
from fpgaprune.onnx_graph import attributes

# What `Shape` gives for the batch, which is not known: no tensor of a sample has so many entries.
BATCH = 2_147_480_009
_MOST = 1 << 26
# These put elements into other places and change no number.
_MOVES = frozenset({"Identity", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Slice"})
FOLDED = _MOVES | frozenset(
    {
        *("Constant", "ConstantOfShape", "Shape", "Size", "Gather", "Concat", "Cast", "Range", "Expand", "Split"),
        *("Add", "Sub", "Mul", "Div", "Neg", "Abs", "Sqrt", "Reciprocal", "Pow", "Exp", "Log", "Floor", "Ceil", "Min"),
        *("Max", "Mod", "Equal", "Not", "And", "Or", "Where", "Greater", "Less", "ReduceProd", "Clip", "Tanh", "Relu"),
        *("MatMul", "Gemm", "BatchNormalization", "ReduceSum", "ReduceMean", "Dropout"),
    }
)


def folded(node: Any, given: Sequence[Parameter | None], opset: int) -> list[Parameter]:
    """What `node` gives for the constants `given`.

    Raises:
        ValueError: it cannot be computed, or gives too large a tensor.
    """
    values = [None if parameter is None else parameter.values for parameter in given]
    if is_quantiser(node):
        return [_quantised(node, given)]
    _require_small(node, values)
    results = _evaluated(node, values, opset)
    if any(not isinstance(result, np.ndarray | np.generic) or np.size(result) > _MOST for result in results):
        raise ValueError("gives no tensor, or a tensor that is too large")
    source = given[0] if given else None
    if node.op_type in _MOVES and source is not None and source.origin is not None:
        places = _evaluated(node, [source.origin, *values[1:]], opset)
        origin = np.asarray(places[0], dtype=np.int64)
        return [Parameter(np.asarray(results[0]), source.name, source.shape, origin, source.kind)]
    return [Parameter(np.asarray(result)) for result in results]


def _quantised(node: Any, given: Sequence[Parameter | None]) -> Parameter:
    """The constant that the quantiser `node` makes of its first input, with its fixed-point type if it has one."""
    found = [parameter for parameter in given if parameter is not None]
    if len(found) != (4 if node.op_type == "Quant" else 2):
        raise ValueError("has not all its inputs")
    source, settings = found[0], attributes(node)
    values = [parameter.values for parameter in found]
    if any(value.size > _MOST or value.dtype.kind not in "fiu" for value in values):
        raise ValueError("reads what are no numbers")
    if node.op_type == "BipolarQuant":
        rounded = bipolar_quant(values[0], values[1])
        kind = None
    else:
        kind = type_of(values[1], values[2], values[3], settings)
        rounded = quant(values[0], values[1], values[2], values[3], settings)
    if rounded.shape != source.values.shape:
        raise ValueError(f"has a scale of shape {values[1].shape} for a constant of shape {source.values.shape}")
    return replace(source, values=rounded, kind=kind)


def _require_small(node: Any, values: Sequence[NDArray[Any] | None]) -> None:
    """The result of `node`, as far as one of `values` chooses its size, takes little memory."""
    claimed = 0
    if node.op_type in ("ConstantOfShape", "Expand") and values and values[-1] is not None:
        claimed = prod(max(int(size), 1) for size in values[-1].ravel()[:16])
    elif node.op_type == "Range" and all(value is not None for value in values):
        start, stop, step = (float(np.asarray(value).ravel()[0]) for value in values)
        claimed = int(abs((stop - start) / step)) if step else _MOST + 1
    elif node.op_type == "MatMul" or node.op_type == "Gemm":
        shapes = [value.shape for value in values if value is not None]
        claimed = prod(size for shape in shapes[:2] for size in shape)
    else:
        shapes = [value.shape for value in values if value is not None]
        rank = max((len(shape) for shape in shapes), default=0)
        if node.op_type in ("Add", "Sub", "Mul", "Div", "Pow", "Where", "Max", "Min", "Equal"):
            padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
            claimed = prod(max(sizes) for sizes in zip(*padded, strict=True))
        elif node.op_type == "Gather" and len(shapes) == 2:
            claimed = prod(shapes[0]) * max(prod(shapes[1]), 1)
    if claimed > _MOST:
        raise ValueError(f"gives a tensor of {claimed:,} elements or more; wanted {_MOST:,} at most")


def _evaluated(node: Any, values: Sequence[NDArray[Any] | None], opset: int) -> list[Any]:
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    names = [name for name in dict.fromkeys(node.input) if name]
    inputs = []
    for name in names:
        array = values[list(node.input).index(name)]
        kind = helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)
        inputs.append(helper.make_tensor_value_info(name, kind, np.asarray(array).shape))
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "one", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    feeds = {name: np.asarray(values[list(node.input).index(name)]) for name in names}
    try:
        with np.errstate(all="ignore"):
            return list(ReferenceEvaluator(model).run(None, feeds))
    except Exception as error:
        # The evaluator raises errors of its own classes, which have no common base.
        raise ValueError(f"cannot be computed from its constants: {str(error).splitlines()[0][:120]}") from error
