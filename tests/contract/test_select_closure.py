"""`close`: what follows, that it follows rightly, and only once."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import layers

from fpgaprune.errors import MaskError, UnsupportedLayerError
from fpgaprune.remove import plan_removal
from fpgaprune.select import Protection, close, select
from fpgaprune.values import MaskSet, named_weights
from tests.unit.select.networks import filled, plain, residual, samples, with_zeros


@pytest.fixture(scope="module")
def network():
    return residual()


def slices(closure):
    return [addition.slice for addition in closure.additions]


def test_the_bias_and_batch_norm_of_a_filter_without_kernels_follow():
    model = plain()
    masks = MaskSet.from_slices(model, ["conv2/kernel[..., 3]"])
    closure = close(masks, model)
    assert slices(closure)[:3] == ["conv2/bias[3]", "bn2/gamma[3]", "bn2/beta[3]"]
    assert closure.additions[0].reason == "every kernel of filter 3 of 'conv2' is locked"
    assert closure.additions[1].reason == "every kernel that makes channel 3 of 'bn2' is locked"
    # Flatten puts channel 3 at every position's index; there it is always zero.
    assert slices(closure)[3:] == [f"out/kernel[{at}, :]" for at in range(3, 20, 5)]
    assert closure.masks.locked_count == 4 * 9 + 3 + 4 * 3
    assert close(masks, model, batch_norm=False).masks.locked_count == 4 * 9 + 1
    assert close(masks, model, bias=False, batch_norm=False).additions == ()
    assert closure.to_json()[0] == {"slice": "conv2/bias[3]", "count": 1, "reason": closure.additions[0].reason}


def test_a_channel_that_no_one_reads_takes_its_producer_with_it(network):
    masks = MaskSet.from_slices(network, ["mix/kernel[:, :, 1]"])
    closure = close(masks, network)
    assert slices(closure) == ["point/kernel[:, :, :, 1]", "point/bias[1]"]
    assert closure.additions[0].reason == "no consumer reads output channel 1 of 'point'"


def test_an_added_channel_goes_where_every_reader_of_the_sum_is_locked(network):
    # Channel 2 of the sum: read by the depthwise layer, and as channel 5 behind the concatenation.
    closure = close(MaskSet.from_slices(network, ["mix/kernel[:, :, 5]", "point/kernel[:, :, 2]"]), network)
    assert "branch/kernel[:, :, :, 2]" in slices(closure)
    assert "branch_bn/gamma[2]" in slices(closure)
    assert "depth/kernel[:, :, 2, :]" in slices(closure)
    # The stem's channel is still read by the branch.
    assert not any(text.startswith("stem") for text in slices(closure))
    more = ["mix/kernel[:, :, 5]", "point/kernel[:, :, 2]", "branch/kernel[:, :, 2]"]
    assert "stem/kernel[:, :, :, 2]" in slices(close(MaskSet.from_slices(network, more), network))


def test_a_sum_is_zero_only_where_all_its_terms_are(network):
    one = close(MaskSet.from_slices(network, ["branch/kernel[..., 1]"]), network)
    assert slices(one) == ["branch_bn/gamma[1]", "branch_bn/beta[1]"]
    both = close(MaskSet.from_slices(network, ["branch/kernel[..., 1]", "stem/kernel[..., 1]"]), network)
    assert {"branch/kernel[:, :, 1, :]", "depth/kernel[:, :, 1, :]", "mix/kernel[:, :, 4, :]"} <= set(slices(both))
    # The bias of a depthwise channel without free kernel is locked too, as that of a filter, so its channel is zero.
    assert {"depth/bias[1]", "point/kernel[:, :, 1, :]"} <= set(slices(both))
    kept = close(MaskSet.from_slices(network, ["branch/kernel[..., 1]", "stem/kernel[..., 1]"]), network, bias=False)
    assert not {"depth/bias[1]", "point/kernel[:, :, 1, :]"} & set(slices(kept))


def test_a_channel_behind_flatten_is_unread_where_every_position_is(network):
    # Nine positions of five channels: channel 2 stands at 2, 7, 12, ...
    closure = close(MaskSet.from_slices(network, ["hidden/kernel[2::5]"]), network)
    assert slices(closure) == ["mix/kernel[:, :, :, 2]", "mix/bias[2]"]
    assert close(MaskSet.from_slices(network, ["hidden/kernel[:9]"]), network).additions == ()


def test_the_bias_of_a_filter_of_a_group_follows_and_its_inputs_do_not():
    """A filter of a group reads a part of the channels: a zero among them is none of its own number."""
    made = [
        keras.Input((6, 6, 3)),
        layers.Conv2D(4, 3, name="a"),
        layers.Conv2D(4, 3, groups=2, name="pairs"),
        layers.BatchNormalization(name="bn"),
        layers.Conv2D(2, 1, name="b"),
    ]
    model = filled(keras.Sequential(made), 0)
    closure = close(MaskSet.from_slices(model, ["pairs/kernel[..., 3]"]), model)
    assert slices(closure) == ["pairs/bias[3]", "bn/gamma[3]", "bn/beta[3]", "b/kernel[:, :, 3, :]"]
    assert close(MaskSet.from_slices(model, ["pairs/kernel[..., 3]"]), model, bias=False).masks["bn/beta"].sum() == 3
    ended = close(MaskSet.from_slices(model, ["a/kernel[..., 3]"]), model)
    assert slices(ended) == ["a/bias[3]"]


def test_without_rules_for_a_layer_nothing_is_claimed():
    inputs = keras.Input((6, 6, 2))
    x = layers.Conv2D(4, 3, name="a")(inputs)
    x = layers.LayerNormalization(name="norm")(x)
    x = layers.Conv2D(3, 3, name="b")(x)
    model = keras.Model(inputs, x)
    closure = close(MaskSet.from_slices(model, ["b/kernel[:, :, 1]", "a/kernel[..., 0]"]), model)
    assert slices(closure) == ["a/bias[0]"]


def test_a_softmax_between_layers_reads_every_channel():
    model = filled(
        keras.Sequential([keras.Input((4,)), layers.Dense(3, "softmax", name="a"), layers.Dense(2, name="b")]), 0
    )
    assert close(MaskSet.from_slices(model, ["b/kernel[1]"]), model).additions == ()


def test_an_activation_that_is_not_zero_at_zero_feeds_its_readers():
    for activation, count in (("sigmoid", 0), ("relu", 1)):
        model = filled(
            keras.Sequential([keras.Input((4,)), layers.Dense(3, activation, name="a"), layers.Dense(2, name="b")]), 0
        )
        closure = close(MaskSet.from_slices(model, ["a/kernel[:, 1]"]), model)
        assert slices(closure) == ["a/bias[1]"] + ["b/kernel[1, :]"] * count


def test_a_layer_that_is_called_twice_is_locked_where_both_calls_say_so():
    inputs = keras.Input((4,))
    shared = layers.Dense(4, name="shared")
    first = shared(inputs)
    model = keras.Model(inputs, layers.Dense(2, name="b")(shared(first)))
    assert close(MaskSet.from_slices(model, ["b/kernel[1]"]), model).additions == ()
    both = close(MaskSet.from_slices(model, ["b/kernel[1]", "shared/kernel[1]"]), model)
    assert slices(both) == ["shared/kernel[:, 1]", "shared/bias[1]"]


def test_models_inside_a_model_are_seen_through():
    inner = keras.Sequential([keras.Input((4,)), layers.Dense(3, "relu", name="a")], name="encoder")
    inputs = keras.Input((4,))
    model = keras.Model(inputs, layers.Dense(2, name="b")(inner(inputs)))
    closure = close(MaskSet.from_slices(model, ["b/kernel[1]"]), model)
    assert slices(closure) == ["encoder/a/kernel[:, 1]", "encoder/a/bias[1]"]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 9999), sparsity=st.floats(0, 0.9), granularity=st.sampled_from(["kernel", "input_channel"]))
def test_closing_twice_adds_nothing_and_only_adds(network, seed, sparsity, granularity):
    # Nothing is kept alive, so that more follows.
    options = {"paths": ["*/kernel"], "normalize": "none", "protect": Protection(min_free_channels=0)}
    masks = select(network, min(sparsity, 0.7), granularity, "random", seed=seed, **options)
    closure = close(masks, network)
    assert close(closure.masks, network).additions == ()
    assert close(closure.masks, network).masks == closure.masks
    assert all(not closure.masks[path][~masks[path]].any() for path in masks)
    added = sum(addition.count for addition in closure.additions)
    assert closure.masks.locked_count == masks.locked_count + added
    assert close(masks, network) == closure


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("seed", range(2))
def test_what_follows_changes_nothing_that_the_model_computes(seed, activation):
    """The rules but those that lock a bias or a batch normalization on request."""
    model = residual(seed, activation=activation)
    rng = np.random.default_rng(seed)
    shapes = {path: variable.shape for path, variable in named_weights(model).items() if path.endswith("kernel")}
    masks = MaskSet({path: _holes(shape, rng) for path, shape in shapes.items() if path != "out/kernel"})
    zero_bias = MaskSet.from_slices(model, ["stem/bias", "stem_bn/beta", "depth/bias", "point/bias"])
    masks = masks & zero_bias
    with_zeros(model, masks)
    x, _ = samples(model)
    before = model(x, training=False).numpy()
    closure = close(masks, model, bias=False, batch_norm=False)
    with_zeros(model, closure.masks)
    assert closure.additions
    assert np.abs(model(x, training=False).numpy() - before).max() < 1e-6


def _holes(shape, rng):
    """Whole input and output channels locked, so that something follows."""
    mask = np.ones(shape, bool)
    mask[..., rng.random(shape[-2]) < 0.4, :] = False
    mask[..., rng.random(shape[-1]) < 0.3] = False
    return mask


def test_batch_norm_of_a_channel_that_no_one_reads_may_go_without_a_change():
    model = residual(1)
    masks = MaskSet.from_slices(model, ["mix/kernel[:, :, 5]", "point/kernel[:, :, 2]", "branch/kernel[:, :, 2]"])
    with_zeros(model, masks)
    x, _ = samples(model)
    before = model(x, training=False).numpy()
    closure = close(masks, model)
    assert {"stem_bn/gamma[2]", "stem_bn/beta[2]", "branch_bn/beta[2]"} <= set(slices(closure))
    with_zeros(model, closure.masks)
    assert np.abs(model(x, training=False).numpy() - before).max() < 1e-6


def separable(seed, activation="relu", multiplier=2):
    """Two separable convolutions between others; the first has a BatchNorm behind it."""
    inputs = keras.Input((8, 8, 2))
    x = layers.Conv2D(6, 3, activation=activation, name="stem")(inputs)
    x = layers.SeparableConv2D(5, 3, depth_multiplier=multiplier, padding="same", name="sep")(x)
    x = layers.Activation(activation, name="act")(layers.BatchNormalization(name="bn")(x))
    x = layers.SeparableConv2D(4, 3, activation=activation, name="last")(x)
    return filled(keras.Model(inputs, layers.Dense(3, name="out")(layers.Flatten(name="flat")(x))), seed)


@pytest.mark.parametrize("multiplier", [1, 2])
def test_the_bias_and_batch_norm_of_a_separable_filter_follow_and_so_do_its_readers(multiplier):
    model = separable(0, multiplier=multiplier)
    closure = close(MaskSet.from_slices(model, ["sep/pointwise_kernel[..., 3]", "stem/kernel[..., 1]"]), model)
    rows = range(multiplier, 2 * multiplier)
    assert set(slices(closure)) == {
        "sep/bias[3]", "bn/gamma[3]", "bn/beta[3]", "last/depthwise_kernel[:, :, 3, :]",
        "last/pointwise_kernel[:, :, 3, :]", "stem/bias[1]", "sep/depthwise_kernel[:, :, 1, :]",
        *(f"sep/pointwise_kernel[:, :, {row}, :]" for row in rows),
    }  # fmt: skip
    with_zeros(model, closure.masks)
    assert plan_removal(model).only_drops
    open_masks = close(closure.masks, model, bias=False, batch_norm=False).masks
    assert open_masks == closure.masks


def test_what_a_separable_convolution_does_not_read_goes():
    model = separable(0)
    whole = close(MaskSet.from_slices(model, ["sep/pointwise_kernel[:, :, 4:6]", "out/kernel[3::4]"]), model)
    assert {"sep/depthwise_kernel[:, :, 2, :]", "stem/kernel[:, :, :, 2]", "stem/bias[2]"} <= set(slices(whole))
    assert {"last/pointwise_kernel[:, :, :, 3]", "last/bias[3]"} <= set(slices(whole))
    # Of two filters of one channel, one is still read.
    assert close(MaskSet.from_slices(model, ["sep/pointwise_kernel[:, :, 4]"]), model).additions == ()


@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
@pytest.mark.parametrize("seed", range(4))
def test_what_follows_in_separable_convolutions_changes_nothing_that_the_model_computes(seed, activation):
    model = separable(seed, activation, multiplier=1 + seed % 2)
    rng = np.random.default_rng(seed)
    shapes = {path: variable.shape for path, variable in named_weights(model).items() if path.endswith("kernel")}
    masks = MaskSet({path: _holes(shape, rng) for path, shape in shapes.items() if path != "out/kernel"})
    masks = masks & MaskSet.from_slices(model, ["stem/bias", "sep/bias", "bn/beta", "last/bias"])
    with_zeros(model, masks)
    x = rng.normal(size=(16, 8, 8, 2)).astype("float32")
    before = model(x, training=False).numpy()
    closure = close(masks, model, bias=False, batch_norm=False)
    with_zeros(model, closure.masks)
    assert any("pointwise" in text or "depthwise" in text for text in slices(closure))
    assert np.abs(model(x, training=False).numpy() - before).max() < 1e-6


def test_bad_input():
    with pytest.raises(MaskError, match="fits no weight"):
        close(MaskSet({"nowhere/kernel": np.ones(3, bool)}), plain())

    class Own(keras.Model):
        def __init__(self):
            super().__init__(name="own")
            self.dense = layers.Dense(2, name="d")

        def call(self, x):
            return self.dense(x)

    own = Own()
    own(np.zeros((1, 3)))
    with pytest.raises(UnsupportedLayerError, match="model 'own' is a Own, whose graph cannot be read"):
        close(MaskSet({}), own)
