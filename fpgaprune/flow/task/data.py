"""The data of a flow: the built-in digits, an `.npz` file, or a user's function."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fpgaprune.errors import DataError, shown
from fpgaprune.files import does_not_exist, read_npz
from fpgaprune.flow.file import FORMS, is_function_name, named_function
from fpgaprune.flow.task.batched_data import as_arrays
from fpgaprune.flow.task.sample_weights import read_weights
from fpgaprune.flow.task.samples import Samples, arrays_of, at
from fpgaprune.measure import digest_array
from fpgaprune.processes import OnStep
from fpgaprune.values import Array, class_numbers, real_array

KEYS = ("x_train", "y_train", "x_test", "y_test")
# Neither the training nor the final figures use these samples. They may be missing.
OPTIONAL = ("x_valid", "y_valid")
WEIGHTS = ("sample_weight_train", "sample_weight_test", "sample_weight_valid")
_PARTS = ("train", "test", "valid")
# What others call the part `valid`.
_OF_VALID = ("val", "validation", "dev")
# Labels that are whole numbers as large as this are a mistake, whatever their shape.
_WIDE = 1 << 24


@dataclass(frozen=True)
class Dataset:
    """Samples x as float32 and labels y: for training, held out (`test`), and perhaps for validation.

    Each is an array (N, ...), or a tuple of such arrays in the network's order for several inputs or outputs. Class
    numbers and one-hot labels of whole numbers are int64, everything else is float32. For an autoencoder y is x.

    Attributes:
        name: name of the source.
        x_train: samples for training.
        y_train: their labels.
        x_test: held-out samples.
        y_test: their labels.
        x_valid: samples for choices between networks; neither training nor the figures of the report use them.
        y_valid: their labels.
        inputs: names of the inputs, if the source names several.
        outputs: names of the outputs, if the source names several.
        sample_weight_train: weight of each sample in the loss, in the form of y but (N,), or (N, ...) for pixels.
        sample_weight_test: weight of each sample in the metric.
        sample_weight_valid: the same for validation.
    """

    name: str
    x_train: Samples
    y_train: Samples
    x_test: Samples
    y_test: Samples
    x_valid: Samples | None = None
    y_valid: Samples | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    sample_weight_train: Samples | None = None
    sample_weight_test: Samples | None = None
    sample_weight_valid: Samples | None = None

    @property
    def choosing(self) -> tuple[Samples, Samples, Samples | None]:
        """Samples, labels and weights for choices between networks: those for validation, else those for training."""
        if self.x_valid is None or self.y_valid is None:
            return self.x_train, self.y_train, self.sample_weight_train
        return self.x_valid, self.y_valid, self.sample_weight_valid

    @property
    def classes(self) -> int | None:
        """One more than the largest class number; None if the labels are not class numbers."""
        labels = [self.y_train, self.y_test]
        if not all(isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype == np.int64 for y in labels):
            return None
        return int(max(arrays_of(y)[0].max() for y in labels)) + 1

    def in_order(self, inputs: Sequence[str], outputs: Sequence[str]) -> Dataset:
        """Bring named inputs and outputs into the network's order.

        Raises:
            DataError: a name is missing or unknown to the network.
        """
        ordered = _reordered(self, "x", self.inputs, inputs)
        return _reordered(ordered, "y", self.outputs, outputs)

    def first(self, count: int) -> Dataset:
        """Return the first `count` samples of each part."""
        keys = [key for key in (*KEYS, *OPTIONAL, *WEIGHTS) if getattr(self, key) is not None]
        cut: dict[str, Any] = {key: at(getattr(self, key), slice(count)) for key in keys}
        return replace(self, **cut)

    def digest(self) -> str:
        """Return the SHA-256 over every bit of the arrays."""
        parts = [getattr(self, key) for key in (*KEYS, *OPTIONAL, *WEIGHTS)]
        arrays = [array for part in parts if part is not None for array in arrays_of(part)]
        return hashlib.sha256("".join(digest_array(array) for array in arrays).encode()).hexdigest()


def load_data(source: str, samples: int | None = None, on_step: OnStep | None = None) -> Dataset:
    """Return the samples that `source` names, checked.

    Args:
        source: `digits`; the path of an `.npz` with x_train, y_train, x_test, y_test, and perhaps x_valid, y_valid; or
            a function without arguments, as `package.module:function` or `file.py:function`, that returns a mapping
            with these keys, or a mapping of `train`, `test` (and `valid`) to batches, as `as_arrays` takes them.
        samples: samples to read of each part, the first ones; all if None.
        on_step: learns how far the reading of batches is.

    Raises:
        DataError: the source cannot be read, or its arrays do not fit each other.
    """
    if source == "digits":
        data = _digits()
    elif source.endswith(".npz"):
        data = check_data(source, _npz(Path(source)))
    elif is_function_name(source):
        data = check_data(source, _from_function(source, samples, on_step or (lambda *_: None)))
    else:
        raise DataError(f"data source {source!r} is unknown; wanted 'digits', a path ending in .npz, or {FORMS}")
    return data if samples is None else data.first(samples)


def check_data(name: str, arrays: Mapping[str, object]) -> Dataset:
    """Return a `Dataset` of `arrays`, which must fit each other.

    For several inputs there is one key for each, as `x_train.left` and `x_train.right` with the names of the network's
    inputs; for several outputs likewise, as `y_train.digit`. A value may also be a mapping of names to arrays. Without
    y_train and y_test the labels are the samples themselves, as for an autoencoder. Weights of samples are named
    `sample_weight_train`, `sample_weight_test` and `sample_weight_valid`, in the form of the labels.

    Raises:
        DataError: a key is missing, a shape or a dtype is wrong, or a value is not finite.
    """
    _refuse_other_spellings(name, arrays)
    found = {f"{axis}_{part}": _parts_of(arrays, f"{axis}_{part}") for part in _PARTS for axis in "xy"}
    if not found["y_train"] and not found["y_test"]:
        found.update({f"y_{part}": found[f"x_{part}"] for part in _PARTS})
    missing = [key for key in KEYS if not found[key]]
    if missing:
        held = shown([str(key) for key, value in arrays.items() if value is not None])
        if missing[0] != KEYS[0]:
            hint = ""
        elif {"x", "y"} <= arrays.keys():
            # Which samples are held out is for the user to say: neighbours in time may be alike.
            hint = (
                "; split x and y yourself: shuffle them unless order matters, then x_train=x[:-n], x_test=x[-n:], ..."
            )
        else:
            hint = "; a network of several inputs has one key for each, as x_train.left"
        raise DataError(f"data {name!r} has no {', '.join(missing)}; wanted {', '.join(KEYS)}{hint}; it holds {held}")
    if bool(found["x_valid"]) != bool(found["y_valid"]):
        raise DataError(f"data {name!r} has one of {' and '.join(OPTIONAL)}; wanted both or none")
    parts = [part for part in _PARTS if found[f"x_{part}"]]
    for part in parts:
        _check_part(name, part, found[f"x_{part}"], found[f"y_{part}"])
    for key in [f"{axis}_{part}" for part in parts[1:] for axis in "xy"]:
        _check_alike(name, key, found[f"{key[0]}_train"], found[key])
    loaded: dict[str, Any] = {
        key: _samples({label: _typed(array, key) for label, array in found[key].items()})
        for key in (f"{axis}_{part}" for part in parts for axis in "xy")
    }
    for part in _PARTS:
        key = f"sample_weight_{part}"
        given = _parts_of(arrays, key)
        if given and part not in parts:
            raise DataError(f"data {name!r} has {key}, and no x_{part}")
        loaded[key] = read_weights(f"data {name!r}: {key}", given, found[f"y_{part}"])
    for kind, key in (("inputs", "x_train"), ("outputs", "y_train")):
        loaded[kind] = tuple(label for label in found[key] if label)
    return Dataset(name, **loaded)


def _refuse_other_spellings(name: str, arrays: Mapping[str, object]) -> None:
    """Refuse keys as `X_train` and `x_val`: arrays that someone gives shall not be left out in silence."""
    known = {f"{axis}_{part}" for axis in ("x", "y", "sample_weight") for part in _PARTS}
    for key in map(str, arrays):
        stem = key.partition(".")[0]
        axis, _, part = stem.lower().rpartition("_")
        meant = f"{axis}_{'valid' if part in _OF_VALID else part}"
        if stem not in known and meant in known and meant not in arrays:
            raise DataError(f"data {name!r} names an array {stem!r}; wanted {meant!r}")


def _parts_of(arrays: Mapping[str, object], key: str) -> dict[str, Array]:
    """Return a dict: name of an input or output to its array; the name is empty if there is only one without a name."""
    if key in arrays:
        value = arrays[key]
        if isinstance(value, Mapping):
            return {str(label): _array(array, key) for label, array in value.items() if array is not None}
        if isinstance(value, list | tuple) and value and all(hasattr(a, "shape") or a is None for a in value):
            return {str(number): _array(array, key) for number, array in enumerate(value) if array is not None}
        if value is None:
            return {}
        return {"": _array(value, key)}
    return {
        label.removeprefix(f"{key}."): _array(array, key)
        for label, array in arrays.items()
        if str(label).startswith(f"{key}.")
    }


def _array(values: object, key: str) -> Array:
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise DataError(f"data {key} are no array: {' '.join(str(error).split())[:120]}; wanted one shape") from error


def _check_part(name: str, part: str, x: Mapping[str, Array], y: Mapping[str, Array]) -> None:
    for label, array in x.items():
        key = _key(f"x_{part}", label)
        if array.ndim < 2 or not len(array):
            raise DataError(f"data {name!r}: {key} has shape {array.shape}; wanted (samples, ...), one sample or more")
        real_array(array, f"data {name!r}: the values of {key}")
    count = len(next(iter(x.values())))
    for key, array in [
        (_key(f"{axis}_{part}", label), array) for axis, of in (("x", x), ("y", y)) for label, array in of.items()
    ]:
        if array.ndim == 0 or len(array) != count:
            raise DataError(
                f"data {name!r}: {key} has shape {array.shape}; wanted ({count}, ...), one entry for each sample"
            )
    for label, array in y.items():
        key = _key(f"y_{part}", label)
        real_array(array, f"data {name!r}: the values of {key}")
        if np.issubdtype(array.dtype, np.integer) and (array.ndim == 1 or abs(int(array.max())) >= _WIDE):
            class_numbers(array, f"data {name!r}: the labels {key}")


def _check_alike(name: str, key: str, first: Mapping[str, Array], other: Mapping[str, Array]) -> None:
    if list(first) != list(other):
        raise DataError(
            f"data {name!r}: {key} has {_named(other)}; {key[0]}_train has {_named(first)}; wanted the same"
        )
    for label in first:
        kinds = [np.issubdtype(array[label].dtype, np.floating) for array in (first, other)]
        if key[0] == "y" and kinds[0] != kinds[1]:
            raise DataError(
                f"data {name!r}: {_key('y_train', label)} holds {first[label].dtype}, {_key(key, label)} "
                f"{other[label].dtype}; wanted whole numbers in both, or none"
            )
        if first[label].shape[1:] != other[label].shape[1:]:
            what = "samples" if key[0] == "x" else "labels"
            raise DataError(
                f"data {name!r}: {what} of {_key(f'{key[0]}_train', label)} have shape {first[label].shape[1:]}, of "
                f"{_key(key, label)} {other[label].shape[1:]}; wanted equal ones"
            )


def _typed(array: Array, key: str) -> Array:
    is_label = key[0] == "y" and (np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_)
    return array.astype(np.int64 if is_label else np.float32)


def _samples(parts: Mapping[str, Array]) -> Samples:
    return parts[""] if list(parts) == [""] else tuple(parts.values())


def _reordered(data: Dataset, axis: str, given: Sequence[str], wanted: Sequence[str]) -> Dataset:
    kind = "inputs" if axis == "x" else "outputs"
    samples = getattr(data, f"{axis}_train")
    if len(arrays_of(samples)) != len(wanted):
        raise DataError(
            f"data {data.name!r} has {_named(given)} for {axis}_train; the network has {len(wanted)} {kind}: "
            f"{', '.join(wanted)}; name one array for each, as {axis}_train.{wanted[0]}"
        )
    numbered = [str(number) for number in range(len(wanted))]
    if not given or list(given) == numbered:
        return data
    if sorted(given) != sorted(wanted):
        raise DataError(
            f"data {data.name!r} names the {kind} {', '.join(given)}; the network's are {', '.join(wanted)}"
        )
    order = [list(given).index(name) for name in wanted]
    axes = (axis,) if axis == "x" else (axis, "sample_weight")
    keys = [f"{one}_{part}" for one in axes for part in _PARTS if getattr(data, f"{one}_{part}") is not None]
    turned: dict[str, Any] = {key: tuple(getattr(data, key)[number] for number in order) for key in keys}
    turned[kind] = tuple(wanted)
    return replace(data, **turned)


def _key(key: str, label: str) -> str:
    return f"{key}.{label}" if label else key


def _named(parts: Mapping[str, Any] | Sequence[str]) -> str:
    names = [name for name in parts if name]
    return f"{len(names)} arrays ({', '.join(names)})" if names else "one array"


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    x = (images.reshape(-1, 8, 8, 1) / 16.0).astype(np.float32)
    # One in five of each class is held out, always the same, so that figures of runs can be compared.
    held_out = np.zeros(len(x), dtype=bool)
    for label in range(10):
        held_out[np.flatnonzero(labels == label)[::5]] = True
    y = labels.astype(np.int64)
    return Dataset("digits", x[~held_out], y[~held_out], x[held_out], y[held_out])


def _npz(path: Path) -> dict[str, Array]:
    try:
        return read_npz(path)
    except FileNotFoundError as error:
        raise DataError(does_not_exist(path, "data file")) from error
    except ValueError as error:
        raise DataError(f"data file {path} is no .npz of plain arrays: {error}") from error


def _from_function(source: str, samples: int | None, on_step: OnStep) -> Mapping[str, Any]:
    found = named_function(source, "data function", DataError)()
    if not isinstance(found, Mapping):
        raise DataError(
            f"data function {source!r} returned {type(found).__name__}; wanted a mapping with {', '.join(KEYS)}, or "
            "with 'train' and 'test' as batches, such as tf.data.Datasets"
        )
    return as_arrays(found, source, samples, on_step) if "train" in found else found
