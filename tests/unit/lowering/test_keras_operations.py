"""Operations of Keras become layers, heads of several axes keep their softmax, and no option is passed over."""

import keras
import numpy as np
import pytest
from keras import layers, ops

import fpgaprune as fp
from fpgaprune.errors import MaskError, UnsupportedLayerError
from fpgaprune.hls import check_model
from fpgaprune.lowering import Precision, fold, layer_problems, operation_problems, with_layers
from tests.called import called

RNG = np.random.default_rng(0)


def of(*stack, shape=(6, 6, 4)):
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input(shape), *stack], name="of")


def functional(model):
    """Of one form, whatever the form of the model."""
    return keras.Model(model.inputs, model.outputs)


def largest_difference(one, other, x):
    a, b = (ops.convert_to_numpy(functional(model)([x])[0]) for model in (one, other))
    assert a.shape == b.shape
    return np.abs(a - b).max()


def computed(function, shape=(4, 4, 2)):
    keras.utils.set_random_seed(0)
    x = keras.Input(shape)
    return keras.Model(x, function(layers.Conv2D(3, 3, padding="same", activation="relu", name="conv")(x)))


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        (lambda y: y * 2.0 + 1.0, ["BatchNormalization"]),
        (lambda y: 1.0 - (-y) / 4, ["BatchNormalization"]),
        (lambda y: (y - np.arange(3.0, dtype="float32")) * np.float32(0.5), ["BatchNormalization"]),
        (layers.Rescaling(0.5, offset=[0.25, 0.5, -1.0]), ["BatchNormalization"]),
        (lambda y: layers.Rescaling([0.5, 2.0, 1.0])(y) - 1.0, ["BatchNormalization"]),
        (
            lambda y: y * np.arange(48, dtype="float32").reshape(4, 4, 3) / 48,
            ["Reshape", "BatchNormalization", "Reshape"],
        ),
        (lambda y: y + y, ["Add"]),
        (lambda y: y**2, ["Multiply"]),
        (lambda y: ops.maximum(y, ops.tanh(y)), ["Activation", "Maximum"]),
        (lambda y: ops.concatenate([y, y], axis=-1), ["Concatenate"]),
        (lambda y: ops.softmax(ops.leaky_relu(y, 0.25)), ["LeakyReLU", "Softmax"]),
        (lambda y: ops.mean(y, axis=(1, 2)), ["GlobalAveragePooling2D"]),
        (lambda y: ops.max(y, axis=[1, 2], keepdims=True), ["GlobalMaxPooling2D"]),
        (lambda y: ops.reshape(y, (-1, 48)), ["Reshape"]),
        (lambda y: ops.transpose(y, (0, 2, 1, 3)), ["Permute"]),
    ],
)
def test_an_operation_is_the_layer_that_it_is(function, kinds):
    model = computed(function)
    changed = with_layers(functional(model))
    assert [type(layer).__name__ for layer in changed.layers[2:]] == kinds
    x = RNG.normal(size=(3, 4, 4, 2)).astype("float32")
    assert largest_difference(changed, model, x) < 1e-6
    assert operation_problems(model) == []


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda y: ops.exp(y), "operation 'exp' is a Exp of keras.ops, and no layer"),
        (
            lambda y: y[:, :2],
            "GetItem of keras.ops, and no layer: use a Cropping layer",
        ),
        (lambda y: ops.matmul(y, np.ones((3, 3), "float32")), "use Dense, with a kernel that is a weight"),
        (lambda y: y * np.full((4, 4, 3), np.inf, "float32"), "Multiply of keras.ops, and no layer"),
        (lambda y: ops.maximum(y, 0.5), "Maximum of keras.ops, and no layer"),
        (lambda y: y / 0.0, "TrueDivide of keras.ops, and no layer"),
        (lambda y: 1.0 / y, "TrueDivide of keras.ops, and no layer"),
    ],
)
def test_any_other_operation_is_refused_by_its_name(function, said):
    model = computed(function)
    with pytest.raises(UnsupportedLayerError, match=said.replace("(", r"\(")):
        fold(model)
    (problem,) = check_model(model, fp.Target.of("xc7z020clg400-1")).problems
    assert said in problem


@pytest.mark.parametrize(
    ("stack", "shape", "kinds"),
    [
        ([layers.Conv2D(4, 1, activation="softmax", name="head")], (4, 4, 2), ["Conv2D", "Softmax"]),
        ([layers.Dense(4, activation="softmax", name="head")], (4, 4, 2), ["Dense", "Softmax"]),
        ([layers.Conv1D(4, 3, activation="softmax", name="head")], (6, 2), ["Conv1D", "Softmax"]),
        ([layers.SeparableConv2D(4, 3, activation="softmax", name="head")], (4, 4, 2), None),
        (
            [layers.Dense(3, activation="relu", name="head")],
            (2, 2, 3, 2),
            ["Reshape", "Dense", "Reshape", "Activation"],
        ),
        ([layers.Conv2D(4, 1), layers.Softmax(axis=[-1], name="head")], (4, 4, 2), ["Conv2D", "Softmax"]),
        ([layers.Dense(4, name="head", dtype="float64")], (5,), ["Dense"]),
        (
            [layers.GlobalAveragePooling2D(keepdims=True), layers.Conv2D(2, 1)],
            (4, 4, 2),
            ["GlobalAveragePooling2D", "Reshape", "Conv2D"],
        ),
    ],
)
def test_heads_of_several_axes_and_kept_axes_compute_the_same(stack, shape, kinds):
    model = of(*stack, shape=shape)
    folded = fold(model)
    assert kinds is None or [type(layer).__name__ for layer in folded.layers[1:]] == kinds
    x = RNG.normal(size=(3, *shape)).astype("float32")
    assert largest_difference(folded, model, x) < 1e-6


@pytest.mark.parametrize("io_type", ["io_parallel", "io_stream"])
def test_a_segmentation_head_is_emulated_in_its_shape(io_type):
    keras.utils.set_random_seed(0)
    image = keras.Input((4, 4, 2), name="image")
    mask = layers.Conv2D(4, 1, activation="softmax", name="mask")(image)
    kept = layers.GlobalMaxPooling2D(keepdims=True, name="kept")(mask * 2.0 + 1.0)
    model = keras.Model(image, [mask, kept])
    x = RNG.normal(size=(8, 4, 4, 2)).astype("float32")
    design = fp.make_design(model, fp.Target.of("xc7z020clg400-1", io_type=io_type), x, Precision(16, 16, 24))
    for found, wanted in zip(fp.emulate(design, x), model.predict(x, verbose=0), strict=True):
        assert found.shape == wanted.shape
        assert np.abs(found - wanted).max() < 0.5
    assert fp.estimate(design, fp.Target.of("xc7z020clg400-1")).total["csynth"].lut.value > 0


def adapted():
    layer = layers.Dense(3, name="a")
    model = of(layer, shape=(4,))
    layer.enable_lora(2)
    return model


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: of(layers.EinsumDense("abcd,de->abe", (None, 3), name="a")), "only products along the last axis"),
        (lambda: of(layers.Dense(2, activation=layers.ReLU(0), name="a")), "its activation is ReLU(max_value=0, "),
        (adapted, "LoRA or quantize() has split its weights"),
        (lambda: of(layers.UpSampling2D(interpolation="bilinear", name="a")), "its interpolation is 'bilinear'"),
        (
            lambda: of(layers.GRU(2, reset_after=False, name="a"), shape=(3, 2)),
            "its reset gate acts before the product",
        ),
    ],
)
def test_an_option_without_a_template_is_refused_by_name(build, said):
    (problem,) = layer_problems(functional(build()))
    assert problem.startswith("layer 'a' (")
    assert said in problem


def test_a_model_without_weights_is_built_nevertheless():
    model = of(layers.MaxPooling2D(), layers.Flatten(), layers.ReLU(threshold=3.0, name="a"), shape=(4, 4, 2))
    x = 4 * RNG.normal(size=(8, 4, 4, 2)).astype("float32")
    design = fp.make_design(model, fp.Target.of("xc7z020clg400-1"), x, Precision(16, 16, 24))
    # A threshold above 2 needs another type than slopes have.
    assert np.abs(fp.emulate(design, x) - called(model, x)).max() < 0.01
    with pytest.raises(MaskError, match="has no weights yet; call or build it first"):
        fp.select(keras.Sequential([layers.Dense(2)]), sparsity=0.5)


def test_one_number_a_sample_is_refused_before_hls4ml_sees_it():
    x = keras.Input(())
    (problem,) = check_model(keras.Model(x, layers.Reshape((1,))(x)), fp.Target.of("xc7z020clg400-1")).problems
    assert "is one number a sample, of shape (); hardware needs an axis: give keras.Input the shape (1,)" in problem
