"""Samples with the axes of an ONNX file are turned into those of Keras, and what may be either is asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fpgaprune.errors import ConfigError
from fpgaprune.flow.engine import check_flow, parse_config, run_again
from fpgaprune.flow.run import RunDirectory
from fpgaprune.flow.task import Dataset, in_keras_layout

FILES = Path(__file__).parents[1] / "frontends" / "pytorch"
SMALL, RESIDUAL, AUTOENCODER = (FILES / f"{name}_script.onnx" for name in ("small", "residual", "autoencoder"))


def dataset(shape, labels=None, count=12):
    x = np.random.default_rng(1).normal(size=(3, count, *shape)).astype("float32")
    y = [np.arange(count) % 3] * 3 if labels is None else list(labels(x))
    return Dataset("mine", x[0], y[0], x[1], y[1], x[2], y[2])


def test_the_channels_of_the_file_become_the_last():
    given = dataset((3, 24, 24))
    found = in_keras_layout(given, RESIDUAL)
    for part in ("x_train", "x_test", "x_valid"):
        np.testing.assert_array_equal(getattr(found, part), getattr(given, part).transpose(0, 2, 3, 1))
    assert found.y_train is given.y_train


@pytest.mark.parametrize("layout", ["auto", "keras"])
def test_samples_of_keras_stay_as_they_are(layout):
    given = dataset((24, 24, 3))
    assert in_keras_layout(given, RESIDUAL, layout).x_train is given.x_train


def test_the_labels_of_an_autoencoder_are_turned_too():
    given = dataset((1, 8, 8), labels=lambda x: x)
    found = in_keras_layout(given, AUTOENCODER)
    assert found.x_train.shape == found.y_train.shape == (12, 8, 8, 1)
    np.testing.assert_array_equal(found.y_test, given.x_test.transpose(0, 2, 3, 1))


def test_a_shape_of_both_is_asked_for(tmp_path):
    from onnx import TensorProto, helper, numpy_helper, save

    kernel = np.random.default_rng(2).normal(size=(2, 4, 3, 3)).astype("float32")
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="conv")],
        "cube",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2, 2, 2])],
        [numpy_helper.from_array(kernel, "w")],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "cube.onnx")
    given = dataset((4, 4, 4))
    with pytest.raises(ConfigError, match=r"shape \(4, 4, 4\).*data.layout = 'file' or 'keras'") as error:
        in_keras_layout(given, tmp_path / "cube.onnx")
    assert "\n" not in str(error.value)
    found = in_keras_layout(given, tmp_path / "cube.onnx", "file")
    np.testing.assert_array_equal(found.x_test, given.x_test.transpose(0, 2, 3, 1))
    assert in_keras_layout(given, tmp_path / "cube.onnx", "keras").x_test is given.x_test


def test_other_files_and_other_shapes_are_left_alone():
    given = dataset((5, 24, 24))
    assert in_keras_layout(given, RESIDUAL).x_train is given.x_train
    assert in_keras_layout(given, Path("net.keras")) is given


def test_a_shape_of_neither_layout_is_refused_with_both(tmp_path):
    given = dataset((5, 24, 24))
    parts = ("x_train", "y_train", "x_test", "y_test")
    np.savez(tmp_path / "mine.npz", **{name: getattr(given, name) for name in parts})
    config = {"train": {"model": str(RESIDUAL)}, "data": {"source": str(tmp_path / "mine.npz")}}
    both = r"takes samples of shape \(3, 24, 24\) as in the file, or \(24, 24, 3\); data '.*' has \(5, 24, 24\)$"
    with pytest.raises(ConfigError, match=both):
        check_flow(parse_config(config, "flow"))


def test_features_have_no_layout():
    given = dataset((64,))
    assert in_keras_layout(given, SMALL).x_train is given.x_train


def test_a_stage_that_runs_again_gets_the_data_as_keras_has_them(tmp_path, monkeypatch):
    given = dataset((3, 24, 24), count=4)
    np.savez(
        tmp_path / "mine.npz", **{name: getattr(given, name) for name in ("x_train", "y_train", "x_test", "y_test")}
    )
    config = {
        "train": {"model": str(RESIDUAL)},
        "data": {"source": str(tmp_path / "mine.npz")},
        "target": {"part": "gw1nr-9"},
    }
    run = RunDirectory(tmp_path / "run")
    with run.locked(()):
        run.manifest.update(config=config)
        run.write_manifest()
    seen = []

    def record(_run, _config, data, *_):
        seen.append(data)
        raise RuntimeError

    monkeypatch.setattr("fpgaprune.flow.engine.runner.StageContext", record)
    with pytest.raises(RuntimeError):
        run_again(tmp_path / "run", "measure", {})
    assert seen[0].x_test.shape == (4, 24, 24, 3)
