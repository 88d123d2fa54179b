"""Files that HGQ2 saved, where HGQ2 is missing or the file is another one."""

import json
import re
import sys
import zipfile
from types import SimpleNamespace

import keras
import pytest

from fpgaprune.errors import ConfigError, ModelImportError
from fpgaprune.flow.engine import flow_from_options, parse_config
from fpgaprune.network import trained_bits
from fpgaprune.quantise import import_hgq


@pytest.fixture
def saved(tmp_path):
    """A saved model whose configuration names a layer of HGQ2's, with an infinite setting as HGQ2 writes it."""
    plain, path = tmp_path / "plain.keras", tmp_path / "hgq.keras"
    keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="d")]).save(plain)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "config.json":
                document = json.loads(data)
                dense = document["config"]["layers"][-1]
                dense |= {"module": "hgq.layers", "class_name": "QDense", "registered_name": "hgq>QDense"}
                dense["config"]["i_decay_speed"] = float("inf")
                data = json.dumps(document).encode()
            target.writestr(name, data)
    return path


def test_a_missing_hgq2_is_one_line_that_says_what_to_install(saved, monkeypatch):
    monkeypatch.setitem(sys.modules, "hgq", None)
    with pytest.raises(ModelImportError) as error:
        import_hgq(saved)
    assert str(error.value) == (f"{saved} holds layers of HGQ2's, which is not installed: pip install 'fpgaprune[hgq]'")


def test_a_model_of_keras_is_no_model_of_hgq2(saved, tmp_path):
    assert trained_bits(saved) == "HGQ2"
    assert trained_bits(tmp_path / "plain.keras") is None
    assert trained_bits(tmp_path / "missing.keras") is None
    with pytest.raises(ModelImportError, match="names no layer of HGQ2's; every other Keras model is used as it is"):
        import_hgq(tmp_path / "plain.keras")
    with pytest.raises(ModelImportError, match=r"model '.*' has no layer of HGQ2's"):
        import_hgq(keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]))
    with pytest.raises(ModelImportError, match=re.escape(f"{tmp_path / 'missing.keras'} does not exist")):
        import_hgq(tmp_path / "missing.keras")


def test_a_model_without_an_input_shape_is_refused():
    with pytest.raises(ModelImportError, match=r"the model cannot be read: Sequential model .* has no input shape yet"):
        import_hgq(keras.Sequential([keras.layers.Dense(2)]))


def test_run_takes_its_zeros_as_they_are_and_trains_nothing(saved):
    config = flow_from_options(saved, data="x.npz", part="zcu104")
    assert (config.select.zeros, config.select.sparsity, config.finetune.epochs) == (True, 0.0, 0)
    assert flow_from_options(saved, data="x.npz", part="zcu104", sparsity=0.3).select.sparsity == 0.3


def test_a_flow_that_would_train_its_weights_on_is_refused(saved):
    from fpgaprune.flow.stages import Known, stage_named

    document = {"name": "a", "train": {"model": str(saved)}, "finetune": {"epochs": 3}}
    *_, check = stage_named("finetune").checks(Known(parse_config(document, "test"), SimpleNamespace()))
    with pytest.raises(ConfigError, match=r"finetune.epochs is 3, but .*hgq.keras has weights whose bits HGQ2 trained"):
        check()
