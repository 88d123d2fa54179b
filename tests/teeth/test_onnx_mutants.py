"""Wrong translations of ONNX: onnxruntime's results refuse each of them."""

import dataclasses

import numpy as np
import pytest

from fpgaprune.errors import ModelImportError
from fpgaprune.frontends import LayerPlan, Value, load_onnx
from fpgaprune.frontends.onnx import front, graph_walk
from tests.unit.frontends.graphs import graph, node, numbers, small_cnn


def changed(kind, **settings):
    """A plan in which the first layer of class `kind` has other settings."""

    def change(plan):
        layer = next(layer for layer in plan.layers.values() if layer.kind == kind)
        layer.settings |= settings

    return change


def moved(kind, name, move):
    """A plan in which a weight of the first layer of class `kind` has other values."""

    def change(plan):
        layer = next(layer for layer in plan.layers.values() if layer.kind == kind and name in layer.weights)
        weight = layer.weights[name]
        layer.weights[name] = weight.with_values(move(weight.values))

    return change


MUTANTS = {
    "a kernel whose rows are columns": moved("Conv2D", "kernel", lambda a: a.transpose(1, 0, 2, 3)),
    "a kernel that is turned round": moved("Conv2D", "kernel", lambda a: a[::-1, ::-1]),
    "filters in another order": moved("Conv2D", "kernel", lambda a: a[..., ::-1]),
    "one weight by 1 %": moved("Conv2D", "kernel", lambda a: a * (1 + 0.01 * (a == a.max()))),
    "no bias": moved("Conv2D", "bias", np.zeros_like),
    "another epsilon": changed("BatchNormalization", epsilon=1e-3),
    "mean and beta changed round": moved("BatchNormalization", "moving_mean", lambda a: -a),
    "standard deviation for variance": moved("BatchNormalization", "moving_variance", np.sqrt),
    "no padding of the same size": changed("MaxPooling2D", padding="same", pool_size=(3, 3)),
    "a leaky function": changed("ReLU", negative_slope=0.01),
    "a function with an end": changed("ReLU", max_value=1.0),
    "rows of Dense in another order": moved("Dense", "kernel", lambda a: a[::-1]),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_plan_is_refused(name, tmp_path, monkeypatch):
    path = small_cnn(tmp_path / "net.onnx")
    load_onnx(path)

    def planned(document):
        plan = graph_walk.plan_network(document)
        MUTANTS[name](plan)
        return plan

    monkeypatch.setattr(front, "plan_network", planned)
    with pytest.raises(ModelImportError, match=r"output 'y' differs from onnxruntime by .* the network is not taken"):
        load_onnx(path)


def test_columns_that_stay_in_the_order_of_pytorch_are_refused(tmp_path, monkeypatch):
    path = small_cnn(tmp_path / "net.onnx")
    monkeypatch.setattr(Value, "column_order", lambda self: None)
    with pytest.raises(ModelImportError, match="differs from onnxruntime"):
        load_onnx(path)


def test_axes_whose_order_is_lost_are_refused(tmp_path, monkeypatch):
    path = graph(
        tmp_path / "net.onnx",
        [node("Conv", ["x", "w"], "a"), node("Transpose", ["a"], "b", perm=[0, 1, 3, 2]), node("Flatten", ["b"], "y")],
        {"w": numbers(4, 3, 1, 1)},
        {"x": ("n", 3, 4, 4)},
        {"y": ("n", 64)},
    )
    load_onnx(path)
    monkeypatch.setattr(LayerPlan, "ordered", lambda self, value, axes: dataclasses.replace(value, axes=axes))
    with pytest.raises(ModelImportError):
        load_onnx(path)


@pytest.mark.parametrize("last", ["Softmax", "Sigmoid"])
def test_a_wrong_weight_before_a_function_that_saturates_is_refused(last, tmp_path, monkeypatch):
    """Behind it both networks give 0 and 1; what it reads tells them apart."""
    path = graph(
        tmp_path / "net.onnx",
        [node("Gemm", ["x", "w", "b"], "a"), node(last, ["a"], "y")],
        {"w": numbers(5, 3, scale=0.01), "b": np.float32([500, 600, 700])},
        {"x": ("n", 5)},
        {"y": ("n", 3)},
    )
    load_onnx(path)

    def planned(document):
        plan = graph_walk.plan_network(document)
        moved("Dense", "bias", lambda a: a + np.float32([0, 0.1, 0]))(plan)
        return plan

    monkeypatch.setattr(front, "plan_network", planned)
    with pytest.raises(ModelImportError, match="tensor 'a' differs from onnxruntime"):
        load_onnx(path)
