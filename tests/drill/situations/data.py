"""Data sets, weights of samples and classes, metrics of several outputs, and files of other kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np

from fpgaprune.flow import flow_from_options, load_data, parse_config, run_flow
from fpgaprune.values import MaskSet

from ._asking import command, refused

_RNG = np.random.default_rng(0)
_X = _RNG.random((64, 6, 6, 1)).astype("float32")
_CLASSES = (_X.mean(axis=(1, 2, 3)) > 0.5).astype(int) + (_X[:, 0, 0, 0] > 0.5)
_ENDLESS = """import numpy as np, tensorflow as tf, keras
x, y = np.random.default_rng(0).random((64, 6, 6, 1)).astype('float32'), np.arange(64) % 3
def forever():
    while True:
        yield x, y
def generator():
    return {'train': forever(), 'test': (x, y)}
def unknown():
    signature = (tf.TensorSpec((64, 6, 6, 1)), tf.TensorSpec((64,), tf.int64))
    return {'train': tf.data.Dataset.from_generator(forever, output_signature=signature), 'test': (x, y)}
class Batches(keras.utils.PyDataset):
    num_batches = None
    def __getitem__(self, number):
        return x, y
def sequence():
    return {'train': Batches(), 'test': (x, y)}
def named():
    inputs = {'left': x, 'right': x[:, :3]}
    return {'x_train': inputs, 'y_train': y, 'x_test': inputs, 'y_test': y}
def weighted():
    pairs = tf.data.Dataset.from_tensor_slices((x, y, np.linspace(0, 1, 64))).batch(16)
    return {'train': pairs, 'test': pairs}
"""


def _network(*kinds: str) -> Any:
    """A small network with an output for each of `kinds`."""
    inputs = keras.Input((6, 6, 1), name="x")
    features = keras.layers.Conv2D(4, 3, padding="same", activation="relu", name="conv")(inputs)
    flat = keras.layers.Flatten(name="flat")(features)
    made = {
        "digit": lambda: keras.layers.Dense(3, activation="softmax", name="digit")(flat),
        "size": lambda: keras.layers.Dense(1, name="size")(flat),
        "mask": lambda: keras.layers.Conv2D(3, 1, name="mask")(features),
    }
    outputs = [made[kind]() for kind in kinds]
    return keras.Model(inputs, outputs if len(outputs) > 1 else outputs[0])


def _run(folder: Path, model: Any, labels: Any, weights: Any = None, train: Any = None, **sections: Any) -> Any:
    """The report of a whole run of `model` on these labels: an array, or output to array."""
    model.save(folder / "net.keras")
    arrays = {"x_train": _X, "x_test": _X}
    for part in ("train", "test"):
        for key, given in ((f"y_{part}", labels), (f"sample_weight_{part}", weights)):
            named = given if isinstance(given, dict) else {"": given}
            arrays |= {f"{key}.{n}" if n else key: array for n, array in named.items() if array is not None}
    np.savez(folder / "mine.npz", **arrays)
    document = {
        "name": "mine",
        "data": {"source": str(folder / "mine.npz")},
        "train": {"model": str(folder / "net.keras"), **(train or {})},
        "select": {"sparsity": 0.5, "granularity": "weight"},
        "finetune": {"epochs": 2},
        "verdict": {"max_loss": "10000 %"},
        "hls": {"simulate": 0},
        **sections,
    }
    return run_flow(parse_config(document, "test"), folder / "run").read_json("report.json")


def _written(folder: Path) -> str:
    (folder / "mine.py").write_text(_ENDLESS)
    return str(folder / "mine.py")


def a_generator_without_an_end(folder: Path) -> None:
    """A generator that never ends is refused after a bound, with the key that reads its first samples."""
    source = _written(folder)
    refused(
        lambda: load_data(f"{source}:generator"),
        r"'train' has given 500,0\d\d samples and goes on",
        r"\[data\] samples",
    )
    assert load_data(f"{source}:generator", samples=100).x_train.shape == (100, 6, 6, 1)


def a_tensorflow_data_set_of_unknown_length(folder: Path) -> None:
    """`from_generator` without an end is refused after a bound, and read where the flow says how many samples."""
    source = _written(folder)
    refused(lambda: load_data(f"{source}:unknown"), "'train' has given .* samples and goes on", r"\[data\] samples")
    assert load_data(f"{source}:unknown", samples=70).y_train.shape == (70,)


def a_sequence_without_an_end(folder: Path) -> None:
    """A PyDataset that says that it never ends is refused at once, and read where the flow says how many samples."""
    source = _written(folder)
    refused(lambda: load_data(f"{source}:sequence"), "'train' never ends", r"\[data\] samples")
    assert load_data(f"{source}:sequence", samples=70).x_train.shape == (70, 6, 6, 1)


def a_function_that_returns_dicts_of_inputs(folder: Path) -> None:
    """Each input of a dict comes to the input of its name, in the order of the network."""
    data = load_data(f"{_written(folder)}:named").in_order(["right", "left"], ["y"])
    assert [array.shape for array in data.x_train] == [(64, 3, 6, 1), (64, 6, 6, 1)]


def weights_of_samples_in_a_data_set(folder: Path) -> None:
    """The third element of a data set of TensorFlow is the weight of each sample."""
    data = load_data(f"{_written(folder)}:weighted")
    assert np.array_equal(data.sample_weight_test, np.linspace(0, 1, 64).astype("float32"))


def weights_of_samples_from_data_to_report(folder: Path) -> None:
    """A run with sample_weight trains, selects and judges with them, and says that the metric is a weighted one."""
    weights = np.linspace(0.1, 1, 64)
    report = _run(folder, _network("digit"), _CLASSES, weights, select={"sparsity": 0.5, "criterion": "taylor"})
    assert report["metric"]["name"] == "weighted accuracy"


def two_outputs_of_different_kinds(folder: Path) -> None:
    """A network of classes and numbers, compiled without metrics, is judged by what fits each output, with weights."""
    model = _network("digit", "size")
    model.compile("adam", {"digit": "sparse_categorical_crossentropy", "size": "mse"})
    labels = {"digit": _CLASSES, "size": _X.mean(axis=(1, 2))}
    weights = {"size": np.linspace(0, 1, 64)}
    report = _run(folder, model, labels, weights, train={"class_weight": {"digit": {"1": 3.0}}})
    assert report["metric"]["name"] == "weighted mean of digit accuracy, size r2"


def weights_of_some_classes_of_pixels(folder: Path) -> None:
    """class_weight for one class of a segmentation trains to the end; the other classes weigh 1."""
    labels = (_X[..., 0] * 3).astype(int)
    report = _run(folder, _network("mask"), labels, train={"class_weight": {"2": 4.0}})
    assert report["metric"]["name"] == "accuracy"


def weights_of_a_class_that_there_is_not(folder: Path) -> None:
    """A class number beyond the network's is refused before anything is trained or written."""
    refused(
        lambda: _run(folder, _network("digit"), _CLASSES, train={"class_weight": {"10": 4.0}}),
        "train.class_weight names class 10; wanted 0 to 2",
    )
    assert not (folder / "run").exists()


def a_metric_with_a_value_for_each_class(folder: Path) -> None:
    """F1Score as Keras defaults it is judged by the mean over the classes."""
    model = _network("digit")
    model.compile("adam", "categorical_crossentropy", metrics=[keras.metrics.F1Score()])
    report = _run(folder, model, np.eye(3, dtype=int)[_CLASSES])
    assert report["metric"]["name"] == "mean f1_score"


def a_metric_that_does_not_take_the_labels(folder: Path) -> None:
    """F1Score of class numbers, which Keras cannot compute, is refused before anything is trained or written."""
    model = _network("digit")
    model.compile("adam", "sparse_categorical_crossentropy", metrics=[keras.metrics.F1Score()])
    refused(lambda: _run(folder, model, _CLASSES), "the metric of the model cannot be computed of these labels", "F")
    assert not (folder / "run").exists()


def an_empty_file_of_pytorch(folder: Path) -> None:
    """An empty .pth is refused, and trains no built-in network."""
    (folder / "net.pth").write_bytes(b"")
    said = command(folder, "run", "net.pth", status=2)
    assert "net.pth is a program of PyTorch, which is not run; wanted a flow file (.toml) or a network" in said
    assert "torch.onnx.export(module" in said
    assert sorted(path.name for path in folder.iterdir()) == ["net.pth"]


def files_of_other_kinds(folder: Path) -> None:
    """Whatever its ending, a file that is no flow and no model is refused by what it is, empty or not."""
    for content in (b"", b"PK\x03\x04\xff\xfe\x00"):
        for name in ("net.pt", "net.onnx", "net.pb", "net.tflite", "net.json", "net.txt", "net.npz", "net", "net.toml"):
            path = folder / name
            path.write_bytes(content)
            refused(lambda path=path: flow_from_options(path), str(path))  # type: ignore[misc]
    (folder / "empty").mkdir()
    refused(lambda: flow_from_options(folder / "empty"), "is a folder, so it is none")
    refused(lambda: flow_from_options(folder / "missing.toml"), "does not exist")


def a_slice_of_thousands_of_digits(folder: Path) -> None:
    """A slice whose index has 5,000 digits is refused in a line of ordinary length."""
    said = refused(
        lambda: MaskSet.from_slices({"conv/kernel": (3, 3, 4, 8)}, [f"conv/kernel[:, :, {'9' * 5000}, 0]"]),
        "5,000 characters",
    )
    assert len(said) < 400
