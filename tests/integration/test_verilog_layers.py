"""Layers that hls4ml refuses in io_stream become Verilog, whose simulation gives the emulator's bits."""

from __future__ import annotations

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import FpgaPruneError, HlsError, UnsupportedLayerError
from fpgaprune.lowering import Precision, make_design

kl = keras.layers
OURS = fp.Target.of("xc7z020clg400-1", backend="Verilog")
STREAM = fp.Target.of("xc7z020clg400-1", io_type="io_stream")
WIDE = Precision(16, 16, 16)


def _gate(x):
    """Squeeze and excite: one factor for each channel."""
    factors = kl.Dense(3, activation="sigmoid", name="factors")(kl.GlobalAveragePooling2D(name="squeezed")(x))
    return kl.Multiply(name="odd")([x, kl.Reshape((1, 1, 3), name="spread")(factors)])


KINDS = {
    "overlapping windows": lambda x: kl.MaxPooling2D(3, strides=2, name="odd")(x),
    "padded windows": lambda x: kl.MaxPooling2D(3, strides=2, padding="same", name="odd")(kl.ReLU(name="bent")(x)),
    "padded averages": lambda x: kl.AveragePooling2D(3, strides=2, padding="same", name="odd")(x),
    "windows of one row": lambda x: kl.Conv2D(2, (1, 3), strides=(2, 1), name="odd")(x),
    "a factor for each channel": _gate,
    "a softmax of a flattened image": lambda x: kl.Softmax(name="odd")(kl.Flatten(name="flat")(x)),
    "packets of another size": lambda x: kl.Conv1D(2, 2, name="next")(kl.Reshape((18, 5), name="odd")(x)),
}

QUICK = ("padded windows", "a factor for each channel", "a softmax of a flattened image")


def _network(kind: str) -> tuple[keras.Model, np.ndarray]:
    keras.utils.set_random_seed(4)
    image = keras.Input((6, 5, 3), name="images")
    model = keras.Model(image, KINDS[kind](image))
    return model, np.random.default_rng(4).uniform(-1, 1, (24, 6, 5, 3)).astype("float32")


@pytest.mark.parametrize("kind", KINDS)
def test_hls4ml_refuses_it_and_says_that_our_verilog_takes_it(kind):
    model, x = _network(kind)
    with pytest.raises(FpgaPruneError, match="odd") as error:
        make_design(model, STREAM, x, WIDE)
    assert "\n" not in str(error.value)
    if kind != "packets of another size":
        assert "our Verilog (target.route 'verilog'" in str(error.value)


@pytest.mark.parametrize(
    "kind", [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]
)
def test_its_verilog_gives_the_bits_of_the_emulator_which_are_near_to_keras(kind, tmp_path):
    model, x = _network(kind)
    design = make_design(model, OURS, x, WIDE)
    assert (design.backend, design.io_type) == ("Verilog", "io_parallel")
    emulated = fp.emulate(design, x)
    wanted = model.predict(x, verbose=0)
    assert np.abs(emulated.reshape(wanted.shape) - wanted).max() <= 0.01 * max(np.abs(wanted).max(), 0.1)
    simulated = fp.to_verilog(design, tmp_path / "rtl").simulate(x[:6], stalls=0.2, seed=1)
    assert np.array_equal(simulated.outputs[0].ravel(), emulated[:6].ravel())


def test_what_our_verilog_lacks_is_refused_by_name_before_anything_is_made():
    steps = keras.Input((4, 3), name="steps")
    recurrent = keras.Model(steps, kl.GRU(2, name="gru")(steps))
    x = np.zeros((8, 4, 3), np.float32)
    with pytest.raises(
        UnsupportedLayerError, match=r"layer 'gru' \(GRU\): our Verilog has no recurrent layers yet.*hls"
    ):
        make_design(recurrent, OURS, x)
    row = keras.Input((1,), name="row")
    spread = keras.Model([steps, row], kl.Add(name="sum")([kl.Flatten(name="flat")(steps), row]))
    with pytest.raises(UnsupportedLayerError, match=r"layer 'sum'.*one value for each channel"):
        make_design(spread, OURS, [x, np.zeros((8, 1), np.float32)])


def test_a_design_for_our_verilog_is_no_project_of_hls4ml(tmp_path):
    model, x = _network("overlapping windows")
    design = make_design(model, OURS, x)
    with pytest.raises(HlsError, match=r"backend 'Verilog', which hls4ml does not have.*to_verilog"):
        fp.to_hls(design, OURS, tmp_path / "hls")
    assert list(tmp_path.iterdir()) == []


def test_parts_whose_tools_build_no_hls_have_our_verilog():
    assert fp.Target.of("tang-nano-9k").backend == "Verilog"
    assert fp.Target.of("pynq-z2").backend == "Vitis"
