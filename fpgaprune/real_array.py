"""Samples and labels as arrays of real numbers: what is none is refused in one line, wherever data come in."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import DataError

# Beyond it a class number is a mistake, as an identifier in its place, and no size of a network.
MOST_CLASSES = 1 << 20


def real_array(values: Any, what: str) -> NDArray[Any]:
    """`values` as an array of finite real numbers that float32 can hold; its type stays, be it bool, whole or float.

    A type that NumPy only borrows, as bfloat16, becomes float32.

    Args:
        values: an array or a tensor, or nested lists of numbers.
        what: says in a message what they are, as "samples for input 'x'".

    Raises:
        DataError: they are complex, text or objects, not of one shape, not finite, or beyond float32.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = np.asarray(values)
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise DataError(f"{what} are no array: {' '.join(str(error).split())[:120]}; wanted real numbers") from error
    if array.dtype.kind == "V" and array.dtype.names is None and "float" in array.dtype.name:
        array = array.astype(np.float32)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what} hold values of type {array.dtype}; wanted real numbers")
    if array.dtype.kind == "f" and array.size:
        largest = np.abs(array).max()
        if not np.isfinite(largest):
            raise DataError(f"{what} hold NaN or infinity; wanted finite numbers: mend the data")
        if largest > np.finfo(np.float32).max:
            raise DataError(f"{what} hold numbers up to {largest:.3g}; wanted what float32 holds: scale the data")
    return array


def class_numbers(labels: NDArray[Any], what: str, classes: int | None = None) -> NDArray[np.int64]:
    """`labels` as int64, each from 0 to `classes` - 1.

    Args:
        labels: whole numbers of any shape.
        what: as for `real_array`.
        classes: how many there are; None where that is not known yet.

    Raises:
        DataError: one is negative, or not below `classes`, or so large that it is no class number.
    """
    if labels.dtype.kind not in "biu":
        raise DataError(f"{what} hold {labels.dtype}; wanted class numbers, which are whole")
    most = MOST_CLASSES if classes is None else classes
    if labels.size and (int(labels.min()) < 0 or int(labels.max()) >= most):
        raise DataError(
            f"{what} hold {labels.dtype} from {int(labels.min())} to {int(labels.max())}; wanted class numbers from 0 "
            f"to {most - 1}: number the classes 0, 1, 2, ..."
        )
    return labels.astype(np.int64)
