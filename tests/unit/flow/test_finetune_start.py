"""`start` in `[finetune]`: the weights of another network in place of the trained ones, and its locks at once."""

from pathlib import Path

import keras
import numpy as np
import pytest
from keras import layers

from fpgaprune.errors import ConfigError
from fpgaprune.flow.engine import check_flow, parse_config
from fpgaprune.flow.run import RunDirectory, Silent
from fpgaprune.flow.stages import StageContext, stage_named
from fpgaprune.flow.task import check_data, start_session
from fpgaprune.frontends import load_keras
from fpgaprune.network import save_keras
from fpgaprune.values import MaskSet, weight_arrays


def network():
    return keras.Sequential([keras.Input((8,)), layers.Dense(2, name="dense")], name="mine")


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Two networks of the same layers, of which the second has nine zeros, and the data."""
    folder = tmp_path_factory.mktemp("start")
    start_session(1)
    first, second = network(), network()
    kernel = second.get_layer("dense").kernel
    kernel.assign(np.where(np.arange(16).reshape(8, 2) < 9, 0, 3.0))
    x = np.random.default_rng(1).random((64, 8), dtype=np.float32)
    data = {"x_train": x, "y_train": (x[:, 0] > 0.5).astype(np.int64)}
    data |= {"x_test": x, "y_test": data["y_train"]}
    np.savez(folder / "mine.npz", **data)
    for name, model in (("first", first), ("second", second)):
        save_keras(model, folder / f"{name}.keras")
    return folder, check_data("mine", data)


def tuned(given, tmp_path, start, **keys):
    """The weights of the first network, fine-tuned, and its masks."""
    folder, data = given
    config = parse_config(
        {
            "data": {"source": str(folder / "mine.npz")},
            "train": {"model": str(folder / "first.keras")},
            "finetune": {"start": None if start is None else str(folder / start), **keys},
            "select": {"sparsity": 0.75 if keys.get("schedule") else 0.0, "granularity": "weight"},
        },
        "flow.toml",
    )
    run = RunDirectory(tmp_path)
    with run.locked():
        (run.path / "trained.keras").write_bytes((folder / "first.keras").read_bytes())
        MaskSet({}).save(run.file("selection.npz"))
        stage_named("finetune").run(StageContext(run, config, data, Silent(), key="k"))
    return weight_arrays(load_keras(run.file("finetuned.keras"))), MaskSet.load(run.file("masks.npz"))


def test_the_weights_are_those_of_the_other_network(given, tmp_path):
    kernel = tuned(given, tmp_path / "second", "second.keras", epochs=0)[0]["dense/kernel"]
    assert (kernel == np.where(np.arange(16).reshape(8, 2) < 9, 0, 3.0)).all()
    assert not (tuned(given, tmp_path / "first", None, epochs=0)[0]["dense/kernel"] == kernel).any()


def test_its_zeros_are_locked_from_the_first_step_on(given, tmp_path):
    schedule = {"kind": "polynomial_decay", "initial_sparsity": 9 / 16}
    weights, masks = tuned(given, tmp_path, "second.keras", epochs=2, schedule=schedule)
    assert not masks["dense/kernel"].reshape(-1)[:9].any()
    assert masks.locked_count == 12
    assert (weights["dense/kernel"][~masks["dense/kernel"]] == 0).all()


@pytest.mark.parametrize("rounds", [1, 2])
def test_rounds_without_epochs_choose_by_its_weights_and_train_nothing(given, tmp_path, rounds):
    weights, masks = tuned(given, tmp_path, "second.keras", epochs=0, schedule={"kind": "rounds", "rounds": rounds})
    assert not masks["dense/kernel"].reshape(-1)[:9].any()
    assert masks.locked_count == 12
    assert (weights["dense/kernel"] == np.where(masks["dense/kernel"], 3.0, 0)).all()


def test_a_file_that_is_gone_is_named_before_anything_is_trained(given):
    folder, _ = given
    document = {
        "data": {"source": str(folder / "mine.npz")},
        "train": {"model": str(folder / "first.keras")},
        "finetune": {"start": "gone.keras"},
    }
    with pytest.raises(ConfigError, match=r"finetune\.start: gone\.keras does not exist"):
        check_flow(parse_config(document, "flow.toml"))


def test_another_content_of_the_file_is_another_training(given, tmp_path):
    folder, _ = given
    copy = tmp_path / "copy.keras"
    copy.write_bytes((folder / "second.keras").read_bytes())
    config = parse_config({"finetune": {"start": str(copy)}}, "flow.toml")
    before = stage_named("finetune").settings(config)
    copy.write_bytes((folder / "first.keras").read_bytes())
    assert stage_named("finetune").settings(config) != before


def test_a_network_that_rounds_goes_on_with_the_zeros_between_its_taps(tmp_path):
    """Rounding makes the plain kernel of five taps of a dilated one of three: its other two stay zero from then on."""
    start_session(2)
    model = keras.Sequential(
        [
            keras.Input((12, 2)),
            layers.Conv1D(4, 3, dilation_rate=2, activation="relu", name="conv"),
            layers.GlobalAveragePooling1D(name="mean"),
            layers.Dense(2, activation="softmax", name="dense"),
        ]
    )
    x = np.random.default_rng(2).normal(size=(64, 12, 2)).astype(np.float32)
    y = (x.mean((1, 2)) > 0).astype(np.int64)
    np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    save_keras(model, tmp_path / "trained.keras")
    data, first = check_data("mine", dict(np.load(tmp_path / "mine.npz"))), None
    for name in ("first", "second"):
        config = parse_config(
            {
                "data": {"source": str(tmp_path / "mine.npz")},
                "train": {"model": str(tmp_path / "trained.keras")},
                "select": {"filters": {"conv/kernel": 0.25}},
                "finetune": {"epochs": 2, "quantised": True, "start": first},
                "target": {"part": "xc7z020", "route": "verilog"},
            },
            "flow.toml",
        )
        run = RunDirectory(tmp_path / name)
        with run.locked():
            (run.path / "trained.keras").write_bytes((tmp_path / "trained.keras").read_bytes())
            stage_named("select").run(StageContext(run, config, data, Silent(), key="k"))
            stage_named("finetune").run(StageContext(run, config, data, Silent(), key="k"))
        first = str(run.file("finetuned.keras"))
        kernel = weight_arrays(load_keras(Path(first)))["conv/kernel"]
        masks = MaskSet.load(run.file("masks.npz"))
        assert kernel.shape == masks["conv/kernel"].shape == (5, 2, 4)
        assert not masks["conv/kernel"][1::2].any()
        assert (kernel[1::2] == 0).all()
        assert np.count_nonzero(kernel[::2]) == 3 * 2 * 3
