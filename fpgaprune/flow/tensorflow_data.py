"""Reads the batched `tf.data.Dataset`s of a user's function into arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fpgaprune.errors import DataError

_PARTS = ("train", "test", "valid")


def as_arrays(datasets: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The arrays `x_train`, `y_train`, ... of `datasets`, in memory, because every stage of a flow reads them again.

    Args:
        datasets: `train`, `test` and perhaps `valid` to datasets of batches `(x, y)`, or of batches `x` for an
            autoencoder, as `model.fit` takes them. x and y are arrays, or mappings from names to arrays.
        source: name of the data function, for messages.

    Raises:
        DataError: a name is unknown, a dataset never ends, or its elements are no batches.
    """
    unknown = [name for name in datasets if name not in _PARTS]
    if unknown:
        raise DataError(f"data function {source!r} returned {unknown[0]!r}; wanted {', '.join(_PARTS)}")
    found: dict[str, Any] = {}
    for part, dataset in datasets.items():
        if getattr(dataset, "cardinality", None) is not None and int(dataset.cardinality()) == -1:
            raise DataError(f"data function {source!r}: {part!r} never ends; leave out its repeat()")
        if not isinstance(dataset, Iterable):
            raise DataError(
                f"data function {source!r}: {part!r} is a {type(dataset).__name__}; wanted a batched tf.data.Dataset"
            )
        batches = [batch if isinstance(batch, tuple) else (batch,) for batch in dataset]
        if not batches:
            raise DataError(f"data function {source!r}: {part!r} is empty")
        if {len(batch) for batch in batches} - {1, 2}:
            raise DataError(f"data function {source!r}: elements of {part!r} are no (x, y); leave out sample weights")
        for axis, values in zip("xy", zip(*batches, strict=True), strict=False):
            found[f"{axis}_{part}"] = _joined(values, f"data function {source!r}: {part!r}")
    return found


def _joined(values: tuple[Any, ...], where: str) -> Any:
    first = values[0]
    if isinstance(first, Mapping):
        return {name: _joined(tuple(value[name] for value in values), where) for name in first}
    if isinstance(first, list | tuple):
        return [_joined(tuple(value[number] for value in values), where) for number in range(len(first))]
    arrays = [np.asarray(value) for value in values]
    if any(array.ndim == 0 for array in arrays):
        raise DataError(f"{where} holds single samples; wanted batches: end it with .batch(32)")
    return np.concatenate(arrays)
