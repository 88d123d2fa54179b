"""The exact cases of a dead channel, each in the smallest network that shows it."""

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import RemovalError, UnsupportedLayerError


def chain(*stack, shape=(6, 6, 2), seed=0):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([keras.Input(shape), *stack], name="net")
    generator = np.random.default_rng(seed)
    for variable in model.weights:
        if "seed" in variable.path:
            continue
        low = 0.5 if "variance" in variable.path else -1.0
        variable.assign(generator.uniform(low, 1.0, variable.shape))
    return model


def put(model, path, index, value):
    variable = fp_weights(model)[path]
    array = np.asarray(variable).copy()
    array[index] = value
    variable.assign(array)


def fp_weights(model):
    from fpgaprune.values import named_weights

    return named_weights(model)


def shrunk(model, **options):
    before = [np.asarray(v).copy() for v in model.weights]
    plan = fp.plan_removal(model, **options)
    small = fp.apply_removal(model, plan, dtype="float64")
    after = [np.asarray(v) for v in model.weights]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    fp.equivalence(model, small, tolerance=1e-12).require()
    assert fp.plan_removal(small).empty
    return plan, small


def reasons(plan, path):
    return next(layer.reasons for layer in plan.channels if layer.path == path)


def test_constant_zero_leaves_even_before_a_zero_padded_convolution():
    model = chain(layers.Conv2D(3, 3, activation="relu", name="a"), layers.Conv2D(2, 3, padding="same", name="b"))
    put(model, "a/kernel", (..., 1), 0.0)
    put(model, "a/bias", 1, -0.5)
    plan, small = shrunk(model)
    assert reasons(plan, "a") == ("read", "dead", "read")
    assert plan.deltas == {}
    assert small.get_layer("a").filters == 2
    assert small.get_layer("b").kernel.shape == (3, 3, 2, 2)


@pytest.mark.parametrize("reader", [{"kernel_size": 3}, {"kernel_size": 1, "padding": "same"}])
def test_constant_folds_into_the_bias_of_an_unpadded_reader(reader):
    model = chain(layers.Conv2D(3, 3, activation="relu", name="a"), layers.Conv2D(2, **reader, name="b"))
    put(model, "a/kernel", (..., 1), 0.0)
    put(model, "a/bias", 1, 0.5)
    plan, _ = shrunk(model)
    assert reasons(plan, "a") == ("read", "dead", "read")
    kernel = np.asarray(model.get_layer("b").kernel).astype(np.float64)
    assert plan.deltas["b/bias"].values == pytest.approx(0.5 * kernel[:, :, 1].sum(axis=(0, 1)), rel=1e-15)


def test_a_reader_without_bias_gets_one():
    model = chain(
        layers.Conv2D(3, 3, name="a"),
        layers.Conv2D(2, 3, use_bias=False, name="b"),
        layers.Flatten(),
        layers.Dense(2, use_bias=False, name="c"),
    )
    put(model, "a/kernel", (..., 0), 0.0)
    plan, small = shrunk(model)
    assert plan.config["b"]["use_bias"] is True
    assert small.get_layer("b").use_bias
    assert not small.get_layer("c").use_bias
    assert plan.parameters[1] == small.count_params()


def test_one_constant_channel_stays_at_a_zero_padded_border():
    model = chain(layers.Conv2D(5, 3, name="a"), layers.Conv2D(2, 3, padding="same", name="b"))
    put(model, "a/kernel", (..., slice(0, 3)), 0.0)
    put(model, "a/bias", slice(0, 3), [0.25, -0.5, 0.125])
    plan, small = shrunk(model)
    assert reasons(plan, "a") == ("dead", "border", "dead", "read", "read")
    assert small.get_layer("a").filters == 3
    assert set(plan.deltas) == {"b/kernel"}


def test_integer_constants_only_merge_into_divisors():
    model = chain(layers.Conv2D(4, 3, name="a"), layers.Conv2D(2, 3, padding="same", name="b"))
    for variable in model.weights:
        variable.assign(np.round(3 * np.asarray(variable)))
    put(model, "a/kernel", (..., slice(0, 3)), 0.0)
    put(model, "a/bias", slice(0, 3), [6.0, 2.0, 3.0])
    plan = fp.plan_removal(model)
    assert reasons(plan, "a") == ("dead", "border", "border", "read")
    small = fp.apply_removal(model, plan)
    x = np.random.default_rng(1).integers(-4, 5, (5, 6, 6, 2)).astype("float32")
    assert fp.equivalence(model, small, x, dtype=None, tolerance=0).require().max_ulp == 0


def test_stride_and_size_may_leave_same_padding_without_zeros():
    model = chain(layers.Conv2D(3, 1, name="a"), layers.Conv2D(2, 2, strides=2, padding="same", name="b"))
    put(model, "a/kernel", (..., 0), 0.0)
    plan, _ = shrunk(model)
    assert reasons(plan, "a")[0] == "dead"


def test_unread_channel_leaves_whatever_its_value():
    model = chain(layers.Conv2D(3, 3, name="a"), layers.Conv2D(2, 3, padding="same", name="b"))
    put(model, "b/kernel", (slice(None), slice(None), 2), 0.0)
    plan, _ = shrunk(model)
    assert reasons(plan, "a") == ("read", "read", "unread")


def test_death_and_disuse_travel_through_many_layers():
    model = chain(
        layers.Conv2D(2, 1, name="a"),
        layers.Conv2D(2, 1, name="b"),
        layers.Conv2D(2, 1, name="c"),
        layers.Conv2D(2, 1, name="d"),
    )
    # Only a1 feeds b1, only b1 feeds c1, and nothing reads c1.
    put(model, "d/kernel", (0, 0, 1), 0.0)
    put(model, "c/kernel", (0, 0, 1, 0), 0.0)
    put(model, "b/kernel", (0, 0, 1, 0), 0.0)
    plan, _ = shrunk(model)
    assert [len(layer.kept) for layer in plan.channels] == [1, 1, 1, 2]
    assert reasons(plan, "a") == ("read", "unread")


def test_constant_goes_through_batch_normalization_and_activation():
    model = chain(
        layers.Conv2D(3, 3, name="a"),
        layers.BatchNormalization(name="n"),
        layers.Activation("tanh"),
        layers.Conv2D(2, 3, name="b"),
    )
    put(model, "a/kernel", (..., 2), 0.0)
    plan, small = shrunk(model)
    w = {path: np.asarray(v).astype(np.float64) for path, v in fp_weights(model).items()}
    scaled = (w["a/bias"][2] - w["n/moving_mean"][2]) / np.sqrt(w["n/moving_variance"][2] + 1e-3)
    constant = next(layer for layer in plan.channels if layer.path == "a").constants[2]
    assert constant == pytest.approx(np.tanh(w["n/gamma"][2] * scaled + w["n/beta"][2]), rel=1e-14)
    assert small.get_layer("n").gamma.shape == (2,)


def test_gamma_of_zero_makes_a_channel_dead():
    model = chain(
        layers.Conv2D(3, 3, name="a"), layers.BatchNormalization(name="n"), layers.ReLU(), layers.Conv2D(2, 3, name="b")
    )
    put(model, "n/gamma", 1, 0.0)
    plan, _ = shrunk(model)
    assert reasons(plan, "a")[1] == "dead"


def test_flatten_takes_every_position_of_a_channel():
    model = chain(layers.Conv2D(3, 3, activation="relu", name="a"), layers.Flatten(), layers.Dense(2, name="b"))
    put(model, "a/kernel", (..., 1), 0.0)
    put(model, "a/bias", 1, 0.5)
    plan, small = shrunk(model)
    assert plan.kept["b/kernel"][0].tolist() == [k for k in range(48) if k % 3 != 1]
    assert small.get_layer("b").kernel.shape == (32, 2)


def test_a_channel_read_at_one_position_only_stays():
    model = chain(layers.Conv2D(3, 3, name="a"), layers.Flatten(), layers.Dense(2, name="b"))
    put(model, "b/kernel", slice(None), 0.0)
    put(model, "b/kernel", 7, 1.0)
    plan, _ = shrunk(model)
    assert reasons(plan, "a") == ("unread", "read", "unread")


def test_softmax_inside_a_network_keeps_all_that_it_mixes():
    model = chain(layers.Dense(3, name="a"), layers.Softmax(), layers.Dense(2, name="b"), shape=(4,))
    put(model, "a/kernel", (slice(None), 1), 0.0)
    plan, _ = shrunk(model)
    assert reasons(plan, "a") == ("mixed", "mixed", "mixed")


def test_a_tensor_never_loses_its_last_channel():
    keras.utils.set_random_seed(0)
    x = keras.Input((6, 6, 2), name="x")
    branch = layers.Conv2D(3, 1, name="a")(x)
    branch = layers.Conv2D(2, 1, name="b")(branch)
    model = keras.Model(x, layers.Maximum()([branch, layers.Conv2D(2, 1, name="c")(x)]))
    put(model, "a/kernel", slice(None), 0.0)
    put(model, "a/bias", slice(None), [0.5, 0.0, -1.0])
    plan, small = shrunk(model)
    assert reasons(plan, "a") == ("dead", "last", "dead")
    assert small.get_layer("a").filters == 1


def test_a_dead_network_is_an_error():
    model = chain(layers.Conv2D(2, 3, name="a"), layers.ReLU(), layers.Flatten(), layers.Dense(2, name="b"))
    put(model, "a/kernel", slice(None), 0.0)
    with pytest.raises(RemovalError) as error:
        fp.plan_removal(model)
    assert str(error.value) == (
        "every output of model 'net' is a constant: the network is dead; prune less, or train again"
    )


@keras.saving.register_keras_serializable("fpgaprune-tests")
class Conv2DOfSomeoneElse(layers.Conv2D):
    def call(self, inputs):
        return super().call(inputs) + keras.ops.mean(inputs)


def test_a_subclass_inherits_no_rule():
    model = chain(layers.Conv2D(3, 3, name="a"), Conv2DOfSomeoneElse(2, 3, name="b"), layers.Conv2D(2, 1, name="c"))
    put(model, "a/kernel", (..., 1), 0.0)
    plan, _ = shrunk(model)
    assert reasons(plan, "a") == ("unsupported",) * 3
    assert plan.unsupported == {"b": "Conv2DOfSomeoneElse"}
    with pytest.raises(UnsupportedLayerError, match=r"'b' \(Conv2DOfSomeoneElse\)"):
        fp.plan_removal(model, strict=True)


def test_an_activation_of_the_users_own_is_not_taken_for_element_wise():
    model = chain(
        layers.Conv2D(3, 1, activation=lambda x: x - keras.ops.mean(x, axis=-1, keepdims=True), name="a"),
        layers.Conv2D(2, 1, name="b"),
    )
    put(model, "a/kernel", (..., 1), 0.0)
    assert reasons(fp.plan_removal(model), "a") == ("mixed",) * 3


def test_a_model_whose_graph_cannot_be_read_is_an_error():
    class Opaque(keras.Model):
        def call(self, x):
            return x

    with pytest.raises(RemovalError, match="wanted a functional or Sequential"):
        fp.plan_removal(Opaque())
    with pytest.raises(RemovalError, match="has no input shape yet"):
        fp.plan_removal(keras.Sequential([layers.Dense(2)]))


def test_a_plan_for_other_weights_is_refused():
    model = chain(layers.Conv2D(3, 3, name="a"), layers.Conv2D(2, 3, name="b"))
    put(model, "a/kernel", (..., 1), 0.0)
    plan = fp.plan_removal(model)
    put(model, "a/kernel", (..., 1), 1.0)
    with pytest.raises(RemovalError, match="made for other weights"):
        fp.apply_removal(model, plan)


def test_tolerance_lets_nearly_dead_channels_go():
    model = chain(layers.Conv2D(3, 3, name="a"), layers.Conv2D(2, 3, name="b"))
    put(model, "a/kernel", (..., 1), 1e-4)
    assert fp.plan_removal(model).empty
    plan = fp.plan_removal(model, tolerance=1e-3)
    assert reasons(plan, "a")[1] == "dead"
    assert 0 < plan.change["max_abs_error"] < 10.0
    assert fp.plan_removal(model, tolerance=1e-3, inputs=np.ones((2, 6, 6, 2))).change["max_abs_error"] < 1e-2
    with pytest.raises(RemovalError, match="wanted 0 or more"):
        fp.plan_removal(model, tolerance=-1.0)


def test_the_small_model_trains_saves_and_keeps_names(tmp_path):
    model = chain(layers.Conv2D(3, 3, activation="relu", name="a"), layers.Flatten(name="f"), layers.Dense(2, name="b"))
    put(model, "a/kernel", (..., 1), 0.0)
    small = fp.apply_removal(model, fp.plan_removal(model))
    assert [layer.name for layer in small.layers][1:] == ["a", "f", "b"]
    assert small.name == "net"
    small.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(4, 6, 6, 2)).astype("float32")
    small.fit(x, np.zeros((4, 2)), verbose=0)
    small.save(tmp_path / "small.keras")
    again = keras.saving.load_model(tmp_path / "small.keras")
    assert np.array_equal(small.predict(x, verbose=0), again.predict(x, verbose=0))


def branched(merge, shape=(6, 6, 2), rank=2):
    keras.utils.set_random_seed(0)
    conv = {1: layers.Conv1D, 2: layers.Conv2D}[rank]
    x = keras.Input(shape, name="x")
    stem = conv(3, 1, name="stem")(x)
    dead = conv(3, 3, padding="same", name="dead")(conv(4, 3, padding="same", activation="relu", name="before")(stem))
    y = merge(name="merge")([stem, dead])
    model = keras.Model(x, conv(2, 1, name="end")(y), name="net")
    generator = np.random.default_rng(0)
    for variable in model.weights:
        variable.assign(generator.normal(size=variable.shape))
    put(model, "dead/kernel", slice(None), 0.0)
    return model


@pytest.mark.parametrize("merge", [layers.Add, layers.Subtract, layers.Multiply, layers.Average])
@pytest.mark.parametrize(("shape", "rank"), [((6, 6, 2), 2), ((6, 2), 1)])
def test_a_dead_branch_collapses_to_its_constant(merge, shape, rank):
    model = branched(merge, shape, rank)
    plan, small = shrunk(model)
    assert [layer.name for layer in small.layers] == ["x", "stem", "merge", "end"]
    assert type(small.get_layer("merge")).__name__ == f"DepthwiseConv{rank}D"
    assert plan.multiplications[1] == fp.plan_removal(small).multiplications[0]
    assert plan.parameters[1] == small.count_params()


def test_a_branch_that_adds_zero_leaves_no_trace():
    model = branched(layers.Add)
    put(model, "dead/bias", slice(None), 0.0)
    _, small = shrunk(model)
    assert [layer.name for layer in small.layers] == ["x", "stem", "end"]


def test_a_branch_that_multiplies_by_zero_kills_the_channel():
    model = branched(layers.Multiply)
    put(model, "dead/bias", slice(None), [0.0, 1.0, 1.0])
    plan, small = shrunk(model)
    assert reasons(plan, "stem") == ("dead", "read", "read")
    assert [layer.name for layer in small.layers] == ["x", "stem", "end"]


def test_locking_what_the_plan_names_frees_the_border():
    model = chain(
        layers.Conv2D(5, 3, activation="relu", name="a"),
        layers.DepthwiseConv2D(3, padding="same", use_bias=False, name="d"),
        layers.Conv2D(3, 3, name="b"),
    )
    put(model, "a/kernel", (..., slice(0, 3)), 0.0)
    put(model, "a/bias", slice(0, 3), [0.25, -0.5, 0.125])
    plan, _ = shrunk(model)
    assert reasons(plan, "a") == ("border", "dead", "border", "read", "read")
    assert plan.lockable == ("a/bias[[0, 2]]",)
    put(model, "a/bias", ~fp.MaskSet.from_slices(model, plan.lockable)["a/bias"], 0.0)
    plan, _ = shrunk(model)
    assert reasons(plan, "a") == ("dead", "dead", "dead", "read", "read")
    assert plan.lockable == ()


def test_the_old_model_stays_connected_as_it_was():
    x = keras.Input((4,), name="x")
    y = keras.ops.relu(layers.Dense(3, name="a")(x) * 2.0)
    y = layers.Lambda(lambda t: t + 1.0, name="plus")(y)
    model = keras.Model(x, layers.Dense(2, name="b")(y), name="net")
    put(model, "a/kernel", (slice(None), 0), 0.0)
    plan, small = shrunk(model)
    assert plan.unsupported == {"plus": "Lambda"}
    assert all(len(operation._inbound_nodes) == 1 for operation in model.operations)
    assert not set(map(id, model.operations)) & set(map(id, small.operations))


def test_a_tensor_that_is_no_first_argument_stays():
    x = keras.Input((6, 4), name="x")
    states = [layers.Dense(3, name=name)(layers.Flatten()(x)) for name in ("h", "c")]
    y = layers.LSTM(3, name="l")(layers.Dense(5, name="d")(x), initial_state=states)
    model = keras.Model(x, layers.Dense(2, name="b")(y), name="net")
    put(model, "h/kernel", (slice(None), 1), 0.0)
    put(model, "d/kernel", (slice(None), 1), 0.0)
    plan, _ = shrunk(model)
    assert len(set(reasons(plan, "h"))) == 1
    assert reasons(plan, "d")[1] == "dead"


def test_a_channel_that_leaves_does_not_keep_a_branch_from_collapsing():
    model = branched(layers.Add)
    put(model, "dead/kernel", (..., 1), 1.0)  # no constant, but nothing reads it
    put(model, "end/kernel", (0, 0, 1), 0.0)
    put(model, "before/kernel", (slice(None), slice(None), 1), 0.0)
    plan, small = shrunk(model)
    assert reasons(plan, "stem") == ("read", "unread", "read")
    assert [layer.name for layer in small.layers] == ["x", "stem", "merge", "end"]


def test_a_folded_constant_is_rounded_once():
    model = chain(layers.Conv2D(3, 3, activation="relu", name="a"), layers.Conv2D(2, 3, name="b"))
    put(model, "a/kernel", (..., 1), 0.0)
    put(model, "a/bias", 1, 0.3)
    plan = fp.plan_removal(model)
    single, double = (fp.apply_removal(model, plan, dtype=dtype).get_layer("b").bias for dtype in (None, "float64"))
    wanted = np.asarray(double)
    assert np.array_equal(np.asarray(single), wanted.astype(np.float32))
    assert not np.array_equal(wanted, wanted.astype(np.float32))
