"""The tasks of `bench_field.py`: real data, split so that test samples choose nothing, and a customary network.

Inputs are what hardware gets: each feature, or the whole image, is scaled by what the training samples show and rounded
to 8 bits, alike for every way. A task is skipped, with a line that says so, when its file is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
from bench_trained_bits import small_mnist
from mnist_network import read_data
from select_network import MNIST

FIELD = MNIST.parent / "field"
# Where Debian's package dataset-fashion-mnist has it.
FASHION = Path("/usr/share/datasets/fashion-mnist")
Arrays = dict[str, np.ndarray]
Split = tuple[np.ndarray, np.ndarray]
layers = keras.layers


@dataclass(frozen=True)
class Task:
    """One row of the field.

    Attributes:
        words: the network, and the name of its data, as tables say them.
        data: its data, in more words.
        file: what must be there.
        arrays: `x_train`, `y_train`, `x_valid`, `y_valid`, `x_test`, `y_test`; labels are numbers of classes.
        hidden: the layers between input and logits.
        batch: samples in a training step of every way.
        repeats: how many times more epochs than a data set of the size of MNIST gets, so that a small one has as many
            steps as a training needs.
        interval: largest number of cycles between two samples; 1 is a sample a cycle.
        one_bit: whether an input is 0 or 1/2.
    """

    words: str
    data: str
    file: Path
    arrays: Callable[[], Arrays]
    hidden: Callable[[], list[Any]]
    batch: int
    repeats: int = 1
    interval: int = 1
    one_bit: bool = False

    @property
    def dense(self) -> bool:
        """Whether there is no convolution."""
        return not any("Conv" in type(layer).__name__ for layer in self.hidden())


def network(task: Task, arrays: Arrays, seed: int) -> Any:
    """The network of `task` before its training."""
    keras.utils.set_random_seed(seed)
    classes = int(arrays["y_train"].max()) + 1
    hidden = task.hidden()
    flat = [] if task.dense else [layers.Flatten(name="flat")]
    return keras.Sequential(
        [keras.Input(arrays["x_train"].shape[1:], name="x"), *hidden, *flat, layers.Dense(classes, name="out")]
    )


def dense(*widths: int) -> Callable[[], list[Any]]:
    """Dense layers with ReLU."""
    return lambda: [layers.Dense(width, activation="relu", name=f"d{at}") for at, width in enumerate(widths, 1)]


def convolutions1d(*filters: int) -> Callable[[], list[Any]]:
    """Convolutions of three steps with ReLU, each followed by a maximum of two steps."""

    def made() -> list[Any]:
        found: list[Any] = []
        for at, count in enumerate(filters, 1):
            found.append(layers.Conv1D(count, 3, padding="same", activation="relu", name=f"c{at}"))
            found.append(layers.MaxPooling1D(2, name=f"pool{at}"))
        return found

    return made


def convolutions2d(*filters: int) -> Callable[[], list[Any]]:
    """Convolutions of 3 × 3 with ReLU, each followed by a maximum of 2 × 2."""

    def made() -> list[Any]:
        found: list[Any] = []
        for at, count in enumerate(filters, 1):
            found.append(layers.Conv2D(count, 3, activation="relu", name=f"c{at}"))
            found.append(layers.MaxPooling2D(2, name=f"pool{at}"))
        return found

    return made


def _images(folder: Path, count: int = 60_000) -> Arrays:
    """Images of one set; of the first `count`, the last 5,000 validate and the others train."""
    found = read_data(count, 5_000, folder)
    return {f"{key}_{part}": found[f"{key}{tail}"] for key in "xy" for part, tail in _PARTS.items()}


def _one_bit() -> Arrays:
    """MNIST, of each pixel the highest of its eight bits: 0, or 1/2 where it is 128 or more of 255."""
    found = _images(MNIST)
    return found | {
        key: ((pixels > 0.5) / 2).reshape(len(pixels), -1).astype(np.float32)
        for key, pixels in found.items()
        if key[0] == "x"
    }


def _intrusion() -> Arrays:
    """38 numbers, as logarithms where they are large, protocol and flag as one of many; service is left out.

    The last fifth of the training file validates. `KDDTest+` has attacks that the training file has not.
    """
    with np.load(FIELD / "nsl_kdd.npz") as file:
        parts = [
            (
                np.concatenate(
                    [np.log1p(file[f"num_{part}"]), *(np.eye(n)[file[f"cat_{part}"][:, at]] for at, n in _KINDS)], 1
                ),
                file[f"y_{part}"],
            )
            for part in ("train", "test")
        ]
    (x, y), test = parts
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order]
    cut = len(x) * 4 // 5
    return _scaled((x[:cut], y[:cut]), (x[cut:], y[cut:]), test)


def _keywords(steps: int | None) -> Arrays:
    """MFCC of spoken digits; the test recordings are those of the set. `steps`: averages over so many time bins."""
    with np.load(FIELD / "fsdd_mfcc.npz") as file:
        x, y, test = file["x"], file["y"], file["test"]
    if steps is not None:
        x = np.stack([part.mean(1) for part in np.array_split(x, steps, axis=1)], 1).reshape(len(x), -1)
    seen, order = np.flatnonzero(~test), np.random.default_rng(0)
    seen = order.permutation(seen)
    return _scaled((x[seen[400:]], y[seen[400:]]), (x[seen[:400]], y[seen[:400]]), (x[test], y[test]))


def _activity() -> Arrays:
    """Forty figures of ten seconds of accelerometer; validation and test are of other people than training."""
    with np.load(FIELD / "wisdm_transformed.npz") as file:
        x, y, test, subject = file["x"], file["y"], file["test"], file["subject"]
        known = ~np.isnan(x).any(axis=0)
    x = x[:, known]
    people = np.unique(subject[~test])
    valid = ~test & np.isin(subject, people[2::5])
    train = ~test & ~valid
    return _scaled((x[train], y[train]), (x[valid], y[valid]), (x[test], y[test]))


def _jets() -> Arrays:
    """Eight constituents of a jet, each with transverse momentum, eta and phi; five kinds of jets.

    There are 3,000 jets, which others use to evaluate: 1,500 train here, 500 validate and 1,000 test.
    """
    with np.load(FIELD / "jets_constituents_test.npz") as file:
        x, y = file["x8"].astype(np.float64), file["y"]
    x[..., 0] = np.log1p(x[..., 0])
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order].reshape(len(x), -1), y[order]
    return _scaled((x[:1500], y[:1500]), (x[1500:2000], y[1500:2000]), (x[2000:], y[2000:]))


def _shuttle() -> Arrays:
    with np.load(FIELD / "shuttle_anomaly.npz") as file:
        x, y = file["x"].astype(np.float64), file["y"]
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order]
    return _scaled((x[:25_000], y[:25_000]), (x[25_000:30_000], y[25_000:30_000]), (x[30_000:], y[30_000:]))


def _series(name: str) -> Arrays:
    """A set of the UCR archive; a fifth of its training samples validates."""
    with np.load(FIELD / "ucr_small.npz") as file:
        found = {key: file[f"{name}/{key}"] for key in ("x_train", "y_train", "x_test", "y_test")}
    order = np.random.default_rng(0).permutation(len(found["x_train"]))
    x, y = found["x_train"][order], found["y_train"][order]
    cut = len(x) // 5
    return _scaled((x[cut:], y[cut:]), (x[:cut], y[:cut]), (found["x_test"], found["y_test"]))


def _scaled(train: Split, valid: Split, test: Split) -> Arrays:
    """Each feature less its mean, over four standard deviations of the training samples, as a multiple of 1/128."""
    axes = tuple(range(train[0].ndim - 1))
    mean, width = train[0].mean(axes), 4 * train[0].std(axes)
    width[width == 0] = 1
    found = {}
    for part, (x, y) in zip(_PARTS, (train, valid, test), strict=True):
        scaled = np.clip(np.round((x - mean) / width * 128), -128, 127) / 128
        found |= {f"x_{part}": scaled.astype(np.float32), f"y_{part}": y.astype(np.int32)}
    return found


_PARTS = {"train": "", "valid": "_valid", "test": "_test"}
# Columns of the categories and how many there are; 67 services are left out.
_KINDS: Sequence[tuple[int, int]] = ((0, 3), (2, 11))
TASKS: dict[str, Task] = {
    "mnist-dense": Task(
        "MNIST 8 × 8, MLP 64-32-32-10", "MNIST in 8 × 8 pixels", MNIST, small_mnist, dense(32, 32), 512
    ),
    "nsl-kdd": Task(
        "NSL-KDD, MLP 52-64-32-2",
        "NSL-KDD without the service: 38 numbers, 14 categories; `KDDTest+`, with attacks that are not in training",
        FIELD / "nsl_kdd.npz",
        _intrusion,
        dense(64, 32),
        256,
    ),
    "fsdd": Task(
        "spoken digits, MLP 70-32-32-10",
        "spoken digits (free-spoken-digit-dataset): MFCC, averages over seven stretches of time",
        FIELD / "fsdd_mfcc.npz",
        lambda: _keywords(7),
        dense(32, 32),
        64,
    ),
    "wisdm": Task(
        "WISDM, MLP 40-32-32-6",
        "WISDM: 40 figures of ten seconds of accelerometer; test samples are of people that training has not seen",
        FIELD / "wisdm_transformed.npz",
        _activity,
        dense(32, 32),
        64,
    ),
    "shuttle": Task(
        "shuttle, MLP 9-16-8-2",
        "shuttle telemetry, anomalies",
        FIELD / "shuttle_anomaly.npz",
        _shuttle,
        dense(16, 8),
        256,
    ),
    "vowels": Task(
        "JapaneseVowels 25 × 12, 1-D CNN 16-16-9",
        "JapaneseVowels of the UCR archive, 25 × 12",
        FIELD / "ucr_small.npz",
        lambda: _series("JapaneseVowels"),
        convolutions1d(16, 16),
        32,
        4,
        27,
    ),
    "keywords": Task(
        "spoken digits 49 × 10, 1-D CNN 24-24-10",
        "spoken digits, MFCC 49 × 10",
        FIELD / "fsdd_mfcc.npz",
        lambda: _keywords(None),
        convolutions1d(24, 24),
        64,
        interval=51,
    ),
    "jets": Task(
        "jets, 8 constituents, MLP 24-32-32-5",
        "eight constituents of a jet; 1,500 of 3,000 jets train: never beside published figures",
        FIELD / "jets_constituents_test.npz",
        _jets,
        dense(32, 32),
        64,
    ),
    "fashion-dense": Task(
        "Fashion-MNIST 8 × 8, MLP 64-32-32-10",
        "Fashion-MNIST in 8 × 8 pixels",
        FASHION,
        lambda: small_mnist(FASHION),
        dense(32, 32),
        512,
    ),
    "mnist-bits": Task(
        "MNIST 28 × 28 in 1 bit, MLP 784-1200-600-10",
        "MNIST 28 × 28, one bit a pixel, a sample a cycle",
        MNIST,
        _one_bit,
        dense(1200, 600),
        512,
        one_bit=True,
    ),
    "mnist-cnn": Task(
        "MNIST 28 × 28, CNN 32-32-10",
        "MNIST 28 × 28; 10,000 images train",
        MNIST,
        lambda: _images(MNIST, 15_000),
        convolutions2d(32, 32),
        128,
        interval=834,
    ),
    "fashion-cnn": Task(
        "Fashion-MNIST 28 × 28, CNN 32-32-10",
        "Fashion-MNIST 28 × 28; 10,000 images train",
        FASHION,
        lambda: _images(FASHION, 15_000),
        convolutions2d(32, 32),
        128,
        interval=834,
    ),
}
