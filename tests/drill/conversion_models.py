"""The models of the conversion drill: each kind of layer that hls4ml or Keras has, in the forms that networks use.

Like the models of hls4ml's own tests: one layer, or few, behind an input. Names say what is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import layers as kl

Build = Callable[[], Any]
MODELS: dict[str, Build] = {}


def _chain(name: str, shape: tuple[int, ...], *layers: Callable[[], Any]) -> None:
    """Model `name` applies `layers`, each made anew, to an input of `shape`."""

    def build() -> Any:
        x = entry = keras.Input(shape, name="samples")
        for place, make in enumerate(layers):
            layer = make()
            layer.name = f"layer{place}"
            x = layer(x)
        return keras.Model(entry, x, name="drilled")

    MODELS[name] = build


def _joined(name: str, shapes: list[tuple[int, ...]], join: Callable[..., Any]) -> None:
    """Model `name` joins one input of each of `shapes`."""

    def build() -> Any:
        entries = [keras.Input(shape, name=f"part{place}") for place, shape in enumerate(shapes)]
        return keras.Model(entries, join(*entries), name="drilled")

    MODELS[name] = build


IMAGE, SERIES, FLAT = (6, 5, 3), (9, 3), (7,)


def _products() -> None:
    for activation in (None, "relu", "tanh", "sigmoid", "softmax"):
        _chain(f"dense_{activation}", FLAT, lambda a=activation: kl.Dense(5, activation=a))
    _chain("dense_nobias", FLAT, lambda: kl.Dense(5, use_bias=False))
    _chain("dense_one", FLAT, lambda: kl.Dense(1))
    _chain("dense_map", (4, 3), lambda: kl.Dense(5))
    _chain("dense_image", (3, 4, 3), lambda: kl.Dense(5, activation="relu"))
    _chain("dense_deep", FLAT, lambda: kl.Dense(6, "relu"), lambda: kl.Dense(4, "relu"), lambda: kl.Dense(3))
    for padding in ("valid", "same", "causal"):
        for size, stride in ((1, 1), (2, 1), (3, 1), (3, 2), (4, 3), (5, 1)):
            name = f"conv1d_{padding}_{size}_{stride}"
            _chain(name, SERIES, lambda p=padding, k=size, s=stride: kl.Conv1D(4, k, strides=s, padding=p))
    sizes = (
        ((1, 1), 1, 1), ((1, 1), 2, 2), ((3, 3), 1, 1), ((3, 3), 2, 2), ((2, 2), 1, 1), ((3, 2), 1, 2),
        ((1, 3), 1, 1), ((3, 1), 1, 1), ((1, 3), 2, 1), ((4, 4), 3, 3), ((5, 5), 1, 1), ((2, 3), 2, 1),
    )  # fmt: skip
    for padding in ("valid", "same"):
        for size, high, wide in sizes:
            name = f"conv2d_{padding}_{size[0]}x{size[1]}_{high}x{wide}"
            _chain(name, IMAGE, lambda p=padding, k=size, s=(high, wide): kl.Conv2D(4, k, strides=s, padding=p))
        for size, stride in ((3, 1), (3, 2), (2, 1)):
            names = f"{padding}_{size}_{stride}"
            options = {"strides": stride, "padding": padding}
            _chain(f"depthwise2d_{names}", IMAGE, lambda k=size, o=options: kl.DepthwiseConv2D(k, **o))
            _chain(f"depthwise1d_{names}", SERIES, lambda k=size, o=options: kl.DepthwiseConv1D(k, **o))
            _chain(f"separable2d_{names}", IMAGE, lambda k=size, o=options: kl.SeparableConv2D(4, k, **o))
            _chain(f"separable1d_{names}", SERIES, lambda k=size, o=options: kl.SeparableConv1D(4, k, **o))
    _chain("depthwise1d_causal", SERIES, lambda: kl.DepthwiseConv1D(3, padding="same"), lambda: kl.Conv1D(2, 1))
    _chain("conv2d_nobias", IMAGE, lambda: kl.Conv2D(4, 3, use_bias=False))
    _chain("conv2d_relu_pool", IMAGE, lambda: kl.Conv2D(4, 3, activation="relu"), lambda: kl.MaxPooling2D(2))
    _chain("conv2d_head", IMAGE, lambda: kl.Conv2D(4, 3), kl.ReLU, kl.Flatten, lambda: kl.Dense(3, "softmax"))
    _chain("conv2d_norm", IMAGE, lambda: kl.Conv2D(4, 3), kl.BatchNormalization, kl.ReLU)
    _chain("conv2d_one_softmax", IMAGE, lambda: kl.Conv2D(4, 1, activation="softmax"))
    _chain("conv2d_softmax", IMAGE, lambda: kl.Conv2D(4, 3, activation="softmax"))
    _chain("conv1d_softmax", SERIES, lambda: kl.Conv1D(4, 3, activation="softmax"))
    _chain("conv2d_relu6", IMAGE, lambda: kl.Conv2D(4, 3, activation="relu6"))
    _chain("dilated2d", IMAGE, lambda: kl.Conv2D(4, 2, dilation_rate=2))
    _chain("dilated1d", SERIES, lambda: kl.Conv1D(4, 2, dilation_rate=2))
    _chain("dilated_depthwise", IMAGE, lambda: kl.DepthwiseConv2D(2, dilation_rate=2))
    _chain("groups2d", (6, 5, 4), lambda: kl.Conv2D(4, 3, groups=2))
    _chain("groups1d", (9, 4), lambda: kl.Conv1D(4, 3, groups=2))
    _chain("multiplied", IMAGE, lambda: kl.DepthwiseConv2D(3, depth_multiplier=2))
    _chain("channels_first", (3, 6, 5), lambda: kl.Conv2D(4, 3, data_format="channels_first"))
    _chain("channels_first_1d", (3, 9), lambda: kl.Conv1D(4, 3, data_format="channels_first"))
    _chain("transposed", IMAGE, lambda: kl.Conv2DTranspose(4, 3))
    _chain("transposed_same", IMAGE, lambda: kl.Conv2DTranspose(4, 3, strides=2, padding="same", activation="relu"))
    _chain("transposed_whole", IMAGE, lambda: kl.Conv2DTranspose(2, 2, strides=2), kl.BatchNormalization, kl.ReLU)
    _chain("transposed_gaps", IMAGE, lambda: kl.Conv2DTranspose(2, 2, strides=(3, 1)))
    _chain("transposed1d", SERIES, lambda: kl.Conv1DTranspose(3, 4, strides=2, padding="same"))
    _chain("transposed_dilated", IMAGE, lambda: kl.Conv2DTranspose(2, 2, dilation_rate=2))
    _chain("conv3d", (4, 4, 4, 2), lambda: kl.Conv3D(2, 2))


def _pooling() -> None:
    for kind in ("Max", "Average"):
        one, two = getattr(kl, f"{kind}Pooling1D"), getattr(kl, f"{kind}Pooling2D")
        whole1, whole2 = getattr(kl, f"Global{kind}Pooling1D"), getattr(kl, f"Global{kind}Pooling2D")
        for padding in ("valid", "same"):
            for size, stride in ((2, None), (3, 1), (3, 2), (2, 3)):
                name, options = f"{padding}_{size}_{stride}", {"strides": stride, "padding": padding}
                _chain(f"{kind}_1d_{name}", SERIES, lambda f=one, k=size, o=options: f(k, **o))
                _chain(f"{kind}_2d_{name}", IMAGE, lambda f=two, k=size, o=options: f(k, **o))
            wide = {"strides": (2, 1), "padding": padding}
            _chain(f"{kind}_2d_{padding}_3x2", IMAGE, lambda f=two, o=wide: f((3, 2), **o))
        _chain(f"{kind}_2d_all", IMAGE, lambda f=two: f((6, 5)))
        _chain(f"{kind}_1d_all", SERIES, lambda f=one: f(9))
        _chain(f"{kind}_relu_same", IMAGE, kl.ReLU, lambda f=two: f(3, strides=2, padding="same"))
        _chain(f"{kind}_first", IMAGE, lambda f=two: f(2, data_format="channels_first"))
        for keep in (False, True):
            _chain(f"global_{kind}_1d_{keep}", SERIES, lambda f=whole1, k=keep: f(keepdims=k))
            _chain(f"global_{kind}_2d_{keep}", IMAGE, lambda f=whole2, k=keep: f(keepdims=k))
        _chain(f"global_{kind}_2d_dense", IMAGE, lambda f=whole2: f(), lambda: kl.Dense(3))
        _chain(f"global_{kind}_2d_kept_conv", IMAGE, lambda f=whole2: f(keepdims=True), lambda: kl.Conv2D(2, 1))


def _activations() -> None:
    shapes = (("flat", FLAT), ("series", SERIES), ("image", IMAGE))
    names = (
        *("linear", "relu", "relu6", "leaky_relu", "elu", "selu", "sigmoid", "tanh", "softplus", "softsign", "softmax"),
        *("hard_sigmoid", "hard_tanh", "exponential", "gelu", "silu", "mish", "log_softmax", "celu", "hard_silu"),
    )
    for where, shape in shapes:
        for name in names:
            _chain(f"act_{name}_{where}", shape, lambda a=name: kl.Activation(a))
        layers: dict[str, Build] = {
            "relu": kl.ReLU, "relu6": lambda: kl.ReLU(6.0), "relu1": lambda: kl.ReLU(1.0),
            "relu_slope": lambda: kl.ReLU(negative_slope=0.25), "relu_threshold": lambda: kl.ReLU(threshold=0.5),
            "relu_both": lambda: kl.ReLU(negative_slope=0.25, threshold=0.5),
            "relu_all": lambda: kl.ReLU(6.0, negative_slope=0.25), "leaky": kl.LeakyReLU,
            "leaky3": lambda: kl.LeakyReLU(0.125), "elu": kl.ELU, "elu2": lambda: kl.ELU(alpha=0.5),
            "prelu": kl.PReLU, "softmax": kl.Softmax,
        }  # fmt: skip
        for name, make in layers.items():
            _chain(f"{name}_{where}", shape, make)
    _chain("prelu_shared", IMAGE, lambda: kl.PReLU(shared_axes=[1, 2]))
    for axis in (1, 2, 3, -1, [1, 2], [1, 2, 3]):
        _chain(f"softmax_axis_{axis}", (4, 4, 4), lambda a=axis: kl.Softmax(axis=a))
    _chain("softmax_within", FLAT, lambda: kl.Dense(6, "softmax"), lambda: kl.Dense(4))
    for classes in (2, 10, 33):
        _chain(f"softmax_{classes}", FLAT, lambda c=classes: kl.Dense(c, "softmax"))


def _norms_and_shapes() -> None:
    for where, shape in (("flat", FLAT), ("series", (4, 4)), ("image", (3, 3, 3))):
        for axis in range(1, len(shape) + 1):
            _chain(f"norm_{where}_{axis}", shape, lambda a=axis: kl.BatchNormalization(axis=a))
        _chain(f"norm_{where}_plain", shape, lambda: kl.BatchNormalization(center=False, scale=False))
    _chain("layer_norm", SERIES, kl.LayerNormalization)
    _chain("rescaling", FLAT, lambda: kl.Rescaling(0.5))
    shapes: dict[str, tuple[tuple[int, ...], Build]] = {
        "flatten": (IMAGE, kl.Flatten), "flatten_1d": (SERIES, kl.Flatten), "flatten_flat": (FLAT, kl.Flatten),
        "reshape_flat": (IMAGE, lambda: kl.Reshape((90,))), "reshape_image": ((12,), lambda: kl.Reshape((2, 3, 2))),
        "reshape_other": (IMAGE, lambda: kl.Reshape((5, 6, 3))), "reshape_mixed": (IMAGE, lambda: kl.Reshape((6, 15))),
        "reshape_free": (IMAGE, lambda: kl.Reshape((-1, 3))), "permute_213": (IMAGE, lambda: kl.Permute((2, 1, 3))),
        "permute_321": (IMAGE, lambda: kl.Permute((3, 2, 1))), "permute_312": (IMAGE, lambda: kl.Permute((3, 1, 2))),
        "permute_21": (SERIES, lambda: kl.Permute((2, 1))), "crop2d": (IMAGE, lambda: kl.Cropping2D(((1, 0), (2, 1)))),
        "crop1d": (SERIES, lambda: kl.Cropping1D((2, 1))), "pad2d": (IMAGE, lambda: kl.ZeroPadding2D(((1, 2), (0, 3)))),
        "pad1d": (SERIES, lambda: kl.ZeroPadding1D((2, 1))), "up2d": (IMAGE, lambda: kl.UpSampling2D(2)),
        "up2d_odd": (IMAGE, lambda: kl.UpSampling2D((3, 1))), "up1d": (SERIES, lambda: kl.UpSampling1D(3)),
        "up2d_linear": (IMAGE, lambda: kl.UpSampling2D(2, interpolation="bilinear")),
        "repeat": (FLAT, lambda: kl.RepeatVector(3)), "dropout": (FLAT, lambda: kl.Dropout(0.5)),
    }  # fmt: skip
    for name, (shape, make) in shapes.items():
        _chain(name, shape, make)
        if name not in ("repeat", "up2d_linear", "dropout"):
            _chain(f"{name}_relu", shape, make, kl.ReLU)
    _chain("pad_conv", IMAGE, lambda: kl.ZeroPadding2D(1), lambda: kl.Conv2D(3, 3))
    _chain("flatten_dense", IMAGE, kl.Flatten, lambda: kl.Dense(4))
    _chain("flatten_softmax", (2, 3), kl.Flatten, kl.Softmax)
    _chain("permute_dense", SERIES, lambda: kl.Permute((2, 1)), kl.Flatten, lambda: kl.Dense(4))
    _chain("reshape_conv", (30,), lambda: kl.Reshape((5, 3, 2)), lambda: kl.Conv2D(3, 2))
    _chain("up_conv", SERIES, lambda: kl.UpSampling1D(2), lambda: kl.Conv1D(3, 3))
    _chain("crop_flatten", IMAGE, lambda: kl.Cropping2D(1), kl.Flatten, lambda: kl.Dense(3))


def _merges() -> None:
    kinds = ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum")
    broadcasts = (
        ((4, 4, 3), (4, 4, 1)), ((2, 2, 3), (2, 2, 1)), ((4, 4, 3), (1, 1, 3)), ((4, 4, 3), (3,)),
        ((4, 4, 3), (1, 4, 3)), ((4, 4, 3), (4, 1, 3)), ((5, 3), (5, 1)), ((5, 3), (1, 3)), ((6,), (1,)),
        ((1, 1, 3), (4, 4, 3)), ((1, 3), (5, 3)), ((4, 1, 3), (1, 4, 3)), ((1, 1, 3), (4, 4, 1)), ((3,), (4, 4, 3)),
        ((2, 2, 1), (2, 2, 2)),
    )  # fmt: skip
    for kind in kinds:
        for where, shape in (("flat", FLAT), ("series", SERIES), ("image", IMAGE)):
            _joined(f"{kind}_{where}", [shape, shape], lambda a, b, k=kind: getattr(kl, k)(name="merged")([a, b]))
        for one, other in broadcasts:
            name = f"{kind}_{'x'.join(map(str, one))}_and_{'x'.join(map(str, other))}"
            _joined(name, [one, other], lambda a, b, k=kind: getattr(kl, k)(name="merged")([a, b]))
    for kind in ("Add", "Multiply", "Average", "Maximum"):
        _joined(f"{kind}_three", [FLAT] * 3, lambda *x, k=kind: getattr(kl, k)(name="merged")(list(x)))
    for axis, one, other in (
        (-1, FLAT, (4,)), (1, FLAT, (4,)), (1, SERIES, (4, 3)), (2, SERIES, (9, 2)), (-1, SERIES, (9, 2)),
        (1, IMAGE, (2, 5, 3)), (2, IMAGE, (6, 2, 3)), (3, IMAGE, (6, 5, 2)), (-1, IMAGE, (6, 5, 2)),
        (-2, IMAGE, (6, 2, 3)),
    ):  # fmt: skip
        name = f"concat_{len(one)}d_{axis}"
        _joined(name, [one, other], lambda a, b, x=axis: kl.Concatenate(axis=x, name="merged")([a, b]))
    _joined("concat_three", [FLAT] * 3, lambda *x: kl.Concatenate(name="merged")(list(x)))
    _joined("dot", [FLAT, FLAT], lambda a, b: kl.Dot(axes=1, name="merged")([a, b]))
    _joined("dot_2d", [(4, 3), (4, 3)], lambda a, b: kl.Dot(axes=2, name="merged")([a, b]))
    _joined("itself", [FLAT], lambda a: kl.Add(name="merged")([a, a]))
    _joined("itself_times", [FLAT], lambda a: kl.Multiply(name="merged")([a, a]))
    _joined("residual", [IMAGE], lambda a: kl.Add(name="merged")([kl.Conv2D(3, 3, padding="same", name="conv")(a), a]))
    _joined("gate", [IMAGE], _gate)
    _joined("gate_flat", [IMAGE], _gate_flat)


def _gate(image: Any) -> Any:
    gate = kl.Conv2D(3, 1, activation="sigmoid", name="gate")(kl.GlobalAveragePooling2D(keepdims=True)(image))
    return kl.Multiply(name="merged")([image, gate])


def _gate_flat(image: Any) -> Any:
    gate = kl.Dense(3, activation="sigmoid", name="gate")(kl.GlobalMaxPooling2D()(image))
    return kl.Multiply(name="merged")([image, kl.Reshape((1, 1, 3))(gate)])


def _sequences() -> None:
    for kind in ("GRU", "LSTM", "SimpleRNN"):
        for back in (False, True):
            _chain(f"{kind}_{back}", (5, 3), lambda k=kind, s=back: getattr(kl, k)(4, return_sequences=s))
        for activation in ("relu", "sigmoid", "elu"):
            _chain(f"{kind}_{activation}", (5, 3), lambda k=kind, a=activation: getattr(kl, k)(4, activation=a))
        _chain(f"{kind}_backwards", (5, 3), lambda k=kind: getattr(kl, k)(4, go_backwards=True))
        _chain(f"{kind}_nobias", (5, 3), lambda k=kind: getattr(kl, k)(4, use_bias=False))
        _chain(f"{kind}_dense", (5, 3), lambda k=kind: getattr(kl, k)(4), lambda: kl.Dense(2))
    _chain("gru_before", (5, 3), lambda: kl.GRU(4, reset_after=False))
    _chain("lstm_hard", (5, 3), lambda: kl.LSTM(4, recurrent_activation="hard_sigmoid"))
    _chain("bidirectional", (5, 3), lambda: kl.Bidirectional(kl.LSTM(4)))
    for number, mode in enumerate(("concat", "sum", "mul", "ave", None)):
        kind, every = ("GRU", "SimpleRNN")[number % 2], mode != "sum"
        _chain(
            f"bidirectional_{mode}",
            (5, 3),
            lambda k=kind, m=mode, s=every: kl.Bidirectional(getattr(kl, k)(4, return_sequences=s), merge_mode=m),
        )
    _chain("bidirectional_state", (5, 3), lambda: kl.Bidirectional(kl.GRU(4, return_state=True)))
    _chain("bidirectional_conv", (5, 4, 3), lambda: kl.Bidirectional(kl.ConvLSTM1D(4, 2)))
    _chain("distributed", (5, 3), lambda: kl.TimeDistributed(kl.Dense(2)))
    _chain("embedding", (5,), lambda: kl.Embedding(8, 3))
    _chain("einsum", (4, 3), lambda: kl.EinsumDense("abc,cd->abd", output_shape=(4, 5)))
    _joined("attention", [(4, 3)], lambda a: kl.MultiHeadAttention(2, 2, name="attention")(a, a))


def _graphs() -> None:
    def nested(a: Any) -> Any:
        inner_in = keras.Input(FLAT, name="inside")
        inner = keras.Model(inner_in, kl.Dense(4, "relu", name="deep")(inner_in), name="inner")
        return kl.Dense(3, name="outer")(inner(a))

    def shared(a: Any, b: Any) -> Any:
        layer = kl.Dense(4, name="shared")
        return kl.Add(name="merged")([layer(a), layer(b)])

    def heads(a: Any) -> Any:
        body = kl.Dense(5, "relu", name="body")(a)
        return [kl.Dense(3, name="left")(body), kl.Dense(2, "sigmoid", name="right")(body)]

    def through(a: Any) -> Any:
        body = kl.Dense(5, "relu", name="body")(a)
        return [body, kl.Dense(2, name="right")(body)]

    def entries(a: Any, b: Any) -> Any:
        return kl.Concatenate(name="merged")([kl.Dense(3, name="left")(a), kl.Flatten(name="flat")(b)])

    def operations(a: Any) -> Any:
        return a * 2.0 + 1.0

    _joined("nested", [FLAT], nested)
    _joined("shared", [FLAT, FLAT], shared)
    _joined("two_outputs", [FLAT], heads)
    _joined("inner_output", [FLAT], through)
    _joined("two_inputs", [FLAT, (2, 3)], entries)
    _joined("operations", [FLAT], operations)
    _joined("one_input_out", [FLAT], lambda a: [kl.ReLU(name="positive")(a), kl.Dense(2, name="head")(a)])
    _joined("branches", [IMAGE], _branches)


def _branches(a: Any) -> Any:
    left = kl.MaxPooling2D(2, name="left")(kl.ReLU(name="positive")(a))
    right = kl.AveragePooling2D(2, name="right")(a)
    return kl.Concatenate(name="merged")([left, right])


_products()
_pooling()
_activations()
_norms_and_shapes()
_merges()
_sequences()
_graphs()


def trained(name: str, seed: int) -> tuple[Any, list[np.ndarray]]:
    """Model `name` with random weights that a training could have left, and samples that show its ranges."""
    rng = np.random.default_rng(seed)
    keras.utils.set_random_seed(seed)
    model = MODELS[name]()
    for variable in model.variables:
        if not np.issubdtype(np.dtype(variable.dtype), np.floating):
            continue
        fan = max(1, int(np.prod(variable.shape[:-1]))) if len(variable.shape) > 1 else 4
        values = rng.normal(size=variable.shape) / np.sqrt(fan)
        if variable.path.endswith(("variance", "gamma")):
            values = np.abs(values) + 0.5
        variable.assign(values)
    x = [
        rng.integers(0, 8, (24, *tensor.shape[1:])).astype("float32")
        if name == "embedding"
        else (rng.normal(size=(24, *tensor.shape[1:])) * rng.uniform(1, 4)).astype("float32")
        for tensor in model.inputs
    ]
    return model, x
