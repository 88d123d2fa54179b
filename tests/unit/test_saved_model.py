"""Saved models: damaged ones, and those that name code or other files, are refused before anything builds them."""

import io
import json
import zipfile
from unittest import mock

import h5py
import keras
import numpy as np
import pytest

from fpgaprune.certify import certify
from fpgaprune.errors import ConfigError
from fpgaprune.files import check_names, read_configuration, read_weights, require_layers
from fpgaprune.network import read_keras_ends, read_keras_weights
from fpgaprune.values import MaskSet, named_weights

from ..drill.sound_files import keras_model, kernel

LAYER = {"module": "keras.layers", "class_name": "Dense", "config": {"name": "fc"}, "registered_name": None}


def within(entry):
    """`entry` where a wrapper of a wrapper has its layer."""
    inner = {**LAYER, "class_name": "TimeDistributed", "config": {"layer": entry}}
    return {**LAYER, "class_name": "Bidirectional", "config": {"layer": inner, "backward_layer": None}}


def function(name, module="builtins", **more):
    return {"class_name": "function", "module": module, "config": name, "registered_name": name, **more}


@pytest.mark.parametrize(
    "document",
    [
        LAYER,
        within(LAYER),
        {
            **LAYER,
            "config": {"activation": function("relu"), "kernel_initializer": {"class_name": "Zeros", "config": {}}},
        },
        {"module": "keras.src.ops.numpy", "class_name": "Multiply", "config": {}, "registered_name": "Multiply"},
        {"module": "keras.src.models.functional", "class_name": "Functional", "config": {}},
        {"class_name": "PruneLowMagnitude", "config": {"pruning_schedule": {"class_name": "ConstantSparsity"}}},
        {"module": "mine", "class_name": "Mine", "config": {}, "registered_name": "pack>Mine"},
    ],
)
def test_what_keras_and_the_user_registered_passes(document):
    check_names({"layers": [document]}, registered=("pack>Mine",))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({**LAYER, "class_name": "Lambda"}, "has a Lambda layer, whose code would run"),
        (within({**LAYER, "class_name": "Lambda"}), "has a Lambda layer"),
        ({"class_name": "__lambda__", "config": {"code": "4w"}}, "has a Lambda layer"),
        ({**LAYER, "config": {"activation": {"class_name": "__lambda__"}}}, "has a Lambda layer"),
        ({**LAYER, "class_name": "TFOpLambda", "config": {"function": "io.write_file"}}, "has a Lambda layer"),
        ({**LAYER, "class_name": "TorchModuleWrapper"}, "the layer TorchModuleWrapper, whose code would run"),
        ({**LAYER, "class_name": "FlaxLayer"}, "the layer FlaxLayer"),
        ({**LAYER, "class_name": "JaxLayer"}, "the layer JaxLayer"),
        ({**LAYER, "class_name": "TFSMLayer"}, "the layer TFSMLayer"),
        (within({"class_name": "Popen", "module": "subprocess", "config": {}}), "the module 'subprocess'"),
        (
            {"class_name": "Mine", "module": None, "registered_name": "pack>Mine"},
            "the class 'Mine', which is neither Keras's nor",
        ),
        (function("system", "os"), "the module 'os'"),
        (function("eval"), "the function 'eval' of 'builtins'"),
        (function("get_file", "keras.utils"), "the function 'get_file' of 'keras.utils'"),
        (function("enable_unsafe_deserialization", "keras.config"), "the function 'enable_unsafe_deserialization'"),
        ({**function("relu"), "config": {"class_name": "Dense"}}, "the function {'class_name': 'Dense'}"),
        ({**LAYER, "class_name": "get_file", "module": "keras.utils"}, "the class 'get_file'"),
        ({**LAYER, "class_name": ["Dense"]}, "the class .*wanted texts"),
        (
            {**LAYER, "class_name": "StringLookup", "config": {"vocabulary": "/etc/passwd"}},
            "reads the file '/etc/passwd'",
        ),
        ({"class_name": "L" * 5000}, r"the class 'L{59}\.\.\., which is neither"),
    ],
)
def test_code_and_other_files_are_refused_wherever_they_stand(entry, message):
    document = {"class_name": "Sequential", "module": "keras", "config": {"layers": [entry]}}
    with pytest.raises(ValueError, match=message) as error:
        check_names(document)
    assert "\n" not in str(error.value)


def rezipped(**members):
    """The sound model with other members; None leaves one out."""
    names = {"config": "config.json", "metadata": "metadata.json", "weights": "model.weights.h5"}
    with zipfile.ZipFile(io.BytesIO(keras_model())) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    found |= {names.get(key, key): value for key, value in members.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in found.items():
            if content is not None:
                archive.writestr(name, content)
    return buffer.getvalue()


def hdf5(change):
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file["a"] = kernel()
        change(file)
    return buffer.getvalue()


def virtual(file):
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "x", (4,))
    file.create_virtual_dataset("v", layout)


def put(value):
    return lambda file: file.__setitem__("x", value)


def group_within_itself(file):
    file["g/h"] = 1
    file["g/again"] = file["g"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty; save or copy the model again"),
        (keras_model()[:500], "was cut short"),
        (rezipped(config=b'{"a": 1, "a": 2}'), "the name 'a' stands twice in one object"),
        (rezipped(config=b'{"a": NaN}'), "it holds NaN, which is not a JSON number"),
        (rezipped(config=b"[" * 100_000), "nested too deep"),
        (rezipped(config=b"\xff"), "not UTF-8 text"),
        (rezipped(config=b'{"a": ' + b"9" * 5000 + b"}"), r"the whole number '9{59}\.\.\. has more than 64 bits"),
        (rezipped(config=None), r"it holds no config\.json"),
        (rezipped(weights=None), r"it holds no model\.weights\.h5"),
        (rezipped(config=b"\0" * (1 << 27)), r"config\.json takes 134,217,728 bytes; wanted"),
        (rezipped(**{"../../evil": b"x"}), r"it holds '\.\./\.\./evil'; wanted config\.json"),
        (rezipped(**{"model.weights.npz": b"x"}), r"it holds 'model\.weights\.npz'"),
        (rezipped(weights=b"no HDF5"), "its HDF5 is damaged"),
        (
            rezipped(weights=hdf5(put(h5py.ExternalLink("a.h5", "/")))),
            "'x' is a link to another",
        ),
        (rezipped(weights=hdf5(put(h5py.SoftLink("/a")))), "'x' is a link to another"),
        (rezipped(weights=hdf5(group_within_itself)), "holds itself"),
        (rezipped(weights=hdf5(virtual)), "lies in another file"),
        (
            rezipped(weights=hdf5(lambda f: f.create_dataset("e", 4, "u1", external=[("x", 0, 4)]))),
            "lies in another file",
        ),
        (
            rezipped(weights=hdf5(lambda f: f.create_dataset("e", (10**12,), "f4", chunks=(9,)))),
            "more than its file can",
        ),
    ],
)
def test_damaged_keras_files_are_one_line(tmp_path, content, message):
    path = tmp_path / "model.keras"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as error:
        _read(path)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
    assert "does not exist" not in str(error.value)


def _read(path):
    read_configuration(path, ConfigError)
    read_weights(path, ConfigError)


def test_a_file_of_two_kinds_is_refused(tmp_path):
    # The one kind would be checked, and the other one loaded.
    with h5py.File(tmp_path / "both.h5", "w") as file:
        file.attrs["model_config"] = json.dumps({"class_name": "Lambda"})
    (tmp_path / "both.h5").write_bytes((tmp_path / "both.h5").read_bytes() + keras_model())
    with pytest.raises(ConfigError, match=r"it is a \.keras and an \.h5 file at once"):
        read_configuration(tmp_path / "both.h5", ConfigError)


def test_a_sound_file_is_read(tmp_path):
    path = tmp_path / "model.keras"
    path.write_bytes(keras_model())
    assert read_configuration(path, ConfigError).version == "3.15.0"
    assert np.array_equal(read_keras_weights(path)["fc/kernel"], kernel())


def test_an_h5_file_of_keras_3_holds_the_same_weights_as_its_keras_file(tmp_path):
    inner = keras.Sequential([keras.Input((8, 8, 4)), keras.layers.Conv2D(3, 3, name="in")], name="inner")
    inner.layers[0].trainable = False
    entry = keras.Input((8, 8, 1))
    x = keras.layers.BatchNormalization(name="norm")(keras.layers.Conv2D(4, 3, padding="same", name="conv")(entry))
    x = keras.layers.TimeDistributed(keras.layers.Dense(2), name="each")(keras.layers.Reshape((36, 3))(inner(x)))
    x = keras.layers.Bidirectional(keras.layers.GRU(3, return_sequences=True), name="both")(x)
    back = keras.layers.LSTM(3, go_backwards=True, use_bias=False, name="back")
    model = keras.Model(entry, keras.layers.Bidirectional(keras.layers.GRU(3), backward_layer=back, name="other")(x))
    model.compile("sgd", "mse", metrics=["mae"])
    model.save(tmp_path / "model.keras")
    # Keras says that .h5 is a legacy format, which is what is needed here.
    with mock.patch("keras.src.saving.saving_api.logging.warning"):
        model.save(tmp_path / "model.h5")
    weights, wanted = read_keras_weights(tmp_path / "model.h5"), named_weights(model)
    assert set(weights) == set(wanted)
    assert all(np.array_equal(weights[path], wanted[path]) for path in wanted)
    saved = read_keras_weights(tmp_path / "model.keras")
    assert set(saved) == set(weights)
    assert all(np.array_equal(saved[path], wanted[path]) for path in wanted)
    assert read_keras_ends(tmp_path / "model.h5") == read_keras_ends(tmp_path / "model.keras")
    compiled = read_configuration(tmp_path / "model.h5", ConfigError).document["compile_config"]
    assert (compiled["loss"], compiled["metrics"]) == ("mse", ["mae"])
    assert compiled["optimizer"]["module"] == "keras.optimizers"
    masks = MaskSet({path: array != 0 for path, array in weights.items() if path == "conv/kernel"})
    certify(tmp_path / "model.h5", masks).require()


class Subclassed(keras.Model):
    def call(self, x):
        return x


def test_a_model_whose_layers_only_its_code_knows_is_refused_by_its_class(tmp_path):
    def document(model):
        model.save(tmp_path / "model.keras")
        return read_configuration(tmp_path / "model.keras", ConfigError).document

    own = Subclassed()
    own.build((None, 3))
    with pytest.raises(ValueError, match=r"subclassed model, 'Subclassed', .* build the same layers as keras"):
        require_layers(document(own))
    entry = keras.Input((3,))
    output = keras.layers.Dense(2)(entry)
    for model in (
        keras.Model(entry, output),
        Subclassed(entry, output),
        keras.Sequential([entry, keras.layers.Dense(2)]),
    ):
        require_layers(document(model))
