"""A training that was killed after an epoch ends with the bits of an undisturbed one."""

from itertools import product

import keras
import numpy as np
import pytest

from fpgaprune.errors import ConfigError, LockError
from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.run import RunDirectory, Silent
from fpgaprune.flow.stages import StageContext, stage_named
from fpgaprune.flow.task import (
    Checkpoint,
    Finetuning,
    check_data,
    read_task,
    shuffled_batches,
    start_session,
    steps_in_epoch,
)
from fpgaprune.values import MaskSet
from tests.quick import quick

RNG = np.random.default_rng(5)
X = RNG.random((40, 6)).astype("float32")
DATA = check_data("d", {"x_train": X, "y_train": X[:, :3].argmax(1), "x_test": X, "y_test": X[:, :3].argmax(1)})
SCHEDULES = {
    "one_shot": {"kind": "one_shot"},
    "gradual": {"kind": "polynomial_decay", "frequency": 2, "end_step": 8},
    "regrowing": {"kind": "polynomial_decay", "frequency": 2, "end_step": 8, "regrow_fraction": 0.2},
    "rounds": {"kind": "rounds", "rounds": 2},
}


class Killed(Exception):  # noqa: N818
    """Stands for a kill."""


class Killer(Silent):
    def __init__(self, after):
        self.after = after

    def step(self, done, total, note=""):
        # Batches, of which an epoch has three; past the epoch, its state is on disk.
        if done > 3 * self.after:
            raise Killed


def network():
    start_session(3)
    layers = [keras.layers.Dense(8, activation="relu", name="a"), keras.layers.Dropout(0.3)]
    return keras.Sequential([keras.Input((6,)), *layers, keras.layers.Dense(3, activation="softmax", name="b")])


def finetuned(folder, schedule, progress, key="one", **settings):
    config = parse_config(
        {
            "seed": 3,
            "select": {"sparsity": 0.5, "paths": ["a/kernel"], "granularity": "weight", "criterion": "l1"},
            "finetune": {"epochs": 4, "batch_size": 16, "learning_rate": 0.01, "schedule": schedule, **settings},
        },
        "flow",
    )
    model = network()
    task = read_task(config.train, model, DATA)
    mask = np.ones((6, 8), dtype=bool)
    mask[2, 3] = False
    selection = MaskSet({"a/kernel": mask})
    checkpoint = Checkpoint(folder / "finetune.checkpoint.npz", key, share=1)
    found = Finetuning(model, config, task, selection, DATA, progress, checkpoint).run()
    return [np.asarray(variable) for variable in model.variables], found


@pytest.mark.parametrize(("name", "after"), quick([("regrowing", 1), ("rounds", 1)], product(SCHEDULES, [1, 2])))
def test_a_killed_finetuning_goes_on_as_if_undisturbed(tmp_path, name, after):
    (tmp_path / "undisturbed").mkdir()
    whole, masks = finetuned(tmp_path / "undisturbed", SCHEDULES[name], Silent())
    with pytest.raises(Killed):
        finetuned(tmp_path, SCHEDULES[name], Killer(after))
    told = []
    progress = Silent()
    progress.step = lambda done, total, note="": told.append(done)
    resumed, again = finetuned(tmp_path, SCHEDULES[name], progress)
    assert told[0] > 3 * after
    assert all(np.array_equal(a, b) for a, b in zip(whole, resumed, strict=True))
    assert masks.masks == again.masks
    assert list(masks.changes) == list(again.changes)


def test_a_killed_training_goes_on_as_if_undisturbed(tmp_path):
    rng = np.random.default_rng(2)
    x, y = rng.random((16, 6, 6, 1)).astype("float32"), np.arange(16) % 2
    config = parse_config({"seed": 3, "train": {"epochs": 3, "batch_size": 8}}, "flow")

    def trained(folder, progress):
        start_session(3)
        data = check_data("d", {"x_train": x, "y_train": y, "x_test": x, "y_test": y})
        run = RunDirectory(folder)
        run.write_manifest()
        stage_named("train").run(StageContext(run, config, data, progress, key="one"))
        return (folder / "trained.keras").read_bytes()

    killer = Silent()

    def step(done, total, note=""):
        # Of two batches in an epoch: in the second one, when the state after the first is on disk.
        if done > 2:
            raise Killed

    killer.step = step
    with pytest.raises(Killed):
        trained(tmp_path / "killed", killer)
    assert Checkpoint(tmp_path / "killed" / "train.checkpoint.npz", "one").load().epoch >= 1
    assert trained(tmp_path / "killed", Silent()) == trained(tmp_path / "whole", Silent())
    assert not (tmp_path / "killed" / "train.checkpoint.npz").exists()


def test_a_checkpoint_of_other_settings_is_not_gone_on_with(tmp_path):
    with pytest.raises(Killed):
        finetuned(tmp_path, SCHEDULES["one_shot"], Killer(2))
    assert Checkpoint(tmp_path / "finetune.checkpoint.npz", "one").load().epoch >= 2
    assert Checkpoint(tmp_path / "finetune.checkpoint.npz", "other").load() is None
    (tmp_path / "finetune.checkpoint.npz").write_bytes(b"PK half a file")
    assert Checkpoint(tmp_path / "finetune.checkpoint.npz", "one").load() is None


def test_every_epoch_has_every_sample_once_and_an_order_of_its_own():
    def epochs(seed, first, number):
        batches = shuffled_batches(np.arange(10)[:, None], np.arange(10), 4, seed, first).take(number * 3)
        labels = np.concatenate([y.numpy() for _, y in batches])
        return labels.reshape(number, 10).tolist()

    assert steps_in_epoch(np.arange(10), 4) == 3
    four = epochs(1, 0, 4)
    assert all(sorted(epoch) == list(range(10)) for epoch in four)
    assert len({tuple(epoch) for epoch in four}) == 4
    assert epochs(1, 2, 2) == four[2:]
    assert epochs(2, 0, 1) != four[:1]


def test_no_epochs_lock_and_train_nothing(tmp_path):
    before = [np.asarray(variable) for variable in network().variables]
    after, _ = finetuned(tmp_path, SCHEDULES["one_shot"], Silent(), epochs=0)
    assert after[0][2, 3] == 0
    before[0][2, 3] = 0
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def own_loop(folder, text):
    (folder / "own.py").write_text(text)
    return f"{folder / 'own.py'}:fit"


def test_a_loop_of_the_users_own_trains_under_the_lock(tmp_path):
    text = "def fit(model, data):\n    model.fit(data['x_train'], data['y_train'], epochs=3, verbose=0)\n"
    before = network().variables[0].numpy()
    after, _ = finetuned(tmp_path, SCHEDULES["one_shot"], Silent(), fit=own_loop(tmp_path, text))
    assert after[0][2, 3] == 0
    assert (before != after[0]).sum() == before.size


@pytest.mark.parametrize(
    "text",
    [
        "    model.compile('adam', 'sparse_categorical_crossentropy')\n"
        "    model.get_layer('a').kernel.assign(model.get_layer('a').kernel + 1)\n",
        "    model.get_layer('a').kernel.assign(model.get_layer('a').kernel + 1)\n",
    ],
)
def test_a_loop_that_moves_a_locked_element_is_found_out(tmp_path, text):
    with pytest.raises((LockError, ConfigError), match=r"finetune\.fit .* moved 1 locked elements of 'a/kernel'"):
        finetuned(tmp_path, SCHEDULES["one_shot"], Silent(), fit=own_loop(tmp_path, f"def fit(model, data):\n{text}"))
