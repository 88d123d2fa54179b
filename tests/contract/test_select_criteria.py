"""Each criterion against a slow, obvious reference, and coupled filters as one."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from fpgaprune.errors import DataError, MaskError
from fpgaprune.network import weights_of
from fpgaprune.select import CRITERIA, Protection, Question, select
from fpgaprune.values import named_weights
from tests.unit.select.networks import filled, plain, residual, samples

PATHS = ["conv1/kernel", "conv2/kernel"]


@pytest.fixture(scope="module")
def model():
    network = plain()
    network.compile("sgd", "sparse_categorical_crossentropy")
    return network


@pytest.fixture(scope="module")
def data(model):
    return samples(model)


def scores(criterion, model, paths=PATHS, **options):
    weights = named_weights(model)
    known = weights_of(model)
    question = Question(
        model,
        {path: weights[path].numpy() for path in paths},
        {path: known[path].axes for path in paths},
        **options,
    )
    found = CRITERIA[criterion].scores(question)
    return {path: np.broadcast_to(found[path], weights[path].shape) for path in paths}


def slow_gradients(model, x, y, paths=PATHS):
    """The gradient of the mean loss over x and y, by the textbook."""
    weights = named_weights(model)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, model(x, training=False)))
    found = tape.gradient(loss, [weights[path].value for path in paths])
    return {path: gradient.numpy().astype(float) for path, gradient in zip(paths, found, strict=True)}


def test_l1_and_l2(model):
    for path in PATHS:
        weight = named_weights(model)[path].numpy().astype(float)
        assert np.allclose(scores("l1", model)[path], abs(weight))
        assert np.allclose(scores("l2", model)[path], weight**2)


def test_geometric_median(model):
    for path in PATHS:
        weight = named_weights(model)[path].numpy().astype(float)
        for o in range(weight.shape[-1]):
            distances = [np.linalg.norm(weight[..., o] - weight[..., other]) for other in range(weight.shape[-1])]
            assert np.allclose(scores("geometric_median", model)[path][..., o], sum(distances), rtol=1e-6)


def test_synflow_is_the_share_of_all_paths_through_a_weight():
    network = filled(
        keras.Sequential(
            [
                keras.Input((4, 4, 2)),
                keras.layers.Conv2D(3, 2, activation="relu", name="conv"),
                keras.layers.Flatten(),
                keras.layers.Dense(5, activation="relu", name="hidden"),
                keras.layers.Dense(2, name="out"),
            ]
        ),
        0,
    )
    paths = ["conv/kernel", "hidden/kernel", "out/kernel"]
    weights = named_weights(network)
    weights["hidden/kernel"].assign(weights["hidden/kernel"].numpy() * (np.arange(5) != 3))
    found = scores("synflow", network, paths)
    # A unit that reads nothing is on no path.
    assert found["out/kernel"][3].tolist() == [0.0, 0.0]
    assert scores("synflow", network, paths[:1])["conv/kernel"].tolist() == found["conv/kernel"].tolist()
    for path, weight in weights.items():
        weight.assign(abs(weight.numpy()) * (path in paths))
    with tf.GradientTape() as tape:
        through = tf.reduce_sum(network(np.ones((1, 4, 4, 2))))
    for path, gradient in zip(paths, tape.gradient(through, [weights[path].value for path in paths]), strict=True):
        wanted = weights[path].numpy() * gradient.numpy()
        assert np.allclose(found[path], wanted / wanted.sum(), rtol=1e-4)


def test_synflow_of_a_branch_and_of_a_layer_without_a_rule():
    network = residual()
    paths = ["stem/kernel", "branch/kernel", "depth/kernel", "point/kernel", "hidden/kernel"]
    found = scores("synflow", network, paths)
    assert all((found[path] > 0).all() and np.isclose(found[path].sum(), 1) for path in paths)
    depth = abs(named_weights(network)["depth/kernel"].numpy())
    assert np.allclose(found["depth/kernel"], depth / depth.sum())


def test_bn_scale(model):
    gamma = named_weights(model)["bn2/gamma"].numpy()
    assert np.allclose(scores("bn_scale", model, ["conv2/kernel"])["conv2/kernel"][0, 0, 0], abs(gamma))
    with pytest.raises(MaskError, match="BatchNormalization with scale=True behind 'conv1/kernel'"):
        scores("bn_scale", model)


@pytest.mark.parametrize("batch_size", [4, 5, 12])
def test_taylor(model, data, batch_size):
    x, y = data
    parts = [slow_gradients(model, x[at : at + batch_size], y[at : at + batch_size]) for at in range(0, 12, batch_size)]
    found = scores("taylor", model, data=data, batch_size=batch_size)
    for path in PATHS:
        weight = named_weights(model)[path].numpy().astype(float)
        wanted = np.mean([(part[path] * weight) ** 2 for part in parts], axis=0)
        assert np.allclose(found[path], wanted, rtol=1e-4, atol=1e-12)


def test_fisher(model, data):
    x, y = data
    parts = [slow_gradients(model, x[at : at + 1], y[at : at + 1]) for at in range(12)]
    found = scores("fisher", model, data=data, batch_size=5)
    for path in PATHS:
        weight = named_weights(model)[path].numpy().astype(float)
        wanted = 0.5 * weight**2 * np.mean([part[path] ** 2 for part in parts], axis=0)
        assert np.allclose(found[path], wanted, rtol=1e-4, atol=1e-12)


def test_activation(model, data):
    found = scores("activation", model, data=data, batch_size=5)
    values = {"conv1/kernel": data[0]}
    for layer in model.layers[:4]:
        values[f"{layer.name}/kernel"] = layer(next(reversed(values.values())), training=False).numpy()
    for path, behind in (("conv1/kernel", "conv1/kernel"), ("conv2/kernel", "act2/kernel")):
        alive = (values[behind] != 0).mean(axis=(0, 1, 2))
        assert 0 < alive.mean() < 1
        assert np.allclose(found[path][0, 0, 0], alive)


def test_what_stands_behind_a_pooling_counts(data):
    layers = keras.layers
    network = keras.Sequential(
        [
            keras.Input((6, 6, 1)),
            layers.Conv2D(4, 3, name="conv"),
            layers.MaxPooling2D(2, name="pool"),
            layers.BatchNormalization(name="norm"),
            layers.ReLU(name="act"),
            layers.Flatten(name="flat"),
            layers.Dense(3, name="out"),
        ]
    )
    filled(network, 1)
    gamma = named_weights(network)["norm/gamma"].numpy()
    assert np.allclose(scores("bn_scale", network, ["conv/kernel"])["conv/kernel"][0, 0, 0], abs(gamma))
    values = data[0]
    for layer in network.layers[:4]:
        values = layer(values, training=False)
    alive = (values.numpy() != 0).mean(axis=(0, 1, 2))
    assert 0 < alive.mean() < 1
    assert np.allclose(scores("activation", network, ["conv/kernel"], data=data)["conv/kernel"][0, 0, 0], alive)


def test_data_may_come_in_batches_and_progress_is_told(model, data):
    x, y = data
    told = []
    whole = scores("taylor", model, data=data, batch_size=4, progress=lambda *step: told.append(step))
    assert told == [(1, 3, "taylor"), (2, 3, "taylor"), (3, 3, "taylor")]
    for source in (
        [(x[at : at + 4], y[at : at + 4]) for at in range(0, 12, 4)],
        tf.data.Dataset.from_tensor_slices(data).batch(4),
    ):
        parts = scores("taylor", model, data=source)
        for path in PATHS:
            assert np.array_equal(parts[path], whole[path])


@pytest.mark.parametrize("criterion", ["taylor", "fisher", "activation"])
def test_several_inputs_and_outputs_are_given_as_fit_takes_them(criterion):
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(1)
    given = [keras.Input((size,), name=name) for size, name in ((3, "one"), (2, "two"))]
    paths = [keras.layers.Dense(4, activation="relu", name=f"{tensor.name}_fc")(tensor) for tensor in given]
    joined = keras.layers.Concatenate()(paths)
    ends = [keras.layers.Dense(2, name=name)(joined) for name in ("left", "right")]
    model = keras.Model(given, ends)
    model.compile("sgd", ["mse", "mse"])
    x, y = ([rng.normal(size=(12, size)).astype("float32") for size in sizes] for sizes in ((3, 2), (2, 2)))
    batches = [([a[at : at + 4] for a in x], [a[at : at + 4] for a in y]) for at in range(0, 12, 4)]
    wanted = scores(criterion, model, ["one_fc/kernel"], data=batches)["one_fc/kernel"]
    by_name = dict(zip(("one", "two"), x, strict=True))
    for data in ((x, y), (by_name, y), (tuple(x), y), (x, y, np.ones(12))):
        found = scores(criterion, model, ["one_fc/kernel"], data=data, batch_size=4)["one_fc/kernel"]
        assert np.allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((np.zeros((4, 6, 6, 1)), np.zeros(3)), DataError, "data are 2 arrays of 4, 3 samples"),
        (np.zeros((0, 6, 6, 1)), DataError, "the data hold no samples"),
        (np.zeros((4, 6, 6, 1)), MaskError, "criterion 'taylor' needs labels"),
        (7, DataError, "data are a int; wanted arrays"),
        (([[0.0] * 36] * 4, [0] * 4), DataError, "a batch has a float in place of its samples; wanted an array"),
        (([np.zeros((4, 6)), np.zeros((3, 6))], np.zeros(4)), DataError, "data are 3 arrays of 4, 3, 4 samples"),
    ],
)
def test_data_of_another_form_are_named(model, given, error, message):
    with pytest.raises(error, match=message):
        select(model, 0.5, criterion="taylor", data=given)


def test_a_loss_is_asked_for(data):
    with pytest.raises(MaskError, match=r"criterion 'fisher' needs a loss; call model\.compile"):
        select(plain(), 0.5, criterion="fisher", data=data)


@pytest.mark.parametrize("criterion", sorted(CRITERIA))
def test_every_criterion_selects_and_leaves_the_model_alone(model, data, criterion):
    before = {path: variable.numpy().tobytes() for path, variable in named_weights(model).items()}
    paths = ["conv2/kernel"] if criterion == "bn_scale" else []
    one, other = (select(model, 0.4, "filter", criterion, paths=paths, data=data, seed=3) for _ in range(2))
    assert one == other
    assert {path: variable.numpy().tobytes() for path, variable in named_weights(model).items()} == before


def test_added_channels_leave_together():
    network = residual()
    masks = select(network, 0.5, "filter", paths=["stem/kernel", "branch/kernel", "mix/kernel"])
    dead = {path: ~mask.any(axis=(0, 1, 2)) for path, mask in masks.items()}
    assert np.array_equal(dead["stem/kernel"], dead["branch/kernel"])
    # Four pairs and five filters are nine units.
    assert dead["stem/kernel"].sum() + dead["mix/kernel"].sum() == round(0.5 * 9)
    alone = select(
        network, 0.5, "filter", paths=["stem/kernel", "branch/kernel"], protect=Protection(coupled=False), scope="layer"
    )
    assert not np.array_equal(alone["stem/kernel"], alone["branch/kernel"])


def test_a_depthwise_filter_goes_with_the_channel_that_it_reads():
    masks = select(residual(), 0.5, "filter", paths=["stem/kernel", "branch/kernel", "depth/kernel"])
    dead = ~masks["stem/kernel"].any(axis=(0, 1, 2))
    assert dead.sum() == 2
    assert np.array_equal(~masks["depth/kernel"].any(axis=(0, 1, 3)), dead)


def test_coupled_layers_with_different_sparsities_are_refused():
    with pytest.raises(MaskError, match="stem/kernel, branch/kernel are coupled by additions, but are asked for"):
        select(residual(), {"stem/kernel": 0.25, "branch/kernel": 0.5}, "filter")


def test_the_score_of_a_coupled_unit_is_the_mean_of_its_filters():
    network = residual()
    weights = named_weights(network)
    sizes = [np.abs(weights[f"{name}/kernel"].numpy()).mean(axis=(0, 1, 2)) for name in ("stem", "branch")]
    masks = select(network, 0.25, "filter", paths=["stem/kernel", "branch/kernel"])
    assert np.flatnonzero(~masks["stem/kernel"].any(axis=(0, 1, 2))).tolist() == [int(np.mean(sizes, axis=0).argmin())]
