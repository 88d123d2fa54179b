"""Commands take an ONNX file as they take a file of Keras, and its names for weights."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from fpgaprune.cli import app
from fpgaprune.errors import ConfigError, ModelImportError
from fpgaprune.flow import flow_from_options
from fpgaprune.flow.file import SelectConfig
from fpgaprune.frontends import load_keras
from fpgaprune.values import MaskSet
from tests.unit.frontends.graphs import numbers, small_cnn


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    weight = numbers(16, 8, 3, 3, seed=7, scale=0.2)
    weight[2] = 0
    small_cnn(tmp_path / "net.onnx", **{"features.4.weight": weight})
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_convert_writes_the_model_and_its_masks(folder):
    said = run("convert", "net.onnx", "--out", "net.keras", "--masks", "masks.npz").stdout
    assert "largest difference to onnxruntime" in said
    assert "features.4/kernel" in said
    assert "features.4.weight" in said
    model, masks = load_keras(folder / "net.keras"), MaskSet.load(folder / "masks.npz")
    assert not masks["features.4/kernel"][..., 2].any()
    assert model.name == "net"
    found = json.loads(run("convert", "net.onnx", "--out", "other.keras", "--json").stdout)["found"]
    assert found["difference"]["samples"] == 256
    assert found["sources"]["fc1/kernel"] == {"name": "fc1.weight", "shape": [12, 64]}
    assert found["input_axes"] == {"x": [0, 2, 3, 1]}


def test_convert_loses_no_file_of_which_nothing_was_said(folder):
    assert "net.keras" in run("convert", "net.onnx").stdout
    written = (folder / "net.keras").read_bytes()
    with pytest.raises(ConfigError, match=r"^net\.keras exists; name the file to write with --out$"):
        run("convert", "net.onnx")
    with pytest.raises(ConfigError, match=r"^--out \S*net\.keras is the network itself, which would be lost"):
        run("convert", "net.keras", "--out", str(folder / "net.keras"))
    assert (folder / "net.keras").read_bytes() == written
    run("convert", "net.onnx", "--out", "net.keras")


def test_two_conversions_are_the_same_bytes(folder):
    run("convert", "net.onnx", "--out", "a.keras")
    run("convert", "net.onnx", "--out", "b.keras")
    assert (folder / "a.keras").read_bytes() == (folder / "b.keras").read_bytes()


def test_inspect_lists_its_layers(folder):
    layers = json.loads(run("inspect", "net.onnx", "--json").stdout)["layers"]
    assert [layer["zeros"] for layer in layers if layer["name"] == "features.4"] == [8 * 9]


def test_select_takes_names_of_pytorch(folder):
    run("select", "net.onnx", "--lock", "features.4.weight[13, 5]", "--lock", "fc2.weight[:, 3]", "--out", "m.npz")
    masks = MaskSet.load("m.npz")
    assert np.argwhere(~masks["features.4/kernel"][0, 0]).tolist() == [[5, 13]]
    assert np.argwhere(~masks["fc2/kernel"]).tolist() == [[3, column] for column in range(10)]


def test_a_flow_file_takes_names_of_pytorch(folder):
    (folder / "flow.toml").write_text('[train]\nmodel = "net.onnx"\n[select]\nlocks = ["features.4.weight[13, 5]"]\n')
    assert flow_from_options(folder / "flow.toml")[SelectConfig].locks == ("features.4/kernel[:, :, 5, 13]",)


GLOBS = """
paths = ["features.*.weight"]
protect = ["fc2/kernel", "fc1.weight", "features.1.weight", "nowhere*"]
[select.sparsity]
"features.0.weight" = 0.25
"*/kernel" = 0.5
"""


def test_globs_of_a_flow_file_take_names_of_pytorch(folder):
    """Those that fit a path in Keras stay, as do those that fit nothing, which the selection refuses."""
    (folder / "flow.toml").write_text(f'[train]\nmodel = "net.onnx"\n[select]{GLOBS}')
    select = flow_from_options(folder / "flow.toml")[SelectConfig]
    assert select.paths == ("features.0/kernel", "features.4/kernel")
    assert select.protect == ("fc2/kernel", "fc1/kernel", "features.1/gamma", "nowhere*")
    assert select.sparsity == {"features.0/kernel": 0.25, "*/kernel": 0.5}


def test_select_takes_globs_of_names_of_pytorch(folder):
    asked = ("--path", "features.*.weight", "--protect", "features.0.weight", "--sparsity", "0.5")
    done = run("select", "net.onnx", *asked, "--json")
    weights = json.loads(done.stdout)["weights"]
    assert weights["features.4/kernel"]["locked"] > 0
    assert "fc1/kernel" not in weights


def test_data_that_fit_neither_the_file_nor_keras_are_refused(folder):
    data = {f"x_{part}": np.zeros((20, 1, 9, 8), np.float32) for part in ("train", "test")}
    np.savez("d.npz", **data, y_train=np.arange(20) % 10, y_test=np.arange(20) % 10)
    said = r"samples of shape \(1, 8, 8\) as in the file, or \(8, 8, 1\); data .* has \(1, 9, 8\)"
    with pytest.raises(ConfigError, match=said):
        run("run", "net.onnx", "--data", "d.npz", "--part", "xc7z020clg400-1", "--sparsity", "0.5")
    assert not (folder / "runs").exists()


@pytest.mark.parametrize("command", ["inspect", "select", "sensitivity", "convert", "run", "fit"])
def test_what_cannot_come_in_is_refused_by_every_command(command, folder):
    (folder / "net.onnx").write_bytes((folder / "net.onnx").read_bytes().replace(b"MaxPool", b"Maxpool"))
    more = ["--data", "d.npz", "--part", "xc7z020clg400-1"] if command in ("run", "fit") else []
    more += ["--sparsity", "0.5"] if command == "run" else []
    with pytest.raises(ModelImportError, match=r"node '/features/features\.3/Maxpool' is a Maxpool"):
        run(command, "net.onnx", *more)


def test_a_run_depends_on_the_constants_in_other_files(folder):
    """PyTorch's newer exporter writes them beside the file; other ones are another network."""
    import onnx

    from fpgaprune.flow.run import digest_network

    onnx.save(onnx.load("net.onnx"), "apart.onnx", save_as_external_data=True, location="d.bin", size_threshold=0)
    path = folder / "apart.onnx"
    assert digest_network(folder / "net.onnx") != (before := digest_network(path))
    assert digest_network(path) == before
    data = bytearray((folder / "d.bin").read_bytes())
    data[5] ^= 1
    (folder / "d.bin").write_bytes(data)
    assert digest_network(path) != before
    (folder / "net.onnx").write_bytes(b"no ONNX")
    assert digest_network(folder / "net.onnx") is not None
