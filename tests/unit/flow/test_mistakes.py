"""All mistakes of a flow file are said at once, each in a line of its own."""

import io
import json
import subprocess
import sys
import zipfile

import h5py
import numpy as np
import pytest

from fpgaprune.errors import ConfigError
from fpgaprune.flow.engine import check_flow, parse_config, read_config


def test_every_value_that_is_not_allowed_has_its_line():
    document = {
        "sed": 1,
        "select": {"sparsity": 1.5, "granularity": "rows", "locks": ["conv2/kernel[a]"]},
        "hls": {"precision": "fixd<6,1>", "layers": {"c1": {"weight": "x"}, "c2": {"weight": "y"}}},
        "target": {"part": "xc7z021"},
        "verdict": {"max_loss": -1},
    }
    with pytest.raises(ConfigError) as error:
        parse_config(document, "mine.toml")
    first, *lines = str(error.value).splitlines()
    assert first == f"mine.toml: {len(lines)} mistakes:"
    wanted = ["select.sparsity is 1.5", "granularity 'rows'", "index 'a'", "'fixd<6,1>'", "part 'xc7z021'"]
    for words in (
        *wanted,
        "sed is not a known key",
        "hls.layers.c1",
        "hls.layers.c2",
        "verdict.max_loss: -1 is no loss",
    ):
        assert sum(words in line for line in lines) == 1, words
    assert len(lines) == 9


def test_one_mistake_is_one_line():
    with pytest.raises(ConfigError) as error:
        parse_config({"target": {"part": "xc7z021"}}, "mine.toml")
    assert "\n" not in str(error.value)
    assert "mistakes" not in str(error.value)


def test_mistakes_of_data_weights_and_functions_come_together(tmp_path):
    np.savez(tmp_path / "bad.npz", x_train=np.zeros((4, 8, 8, 1)), y_test=np.zeros(4))
    (tmp_path / "mine.toml").write_text(
        "[data]\nsource = 'bad.npz'\n[train]\nmodel = 'gone.keras'\nmetric = 'gone.py:f'\n[select]\nmasks = 'gone.npz'"
    )
    with pytest.raises(ConfigError) as error:
        check_flow(read_config(tmp_path / "mine.toml"))
    text = str(error.value)
    assert text.startswith("the flow: 4 mistakes:")
    for words in ("has no y_train, x_test;", "gone.keras does not exist", "train.metric '", "gone.npz"):
        assert words in text


def test_files_are_found_from_any_working_directory(tmp_path, monkeypatch):
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "mine.toml").write_text(
        "[data]\nsource = 'load.py:load'\n[train]\nmodel = 'm.keras'\nmetric = 'own.py:metric'\n"
        "[finetune]\nfit = 'own.py:fit'"
    )
    monkeypatch.chdir(tmp_path)
    config = read_config(tmp_path / "flows" / ".." / "flows" / "mine.toml")
    folder = (tmp_path / "flows").resolve()
    assert config.data.source == f"{folder / 'load.py'}:load"
    assert config.train.model == folder / "m.keras"
    assert config.train.metric == f"{folder / 'own.py'}:metric"
    assert config.finetune.fit == f"{folder / 'own.py'}:fit"


def test_a_run_stands_for_its_last_network(tmp_path):
    (tmp_path / "next.toml").write_text("[train]\nmodel = 'runs/first'")
    first = tmp_path / "runs" / "first"
    first.mkdir(parents=True)
    wrote = {"remove": {"removed.keras": "0"}, "quantise": {"quantised.keras": None}}
    wanted = {"removed.keras": wrote, "quantised.keras": {**wrote, "quantise": {"quantised.keras": "1"}}}
    for name, outputs in wanted.items():
        rest = {"key": "0", "inputs": {}, "results": {}, "seconds": 1}
        stages = {stage: {"outputs": files, **rest} for stage, files in outputs.items()}
        (first / "manifest.json").write_text(json.dumps({"format": 1, "stages": stages}))
        assert read_config(tmp_path / "next.toml").train.model == first / name
    (first / "manifest.json").write_text(json.dumps({"format": 1, "stages": {}}))
    with pytest.raises(ConfigError, match="runs/first has no finished network; let it run to its end first"):
        read_config(tmp_path / "next.toml")


def test_tensorflow_is_loaded_after_its_settings():
    """It reads its log level and its choice of kernels when it is loaded."""
    code = (
        "import sys\n"
        "from fpgaprune.flow import task\n"
        "from fpgaprune.flow.engine import parse_config\n"
        "def stop(seed):\n"
        "    print('tensorflow' in sys.modules or 'keras' in sys.modules)\n"
        "    raise SystemExit\n"
        "task.start_session = stop\n"
        "from fpgaprune.flow.engine import foresee_flow\n"
        "foresee_flow(parse_config({}, 'x'), None)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("kind", "module", "message"),
    [
        ("MultiHeadAttention", "keras.layers", "layer 'a' is a MultiHeadAttention, for which there is no hardware"),
        ("LayerNormalization", "keras.layers", "for which there is no hardware here; use BatchNormalization"),
        ("Dense", "keras.layers", None),
    ],
)
def test_a_layer_without_a_way_is_refused_before_tensorflow_is_loaded(tmp_path, kind, module, message):
    layers = [
        {"class_name": "InputLayer", "module": "keras.layers", "config": {"name": "x", "batch_shape": [None, 4]}},
        {"class_name": kind, "module": module, "config": {"name": "a", "units": 3}},
    ]
    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        file.create_group("layers")
    with zipfile.ZipFile(tmp_path / "m.keras", "w") as archive:
        archive.writestr("config.json", json.dumps({"config": {"layers": layers}}))
        archive.writestr("model.weights.h5", weights.getvalue())
    np.savez(tmp_path / "d.npz", **{key: np.zeros((4, 4)) for key in ("x_train", "x_test")})
    (tmp_path / "mine.toml").write_text("[data]\nsource = 'd.npz'\n[train]\nmodel = 'm.keras'")
    config = read_config(tmp_path / "mine.toml")
    if message is None:
        check_flow(config)
        return
    with pytest.raises(ConfigError, match=message):
        check_flow(config)
