"""One score for each output of a network, by what its labels ask: where several outputs have no metric of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from fpgaprune.values import Array

# Called with labels, outputs, and their weights or None.
Score = Callable[[Array, Array, Array | None], float]


def score_of(question: str, logits: bool) -> tuple[str, Score]:
    """The score of outputs whose labels ask `question`, as `question_of` says, with its name: 1 is the best one.

    Args:
        question: `classes`, `one-hot`, `yes or no` or `regression`.
        logits: whether the outputs are logits, no probabilities.
    """
    if question in ("classes", "one-hot"):
        return "accuracy", share_right
    if question == "yes or no":
        return "accuracy", partial(_share_answered, 0.0 if logits else 0.5)
    return "r2", r2


def share_right(labels: Array, outputs: Array, weights: Array | None = None) -> float:
    """Keras's accuracy of classes. A run computes it some hundred times, and Keras would take 50 ms each time."""
    classes = outputs.argmax(axis=-1)
    wanted = labels.argmax(axis=-1) if labels.shape == outputs.shape else labels.reshape(classes.shape)
    return _mean(classes == wanted, weights)


def r2(labels: Array, outputs: Array, weights: Array | None = None) -> float:
    """The share of the labels' variance that the outputs explain."""
    from sklearn.metrics import r2_score

    if weights is not None and (places := np.prod(weights.shape[1:])) > 1:
        # Each place of a sample counts by itself.
        rows = len(labels) * int(places)
        labels, outputs, weights = labels.reshape(rows, -1), outputs.reshape(rows, -1), weights.reshape(rows)
    flat = [array.reshape(len(array), -1) for array in (labels, outputs)]
    weights = None if weights is None else weights.reshape(len(labels))
    return float(r2_score(*flat, sample_weight=weights, multioutput="variance_weighted"))


def _share_answered(threshold: float, labels: Array, outputs: Array, weights: Array | None) -> float:
    right = (outputs > threshold) == (labels.reshape(outputs.shape) > 0.5)
    return _mean(right.mean(axis=-1), weights)


def _mean(values: Array, weights: Array | None) -> float:
    return float(
        values.mean() if weights is None else np.average(values, weights=np.broadcast_to(weights, values.shape))
    )
