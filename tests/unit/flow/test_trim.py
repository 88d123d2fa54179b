"""The stage `trim`: fewer bits and weights within the limit, under the same locks, exactly as the hardware computes."""

from __future__ import annotations

from dataclasses import replace

import keras
import numpy as np
import pytest
from keras import layers

from fpgaprune.emulate import emulate
from fpgaprune.errors import CertificateError, ConfigError, UnsupportedLayerError
from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.run import RunDirectory
from fpgaprune.flow.stages import (
    STAGES,
    Known,
    artefacts_at,
    hardware_of,
    inputs_of,
    stage_named,
)
from fpgaprune.flow.task import predict, start_session
from fpgaprune.frontends import load_keras
from fpgaprune.network import save_keras
from fpgaprune.quantise import RoundedChannels
from fpgaprune.trim import DenseNetwork, untrimmable
from fpgaprune.values import MaskSet, weight_arrays

from .stage_runs import stage_context

TYPES = {"x": {"result": "fixed<5,1,RND,SAT>"}, "relu": {"result": "ufixed<4,2,RND,SAT>"}}
FILES = ("trimmed.keras", "trimmed_masks.npz")


def network(last="softmax"):
    """Two Dense layers of powers of two behind each other; one input decides, an unread one has a bias alone."""
    rng = np.random.default_rng(0)
    model = keras.Sequential(
        [
            keras.Input((2, 3), name="x"),
            layers.Flatten(name="flat"),
            layers.Dense(5, name="first"),
            layers.Activation("relu", name="relu"),
            layers.Dense(2, name="second"),
            layers.Activation(last, name="last"),
        ]
    )
    first = rng.choice([-0.25, 0.25], (6, 5))
    first[2], first[0], first[4:, 1:] = 2, 0, 0
    model.get_layer("first").set_weights([first, np.full(5, 0.125)])
    model.get_layer("second").set_weights([np.array([[-1, 1]] * 4 + [[0, 0]]), np.array([1, 0])])
    return model


def context(folder, **keys):
    """A run whose network was trained while it rounded."""
    start_session(3)
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (300, 2, 3)).astype(np.float32)
    y = (x[:, 0, 2] > 0).astype(np.int64)
    config = parse_config({"quantise": {"epochs": 1}, "trim": {"max_loss": "1 %", **keys}}, "flow.toml")
    model = network()
    masks = {path: array != 0 for path, array in weight_arrays(model).items() if path.endswith("kernel")}
    return stage_context(folder, config, model, masks, (x, y), "quantised", TYPES)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """What the stage was given, and what it returned."""
    given = context(tmp_path_factory.mktemp("run"))
    return given, stage_named("trim").run(given)


def test_the_network_is_smaller_and_keeps_its_limit(done):
    given, results = done
    assert results.trimmed.lost <= 0.01
    assert results.metric.value >= 0.98
    (weights, fewer), (bits, narrower) = results.weights, results.bits
    assert weights == 25
    assert fewer < weights / 2
    assert narrower < bits / 2
    assert results.rounds > 3
    kernels = [array for path, array in weight_arrays(load_keras(given.run.file(FILES[0]))).items() if "kernel" in path]
    assert sum(np.count_nonzero(kernel) for kernel in kernels) == fewer


def test_its_bits_are_those_of_the_hardware(done):
    given, _ = done
    model = load_keras(given.run.file(FILES[0]))
    logits = keras.Model(model.input, model.get_layer("second").output)
    design = hardware_of(given.config, given.data).without_widths().design(logits)
    assert np.array_equal(emulate(design, given.data.x_test), predict(logits, given.data.x_test))


def test_locks_hold_and_all_zeros_are_certified(done):
    given, results = done
    before, after = given.masks("quantised_masks.npz"), MaskSet.load(given.run.file(FILES[1]))
    arrays = weight_arrays(load_keras(given.run.file(FILES[0])))
    for path, mask in before.items():
        assert not (after[path] & ~mask).any()
        assert np.array_equal(after[path], arrays[path] != 0)
    (link,) = results.links
    assert (link.link, link.violations) == ("trimmed.keras", 0)
    assert list(stage_named("trim").claims(given.run)) == []


def test_a_lock_that_is_left_out_is_noticed(done, tmp_path):
    given, _ = done
    run = RunDirectory(tmp_path)
    masks = {path: np.array(mask) for path, mask in MaskSet.load(given.run.file(FILES[1])).items()}
    masks["first/kernel"][0, 0] = True
    with run.locked():
        given.masks("quantised_masks.npz").save(run.file("quantised_masks.npz"))
        MaskSet(masks).save(run.file(FILES[1]))
    (line,) = stage_named("trim").claims(run)
    assert line == "trimmed_masks.npz: the mask for 'first/kernel' leaves out locks of quantised_masks.npz"


def test_a_weight_that_is_not_zero_is_noticed(done, tmp_path):
    given, _ = done
    model = load_keras(given.run.file(FILES[0]))
    kernel, bias = model.get_layer("first").get_weights()
    kernel[0, 0] = 0.25
    model.get_layer("first").set_weights([kernel, bias])
    run = RunDirectory(tmp_path)
    with run.locked():
        save_keras(model, run.file(FILES[0]))
        MaskSet.load(given.run.file(FILES[1])).save(run.file(FILES[1]))
    with pytest.raises(CertificateError, match="locked"):
        replace(given, run=run).artefacts.proven(stage_named("trim").links)


def test_later_stages_read_the_trimmed_network(done):
    given, results = done
    number = STAGES.index(stage_named("trim"))
    run = RunDirectory(given.run.path)
    run.record("trim", "k", {}, run.digests(FILES), results.to_json(), 1.0)
    found = artefacts_at(STAGES[: number + 1], run)
    assert inputs_of(stage_named("export"), STAGES, found) == FILES
    assert found.types() == {}


def test_it_says_what_it_took_away(done):
    given, results = done
    (check,) = stage_named("trim").part(given, results).checks
    assert (check.measured, check.limit) == (results.trimmed.lost, 0.01)
    (line,) = stage_named("trim").outcome(results)
    assert line.text.startswith("trimmed     weights 25 to ")


def test_without_a_limit_it_leaves_nothing(tmp_path):
    given = context(tmp_path, max_loss=None)
    assert stage_named("trim").run(given) is None
    assert not any(given.run.file(name).exists() for name in FILES)


def test_where_no_smaller_network_keeps_the_limit_the_trained_one_stays(tmp_path, monkeypatch):
    monkeypatch.setattr("fpgaprune.flow.stages.trim.parse_loss", lambda text: -1.0)
    given = context(tmp_path)
    result = stage_named("trim").run(given)
    assert result.left_out == "no network on the way loses at most 1 % on the samples that choose it"
    assert not any(given.run.file(name).exists() for name in FILES)
    assert stage_named("trim").part(given, result).left_out == result.left_out
    assert stage_named("trim").readings(result) == {}
    (line,) = stage_named("trim").outcome(result)
    assert line.text.startswith("trimmed     left out: no network")


def test_the_loss_is_that_against_the_network_as_it_was_trained():
    x = np.full((1, 6), 0.99 / 16, np.float32)
    found = DenseNetwork.read(network(), TYPES, np.zeros((1, 6), np.float32))
    # 0.99 of a step is rounded up in training, and cut off afterwards.
    assert np.array_equal(found.trained.outputs(x), found.trained.outputs(np.full((1, 6), 1 / 16, np.float32)))
    assert np.array_equal(found.chain.outputs(x), found.chain.outputs(np.zeros((1, 6), np.float32)))


def test_a_network_that_never_rounded_is_refused():
    config = parse_config({"trim": {"max_loss": "1 %"}}, "flow.toml")
    (check,) = stage_named("trim").checks(Known(config, None))
    with pytest.raises(ConfigError, match="not trained while it rounds"):
        check()


@pytest.mark.parametrize(
    ("hidden", "line"),
    [
        ([layers.Conv2D(2, 2, name="conv"), layers.Flatten()], "layer 'conv' is Conv2D; wanted Dense layers"),
        ([layers.Flatten(), layers.Dense(3, "tanh", name="one")], "layer 'one' has the activation 'tanh'; wanted"),
        ([layers.Flatten(), layers.Dense(3, name="one")], "layer 'one' has no activation; wanted Dense layers"),
        ([layers.Flatten(), layers.Dense(3), layers.ReLU(6, name="six")], "layer 'six' has the activation 'ReLU'"),
        ([layers.Dense(3, "relu", name="rows"), layers.Flatten(name="late")], "layer 'rows' is Dense; wanted"),
    ],
)
def test_what_is_no_row_of_dense_layers_is_named(hidden, line):
    model = keras.Sequential([keras.Input((4, 4, 1)), *hidden, layers.Dense(2, name="end")])
    found = list(untrimmable(model))
    assert found[0].startswith(line)
    with pytest.raises(UnsupportedLayerError, match="trim: "):
        DenseNetwork.read(model, {}, np.zeros((1, 16), np.float32))


def test_only_the_first_layer_that_does_not_suit_is_named_before_training():
    config = parse_config({"quantise": {"epochs": 1}, "trim": {"max_loss": "1 %"}}, "flow.toml")
    model = keras.Sequential([keras.Input((8, 1)), layers.Conv1D(2, 3, name="conv"), layers.Flatten(), layers.Dense(2)])
    (line,) = stage_named("trim").foresee(config, None, model)
    wanted = "wanted Dense layers one behind another with ReLU between them; or leave [trim] out"
    assert line == f"trim.max_loss: layer 'conv' is Conv1D; {wanted}"


def test_a_softmax_of_its_own_is_a_last_activation():
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.Softmax()])
    assert list(untrimmable(model)) == []
    assert list(untrimmable(keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.Softmax(0)]))) != []


def test_a_usual_network_can_be_trimmed():
    usual = [layers.Dense(3, "relu"), layers.BatchNormalization(), layers.Dropout(0.1), layers.Dense(3), layers.ReLU()]
    model = keras.Sequential([keras.Input((4,)), *usual, layers.Dense(1, "sigmoid")])
    assert list(untrimmable(model)) == []


def test_a_type_that_wraps_is_refused():
    wraps = {**TYPES, "relu": {"result": "ufixed<4,2>"}}
    with pytest.raises(UnsupportedLayerError, match=r"'relu' has the type ufixed<4,2>; wanted RND and SAT"):
        DenseNetwork.read(network(), wraps, np.zeros((1, 6), np.float32))


def test_a_chain_becomes_the_same_network_again():
    x = np.random.default_rng(1).uniform(-1, 1, (50, 6)).astype(np.float32)
    found = DenseNetwork.read(network("linear"), TYPES, x)
    model = found.with_chain(found.chain)
    assert np.array_equal(predict(model, x.reshape(-1, 2, 3)), found.chain.outputs(x))
    rounds = [layer for layer in model.layers if isinstance(layer, RoundedChannels)]
    assert [(layer.name, layer.rounding) for layer in rounds] == [
        ("x_rounded", "TRN"),
        ("first_input", "TRN"),
        ("second_input", "RND"),
    ]
