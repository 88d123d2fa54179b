"""Trials of a search reach TensorBoard and MLflow once each, and a missing or broken tracker is said in one line."""

import sys
from contextlib import contextmanager
from types import ModuleType

import pytest

from fpgaprune.errors import ConfigError, ToolError
from fpgaprune.fit import Knobs, find_tracker
from tests.unit.fit.made_up import made_point


def point(folder, **more):
    return made_point(
        Knobs("kernel", 0.5, 6), folder=str(folder / "trials" / "abc"), used={"lut": 7, "dsp": None}, **more
    )


@pytest.fixture
def mlflow(monkeypatch):
    """A stand-in that keeps what it is given."""
    module, kept = ModuleType("mlflow"), []

    @contextmanager
    def start_run(run_name, nested, tags):
        kept.append((run_name, nested, sorted(tags)))
        yield

    module.start_run, module.log_params, module.log_metrics, module.kept = start_run, kept.append, kept.append, kept
    monkeypatch.setitem(sys.modules, "mlflow", module)
    return module


def test_a_trial_reaches_mlflow_once(mlflow, tmp_path):
    one = point(tmp_path, measured={"lut": 9, "dsp": 0})
    (tmp_path / "trials").mkdir()
    for _ in range(2):
        find_tracker("mlflow", tmp_path).log_once("trial 3", one)
    (run, parameters, figures) = mlflow.kept
    assert run == ("trial 3", True, ["search"])
    assert (parameters["sparsity"], parameters["weight_bits"], parameters["granularity"]) == (0.5, 6, "kernel")
    assert (figures["lost"], figures["latency_cycles"], figures["lut"], figures["dsp"]) == (one.lost, 100, 9, 0)


def test_an_unknown_resource_is_left_out(mlflow, tmp_path):
    find_tracker("mlflow", tmp_path).log("best", point(tmp_path))
    assert mlflow.kept[2]["lut"] == 7
    assert "dsp" not in mlflow.kept[2]


def test_a_tracker_that_fails_is_said_and_the_trial_is_logged_later(mlflow, tmp_path):
    def refuse(_):
        raise RuntimeError("no\nserver")

    (tmp_path / "trials").mkdir()
    whole, mlflow.log_metrics = mlflow.log_metrics, refuse
    tracker = find_tracker("mlflow", tmp_path)
    with pytest.raises(ToolError, match=r"^mlflow did not take 'trial 1': .*no server.*run the same command again"):
        tracker.log_once("trial 1", point(tmp_path))
    mlflow.log_metrics = whole
    before = len(mlflow.kept)
    tracker.log_once("trial 1", point(tmp_path))
    assert len(mlflow.kept) == before + 3


def test_a_tracker_that_is_missing_or_unknown_is_said(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ToolError, match=r"mlflow is not installed here .*'pip install mlflow'"):
        find_tracker("mlflow", tmp_path)
    with pytest.raises(ConfigError, match="log_trials is 'wandb'; wanted tensorboard or mlflow"):
        find_tracker("wandb", tmp_path)


def test_a_trial_reaches_the_hparams_of_tensorboard(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed: no trial was handed to it")
    import tensorflow as tf
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import plugin_data_pb2

    find_tracker("tensorboard", tmp_path).log("trial 3", point(tmp_path))
    events = EventAccumulator(str(tmp_path / "tensorboard" / "trial-3")).Reload()
    assert tf.make_ndarray(events.Tensors("lut")[0].tensor_proto) == 7
    data = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    read = plugin_data_pb2.HParamsPluginData.FromString(data).session_start_info.hparams
    assert read["sparsity"].number_value == 0.5
