"""Scales, shifts and slopes stand in the files of a project as numbers of their types."""

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.certify import count_firmware, firmware_folder, read_layer_integers
from fpgaprune.errors import CertificateError
from fpgaprune.files import read_weight_arrays
from fpgaprune.target import Target

layers = keras.layers


def network():
    """A network with constants that no type holds exactly: 1 / 127.5, a BatchNorm that no layer takes in, slopes."""
    keras.utils.set_random_seed(4)
    x = given = keras.Input((4, 4, 2))
    x = layers.Rescaling(1 / 127.5, offset=-0.9, name="scaled")(x)
    x = layers.BatchNormalization(name="norm")(layers.MaxPooling2D(2, name="pool")(x))
    model = keras.Model(given, layers.Dense(3, name="fc")(layers.Flatten()(layers.PReLU(name="slopes")(x))))
    draw = np.random.default_rng(2).uniform
    for variable in (*model.get_layer("norm").weights, *model.get_layer("slopes").weights):
        variable.assign(draw(0.1, 0.9, variable.shape))
    return model


@pytest.mark.parametrize("io_type", ["io_parallel", "io_stream"])
def test_a_changed_scale_of_a_oneapi_project_is_noticed(tmp_path, io_type):
    x = np.random.default_rng(1).integers(0, 256, (40, 4, 4, 2)).astype(np.float32)
    target = Target.of("xc7z020clg400-1", backend="oneAPI", strategy="resource", io_type=io_type)
    project = fp.to_hls(network(), target, x, tmp_path)
    scales = [array for array in read_weight_arrays(firmware_folder(tmp_path)) if array.name.startswith("s")]
    for array in scales:
        text = array.file.read_text()
        first = text[text.index("{{") + 2 : text.index(",", text.index("{{"))]
        array.file.write_text(text.replace("{{" + first, "{{" + str(float(first) / 2), 1))
        with pytest.raises(CertificateError, match=r"different integers for scale of|is no number of"):
            read_layer_integers(tmp_path, project.design)
        array.file.write_text(text)
    assert len(scales) == 2


@pytest.mark.parametrize(
    ("backend", "strategy", "io_type"),
    [
        ("Vitis", "latency", "io_parallel"),
        ("Catapult", "resource", "io_parallel"),
        ("oneAPI", "resource", "io_parallel"),
        ("oneAPI", "resource", "io_stream"),
    ],
)
def test_the_files_hold_the_integers_of_the_design(tmp_path, backend, strategy, io_type):
    x = np.random.default_rng(1).integers(0, 256, (40, 4, 4, 2)).astype(np.float32)
    target = Target.of("xc7z020clg400-1", backend=backend, strategy=strategy, io_type=io_type)
    project = fp.to_hls(network(), target, x, tmp_path)
    found = read_layer_integers(tmp_path, project.design)
    assert {("scaled", "scale"), ("scaled", "bias"), ("norm", "scale"), ("norm", "bias")} <= found.keys()
    for (layer, role), integers in found.items():
        assert np.array_equal(integers.ravel(), project.design[layer].weights[role].ravel())
    assert [counts.layer for counts in count_firmware(tmp_path, project.design)] == ["fc"]
    slopes = project.design["slopes"]
    (written,) = (array for array in read_weight_arrays(firmware_folder(tmp_path)) if array.name.startswith("a"))
    assert np.array_equal(slopes.types["param"].to_float(slopes.weights["param"]).ravel(), written.values)
