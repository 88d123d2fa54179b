"""Samples in batches, from arrays or from an iterable of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fpgaprune.errors import DataError
from fpgaprune.processes import OnStep
from fpgaprune.values import real_array


def batches(
    data: object, batch_size: int, progress: OnStep | None = None, note: str = ""
) -> Iterator[tuple[Any, Any, Any]]:
    """Up to `batch_size` samples at a time, in order, as `(x, y, sample_weight)`; what the data lack is None.

    Args:
        data: arrays `(x, y)` or `(x, y, sample_weight)`, one array `x`, or an iterable of such batches, which keep
            their size.
        batch_size: samples in a batch of arrays.
        progress: called with `(done, total, note)` after each batch; `total` is 0 if it is unknown.
        note: name of the work.

    Raises:
        DataError: the data have a wrong form, or hold no samples.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise DataError(f"batch size is {batch_size!r}; wanted a whole number of 1 or more")
    source, total = _source(data, batch_size)
    done = 0
    for done, item in enumerate(source, start=1):
        x, y, weights, *_ = (*item, None, None) if isinstance(item, tuple | list) else (item, None, None)
        yield x, y, weights
        if progress is not None:
            progress(done, total, note)
    if done == 0:
        raise DataError("the data hold no samples; wanted at least one batch")


def _source(data: object, batch_size: int) -> tuple[Iterable[Any], int]:
    if hasattr(data, "shape") and len(data.shape):
        return _slices((data,), batch_size)
    if isinstance(data, tuple | list) and data and all(hasattr(part, "shape") and len(part.shape) for part in data):
        if len(data) > 3 or len({len(part) for part in data}) != 1:
            sizes = ", ".join(str(len(part)) for part in data)
            raise DataError(
                f"data are {len(data)} arrays of {sizes} samples; wanted (x, y) or (x, y, sample_weight) of equal "
                "length"
            )
        return _slices(tuple(data), batch_size)
    if hasattr(data, "__iter__"):
        return data, _length(data)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        return (data[at] for at in range(len(data))), len(data)
    raise DataError(f"data are a {type(data).__name__}; wanted arrays (x, y) or an iterable of batches (x, y)")


def _slices(arrays: tuple[Any, ...], batch_size: int) -> tuple[Iterable[Any], int]:
    for what, array in zip(("samples", "labels", "weights"), arrays, strict=False):
        real_array(array, what)
    starts = range(0, len(arrays[0]), batch_size)
    return (tuple(array[start : start + batch_size] for array in arrays) for start in starts), len(starts)


def _length(data: Any) -> int:
    try:
        return max(len(data), 0)
    except TypeError:  # a generator or a dataset of unknown size
        return 0
