"""ONNX files in the style of PyTorch's exporters, built with onnx's own helpers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save_model


def numbers(*shape: int, seed: int = 0, scale: float = 0.5) -> np.ndarray:
    """Random numbers of float32."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def node(operator: str, inputs: list[str], output: str, name: str = "", **settings: Any) -> Any:
    """A node with one output."""
    return helper.make_node(operator, inputs, [output], name=name or f"/{output}/{operator}", **settings)


def graph(
    path: Path,
    nodes: list[Any],
    constants: dict[str, np.ndarray],
    inputs: dict[str, tuple[Any, ...]],
    outputs: dict[str, tuple[Any, ...]],
    opset: int = 17,
) -> Path:
    """Writes the graph to `path`."""
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in values.items()]
        for values in (inputs, outputs)
    ]
    stored = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    proto = helper.make_graph(nodes, "main_graph", *ends, stored)
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", opset)], producer_name="pytorch")
    model.ir_version = 8
    save_model(model, path)
    return path


def small_cnn(path: Path, **changed: np.ndarray) -> Path:
    """Convolution, BatchNorm, pooling, a second convolution and two Dense layers, as `torch.onnx.export` writes them.

    The view before the first Dense layer reads the shape of the tensor, as `x.view(x.size(0), -1)` does.
    """
    nodes = [
        node("Conv", ["x", "features.0.weight", "features.0.bias"], "a", "/features/features.0/Conv", pads=[1] * 4),
        node(
            "BatchNormalization",
            ["a", *(f"features.1.{kind}" for kind in ("weight", "bias", "running_mean", "running_var"))],
            "b",
            "/features/features.1/BatchNormalization",
        ),
        node("Relu", ["b"], "c", "/features/features.2/Relu"),
        node("MaxPool", ["c"], "d", "/features/features.3/MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["d", "features.4.weight"], "e", "/features/features.4/Conv"),
        node("Relu", ["e"], "f", "/features/features.5/Relu"),
        node("Shape", ["f"], "s", "/Shape"),
        node("Gather", ["s", "zero"], "n", "/Gather", axis=0),
        node("Unsqueeze", ["n", "axes"], "m", "/Unsqueeze"),
        node("Concat", ["m", "rest"], "t", "/Concat", axis=0),
        node("Reshape", ["f", "t"], "g", "/Reshape"),
        node("Gemm", ["g", "fc1.weight", "fc1.bias"], "h", "/fc1/Gemm", transB=1),
        node("Relu", ["h"], "i", "/Relu"),
        node("Gemm", ["i", "fc2.weight", "fc2.bias"], "y", "/fc2/Gemm", transB=1),
    ]
    constants = {
        "features.0.weight": numbers(8, 1, 3, 3, seed=1),
        "features.0.bias": numbers(8, seed=2),
        "features.1.weight": 1 + numbers(8, seed=3, scale=0.1),
        "features.1.bias": numbers(8, seed=4),
        "features.1.running_mean": numbers(8, seed=5),
        "features.1.running_var": 1 + np.abs(numbers(8, seed=6)),
        "features.4.weight": numbers(16, 8, 3, 3, seed=7, scale=0.2),
        "fc1.weight": numbers(12, 64, seed=8, scale=0.2),
        "fc1.bias": numbers(12, seed=9),
        "fc2.weight": numbers(10, 12, seed=10),
        "fc2.bias": numbers(10, seed=11),
        "zero": np.array(0, np.int64),
        "axes": np.array([0], np.int64),
        "rest": np.array([-1], np.int64),
    }
    return graph(path, nodes, constants | changed, {"x": ("n", 1, 8, 8)}, {"y": ("n", 10)})
