"""Reads the batches of a user's function into arrays: `tf.data.Dataset`s, `PyDataset`s and generators."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any

import numpy as np

from fpgaprune.errors import DataError
from fpgaprune.processes import OnStep, available_bytes

_PARTS = ("train", "test", "valid")
_KEYS = ("x", "y", "sample_weight")
# A data set that does not say how long it is has at most so many samples, unless the flow says another number; and
# all of them take at most this share of the free memory, because joining the batches takes as much again.
MOST_SAMPLES, _MEMORY = 500_000, 0.3
# Least seconds between two messages.
EVERY_S = 0.5
# Called with the samples that were read, all samples (0 if that is unknown), and what they are.


def as_arrays(datasets: Mapping[str, object], source: str, most: int | None, on_step: OnStep) -> dict[str, Any]:
    """Read the arrays `x_train`, `y_train`, ... of `datasets` into memory: every stage of a flow reads them again.

    Args:
        datasets: `train`, `test` and perhaps `valid` to batches `(x, y)`, `(x, y, sample_weight)`, or `x` for an
            autoencoder, as `model.fit` takes them: a `tf.data.Dataset`, a `PyDataset`, a generator, or one tuple of
            arrays. x and y are arrays, or mappings from names to arrays.
        source: name of the data function, for messages.
        most: samples to read of each, the first ones; if None, all of them are read, and one without an end is refused.
        on_step: learns how far it is.

    Raises:
        DataError: a name is unknown, a dataset never ends, or its elements are no batches.
    """
    unknown = [name for name in datasets if name not in _PARTS]
    if unknown:
        raise DataError(f"data function {source!r} returned {unknown[0]!r}; wanted {', '.join(_PARTS)}")
    found: dict[str, Any] = {}
    for part, dataset in datasets.items():
        where = f"data function {source!r}: {part!r}"
        batches = list(_read(dataset, part, where, most, on_step))
        if not batches:
            raise DataError(f"{where} is empty")
        sizes = {len(batch) for batch in batches}
        if len(sizes) > 1 or sizes - {1, 2, 3}:
            raise DataError(f"{where} has elements of {sorted(sizes)} parts; wanted (x, y) or (x, y, sample_weight)")
        for key, values in zip(_KEYS, zip(*batches, strict=True), strict=False):
            if any(value is not None for value in values):
                found[f"{key}_{part}"] = _joined(values, where)
    return found


def _read(dataset: object, part: str, where: str, most: int | None, on_step: OnStep) -> Iterator[tuple[Any, ...]]:
    """Yield the batches of `dataset` as tuples of arrays, up to `most` samples."""
    batches, length = _source(dataset, where)
    if length == np.inf and most is None:
        raise _endless(where, "never ends", MOST_SAMPLES)
    allowed = np.inf if most is not None or length is not None else MOST_SAMPLES
    memory, taken, done, due = _MEMORY * available_bytes(), 0, 0, 0.0
    for number, batch in enumerate(batches, start=1):
        values = tuple(_array_tree(value, where) for value in (batch if isinstance(batch, tuple) else (batch,)))
        arrays = list(_arrays_in(values))
        count = len(arrays[0]) if arrays else 0
        if not count:
            raise DataError(f"{where} has a batch without samples; wanted batches (x, y) of one or more")
        if most is not None and done + count >= most:
            yield tuple(_first(value, most - done) for value in values)
            return
        yield values
        done, taken = done + count, taken + sum(array.nbytes for array in arrays)
        if done > allowed or taken > memory:
            size = "" if done > allowed else f" of {taken / 2**30:.2g} GiB, {_MEMORY:.0%} of the free memory,"
            raise _endless(where, f"has given {done:,} samples{size} and goes on", done)
        if time.monotonic() >= due:
            due = time.monotonic() + EVERY_S
            total = 0 if length is None or length == np.inf else round(done / number * length)
            on_step(done, total, f"{done:,} samples of {part!r} read")


def _source(dataset: Any, where: str) -> tuple[Iterable[Any], float | None]:
    """Return the batches of `dataset` and their number; infinity if it never ends, None if it does not say."""
    if isinstance(dataset, tuple):
        return [dataset], 1
    is_numbered = hasattr(dataset, "__getitem__") and not isinstance(dataset, Iterable)
    if is_numbered or hasattr(type(dataset), "num_batches"):  # a PyDataset of Keras
        length = _stated_length(dataset, where)
        numbers = itertools.count() if length is None else range(length)
        return (dataset[number] for number in numbers), np.inf if length is None else length
    if not isinstance(dataset, Iterable) or isinstance(dataset, str | Mapping) or hasattr(dataset, "shape"):
        raise DataError(
            f"{where} is a {type(dataset).__name__}; wanted a batched tf.data.Dataset, a PyDataset, a generator of "
            "batches, or a tuple (x, y) of arrays"
        )
    if hasattr(dataset, "cardinality"):
        length = int(dataset.cardinality())
        return dataset, {-1: np.inf, -2: None}.get(length, length)
    return dataset, len(dataset) if isinstance(dataset, Sized) else None


def _stated_length(dataset: Any, where: str) -> int | None:
    """Return the number of batches of a `PyDataset`; None if it never ends."""
    try:
        length = dataset.num_batches if hasattr(type(dataset), "num_batches") else len(dataset)
    except (NotImplementedError, TypeError) as error:
        raise DataError(f"{where} does not say how many batches it has; give its class a __len__") from error
    return None if length is None else int(length)


def _endless(where: str, what: str, samples: int) -> DataError:
    return DataError(
        f"{where} {what}; leave out its repeat(), or say in the flow file how many samples are read of it, the first "
        f"ones: [data] samples = {samples}"
    )


def _array_tree(part: object, where: str) -> Any:
    """Return `part` of a batch with an array in each of its places."""
    if isinstance(part, Mapping):
        return {name: _array_tree(value, where) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_array_tree(value, where) for value in part]
    if part is None:
        return None
    try:
        array = np.asarray(part)
    except (ValueError, TypeError) as error:
        raise DataError(f"{where} holds what is no array: {' '.join(str(error).split())[:120]}") from error
    if array.ndim == 0:
        raise DataError(f"{where} holds single samples; wanted batches: end it with .batch(32)")
    return array


def _arrays_in(part: object) -> Iterator[Any]:
    """Yield every array of what `_array_tree` made."""
    if isinstance(part, Mapping):
        part = list(part.values())
    if isinstance(part, list | tuple):
        for value in part:
            yield from _arrays_in(value)
    elif part is not None:
        yield part


def _first(part: Any, count: int) -> Any:
    """Return the first `count` samples of what `_array_tree` made."""
    if isinstance(part, Mapping):
        return {name: _first(value, count) for name, value in part.items()}
    if isinstance(part, list):
        return [_first(value, count) for value in part]
    return None if part is None else part[:count]


def _joined(values: tuple[Any, ...], where: str) -> Any:
    first = values[0]
    names = sorted({str(_names(value)) for value in values})
    if len(names) > 1:
        raise DataError(f"{where} has batches of different parts, {names[0]} and {names[1]}; wanted the same in each")
    if isinstance(first, Mapping):
        return {name: _joined(tuple(value[name] for value in values), where) for name in first}
    if isinstance(first, list):
        return [_joined(tuple(value[number] for value in values), where) for number in range(len(first))]
    if first is None:
        return None
    shapes = sorted({value.shape[1:] for value in values})
    if len(shapes) > 1:
        raise DataError(
            f"{where} has batches of samples of shape {shapes[0]} and {shapes[1]}; wanted one shape: crop or pad them"
        )
    return np.concatenate(values)


def _names(value: object) -> Any:
    """Return what a value of a batch consists of: its names, their number, nothing, or one array."""
    if isinstance(value, Mapping):
        return list(value)
    if isinstance(value, list):
        return f"{len(value)} arrays"
    return "nothing" if value is None else "an array"
