"""Turns samples and labels into arrays of real numbers, or refuses them with one line."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import DataError

# Of any type of numbers.
Array = NDArray[Any]

# A larger class number is a mistake, such as an identifier; no network has so many classes.
MOST_CLASSES = 1 << 20


def real_array(values: object, what: str) -> Array:
    """Return `values` as an array of finite reals within float32; a type of bool, whole or float numbers stays.

    A type that NumPy itself does not have, such as bfloat16, becomes float32.

    Args:
        values: an array or a tensor, or nested lists of numbers.
        what: name of the values in messages, for example "samples for input 'x'".

    Raises:
        DataError: the values are complex, text or objects, have several shapes, are not finite, or exceed float32.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = np.asarray(values)
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise DataError(
            f"{what} are not an array: {' '.join(str(error).split())[:120]}; wanted real numbers"
        ) from error
    if array.dtype.kind == "V" and array.dtype.names is None and "float" in array.dtype.name:
        array = array.astype(np.float32)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what} hold values of type {array.dtype}; wanted real numbers")
    if array.dtype.kind == "f" and array.size:
        largest = np.abs(array).max()
        if not np.isfinite(largest):
            raise DataError(f"{what} hold NaN or infinity; wanted finite numbers: correct the data")
        if largest > np.finfo(np.float32).max:
            raise DataError(f"{what} hold numbers up to {largest:.3g}; wanted what float32 holds: scale the data")
    return array


def in_order(samples: Any, names: Sequence[str], taker: str) -> Any:
    """Return the samples of a mapping in the order of the inputs `names`; samples of another kind stay.

    Raises:
        DataError: the mapping has other names.
    """
    if not isinstance(samples, Mapping):
        return samples
    if set(samples) != set(names):
        raise DataError(f"samples are named {', '.join(map(str, samples))}; {taker} takes {', '.join(names)}")
    found = [samples[name] for name in names]
    return found if len(found) > 1 else found[0]


def sample_arrays(samples: object, shapes: Sequence[tuple[int, ...]], taker: str) -> list[Array]:
    """Return `samples` as one array (N, ...) for each input.

    Args:
        samples: an array (N, ...), or one for each input.
        shapes: the shape of one sample of each input.
        taker: name of the model or design in messages.

    Raises:
        DataError: the arrays are not numbers, have other shapes, or differ in the number of samples.
    """
    arrays = [real_array(array, "samples") for array in (samples if isinstance(samples, list | tuple) else [samples])]
    if [array.shape[1:] for array in arrays] != list(shapes):
        got = ", ".join(str(array.shape[1:]) for array in arrays)
        raise DataError(f"samples have shape {got}; {taker} takes {', '.join(map(str, shapes))}")
    if len({len(array) for array in arrays}) > 1:
        raise DataError(f"the inputs have {[len(array) for array in arrays]} samples; wanted as many of each")
    return arrays


def class_numbers(labels: Array, what: str, classes: int | None = None) -> NDArray[np.int64]:
    """Return `labels` as int64, each from 0 to `classes` - 1.

    Args:
        labels: whole numbers of any shape.
        what: as for `real_array`.
        classes: the number of classes; None if it is not known yet.

    Raises:
        DataError: a label is negative, not below `classes`, or too large for a class number.
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
