"""Weight paths: one weight by the model's path or by Keras's own, wherever a path is taken."""

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import CertificateError, LockError, MaskError
from fpgaprune.flow.task import small_cnn, small_cnn_shapes
from fpgaprune.network import read_keras_weights, save_keras
from fpgaprune.report import layer_reports
from fpgaprune.select import close, from_fixed, guard, regrow, rewind
from fpgaprune.train import LockedOptimizer, freeze
from fpgaprune.values import match_paths, named_weights, weight_path, weight_shapes


def sequential():
    stack = [keras.Input((4, 4, 2)), layers.Conv2D(3, 3, name="conv1"), layers.Conv2D(2, 1, name="conv2")]
    return keras.Sequential([*stack, layers.Flatten(), layers.Dense(2, name="fc")], name="sequential")


def functional():
    inputs = keras.Input((4, 4, 2))
    return keras.Model(inputs, layers.Conv2D(2, 1, name="conv2")(inputs), name="functional")


def encoder(name="encoder"):
    inputs = keras.Input((4, 4, 2))
    return keras.Model(inputs, layers.Conv2D(2, 1, name="conv2")(inputs), name=name)


def nested(*inner):
    inputs = keras.Input((4, 4, 2))
    x = inputs
    for model in inner:
        x = model(x)
    return keras.Model(inputs, layers.Conv2D(1, 1, name="last")(x), name="outer")


def sequential_in_sequential():
    model = keras.Sequential([keras.Sequential([layers.Conv2D(2, 1, name="conv2")], name="inner")], name="outer")
    model.build((None, 4, 4, 2))
    return model


def recurrent():
    return keras.Sequential([keras.Input((4, 2)), layers.GRU(3, name="gru"), layers.Dense(2)], name="rnn")


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__(name="own")
        self.fc = layers.Dense(2, name="fc")

    def call(self, inputs):
        return self.fc(inputs)


def subclassed():
    model = Subclassed()
    model(np.zeros((1, 3), np.float32))
    return model


@pytest.mark.parametrize(
    "build",
    [sequential, functional, lambda: nested(encoder()), sequential_in_sequential, recurrent, subclassed],
    ids=["sequential", "functional", "nested", "sequential in sequential", "recurrent", "subclassed"],
)
def test_each_weight_is_found_under_the_path_that_keras_gives_it(build):
    model = build()
    weights = named_weights(model)
    for path, variable in weights.items():
        assert weight_path(variable.path, weights) == path
        assert match_paths(variable.path, weight_shapes(model)) == [path]
        masks = fp.MaskSet.from_slices(model, [variable.path])
        assert list(masks) == [path]
        assert fp.MaskSet({variable.path: masks[path]}).fitted(model) == masks


def test_a_path_of_before_saving_names_the_weight_of_the_loaded_model(tmp_path):
    for model in (sequential(), nested(encoder())):
        paths = {variable.path: path for path, variable in named_weights(model).items()}
        save_keras(model, tmp_path / "model.keras")
        loaded = named_weights(keras.models.load_model(tmp_path / "model.keras"))
        saved = read_keras_weights(tmp_path / "model.keras")
        assert {name: weight_path(name, loaded) for name in paths} == paths
        assert {name: weight_path(name, saved) for name in paths} == paths


def test_the_shapes_of_the_built_in_network_know_its_names():
    known = small_cnn_shapes((8, 8, 1), 10)
    assert match_paths("small_cnn/conv2/kernel", known) == ["conv2/kernel"]
    weights = named_weights(small_cnn((8, 8, 1), 10))
    assert {weight_path(variable.path, known) for variable in weights.values()} == set(known)


def test_one_path_of_several_weights_is_refused_by_name():
    model = nested(encoder("a"), encoder("b"))
    with pytest.raises(MaskError) as error:
        fp.MaskSet.from_slices(model, ["conv2/kernel"])
    assert str(error.value) == (
        "'conv2/kernel' is Keras's path of 2 weights, 'a/conv2/kernel' and 'b/conv2/kernel'; name the one you mean"
    )
    assert list(fp.MaskSet.from_slices(model, ["b/conv2/kernel"])) == ["b/conv2/kernel"]


def test_two_names_of_one_weight_are_refused_by_name():
    mask = np.ones((1, 1, 3, 2), bool)
    with pytest.raises(MaskError) as error:
        fp.MaskSet({"conv2/kernel": mask, "sequential/conv2/kernel": ~mask}).fitted(sequential())
    assert (
        str(error.value) == "'conv2/kernel' and 'sequential/conv2/kernel' name the same weight; leave one of them out"
    )


def test_a_weight_path_wins_over_keras_own():
    """`conv2/kernel` is the path of the outer layer, and what Keras calls the inner one."""
    inputs = keras.Input((4, 4, 2))
    model = keras.Model(inputs, layers.Conv2D(1, 3, name="conv2")(encoder()(inputs)))
    assert fp.MaskSet.from_slices(model, ["conv2/kernel"])["conv2/kernel"].shape == (3, 3, 2, 1)
    assert match_paths("conv*/kernel", named_weights(model)) == ["conv2/kernel"]


def test_globs_and_expressions_are_tried_on_keras_own_paths():
    import re

    weights = named_weights(sequential())
    assert match_paths("sequential/conv*/kernel", weights) == ["conv1/kernel", "conv2/kernel"]
    assert match_paths("seq*/*", weights) == list(weights)
    with pytest.raises(MaskError, match="matches no weight"):
        match_paths("other/conv*/kernel", weights)
    model = sequential()
    assert freeze(model, re.compile(r"sequential/conv1/.*")) == ["conv1/kernel", "conv1/bias"]
    assert freeze(model, "sequential/conv2/*") == ["conv2/kernel", "conv2/bias"]


def test_an_unknown_path_keeps_its_error():
    with pytest.raises(MaskError, match="fits no weight; did you mean conv2/kernel"):
        fp.MaskSet({"other/conv2/kernel": np.ones((1, 1, 3, 2), bool)}).fitted(sequential())


def locked_mask():
    mask = np.ones((1, 1, 3, 2), bool)
    mask[..., 1, 0] = False
    return mask


def test_a_lock_takes_keras_own_paths(tmp_path):
    """Masks, values, certificate, plan and file: by Keras's paths all of them."""
    model = sequential()
    model.compile("sgd", "mse")
    masks = fp.MaskSet({"sequential/conv2/kernel": locked_mask()})
    held = np.full((1, 1, 3, 2), 0.5, np.float32)
    fp.lock(model, masks, values={"sequential/conv2/kernel": held})
    fp.relock(model, {"conv2/kernel": locked_mask()}, values={"sequential/conv2/kernel": held})
    x = np.random.default_rng(0).normal(size=(8, 4, 4, 2)).astype("float32")
    model.fit(x, np.ones((8, 2), "float32"), verbose=0)
    assert model.layers[1].kernel.numpy()[0, 0, 1, 0] == 0.5
    fp.unlock(model)
    fp.finetune(model, masks, x, np.ones((8, 2), "float32"))
    assert fp.certify(model, masks).ok
    save_keras(model, tmp_path / "model.keras")
    assert fp.certify(tmp_path / "model.keras", masks).ok
    assert fp.plan_removal(model).remap(masks)["conv2/kernel"].shape == (1, 1, 3, 2)
    arrays = fp.weight_arrays(model)
    assert [report.kernels_locked for report in layer_reports(arrays, arrays, masks, {})] == [0, 1, 0]
    model.layers[1].kernel.assign(np.ones((1, 1, 3, 2)))
    assert not fp.certify(model, masks).ok


def test_the_optimizer_of_a_custom_loop_takes_both_names():
    for weights in (None, named_weights):
        model = sequential()
        kernel, held = model.layers[1].kernel, np.full((1, 1, 3, 2), 0.5, np.float32)
        given = None if weights is None else weights(model)
        masks, values = {"conv2/kernel": locked_mask()}, {"sequential/conv2/kernel": held}
        optimizer = LockedOptimizer(keras.optimizers.SGD(), masks, values=values, weights=given)
        optimizer.build(model.trainable_variables)
        assert kernel.numpy()[0, 0, 1, 0] == 0.5
        optimizer.change(fp.MaskSet({"sequential/conv2/kernel": ~locked_mask()}), values)
        assert (kernel.numpy()[~locked_mask()] == 0.5).all()
        assert list(optimizer.masks) == ["conv2/kernel"]
    twice = LockedOptimizer(keras.optimizers.SGD(), {**masks, "sequential/conv2/kernel": locked_mask()})
    with pytest.raises(LockError, match="'conv2/kernel' and 'sequential/conv2/kernel' are of the same weight"):
        twice.build(model.trainable_variables)


def test_selection_takes_keras_own_paths():
    model = sequential()
    base = fp.MaskSet({"sequential/conv2/kernel": locked_mask()})
    chosen = fp.select(model, {"sequential/conv*/kernel": 0.25}, base=base, protect=["sequential/conv1/*"])
    assert set(chosen) == {"conv1/kernel", "conv2/kernel"}
    assert chosen["conv1/kernel"].all()
    assert not chosen["conv2/kernel"][0, 0, 1, 0]

    def scores(model, data):
        return {variable.path: np.abs(variable.numpy()) for variable in model.weights}

    assert fp.select(model, 0.5, criterion=scores) == fp.select(model, 0.5)
    assert list(from_fixed(model, {"sequential/fc/kernel": "fixed<8,1>"})) == ["fc/kernel"]
    assert next(iter(close(base, model).masks)) == "conv2/kernel"
    assert guard(model, base) == guard(model, base.fitted(model))
    grown = regrow(base, 1.0, model, granularity="weight", gradients={"conv2/kernel": np.ones((1, 1, 3, 2))})
    assert list(grown) == ["conv2/kernel"]
    assert grown["conv2/kernel"].all()
    early = {variable.path: variable.numpy() + 1 for variable in model.weights}
    rewind(model, early, base)
    assert model.layers[1].kernel.numpy()[0, 0, 1, 0] == 0
    assert np.array_equal(model.layers[0].kernel.numpy(), early["sequential/conv1/kernel"])


def test_a_file_that_does_not_know_the_name_is_not_certified(tmp_path):
    """An ONNX file has no name of the Sequential: a bias would count as merged into another initialiser."""
    model = sequential()
    masks = fp.MaskSet({"sequential/conv2/bias": np.zeros(2, bool)})
    model.layers[1].bias.assign(np.ones(2))
    fp.export_onnx(model, tmp_path / "model.onnx")
    with pytest.raises(CertificateError, match=r"'conv2/bias' is; give the masks .*masks.fitted\(model\)"):
        fp.certify(tmp_path / "model.onnx", masks)
    assert not fp.certify(tmp_path / "model.onnx", masks.fitted(model)).ok
