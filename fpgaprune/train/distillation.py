"""`soft_labels`: labels that also say what a better network answers, so that a small network learns from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import DataError
from fpgaprune.real_array import class_numbers, real_array

# Outputs of a teacher in one batch.
_BATCH = 256


def soft_labels(
    teacher: Any, x: Any, y: Any, share: float = 0.8, temperature: float = 2.0, *, from_logits: bool = True
) -> NDArray[np.float32]:
    """Labels (N, ..., classes) for a categorical cross entropy: `1 - share` of each is the true class of `y`.

    The other part are the probabilities of `teacher`, whose logits are divided by `temperature`: a class that it nearly
    chose counts too. The loss is then that of the true classes and that of the teacher, in these shares.

    Example: `fp.finetune(model, masks, x, fp.soft_labels(teacher, x, y))` for a model that was compiled with
    `keras.losses.CategoricalCrossentropy(from_logits=True)`.

    Source: Hinton, Vinyals, Dean, "Distilling the Knowledge in a Neural Network", 2015, section 2.

    Args:
        teacher: a trained Keras model with one output, the classes on its last axis. It sees `x` once.
        x: samples, as `teacher.predict` takes them.
        y: class numbers (N, ...) or (N, ..., 1), or one-hot labels (N, ..., classes).
        share: of the teacher, 0 to 1.
        temperature: above 1 for softer probabilities.
        from_logits: whether the outputs of `teacher` are logits; otherwise they are probabilities.

    Raises:
        DataError: `share` or `temperature` is out of range, or labels and outputs do not fit.
    """
    if not 0 <= share <= 1:
        raise DataError(f"share of the teacher is {share}; wanted a fraction from 0 to 1")
    if not 0 < temperature < np.inf:
        raise DataError(f"temperature is {temperature}; wanted a number above 0")
    outputs = teacher.predict(x, batch_size=_BATCH, verbose=0)
    if isinstance(outputs, list | tuple | dict):
        raise DataError(f"the teacher has {len(outputs)} outputs; wanted one, with the classes on its last axis")
    logits = np.asarray(outputs, dtype=np.float64)
    true = _one_hot(real_array(y, "labels"), logits.shape)
    if not from_logits:
        logits = np.log(np.maximum(logits, np.finfo(np.float32).tiny))
    powers = np.exp((logits - logits.max(axis=-1, keepdims=True)) / temperature)
    soft = powers / powers.sum(axis=-1, keepdims=True)
    mixed: NDArray[np.float32] = ((1 - share) * true + share * soft).astype(np.float32)
    return mixed


def _one_hot(labels: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """`labels` as one-hot labels of `shape`."""
    if labels.shape == shape and shape[-1] > 1:
        if not (np.isin(labels, (0, 1)).all() and (labels.sum(axis=-1) == 1).all()):
            raise DataError(f"labels of shape {labels.shape} are not one-hot; wanted one 1 for each sample, and zeros")
        return labels.astype(np.float64)
    if labels.shape not in (shape[:-1], (*shape[:-1], 1)) or shape[-1] < 2:
        raise DataError(
            f"labels have shape {labels.shape}, and the teacher's outputs {shape}; wanted class numbers "
            f"{shape[:-1]}, and an output for each class"
        )
    numbers = class_numbers(labels.reshape(shape[:-1]), "labels", shape[-1])
    return np.eye(shape[-1])[numbers]
