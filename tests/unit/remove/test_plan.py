import itertools
import json
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import EquivalenceError, MaskError, RemovalError
from fpgaprune.remove import RemovalPlan, squashing_layers
from fpgaprune.values import named_weights


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(3)
    net = keras.Sequential(
        [
            keras.Input((6, 6, 2)),
            layers.Conv2D(4, 3, name="a"),
            layers.BatchNormalization(name="n"),
            layers.ReLU(),
            layers.Conv2D(3, 3, padding="same", activation="relu", name="b"),
            layers.Flatten(),
            layers.Dense(2, name="c"),
        ],
        name="net",
    )
    kernel = np.asarray(net.get_layer("a").kernel).copy()
    kernel[..., [1, 2]] = 0.0
    net.get_layer("a").kernel.assign(kernel)
    net.get_layer("a").bias.assign([0.1, 0.5, 0.25, 0.0])
    kernel = np.asarray(net.get_layer("b").kernel).copy()
    kernel[..., 0] = 0.0
    net.get_layer("b").kernel.assign(kernel)
    net.get_layer("b").bias.assign([0.5, 0.0, 0.0])
    return net


@pytest.fixture(scope="module")
def plan(model):
    return fp.plan_removal(model, strict=True)


def test_kept_indices_and_deltas_say_what_every_small_weight_is(model, plan):
    small = named_weights(fp.apply_removal(model, plan))
    old = named_weights(model)
    for path, variable in small.items():
        value = np.asarray(old[path])[np.ix_(*plan.kept[path])].astype(np.float64)
        if path in plan.deltas:
            np.add.at(value.reshape(-1), plan.deltas[path].at, plan.deltas[path].values)
        assert np.array_equal(np.asarray(variable), value.astype(np.float32))


def test_a_plan_is_read_without_keras():
    code = "import sys, fpgaprune.remove.plan; sys.exit(sorted({'keras', 'tensorflow'} & set(sys.modules)) or 0)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_json_gives_the_plan_back(model, plan):
    text = json.dumps(plan.to_json(), allow_nan=False)
    again = RemovalPlan.from_json(json.loads(text))
    assert json.dumps(again.to_json()) == text
    first, second = (fp.apply_removal(model, p, dtype="float64") for p in (plan, again))
    fp.equivalence(first, second, tolerance=0).require()


@pytest.mark.parametrize("data", [{}, {"format": 1, "model": "net"}])
def test_other_json_is_no_plan(data):
    with pytest.raises(RemovalError, match="plan the removal again"):
        RemovalPlan.from_json(data)


def test_remap_slices_and_frees_what_a_constant_was_folded_into(model, plan):
    masks = fp.MaskSet(
        {path: np.zeros(v.shape, bool) for path, v in named_weights(model).items() if path.split("/")[0] in "abc"}
    )
    small = fp.apply_removal(model, plan)
    mapped = plan.remap(masks)
    assert mapped.fitted(small) == mapped
    values = {path: np.asarray(v) for path, v in named_weights(small).items()}
    old = {path: np.asarray(v) for path, v in named_weights(model).items()}
    for path, mask in mapped.items():
        locked = ~mask
        assert np.array_equal(values[path][locked], old[path][np.ix_(*plan.kept[path])][locked])
    assert mapped["c/bias"].tolist() == [True, True]  # b's first channel was the constant 0.5
    assert mapped["b/kernel"].any()  # the carrier's kernels took over those of the other constant channel
    assert not mapped["c/kernel"].any()


def test_remap_refuses_masks_of_another_model(plan):
    with pytest.raises(MaskError, match="fits no weight of the plan; did you mean a/kernel"):
        plan.remap(fp.MaskSet({"aa/kernel": np.ones((3, 3, 2, 4), bool)}))
    with pytest.raises(MaskError, match=r"has shape \(3,\); the plan's weight has \(4,\)"):
        plan.remap(fp.MaskSet({"a/bias": np.ones(3, bool)}))


def test_explanation_counts_every_channel(plan):
    assert plan.explain() == (
        "net: channels 9 -> 7, parameters 301 -> 191, multiplications 2976 -> 1792\n"
        "a (Conv2D): 3 of 4 stay: 1 border (b), 1 dead, 2 read (b)\n"
        "b (Conv2D): 2 of 3 stay: 1 dead, 2 read (c)\n"
        "c (Dense): 2 of 2 stay: 2 output"
    )


def test_equivalence_says_where_models_differ(model):
    other = keras.models.clone_model(model)
    other.set_weights(model.get_weights())
    other.get_layer("c").bias.assign([0.0, 1.0])
    found = fp.equivalence(model, other, np.zeros((3, 6, 6, 2)), tolerance=1e-9)
    assert not found.ok
    assert found.max_abs_error == pytest.approx(1.0)
    with pytest.raises(EquivalenceError, match="differ by 1 ") as error:
        found.require()
    assert error.value.worst_input[0].shape == (6, 6, 2)
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize("behind", [[], [layers.Reshape((3, 1))], [layers.Dropout(0.5), layers.Flatten()]])
@pytest.mark.parametrize("inside", [False, True])
def test_equivalence_looks_behind_a_saturated_softmax(behind, inside):
    def made(weight):
        classifier = keras.Sequential([keras.Input((2,)), layers.Dense(3, name="a"), layers.Softmax()])
        classifier.get_layer("a").kernel.assign([[weight, 0.0, 0.0], [100.0, 0.0, 0.0]])
        again = [type(layer).from_config(layer.get_config()) for layer in behind]
        return keras.Sequential([keras.Input((2,)), *([classifier] if inside else classifier.layers), *again])

    x = np.ones((2, 2))
    assert fp.equivalence(made(100.0), made(101.0), x, bare=False, tolerance=1e-9).ok
    assert not fp.equivalence(made(100.0), made(101.0), x, tolerance=1e-9).ok
    assert fp.equivalence(made(101.0), made(101.0), x, tolerance=0).ok


def test_equal_logits_make_equal_outputs_only_behind_the_same_function():
    def made(*last):
        model = keras.Sequential([keras.Input((2,)), layers.Dense(3, name="a"), *last])
        model.get_layer("a").kernel.assign([[1.0, 0.0, 2.0], [0.5, 1.0, -1.0]])
        return model

    ends = [(), (layers.Softmax(),), (layers.Activation("sigmoid"),)]
    for one, other in itertools.permutations(ends, 2):
        assert not fp.equivalence(made(*one), made(*other)).ok
    for bare in (True, False):
        written = layers.Activation("softmax")
        assert fp.equivalence(made(layers.Softmax()), made(written), bare=bare, tolerance=0).ok


def test_a_softmax_that_something_else_reads_or_that_is_used_twice_stays():
    x, other = keras.Input((2,)), keras.Input((2,))
    read = layers.Dense(3, activation="softmax")(x)
    shared = layers.Dense(3, activation="sigmoid")
    model = keras.Model(
        [x, other],
        [read, layers.Dense(2, activation="sigmoid", name="last")(read), shared(x), shared(other), layers.ReLU()(x)],
    )
    assert squashing_layers(model) == (None, model.get_layer("last"), None, None, None)


def test_equivalence_refuses_what_cannot_be_compared(model):
    other = keras.Sequential([keras.Input((6, 6, 2)), layers.Flatten(), layers.Dense(3)])
    with pytest.raises(EquivalenceError, match="outputs have shapes"):
        fp.equivalence(model, other)
    with pytest.raises(EquivalenceError, match="wanted one or more samples"):
        fp.equivalence(model, model, np.zeros((0, 6, 6, 2)))


def test_nan_is_an_infinite_difference(model):
    other = keras.models.clone_model(model)
    other.set_weights(model.get_weights())
    other.get_layer("c").bias.assign([0.0, np.nan])
    found = fp.equivalence(model, other, np.zeros((2, 6, 6, 2)))
    assert found.max_abs_error == np.inf
    assert found.to_json()["max_abs_error"] == "inf"
    assert fp.equivalence(other, other, np.zeros((2, 6, 6, 2))).max_abs_error == np.inf


def test_variation_shows_a_comparison_that_says_little(model):
    assert fp.equivalence(model, model).variation > 0.1
    assert fp.equivalence(model, model, np.zeros((3, 6, 6, 2))).variation == 0
