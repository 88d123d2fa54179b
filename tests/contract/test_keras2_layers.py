"""Every layer of tf_keras that Keras 3 has, too, is read from a file of tf_keras and predicts the same."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fpgaprune.frontends import import_tfmot
from tests.quick import quick

MAKER = Path(__file__).parent / "make_keras2_layers.py"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keras2")
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    made = subprocess.run(
        [sys.executable, str(MAKER), str(folder)], env=environment, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr[-2000:]
    return folder


@pytest.mark.parametrize(
    "file", quick(["images.h5"], ["images.h5", "numbers.h5", "images.keras", "steps.keras", "steps.h5"])
)
def test_layers_of_tf_keras_predict_the_same(saved, file):
    found = import_tfmot(saved / file)
    name = Path(file).stem
    with np.load(saved / "x.npz") as x, np.load(saved / "y.npz") as y:
        # Two programs of float32 add up in other orders.
        assert np.abs(found.model([x[name]], training=False).numpy() - y[name]).max() <= 1e-6 * np.abs(y[name]).max()
