"""A selection that names nothing but a sparsity: of which weights, how much of each kind, and what stays alive."""

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import MaskError
from fpgaprune.network import alive_channels
from fpgaprune.select import Protection, advance, default_paths, guard, select
from fpgaprune.values import MaskSet, named_weights
from tests.quick import quick
from tests.unit.select.networks import filled

OPEN = Protection(min_free_channels=0)


def small_ds_cnn():
    """A DS-CNN in small, whose first and depthwise kernels are the smallest: by size alone they all go."""
    stack = [keras.Input((12, 6, 1)), layers.Conv2D(16, (4, 3), padding="same", name="first")]
    for number in (1, 2):
        stack += [
            layers.BatchNormalization(name=f"norm{number}"),
            layers.ReLU(name=f"act{number}"),
            layers.DepthwiseConv2D(3, padding="same", activation="relu", name=f"depth{number}"),
            layers.Conv2D(16, 1, activation="relu", name=f"point{number}"),
        ]
    stack += [layers.GlobalAveragePooling2D(name="mean"), layers.Dense(4, activation="softmax", name="out")]
    model = filled(keras.Sequential(stack, name="small_ds_cnn"), 0)
    weights = named_weights(model)
    for path in ("first/kernel", "depth1/kernel", "depth2/kernel"):
        weights[path].assign(weights[path].numpy() * 0.01)
    return model


def mlp():
    """16-32-16-4."""
    stack = [keras.Input((16,)), layers.Dense(32, "relu", name="a"), layers.Dense(16, "relu", name="b")]
    return filled(keras.Sequential([*stack, layers.Dense(4, name="c")], name="mlp"), 1)


def by_size_alone(model, sparsity):
    """The selection that was the default once."""
    paths = [path for path, variable in named_weights(model).items() if len(variable.shape) == 4]
    return select(model, sparsity, normalize="none", protect=OPEN, paths=paths)


@pytest.mark.parametrize("sparsity", [0.6, 0.75, 0.9])
def test_each_layer_keeps_an_eighth_of_its_channels_alive(sparsity):
    model = small_ds_cnn()
    masks = select(model, sparsity)
    kernels = [masks[f"{name}/kernel"].any(axis=(0, 1)) for name in ("first", "point1", "point2")]
    assert sum(int((~one).sum()) for one in kernels) == round(sparsity * (16 + 256 + 256))
    assert all(flags.mean() >= 1 / 8 for flags in alive_channels(model, masks).values())
    assert alive_channels(model, masks)["out"].all()
    assert guard(model, masks) == ()


@pytest.mark.parametrize("granularity", ["kernel", "weight", "filter", "input_channel"])
def test_the_floor_alone_keeps_an_eighth_where_scores_are_as_they_are(granularity):
    model = small_ds_cnn()
    masks = select(model, 0.6, granularity, normalize="none")
    alive = alive_channels(model, masks)
    assert all(flags.mean() >= 1 / 8 for flags in alive.values())
    if granularity != "input_channel":  # of which the first layer has one
        assert alive["first"].sum() == 2, "and no more than the scores want"


def test_channels_that_stay_are_read_as_well_as_fed():
    model = mlp()
    weights = named_weights(model)
    large, small = np.full((16, 32), 1e-4), np.ones((32, 16))
    large[:, :4], small[:4] = 10, 1e-4
    noise = np.random.default_rng(0).uniform(0.9, 1.1, (32, 32))
    weights["a/kernel"].assign(large * noise[:16])
    weights["b/kernel"].assign(small * noise[:, :16])
    masks = select(model, 0.9, normalize="none")
    # By size the four channels that are fed are read by no one.
    assert alive_channels(model, masks)["a"].tolist() == [True] * 4 + [False] * 28


def test_the_guard_names_the_layers_that_a_selection_by_size_alone_kills():
    model = small_ds_cnn()
    found = {warning.layer: warning for warning in guard(model, by_size_alone(model, 0.6))}
    assert {"first", "depth1", "depth2"} <= set(found)
    first = found["first"]
    assert (first.rule, first.kept_channels, first.total_channels) == ("few_channels", 1, 16)
    assert first.text == (
        "1 of 16 channels of 'first' is left, fewer than an eighth, and all that follows has to pass through so few; "
        'set normalize = "lamp", scope = "layer", protect = ["first/*"] or min_free_channels = 0.125, or lower sparsity'
    )
    assert first.to_json() == {
        "layer": "first",
        "rule": "few_channels",
        "kept_channels": 1,
        "total_channels": 16,
        "text": first.text,
    }


def test_the_guard_does_not_advise_what_is_set():
    model = small_ds_cnn()
    masks = MaskSet.from_slices(model, ["first/kernel[..., 1:]"])
    (warning,) = (one for one in guard(model, masks, normalize="lamp") if one.layer == "first")
    assert warning.text.endswith('set protect = ["first/*"] or min_free_channels = 0.125, or lower sparsity')


def test_the_guard_names_outputs_that_no_longer_depend_on_the_input():
    model = mlp()
    (warning,) = guard(model, MaskSet.from_slices(model, ["c/kernel[:, 2]"]))
    assert (warning.rule, warning.kept_channels, warning.total_channels) == ("dead_output", 3, 4)
    assert "output 2 of the model, made by 'c', no longer depends on its input" in warning.text


def test_the_guard_names_a_layer_that_is_cut_far_more_than_the_others():
    model = mlp()
    # 16 of 512 weights of one layer, on few of its filters, and half of those of another.
    masks = MaskSet.from_slices(model, ["a/kernel[:, 8:]", "a/kernel[4:, :8]", "b/kernel[:, :2]"])
    (warning,) = (one for one in guard(model, masks) if one.layer == "a")
    assert (warning.rule, warning.kept_channels) == ("uneven", 8)
    assert warning.text.startswith("6.2% of 'a/kernel' is free where 46.9% is free on average")


def test_channels_behind_a_bottleneck_count_as_dead():
    model = mlp()
    masks = MaskSet.from_slices(model, ["a/kernel[:, 3:]", "b/kernel[:3, 1:]"])
    alive = alive_channels(model, masks)
    assert alive["a"].tolist() == [True] * 3 + [False] * 29
    assert alive["b"].tolist() == [True] + [False] * 15
    # And what only dead filters read is dead too.
    masks = MaskSet.from_slices(model, ["c/kernel[1:]", "b/kernel[5:, 0]"])
    assert alive_channels(model, masks)["a"].tolist() == [True] * 5 + [False] * 27


def test_an_mlp_selects_single_weights_by_default():
    model = mlp()
    masks = select(model, 0.6)
    assert sorted(masks) == ["a/kernel", "b/kernel", "c/kernel"]
    assert masks.locked_count == round(0.6 * (16 * 32 + 32 * 16 + 16 * 4))
    assert masks["c/kernel"].any(axis=0).all(), "every output keeps a weight"


def test_kernels_and_dense_weights_are_counted_apart():
    inputs = keras.Input((8, 8, 1))
    x = layers.Conv2D(8, 3, padding="same", strides=2, name="conv1")(inputs)
    x = layers.Flatten()(layers.Conv2D(8, 3, strides=2, name="conv2")(x))
    model = filled(keras.Model(inputs, layers.Dense(4, name="out")(layers.Dense(128, name="wide")(x))), 0)
    # 16 positions of 72 weights and one of 576; 1024 and 512 Dense weights: 47 % of the multiplications.
    assert default_paths(model) == ["conv1/kernel", "conv2/kernel", "wide/kernel", "out/kernel"]
    masks = select(model, 0.5)
    kernels = sum(int((~masks[f"conv{n}/kernel"].any(axis=(0, 1))).sum()) for n in (1, 2))
    assert kernels == round(0.5 * (8 + 64))
    dense = sum(int((~masks[f"{name}/kernel"]).sum()) for name in ("wide", "out"))
    assert dense == round(0.5 * (8 * 128 + 128 * 4))
    by_pattern = select(model, {"*kernel": 0.5}, protect=OPEN)
    assert sum(int((~by_pattern[f"conv{n}/kernel"].any(axis=(0, 1))).sum()) for n in (1, 2)) == kernels


def test_dense_weights_that_do_few_of_the_multiplications_are_left_alone():
    assert default_paths(small_ds_cnn()) == ["first/kernel", "point1/kernel", "point2/kernel"]


def test_single_weights_of_all_layers_are_counted_together():
    """Each takes an adder, however often it is used."""
    model = small_ds_cnn()
    chosen = ["first/kernel", "point1/kernel", "point2/kernel", "out/kernel"]
    masks = select(model, 0.5, granularity="weight", normalize="none", paths=chosen)
    locked = {path: int((~masks[path]).sum()) for path in chosen}
    assert sum(locked.values()) == round(0.5 * sum(masks[path].size for path in chosen))
    # The first kernel's weights are the smallest of all.
    assert locked["out/kernel"] < 0.4 * masks["out/kernel"].size
    assert locked["first/kernel"] > 0.6 * masks["first/kernel"].size


@pytest.mark.parametrize("size", [None, 8])
def test_where_a_size_is_open_dense_weights_are_left_alone(size):
    inputs = keras.Input((size, size, 1))
    x = layers.GlobalAveragePooling2D()(layers.Conv2D(2, 3, name="conv")(inputs))
    model = keras.Model(inputs, layers.Dense(300, name="wide")(x))
    assert ("wide/kernel" in default_paths(model)) == (size is not None)


def test_both_directions_are_selected_like_one():
    """Without a convolution, and beside one whose multiplications are few against those of every step."""
    stack = [layers.Bidirectional(layers.GRU(8), name="both"), layers.Dense(4, name="out")]
    alone = keras.Sequential([keras.Input((5, 3)), *stack])
    paths = [
        f"both/{way}_gru/gru_cell/{name}" for way in ("forward", "backward") for name in ("kernel", "recurrent_kernel")
    ]
    assert default_paths(alone) == [*paths, "out/kernel"]
    beside = keras.Sequential(
        [keras.Input((40, 3)), layers.Conv1D(8, 9, strides=1, padding="same", name="conv"), *stack]
    )
    assert default_paths(beside) == ["conv/kernel", *paths, "out/kernel"]


@pytest.mark.parametrize("cell", quick([layers.GRU], [layers.GRU, layers.LSTM, layers.SimpleRNN]))
def test_recurrent_weights_are_selected_locked_and_certified(cell, tmp_path):
    stack = [keras.Input((5, 3)), cell(8, name="cell"), layers.Dense(4, activation="softmax", name="out")]
    model = keras.Sequential(stack)
    masks = select(model, 0.75)
    recurrent = [path for path in masks if path.endswith("/recurrent_kernel")]
    assert len(masks) == 3
    assert len(recurrent) == 1
    assert masks.locked_count == round(0.75 * masks.size)
    assert alive_channels(model, masks)["cell"].mean() >= 1 / 8
    model.compile("adam", "sparse_categorical_crossentropy")
    rng = np.random.default_rng(0)
    fp.finetune(model, masks, rng.normal(size=(16, 5, 3)), rng.integers(0, 4, 16), epochs=2, batch_size=4)
    fp.certify(model, masks).require()


def test_attention_kernels_are_no_convolutions_and_are_called_by_their_name():
    inputs = keras.Input((6, 8))
    attention = layers.MultiHeadAttention(2, 4, name="heads")
    model = keras.Model(inputs, attention(inputs, inputs))
    with pytest.raises(MaskError, match=r"to select from; it has heads/query/kernel \(attention\), .* with 'paths'"):
        select(model, 0.5)
    masks = select(model, 0.5, paths=["heads/*/kernel"])
    # (8, 2, 4) and (2, 4, 8): a kernel is one weight, from one channel to another.
    assert masks.locked_count == 4 * 32
    assert len({mask.shape for mask in masks.values()}) == 2
    with_dense = keras.Model(inputs, layers.Dense(4, name="dense")(attention(inputs, inputs)))
    assert default_paths(with_dense) == ["dense/kernel"]


def test_an_einsum_kernel_joins_one_channel_to_another():
    inputs = keras.Input((6, 8))
    model = keras.Model(inputs, layers.EinsumDense("abc,cde->abde", (None, 2, 4), name="project")(inputs))
    with pytest.raises(MaskError, match=r"it has project/kernel \(attention\)"):
        select(model, 0.5)
    filters = select(model, 0.5, "filter", paths=["project/kernel"])["project/kernel"]
    assert np.array_equal(filters.all(axis=0), filters.any(axis=0))
    assert filters.any(axis=0).sum() == 4


def test_depthwise_kernels_follow_their_channels():
    model = small_ds_cnn()
    base = MaskSet.from_slices(model, ["first/kernel[..., 3]", "point1/kernel[:, :, 5]", "point2/kernel[:, :, 7]"])
    masks = select(model, 0.0, base=base)
    assert np.flatnonzero(~masks["depth1/kernel"].any(axis=(0, 1, 3))).tolist() == [3, 5], "dead, and unread"
    assert np.flatnonzero(~masks["depth2/kernel"].any(axis=(0, 1, 3))).tolist() == [7]
    assert masks["depth1/kernel"][:, :, 0].all()
    named = select(model, 0.5, paths=["depth1/kernel"])
    assert named["depth1/kernel"].any(axis=(0, 1)).sum() == 8, "by name they are chosen like others"
    assert "depth1/kernel" not in select(model, 0.5, paths=["point1/kernel"])
    kept = select(model, 0.0, base=base, protect=["depth1/*"])
    assert "depth1/kernel" not in kept, "what is protected does not follow"


def test_a_depthwise_kernel_is_free_again_where_regrowth_frees_its_channel():
    model = small_ds_cnn()
    model.compile("adam", "sparse_categorical_crossentropy")
    data = (np.random.default_rng(0).normal(size=(8, 12, 6, 1)), np.arange(8) % 4)
    base = MaskSet.from_slices(model, ["depth2/kernel[:, :, 1]"])
    held = select(model, 0.0, base=MaskSet.from_slices(model, ["first/kernel[..., 3]"]) & base)
    assert not held["depth1/kernel"][:, :, 3].any()
    after = advance(model, 0.0, held, base, 0.9, {"data": data})
    assert after["first/kernel"][..., 3].all()
    assert after["depth1/kernel"].all()
    assert not after["depth2/kernel"][:, :, 1].any()


def test_layers_of_their_own_sparsity_give_what_they_can():
    model = small_ds_cnn()
    masks = select(model, 0.9, scope="layer", protect=Protection(("point1/*",), min_free=8))
    assert masks["point1/kernel"].all()
    assert masks["first/kernel"].any(axis=(0, 1)).sum() == 8, "8 of its 16 kernels stay"
    assert masks["point2/kernel"].any(axis=(0, 1)).sum() == 256 - round(0.9 * 256)
    found = {warning.layer: warning for warning in guard(model, masks, sparsity=0.9, scope="layer")}
    assert found["first"].rule == "short"
    assert found["first"].text.startswith("50.0% of 'first/kernel' is locked where 90.0% was asked: ")
    assert "point2" not in found
    with pytest.raises(
        MaskError, match=r"sparsity 0\.9 cannot be reached in first/kernel, point1/kernel, point2/kernel"
    ):
        select(model, 0.9, protect=["point1/*"])
    with pytest.raises(MaskError, match=r"sparsity 0\.9 cannot be reached in first/kernel"):
        select(model, 0.9, scope="layer", protect=Protection(min_free=200))


def test_scores_below_zero_keep_their_order_within_a_layer():
    model = mlp()
    scores = {
        path: np.random.default_rng(0).normal(size=variable.shape) for path, variable in named_weights(model).items()
    }
    masks = select(model, 0.5, criterion=lambda _model, _data: scores, paths=["a/kernel"], protect=OPEN)
    values = scores["a/kernel"]
    assert values[~masks["a/kernel"]].max() < values[masks["a/kernel"]].min()
