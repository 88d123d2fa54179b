"""Training and held-out samples: the built-in digits, an `.npz`, or a user's function."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.certificate import digest_array
from fpgaprune.errors import DataError
from fpgaprune.files import read_npz
from fpgaprune.flow.named_function import is_function_name, named_function

KEYS = ("x_train", "y_train", "x_test", "y_test")
# Given or not: samples that neither training nor the final figures see.
OPTIONAL = ("x_valid", "y_valid")


@dataclass(frozen=True)
class Dataset:
    """Samples x (N, ...) as float32 and class numbers y (N,) as int64, for training and held out.

    `x_valid` and `y_valid`, where there are any, are for choices between networks: training does not see them, nor are
    they what the figures of the report are measured on.
    """

    name: str
    x_train: NDArray[np.float32]
    y_train: NDArray[np.int64]
    x_test: NDArray[np.float32]
    y_test: NDArray[np.int64]
    x_valid: NDArray[np.float32] | None = None
    y_valid: NDArray[np.int64] | None = None

    @property
    def choosing(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The samples that choices are made on: those for validation, else those for training."""
        if self.x_valid is None or self.y_valid is None:
            return self.x_train, self.y_train
        return self.x_valid, self.y_valid

    @property
    def classes(self) -> int:
        """One more than the largest class number."""
        return int(max(self.y_train.max(), self.y_test.max())) + 1

    def digest(self) -> str:
        """SHA-256 over every bit of the arrays."""
        arrays = [getattr(self, key) for key in (*KEYS, *OPTIONAL)]
        return hashlib.sha256("".join(digest_array(a) for a in arrays if a is not None).encode()).hexdigest()


def load_data(source: str) -> Dataset:
    """The samples that `source` names, checked.

    Args:
        source: `digits`; the path of an `.npz` with x_train, y_train, x_test, y_test, and x_valid, y_valid where there
            are any; or `package.module:function` for a function without arguments that returns a mapping with these
            keys.

    Raises:
        DataError: the source cannot be read or its arrays do not fit one another.
    """
    if source == "digits":
        return _digits()
    if source.endswith(".npz"):
        return check_data(source, _npz(Path(source)))
    if is_function_name(source):
        return check_data(source, _from_function(source))
    raise DataError(
        f"data source {source!r} is unknown; wanted 'digits', a path ending in .npz, or 'package.module:function'"
    )


def check_data(name: str, arrays: Mapping[str, Any]) -> Dataset:
    """A `Dataset` of `arrays`, where they fit one another.

    Raises:
        DataError: a key is missing, a shape or a dtype is wrong, or a value is not finite.
    """
    missing = [key for key in KEYS if key not in arrays]
    if missing:
        raise DataError(f"data {name!r} has no {', '.join(missing)}; wanted {', '.join(KEYS)}")
    if sum(key in arrays for key in OPTIONAL) == 1:
        raise DataError(f"data {name!r} has one of {' and '.join(OPTIONAL)}; wanted both or none")
    parts = ("train", "test", *(("valid",) if OPTIONAL[0] in arrays else ()))
    loaded = {f"{axis}_{part}": np.asarray(arrays[f"{axis}_{part}"]) for part in parts for axis in "xy"}
    for part in parts:
        x, y = loaded[f"x_{part}"], loaded[f"y_{part}"]
        if x.ndim < 2 or not len(x):
            raise DataError(f"data {name!r}: x_{part} has shape {x.shape}; wanted (samples, ...), one sample or more")
        if y.shape != (len(x),):
            raise DataError(f"data {name!r}: y_{part} has shape {y.shape}; wanted ({len(x)},), a class number a sample")
        if not np.issubdtype(y.dtype, np.integer) or y.min() < 0:
            raise DataError(f"data {name!r}: y_{part} holds {y.dtype} down to {y.min()}; wanted integers from 0")
        if not np.issubdtype(x.dtype, np.number) or not np.isfinite(x).all():
            raise DataError(f"data {name!r}: x_{part} holds values that are not finite numbers")
    for part in parts[1:]:
        if loaded["x_train"].shape[1:] != loaded[f"x_{part}"].shape[1:]:
            raise DataError(
                f"data {name!r}: samples of x_train have shape {loaded['x_train'].shape[1:]}, of x_{part} "
                f"{loaded[f'x_{part}'].shape[1:]}; wanted equal ones"
            )
    kinds = {"x": np.float32, "y": np.int64}
    return Dataset(name, **{key: array.astype(kinds[key[0]]) for key, array in loaded.items()})


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    x = (images.reshape(-1, 8, 8, 1) / 16.0).astype(np.float32)
    # One in five of each class is held out; fixed, so that figures of different runs compare.
    held_out = np.zeros(len(x), dtype=bool)
    for label in range(10):
        held_out[np.flatnonzero(labels == label)[::5]] = True
    y = labels.astype(np.int64)
    return Dataset("digits", x[~held_out], y[~held_out], x[held_out], y[held_out])


def _npz(path: Path) -> dict[str, NDArray[Any]]:
    try:
        return read_npz(path)
    except FileNotFoundError as error:
        raise DataError(f"data file {path} does not exist") from error
    except ValueError as error:
        raise DataError(f"data file {path} is no .npz of plain arrays: {error}") from error


def _from_function(source: str) -> Mapping[str, Any]:
    arrays = named_function(source, "data function", DataError)()
    if not isinstance(arrays, Mapping):
        raise DataError(
            f"data function {source!r} returned {type(arrays).__name__}; wanted a mapping with {', '.join(KEYS)}"
        )
    return arrays
