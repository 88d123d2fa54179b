"""`check_labels` compares labels with the loss that shall read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import DataError
from fpgaprune.flow.task.data import Dataset
from fpgaprune.flow.task.samples import arrays_of
from fpgaprune.values import Array

_ELSE = "or name another loss with train.loss"


def check_labels(loss: object, model: keras.Model, data: Dataset) -> None:
    """Check that the labels of `data` are those that the crossentropies in `loss` are defined for.

    Keras does not look: with answers 1 and 2 a binary crossentropy falls without end, and some class numbers that are
    too large give NaN. Of other losses nothing is known.

    Args:
        loss: as `model.compile` takes it.
        model: the model.
        data: samples in the order of its inputs and outputs.

    Raises:
        DataError: some labels are of another shape, or beyond the classes.
    """
    for part in ("y_train", "y_test", "y_valid"):
        found = getattr(data, part)
        if found is None:
            continue
        losses = _for_outputs(loss, model)
        several = len(losses) > 1
        for number, (one, output, labels) in enumerate(zip(losses, model.outputs, arrays_of(found), strict=True)):
            where = f"data {data.name!r}: {part}{f'.{model.output_names[number]}' if several else ''}"
            _check(one, tuple(output.shape), labels, where)


def _for_outputs(loss: object, model: keras.Model) -> list[Any]:
    """Return the loss of each output of `model`; None if it has none."""
    if isinstance(loss, Mapping):
        return [loss.get(name) for name in model.output_names]
    if isinstance(loss, list | tuple) and len(loss) == len(model.outputs):
        return list(loss)
    return [loss] * len(model.outputs)


def _check(loss: object, shape: tuple[int | None, ...], labels: Array, where: str) -> None:
    name = _name(loss)
    classes = shape[-1]
    if name == "binary_crossentropy":
        _within(labels, 1, where, name, f"call the answers 0 and 1, {_ELSE}")
    elif name == "categorical_crossentropy" and labels.shape[1:] != shape[1:] and labels.ndim < len(shape):
        raise DataError(
            f"{where} has shape {labels.shape}, and the loss {name} takes {classes} numbers for each sample: wanted "
            f"one-hot labels, as keras.utils.to_categorical makes them, {_ELSE}"
        )
    elif name == "sparse_categorical_crossentropy" and getattr(loss, "ignore_class", None) is None:
        if labels.ndim == len(shape) and labels.shape[-1] not in (1, None):
            raise DataError(
                f"{where} has shape {labels.shape}, and the loss {name} takes one class number for each sample: wanted "
                f"labels.argmax(axis=-1) of one-hot labels, {_ELSE}"
            )
        if classes is not None:
            _within(labels, classes - 1, where, name, f"number the classes 0, 1, 2, ..., {_ELSE}")


def _name(loss: object) -> str:
    """Return the name of a loss of Keras, as `binary_crossentropy`; "" if it is none of Keras's."""
    found = keras.losses.get(loss) if isinstance(loss, str) else loss
    kind = found if isinstance(found, type) or not isinstance(found, keras.losses.Loss) else type(found)
    known = (
        (keras.losses.binary_crossentropy, keras.losses.BinaryCrossentropy),
        (keras.losses.categorical_crossentropy, keras.losses.CategoricalCrossentropy),
        (keras.losses.sparse_categorical_crossentropy, keras.losses.SparseCategoricalCrossentropy),
    )
    return next((function.__name__ for function, cls in known if kind in (function, cls)), "")


def _within(labels: Array, most: int, where: str, name: str, advice: str) -> None:
    low, high = np.min(labels), np.max(labels)
    if low < 0 or high > most:
        raise DataError(f"{where} holds {low:g} to {high:g}, and the loss {name} takes 0 to {most}: {advice}")
