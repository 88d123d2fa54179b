"""A file of the wrong kind is one line that names the right command."""

import pytest
from typer.testing import CliRunner

from fpgaprune.cli import app
from fpgaprune.errors import ConfigError, ModelImportError
from fpgaprune.flow.file import kind_of


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named = ("flow.toml", "net.keras", "net.h5", "net.onnx", "x.npz", "design.json", "text", "notes.txt")
    for name in (*named, "net.pth", "net.pt", "net.tflite", "graph.pb", "net.weights.h5", "samples.pkl"):
        (tmp_path / name).write_bytes(b"")
    for folder, inside in (
        ("run", "manifest.json"),
        ("search/best", "manifest.json"),
        ("saved", "saved_model.pb"),
        ("project", "firmware"),
        ("other", "x"),
    ):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / inside).write_bytes(b"")
    return tmp_path


def test_kinds(files):
    assert {path.name: kind_of(path) for path in files.iterdir()} == {
        "flow.toml": "flow",
        "net.keras": "model",
        "net.h5": "model",
        "net.onnx": "model",
        "x.npz": "arrays",
        "design.json": "design",
        "text": None,
        "net.pth": "torch",
        "net.pt": "torch",
        "net.tflite": "graph",
        "graph.pb": "graph",
        "net.weights.h5": "weights",
        "samples.pkl": "pickle",
        "notes.txt": None,
        "run": "run",
        "search": "search",
        "saved": "model",
        "project": "project",
        "other": None,
    }


# Command and file; what it is, and a command that takes it.
WRONG = [
    (["run", "net.keras"], "--data, --part, --sparsity are missing", "'fpgaprune run net.keras --data DATA.npz"),
    (["run", "net.onnx"], "net.onnx is not a sound ONNX file", "export it again"),
    (["run", "x.npz"], "is an .npz of arrays", "--data"),
    (["run", "net.pth"], "is a program of PyTorch", "torch.onnx.export(module, "),
    (["run", "net.pt"], "is a program of PyTorch", "torch.onnx.export(module, "),
    (["run", "net.tflite"], "is a graph of TensorFlow", "name the Keras model"),
    (["run", "graph.pb"], "is a graph of TensorFlow", "name the Keras model"),
    (["run", "design.json"], "is a JSON file", "if it is a Keras architecture"),
    (["run", "net.weights.h5"], "is a file of weights without their network", "model.save('net.keras')"),
    (["run", "samples.pkl"], "is a pickle", "model.save('net.keras')"),
    (["run", "notes.txt"], "ends in '.txt'", "wanted a flow file (.toml) or a network (.keras, .h5, .onnx)"),
    (["run", "text"], "has no ending", "wanted a flow file (.toml) or a network (.keras, .h5, .onnx)"),
    (["run", "other"], "is a folder", "wanted a flow file (.toml) or a network (.keras, .h5, .onnx)"),
    (["run", "flow.toml"], "holds no key", "'fpgaprune config'"),
    (["fit", "net.pth"], "is a program of PyTorch", "torch.onnx.export(module, "),
    (["fit", "text"], "has no ending", "wanted a flow file (.toml) or a network (.keras, .h5, .onnx)"),
    (["inspect", "net.pt"], "is a program of PyTorch", "torch.onnx.export(module, "),
    (["inspect", "other"], "is a folder", "wanted a network"),
    (["select", "notes.txt"], "ends in '.txt'", "wanted a network (.keras, .h5, .onnx)"),
    (["estimate", "net.tflite"], "is a graph of TensorFlow", "name the Keras model"),
    (["verify", "notes.txt"], "ends in '.txt'", "wanted a run folder"),
    (["run", "run"], "is a run folder", "'fpgaprune run FLOW.toml --out run' goes on with it"),
    (["inspect", "flow.toml"], "is a flow file", "'fpgaprune run flow.toml'"),
    (["inspect", "net.onnx"], "net.onnx is not a sound ONNX file", "export it again"),
    (["select", "flow.toml"], "is a flow file", "'fpgaprune run flow.toml'"),
    (["select", "x.npz"], "is an .npz of arrays", "--data"),
    (["select", "run"], "is a run folder", "'fpgaprune verify run'"),
    (["measure", "net.onnx"], "is a network", "'fpgaprune run net.onnx --data DATA.npz"),
    (["convert", "flow.toml"], "is a flow file", "'fpgaprune run flow.toml'"),
    (["measure", "net.keras"], "is a network", "'fpgaprune run net.keras --data DATA.npz"),
    (["measure", "flow.toml"], "is a flow file", "'fpgaprune run flow.toml'"),
    (["verify", "project"], "is an hls4ml project", "'fpgaprune estimate project'"),
    (["estimate", "net.keras"], "is a network", "'fpgaprune run net.keras --data DATA.npz"),
    *(
        ([command, "search", *options], "is a folder of 'fpgaprune fit'", "that of its best network is search/best")
        for command, *options in (
            *(["verify"], ["export", "--for", "pynq-z2"], ["load"], ["measure"], ["estimate"], ["apply", "1"]),
            *(["config"], ["compare", "run"]),
        )
    ),
    (["estimate", "flow.toml"], "is a flow file", "'fpgaprune run flow.toml'"),
]


@pytest.mark.parametrize(
    ("arguments", "what", "advice"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_the_wrong_kind_names_the_right_command(files, arguments, what, advice):
    before = sorted(files.rglob("*"))
    with pytest.raises((ConfigError, ModelImportError)) as caught:
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    text = str(caught.value)
    assert what in text
    assert advice in text
    assert "\n" not in text
    assert sorted(files.rglob("*")) == before
