"""`filters` in `[select]`: whole filters go first, and the network without them is chosen from and fine-tuned."""

from functools import partial
from itertools import product

import keras
import numpy as np
import pytest
from keras import layers

from fpgaprune.errors import MaskError
from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.run import RunDirectory, Silent
from fpgaprune.flow.stages import StageContext, stage_named
from fpgaprune.flow.task import check_data, choose_masks, first_masks, narrowed, read_task
from fpgaprune.frontends import load_keras
from fpgaprune.network import save_keras
from fpgaprune.remove import apply_removal, plan_removal
from fpgaprune.values import MaskSet, weight_arrays
from tests.quick import quick
from tests.unit.select.networks import filled, plain, residual, samples


def rounding(seed=0):
    """A network that can round, with a batch normalization that is folded for it."""
    made = [
        keras.Input((6, 6, 1)),
        layers.Conv2D(6, 3, use_bias=False, name="conv1"),
        layers.BatchNormalization(name="bn1"),
        layers.ReLU(name="act1"),
        layers.Conv2D(8, 3, activation="relu", name="conv2"),
        layers.Flatten(name="flat"),
        layers.Dense(3, name="out"),
    ]
    return filled(keras.Sequential(made, name="rounding"), seed)


def settings(**keys):
    return parse_config({"select": {"granularity": "weight", **keys}}, "test").select


def data_of(model, count=32):
    x, y = samples(model, count=count)
    return check_data("drawn", {"x_train": x, "y_train": y, "x_test": x[:8], "y_test": y[:8]})


def depthwise(seed=0):
    """A depthwise layer with a bias between two convolutions: its bias goes with its channel."""
    made = [
        keras.Input((6, 6, 1)),
        layers.Conv2D(6, 3, padding="same", activation="relu", name="conv1"),
        layers.DepthwiseConv2D(3, padding="same", name="depth"),
        layers.Conv2D(8, 1, activation="relu", name="conv2"),
        layers.Flatten(name="flat"),
        layers.Dense(3, name="out"),
    ]
    return filled(keras.Sequential(made, name="depthwise"), seed)


def sigmoid():
    """Locked filters hand on 0.5."""
    return residual(activation="sigmoid")


def normalised(kind):
    """A network whose BatchNorms stand where they follow a filter in some other way than at once, or have no scale."""
    x = inputs = keras.Input((8, 8, 2))
    scale = kind not in ("no scale", "no scale or center")
    norm = partial(layers.BatchNormalization, scale=scale, center=kind != "no scale or center")
    if kind == "joined":
        x = layers.Concatenate(name="join")([layers.Conv2D(4, 3, name=name)(x) for name in ("left", "right")])
    elif kind == "before the first":
        x = layers.Conv2D(8, 3, name="conv1")(norm(name="bn0")(x))
    else:
        x = layers.Conv2D(8, 3, padding="same", name="conv1")(x)
    if kind == "added":
        x = layers.Add(name="add")([x, layers.Conv2D(8, 3, padding="same", name="branch")(x)])
    if kind == "pooled":
        x = layers.MaxPooling2D(name="pool")(x)
    if kind == "behind relu":
        x = layers.ReLU(name="early")(x)
    x = layers.ReLU(name="act1")(norm(name="bn1")(x))
    if kind == "depthwise":
        x = layers.ReLU(name="act2")(norm(name="bn2")(layers.DepthwiseConv2D(3, name="depth")(x)))
    if kind == "twice":
        x = norm(name="bn2")(x)
    x = layers.Flatten(name="flat")(layers.Conv2D(6, 3, activation="relu", name="conv2")(x))
    if kind == "flat":
        x = norm(name="bn2")(x)
    return filled(keras.Model(inputs, layers.Dense(3, name="out")(x), name="normalised"), 0)


NORMALISED = (
    *("no scale", "no scale or center", "joined", "before the first", "added", "pooled", "behind relu"),
    *("depthwise", "twice", "flat"),
)


@pytest.mark.parametrize(
    "make",
    [plain, residual, rounding, depthwise, sigmoid, *(pytest.param(partial(normalised, k), id=k) for k in NORMALISED)],
)
def test_the_way_to_the_narrow_network_and_back_keeps_every_bit(make):
    model = make()
    masks, additions = first_masks(model, settings(filters=0.5), None, 0)
    before = weight_arrays(model)
    found = narrowed(model, masks)
    assert all((before[path] == array).all() for path, array in weight_arrays(model).items())
    assert additions
    assert sum(map(np.size, weight_arrays(found.small).values())) < 0.7 * sum(map(np.size, before.values()))
    # Whatever a training makes of the narrow network, the whole one leads to it again.
    rng = np.random.default_rng(3)
    for variable in found.small.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    found.take_back(found.small, model)
    assert all((weight_arrays(model)[path][~mask] == 0).all() for path, mask in found.masks.items())
    again = weight_arrays(apply_removal(model, plan_removal(model)))
    trained = weight_arrays(found.small)
    assert again.keys() == trained.keys()
    assert all(np.array_equal(again[path], trained[path]) for path in trained)


@pytest.mark.parametrize("criterion", ["l1", "taylor"])
def test_sparsity_counts_what_the_filters_leave(criterion):
    model = rounding()
    data, config = data_of(model), parse_config({}, "test")
    asked = settings(filters=0.5, sparsity=0.75, criterion=criterion, normalize="none")
    task = read_task(config.train, model, data)
    task.compile_for_scores(model)
    first, _ = first_masks(model, asked, (data.x_train, data.y_train), 0)
    masks, _ = choose_masks(model, asked, (data.x_train, data.y_train), 0, task=task)
    small = narrowed(model, first)
    left = small.plan.remap(masks)
    kernels = [path for path in left if path.startswith("conv") and path.endswith("kernel")]
    assert sum(int((~left[path]).sum()) for path in kernels) == round(0.75 * sum(left[path].size for path in kernels))
    # The scores are those of the narrow network, and the locks of filters stay.
    assert all((masks[path] <= mask).all() for path, mask in first.items())


def test_without_filters_nothing_is_narrow():
    model = plain()
    masks, additions = first_masks(model, settings(), None, 0)
    assert (masks, additions) == (MaskSet({}), [])


def test_a_filter_that_hands_on_another_constant_is_an_error():
    x = inputs = keras.Input((8, 2))
    x = layers.GRU(4, name="gru")(layers.Conv1D(6, 3, activation="sigmoid", name="conv")(x))
    model = filled(keras.Model(inputs, layers.Dense(3, name="out")(x), name="steps"), 0)
    message = "'steps' that are locked hand on a constant other than 0, which goes into 'gru/.*'; leave 'filters' out"
    with pytest.raises(MaskError, match=message):
        choose_masks(model, settings(filters={"conv/kernel": 0.5}), None, 0)


@pytest.mark.parametrize(
    ("schedule", "quantised"),
    quick([("one_shot", False), ("polynomial_decay", True)], product(["one_shot", "polynomial_decay"], [False, True])),
)
def test_the_fine_tuned_network_is_the_whole_one_with_zeros(tmp_path, quantised, schedule):
    model = rounding()
    data = data_of(model)
    run = RunDirectory(tmp_path)
    document = {
        "select": {"granularity": "weight", "filters": 0.5, "sparsity": 0.5},
        "finetune": {"epochs": 2, "batch_size": 8, "quantised": quantised, "schedule": {"kind": schedule}},
    }
    config = parse_config(document, "test")
    with run.locked():
        save_keras(model, run.file("trained.keras"))
        for stage in ("select", "finetune"):
            stage_named(stage).run(StageContext(run, config, data, Silent(), key="k"))
    masks, trained = MaskSet.load(run.file("masks.npz")), load_keras(run.file("finetuned.keras"))
    weights = weight_arrays(trained)
    assert weights["conv1/kernel"].shape == (3, 3, 1, 6)
    assert weights["conv2/kernel"].shape == (3, 3, 6, 8)
    assert all((weights[path][~mask] == 0).all() for path, mask in masks.items())
    small = weight_arrays(apply_removal(trained, plan_removal(trained)))
    channels = small["conv1/kernel"].shape[-1], small["conv2/kernel"].shape[-1]
    assert sum(channels) <= 7
    # Half of the weights of the narrow network are zero, and it was trained: the others are not what they were.
    free = sum(int(mask.sum()) for path, mask in masks.items() if path.startswith("conv") and mask.ndim > 1)
    assert free == pytest.approx(sum(small[f"conv{number}/kernel"].size for number in (1, 2)) / 2, abs=1)
    was = weight_arrays(model)["conv2/kernel"]
    assert (weights["conv2/kernel"] != was)[masks["conv2/kernel"]].any()


def test_named_locks_stay_where_filters_go(tmp_path):
    model = plain()
    masks, _ = choose_masks(model, settings(filters=0.4, sparsity=0.3, locks=["conv2/kernel[0, 0, :, :]"]), None, 0)
    assert not masks["conv2/kernel"][0, 0].any()


@pytest.mark.parametrize("filters", quick([0.0], [0.0, 0.5]))
def test_a_network_that_was_rounded_is_trained_on_under_the_locks_of_filters(tmp_path, filters):
    """The network to start from has no BatchNorm any more, and the locks are named after the trained one."""
    model = normalized()
    data, start = data_of(model), None
    for folder, share in (("wide", filters), ("narrow", 0.5)):
        run = RunDirectory(tmp_path / folder)
        begins = {} if start is None else {"start": str(start)}
        document = {
            "select": {"granularity": "weight", "filters": share, "sparsity": 0.3},
            "finetune": {"epochs": 1, "batch_size": 8, "quantised": True, **begins},
        }
        with run.locked():
            save_keras(model, run.file("trained.keras"))
            for stage in ("select", "finetune"):
                stage_named(stage).run(StageContext(run, parse_config(document, "test"), data, Silent(), key="k"))
        start = run.file("finetuned.keras")
    first, trained = MaskSet.load(run.file("selection.npz")), load_keras(start)
    weights = weight_arrays(trained)
    assert all((weights[path][~mask] == 0).all() for path, mask in MaskSet.load(run.file("masks.npz")).items())
    dead = ~first["conv1/kernel"].any(axis=(0, 1, 2))
    assert dead.sum() == 3
    assert (weights["conv1/kernel"][..., dead] == 0).all()
    # A filter whose shift stayed would hand on a constant.
    assert (weights["conv1/bias"][dead] == 0).all()
    assert (weights["conv1/kernel"][..., ~dead] != 0).any()


def test_filters_of_groups_that_are_locked_end_with_their_shifts_where_the_network_rounds(tmp_path):
    """Channels of groups stay as they are in Keras; in hardware they are those of a plain convolution, and go."""
    made = [
        keras.Input((6, 6, 4)),
        layers.Conv2D(8, 3, groups=2, padding="same", name="pairs"),
        layers.BatchNormalization(name="bn"),
        layers.ReLU(name="act"),
        layers.GlobalAveragePooling2D(name="mean"),
        layers.Dense(3, name="out"),
    ]
    model = filled(keras.Sequential(made, name="groups"), 0)
    run = RunDirectory(tmp_path)
    document = {
        "select": {"granularity": "weight", "filters": 0.4, "sparsity": 0.0},
        "finetune": {"epochs": 1, "batch_size": 8, "quantised": True},
    }
    with run.locked():
        save_keras(model, run.file("trained.keras"))
        for stage in ("select", "finetune"):
            stage_named(stage).run(StageContext(run, parse_config(document, "test"), data_of(model), Silent(), key="k"))
    weights, masks = weight_arrays(load_keras(run.file("finetuned.keras"))), MaskSet.load(run.file("masks.npz"))
    dead = ~masks["pairs/bias"]
    assert dead.sum() == 3
    assert (weights["pairs/kernel"][..., dead] == 0).all()
    assert (weights["pairs/bias"][dead] == 0).all()
    assert (weights["pairs/bias"][~dead] != 0).all()


def normalized():
    """A BatchNorm with a shift behind a convolution."""
    made = [
        keras.Input((6, 6, 1)),
        layers.Conv2D(6, 3, padding="same", name="conv1"),
        layers.BatchNormalization(name="bn1"),
        layers.ReLU(name="act1"),
        layers.Conv2D(8, 3, padding="same", activation="relu", name="conv2"),
        layers.Flatten(name="flat"),
        layers.Dense(3, name="out"),
    ]
    return filled(keras.Sequential(made, name="normalized"), 0)
