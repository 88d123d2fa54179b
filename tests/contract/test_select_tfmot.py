"""Models pruned with TF-MOT: the same predictions, their masks, what is reported, and what is refused."""

import json
import os
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

from fpgaprune.errors import ModelImportError
from fpgaprune.frontends import import_tfmot
from fpgaprune.select import ConstantSparsity, PolynomialDecay
from fpgaprune.values import named_weights
from tests.unit.select.networks import plain, samples

FORMS = ("wrapped.h5", "wrapped.keras", "wrapped_tf", "stripped.h5", "stripped.keras", "stripped_tf")
MAKER = Path(__file__).parents[1] / "unit" / "select" / "make_tfmot_models.py"


# The half that runs in this process, with a reader that leaves prepared files.


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """What imports a SavedModel, the files that its reader leaves, which a test may change before, and the model."""
    model = plain()
    kernel = named_weights(model)["conv2/kernel"]
    values = kernel.numpy()
    values[0, 0, 0, :2] = [0.0, -0.0]
    kernel.assign(values)
    x, _ = samples(model)
    files = {
        "masks": {"conv2/kernel": values != 0},
        "probe": {"input_0": x, "output_0": model(x, training=False).numpy()},
        "report": {"wrappers": ["prune_low_magnitude_conv2"], "left_nonzero": {"conv2/kernel": 3}},
    }

    def reader(command, **_):
        folder = Path(command[-1])
        model.save(folder / "model.h5")
        np.savez(folder / "masks.npz", **files["masks"])
        np.savez(folder / "probe.npz", **files["probe"])
        (folder / "report.json").write_text(json.dumps(files["report"]))
        return subprocess.CompletedProcess(command, 0, "", "")

    # Keras says that .h5 is a legacy format, which is what is needed here.
    monkeypatch.setattr("keras.src.saving.saving_api.logging.warning", lambda *_: None)
    monkeypatch.setattr(subprocess, "run", reader)
    return partial(import_tfmot, tmp_path, trusted=True), files, model


def test_what_the_reader_found_is_reported(prepared):
    imported, files, model = prepared
    found = imported()
    assert found.wrappers == ("prune_low_magnitude_conv2",)
    assert found.left_nonzero == {"conv2/kernel": 3}
    assert found.negative_zeros == {"conv2/kernel": 1}
    assert found.masks["conv2/kernel"].sum() == files["masks"]["conv2/kernel"].size - 2
    assert found.max_abs_error < 1e-6
    assert found.to_json()["masks"] == found.masks.digest()
    theirs = named_weights(found.model)
    for path, variable in named_weights(model).items():
        assert theirs[path].numpy().tobytes() == variable.numpy().tobytes()


def test_zeros_are_the_masks_of_a_model_without_wrappers(prepared):
    imported, files, _ = prepared
    files["report"]["wrappers"] = []
    files["masks"].clear()
    masks = imported().masks
    assert list(masks) == ["conv2/kernel"]
    assert np.argwhere(~masks["conv2/kernel"]).tolist() == [[0, 0, 0, 0], [0, 0, 0, 1]]


def test_other_predictions_are_refused(prepared):
    imported, files, _ = prepared
    files["probe"]["output_0"] = files["probe"]["output_0"] + np.float32(1e-5)
    with pytest.raises(
        ModelImportError, match=r"predicts other values in Keras 3, by 1e-05 where rounding explains \d"
    ):
        imported()
    files["probe"]["output_0"] = files["probe"]["output_0"] * np.nan
    with pytest.raises(ModelImportError, match="predicts other values"):
        imported()
    files["probe"]["output_0"] = np.zeros((3, 3))
    with pytest.raises(ModelImportError, match="has other outputs in Keras 3"):
        imported()


# What is refused before tf_keras is loaded.


def test_a_model_that_does_not_exist(tmp_path):
    with pytest.raises(ModelImportError, match=r"nowhere\.h5 does not exist; wanted a \.keras or \.h5 file"):
        import_tfmot(tmp_path / "nowhere.h5")


def write_h5(path, config=None):
    with h5py.File(path, "w") as file:
        if config is not None:
            file.attrs["model_config"] = config


def write_keras(path, config):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", config)


def write_folder(path, config):
    path.mkdir()
    (path / "keras_metadata.pb").write_bytes(b"\x08\x02" + config.encode())


def write_graph(path, name):
    path.mkdir()
    (path / "saved_model.pb").write_bytes(b"\x08\x01" + name)


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("text.h5", lambda path: path.write_text("no model"), r"it is not a \.keras, \.h5 or SavedModel file"),
        ("weights.h5", write_h5, "holds weights without a model; save the whole model"),
        (
            "code.h5",
            lambda path: write_h5(path, '{"class_name": "Lambda"}'),
            "has a Lambda layer, whose code would run",
        ),
        ("code.keras", lambda path: write_keras(path, '{"class_name": "Lambda"}'), "has a Lambda layer"),
        ("code_tf", lambda path: write_folder(path, '{"class_name": "Dense"}'), "a SavedModel holds a program"),
        (
            "exported",
            lambda path: write_graph(path, b"_generic_user_object"),
            r"without layers.*model\.save\('exported\.ke",
        ),
        ("older_tf", lambda path: write_graph(path, b"_tf_keras_network"), "'fpgaprune convert .*older_tf --trust'"),
        # Names are what JSON reads, however they are written.
        ("escaped.h5", lambda path: write_h5(path, '{"l": [{"class_name": "\\u004cambda"}]}'), "has a Lambda layer"),
        ("escaped.keras", lambda path: write_keras(path, '{"class_name": "L\\u0061mbda"}'), "has a Lambda layer"),
        ("plain.keras", lambda path: write_keras(path, '{"a": {"class_name": "__lambda__"}}'), "has a Lambda layer"),
        ("module.keras", lambda path: write_keras(path, '{"module": "os", "class_name": "x"}'), "the module 'os'"),
        ("deep.h5", lambda path: write_h5(path, "[" * 20_000 + "]" * 20_000), "nested too deep"),
        ("broken.keras", lambda path: write_keras(path, '{"class_name'), "its configuration cannot be read: not JSON"),
    ],
)
def test_files_that_must_not_be_read_are_refused(tmp_path, name, write, message):
    write(tmp_path / name)
    with pytest.raises(ModelImportError, match=message) as error:
        import_tfmot(tmp_path / name)
    assert "\n" not in str(error.value)


# The whole, with tf_keras and TF-MOT in processes of their own.


@pytest.fixture(scope="module")
def pruned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pruned")
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1"}
    subprocess.run([sys.executable, str(MAKER), str(folder), *FORMS], check=True, env=environment, capture_output=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_form_predicts_the_same_and_brings_its_masks(pruned, form):
    found = import_tfmot(pruned / form, trusted=(pruned / form).is_dir())
    assert "TF_USE_LEGACY_KERAS" not in os.environ
    assert tf.keras.Model is keras.Model
    assert isinstance(found.model, keras.Model)
    kind = "wrapped" if form.startswith("wrapped") else "stripped"
    with np.load(pruned / "probe.npz") as probe:
        assert np.abs(found.model.predict(probe["x"], verbose=0) - probe[kind]).max() <= 1e-6
    assert sum(found.negative_zeros.values()) >= 1
    weights = named_weights(found.model)
    if kind == "wrapped":
        assert "prune_low_magnitude_stem" in found.wrappers
        assert {"stem/kernel", "out/kernel"} <= set(found.masks)
        assert found.masks["out/kernel"].mean() == pytest.approx(0.5, abs=0.05)
        # The file was saved between a step and the next call; a call sets what is masked to zero.
        assert found.left_nonzero
        for path, mask in found.masks.items():
            assert not np.any(weights[path].numpy()[~mask])
    else:
        assert found.wrappers == ()
        assert found.left_nonzero == {}
        assert found.masks["out/kernel"].mean() == pytest.approx(0.5, abs=0.05)
        for path, mask in found.masks.items():
            assert np.array_equal(mask, weights[path].numpy() != 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_our_schedules_are_tfmots(monkeypatch):
    # The import of TF-MOT asks for Keras 2, which `tf.keras` reads at its first use: that is above.
    assert tf.keras.Model is keras.Model
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "0")
    import tensorflow_model_optimization as tfmot

    schedules = tfmot.sparsity.keras
    theirs = schedules.PolynomialDecay(initial_sparsity=0.1, final_sparsity=0.9, begin_step=5, end_step=60)
    ours = PolynomialDecay(0.1, 0.9, 5, 60)
    constant = schedules.ConstantSparsity(target_sparsity=0.5, begin_step=3, frequency=7)
    for step in range(80):
        due, sparsity = theirs(step)
        assert bool(due) == ours(step)[0]
        assert float(sparsity) == pytest.approx(ours(step)[1], abs=1e-6)
        assert bool(constant(step)[0]) == ConstantSparsity(0.5, 3, frequency=7)(step)[0]
