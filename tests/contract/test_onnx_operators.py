"""Each operator of ONNX that comes in: its layers, judged by onnxruntime, and what of it is refused."""

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save_model

from fpgaprune.errors import ModelImportError
from fpgaprune.frontends import OPERATORS, load_onnx, plan_onnx
from tests.unit.frontends.graphs import numbers


@dataclass(frozen=True)
class Row:
    """A graph of one node that comes in, with the layers that it becomes; inputs are x, x1, ...

    `by_steps`: the node reads (steps, batch, numbers) and gives (steps, 1, batch, units).
    """

    operator: str
    shapes: tuple[tuple[Any, ...], ...]
    layers: str
    constants: tuple[Any, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    opset: int = 17
    before: str = ""
    by_steps: bool = False
    constant_first: bool = False
    outputs: int = 1


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


IMAGE, LINE, ROW, STEPS = ((None, 3, 8, 8),), ((None, 4, 12),), ((None, 6),), ((None, 7, 4),)
TWO = ((None, 3, 5, 4), (None, 3, 5, 4))
CHANNEL = numbers(3, 1, 1)
GATES = (numbers(1, 15, 4), numbers(1, 15, 5))
BOTH, RNN_BOTH = {"direction": "bidirectional"}, (numbers(2, 5, 4), numbers(2, 5, 5))
SCALES = np.abs(numbers(6)) + np.float32(0.1)
SCALED, NORMALISED = "Rescaling RoundedChannels Rescaling", "BatchNormalization RoundedChannels BatchNormalization"
CUT = "Rescaling RoundedChannels RoundedChannels Rescaling"
ROWS = [
    Row("Conv", IMAGE, "Conv2D", (numbers(5, 3, 3, 3), numbers(5))),
    Row("Conv", IMAGE, "Conv2D", (numbers(5, 3, 3, 3),), {"pads": [1, 1, 1, 1]}),
    Row("Conv", IMAGE, "ZeroPadding2D Conv2D", (numbers(5, 3, 3, 3),), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    Row("Conv", IMAGE, "ZeroPadding2D Conv2D", (numbers(5, 3, 3, 2),), {"pads": [0, 2, 1, 1], "strides": [1, 2]}),
    Row("Conv", IMAGE, "Conv2D", (numbers(5, 3, 3, 3),), {"dilations": [2, 2]}),
    Row("Conv", IMAGE, "Conv2D", (numbers(5, 3, 3, 3),), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    Row("Conv", IMAGE, "ZeroPadding2D Conv2D", (numbers(5, 3, 2, 2),), {"auto_pad": "SAME_LOWER"}),
    Row("Conv", IMAGE, "Conv2D", (numbers(5, 3, 3, 3),), {"auto_pad": "VALID"}),
    Row("Conv", IMAGE, "DepthwiseConv2D", (numbers(3, 1, 3, 3), numbers(3)), {"group": 3}),
    Row("Conv", IMAGE, "DepthwiseConv2D", (numbers(6, 1, 3, 3),), {"group": 3}),
    Row("Conv", ((None, 4, 8, 8),), "Conv2D", (numbers(6, 2, 3, 3),), {"group": 2}),
    Row("Conv", LINE, "Conv1D", (numbers(5, 4, 3), numbers(5)), {"strides": [2]}),
    Row("Conv", LINE, "DepthwiseConv1D", (numbers(4, 1, 3),), {"group": 4}),
    Row("Conv", LINE, "Conv1D", (numbers(6, 2, 3),), {"group": 2, "dilations": [3]}, 9),
    Row("ConvTranspose", IMAGE, "Conv2DTranspose", (numbers(3, 5, 3, 2), numbers(5))),
    Row("ConvTranspose", IMAGE, "Conv2DTranspose", (numbers(3, 5, 2, 2),), {"strides": [2, 2]}),
    Row("ConvTranspose", IMAGE, "Conv2DTranspose", (numbers(3, 2, 4, 4),), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    Row(
        "ConvTranspose",
        IMAGE,
        "Conv2DTranspose Cropping2D",
        (numbers(3, 2, 3, 3), numbers(2)),
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
    ),
    Row("ConvTranspose", IMAGE, "Conv2DTranspose Cropping2D", (numbers(3, 2, 2, 2), numbers(2)), {"strides": [3, 3]}),
    Row(
        "ConvTranspose",
        IMAGE,
        "Conv2DTranspose Cropping2D",
        (numbers(3, 2, 3, 1), numbers(2)),
        {"strides": [2, 1], "output_padding": [1, 0], "pads": [0, 2, 0, 1]},
    ),
    Row(
        "ConvTranspose", IMAGE, "Conv2DTranspose", (numbers(3, 2, 3, 3),), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}
    ),
    Row(
        "ConvTranspose",
        IMAGE,
        "Conv2DTranspose Cropping2D",
        (numbers(3, 2, 3, 3),),
        {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
    ),
    Row("ConvTranspose", IMAGE, "Conv2DTranspose", (numbers(3, 2, 3, 3),), {"auto_pad": "VALID"}),
    Row("ConvTranspose", LINE, "Conv1DTranspose", (numbers(4, 3, 4), numbers(3)), {"strides": [2], "pads": [1, 1]}),
    Row(
        "ConvTranspose", LINE, "Conv1DTranspose Cropping1D", (numbers(4, 3, 3),), {"output_shape": [24], "strides": [2]}
    ),
    Row("DepthToSpace", ((None, 8, 3, 4),), "Reshape Permute Reshape", settings={"blocksize": 2}),
    Row(
        "DepthToSpace",
        ((None, 8, 3, 4),),
        "Reshape Permute Reshape Permute Reshape",
        settings={"blocksize": 2, "mode": "CRD"},
    ),
    Row("DepthToSpace", ((None, 9, 3, 4),), "Reshape Permute Reshape", settings={"blocksize": 3, "mode": "CRD"}),
    Row("SpaceToDepth", ((None, 2, 6, 4),), "Reshape Permute Reshape", settings={"blocksize": 2}),
    Row("Gemm", ROW, "Dense", (numbers(6, 4), numbers(4))),
    Row("Gemm", ROW, "Dense", (numbers(4, 6), numbers(4)), {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    Row("Gemm", ROW, "Dense", (numbers(6, 4), numbers(1, 4)), opset=9),
    Row("Gemm", ROW, "Dense", (numbers(6, 4),), opset=13),
    Row("Gemm", ROW, "Dense", (numbers(6, 4), numbers())),
    Row("MatMul", ROW, "Dense", (numbers(6, 4),)),
    Row("MatMul", ((None, 5, 6),), "Dense", (numbers(6, 4),)),
    Row("MatMul", ((None, 2, 5, 6),), "Dense", (numbers(6, 4),)),
    *(Row(op, TWO, kind) for op, kind in (("Add", "Add"), ("Sub", "Subtract"), ("Mul", "Multiply"))),
    *(Row(op, TWO, kind) for op, kind in (("Max", "Maximum"), ("Min", "Minimum"))),
    Row("Mul", ((None, 3, 5, 4), (None, 3, 1, 1)), "Multiply"),
    Row("Mul", ((None, 3, 1, 1), (None, 3, 5, 4)), "Multiply"),
    *(Row(op, IMAGE, "Rescaling", (numbers() + 2,)) for op in ("Add", "Sub", "Mul", "Div")),
    *(Row(op, IMAGE, "BatchNormalization", (CHANNEL + 2,)) for op in ("Add", "Sub", "Mul", "Div")),
    *(Row(op, ROW, "BatchNormalization", (numbers(6) + 2,)) for op in ("Add", "Sub", "Mul", "Div")),
    Row("Sub", ROW, "Rescaling", (numbers(),), constant_first=True),
    Row("Sub", IMAGE, "BatchNormalization", (CHANNEL,), constant_first=True),
    Row("Mul", IMAGE, "BatchNormalization", (numbers(1, 1, 8, 1),)),
    Row("Neg", IMAGE, "Rescaling"),
    Row("Abs", IMAGE, "Rescaling Maximum"),
    Row("Pow", IMAGE, "Multiply", (np.float32(2),)),
    Row("Pow", ROW, "Multiply", (ints(2),)),
    Row("Sum", (*TWO, (None, 3, 5, 4)), "Add Add"),
    Row("Sum", ROW, "Activation"),
    Row("Relu", IMAGE, "ReLU"),
    Row("LeakyRelu", IMAGE, "LeakyReLU"),
    Row("LeakyRelu", ROW, "LeakyReLU", settings={"alpha": 0.3}),
    Row("PRelu", IMAGE, "PReLU", (CHANNEL,)),
    Row("PRelu", IMAGE, "PReLU", (numbers(1),)),
    Row("PRelu", ROW, "PReLU", (numbers(6),)),
    Row("PRelu", LINE, "PReLU", (numbers(4, 12),)),
    Row("Clip", IMAGE, "ReLU", (numbers() * 0, numbers() * 0 + 6)),
    Row("Clip", IMAGE, "Rescaling ReLU Rescaling", (numbers() * 0 - 0.3, numbers() * 0 + 0.7)),
    Row("Clip", IMAGE, "Activation", settings={"min": -1.0, "max": 1.0}, opset=9),
    Row("Clip", IMAGE, "Rescaling ReLU Rescaling", settings={"max": 0.25}, opset=10),
    Row("Clip", IMAGE, "ReLU", (numbers() * 0,)),
    Row("Clip", IMAGE, "Rescaling ReLU Rescaling", (numbers() * 0 - 0.4,)),
    Row("Clip", IMAGE, "Activation"),
    *(Row(op, IMAGE, "Activation") for op in ("Sigmoid", "Tanh", "HardSwish", "Softplus", "Softsign", "Exp", "Selu")),
    Row("Mish", IMAGE, "Activation", opset=18),
    Row("HardSigmoid", IMAGE, "Rescaling ReLU"),
    Row("HardSigmoid", ROW, "Activation", settings={"alpha": 1 / 6}),
    Row("Max", ROW, "ReLU", (np.float32(0),)),
    Row("Max", ROW, "Rescaling ReLU Rescaling", (np.float32([0.5]),), constant_first=True),
    Row("Min", ROW, "Rescaling ReLU Rescaling", (np.float32(0.5),)),
    Row("Tile", ((None, 4, 1, 3),), "Reshape UpSampling1D Reshape", (ints(1, 1, 5, 1),)),
    Row("Tile", ((None, 1, 2, 3),), "UpSampling2D", (ints(1, 4, 1, 1),)),
    Row("Tile", ((None, 1, 6),), "UpSampling1D", (ints(1, 3, 1),)),
    Row("Tile", ((None, 4, 1, 1),), "Reshape UpSampling1D UpSampling1D Reshape", (ints(1, 1, 2, 3),)),
    Row("Gelu", IMAGE, "Activation", opset=20),
    Row("Elu", IMAGE, "ELU", settings={"alpha": 0.7}),
    Row("Softmax", ROW, "Softmax"),
    Row("Softmax", IMAGE, "Softmax", settings={"axis": 1}),
    Row("Softmax", IMAGE, "Softmax", settings={"axis": -2}),
    Row("Softmax", IMAGE, "Softmax", opset=11),
    Row("Softmax", IMAGE, "Softmax", settings={"axis": 3}, opset=9),
    *(
        Row("BatchNormalization", ((None, 3, *rest),), "BatchNormalization", tuple(np.abs(numbers(4, 3)) + 0.5))
        for rest in ((), (6,), (6, 5))
    ),
    Row("BatchNormalization", IMAGE, "BatchNormalization", tuple(numbers(4, 3) ** 2 + 0.1), {"epsilon": 0.1}, 9),
    Row("MaxPool", IMAGE, "MaxPooling2D", settings={"kernel_shape": [2, 2], "strides": [2, 2]}),
    Row("MaxPool", IMAGE, "MaxPooling2D", settings={"kernel_shape": [2, 3], "strides": [1, 2]}, opset=9),
    Row("MaxPool", IMAGE, "MaxPooling2D", settings={"kernel_shape": [3, 3], "pads": [1] * 4}),
    Row("MaxPool", IMAGE, "MaxPooling2D " * 2, settings={"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]}),
    Row(
        "MaxPool",
        IMAGE,
        "ReLU ZeroPadding2D MaxPooling2D",
        settings={"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]},
        before="Relu",
    ),
    Row("MaxPool", IMAGE, "MaxPooling2D", settings={"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    Row("MaxPool", LINE, "MaxPooling1D", settings={"kernel_shape": [3], "strides": [3]}),
    Row("AveragePool", IMAGE, "AveragePooling2D", settings={"kernel_shape": [2, 2], "strides": [2, 2]}),
    Row("AveragePool", LINE, "AveragePooling1D", settings={"kernel_shape": [4], "strides": [4]}),
    Row("AveragePool", IMAGE, "AveragePooling2D", settings={"kernel_shape": [3, 3], "pads": [1] * 4}),
    Row(
        "AveragePool",
        IMAGE,
        "ZeroPadding2D AveragePooling2D",
        settings={"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2], "count_include_pad": 1},
    ),
    Row("GlobalAveragePool", IMAGE, "GlobalAveragePooling2D"),
    Row("GlobalAveragePool", LINE, "GlobalAveragePooling1D"),
    Row("GlobalMaxPool", IMAGE, "GlobalMaxPooling2D"),
    Row("ReduceMean", IMAGE, "GlobalAveragePooling2D", settings={"axes": [2, 3], "keepdims": 0}),
    Row("ReduceMean", IMAGE, "GlobalAveragePooling2D", (ints(-1, -2),), opset=18),
    Row("ReduceMean", LINE, "GlobalAveragePooling1D", settings={"axes": [1], "keepdims": 0}),
    Row("ReduceSum", IMAGE, "GlobalAveragePooling2D Rescaling", (ints(2, 3),), {"keepdims": 0}),
    Row("ReduceSum", LINE, "GlobalAveragePooling1D Rescaling", settings={"axes": [1]}, opset=11),
    Row("ReduceMax", LINE, "Permute GlobalMaxPooling1D", settings={"axes": [2]}),
    Row("Flatten", IMAGE, "Flatten"),
    Row("Flatten", ROW, "Activation"),
    Row("Reshape", IMAGE, "Flatten", (ints(-1, 192),)),
    Row("Reshape", IMAGE, "Flatten", (ints(0, -1),)),
    Row("Reshape", IMAGE, "Reshape", (ints(0, 24, 8),)),
    Row("Reshape", ROW, "Reshape", (ints(0, 3, 2),)),
    Row("Reshape", ROW, "Activation", (ints(0, 1, 6, 1),)),
    Row("Squeeze", ((None, 1, 7),), "Flatten", (ints(1),)),
    Row("Squeeze", ((None, 3, 1, 1),), "Flatten", settings={"axes": [2, 3]}, opset=11),
    Row("Unsqueeze", ROW, "Activation", (ints(1, -1),)),
    Row("Unsqueeze", ROW, "Activation", settings={"axes": [2]}, opset=11),
    Row("Transpose", IMAGE, "Activation", settings={"perm": [0, 2, 3, 1]}),
    Row("Concat", TWO, "Concatenate", settings={"axis": 1}),
    Row("Concat", TWO, "Concatenate", settings={"axis": -1}),
    Row("Concat", ((None, 3), (None, 4)), "Concatenate", settings={"axis": 1}),
    Row("Pad", IMAGE, "Permute ZeroPadding2D", (ints(0, 0, 1, 2, 0, 0, 3, 0),)),
    Row("Pad", LINE, "Permute ZeroPadding1D", settings={"pads": [0, 0, 2, 0, 0, 1]}, opset=9),
    Row("Pad", IMAGE, "Permute ZeroPadding2D", (ints(1, 2), numbers() * 0, ints(-1)), opset=18),
    Row("Pad", ROW, "Reshape ZeroPadding1D Flatten", (ints(0, 1, 0, 2),)),
    Row("Slice", IMAGE, "Permute Cropping2D", (ints(1, 2), ints(7, 2**62), ints(2, 3))),
    Row("Slice", IMAGE, "Cropping2D", settings={"starts": [1], "ends": [3], "axes": [1]}, opset=9),
    Row("Slice", ROW, "Reshape Cropping1D Flatten", (ints(-4), ints(-1), ints(1))),
    Row("Split", IMAGE, "Cropping2D Cropping2D", (ints(1, 2),), {"axis": 1}, outputs=2),
    Row(
        "Split", IMAGE, "Permute " * 3 + "Cropping2D " * 3, settings={"axis": -1, "num_outputs": 3}, opset=18, outputs=3
    ),
    Row("Split", LINE, "Permute " * 2 + "Cropping1D " * 2, settings={"axis": 2, "split": [5, 7]}, opset=11, outputs=2),
    Row("Resize", IMAGE, "UpSampling2D", ("", np.float32([1, 1, 2, 3])), {"mode": "nearest"}),
    Row("Resize", ((1, 3, 8, 8),), "UpSampling2D", ("", "", ints(1, 3, 16, 24)), {"mode": "nearest"}),
    Row(
        "Resize",
        LINE,
        "UpSampling1D",
        ("", np.float32([1, 1, 4])),
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    Row("Resize", IMAGE, "UpSampling2D", ("", np.float32([1, 1, 2, 2])), {"mode": "linear"}),
    Row("Resize", IMAGE, "UpSampling2D", (np.float32([1, 1, 2, 2]),), {"mode": "nearest"}, 10),
    Row("Upsample", IMAGE, "UpSampling2D", (np.float32([1, 1, 2, 2]),), {"mode": "nearest"}, 9),
    Row("Gather", LINE, "Permute Cropping1D Flatten", (np.int64(-1),), {"axis": 2}),
    Row("Gather", LINE, "Cropping1D", (ints(1, 2),), {"axis": 1}),
    Row("Gather", IMAGE, "Cropping2D Reshape", (np.int64(2),), {"axis": 1}),
    *(
        Row(kind, shapes, layer, constants, {"hidden_size": 5}, opset, by_steps=True)
        for kind, layer, g in (("GRU", "GRU", 3), ("LSTM", "LSTM", 4), ("RNN", "SimpleRNN", 1))
        for constants, shapes, opset in (
            ((numbers(1, g * 5, 4), numbers(1, g * 5, 5)), STEPS, 17),
            ((numbers(1, g * 5, 4), numbers(1, g * 5, 5), numbers(1, 2 * g * 5)), STEPS, 9),
            ((numbers(1, g * 5, 4), numbers(1, g * 5, 5), "", "", numbers(1, 1, 5) * 0), ((1, 7, 4),), 17),
        )
    ),
    *(
        Row(
            kind,
            STEPS,
            "Bidirectional Reshape",
            (numbers(2, g * 5, 4), numbers(2, g * 5, 5), numbers(2, 2 * g * 5)),
            {"hidden_size": 5, "direction": "bidirectional", **more},
            by_steps=True,
        )
        for kind, g, more in (
            ("GRU", 3, {"linear_before_reset": 1}),
            ("LSTM", 4, {}),
            ("RNN", 1, {"activations": ["Relu", "Relu"]}),
        )
    ),
    Row(
        "GRU",
        STEPS,
        "GRU",
        (numbers(1, 15, 4), numbers(1, 15, 5), numbers(1, 30)),
        {"hidden_size": 5, "linear_before_reset": 1, "activations": ["Sigmoid", "Relu"]},
        by_steps=True,
    ),
    Row("Identity", IMAGE, "Activation"),
    Row(
        "Quant", IMAGE, "RoundedChannels", (np.float32(0.25), np.float32(0), np.float32(4)), {"signed": 1, "narrow": 0}
    ),
    Row("Quant", ROW, "RoundedChannels", (np.float32(0.5), np.int64(0), np.int64(3)), {"signed": 0, "narrow": 0}),
    Row("Quant", ROW, SCALED, (np.float32(0.3), np.float32(0), np.float32(4)), {"signed": 1, "narrow": 1}),
    Row("Quant", ROW, SCALED, (np.float32(0.1), np.float32(3), np.float32(4)), {"signed": 0}),
    Row("Quant", ROW, NORMALISED, (SCALES, np.float32(0), np.float32(4)), {"rounding_mode": "FLOOR"}),
    Row("Quant", ROW, NORMALISED, (2.0 ** np.float32([0, 1, 2, -1, -2, 3]), np.float32(0), np.float32(4))),
    Row("Quant", IMAGE, NORMALISED, (SCALES[:3].reshape(1, 3, 1, 1), np.zeros((3, 1, 1), np.float32), np.float32(4))),
    Row("Quant", ROW, "RoundedChannels Rescaling", (np.float32(1), np.float32(0), np.float32(1)), {"signed": 1}),
    Row("Quant", ROW, SCALED, (np.float32(0.7), np.float32(1), np.float32(1)), {"signed": 1}),
    Row("IntQuant", IMAGE, "RoundedChannels", (np.float32(0.5), np.float32(0), np.float32(3))),
    Row("BipolarQuant", IMAGE, "RoundedChannels Rescaling", (np.float32(0.7),)),
    Row("BipolarQuant", ROW, "RoundedChannels BatchNormalization", (SCALES,)),
    Row("Trunc", ROW, f"ReLU {CUT}", tuple(np.float32([0.3, 0, 8, 4])), before="Relu"),
    Row("Trunc", ROW, CUT, tuple(np.float32([0.03, 0, 8, 6])), {"rounding_mode": "ROUND"}),
    Row("Trunc", ROW, CUT, tuple(np.float32([0.03, 2, 8, 0.12, 4])), {"rounding_mode": "FLOOR", "signed": 1}),
    Row("Dropout", IMAGE, "Activation"),
    Row("Dropout", IMAGE, "Activation", settings={"ratio": 0.4}, opset=9),
    Row("Cast", IMAGE, "Activation", settings={"to": 1}),
]


def write(path, row):
    """The graph of `row`; a string among its constants is an input that is left out."""
    names = ["x", *(f"x{at}" for at in range(1, len(row.shapes)))]
    nodes, first = [], list(names)
    if row.before:
        nodes.append(helper.make_node(row.before, ["x"], ["before"], name="before"))
        first[0] = "before"
    stored = {f"c{at}": value for at, value in enumerate(row.constants) if not isinstance(value, str)}
    given = [f"c{at}" if f"c{at}" in stored else "" for at in range(len(row.constants))]
    inputs = [*given, *first] if row.constant_first else [*first, *given]
    ends = ["y", *(f"y{at}" for at in range(1, row.outputs))]
    if row.by_steps:
        nodes.append(helper.make_node("Transpose", ["x"], ["steps"], name="before", perm=[1, 0, 2]))
        inputs[0] = "steps"
        nodes.append(helper.make_node(row.operator, inputs, ["states"], name="the_node", **row.settings))
        nodes.append(helper.make_node("Transpose", ["states"], ends, name="after", perm=[2, 0, 1, 3]))
    else:
        nodes.append(helper.make_node(row.operator, inputs, ends, name="the_node", **row.settings))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip(names, row.shapes, strict=True)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, (None,)) for name in ends],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in stored.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", row.opset)], ir_version=8)
    save_model(model, path)
    return path


def label(row):
    return f"{row.operator}-{row.opset}-{'-'.join(row.layers.split())}"


def test_every_operator_has_a_row():
    assert {row.operator for row in ROWS} == OPERATORS.keys()


@pytest.mark.parametrize("row", ROWS, ids=label)
def test_an_operator_becomes_layers_of_keras(row, tmp_path):
    """`load_onnx` itself compares with onnxruntime, and refuses what differs by 1e-5."""
    net = load_onnx(write(tmp_path / "net.onnx", row))
    kinds = [type(layer).__name__ for layer in net.model.layers if type(layer).__name__ != "InputLayer"]
    assert kinds == row.layers.split()
    assert net.difference.relative <= 1e-5


BAD = [
    (Row("Conv", ((None, 3, 4, 4, 4),), "", (numbers(2, 3, 1, 1, 1),)), "has 3 spatial axes; wanted 1 or 2"),
    (
        Row("Conv", IMAGE, "", (numbers(2, 4, 1, 1),)),
        r"a weight of shape \(2, 4, 1, 1\) and 1 groups",
    ),
    (Row("Conv", IMAGE, "", (numbers(2, 3, 9, 9),)), r"windows of \[9, 9\] that are larger than its input of \[8, 8\]"),
    (Row("Conv", IMAGE, "", (numbers(2, 3, 1, 1), numbers(3))), r"a bias of shape \(3,\); wanted \(2,\)"),
    (
        Row("Conv", IMAGE, "", (numbers(2, 3, 2, 2),), {"strides": [2, 2], "dilations": [2, 2]}),
        "strides and dilations above 1",
    ),
    (Row("Conv", IMAGE, "", (numbers(2, 3, 2, 2),), {"strides": [0, 1]}), r"strides \[0, 1\]; wanted 2 numbers"),
    (Row("Conv", IMAGE, "", (numbers(2, 3, 2, 2),), {"pads": [-1, 0, 0, 0]}), r"pads \[-1, 0, 0, 0\]; wanted 4"),
    (Row("Conv", IMAGE, "", (numbers(2, 3, 2, 2).astype(int),)), "a constant of int64 as input 1; wanted float32"),
    (Row("ConvTranspose", IMAGE, "", (numbers(3, 2, 2, 2),), {"group": 3}), "has 3 groups, which no transposed"),
    (
        Row("ConvTranspose", IMAGE, "", (numbers(2, 2, 2, 2),)),
        r"weight of shape \(2, 2, 2, 2\) for an input of 3 channels",
    ),
    (Row("ConvTranspose", IMAGE, "", (numbers(3, 2, 2, 2), numbers(3))), r"a bias of shape \(3,\); wanted \(2,\)"),
    (Row("ConvTranspose", IMAGE, "", (numbers(3, 2, 2, 2),), {"dilations": [2, 2]}), "dilations above 1"),
    (Row("ConvTranspose", IMAGE, "", (numbers(3, 2, 2, 2),), {"pads": [9, 9, 9, 9]}), "cuts off all of its outputs"),
    (Row("ConvTranspose", IMAGE, "", (numbers(3, 2, 2, 2),), {"kernel_shape": [3, 2]}), r"kernel_shape \[3, 2\]; its"),
    (Row("ConvTranspose", ((None, 3, 4, 4, 4),), "", (numbers(3, 2, 1, 1, 1),)), "has 3 spatial axes; wanted 1 or 2"),
    (Row("DepthToSpace", IMAGE, "", settings={"blocksize": 2}), "blocks of 2 x 2 of 3 channels"),
    (Row("DepthToSpace", LINE, "", settings={"blocksize": 2}), "a blocksize of 2 for 1 spatial axes"),
    (Row("SpaceToDepth", IMAGE, "", settings={"blocksize": 3}), "blocks of 3 x 3 of 8 x 8 pixels"),
    (Row("Gemm", ROW, "", (numbers(6, 4),), {"transA": 1}), "whose first axis is the batch"),
    (Row("Gemm", ROW, "", (numbers(5, 4),)), r"multiplies 6 entries by a weight of shape \(5, 4\)"),
    (Row("Gemm", ROW, "", (numbers(6, 4), numbers(3, 4))), r"adds a constant of shape \(3, 4\); wanted \(4,\)"),
    (Row("MatMul", ((None, 6), (None, 6)), ""), "a computed input 1; wanted a constant"),
    (Row("MatMul", ROW, "", (numbers(3, 6),), constant_first=True), "a constant as input 0"),
    (Row("Add", ((None, 3, 4), (None, 4)), ""), "joins tensors of 3 and 2 axes"),
    (Row("Add", ROW, "", (numbers(5, 6),)), "a number for each sample"),
    (Row("Add", IMAGE, "", (numbers(3, 8, 8),)), "for which Keras has no layer"),
    (Row("Div", TWO, ""), "divides by a computed tensor"),
    (Row("Div", ROW, "", (numbers(),), constant_first=True), "divides a constant by a computed tensor"),
    (Row("Div", ROW, "", (np.float32([1, 2, 0, 1, 1, 1]),)), "divides by zero"),
    (Row("Max", ROW, "", (numbers(6),)), r"use torch\.clamp"),
    (Row("Tile", ROW, "", (ints(1, 2),)), "repeats axis 1, which has 6 entries"),
    (Row("Tile", ((None, 1, 6),), "", (ints(2, 3, 1),)), r"repeats \[2, 3, 1\]; wanted 1 for the batch"),
    (Row("Min", TWO[:1], "", (numbers(3, 1, 1),)), "two computed tensors, or such a tensor and a number"),
    (Row("Gelu", ROW, "", settings={"approximate": "tanh"}, opset=20), "approximated by tanh"),
    (Row("Selu", ROW, "", settings={"alpha": 2.0}), "has alpha 2; Keras has 1.67326"),
    (Row("Clip", ROW, "", (numbers() * 0 + 3, numbers() * 0 + 1)), "the bounds 3 and 1"),
    (Row("Softmax", ROW, "", settings={"axis": 0}), "works across axis 0, which is the batch"),
    (Row("Softmax", ROW, "", settings={"axis": 4}), "has axis 4; its input has 2 axes"),
    (Row("PRelu", ROW, "", (numbers(5),)), r"slopes of shape \(5,\) for a tensor of shape \(6,\)"),
    (Row("BatchNormalization", ROW, "", tuple(np.abs(numbers(4, 5)))), r"gamma of shape \(5,\); wanted \(6,\)"),
    (Row("BatchNormalization", ROW, "", tuple(-np.abs(numbers(4, 6)))), "a negative variance"),
    (
        Row("BatchNormalization", ROW, "", tuple(np.abs(numbers(4, 6))), {"training_mode": 1}),
        r"is in training mode; export the network for inference: model\.eval\(\)",
    ),
    (Row("MaxPool", IMAGE, "", settings={"kernel_shape": [3, 3], "dilations": [2, 2]}), "which no pooling of Keras"),
    (Row("MaxPool", IMAGE, "", settings={"kernel_shape": [5, 5], "pads": [1] * 4}), "put it behind a ReLU, or pad"),
    (
        Row("AveragePool", IMAGE, "", settings={"kernel_shape": [3, 3], "pads": [2] * 4}),
        "without counting what is added",
    ),
    (
        Row("AveragePool", IMAGE, "", settings={"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        "windows that end outside the tensor",
    ),
    (Row("Pow", ROW, "", (np.float32(3),)), r"has the exponent \[3\.0\]; wanted 2"),
    (Row("Pow", ROW, "", (np.float32([1, 2, 1, 2, 1, 2]),)), "has the exponent"),
    (Row("Sum", ROW, "", (numbers(6),)), "has a constant as input 1"),
    (Row("ReduceSum", ROW, ""), "works across all axes, with the batch"),
    (Row("ReduceMean", IMAGE, "", settings={"axes": [1]}), "wanted one or two, and one axis that stays"),
    (Row("ReduceMean", IMAGE, ""), "works across all axes, with the batch"),
    (Row("Flatten", IMAGE, "", settings={"axis": 2}), "keeps 2 axes; wanted axis 1"),
    (Row("Reshape", IMAGE, "", (ints(-1, 96),)), "the first axis must stay the batch"),
    (Row("Reshape", IMAGE, "", (ints(192, -1),)), "the first axis must stay the batch"),
    (Row("Reshape", IMAGE, "", (ints(0, 5, -1),)), "of 192 elements"),
    (Row("Squeeze", IMAGE, "", (ints(1),)), "of which one has several entries"),
    (Row("Transpose", IMAGE, "", settings={"perm": [1, 0, 2, 3]}), "moves the batch to axis 1"),
    (Row("Transpose", IMAGE, "", settings={"perm": [0, 0, 2, 3]}), r"the order \[0, 0, 2, 3\]"),
    (Row("Concat", ((None, 3), (None, 4)), "", settings={"axis": 0}), "which is the batch"),
    (Row("Concat", ((None, 3, 2), (None, 4, 3)), "", settings={"axis": 1}), "joins tensors of shapes"),
    (Row("Pad", IMAGE, "", (ints(0, 0, 1, 1, 0, 0, 1, 1),), {"mode": "reflect"}), "by mode 'reflect'; wanted zeros"),
    (Row("Pad", IMAGE, "", (ints(0, 0, 1, 1, 0, 0, 1, 1), numbers() + 1)), "pads by a number other than 0"),
    (Row("Pad", IMAGE, "", (ints(1, 0, 0, 0, 0, 0, 0, 0),)), "pads the batch"),
    (Row("Pad", IMAGE, "", (ints(0, 1, 1, 1, 0, 1, 1, 1),)), r"changes the axes \[1, 2, 3\]"),
    (Row("Slice", IMAGE, "", (ints(0), ints(8), ints(2), ints(2))), "takes every 2th entry"),
    (Row("Slice", IMAGE, "", (ints(0), ints(1), ints(0))), "which is the batch"),
    (Row("Slice", IMAGE, "", (ints(5), ints(3), ints(2))), "takes nothing of axis 2"),
    (Row("Split", IMAGE, "", (ints(1, 3),), {"axis": 1}, outputs=2), r"into parts of \[1, 3\]; wanted 2 parts"),
    (Row("Split", IMAGE, "", outputs=2), "which is the batch"),
    (Row("Resize", IMAGE, "", ("", np.float32([1, 1, 1.5, 2])), {"mode": "nearest"}), "wanted whole factors"),
    (Row("Resize", IMAGE, "", ("", np.float32([1, 1, 1e9, 2])), {"mode": "nearest"}), "wanted whole factors"),
    (Row("Resize", IMAGE, "", ("", np.float32([1, 1, 2, 2])), {"mode": "cubic"}), "has mode 'cubic'"),
    (
        Row("Resize", IMAGE, "", ("", np.float32([1, 1, 3, 3])), {"coordinate_transformation_mode": "asymmetric"}),
        "by which entries do not just repeat",
    ),
    (Row("Gather", LINE, "", (ints(0, 2),), {"axis": 2}), r"takes the entries \[0, 2\] of axis 2, of 12; wanted a row"),
    (Row("Gather", LINE, "", (ints(12),), {"axis": 2}), r"takes the entries \[12\]"),
    (Row("Gather", LINE, "", (ints(0),)), "works across axis 0, which is the batch"),
    *(
        (Row(kind, STEPS, "", constants, {"hidden_size": 5, **settings}, by_steps=True), reason)
        for kind, constants, settings, reason in (
            ("GRU", GATES, {"direction": "reverse"}, "from the last to the first; wanted both directions"),
            ("GRU", GATES, {"direction": "up"}, "reads its steps 'up'; wanted 'forward', 'reverse', 'bidirectional'"),
            ("GRU", GATES, {"direction": "bidirectional"}, r"has W of shape \(1, 15, 4\); wanted 2 direction"),
            ("RNN", RNN_BOTH, {**BOTH, "activations": ["Relu", "Tanh"]}, "functions Relu, Tanh; wanted the same"),
            ("GRU", GATES, {"clip": 1.0}, "has clip 1, which no layer of Keras has"),
            ("GRU", GATES, {"activations": ["Tanh"]}, "has 1 activation functions; wanted 2"),
            ("GRU", GATES, {"activations": ["Sigmoid", "Affine"]}, "functions Sigmoid, Affine; wanted those of Keras"),
            ("GRU", GATES, {"activations": ["HardSigmoid", "Tanh"]}, "a HardSigmoid with alpha 0.2 and beta 0.5"),
            ("GRU", (GATES[0], numbers(1, 12, 4)), {}, r"shapes \(1, 15, 4\) and \(1, 12, 4\) for an input of 4"),
            ("GRU", (*GATES, numbers(1, 9)), {}, r"has B of shape \(1, 9\); wanted \(1, 30\)"),
            ("GRU", (*GATES, "", "", numbers(1, 1, 5)), {}, "has initial_h; wanted none, or zeros"),
            ("GRU", (*GATES, "", np.int32([3])), {}, "has lengths for its sequences; wanted all of one length"),
        )
    ),
    (Row("GRU", STEPS, "", GATES, {"hidden_size": 5}), r"whose batch is axis 0; wanted \(steps, batch, numbers\)"),
    (Row("Cast", ROW, "", settings={"to": 7}), "into another type; wanted float32"),
    (
        Row("Quant", ROW, "", (np.float32(-1), np.float32(0), np.float32(4))),
        r"the scale \[-1\.\]; wanted numbers above 0",
    ),
    (Row("Quant", ROW, "", (np.float32(np.nan), np.float32(0), np.float32(4))), "wanted numbers above 0"),
    (Row("Quant", ROW, "", (numbers(5) ** 2, np.float32(0), np.float32(4))), r"scales of shape \(5,\) for samples of"),
    (Row("Quant", ROW, "", (numbers(2, 6) ** 2, np.float32(0), np.float32(4))), "with the batch first"),
    (Row("Quant", ROW, "", (np.float32(1), np.float32(0))), "has 2 inputs besides the tensor"),
    (Row("Trunc", ROW, "", tuple(np.float32([1, 0, 4, 8]))), "cuts -4 bits off; wanted 0 to 32"),
    (Row("Quant", ROW, "", (np.float32(1), np.float32(0), np.float32(99))), "has 99 bits"),
    (Row("Quant", ROW, "", (np.float32(1), np.float32(0), np.float32(4)), {"signed": 0, "narrow": 1}), "narrow True"),
    (
        Row("Quant", ROW, "", (np.float32(1), np.float32(0), np.float32(4)), {"rounding_mode": "CEIL"}),
        "rounds by 'CEIL'; wanted ROUND",
    ),
]


@pytest.mark.parametrize(("row", "reason"), BAD, ids=lambda value: value.operator if isinstance(value, Row) else "")
def test_what_an_operator_cannot_be_is_one_line_with_its_node(row, reason, tmp_path):
    path = write(tmp_path / "net.onnx", row)
    with pytest.raises(ModelImportError, match=reason) as caught:
        plan_onnx(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: node 'the_node' ({row.operator}) ")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("operator", "inputs", "advice"),
    [
        ("InstanceNormalization", ["x", "c", "c"], "nn.BatchNorm2d"),
        ("Sin", ["x"], "build it of Abs, Add, AveragePool"),
    ],
)
def test_another_operator_is_refused_with_what_to_do(operator, inputs, advice, tmp_path):
    graph = helper.make_graph(
        [helper.make_node(operator, inputs, ["y"], name="that")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (None, 3, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (None,))],
        [numpy_helper.from_array(numbers(3, 3, 2, 2), "c")],
    )
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "net.onnx")
    with pytest.raises(ModelImportError, match=f"node 'that' is a {operator}, .*{re.escape(advice)}"):
        plan_onnx(tmp_path / "net.onnx")
