"""`teacher` in `[finetune]`: the network learns from its answers, in `[finetune]` and in `[quantise]`."""

from dataclasses import replace

import keras
import numpy as np
import pytest
from keras import layers, losses

from fpgaprune.errors import ConfigError
from fpgaprune.flow.checking import check_flow, foresee_flow
from fpgaprune.flow.config import parse_config
from fpgaprune.flow.data import check_data
from fpgaprune.flow.distilling import distilled
from fpgaprune.flow.models import load_keras
from fpgaprune.flow.progress import Silent
from fpgaprune.flow.run_directory import RunDirectory
from fpgaprune.flow.samples import predict
from fpgaprune.flow.session import start_session
from fpgaprune.flow.stage import NetworkFiles, StageContext
from fpgaprune.flow.stages import finetune, quantise
from fpgaprune.flow.task import read_task
from fpgaprune.keras_file import save_keras
from fpgaprune.masks import MaskSet
from fpgaprune.npz_file import write_npz
from fpgaprune.train import soft_labels
from fpgaprune.weights import weight_arrays

LOGITS = losses.SparseCategoricalCrossentropy(from_logits=True)


def network(outputs=2, inputs=8):
    return keras.Sequential([keras.Input((inputs,), name="x"), layers.Dense(outputs, name="dense")], name="mine")


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """The folder of a network, of a teacher that says the opposite of every label, and of data; and the data."""
    folder = tmp_path_factory.mktemp("teacher")
    start_session(1)
    save_keras(network(), folder / "mine.keras")
    opposite = network()
    opposite.set_weights([np.outer(np.eye(8)[0], [40, -40]), np.array([-20, 20])])
    save_keras(opposite, folder / "opposite.keras")
    for name, model in (("narrow", network(inputs=4)), ("three", network(outputs=3))):
        save_keras(model, folder / f"{name}.keras")
    x = np.random.default_rng(1).random((128, 8), dtype=np.float32)
    data = {"x_train": x, "y_train": (x[:, 0] > 0.5).astype(np.int64)}
    data |= {"x_test": x, "y_test": data["y_train"]}
    np.savez(folder / "mine.npz", **data)
    return folder, check_data("mine", data)


def flow(folder, teacher="opposite", finetune=(), **tables):
    document = {
        "data": {"source": str(folder / "mine.npz")},
        "train": {"model": str(folder / "mine.keras"), **tables.pop("train", {})},
        "finetune": {"teacher": str(folder / f"{teacher}.keras"), "batch_size": 16, **dict(finetune)},
        **tables,
    }
    return parse_config(document, "flow.toml")


def context(given, tmp_path, config):
    folder, data = given
    run = RunDirectory(tmp_path)
    for name in ("trained", "removed"):
        (run.path / f"{name}.keras").write_bytes((folder / "mine.keras").read_bytes())
    for name in ("selection", "removed_masks"):
        MaskSet({}).save(run.file(f"{name}.npz"))
    write_npz(run.file("trained_outputs.npz"), {"000": predict(network(), data.x_test)})
    return StageContext(
        run, config, data, Silent(), key="k", network=NetworkFiles("removed.keras", "removed_masks.npz")
    )


@pytest.mark.parametrize(("share", "least", "most"), [(1.0, 0.0, 0.1), (0.05, 0.9, 1.0)])
def test_a_network_learns_what_its_teacher_says(given, tmp_path, share, least, most):
    config = flow(given[0], finetune={"epochs": 60, "learning_rate": 0.05, "distillation": share})
    with RunDirectory(tmp_path).locked():
        found = finetune.STAGE.run(context(given, tmp_path, config))
    # The metric counts the true labels, and the teacher says the opposite.
    assert least <= found["metric"]["value"] <= most


def test_training_that_rounds_learns_it_too(given, tmp_path):
    config = flow(given[0], finetune={"epochs": 0, "distillation": 1.0}, quantise={"epochs": 60, "learning_rate": 0.05})
    with RunDirectory(tmp_path).locked():
        found = quantise.STAGE.run(context(given, tmp_path, config))
    assert found["metric"]["value"] <= 0.2


class Killed(Exception):  # noqa: N818
    """Stands for a kill."""


class Killer(Silent):
    """Ends a training in its second epoch, of eight batches each."""

    def step(self, done, total, note=""):
        if done > 8:
            raise Killed


@pytest.mark.parametrize(("stage", "file"), [(finetune, "finetuned.keras"), (quantise, "quantised.keras")])
def test_a_killed_training_with_a_teacher_ends_with_the_same_bits(given, tmp_path, stage, file):
    epochs = {"epochs": 4 if stage is finetune else 0}
    config = flow(given[0], finetune=epochs, quantise={"epochs": 4 - epochs["epochs"]})
    found = []
    for name, kills in (("undisturbed", 0), ("killed", 1)):
        (tmp_path / name).mkdir()
        with RunDirectory(tmp_path / name).locked():
            for progress in [Killer()] * kills:
                with pytest.raises(Killed):
                    stage.STAGE.run(replace(context(given, tmp_path / name, config), progress=progress))
                assert (tmp_path / name / f"{stage.STAGE.name}.checkpoint.npz").exists()
            stage.STAGE.run(context(given, tmp_path / name, config))
        found.append(weight_arrays(load_keras(tmp_path / name / file)))
    assert found[0].keys() == found[1].keys()
    assert all(np.array_equal(found[0][path], found[1][path]) for path in found[0])


def test_the_labels_are_those_of_soft_labels_and_the_held_out_ones_stay(given):
    folder, data = given
    config, teacher = flow(folder), keras.saving.load_model(folder / "opposite.keras")
    task, taught = distilled(config, read_task(config.train, network(), data), data)
    assert np.array_equal(taught.y_train, soft_labels(teacher, data.x_train, data.y_train, 0.8))
    assert taught.y_test is data.y_test
    assert isinstance(task.loss, losses.CategoricalCrossentropy)
    assert task.loss.get_config()["from_logits"] is True
    assert task.metrics is None


def test_without_a_teacher_nothing_changes(given):
    config = parse_config({}, "flow.toml")
    task = read_task(config.train, network(), given[1])
    assert distilled(config, task, given[1]) == (task, given[1])


def test_a_teacher_with_a_softmax_teaches_the_same(given, tmp_path):
    folder, data = given
    teacher = keras.saving.load_model(folder / "opposite.keras")
    save_keras(keras.Sequential([keras.Input((8,)), *teacher.layers, layers.Softmax()]), tmp_path / "soft.keras")
    for name in ("mine.keras", "mine.npz"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    labels = [
        distilled(config, read_task(config.train, network(), data), data)[1].y_train
        for config in (flow(folder), flow(tmp_path, "soft"))
    ]
    np.testing.assert_allclose(*labels, atol=1e-6)


@pytest.mark.parametrize(
    ("loss", "logits"),
    [
        (LOGITS, True),
        (losses.SparseCategoricalCrossentropy(), False),
        ("sparse_categorical_crossentropy", False),
        ("categorical_crossentropy", False),
        ("SparseCategoricalCrossentropy", False),
        (losses.CategoricalCrossentropy(from_logits=True), True),
    ],
)
def test_every_cross_entropy_of_classes_takes_shares(given, loss, logits):
    config = flow(given[0])
    task = read_task(config.train, network(), given[1])
    found = distilled(config, type(task)(**{**vars(task), "loss": loss}), given[1])[0].loss
    assert isinstance(found, losses.CategoricalCrossentropy)
    assert found.get_config()["from_logits"] is logits


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"train": {"loss": "mse"}}, "finetune.teacher: the loss is 'mean_squared_error'; wanted a cross entropy"),
        ({"teacher": "narrow"}, r"narrow\.keras has inputs of shape \(4,\); wanted those of the network, \(8,\)"),
        ({"teacher": "three"}, r"three\.keras has outputs of shape \(3,\); wanted those of the network, \(2,\)"),
    ],
)
def test_a_teacher_that_does_not_fit_is_named_before_anything_is_trained(given, tables, message):
    folder, data = given
    with pytest.raises(ConfigError, match=message) as caught:
        foresee_flow(flow(folder, **tables), data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"teacher": "gone"}, r"finetune\.teacher: .*gone\.keras does not exist"),
        ({"finetune": {"fit": "own.py:fit"}}, "finetune.teacher: the loop 'own.py:fit' of finetune.fit gets the"),
        ({"train": {"class_weight": {"0": 2.0}}}, "finetune.teacher: train.class_weight weighs samples"),
        (
            {"finetune": {"teacher": None, "distillation": 0.5}},
            r"finetune\.distillation is 0\.5, and there is no finetune\.teacher",
        ),
    ],
)
def test_settings_that_contradict_a_teacher_are_refused(given, tables, message):
    with pytest.raises(ConfigError, match=message):
        check_flow(flow(given[0], **tables))


@pytest.mark.parametrize("share", [0.0, 1.5, float("nan"), "half"])
def test_a_share_out_of_range_is_refused(given, share):
    with pytest.raises(ConfigError, match=r"finetune\.distillation"):
        flow(given[0], finetune={"distillation": share})


def test_a_class_that_the_loss_ignores_cannot_be_taught(given):
    config = flow(given[0])
    task = read_task(config.train, network(), given[1])
    ignoring = type(task)(**{**vars(task), "loss": losses.SparseCategoricalCrossentropy(ignore_class=1)})
    with pytest.raises(ConfigError, match="wanted a cross entropy of classes that ignores none"):
        distilled(config, ignoring, given[1])


@pytest.mark.parametrize("stage", [finetune, quantise])
def test_another_teacher_or_another_share_is_another_training(given, tmp_path, stage):
    folder, _ = given
    for name in ("mine.keras", "mine.npz"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    seen = []
    for name, share in (("opposite", 0.5), ("opposite", 0.6), ("three", 0.6)):
        (tmp_path / "one.keras").write_bytes((folder / f"{name}.keras").read_bytes())
        seen.append(stage.STAGE.settings(flow(tmp_path, "one", {"distillation": share}, quantise={"epochs": 1})))
    assert seen[0] != seen[1] != seen[2]
