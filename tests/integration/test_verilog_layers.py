"""What our Verilog builds and hls4ml refuses, or would compute otherwise: its simulation gives the emulator's bits."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import fpgaprune as fp
from fpgaprune.errors import FpgaPruneError, HlsError
from fpgaprune.lowering import Precision, make_design

kl = keras.layers
OURS = fp.Target.of("xc7z020clg400-1", backend="Verilog")
STREAM = fp.Target.of("xc7z020clg400-1", io_type="io_stream")
WIDE = Precision(16, 16, 16)


def _gate(x):
    """Squeeze and excite: one factor for each channel."""
    factors = kl.Dense(3, activation="sigmoid", name="factors")(kl.GlobalAveragePooling2D(name="squeezed")(x))
    return kl.Multiply(name="odd")([x, kl.Reshape((1, 1, 3), name="spread")(factors)])


def _gate_in_turns(x):
    """The factors meet values that a depthwise convolution sends one by one."""
    return _gate(kl.DepthwiseConv2D(3, name="in_turns")(x))


KINDS = {
    "overlapping windows": lambda x: kl.MaxPooling2D(3, strides=2, name="odd")(x),
    "padded windows": lambda x: kl.MaxPooling2D(3, strides=2, padding="same", name="odd")(kl.ReLU(name="bent")(x)),
    "padded averages": lambda x: kl.AveragePooling2D(3, strides=2, padding="same", name="odd")(x),
    "windows of one row": lambda x: kl.Conv2D(2, (1, 3), strides=(2, 1), name="odd")(x),
    "a factor for each channel": _gate,
    "a factor for each channel, one by one": _gate_in_turns,
    "a softmax of a flattened image": lambda x: kl.Softmax(name="odd")(kl.Flatten(name="flat")(x)),
    "packets of another size": lambda x: kl.Conv1D(2, 2, name="next")(kl.Reshape((18, 5), name="odd")(x)),
}

FIRST = {"data_format": "channels_first"}


def _row(x):
    """(1, 5, 3): the largest of each column."""
    return kl.MaxPooling2D((6, 1), name="row")(x)


def _one_channel(x):
    return kl.Conv2D(1, 1, name="one")(x)


def _channels_first(x):
    found = kl.Conv2D(4, 3, padding="same", activation="relu", name="conv", **FIRST)(x)
    found = kl.BatchNormalization(axis=1, name="scaled")(found)
    return kl.GlobalAveragePooling2D(name="squeezed", **FIRST)(kl.MaxPooling2D(2, name="pool", **FIRST)(found))


# What stands between layers that move an axis, repeat positions or bend a line, in every project.
WRITTEN = {
    "an image and one channel": lambda x: kl.Multiply(name="odd")([x, _one_channel(x)]),
    "a row before an image": lambda x: kl.Subtract(name="odd")([_row(x), x]),
    "a row and one channel": lambda x: kl.Average(name="odd")([_row(x), _one_channel(x)]),
    "a vector before an image": lambda x: kl.Subtract(name="odd")([kl.GlobalMaxPooling2D(name="squeezed")(x), x]),
    "a number for a vector": lambda x: kl.Maximum(name="odd")(
        [kl.Dense(4, name="four")(kl.Flatten(name="flat")(x)), kl.Dense(1, name="one")(kl.Flatten(name="same")(x))]
    ),
    "a softmax over rows": lambda x: kl.Softmax(axis=1, name="odd")(x),
    "a softmax over an image": lambda x: kl.Softmax(axis=[1, 2], name="odd")(x),
    "a scale for each row": lambda x: kl.BatchNormalization(axis=1, name="odd")(x),
    "channels first": _channels_first,
    "a line with two bends": lambda x: kl.ReLU(0.5, negative_slope=0.25, threshold=0.125, name="odd")(x),
    "mish": lambda x: kl.Activation("mish", name="odd")(x),
    "a product along the last axis": lambda x: kl.EinsumDense("abcd,de->abce", (None, None, 4), name="odd")(x),
    "a product of two vectors": lambda x: kl.Dot(axes=1, name="odd")(
        [kl.GlobalMaxPooling2D(name="most")(x), kl.GlobalAveragePooling2D(name="mean")(x)]
    ),
}

QUICK = ("padded windows", "a factor for each channel", "a row and one channel", "a softmax over rows")


def _network(kind: str) -> tuple[keras.Model, np.ndarray]:
    keras.utils.set_random_seed(4)
    image = keras.Input((6, 5, 3), name="images")
    model = keras.Model(image, (KINDS | WRITTEN)[kind](image))
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
    "kind", [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in (*KINDS, *WRITTEN)]
)
def test_its_verilog_gives_the_bits_of_the_emulator_which_are_near_to_keras(kind, tmp_path):
    model, x = _network(kind)
    design = make_design(model, OURS, x, WIDE)
    assert (design.backend, design.io_type) == ("Verilog", "io_parallel")
    emulated = fp.emulate(design, x)
    try:
        wanted = model.predict(x, verbose=0)
    except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError) as error:
        pytest.skip(f"TensorFlow cannot compute it on this processor: {str(error).splitlines()[-2]}")
    assert np.abs(emulated.reshape(wanted.shape) - wanted).max() <= 0.01 * max(np.abs(wanted).max(), 0.1)
    simulated = fp.to_verilog(design, tmp_path / "rtl").simulate(x[:6], stalls=0.2, seed=1)
    assert np.array_equal(simulated.outputs[0].ravel(), emulated[:6].ravel())


def test_a_design_for_our_verilog_is_no_project_of_hls4ml(tmp_path):
    model, x = _network("overlapping windows")
    design = make_design(model, OURS, x)
    with pytest.raises(HlsError, match=r"backend 'Verilog', which hls4ml does not have.*to_verilog"):
        fp.to_hls(design, OURS, tmp_path / "hls")
    assert list(tmp_path.iterdir()) == []


def test_parts_whose_tools_build_no_hls_have_our_verilog():
    assert fp.Target.of("tang-nano-9k").backend == "Verilog"
    assert fp.Target.of("pynq-z2").backend == "Vitis"
