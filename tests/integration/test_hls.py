"""From Keras to a Design: the same function on its grid, whatever the layers are; and projects that are whole."""

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.emulate import trace
from fpgaprune.errors import CertificateError, HlsError
from fpgaprune.hls import to_hls
from fpgaprune.lowering import fold, make_design
from fpgaprune.values import named_weights
from tests.called import called

TARGET = fp.Target.of("xc7z020clg400-1")
FINE = fp.Precision(weight_bits=14, activation_bits=14, sum_bits=20)


def randomise(model, seed=0):
    rng = np.random.default_rng(seed)
    for path, variable in named_weights(model).items():
        values = rng.normal(size=variable.shape) * (0.3 if path.endswith("kernel") else 0.1)
        variable.assign(np.abs(values) + 0.8 if path.endswith(("moving_variance", "gamma")) else values)
    return model


def branched():
    """Activations inside layers and outside, BatchNorm with and without a bias before it, a residual, averages."""
    image = keras.Input((8, 8, 2), name="input")
    stem = layers.Conv2D(4, 3, padding="same", activation="relu", name="stem")(image)
    path = layers.Conv2D(4, 3, padding="same", use_bias=False, name="inner")(stem)
    path = layers.ReLU(name="inner_out")(layers.BatchNormalization(name="norm")(path))
    path = layers.Conv2D(4, 1, name="outer")(path)
    out = layers.Activation("relu", name="sum_out")(layers.Add(name="sum")([stem, path]))
    out = layers.AveragePooling2D(2, name="average")(layers.Dropout(0.5)(out))
    out = layers.GlobalAveragePooling2D(name="all")(out)
    return keras.Model(image, layers.Dense(3, name="head")(out), name="branched")


def sequential(last="softmax"):
    return keras.Sequential(
        [
            keras.Input((8, 8, 2)),
            layers.Conv2D(4, 3, name="conv"),
            layers.BatchNormalization(name="norm"),
            layers.ReLU(name="relu"),
            layers.MaxPooling2D(name="pool"),
            layers.Flatten(name="flat"),
            layers.Dense(5, activation="relu", name="hidden"),
            layers.Dense(3, activation=last, name="head"),
        ],
        name="sequential",
    )


def samples(count=64, seed=3):
    return np.random.default_rng(seed).random((count, 8, 8, 2), dtype=np.float32)


@pytest.mark.parametrize("build", [branched, sequential])
def test_folding_keeps_the_function_and_leaves_the_model(build):
    model = randomise(build())
    before = {path: variable.numpy().copy() for path, variable in named_weights(model).items()}
    folded = fold(model)
    x = samples()
    wanted = called(model, x)
    assert np.abs(called(folded, x) - wanted).max() <= 1e-5 * np.abs(wanted).max()
    assert all(np.array_equal(variable.numpy(), before[path]) for path, variable in named_weights(model).items())
    kinds = [type(layer) for layer in folded.layers]
    assert not {layers.BatchNormalization, layers.Dropout, layers.ReLU} & set(kinds)


@pytest.mark.parametrize("io_type", ["io_stream", "io_parallel"])
@pytest.mark.parametrize("build", [branched, lambda: sequential("linear")], ids=["branched", "sequential"])
def test_a_design_computes_what_keras_computes(build, io_type):
    model = randomise(build())
    target = fp.Target.of("xc7z020clg400-1", io_type=io_type)
    x = samples()
    design = make_design(model, target, x, FINE)
    wanted = called(model, x)
    # A type that is too narrow anywhere, or left at hls4ml's default, is off by far more.
    assert np.abs(fp.emulate(design, x) - wanted).max() <= 0.01 * np.abs(wanted).max()
    assert all(layer.types["result"].width <= 40 for layer in design.layers)


def test_a_softmax_keeps_the_class():
    model = randomise(sequential())
    x = samples()
    given = fp.emulate(make_design(model, TARGET, x, FINE), x)
    wanted = called(model, x)
    # Half the error of the logits, and what the tables may cost.
    assert np.abs(given - wanted).max() <= 0.02
    ordered = np.sort(wanted, axis=-1)
    clear = ordered[:, -1] - ordered[:, -2] > 0.1
    assert clear.any()
    assert (given.argmax(axis=-1) == wanted.argmax(axis=-1))[clear].all()


def test_no_accumulator_can_overflow():
    model = randomise(branched())
    design = make_design(model, TARGET, samples(), fp.Precision())
    traced = trace(design, np.full((1, 8, 8, 2), 100.0, dtype=np.float32))
    for layer in design.layers:
        if "weight" in layer.weights:
            kind = layer.types["accum"]
            incoming = design[layer.inputs[0]].types["result"]
            largest = np.abs(layer.weights["weight"]).reshape(-1, layer.output_shape[-1]).sum(axis=0) * incoming.raw_max
            assert (largest + np.abs(layer.weights["bias"]) <= kind.raw_max).all()
    assert all(np.isfinite(values).all() for values in traced.values())


def test_locked_kernels_arrive_as_zero_integers(tmp_path):
    model = randomise(branched())
    masks = fp.MaskSet.from_slices(model, ["inner/kernel[:, :, 1, 2]", "head/kernel[3]"])
    for path, mask in masks.items():
        variable = named_weights(model)[path]
        variable.assign(np.where(mask, variable.numpy(), np.float32(0)))
    project = to_hls(model, TARGET, samples(), tmp_path / "hls")
    assert fp.certify(project, masks).require().ok
    assert not project.design["inner"].weights["weight"][:, :, 1, 2].any()
    with pytest.raises(CertificateError, match="not exactly zero"):
        fp.certify(project, fp.MaskSet.from_slices(model, ["inner/kernel"])).require()


def test_writing_twice_gives_the_same_bytes_and_nothing_of_this_machine(tmp_path):
    model = randomise(sequential())
    texts = []
    for name in ("first", "second", "first"):
        folder = tmp_path / name
        to_hls(model, TARGET, samples(), folder)
        texts.append({p.relative_to(folder): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()})
    assert texts[0] == texts[1] == texts[2]
    assert not [path for path, data in texts[0].items() if str(tmp_path).encode() in data]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["first", "second"]


def test_bad_input_is_named_and_nothing_is_written(tmp_path):
    model = randomise(sequential())
    for name in ("2d net", "auto", "main"):
        with pytest.raises(HlsError, match=f"project name '{name}' is not a free C identifier"):
            to_hls(model, TARGET, samples(), tmp_path / "hls", name=name)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(HlsError, match="holds other files"):
        to_hls(model, TARGET, samples(), tmp_path / "mine")
    with pytest.raises(HlsError, match="weight_bits is 1; wanted a whole number from 2 to 32"):
        fp.Precision(weight_bits=1)
    kernel = model.get_layer("conv").kernel
    kernel.assign(kernel.numpy() * np.nan)
    with pytest.raises(HlsError, match="holds NaN or infinity"):
        to_hls(model, TARGET, samples(), tmp_path / "hls")
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine"]
