"""`[finetune]` under every schedule: the asked locks are in force at the end, at zero, and the same file says so."""

from pathlib import Path
from tempfile import TemporaryDirectory

import keras
import numpy as np
import pytest

from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.run import Silent
from fpgaprune.flow.task import Checkpoint, Finetuning, check_data, choose_masks, explicit_masks, read_task
from fpgaprune.flow.task import epochs as epochs_of_flow
from fpgaprune.select import close, snapshot
from fpgaprune.values import named_weights
from tests.quick import quick
from tests.unit.select.networks import plain, samples

KERNELS = 4 + 20


def dataset(model):
    x, y = samples(model, count=32)
    return check_data("drawn", {"x_train": x, "y_train": y, "x_test": x[:8], "y_test": y[:8]})


def run(schedule, *, select=None, early=None, model=None, epochs=2):
    """The model, its data and what fine-tuning came to: 8 steps of 8 samples unless said otherwise."""
    model = model or plain()
    data = dataset(model)
    section = {"sparsity": 0.75, **(select or {})}
    document = {"select": section, "finetune": {"epochs": epochs, "batch_size": 8, "schedule": schedule}}
    config = parse_config(document, "test")
    base = explicit_masks(model, config.select)
    if schedule["kind"] == "one_shot":
        base, _ = choose_masks(model, config.select, None, 0)
    task = read_task(config.train, model, data)
    with TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "state.npz", "test")
        return model, config, Finetuning(model, config, task, base, data, Silent(), checkpoint).run(early)


def locked_kernels(masks):
    return sum(int((~masks[path].any(axis=(0, 1))).sum()) for path in ("conv1/kernel", "conv2/kernel"))


SCHEDULES = {
    "one_shot": {"kind": "one_shot"},
    "polynomial_decay": {"kind": "polynomial_decay"},
    "with regrowth": {"kind": "polynomial_decay", "frequency": 1, "regrow_fraction": 0.25},
    "constant_sparsity": {"kind": "constant_sparsity", "begin_step": 3},
    "rounds": {"kind": "rounds", "rounds": 3},
    "rounds with regrowth": {"kind": "rounds", "rounds": 3, "regrow_fraction": 0.1},
}


@pytest.mark.parametrize("name", quick(["one_shot", "with regrowth", "rounds with regrowth"], SCHEDULES))
def test_the_asked_kernels_are_at_zero_when_it_ends(name):
    model, _, found = run(SCHEDULES[name], select={"locks": ["conv2/kernel[:, :, 0, 0]"]})
    assert locked_kernels(found.masks) == round(0.75 * KERNELS)
    assert not found.masks["conv2/kernel"][:, :, 0, 0].any()
    weights = named_weights(model)
    for path, mask in found.masks.items():
        assert not weights[path].numpy()[~mask].view(np.int32).any(), "exact zero, and no negative one"
        assert weights[path].numpy()[mask].all()
    assert not hasattr(model.optimizer, "masks"), "the model has its own optimizer back"
    if name != "one_shot":
        assert round(found.changes[-1][1] * KERNELS) == 18
        assert [share for _, share in found.changes] == sorted(share for _, share in found.changes)


def test_steps_between_two_changes_are_taken_together_and_leave_the_same_bits(monkeypatch):
    """With enough epochs the locks change at the start of epochs, of four steps each."""
    found, together = [], []
    original = keras.Model.fit

    def fit(self, *given, **how):
        together.append(self.steps_per_execution)
        return original(self, *given, **how)

    monkeypatch.setattr(keras.Model, "fit", fit)
    for most in (100, 1):
        monkeypatch.setattr(epochs_of_flow, "MOST_STEPS_TOGETHER", most)
        model, _, made = run(SCHEDULES["polynomial_decay"], epochs=8)
        found.append((made.changes, made.masks, snapshot(model)))
    assert together == [4, 1]
    (many, masks, weights), (single, alike, same) = found
    assert [step % 4 for step, _ in many] == [0] * len(many)
    assert (many, masks) == (single, alike)
    assert all(np.array_equal(weights[path], same[path]) for path in weights)


@pytest.mark.parametrize("name", quick(["rounds"], ["polynomial_decay", "rounds"]))
def test_what_follows_is_locked_too_where_it_is_asked_for(name):
    select = {"granularity": "filter", "sparsity": 0.5, "close": True}
    model, _, found = run(SCHEDULES[name], select=select)
    assert {addition["slice"].split("[")[0] for addition in found.additions} >= {"conv1/bias", "conv2/bias"}
    assert close(found.masks, model).masks == found.masks
    weights = named_weights(model)
    assert not any(weights[path].numpy()[~mask].any() for path, mask in found.masks.items())


def test_rounds_go_back_to_early_weights():
    model = plain()
    early = {path: array + 1 for path, array in snapshot(model).items()}
    calls = []
    original = type(model).fit
    type(model).fit = lambda self, *a, **k: calls.append(snapshot(self)) or original(self, *a, **k)
    try:
        _, _, found = run(SCHEDULES["rounds"], model=model, early=early)
    finally:
        type(model).fit = original
    assert len(calls) == 3
    for values in calls:
        assert np.array_equal(values["out/kernel"], early["out/kernel"])
        kernel = values["conv2/kernel"]
        assert np.array_equal(kernel[kernel != 0], early["conv2/kernel"][kernel != 0])
    assert locked_kernels(found.masks) == 18


def test_the_target_says_which_multipliers_there_are():
    model = plain()
    document = {
        "select": {"sparsity": 0.5, "granularity": "multiplier", "paths": ["conv2/kernel"]},
        "target": {"strategy": "resource_unrolled", "reuse_factor": 9},
    }
    config = parse_config(document, "test")
    masks, _ = choose_masks(model, config.select, None, 0, target=config.target.target())
    groups = np.moveaxis(masks["conv2/kernel"], -1, 0).reshape(-1, 9)
    assert (groups.all(axis=1) | ~groups.any(axis=1)).all()
    assert (~groups.any(axis=1)).sum() == len(groups) // 2


def test_every_way_to_name_locks_is_reachable(tmp_path):
    from fpgaprune.values import MaskSet

    model = plain()
    weights = named_weights(model)
    kernel = weights["conv1/kernel"].numpy()
    kernel[0, 0] = 0
    kernel[1, 1] = 0.001
    weights["conv1/kernel"].assign(kernel)
    MaskSet.from_slices(model, ["out/bias[1]"]).save(tmp_path / "given.npz")
    section = {
        "locks": ["conv1/bias[0]"],
        "masks": str(tmp_path / "given.npz"),
        "zeros": True,
        "fixed": {"conv1/kernel": "fixed<8,1,RND>"},
    }
    masks, _ = choose_masks(model, parse_config({"select": section}, "test").select, None, 0)
    assert not masks["conv1/bias"][0]
    assert not masks["out/bias"][1]
    assert not masks["conv1/kernel"][0, 0].any()
    assert not masks["conv1/kernel"][1, 1].any()
    assert masks.locked_count == 1 + 1 + int((abs(kernel) < 2**-8).sum())


@pytest.mark.parametrize(
    ("rules", "added"), [(True, {"conv1/bias", "conv2/kernel"}), (["bias"], {"conv1/bias"}), ([], set())]
)
def test_the_rules_that_add_locks_are_named(rules, added):
    section = {"locks": ["conv1/kernel[..., 1]"], "close": rules}
    _, additions = choose_masks(plain(), parse_config({"select": section}, "test").select, None, 0)
    assert {addition["slice"].split("[")[0] for addition in additions} == added
