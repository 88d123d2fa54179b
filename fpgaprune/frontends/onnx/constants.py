"""Computes the nodes of an ONNX graph that read constants only, with the evaluator of the package `onnx`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.files import attributes
from fpgaprune.frontends.onnx.parameter import Codes, Parameter
from fpgaprune.frontends.onnx.qonnx import (
    are_powers,
    bipolar_quant,
    checked_scale,
    is_quantiser,
    quant,
    steps_type,
    type_of,
)
from fpgaprune.values import Array, FixedType, integer_bits

if TYPE_CHECKING:
    import onnx

# What `Shape` gives for the batch, which is not known: no tensor of a sample has so many entries.
BATCH = 2_147_480_009
_MOST = 1 << 26
# Whole numbers of more bits are no exact float32.
_MOST_BITS = 24
# -1 and 1.
_STEPS = FixedType(2, 2)
# These put elements into other places and change no number.
_MOVES = frozenset({"Identity", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Gather"})
FOLDED = _MOVES | frozenset(
    {
        *("Constant", "ConstantOfShape", "Shape", "Size", "Concat", "Cast", "Range", "Expand", "Split"),
        *("Add", "Sub", "Mul", "Div", "Neg", "Abs", "Sqrt", "Reciprocal", "Pow", "Exp", "Log", "Floor", "Ceil", "Min"),
        *("Max", "Mod", "Equal", "Not", "And", "Or", "Where", "Greater", "Less", "ReduceProd", "Clip", "Tanh", "Relu"),
        *("MatMul", "Gemm", "BatchNormalization", "ReduceSum", "ReduceMean", "Dropout"),
    }
)


def folded(node: onnx.NodeProto, given: Sequence[Parameter | None], opset: int) -> list[Parameter]:
    """Return what `node` gives for the constants `given`.

    Raises:
        ValueError: it cannot be computed, or gives too large a tensor.
    """
    values = [None if parameter is None else parameter.values for parameter in given]
    if is_quantiser(node):
        return [_quantised(node, given)]
    if node.op_type in ("ConstantOfShape", "Expand") and values and values[-1] is not None:
        if values[-1].dtype.kind not in "iu":
            raise ValueError(f"makes a tensor whose shape is {values[-1].dtype}; wanted whole numbers")
        # The same numbers for every sample.
        values[-1] = np.where(values[-1] == BATCH, 1, values[-1])
    _require_small(node, values)
    source = given[0] if given else None
    moves = node.op_type in _MOVES and source is not None
    if moves and source is not None:
        values[0] = np.arange(source.size, dtype=np.int64).reshape(source.values.shape)
    results = _evaluated(node, values, opset)
    if any(not isinstance(result, np.ndarray | np.generic) or np.size(result) > _MOST for result in results):
        raise ValueError("gives no tensor, or a tensor that is too large")
    if moves and source is not None:
        places = np.asarray(results[0])
        return [source.moved(lambda array: np.asarray(array.ravel()[places]))]
    if node.op_type == "Concat":
        return [_side_by_side(np.asarray(results[0]), given, int(attributes(node)["axis"]))]
    return [Parameter(np.asarray(result)) for result in results]


def _side_by_side(values: Array, given: Sequence[Parameter | None], axis: int) -> Parameter:
    """Return `values`, the parameters `given` side by side, which may be parts of one constant of the file."""
    parts = [parameter for parameter in given if parameter is not None]
    origins = [part.origin for part in parts if part.origin is not None and part.name == parts[0].name]
    if not parts[0].name or len(origins) != len(given):
        return Parameter(values)
    return Parameter(values, parts[0].name, parts[0].shape, np.concatenate(origins, axis))


def _quantised(node: onnx.NodeProto, given: Sequence[Parameter | None]) -> Parameter:
    """Return the constant that the quantiser `node` makes of its first input: of a fixed-point type, or as codes."""
    found = [parameter for parameter in given if parameter is not None]
    if node.op_type == "Trunc":
        raise ValueError("cuts a constant; wanted a computed tensor")
    if len(found) != (2 if node.op_type == "BipolarQuant" else 4):
        raise ValueError("has not all its inputs")
    source, settings = found[0], attributes(node)
    values = [parameter.values for parameter in found]
    if any(value.size > _MOST or value.dtype.kind not in "fiu" for value in values):
        raise ValueError("reads what are no numbers")
    scale = checked_scale(values[1])
    zero_point: Array = np.zeros(1, np.float32)
    kind = None
    with np.errstate(all="ignore"):
        if node.op_type == "BipolarQuant":
            rounded = bipolar_quant(values[0], scale)
        else:
            zero_point = values[2]
            kind = type_of(scale, zero_point, values[3], settings)
            rounded = quant(values[0], scale, zero_point, values[3], settings)
    if rounded.shape != source.values.shape:
        raise ValueError(f"has a scale of shape {scale.shape} for a constant of shape {source.values.shape}")
    codes = None
    if not zero_point.any() and not are_powers(scale):
        codes = _codes(rounded, scale, _STEPS if node.op_type == "BipolarQuant" else _steps(values[3], settings))
    return replace(source, values=rounded, kind=kind, codes=codes)


def _steps(bits: Array, settings: Mapping[str, object]) -> FixedType | None:
    try:
        return steps_type(bits, settings)
    except ValueError:
        return None


def _codes(rounded: NDArray[np.float32], scale: Array, kind: FixedType | None) -> Codes | None:
    """Return `rounded`, multiples of `scale`, as whole numbers of type `kind`; the narrowest type if None."""
    if not rounded.size or not np.isfinite(rounded).all():
        return None
    scales: Array = np.broadcast_to(scale.astype(np.float32), rounded.shape)
    whole = np.rint(rounded / scales)
    bits = max(integer_bits(float(np.abs(whole).max())) + 1, 2)
    return Codes(whole, scales, kind or FixedType(bits, bits)) if bits <= _MOST_BITS else None


def _require_small(node: onnx.NodeProto, values: Sequence[Array | None]) -> None:
    """Check that the result of `node`, as far as one of `values` chooses its size, takes little memory."""
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


def _evaluated(node: onnx.NodeProto, values: Sequence[Array | None], opset: int) -> list[Any]:
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
