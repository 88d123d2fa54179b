"""The callbacks of the page on trackers see each epoch: TensorBoard's own, and those of MLflow and W&B by stand-ins."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import fpgaprune as fp

from . import snippets

_PAGE = snippets.CHECKOUT / "docs" / "howto" / "watch_training.md"


def _make(word):
    """The function `make` of the block that imports `word`."""
    (text,) = [block.text for block in snippets.blocks(_PAGE) if block.when and word in block.text]
    names = {}
    exec(compile(text, str(_PAGE), "exec"), names)  # noqa: S102
    return names["make"]


@pytest.fixture
def train():
    """Fine-tunes a small network for two epochs with one callback."""
    import keras
    import numpy as np

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, name="d")])
    model.compile("sgd", "mse")

    def run(callback):
        masks = fp.select(model, 0.5, granularity="weight", paths=["d/kernel"])
        fp.finetune(model, masks, np.ones((8, 4)), np.ones((8, 2)), epochs=2, callbacks=[callback])

    return run


def test_tensorboard_sees_each_epoch(train, tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed: its callback was not run")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(_make("keras.callbacks.TensorBoard")(tmp_path))
    events = EventAccumulator(str(tmp_path / "tensorboard" / "train")).Reload()
    assert [event.step for event in events.Tensors("epoch_loss")] == [0, 1]


def _watching(calls):
    import keras

    class Watching(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            calls.append((epoch, sorted(logs)))

    return Watching


def test_mlflow_sees_each_epoch(train, tmp_path, monkeypatch):
    calls, mlflow = [], ModuleType("mlflow")
    mlflow.end_run = lambda: calls.append("end")
    mlflow.start_run = lambda run_name: calls.append(run_name)
    mlflow.keras = ModuleType("mlflow.keras")
    mlflow.keras.MlflowCallback = _watching(calls)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    train(_make("import mlflow")(tmp_path / "mine"))
    assert calls == ["end", "mine", (0, ["loss"]), (1, ["loss"])]


def test_wandb_sees_each_epoch(train, tmp_path, monkeypatch):
    calls = []
    modules = {name: ModuleType(name) for name in ("wandb", "wandb.integration", "wandb.integration.keras")}
    modules["wandb"].init = lambda **settings: calls.append(settings["name"])
    modules["wandb.integration.keras"].WandbMetricsLogger = _watching(calls)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    train(_make("import wandb")(tmp_path / "mine"))
    assert calls == ["mine", (0, ["loss"]), (1, ["loss"])]
