"""A project of hls4ml is made of a saved design where neither Keras nor TensorFlow can be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import fpgaprune as fp

pytest.importorskip("hls4ml")

# Any import of Keras or TensorFlow ends the program.
_RENDER = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("keras", "tensorflow", "tf_keras"):
            raise ImportError(f"{name} was imported")

sys.meta_path.insert(0, Missing())

import numpy as np
import fpgaprune as fp

saved, samples, folder, io_type = sys.argv[1:]
target = fp.Target.of("xc7z020clg400-1", io_type=io_type)
fp.to_hls(fp.Design.load(saved), target, folder, golden=np.load(samples))
"""


def _network() -> keras.Model:
    """A network whose project has copies of streams, zeros before windows, a reshaping, a table and a softmax."""
    keras.utils.set_random_seed(5)
    image = keras.Input((6, 6, 2), name="images")
    path = keras.layers.Conv2D(3, 3, padding="same", name="first")(image)
    path = keras.layers.BatchNormalization(name="norm")(keras.layers.Activation("tanh", name="bent")(path))
    path = keras.layers.Add(name="sum")([path, keras.layers.Conv2D(3, 1, name="side")(image)])
    path = keras.layers.Flatten(name="flat")(keras.layers.MaxPooling2D(name="pool")(path))
    return keras.Model(image, keras.layers.Dense(4, activation="softmax", name="head")(path))


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("io_type", ["io_stream", "io_parallel"])
def test_a_saved_design_gives_the_project_that_the_model_gave(tmp_path: Path, io_type: str) -> None:
    x = np.random.default_rng(1).uniform(-1, 1, (40, 6, 6, 2)).astype("float32")
    target = fp.Target.of("xc7z020clg400-1", io_type=io_type)
    project = fp.to_hls(_network(), target, x, tmp_path / "of_model")
    saved = project.design.save(tmp_path / "design.json")
    np.save(tmp_path / "x.npy", x[:32])
    done = subprocess.run(
        [sys.executable, "-c", _RENDER, str(saved), str(tmp_path / "x.npy"), str(tmp_path / "of_design"), io_type],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert _files(tmp_path / "of_design") == _files(tmp_path / "of_model")
