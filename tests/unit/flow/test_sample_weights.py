"""What a sample counts: in the loss, in the scores of a selection and in the metric, for one output or for several."""

from itertools import product

import keras
import numpy as np
import pytest

from fpgaprune.errors import ConfigError, DataError
from fpgaprune.flow.file import SelectConfig, TrainConfig
from fpgaprune.flow.run import epochs_shown
from fpgaprune.flow.task import Judge, check_data, choose_masks, predict, read_task, shuffled_batches
from tests.quick import quick

RNG = np.random.default_rng(0)
X = RNG.random((24, 4, 4, 1)).astype("float32")
CLASSES, PIXELS = np.arange(24) % 3, RNG.integers(0, 3, (24, 4, 4))
NUMBERS, WEIGHTS = RNG.random((24, 2)), RNG.random(24)
TABLE = np.array([1.0, 5.0, 1.0], np.float32)


def network(*kinds):
    """A network with an output for each of `kinds`, named after it."""
    inputs = keras.Input((4, 4, 1), name="x")
    features = keras.layers.Conv2D(4, 3, padding="same", activation="relu", name="conv")(inputs)
    flat = keras.layers.Flatten(name="flat")(features)
    made = {
        "classes": lambda: keras.layers.Dense(3, "softmax", name="classes")(flat),
        "answer": lambda: keras.layers.Dense(1, "sigmoid", name="answer")(flat),
        "numbers": lambda: keras.layers.Dense(2, name="numbers")(flat),
        "pixels": lambda: keras.layers.Conv2D(3, 1, activation="softmax", name="pixels")(features),
    }
    outputs = [made[kind]() for kind in kinds]
    return keras.Model(inputs, outputs if len(outputs) > 1 else outputs[0])


def data_of(labels, weights=None):
    """Data with these labels, an array or output to array, and perhaps weights of samples in the same form."""
    arrays = {"x_train": X, "x_test": X, "y_train": labels, "y_test": labels}
    if weights is not None:
        arrays |= {"sample_weight_train": weights, "sample_weight_test": weights}
    return check_data("mine", arrays)


def judged(model, data, /, **settings):
    train = TrainConfig(**settings)
    task = read_task(train, model, data)
    return task, Judge(train, task, model, data.y_test, data.sample_weight_test)


@pytest.mark.parametrize(
    ("kind", "labels", "numbers"),
    [
        ("classes", CLASSES, CLASSES),
        ("classes", CLASSES[:, None], CLASSES),
        ("classes", np.eye(3, dtype=int)[CLASSES], CLASSES),
        ("answer", CLASSES.clip(0, 1), CLASSES.clip(0, 1)),
        ("answer", CLASSES.clip(0, 1)[:, None].astype("float32"), CLASSES.clip(0, 1)),
        ("pixels", PIXELS, PIXELS),
        ("pixels", np.eye(3, dtype=int)[PIXELS], PIXELS),
    ],
)
def test_each_label_weighs_what_its_class_does(kind, labels, numbers):
    task, _ = judged(network(kind), data_of(labels), class_weight={"1": 5.0})
    assert np.array_equal(task.weights, TABLE[numbers])
    both, _ = judged(network(kind), data_of(labels, WEIGHTS), class_weight={"1": 5.0})
    own = WEIGHTS.astype("float32").reshape(-1, *[1] * (numbers.ndim - 1))
    assert np.array_equal(both.weights, own * TABLE[numbers])


@pytest.mark.parametrize("weights", [WEIGHTS, RNG.random((24, 4, 4))])
def test_the_loss_of_pixels_counts_each_with_its_own_weight(weights):
    model, data = network("pixels"), data_of(PIXELS, weights)
    task, judge = judged(model, data)
    task.compile(model, None, 0.1, steps=1)
    outputs = predict(model, X)
    each = -np.log(np.take_along_axis(outputs, PIXELS[..., None], axis=-1))[..., 0]
    places = weights.reshape(-1, 1, 1) if weights.ndim == 1 else weights
    got = float(model.compute_loss(y=PIXELS, y_pred=outputs, sample_weight=task.weights))
    assert got == pytest.approx((each * places).mean(), rel=1e-5)
    right = outputs.argmax(-1) == PIXELS
    assert judge.name == "weighted accuracy"
    assert judge.value(outputs) == pytest.approx(np.average(right, weights=np.broadcast_to(places, right.shape)))


def test_the_metric_counts_each_sample_with_its_weight():
    outputs = np.eye(3)[np.where(np.arange(24) < 12, CLASSES, (CLASSES + 1) % 3)].astype("float32")
    for settings in ({}, {"metric": "sparse_categorical_accuracy"}, {"metric": "accuracy"}):
        judge = judged(network("classes"), data_of(CLASSES, WEIGHTS), **settings)[1]
        assert judge.value(outputs) == pytest.approx(WEIGHTS[:12].sum() / WEIGHTS.sum(), rel=1e-5)
        assert judge.constant() is None
    plain, heavy = data_of(NUMBERS), data_of(NUMBERS, np.repeat([1.0, 0.0], 12))
    given = (NUMBERS + np.repeat([0.0, 9.0], 12)[:, None]).astype("float32")
    assert judged(network("numbers"), heavy)[1].value(given) == pytest.approx(1, abs=1e-5)
    assert judged(network("numbers"), plain)[1].value(given) < 0


def test_a_selection_does_not_see_a_sample_of_no_weight():
    model, some = network("classes"), np.repeat([1.0, 0.0], 12)
    settings = SelectConfig(sparsity=0.5, criterion="taylor", granularity="weight", batch_size=12)
    chosen = []
    for data in (data_of(CLASSES, some), data_of(CLASSES).first(12), data_of(CLASSES)):
        task = read_task(TrainConfig(), model, data)
        task.compile_for_scores(model)
        chosen.append(choose_masks(model, settings, task.training_data(data), 0)[0])
    assert chosen[0] == chosen[1]
    assert chosen[0] != chosen[2]


FORMS, SETTINGS = ["shared", "of each", "of one"], [{"class_weight": {"1": 5.0}}, {}, {"metric": "loss"}]


@pytest.mark.parametrize(("form", "settings"), quick(zip(FORMS, SETTINGS, strict=True), product(FORMS, SETTINGS)))
def test_two_outputs_train_with_weights(form, settings):
    model, labels = network("classes", "numbers"), {"classes": CLASSES, "numbers": NUMBERS}
    weights = {
        "shared": WEIGHTS,
        "of each": {"classes": WEIGHTS, "numbers": WEIGHTS**2},
        "of one": {"numbers": WEIGHTS},
    }
    data = data_of(labels, weights[form])
    task, judge = judged(model, data, **settings)
    task.check_loss(model, data.y_train)
    task.compile(model, None, 0.01, steps=2)
    batches = shuffled_batches(data.x_train, data.y_train, 12, 0, 0, task.weights)
    model.fit(batches, epochs=1, steps_per_epoch=2, verbose=0, shuffle=False)
    wanted = np.ones(24) if form == "of one" else WEIGHTS
    table = TABLE if "class_weight" in settings else np.ones(3)
    assert np.allclose(task.weights[0], wanted * table[CLASSES])
    assert np.allclose(task.weights[1], WEIGHTS**2 if form == "of each" else WEIGHTS)
    assert judge.name == (
        "weighted loss" if settings.get("metric") else "weighted mean of classes accuracy, numbers r2"
    )
    assert np.isfinite(judge.value(predict(model, X)))


@pytest.mark.parametrize(
    ("kinds", "labels", "weights", "message"),
    [
        (["classes"], CLASSES, {"7": 2.0}, "train.class_weight names class 7; wanted 0 to 2"),
        (["numbers"], NUMBERS, {"0": 2.0}, "no output has classes"),
        (["classes", "answer"], [CLASSES, CLASSES.clip(0, 1)], {"0": 2.0}, "outputs with classes are classes, answer"),
        (
            ["classes", "numbers"],
            [CLASSES, NUMBERS],
            {"c": {"0": 2.0}},
            "names the output 'c'; the network has classes",
        ),
        (["classes", "numbers"], [CLASSES, NUMBERS], {"numbers": {"0": 2.0}}, "the labels hold no classes"),
        (["classes", "numbers"], [CLASSES, NUMBERS], {"classes": {"0": 2.0}, "1": 2.0}, "holds both '1' and 'classes'"),
    ],
)
def test_weights_of_classes_that_fit_no_output_are_refused(kinds, labels, weights, message):
    with pytest.raises(ConfigError, match=message):
        read_task(TrainConfig(class_weight=weights), network(*kinds), data_of(labels))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (WEIGHTS[:5], r"sample_weight_train has shape \(5,\), its labels \(24,\)"),
        (-WEIGHTS, "sample_weight_train holds -0.*; wanted weights of 0 or more"),
        (WEIGHTS * 0, "sample_weight_train holds zeros alone"),
        (np.full(24, np.nan), "sample_weight_train hold NaN"),
        ({"other": WEIGHTS}, "names 'other'; the labels are one array"),
    ],
)
def test_weights_that_fit_no_samples_are_refused(weights, message):
    with pytest.raises(DataError, match=message):
        data_of(CLASSES, weights)


def test_several_outputs_without_a_metric_are_judged_each_by_what_fits_it(tmp_path):
    model = network("classes", "answer", "numbers")
    labels = {"classes": CLASSES, "answer": CLASSES.clip(0, 1), "numbers": NUMBERS}
    outputs = (
        np.eye(3)[(CLASSES + (CLASSES == 2)) % 3],
        np.where(np.arange(24) < 6, 0.9, CLASSES.clip(0, 1))[:, None],
        np.broadcast_to(NUMBERS.mean(axis=0), NUMBERS.shape),
    )
    right = np.where(np.arange(24) < 6, CLASSES.clip(0, 1) == 1, True).mean()
    model.compile("adam", ["sparse_categorical_crossentropy", "binary_crossentropy", "mse"])
    model.save(tmp_path / "mine.keras")
    for settings in ({}, {"model": tmp_path / "mine.keras"}):
        judge = judged(model, data_of(labels), **settings)[1]
        assert judge.name == "mean of classes accuracy, answer accuracy, numbers r2"
        assert judge.value(outputs) == pytest.approx((2 / 3 + right + 0) / 3, abs=1e-6)


@keras.saving.register_keras_serializable("test_sample_weights")
class Pair(keras.metrics.Metric):
    """A metric with two values."""

    def __init__(self, name="pair", **more):
        super().__init__(name=name, **more)
        self.sum = self.add_weight(name="sum", initializer="zeros")

    def update_state(self, y, outputs, sample_weight=None):
        self.sum.assign_add(keras.ops.sum(outputs))

    def result(self):
        return {"pair_accuracy": self.sum / 24.0, "pair_more": self.sum}


@pytest.mark.parametrize(
    ("metric", "name", "value"),
    [(keras.metrics.F1Score(), "mean f1_score", np.mean([1.0, 2 / 3, 0.8])), (Pair(), "pair_accuracy", 1.0)],
)
def test_a_metric_of_many_values_is_told_and_judged(tmp_path, metric, name, value):
    model, told = network("classes"), []
    model.compile("adam", "categorical_crossentropy", metrics=[metric])
    model.save(tmp_path / "mine.keras")
    data = data_of(np.eye(3, dtype=int)[CLASSES])
    task, judge = judged(model, data, model=tmp_path / "mine.keras")
    assert judge.name == name
    outputs = np.eye(3)[np.where(np.arange(24) % 6 == 1, 2, CLASSES)].astype("float32")
    assert judge.value(outputs) == pytest.approx(value, rel=1e-5)
    task.compile(model, None, 0.01, steps=2)

    class Progress:
        def step(self, done, total, note=""):
            told.append(note)

    batches = shuffled_batches(data.x_train, data.y_train, 12, 0)
    model.fit(batches, epochs=1, steps_per_epoch=2, verbose=0, shuffle=False, callbacks=[epochs_shown(Progress(), 1)])
    assert name.removeprefix("mean ").replace("_", " ") in told[-1]


def test_a_metric_that_does_not_take_these_labels_is_refused_before_a_training(tmp_path):
    model = network("classes")
    model.compile("adam", "sparse_categorical_crossentropy", metrics=[keras.metrics.F1Score()])
    model.save(tmp_path / "mine.keras")
    with pytest.raises(ConfigError, match="the metric of the model cannot be computed of these labels: FBetaScore"):
        judged(model, data_of(CLASSES), model=tmp_path / "mine.keras")


@pytest.mark.parametrize(
    ("returns", "message"),
    [("np.ones(3)", r"an array of shape \(3,\)"), ("None", "a NoneType"), ("{'a': 1.0}", "a dict")],
)
def test_a_metric_of_hers_that_is_no_number_is_refused(tmp_path, returns, message):
    (tmp_path / "own.py").write_text(f"import numpy as np\ndef mine(y, outputs):\n    return {returns}\n")
    judge = judged(network("classes"), data_of(CLASSES), metric=f"{tmp_path / 'own.py'}:mine")[1]
    with pytest.raises(ConfigError, match=f"returned {message}; wanted one number"):
        judge.value(np.eye(3)[CLASSES])


def test_a_metric_of_hers_takes_weights_or_is_refused(tmp_path):
    (tmp_path / "own.py").write_text(
        "import numpy as np\n"
        "def without(y, outputs):\n    return 1.0\n"
        "def share(y, outputs, sample_weight):\n    return np.average(y == 1, weights=sample_weight)\n"
    )
    own, data = f"{tmp_path / 'own.py'}:", data_of(CLASSES, WEIGHTS)
    with pytest.raises(ConfigError, match="takes no sample_weight, and the samples have weights"):
        judged(network("classes"), data, metric=f"{own}without")
    judge = judged(network("classes"), data, metric=f"{own}share")[1]
    assert judge.value(np.eye(3)[CLASSES]) == pytest.approx(WEIGHTS[CLASSES == 1].sum() / WEIGHTS.sum())


def test_a_loss_of_a_whole_batch_cannot_count_weights(tmp_path):
    (tmp_path / "own.py").write_text(
        "import keras\n"
        "def whole(y, outputs):\n    return keras.ops.mean((y - outputs) ** 2)\n"
        "def each(y, outputs):\n    return keras.ops.mean((y - outputs) ** 2, axis=-1)\n"
    )
    for name, weights, refused in (("whole", WEIGHTS, True), ("whole", None, False), ("each", WEIGHTS, False)):
        model, data = network("numbers"), data_of(NUMBERS, weights)
        task, _ = judged(model, data, loss=f"{tmp_path / 'own.py'}:{name}")
        if not refused:
            task.check_loss(model, data.y_train)
            continue
        with pytest.raises(ConfigError, match="it is one number for a whole batch; wanted a loss with a value for"):
            task.check_loss(model, data.y_train)
