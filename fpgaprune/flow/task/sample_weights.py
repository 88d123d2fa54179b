"""The weight of each sample in the loss: of the data set, and of the classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ConfigError, DataError, shown
from fpgaprune.flow.task.samples import Samples, arrays_of
from fpgaprune.values import Array, real_array

if TYPE_CHECKING:
    import keras

Arrays = Mapping[str, Array]
# Class number to the weight of its samples.
ClassWeights = Mapping[str, float]


def read_weights(where: str, given: Arrays, labels: Arrays) -> Samples | None:
    """Return the weights `given` for the labels `labels`, as float32: an array, or a tuple with one for each output.

    One array without a name counts for each output; an output that is not named has weights of 1.

    Args:
        where: name of the weights in messages.
        given: name of an output to its weights (N,), or (N, ...) for labels with places, as pixels.
        labels: name of an output to its labels.

    Raises:
        DataError: they do not fit the labels, or are no numbers of 0 or more.
    """
    if not given:
        return None
    if list(given) == [""]:
        given = dict.fromkeys(labels, given[""])
    unknown = [name for name in given if name not in labels]
    if unknown:
        named = ", ".join(name for name in labels if name) or "one array"
        raise DataError(f"{where} names {unknown[0]!r}; the labels are {named}: name the weights as the labels")
    found = tuple(
        _fitting(f"{where}.{name}" if name else where, given[name], array)
        if name in given
        else np.ones(len(array), np.float32)
        for name, array in labels.items()
    )
    return found[0] if list(labels) == [""] else found


def _fitting(where: str, weights: Array, labels: Array) -> NDArray[np.float32]:
    """Return `weights` as float32; it has an entry for each sample, or for each place of each sample."""
    found = real_array(weights, where)
    if found.ndim == 2 and found.shape[1] == 1 and labels.ndim < 3:
        found = found[:, 0]
    if found.ndim == 0 or found.shape != labels.shape[: found.ndim]:
        raise DataError(
            f"{where} has shape {found.shape}, its labels {labels.shape}; wanted ({len(labels)},), or a weight for "
            "each place of the labels"
        )
    if found.size and found.min() < 0:
        raise DataError(f"{where} holds {found.min():g}; wanted weights of 0 or more")
    if not found.any():
        raise DataError(f"{where} holds zeros alone, so that nothing would count; wanted some weights above 0")
    return found.astype(np.float32)


def training_weights(
    own: Samples | None,
    classes: Mapping[str, float | ClassWeights] | None,
    labels: Samples,
    questions: Sequence[str],
    model: keras.Model,
) -> Samples | None:
    """Return the weights of the training samples, and of their positions, in the loss; None if all are 1.

    Args:
        own: the weights of the data set.
        classes: class number to weight, or name of an output to such a mapping: `train.class_weight`.
        labels: the training labels.
        questions: for each output what its labels ask, as `question_of` says.
        model: the network.

    Raises:
        ConfigError: `classes` fit no output, or name a class that there is not.
    """
    if own is None and not classes:
        return None
    arrays = arrays_of(labels)
    outputs, names = model.outputs, model.output_names
    every = None if own is None else arrays_of(at_places(own, outputs))
    tables = _tables(classes, questions, names) if classes else [None] * len(names)
    found = []
    for number, array in enumerate(arrays):
        places = len(outputs[number].shape) - 2
        weights = _at_places(np.ones(len(array), np.float32), places) if every is None else every[number]
        table = tables[number]
        if table is not None:
            where = "train.class_weight" if len(arrays) == 1 else f"train.class_weight.{names[number]}"
            weights = weights * _at_places(
                _of_classes(table, array, questions[number], outputs[number].shape, where), places
            )
        found.append(weights)
    return found[0] if isinstance(labels, np.ndarray) else tuple(found)


def at_places(weights: Samples, outputs: Sequence[Any]) -> Samples:
    """Give `weights` an axis of length 1 for each axis of `outputs` along which they do not differ, as that of pixels.

    A loss keeps all axes of an output but the last, and Keras would add such an axis at the wrong end.
    """
    found = tuple(
        _at_places(one, len(output.shape) - 2) for one, output in zip(arrays_of(weights), outputs, strict=True)
    )
    return found if isinstance(weights, tuple) else found[0]


def _at_places(weights: Array, places: int) -> Array:
    return weights.reshape(*weights.shape, *[1] * max(places + 1 - weights.ndim, 0))


def _tables(
    classes: Mapping[str, float | ClassWeights], questions: Sequence[str], names: Sequence[str]
) -> list[ClassWeights | None]:
    """Return for each output the weights of its classes, None where it has none."""
    of_outputs = {name: table for name, table in classes.items() if isinstance(table, Mapping)}
    plain = {name: weight for name, weight in classes.items() if not isinstance(weight, Mapping)}
    with_classes = [name for name, kind in zip(names, questions, strict=True) if kind != "regression"]
    if of_outputs and plain:
        raise ConfigError(
            f"train.class_weight holds both {shown(next(iter(plain)))} and {shown(next(iter(of_outputs)))}; wanted "
            "class numbers, or a table for each output"
        )
    if plain and len(with_classes) != 1:
        several = f"outputs with classes are {', '.join(with_classes)}" if with_classes else "no output has classes"
        raise ConfigError(
            f"train.class_weight is one table, and {several}; wanted one output with classes, or a table for each, as "
            f"class_weight = {{ {(with_classes or names)[0]} = {{ 0 = 1.0, 1 = 5.0 }} }}"
        )
    unknown = [name for name in of_outputs if name not in names]
    if unknown:
        raise ConfigError(f"train.class_weight names the output {unknown[0]!r}; the network has {', '.join(names)}")
    return [plain if plain and name in with_classes else of_outputs.get(name) for name in names]


def _of_classes(
    table: ClassWeights, labels: Array, question: str, shape: Sequence[int | None], where: str
) -> NDArray[np.float32]:
    """Return the weight of the class of each label; a class that `table` leaves out has weight 1."""
    if question == "one-hot":
        numbers, most = labels.argmax(axis=-1), labels.shape[-1]
    elif question == "classes":
        numbers, most = labels, shape[-1]
    elif question == "yes or no" and shape[-1] == 1:
        numbers, most = labels, 2
    else:
        what = "several answers a sample" if question == "yes or no" else "no classes"
        raise ConfigError(f"{where}: the labels hold {what}; wanted one class for each sample")
    if question != "one-hot" and numbers.ndim == len(shape):
        numbers = numbers[..., 0]
    known = {int(number): weight for number, weight in table.items()}
    if most is not None and max(known) >= most:
        raise ConfigError(f"{where} names class {max(known)}; wanted 0 to {most - 1}, the classes of the output")
    # A class number beyond the table stands for labels that the loss leaves out, such as 255.
    weights = np.ones(max(int(numbers.max()), *known) + 1, np.float32)
    weights[list(known)] = list(known.values())
    return np.asarray(weights[np.maximum(numbers.astype(np.int64), 0)])
