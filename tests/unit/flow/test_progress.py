"""What a watcher is told of stages and of training."""

import keras
import numpy as np
import pytest

from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.run import Silent, epochs_shown, progress
from fpgaprune.flow.stages import STAGES, MeasureResult, stage_named


class Recorder(Silent):
    def __init__(self):
        self.stages, self.steps = [], []

    def stage(self, name, state, note="", seconds=None):
        self.stages.append((name, state, note, seconds))

    def step(self, done, total, note=""):
        self.steps.append((done, total, note))


@pytest.mark.parametrize(
    ("result", "seconds", "told"),
    [
        (MeasureResult(), 3.0, ("done", "", 3.0)),
        (MeasureResult(notes=("one", "two")), 3.0, ("done", "one; two", 3.0)),
        (MeasureResult(), None, ("unchanged", "", None)),
        (MeasureResult(left_out="no family"), 0.1, ("skipped", "no family", 0.1)),
        (MeasureResult(left_out="no family"), None, ("skipped", "no family", None)),
        (None, 3.0, ("done", "", 3.0)),
    ],
)
def test_how_a_stage_ended(result, seconds, told):
    recorder = Recorder()
    stage_named("measure").tell_end(recorder, result, seconds)
    assert recorder.stages == [("measure", *told)]


def test_a_watcher_learns_of_the_stages_that_the_flow_asks_for():
    for document, asked in (
        ({}, set()),
        ({"quantise": {"epochs": 1}}, {"quantise"}),
        ({"finetune": {"quantised": True}}, {"quantise"}),
        ({"trim": {"max_loss": "1 %"}}, {"trim"}),
        ({"measure": {"families": ["xc7"]}}, {"measure"}),
    ):
        config = parse_config(document, "flow")
        silent = {"quantise", "trim", "measure"} - asked
        assert {stage.name for stage in STAGES if not stage.asked(config)} == silent


def train(recorder, metrics, epochs=2, passed=0, total=2):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=metrics)
    x, y = np.ones((40, 3), np.float32), np.zeros(40, np.int64)
    shown = epochs_shown(recorder, total, passed)
    model.fit(x, y, batch_size=8, epochs=epochs, verbose=0, shuffle=False, callbacks=[shown])
    return recorder.steps


def test_batches_within_an_epoch_are_told(monkeypatch):
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    steps = train(Recorder(), ["accuracy"])
    assert [done for done, _, _ in steps] == [1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 10]
    assert {total for _, total, _ in steps} == {10}
    assert steps[0][2].startswith("epoch 1 of 2, loss ")
    assert ", accuracy " in steps[-1][2]


def test_many_batches_a_second_are_told_now_and_then(monkeypatch):
    monkeypatch.setattr(progress, "EVERY_S", 60.0)
    assert [done for done, _, _ in train(Recorder(), ["accuracy"])] == [1, 5, 10]


@pytest.mark.parametrize(
    ("metrics", "shown"),
    [
        ([], ["loss"]),
        ([keras.metrics.SparseTopKCategoricalAccuracy(1, name="top_1")], ["loss", "top 1"]),
        (["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(1, name="top_1")], ["loss", "accuracy"]),
    ],
)
def test_the_loss_and_the_first_metric_are_shown_whatever_they_are(metrics, shown):
    note = train(Recorder(), metrics)[-1][2]
    assert [figure.rpartition(" ")[0] for figure in note.split(", ")[1:]] == shown


def test_epochs_of_earlier_rounds_count(monkeypatch):
    monkeypatch.setattr(progress, "EVERY_S", 60.0)
    steps = train(Recorder(), ["accuracy"], epochs=1, passed=3, total=8)
    assert [step[:2] for step in steps] == [(16, 40), (20, 40)]
    assert steps[-1][2].startswith("epoch 4 of 8, ")


def test_a_generator_of_unknown_length_is_told_by_epochs():
    recorder = Recorder()
    shown = epochs_shown(recorder, 4)
    shown.set_params({"steps": None, "epochs": 4})
    shown.on_epoch_begin(0)
    shown.on_train_batch_end(0, {"loss": 1.0})
    shown.on_epoch_end(0, {"loss": 0.5, "val_loss": 3.0})
    assert recorder.steps == [(1, 4, "epoch 1 of 4, loss 0.5")]
