"""Each kind of layer on the second route: the same design, or refused by name."""

import re
import warnings
from importlib.util import find_spec

import keras
import numpy as np
import pytest
from keras import layers as kl

import fpgaprune as fp
from fpgaprune.errors import HlsError, UnsupportedLayerError
from fpgaprune.export.onnx_file import run_onnx
from fpgaprune.weights import named_weights

pytestmark = pytest.mark.skipif(
    find_spec("qonnx") is None, reason="qonnx, which cleans ONNX files for hls4ml, is not installed"
)
BOTH = ("io_parallel", "io_stream")


def randomise(model):
    rng = np.random.default_rng(5)
    for path, variable in named_weights(model).items():
        values = rng.normal(size=variable.shape) * 0.4
        variable.assign(np.abs(values) + 0.5 if path.endswith(("variance", "gamma")) else values)
    return model


def image(*layers, shape=(6, 6, 2)):
    """`layers` after a convolution of one point, so that tf2onnx has the channels first."""
    front = kl.Conv2D(3, 1, name="front") if len(shape) == 3 else kl.Conv1D(3, 1, name="front")
    return randomise(keras.Sequential([keras.Input(shape, name="images"), front, *layers], name="network"))


def series(*layers):
    return image(*layers, shape=(8, 2))


def activations():
    names = ("elu", "tanh", "sigmoid", "softsign", "softplus", "selu", "softmax")
    return randomise(
        keras.Sequential(
            [keras.Input((5,)), *(kl.Dense(4, activation=name, name=name) for name in names)], name="network"
        )
    )


def merged(merge):
    source = keras.Input((6, 6, 2), name="images")
    # Alike in shape, so that only their weights tell them apart; and read in an order that is not that of the layers.
    left, right = (kl.Conv2D(3, 3, padding="same", activation="relu", name=name)(source) for name in ("left", "right"))
    out = kl.MaxPooling2D(name="pool")(merge([right, left]))
    return randomise(keras.Model(source, kl.Conv2D(2, 2, name="last")(out), name="network"))


def two_inputs():
    left, right = keras.Input((5,), name="left"), keras.Input((5,), name="right")
    out = kl.Concatenate(name="both")([kl.Dense(4, activation="relu", name="a")(left), kl.Dense(4, name="b")(right)])
    return randomise(keras.Model([left, right], kl.Dense(3, name="head")(out), name="network"))


SAME = {
    "every activation": activations,
    "leaky_relu": lambda: image(kl.LeakyReLU(0.3, name="leaky"), kl.Conv2D(2, 3, name="last")),
    "elu": lambda: image(kl.ELU(name="elu"), kl.Conv2D(2, 3, name="last")),
    "strided": lambda: image(kl.Conv2D(2, 3, strides=2, padding="same", name="last")),
    "depthwise, strided": lambda: image(kl.DepthwiseConv2D(3, strides=2, padding="same", name="last")),
    "depthwise 1-D": lambda: series(kl.DepthwiseConv1D(3, padding="same", name="last")),
    "average": lambda: image(
        kl.AveragePooling2D(2, name="pool"), kl.ReLU(name="relu"), kl.Flatten(name="flat"), kl.Dense(3)
    ),
    "average 1-D": lambda: series(kl.AveragePooling1D(2, name="pool")),
    "average over the whole map": lambda: image(
        kl.Conv2D(2, 3, strides=2, padding="same", name="conv"),
        kl.AveragePooling2D(9, padding="same", strides=9, name="pool"),
        kl.Flatten(name="flat"),
        kl.Dense(3, name="head"),
    ),
    "global average": lambda: image(kl.GlobalAveragePooling2D(name="pool"), kl.Dense(3, name="head")),
    "global average 1-D": lambda: series(kl.GlobalAveragePooling1D(name="pool"), kl.Dense(3, name="head")),
    "global average at the end": lambda: image(kl.GlobalAveragePooling2D(name="pool")),
    "padded": lambda: image(kl.ZeroPadding2D(((1, 2), (0, 1)), name="pad"), kl.ReLU(name="relu")),
    "padded 1-D": lambda: series(kl.ZeroPadding1D((2, 1), name="pad")),
    "permuted": lambda: image(kl.Permute((2, 1, 3), name="turn"), kl.Conv2D(2, 3, name="last")),
    "reshaped": lambda: image(kl.Reshape((4, 27), name="shape"), kl.Conv1D(2, 3, name="last")),
    "reshaped at the end": lambda: image(kl.Reshape((4, 27), name="shape")),
    "flat at the end": lambda: image(kl.Flatten(name="flat")),
    "one point before Dense": lambda: image(
        kl.Conv2D(4, 6, activation="relu", name="all"), kl.Flatten(name="flat"), kl.Dense(3, name="head")
    ),
    "no bias": lambda: image(
        kl.Conv2D(2, 3, use_bias=False, name="a"), kl.Flatten(name="f"), kl.Dense(3, use_bias=False)
    ),
    "BatchNorm": lambda: image(kl.BatchNormalization(name="norm"), kl.ReLU(name="relu"), kl.Conv2D(2, 3, name="last")),
    "Add": lambda: merged(kl.Add(name="merge")),
    "Subtract": lambda: merged(kl.Subtract(name="merge")),
    "Multiply": lambda: merged(kl.Multiply(name="merge")),
    "Maximum": lambda: merged(kl.Maximum(name="merge")),
    "Minimum": lambda: merged(kl.Minimum(name="merge")),
    "Concatenate": lambda: merged(kl.Concatenate(name="merge")),
    "two inputs": two_inputs,
}
REFUSED = {
    "upsampling": (
        lambda: image(kl.UpSampling2D(2, name="up")),
        BOTH,
        "is a Unsqueeze, which hls4ml does not read from ONNX",
    ),
    "cropping": (
        lambda: image(kl.Cropping2D(1, name="crop")),
        BOTH,
        "is a Slice, which hls4ml does not read from ONNX",
    ),
    "PReLU": (lambda: image(kl.PReLU(name="prelu")), BOTH, "is a Neg, which hls4ml does not read from ONNX"),
    "relu6": (lambda: image(kl.ReLU(6.0, name="six")), BOTH, "is a Clip, which hls4ml does not read from ONNX"),
    "average of two": (lambda: merged(kl.Average(name="merge")), BOTH, "is a Mul with a constant, such as a BatchNorm"),
    "BatchNorm first": (
        lambda: randomise(keras.Sequential([keras.Input((6, 6, 2)), kl.BatchNormalization(), kl.Conv2D(2, 3)])),
        BOTH,
        "is a Mul with a constant, such as a BatchNorm that is not folded; this route has no types for it",
    ),
    "Dense on two axes": (
        lambda: series(kl.Dense(3, name="head")),
        BOTH,
        "is a MatMul on several axes, for which hls4ml makes a bias of a wrong shape",
    ),
    "softmax of an image": (
        lambda: image(kl.Softmax(name="softmax")),
        BOTH,
        "is a Softmax on several axes, which hls4ml computes over all axes",
    ),
    "uneven pooling": (
        lambda: image(kl.MaxPooling2D(3, strides=2, padding="same", name="pool")),
        ("io_parallel",),
        "qonnx cannot clean network.onnx: Uneven padding not supported",
    ),
    "causal": (
        lambda: series(kl.Conv1D(3, 3, padding="causal", name="last")),
        ("io_parallel",),
        "has a ZeroPadding1D that reads front and gives (10, 3); the design has no such layer",
    ),
    "padding before a convolution": (
        lambda: image(kl.ZeroPadding2D(((1, 2), (0, 1)), name="pad"), kl.Conv2D(2, 3, name="last")),
        ("io_parallel",),
        "has a Conv2D that reads front and gives (7, 5, 2); the design has no such layer",
    ),
}


def both_ways(model, io_type, folder):
    rng = np.random.default_rng(3)
    x = [rng.normal(size=(16, *tensor.shape[1:])).astype("float32") for tensor in model.inputs]
    target = fp.Target.of("xc7z020clg400-1", io_type=io_type)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.StrategyWarning)
        design = fp.make_design(model, target, x if len(x) > 1 else x[0])
    path = fp.export_onnx(model, folder / "network.onnx")
    wanted = model.predict(x if len(x) > 1 else x[0], verbose=0)
    assert np.abs(run_onnx(path, x) - wanted).max() <= 1e-5 * np.abs(wanted).max()
    return fp.second_opinion(path, design)


# Quick ones: those on which the two front ends, or qonnx, differ most.
QUICK = {
    *(("every activation", "io_parallel"), ("average", "io_parallel"), ("global average 1-D", "io_stream")),
    *(("Concatenate", "io_stream"), ("reshaped", "io_stream")),
}
CASES = [(kind, io_type) for kind in SAME for io_type in BOTH]


@pytest.mark.parametrize(
    ("kind", "io_type"), [c if c in QUICK else pytest.param(*c, marks=pytest.mark.slow) for c in CASES]
)
def test_a_layer_is_the_same_on_both_routes(kind, io_type, tmp_path):
    opinion = both_ways(SAME[kind](), io_type, tmp_path).require()
    assert opinion.samples == 32


@pytest.mark.parametrize(
    "kind",
    [k if k in ("upsampling", "Dense on two axes") else pytest.param(k, marks=pytest.mark.slow) for k in REFUSED],
)
def test_a_layer_that_does_not_go_this_way_is_refused_by_name(kind, tmp_path):
    build, io_types, message = REFUSED[kind]
    for io_type in io_types:
        with pytest.raises((UnsupportedLayerError, HlsError), match=re.escape(message)) as error:
            both_ways(build(), io_type, tmp_path)
        assert "\n" not in str(error.value)
