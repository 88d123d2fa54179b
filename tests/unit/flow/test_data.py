"""Data of any task: several inputs and outputs, autoencoders, functions, tf.data."""

import numpy as np
import pytest
import tensorflow as tf

from fpgaprune.errors import DataError
from fpgaprune.flow.task import check_data, load_data

RNG = np.random.default_rng(0)


def two(part, count):
    return {
        f"x_{part}.left": RNG.random((count, 3)),
        f"x_{part}.right": RNG.random((count, 2)),
        f"y_{part}": RNG.integers(0, 2, count),
    }


def test_named_inputs_come_in_the_order_of_the_network():
    data = check_data("d", {**two("train", 6), **two("test", 4)})
    assert [array.shape for array in data.x_train] == [(6, 3), (6, 2)]
    turned = data.in_order(["right", "left"], ["y"])
    assert [array.shape for array in turned.x_train] == [(6, 2), (6, 3)]
    assert np.array_equal(turned.x_test[1], data.x_test[0])
    with pytest.raises(DataError, match="names the inputs left, right; the network's are left, middle"):
        data.in_order(["left", "middle"], ["y"])
    with pytest.raises(DataError, match="the network has 1 inputs: only"):
        data.in_order(["only"], ["y"])


def test_without_labels_the_samples_are_the_labels():
    data = check_data("d", {"x_train": RNG.random((5, 4)), "x_test": RNG.random((3, 4))})
    assert np.array_equal(data.y_train, data.x_train)
    assert data.classes is None
    with pytest.raises(DataError, match="has no y_test"):
        check_data("d", {"x_train": RNG.random((5, 4)), "y_train": np.zeros(5), "x_test": RNG.random((3, 4))})


@pytest.mark.parametrize("labels", [np.eye(3)[[0, 1, 2, 0]], RNG.random((4, 2, 2, 1)), np.zeros(4)])
def test_labels_that_are_no_classes_are_taken(labels):
    data = check_data(
        "d", {"x_train": np.zeros((4, 2)), "y_train": labels, "x_test": np.ones((4, 2)), "y_test": labels}
    )
    assert data.classes is None
    assert data.y_train.shape == labels.shape


def test_tensorflow_datasets_of_a_function_in_a_file(tmp_path):
    (tmp_path / "load.py").write_text(
        "import numpy as np, tensorflow as tf, neighbour\n"
        "def load():\n"
        "    x = np.arange(10.0).reshape(5, 2); y = np.arange(5)\n"
        "    pairs = tf.data.Dataset.from_tensor_slices((x, y))\n"
        "    return {'train': pairs.batch(2), 'test': pairs.batch(5)}\n"
    )
    (tmp_path / "neighbour.py").write_text("")
    data = load_data(f"{tmp_path / 'load.py'}:load")
    assert np.array_equal(data.x_train, data.x_test)
    assert data.y_train.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.unbatch(), "wanted batches"),
        (lambda d: d.repeat(), "never ends"),
        (lambda d: d.take(0), "is empty"),
        (lambda d: d.map(lambda x, y: (x, y, y, y)), r"elements of \[4\] parts"),
    ],
)
def test_datasets_of_another_form_are_refused(change, message, monkeypatch):
    plain = tf.data.Dataset.from_tensor_slices((np.arange(4), np.arange(4))).batch(2)
    monkeypatch.setattr(
        "fpgaprune.flow.task.data.named_function", lambda *_: lambda: {"train": change(plain), "test": plain}
    )
    with pytest.raises(DataError, match=message):
        load_data("a.b:c")


@pytest.mark.parametrize(
    ("key", "meant"),
    [("x_val", "x_valid"), ("y_validation.left", "y_valid"), ("X_train", "x_train"), ("sample_weight_dev", None)],
)
def test_an_array_in_another_spelling_is_not_left_out_in_silence(key, meant):
    x, y = RNG.random((5, 4)), np.arange(5) % 2
    arrays = {"x_train": x, "y_train": y, "x_test": x, "y_test": y, "x_names": np.arange(4)}
    assert check_data("d", arrays).x_valid is None
    if key == "X_train":
        arrays = {key if name == "x_train" else name: array for name, array in arrays.items()}
    stem = key.partition(".")[0]
    with pytest.raises(DataError, match=f"names an array '{stem}'; wanted '{meant or 'sample_weight_valid'}'"):
        check_data("d", {**arrays, key: x})
