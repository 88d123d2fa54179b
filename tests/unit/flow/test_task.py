"""The loss, the metric and the optimizer: the model's own, the flow's, or what fits the labels."""

from dataclasses import replace

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import ConfigError, DataError
from fpgaprune.flow.file import TrainConfig
from fpgaprune.flow.stages import doubts
from fpgaprune.flow.task import Judge, Loss, check_data, read_model, read_task
from fpgaprune.network import read_keras_ends

RNG = np.random.default_rng(1)
X = RNG.random((40, 4)).astype("float32")
CLASSES = RNG.integers(0, 3, 40)


def model(units, activation=None):
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(units, activation=activation, name="d")])


def data(y):
    return check_data("d", {"x_train": X, "y_train": y, "x_test": X, "y_test": y})


def judged(network, y, **settings):
    task = read_task(TrainConfig(**settings), network, data(y))
    return task, Judge(TrainConfig(**settings), task, network, y)


@pytest.mark.parametrize(
    ("y", "network", "loss", "name"),
    [
        (CLASSES, model(3, "softmax"), "sparse_categorical_crossentropy", "accuracy"),
        (np.eye(3, dtype=int)[CLASSES], model(3, "softmax"), "categorical_crossentropy", "accuracy"),
        (CLASSES.clip(0, 1)[:, None], model(1, "sigmoid"), "binary_crossentropy", "accuracy"),
        (RNG.random((40, 3)).astype("float32"), model(3), "mean_squared_error", "r2"),
    ],
)
def test_labels_say_what_is_asked(y, network, loss, name):
    task, judge = judged(network, y)
    assert task.loss.name == loss
    assert judge.name == name
    assert judge.higher_is_better
    assert judge.is_fraction


def test_logits_are_told_from_probabilities():
    assert read_task(TrainConfig(), model(3), data(CLASSES)).loss.get_config()["from_logits"]
    assert not read_task(TrainConfig(), model(3, "softmax"), data(CLASSES)).loss.get_config()["from_logits"]
    # Half is the border of a probability, zero that of a logit.
    y = np.array([[0], [1]] * 20)
    _, judge = judged(model(1), y)
    assert judge.reading(np.where(y, 0.2, -0.2).astype("float32")).value == 1


def test_a_compiled_model_brings_its_own(tmp_path):
    mine = model(3, "softmax")
    mine.compile(keras.optimizers.SGD(0.125, momentum=0.5), "kl_divergence", metrics=["mae"])
    mine.save(tmp_path / "mine.keras")
    settings = TrainConfig(model=tmp_path / "mine.keras")
    task = read_task(settings, mine, data(np.eye(3)[CLASSES]))
    judge = Judge(settings, task, mine, np.eye(3)[CLASSES])
    assert (task.loss, judge.name, judge.higher_is_better) == ("kl_divergence", "mae", False)
    task.compile(mine, None, 0.5, steps=10)
    assert type(mine.optimizer).__name__ == "SGD"
    assert (float(mine.optimizer.learning_rate), mine.optimizer.momentum) == (0.125, 0.5)
    task.compile(mine, 0.25, 0.5, steps=10)
    assert float(mine.optimizer.learning_rate) == 0.25
    other = read_task(
        TrainConfig(model=settings.model, optimizer="rmsprop", loss="mse"), mine, data(np.eye(3)[CLASSES])
    )
    assert (other.loss, other.optimizer["class_name"], other.has_rate) == ("mse", "RMSprop", False)


@pytest.mark.parametrize(("first", "start"), [(0.25, 0.25), (0.0, 0.5)])
def test_a_schedule_of_another_training_gives_the_rate_at_the_start(first, start, tmp_path):
    """Its steps are over early in a longer training, which would learn nothing from then on."""
    mine = model(3, "softmax")
    schedule = keras.optimizers.schedules.CosineDecay(first, 10, warmup_target=None if first else 1.0, warmup_steps=5)
    mine.compile(keras.optimizers.Adam(schedule), "kl_divergence")
    mine.save(tmp_path / "mine.keras")
    task = read_task(TrainConfig(model=tmp_path / "mine.keras"), mine, data(np.eye(3)[CLASSES]))
    task.compile(mine, None, 0.5, steps=100)
    assert [float(mine.optimizer._learning_rate(step)) for step in (0, 50, 100)] == pytest.approx([start, start / 2, 0])


def test_a_loss_that_no_file_holds_is_named(tmp_path):
    def own_loss(y, outputs):
        return keras.ops.mean(keras.ops.square(y - outputs))

    mine = model(3)
    mine.compile("adam", own_loss)
    mine.save(tmp_path / "mine.keras")
    with pytest.raises(
        ConfigError, match=r"compiled with own_loss.* name it in a flow file: loss = 'file\.py:function' in \[train\]"
    ):
        read_task(TrainConfig(model=tmp_path / "mine.keras"), mine, data(np.eye(3)[CLASSES]))
    (tmp_path / "own.py").write_text("def own_loss(y, outputs):\n    return 0.0\n")
    settings = TrainConfig(model=tmp_path / "mine.keras", loss=f"{tmp_path / 'own.py'}:own_loss")
    assert read_task(settings, mine, data(np.eye(3)[CLASSES])).loss.__name__ == "own_loss"


@pytest.mark.parametrize("key", ["loss", "metric", "optimizer"])
def test_an_unknown_name_is_refused(key):
    with pytest.raises(ConfigError, match=f"train.{key} is 'magic', which Keras does not know"):
        read_task(TrainConfig(**{key: "magic"}), model(3, "softmax"), data(CLASSES))


def test_losses_and_their_standard_errors():
    right = np.eye(3)[CLASSES].astype("float32")
    wrong = np.roll(right, 1, axis=1)
    half = np.where((np.arange(40) % 2 == 0)[:, None], right, wrong)
    _, judge = judged(model(3, "softmax"), CLASSES)
    assert judge.reading(right).value == 1
    assert judge.reading(right).error == 0
    found = judge.reading(half)
    assert found.value == 0.5
    lost = judge.lost(right, half)
    assert lost.lost == 0.5
    assert 0.05 < lost.lost_error < 0.12
    assert judge.lost(half, half) == Loss(0, 0)
    noisy = np.where((RNG.random(40) < 0.5)[:, None], right, wrong)
    binomial = np.sqrt(0.25 / 40)
    assert 0.4 * binomial < judge.reading(noisy).error < 2.5 * binomial


@pytest.mark.parametrize("shape", [(40,), (40, 1), (40, 3)])
def test_accuracy_is_that_of_keras(shape):
    outputs = RNG.random((40, 3)).astype("float32")
    y = np.eye(3, dtype=int)[CLASSES] if shape == (40, 3) else CLASSES.reshape(shape)
    _, judge = judged(model(3, "softmax"), y)
    some = np.arange(40) % 3 > 0
    for index in (slice(None), some):
        assert judge._value(y[index], outputs[index]) == pytest.approx(
            judge._keras_metrics(y[index], outputs[index])["accuracy"], abs=1e-6
        )


def test_an_error_is_lost_as_a_share():
    y = RNG.random((40, 3)).astype("float32")
    _, judge = judged(model(3), y, metric="mse")
    assert not judge.higher_is_better
    assert judge.lost(y + 0.1, y + 0.2).lost == pytest.approx(3, rel=1e-3)
    assert judge.lost(y + 0.2, y + 0.1).lost == pytest.approx(-0.75, rel=1e-3)
    _, loss = judged(model(3), y, metric="loss")
    assert loss.reading(y + 0.1).value == pytest.approx(0.01, rel=1e-3)


def test_several_outputs():
    inputs = keras.Input((4,))
    outputs = [keras.layers.Dense(3, "softmax", name="a")(inputs), keras.layers.Dense(1, name="b")(inputs)]
    network = keras.Model(inputs, outputs)
    number = RNG.random((40, 1)).astype("float32")
    both = check_data(
        "d",
        {
            "x_train": X,
            "x_test": X,
            **{f"y_{p}.{n}": v for p in ("train", "test") for n, v in (("a", CLASSES), ("b", number))},
        },
    )
    task = read_task(TrainConfig(), network, both)
    assert [loss.name for loss in task.loss] == ["sparse_categorical_crossentropy", "mean_squared_error"]
    judge = Judge(TrainConfig(), task, network, both.y_test)
    assert judge.reading((np.eye(3)[CLASSES], number)).value == 1


BCE, SCE, CE = "binary_crossentropy", "sparse_categorical_crossentropy", "categorical_crossentropy"


@pytest.mark.parametrize(
    ("loss", "y", "classes", "message"),
    [
        (BCE, CLASSES.clip(0, 1) + 1, 1, "y_train holds 1 to 2, and the loss binary_crossentropy takes 0 to 1"),
        (BCE, 2.0 * CLASSES.clip(0, 1) - 1, 1, "y_train holds -1 to 1, and the loss binary"),
        (SCE, CLASSES[:, None] + 1, 3, "y_train holds 1 to 3, and the loss sparse_categorical_crossentropy takes 0 to"),
        (SCE, CLASSES + 1.0, 3, "y_train holds 1 to 3, and the loss sparse"),
        (SCE, CLASSES - 1, 3, "from -1 to 1; wanted class numbers"),
        (SCE, np.eye(3)[CLASSES], 3, r"has shape \(40, 3\), and the loss sparse.* wanted labels.argmax"),
        (CE, CLASSES, 3, r"has shape \(40,\), and the loss categorical.*to_categorical"),
    ],
)
@pytest.mark.parametrize("as_object", [False, True])
def test_labels_that_the_loss_is_not_for_are_refused(tmp_path, loss, y, classes, message, as_object):
    mine = model(classes, "sigmoid" if classes == 1 else "softmax")
    mine.compile("adam", getattr(keras.losses, "".join(map(str.title, loss.split("_"))))() if as_object else loss)
    mine.save(tmp_path / "mine.keras")
    with pytest.raises(DataError, match=message):
        read_task(TrainConfig(model=tmp_path / "mine.keras"), mine, data(y))


def test_labels_of_another_shape_are_told_with_both_shapes():
    """An autoencoder of images, whose labels were flattened."""
    network = keras.Sequential([keras.Input((4, 4, 1)), keras.layers.Conv2D(1, 1)])
    network.compile("adam", "mse")
    x = np.zeros((5, 4, 4, 1), "float32")
    task = read_task(TrainConfig(), network, check_data("d", {"x_train": x, "y_train": x, "x_test": x, "y_test": x}))
    task.check_loss(network, x)
    said = r"labels of shape \(16,\) and outputs of shape \(4, 4, 1\): .*; give labels of another shape"
    with pytest.raises(ConfigError, match=said):
        task.check_loss(network, x.reshape(5, 16))


def test_each_output_has_its_loss(tmp_path):
    given = keras.Input((4,))
    mine = keras.Model(given, [keras.layers.Dense(1, name=name, activation="sigmoid")(given) for name in ("a", "b")])
    both = {"a": CLASSES.astype("float32"), "b": CLASSES.clip(0, 1)}
    arrays = {"x_train": X, "x_test": X, **{f"y_{p}.{k}": y for p in ("train", "test") for k, y in both.items()}}
    for loss, fits in (({"a": "mse", "b": BCE}, True), (["mse", BCE], True), ({"a": BCE, "b": "mse"}, False)):
        mine.compile("adam", loss)
        mine.save(tmp_path / "mine.keras")
        settings = TrainConfig(model=tmp_path / "mine.keras")
        if fits:
            assert read_task(settings, mine, check_data("d", arrays)).loss == loss
            continue
        with pytest.raises(DataError, match=r"y_train\.a holds 0 to 2"):
            read_task(settings, mine, check_data("d", arrays))


@pytest.mark.parametrize(("classes", "number"), [("kind", "size"), ("z", "a")])
def test_a_network_that_rounds_has_the_losses_and_metrics_of_the_keys_of_its_outputs(tmp_path, classes, number):
    """Its softmax is a layer of its own, and Keras has the outputs of a mapping in the order of the keys."""
    entry = keras.Input((4,))
    kind = keras.layers.Dense(3, activation="softmax", name="kind")(entry)
    mine = keras.Model(entry, {classes: kind, number: keras.layers.Dense(2, name="size")(entry)})
    loss = {classes: "sparse_categorical_crossentropy", number: "mse"}
    mine.compile("adam", loss, metrics={classes: ["accuracy"]})
    mine.save(tmp_path / "mine.keras")
    assert read_keras_ends(tmp_path / "mine.keras").outputs == tuple(sorted(loss))
    parts = {"train": slice(20), "test": slice(20, 40)}
    arrays = {f"x_{part}": X[rows] for part, rows in parts.items()}
    arrays |= {f"y_{part}.{classes}": CLASSES[rows] for part, rows in parts.items()}
    arrays |= {f"y_{part}.{number}": X[rows, :2] for part, rows in parts.items()}
    found = check_data("d", arrays).in_order(["input"], sorted(loss))
    rounded = fp.quantize(mine, fp.Target.of("xc7z020clg400-1"), X, fp.Precision(8, 8))
    settings = TrainConfig(model=tmp_path / "mine.keras")
    task = read_task(settings, rounded, found)
    judge = Judge(settings, task, rounded, found.y_test)
    assert judge.name == f"{classes}_accuracy"
    task.check_loss(rounded, found.y_train)


def test_a_void_class_is_no_mistake(tmp_path):
    mine = model(3, "softmax")
    mine.compile("adam", keras.losses.SparseCategoricalCrossentropy(ignore_class=255), metrics=["accuracy"])
    mine.save(tmp_path / "mine.keras")
    labels = np.where(np.arange(40) % 7 == 0, 255, CLASSES)
    assert read_task(TrainConfig(model=tmp_path / "mine.keras"), mine, data(labels)).loss.ignore_class == 255


@pytest.mark.parametrize(
    ("y", "units", "known"),
    [
        (np.repeat([0, 1, 2], [10, 24, 6]), 3, 0.6),
        (np.eye(3, dtype=int)[np.repeat([0, 1, 2], [10, 24, 6])], 3, 0.6),
        (np.repeat([0, 1], [28, 12])[:, None], 1, 0.7),
        (np.repeat([0.0, 2.0, 4.0], [10, 20, 10])[:, None], 1, 0.0),
        (np.repeat([0.0, 2.0, 4.0], [10, 20, 10]), 1, 0.0),
    ],
)
def test_what_one_answer_for_all_samples_is_worth(y, units, known):
    _, judge = judged(model(units, "softmax" if units > 1 else "sigmoid"), y)
    assert judge.constant() == pytest.approx(known)


def test_the_error_of_one_answer_is_the_spread_of_the_labels():
    y = np.repeat([0.0, 2.0, 4.0], [10, 20, 10])[:, None]
    assert judged(model(1), y, metric="mse")[1].constant() == pytest.approx(2.0)
    assert judged(model(1), y, metric="loss")[1].constant() is None


@pytest.mark.parametrize(("share", "count"), [(0.5, 1), (0.6, 1), (0.7, 0)])
def test_a_network_that_knows_nothing_of_the_samples_is_named(share, count):
    y = np.repeat([0, 1, 2], [10, 24, 6])
    _, judge = judged(model(3, "softmax"), y)
    right = np.arange(40) % 10 < 10 * share
    outputs = np.eye(3)[np.where(right, y, (y + 1) % 3)]
    found = doubts(judge, outputs)
    assert len(found) == count
    assert all(
        f"before, accuracy {100 * share:.2f} % is no better than one answer for all samples, 60.00 %" in line
        for line in found
    )


def test_an_error_below_the_spread_of_the_labels_is_knowledge():
    y = np.repeat([0.0, 2.0, 4.0], [10, 20, 10])[:, None]
    _, judge = judged(model(1), y, metric="mse")
    assert not doubts(judge, y + 1.0)
    assert doubts(judge, y + 2.0)


def test_decay_takes_a_share_of_kernels_and_leaves_biases():
    """Of a loss that is flat, so that nothing else moves a weight."""
    mine = model(3)
    kernel, bias = (np.full(part.shape, 0.5, np.float32) for part in mine.layers[0].get_weights())
    mine.layers[0].set_weights([kernel, bias])
    task = read_task(TrainConfig(), mine, data(CLASSES))
    # A decay of its own is replaced, and without one nothing decays.
    for decay, left in ((0.25, 0.5 * (1 - 0.125 * 0.25)), (0.0, 0.5), (None, 0.5)):
        mine.layers[0].set_weights([kernel, bias])
        task.compile(mine, 0.125, 0.125, steps=1, decay=decay)
        mine.optimizer.apply(
            [keras.ops.zeros_like(part) for part in mine.trainable_variables], mine.trainable_variables
        )
        after = mine.layers[0].get_weights()
        np.testing.assert_allclose(after[0], left, rtol=1e-6)
        np.testing.assert_array_equal(after[1], bias)


def test_an_optimizer_without_decay_is_named():
    @keras.saving.register_keras_serializable("fpgaprune_tests")
    class Plain(keras.optimizers.SGD):
        def get_config(self):
            return {"learning_rate": 0.1}

    mine = model(3)
    mine.compile(Plain(0.1), "mse")
    task = read_task(TrainConfig(), mine, data(CLASSES))
    task = replace(task, optimizer=keras.optimizers.serialize(Plain(0.1)))
    with pytest.raises(ConfigError, match=r"finetune\.weight_decay is 0\.1, and the optimizer Plain has none"):
        task.compile(mine, 0.1, 0.1, steps=1, decay=0.1)


def test_a_network_with_the_channels_first_can_be_trained_on_this_processor(tmp_path):
    """Without oneDNN, which a flow turns off, TensorFlow has no convolution with the channels first."""
    first = {"data_format": "channels_first"}
    layers = [keras.layers.Conv2D(2, 3, **first), keras.layers.Flatten(**first), keras.layers.Dense(3)]
    keras.Sequential([keras.Input((1, 6, 6)), *layers]).save(tmp_path / "first.keras")
    found, _ = read_model(tmp_path / "first.keras")
    found.compile("adam", "mse")
    found.fit(RNG.random((8, 1, 6, 6)), RNG.random((8, 3)), verbose=0)
    assert {layer.name for layer in layers} <= {layer.name for layer in found.layers}
