"""What an ONNX file may differ by: the rounding of float32 in this network for these samples, and no wrong weight."""

import keras
import numpy as np
import pytest
from keras import layers

from fpgaprune.errors import ExportError
from fpgaprune.export import export_onnx, run_onnx
from fpgaprune.flow.stages import ExportConfig, onnx_error, onnx_file_error, stage_named
from tests.quick import quick

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def cancelling():
    """A network whose float32 sums lose digits: large terms that cancel; samples and what Keras gives."""
    rng = np.random.default_rng(0)
    model = keras.Sequential([keras.Input((40,)), keras.layers.Dense(3, name="dense")])
    kernel = rng.normal(size=(20, 3)).astype("float32") * 60
    model.get_layer("dense").set_weights([np.concatenate([kernel, -kernel * 0.9999]), np.zeros(3)])
    half = rng.normal(size=(50, 20)).astype("float32")
    x = np.concatenate([half, half], axis=1)
    return model, x, model.predict(x, verbose=0)


def test_what_float32_loses_in_keras_is_allowed_in_onnx(cancelling):
    model, x, wanted = cancelling
    assert onnx_error(model, x, wanted, wanted)[0] == 0
    # Added up the other way round, as another library may.
    kernel, _ = model.get_layer("dense").get_weights()
    found = np.zeros_like(wanted)
    for column in reversed(range(x.shape[1])):
        found += x[:, column, None] * kernel[column]
    error, allowed = onnx_error(model, x, wanted, found)
    assert 1e-5 < error <= allowed < 2e-3


def test_a_wrong_weight_is_an_error(cancelling):
    model, x, wanted = cancelling
    kernel, _ = model.get_layer("dense").get_weights()
    kernel[7, 1] *= 1.01
    with pytest.raises(ExportError, match=r"model\.onnx differs from Keras by .*; rounding explains .* at most"):
        onnx_error(model, x, wanted, x @ kernel)
    with pytest.raises(ExportError, match="differs from Keras by inf"):
        onnx_error(model, x, wanted, np.full_like(wanted, np.nan))


def dense(activation="relu", depth=2, last=1.0):
    stack = [layers.Dense(24, activation=activation) for _ in range(depth)]
    model = keras.Sequential([keras.Input((16,)), *stack, layers.Dense(3, name="last")])
    model.get_layer("last").kernel.assign(model.get_layer("last").kernel.numpy() * np.float32(last))
    return model


def image():
    stack = [layers.Conv2D(8, 3), layers.BatchNormalization(name="norm"), layers.ReLU(), layers.DepthwiseConv2D(3)]
    head = [layers.GlobalAveragePooling2D(), layers.Dense(4)]
    model = keras.Sequential([keras.Input((10, 10, 2)), *stack, *head])
    model.get_layer("norm").set_weights([RNG.normal(size=8), RNG.normal(size=8), RNG.normal(size=8), np.full(8, 1e-2)])
    return model


def normalised():
    norm = layers.Normalization()
    norm.adapt(RNG.integers(0, 256, size=(99, 16)).astype("float32"))
    return keras.Sequential([keras.Input((16,)), norm, layers.Dense(8, activation="tanh"), layers.Dense(2)])


def two_scales():
    x = keras.Input((16,))
    shared = layers.Dense(16, activation="relu")(x)
    large = layers.Dense(1, kernel_initializer=keras.initializers.RandomNormal(stddev=1e6))(shared)
    return keras.Model(x, [large, layers.Dense(2, activation="sigmoid")(shared)])


def hers():
    scaled = layers.Lambda(lambda x: x * keras.ops.convert_to_tensor(np.linspace(1, 2, 16, dtype="float32")) - 128)
    return keras.Sequential([keras.Input((16,)), scaled, layers.Dense(8, activation="relu"), layers.Dense(2)])


SCALES = {
    "pixels of 0..255": (image, lambda shape: RNG.integers(0, 256, size=shape)),
    "pixels of 0..65535": (image, lambda shape: RNG.integers(0, 65536, size=shape)),
    "inputs of 1e-6": (lambda: dense("tanh"), lambda shape: RNG.normal(size=shape) * 1e-6),
    "targets of 1e6": (lambda: dense(last=1e6), lambda shape: RNG.normal(size=shape)),
    "thirty layers": (lambda: dense("selu", depth=30), lambda shape: RNG.normal(size=shape)),
    "adapted to pixels": (normalised, lambda shape: RNG.integers(0, 256, size=shape)),
    "outputs of two scales": (two_scales, lambda shape: RNG.normal(size=shape)),
    "a Lambda of float32 only": (hers, lambda shape: RNG.integers(0, 256, size=shape)),
}


@pytest.mark.parametrize("name", quick(SCALES.keys() - {"pixels of 0..65535"}, SCALES))
def test_at_every_scale_the_same_network_passes_and_another_does_not(name, tmp_path):
    build, samples = SCALES[name]
    keras.utils.set_random_seed(3)
    model = build()
    x = samples((64, *model.input_shape[1:])).astype("float32")

    def outputs():
        made = model.predict(x, verbose=0)
        return tuple(made) if isinstance(made, list) else made

    wanted = outputs()
    error, allowed = onnx_error(model, x, wanted, run_onnx(export_onnx(model, tmp_path / "model.onnx"), x))
    assert error <= allowed
    # The largest weight of the first, the last and two other kernels, changed by 1 %.
    kernels = [variable for variable in model.trainable_variables if variable.path.endswith("kernel")]
    for at in {0, len(kernels) // 3, 2 * len(kernels) // 3, len(kernels) - 1}:
        kernel = kernels[at].numpy()
        changed = kernel.copy()
        changed.flat[np.abs(kernel).argmax()] *= 1.01
        kernels[at].assign(changed)
        found = outputs()
        kernels[at].assign(kernel)
        with pytest.raises(ExportError, match="so this is another network"):
            onnx_error(model, x, wanted, found)


def saturated():
    """Pixels of 16 bits without a scale: every softmax gives a one and zeros."""
    stack = [layers.Conv2D(4, 3, activation="relu"), layers.Flatten(), layers.Dense(3, activation="softmax")]
    return keras.Sequential([keras.Input((6, 6, 1)), *stack])


def two_saturated():
    given = keras.Input((6, 6, 1))
    flat = layers.Flatten()(layers.Conv2D(4, 3, activation="relu")(given))
    return keras.Model(given, [layers.Dense(1, activation="sigmoid")(flat), layers.Dense(2, name="plain")(flat)])


def pixels_saturated():
    stack = [layers.Conv2D(4, 3, activation="relu"), layers.Conv2D(3, 3, activation="softmax")]
    return keras.Sequential([keras.Input((6, 6, 1)), *stack])


def saturated_inside():
    """A whole classifier behind a scale, and another shape behind its softmax."""
    return keras.Sequential([keras.Input((6, 6, 1)), layers.Rescaling(0.5), saturated(), layers.Reshape((3, 1))])


def saturated_beside_one_that_is_read():
    """Only the softmax is nothing but an output: the sigmoid stays, and does not keep the softmax from comparison."""
    given = keras.Input((6, 6, 1))
    flat = layers.Flatten()(given)
    seen = layers.Dense(1, activation="sigmoid", trainable=False)(flat)
    return keras.Model(given, [seen, layers.Dense(3, activation="softmax")(layers.Concatenate()([flat, seen]))])


SATURATED = [saturated, two_saturated, pixels_saturated, saturated_inside, saturated_beside_one_that_is_read]


@pytest.mark.parametrize("build", SATURATED)
def test_a_saturated_softmax_hides_no_wrong_weight(build, tmp_path):
    keras.utils.set_random_seed(2)
    model = build()
    x = RNG.integers(0, 65536, (32, 6, 6, 1)).astype("float32")
    path = export_onnx(model, tmp_path / "model.onnx")
    error, allowed = onnx_file_error(model, path, x)
    assert error <= allowed
    for variable in model.trainable_variables:
        if variable.path.endswith("kernel"):
            kernel = variable.numpy()
            changed = kernel.copy()
            changed.flat[np.abs(kernel).argmax()] *= 1.01
            variable.assign(changed)
            with pytest.raises(ExportError, match="so this is another network"):
                onnx_file_error(model, path, x)
            variable.assign(kernel)


def test_each_output_has_a_scale_of_its_own():
    model = two_scales()
    x = RNG.normal(size=(16, 16)).astype("float32")
    large, small = model.predict(x, verbose=0)
    with pytest.raises(ExportError):
        onnx_error(model, x, (large, small), (large, small + np.float32(1e-4)))


def test_what_cannot_be_exported_is_said_before_the_training():
    def said(model):
        return list(stage_named("export").foresee({ExportConfig: ExportConfig()}, None, model))

    assert said(dense()) == []
    stack = [layers.Discretization(bin_boundaries=[0.0], name="bins"), layers.Dense(3)]
    (line,) = said(keras.Sequential([keras.Input((16,)), *stack]))
    assert line.startswith("layer 'bins' (Discretization) of model")
    memory = layers.GRU(4, stateful=True, name="memory")
    (line,) = said(keras.Sequential([keras.Input((5, 3), batch_size=1), memory, layers.Dense(2)]))
    assert "layer 'memory' (GRU)" in line
    assert "stateful=False" in line
