"""An architecture as JSON and its weights come in as the whole model would have."""

import json
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import ConfigError, ModelImportError

QKERAS = Path(__file__).parents[1] / "quantise" / "qkeras" / "mlp.h5"


def parted(source, folder):
    """The two parts of the whole model in the file `source`, as Keras 2 writes them."""
    with h5py.File(source, "r") as whole, h5py.File(folder / "net_weights.h5", "w") as weights:
        document = json.loads(whole.attrs["model_config"])
        document |= {"keras_version": "2.4.0", "backend": "tensorflow"}
        (folder / "net.json").write_text(json.dumps(document))
        for name, value in whole["model_weights"].attrs.items():
            weights.attrs[name] = value
        for name in whole["model_weights"]:
            whole.copy(f"model_weights/{name}", weights, name=name)
    return folder / "net.json", folder / "net_weights.h5"


def dense_of_keras3(folder):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="relu", name="d")])
    (folder / "net.json").write_text(model.to_json())
    model.save_weights(folder / "net.weights.h5")
    return model


def test_the_parts_of_a_network_of_qkeras_give_the_whole(tmp_path):
    net, whole = fp.load(*parted(QKERAS, tmp_path)), fp.load(QKERAS)
    assert net.format == "QKeras"
    assert net.masks == whole.masks
    arrays, wanted = fp.weight_arrays(net.model), fp.weight_arrays(whole.model)
    assert arrays.keys() == wanted.keys()
    assert all(np.array_equal(arrays[path], wanted[path]) for path in wanted)
    assert {path: str(kind) for path, kind in net.types.items()} == {p: str(kind) for p, kind in whole.types.items()}


def test_the_parts_of_a_network_of_keras_3_give_the_whole(tmp_path):
    model = dense_of_keras3(tmp_path)
    net = fp.load(tmp_path / "net.json", tmp_path / "net.weights.h5")
    assert np.array_equal(net.model.layers[-1].get_weights()[0], model.layers[-1].get_weights()[0])


def test_the_parts_of_a_network_of_keras_2_are_compared_with_tf_keras(tmp_path):
    kernel = np.float32([[1, 0, 2], [3, -4, 0]])
    document = {
        "class_name": "Sequential",
        "keras_version": "2.1.5",
        "config": [
            {
                "class_name": "Dense",
                "config": {"name": "d", "units": 3, "activation": "relu", "batch_input_shape": [None, 2]},
            }
        ],
    }
    (tmp_path / "net.json").write_text(json.dumps(document))
    with h5py.File(tmp_path / "w.h5", "w") as file:
        file.attrs["layer_names"] = [b"d"]
        file.attrs["backend"], file.attrs["keras_version"] = "tensorflow", "2.1.5"
        group = file.create_group("d")
        group.attrs["weight_names"] = [b"d/kernel:0", b"d/bias:0"]
        group["d/kernel:0"], group["d/bias:0"] = kernel, np.float32([1, 2, 3])
    net = fp.load(tmp_path / "net.json", tmp_path / "w.h5")
    assert np.array_equal(fp.weight_arrays(net.model)["d/kernel"], kernel)
    assert np.array_equal(net.masks["d/kernel"], kernel != 0)
    assert net.difference.interpreter == "tf_keras"


def test_parts_that_do_not_fit_are_one_line(tmp_path):
    dense_of_keras3(tmp_path)
    json_file, weights = tmp_path / "net.json", tmp_path / "net.weights.h5"
    other = keras.Sequential([keras.Input((5,)), keras.layers.Dense(7, name="d")])
    other.save_weights(tmp_path / "other.weights.h5")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "cut.json").write_text(json_file.read_text()[:40])
    (tmp_path / "cut.h5").write_bytes(weights.read_bytes()[:900])
    with h5py.File(tmp_path / "empty.h5", "w") as file:
        file["x"] = 1
    old = tmp_path / "old.json"
    old.write_text(json.dumps({"class_name": "Sequential", "config": []}))
    code = json.loads(json_file.read_text().replace('"Dense"', '"Lambda"'))
    (tmp_path / "code.json").write_text(json.dumps(code))
    for found, given, kind, reason in (
        (json_file, None, ConfigError, r"net\.json is an architecture without weights; give them too: .*--weights"),
        (json_file, tmp_path / "gone.h5", ConfigError, r"gone\.h5 does not exist"),
        (json_file, tmp_path / "other.weights.h5", ModelImportError, r"net\.json with .*other\.weights\.h5"),
        (tmp_path / "list.json", weights, ModelImportError, "is no architecture of Keras"),
        (tmp_path / "cut.json", weights, ModelImportError, r"cut\.json cannot be read"),
        (json_file, tmp_path / "cut.h5", ModelImportError, r"cut\.h5 is not a whole model file"),
        (old, tmp_path / "empty.h5", ModelImportError, "it names no layers"),
        (tmp_path / "code.json", weights, ModelImportError, r"code\.json with .* is refused: .*[Ll]ambda"),
    ):
        with pytest.raises(kind, match=reason) as caught:
            fp.load(found, given)
        assert "\n" not in str(caught.value)
        assert "whole." not in str(caught.value)
