"""Every layer type: channels leave through it, and what is left computes the same.

Each row is a layer (or a small block) between a producer with dead channels and a reader with unread ones.
To cover a new layer type, add a row.
"""

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.network import AxisChannels, Channels
from fpgaprune.values import named_weights
from tests.quick import quick

IMAGE, SEQUENCE, VECTOR, VOLUME = (6, 6, 2), (6, 2), (5,), (4, 4, 4, 2)


@pytest.fixture(autouse=True)
def no_value_where_none_is_known(monkeypatch):
    """Of every channel that any rule makes, the value is 0 where it is not known."""
    for kind in (AxisChannels, Channels):

        def checked(facts, *arguments, _make=kind.__init__, **named):
            _make(facts, *arguments, **named)
            assert not np.where(facts.known, 0.0, facts.value).any()

        monkeypatch.setattr(kind, "__init__", checked)


def se_block(x):
    s = layers.GlobalAveragePooling2D(keepdims=True)(x)
    s = layers.Conv2D(3, 1, activation="relu", name="se1")(s)
    s = layers.Conv2D(x.shape[-1], 1, activation="sigmoid", name="se2")(s)
    return layers.Multiply()([x, s])


def residual(x):
    y = layers.Conv2D(x.shape[-1], 3, padding="same", activation="relu", name="r1")(x)
    y = layers.Conv2D(x.shape[-1], 3, padding="same", name="r2")(y)
    return layers.ReLU()(layers.Add()([x, y]))


def merged(kind):
    def block(x):
        return kind()([x, layers.Conv2D(x.shape[-1], 1, name="m1")(x), layers.Conv2D(x.shape[-1], 1, name="m2")(x)])

    return block


def channels_first_pooled(x):
    x = layers.Permute((3, 1, 2))(x)
    return layers.GlobalAveragePooling2D(data_format="channels_first")(
        layers.UpSampling2D(2, data_format="channels_first")(x)
    )


def subtracted(x):
    return layers.Subtract()([x, layers.Conv2D(x.shape[-1], 1, name="m1")(x)])


def concatenated(axis):
    def block(x):
        y = layers.Conv2D(x.shape[-1], 1, name="m1")(x)
        return layers.Concatenate(axis=axis)([x, y])

    return block


def shuffled(x):
    height, width, channels = x.shape[1:]
    x = layers.Reshape((height, width, 2, channels // 2))(x)
    x = layers.Permute((1, 2, 4, 3))(x)
    return layers.Reshape((height, width, channels))(x)


def arithmetic(x):
    return keras.ops.relu(x * 0.5 + 0.25) - keras.ops.maximum(x, 0.1) / 2.0


def nested(x):
    inner = keras.Input(x.shape[1:], name="inner_in")
    y = layers.Conv2D(4, 3, padding="same", activation="relu", name="i1")(inner)
    y = layers.Conv2D(x.shape[-1], 1, name="i2")(y)
    return keras.Model(inner, y, name="inner")(x)


def nested_sequential(x):
    stack = [keras.Input(x.shape[1:]), layers.Conv2D(4, 1, name="i1"), layers.Conv2D(3, 1, name="i2")]
    return keras.Sequential(stack, name="inner")(x)


def nested_twice(x):
    inner = keras.Input(x.shape[1:], name="inner_in")
    y = layers.Conv2D(4, 3, padding="same", activation="relu", name="i1")(inner)
    model = keras.Model(inner, layers.Conv2D(x.shape[-1], 1, name="i2")(y), name="inner")
    return layers.Concatenate()([model(x), model(layers.ReLU()(x))])


def nested_without_weights(x):
    inner = keras.Input(x.shape[1:], name="inner_in")
    model = keras.Model(inner, layers.MaxPooling2D(2)(inner), name="inner")
    y = layers.Conv2D(x.shape[-1], 1, name="m1")(x)
    return layers.Concatenate()([model(x), model(y)])


def shared(x):
    conv = layers.Conv2D(3, 1, name="shared")
    norm = layers.BatchNormalization(name="norm")
    return layers.Concatenate()([norm(conv(x)), norm(conv(layers.ReLU()(x)))])


ROWS = {
    # images, channels last
    "Conv2D same": (IMAGE, lambda: layers.Conv2D(4, 3, padding="same", name="l")),
    "Conv2D stride": (IMAGE, lambda: layers.Conv2D(4, 3, strides=2, padding="same", name="l")),
    "Conv2D dilation": (IMAGE, lambda: layers.Conv2D(4, 2, dilation_rate=2, padding="same", name="l")),
    "Conv2D groups": (IMAGE, lambda: layers.Conv2D(6, 3, groups=2, name="l")),
    "Conv2D groups same": (IMAGE, lambda: layers.Conv2D(6, 3, groups=3, padding="same", name="l")),
    "Conv2D softmax": (IMAGE, lambda: layers.Conv2D(4, 3, activation="softmax", name="l")),
    "Conv2DTranspose": (IMAGE, lambda: layers.Conv2DTranspose(4, 3, strides=2, padding="same", name="l")),
    "Conv2DTranspose 1x1": (IMAGE, lambda: layers.Conv2DTranspose(4, 1, name="l")),
    "DepthwiseConv2D": (IMAGE, lambda: layers.DepthwiseConv2D(3, name="l")),
    "DepthwiseConv2D same": (IMAGE, lambda: layers.DepthwiseConv2D(3, depth_multiplier=2, padding="same", name="l")),
    "SeparableConv2D": (IMAGE, lambda: layers.SeparableConv2D(4, 3, name="l")),
    "SeparableConv2D same": (IMAGE, lambda: layers.SeparableConv2D(4, 3, padding="same", use_bias=False, name="l")),
    "BatchNormalization": (IMAGE, lambda: layers.BatchNormalization(name="l")),
    "BatchNormalization plain": (IMAGE, lambda: layers.BatchNormalization(center=False, scale=False, name="l")),
    "LayerNormalization": (IMAGE, lambda: layers.LayerNormalization(name="l")),
    "LayerNormalization space": (IMAGE, lambda: layers.LayerNormalization(axis=(1, 2), name="l")),
    "GroupNormalization": (IMAGE, lambda: layers.GroupNormalization(3, name="l")),
    "RMSNormalization": (IMAGE, lambda: layers.RMSNormalization(name="l")),
    "UnitNormalization": (IMAGE, lambda: layers.UnitNormalization(name="l")),
    "PReLU": (IMAGE, lambda: layers.PReLU(name="l")),
    "PReLU shared": (IMAGE, lambda: layers.PReLU(shared_axes=(1, 2), name="l")),
    "PReLU one": (IMAGE, lambda: layers.PReLU(shared_axes=(1, 2, 3), name="l")),
    "ReLU": (IMAGE, lambda: layers.ReLU(6.0, negative_slope=0.1, threshold=0.05)),
    "LeakyReLU": (IMAGE, lambda: layers.LeakyReLU(0.2)),
    "ELU": (IMAGE, lambda: layers.ELU(0.7)),
    "gelu": (IMAGE, lambda: layers.Activation("gelu")),
    "hard_silu": (IMAGE, lambda: layers.Activation("hard_silu")),
    "Softmax channels": (IMAGE, lambda: layers.Softmax()),
    "Softmax space": (IMAGE, lambda: layers.Softmax(axis=(1, 2))),
    "Dropout": (IMAGE, lambda: layers.Dropout(0.3)),
    "SpatialDropout2D": (IMAGE, lambda: layers.SpatialDropout2D(0.3)),
    "GaussianNoise": (IMAGE, lambda: layers.GaussianNoise(0.3)),
    "MaxPooling2D": (IMAGE, lambda: layers.MaxPooling2D(2, padding="same")),
    "AveragePooling2D": (IMAGE, lambda: layers.AveragePooling2D(3, 2, padding="same")),
    "GlobalMaxPooling2D": (IMAGE, lambda: layers.GlobalMaxPooling2D()),
    "GlobalAveragePooling2D": (IMAGE, lambda: layers.GlobalAveragePooling2D(keepdims=True)),
    "UpSampling2D": (IMAGE, lambda: layers.UpSampling2D(2)),
    "UpSampling2D bilinear": (IMAGE, lambda: layers.UpSampling2D(2, interpolation="bilinear")),
    "ZeroPadding2D": (IMAGE, lambda: layers.ZeroPadding2D(1)),
    "ZeroPadding2D none": (IMAGE, lambda: layers.ZeroPadding2D(0)),
    "Cropping2D": (IMAGE, lambda: layers.Cropping2D(1)),
    "Flatten": (IMAGE, lambda: layers.Flatten()),
    "Reshape rows": (IMAGE, lambda: layers.Reshape((-1, 6))),
    "Reshape flat": (IMAGE, lambda: layers.Reshape((96,))),
    "Reshape odd": (IMAGE, lambda: layers.Reshape((24, 4))),
    "Permute": (IMAGE, lambda: layers.Permute((2, 1, 3))),
    "Permute channels": (IMAGE, lambda: layers.Permute((3, 1, 2))),
    "Rescaling": (IMAGE, lambda: layers.Rescaling(0.5, offset=0.25)),
    "Rescaling channels": (IMAGE, lambda: layers.Rescaling([0.5, 1, 2, 3, 4, 5])),
    "Rescaling offsets": (IMAGE, lambda: layers.Rescaling(2.0, offset=[0.5, 1, 2, 3, 4, 5])),
    "Normalization": (IMAGE, lambda: layers.Normalization(name="l")),
    "Normalization back": (IMAGE, lambda: layers.Normalization(invert=True, name="l")),
    "Normalization given": (
        IMAGE,
        lambda: layers.Normalization(mean=[0.5, 1, 2, 3, 4, 5], variance=[0.0, 1, 2, 3, 4, 5]),
    ),
    "Normalization one number": (IMAGE, lambda: layers.Normalization(mean=0.5, variance=2.0)),
    "Normalization two axes": (IMAGE, lambda: layers.Normalization(axis=(2, 3), name="l")),
    "EinsumDense": (IMAGE, lambda: layers.EinsumDense("...x,xy->...y", output_shape=4, bias_axes="y", name="l")),
    "EinsumDense no bias": (IMAGE, lambda: layers.EinsumDense("abcx,xy->abcy", output_shape=(4, 4, 3), name="l")),
    "EinsumDense heads": (
        IMAGE,
        lambda: layers.EinsumDense("abcd,dhk->abchk", output_shape=(4, 4, 2, 3), bias_axes="hk", name="l"),
    ),
    "EinsumDense odd": (IMAGE, lambda: layers.EinsumDense("abcd,bd->acd", output_shape=(4, 6), name="l")),
    "squeeze and excite": (IMAGE, lambda: se_block),
    "residual": (IMAGE, lambda: residual),
    "Add": (IMAGE, lambda: merged(layers.Add)),
    "Average": (IMAGE, lambda: merged(layers.Average)),
    "Maximum": (IMAGE, lambda: merged(layers.Maximum)),
    "Minimum": (IMAGE, lambda: merged(layers.Minimum)),
    "Multiply": (IMAGE, lambda: merged(layers.Multiply)),
    "Subtract": (IMAGE, lambda: subtracted),
    "Concatenate": (IMAGE, lambda: concatenated(-1)),
    "Concatenate space": (IMAGE, lambda: concatenated(1)),
    "channel shuffle": (IMAGE, lambda: shuffled),
    "channels first pooled": (IMAGE, lambda: channels_first_pooled),
    "operations": (IMAGE, lambda: arithmetic),
    "nested": (IMAGE, lambda: nested),
    "nested Sequential": (IMAGE, lambda: nested_sequential),
    "nested twice": (IMAGE, lambda: nested_twice),
    "nested without weights": (IMAGE, lambda: nested_without_weights),
    "shared layers": (IMAGE, lambda: shared),
    # sequences
    "Conv1D causal": (SEQUENCE, lambda: layers.Conv1D(4, 3, padding="causal", name="l")),
    "Conv1DTranspose": (SEQUENCE, lambda: layers.Conv1DTranspose(4, 3, name="l")),
    "DepthwiseConv1D": (SEQUENCE, lambda: layers.DepthwiseConv1D(3, padding="same", name="l")),
    "SeparableConv1D": (SEQUENCE, lambda: layers.SeparableConv1D(4, 3, padding="same", name="l")),
    "LSTM": (SEQUENCE, lambda: layers.LSTM(3, return_sequences=True, name="l")),
    "LSTM no bias": (SEQUENCE, lambda: layers.LSTM(3, use_bias=False, name="l")),
    "GRU": (SEQUENCE, lambda: layers.GRU(3, name="l")),
    "GRU before": (SEQUENCE, lambda: layers.GRU(3, reset_after=False, return_sequences=True, name="l")),
    "GRU no bias": (SEQUENCE, lambda: layers.GRU(3, use_bias=False, name="l")),
    "SimpleRNN": (SEQUENCE, lambda: layers.SimpleRNN(3, name="l")),
    "Bidirectional": (SEQUENCE, lambda: layers.Bidirectional(layers.LSTM(3, name="l"), name="bi")),
    "Bidirectional no bias": (SEQUENCE, lambda: layers.Bidirectional(layers.GRU(3, use_bias=False), name="bi")),
    "MaxPooling1D": (SEQUENCE, lambda: layers.MaxPooling1D(2)),
    "GlobalAveragePooling1D": (SEQUENCE, lambda: layers.GlobalAveragePooling1D()),
    "UpSampling1D": (SEQUENCE, lambda: layers.UpSampling1D(2)),
    "ZeroPadding1D": (SEQUENCE, lambda: layers.ZeroPadding1D(1)),
    "Cropping1D": (SEQUENCE, lambda: layers.Cropping1D(1)),
    "TimeDistributed": (SEQUENCE, lambda: layers.TimeDistributed(layers.Dense(3))),
    "Dense on a sequence": (SEQUENCE, lambda: layers.Dense(4, activation="relu", name="l")),
    # vectors
    "Dense": (VECTOR, lambda: layers.Dense(4, activation="tanh", name="l")),
    "Dense softmax": (VECTOR, lambda: layers.Dense(4, activation="softmax", name="l")),
    "RepeatVector": (VECTOR, lambda: layers.RepeatVector(3)),
    "Reshape to image": (VECTOR, lambda: layers.Reshape((1, 1, 6))),
    # volumes
    "Conv3D": (VOLUME, lambda: layers.Conv3D(4, 2, padding="same", name="l")),
    "Conv3DTranspose": (VOLUME, lambda: layers.Conv3DTranspose(3, 2, name="l")),
    "MaxPooling3D": (VOLUME, lambda: layers.MaxPooling3D(2)),
}
WITHOUT_RULE = {"EinsumDense odd"}
# Rows in which nothing may leave before the layer: they mix, or hold, all channels.
MIXING = {
    "GroupNormalization",
    "LayerNormalization",
    "RMSNormalization",
    "UnitNormalization",
    "Softmax channels",
    "Normalization two axes",
    "Reshape odd",
    "EinsumDense odd",
    "channel shuffle",
    "Conv2D groups same",
    "Concatenate space",
    "LayerNormalization space",
    "Permute channels",
}


def reader(rank):
    conv = {1: layers.Dense, 2: layers.Conv1D, 3: layers.Conv2D, 4: layers.Conv3D}.get(rank, layers.Dense)
    return conv(3, *([1] if conv is not layers.Dense else []), name="reader")


def make(shape, block, seed=0):
    keras.utils.set_random_seed(seed)
    x = keras.Input(shape)
    kernel = {1: [], 2: [3], 3: [3], 4: [1]}[len(shape)]
    conv = {1: layers.Dense, 2: layers.Conv1D, 3: layers.Conv2D, 4: layers.Conv3D}[len(shape)]
    y = conv(6, *kernel, activation="leaky_relu", name="first")(x)
    y = block(y)
    model = keras.Model(x, reader(len(y.shape) - 1)(y), name="net")
    generator = np.random.default_rng(seed)
    for path, variable in named_weights(model).items():
        if not variable.dtype.startswith("float"):
            continue
        value = generator.uniform(-1.0, 1.0, variable.shape)
        if "variance" in path:
            value = np.abs(value) + 0.5
        elif "bias" not in path and "beta" not in path and value.ndim > 1 and path != "reader/kernel":
            value[..., generator.random(value.shape[-1]) < 0.3] = 0.0 if value.shape[-1] > 2 else 0.5
        if path == "first/kernel":
            value[..., [0, 2, 3]] = 0.0  # dead
        if path == "first/bias":
            value[[0, 2, 3]] = [0.0, 0.7, -0.6]
        if path == "reader/kernel":
            value[..., generator.random(value.shape[-2]) < 0.3, :] = 0.0  # unread
        variable.assign(value)
    for layer in model.layers:
        if isinstance(layer, layers.Normalization):
            layer.finalize_state()
    return model


# The rule of another row covers these.
ALIKE = {
    *("Conv2D stride", "Conv2D dilation", "Conv2D softmax", "Conv2DTranspose 1x1", "DepthwiseConv2D"),
    *("SeparableConv2D", "BatchNormalization plain", "UnitNormalization", "PReLU shared", "ELU", "gelu"),
    *("SpatialDropout2D", "GaussianNoise", "UpSampling2D bilinear", "ZeroPadding2D none", "Reshape rows"),
    *("Rescaling offsets", "Normalization back", "Normalization one number", "EinsumDense no bias"),
    *("Average", "Minimum", "nested Sequential", "Conv1DTranspose", "DepthwiseConv1D", "SeparableConv1D"),
    *("LSTM no bias", "GRU before", "SimpleRNN", "Bidirectional no bias", "MaxPooling1D", "GlobalAveragePooling1D"),
    *("UpSampling1D", "ZeroPadding1D", "Cropping1D", "Dense softmax", "Conv3DTranspose", "MaxPooling3D"),
    *("LayerNormalization space", "Softmax space", "Dropout", "Rescaling channels", "Normalization given"),
    *("Maximum", "GlobalMaxPooling2D", "nested twice", "SeparableConv2D same", "GRU no bias", "Dense on a sequence"),
}


@pytest.mark.parametrize("name", quick(ROWS.keys() - ALIKE, ROWS))
def test_what_is_left_computes_the_same(name):
    shape, block = ROWS[name]
    model = make(shape, block())
    plan = fp.plan_removal(model)
    # TensorFlow has no MaxPool3D in float64 on a CPU.
    dtype, tolerance = (None, 1e-5) if name == "MaxPooling3D" else ("float64", 1e-12)
    small = fp.apply_removal(model, plan, dtype=dtype)
    fp.equivalence(model, small, tolerance=tolerance, dtype=dtype).require()
    # Not rebuilt for the comparison, which would hide what rebuilding loses.
    fp.equivalence(model, fp.apply_removal(model, plan), tolerance=1e-3, dtype=None).require()
    first = next(layer for layer in plan.channels if layer.path == "first")
    assert (len(first.kept) < 6) == (name not in MIXING)
    assert bool(plan.unsupported) == (name in WITHOUT_RULE)
    assert plan.parameters[1] == sum(int(np.prod(v.shape)) for v in named_weights(small).values())
    assert fp.plan_removal(small).empty


def of_format(data_format):
    """One network in either data format; the weights have the same shapes in both."""
    first = data_format == "channels_first"
    options, axis = {"data_format": data_format}, 1 if first else -1
    shared = (2, 3) if first else (1, 2)
    keras.utils.set_random_seed(0)
    source = keras.Input((2, 6, 6) if first else (6, 6, 2))
    x = layers.Conv2D(6, 3, padding="same", activation="relu", name="f1", **options)(source)
    x = layers.BatchNormalization(axis=axis, name="f2")(x)
    x = layers.DepthwiseConv2D(3, name="f3", **options)(x)
    x = layers.MaxPooling2D(2, **options)(layers.Cropping2D(1, **options)(layers.ZeroPadding2D(1, **options)(x)))
    x = layers.SeparableConv2D(5, 3, padding="same", name="f4", **options)(x)
    x = layers.Conv2DTranspose(4, 2, name="f5", **options)(x)
    x = layers.Concatenate(axis=axis)([x, layers.PReLU(shared_axes=shared, name="f6")(x)])
    x = layers.Maximum()([x, layers.Conv2D(8, 1, name="f7", **options)(x)])
    model = keras.Model(source, layers.Dense(2, name="f8")(layers.Flatten(**options)(x)), name="net")
    generator = np.random.default_rng(3)
    for path, variable in named_weights(model).items():
        shape = tuple(variable.shape)
        channels = (shape[0] if path == "f6/alpha" and first else shape[-1]) if shape else 1
        value = np.abs(generator.normal(size=shape)) if path != "f6/alpha" else np.full(shape, 0.3)
        if "kernel" in path and channels > 2:
            value[..., generator.random(channels) < 0.4] = 0.0
        if path in ("f2/gamma", "f2/beta", "f3/bias"):
            value[[1, 4]] = 0.0  # constant 0, which passes every border
        variable.assign(value)
    return model


def test_channels_first_leave_as_channels_last_do():
    """TensorFlow runs no channels-first convolution on a CPU: the plans are compared, and the small model is built."""
    first, last = of_format("channels_first"), of_format("channels_last")
    plan, twin = fp.plan_removal(first, strict=True), fp.plan_removal(last, strict=True)
    assert not plan.empty
    for path in set(plan.shapes) - {"f6/alpha"}:
        assert all(np.array_equal(a, b) for a, b in zip(plan.kept[path], twin.kept[path], strict=True)), path
    assert plan.kept["f6/alpha"][0].tolist() == twin.kept["f6/alpha"][2].tolist()
    assert {p: d.values.tolist() for p, d in plan.deltas.items()} == {
        p: d.values.tolist() for p, d in twin.deltas.items()
    }
    assert plan.multiplications == twin.multiplications
    small = fp.apply_removal(first, plan)
    assert small.count_params() == plan.parameters[1]


def test_several_inputs_and_outputs_leave_as_one():
    keras.utils.set_random_seed(0)
    a, b = keras.Input((6, 6, 2), name="a"), keras.Input((4,), name="b")
    x = layers.Conv2D(5, 3, activation="relu", name="x")(a)
    y = layers.Dense(5, activation="relu", name="y")(b)
    z = layers.Multiply()([x, layers.Reshape((1, 1, 5))(y)])
    outputs = {"map": layers.Conv2D(2, 1, name="map")(z), "code": layers.Dense(3, name="code")(y), "raw": x}
    model = keras.Model({"a": a, "b": b}, outputs, name="net")
    kernel = np.asarray(model.get_layer("y").kernel).copy()
    kernel[:, 1] = 0.0
    model.get_layer("y").kernel.assign(kernel)
    plan = fp.plan_removal(model, strict=True)
    reasons = {layer.path: set(layer.reasons) for layer in plan.channels}
    assert reasons["x"] == {"output"}
    inputs = {"a": np.random.default_rng(0).normal(size=(3, 6, 6, 2)), "b": np.ones((3, 4))}
    small = fp.apply_removal(model, plan, dtype="float64")
    fp.equivalence(model, small, inputs, tolerance=1e-12).require()
    del outputs["raw"]
    model = keras.Model({"a": a, "b": b}, outputs, name="net")
    plan = fp.plan_removal(model, strict=True)
    assert next(layer for layer in plan.channels if layer.path == "y").reasons[1] == "dead"
    small = fp.apply_removal(model, plan, dtype="float64")
    fp.equivalence(model, small, inputs, tolerance=1e-12).require()
    assert set(small.output) == {"map", "code"}
