"""Makes the scores of different layers comparable."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


def none(scores: Scores) -> Scores:
    """The scores as they are: a layer with small weights may lose all units that are not protected."""
    return scores


def mean(scores: Scores) -> Scores:
    """The scores divided by their mean in the layer."""
    return _divided(scores, float(scores.mean()))


def largest(scores: Scores) -> Scores:
    """The scores divided by the largest in the layer."""
    return _divided(scores, float(scores.max()))


def norm(scores: Scores) -> Scores:
    """The scores divided by their Euclidean norm in the layer.

    Source: Molchanov, Tyree, Karras, Aila, Kautz, "Pruning Convolutional Neural Networks for Resource Efficient
    Inference", 2017, section 2.2 (layer-wise l2 normalization).
    """
    return _divided(scores, float(np.sqrt(np.square(scores).sum())))


def lamp(scores: Scores) -> Scores:
    """The square of each score divided by the sum of the squares that are not smaller: the best of a layer gets 1.

    The k-th best unit of each layer gets about 1/k, so that a small layer keeps its units. If the lowest score is below
    zero, all scores are first raised by its size; the order within the layer stays.

    Source: Lee, Park, Mo, Ahn, Shin, "Layer-adaptive Sparsity for the Magnitude-based Pruning", 2021, section 3.
    """
    scores = scores - min(float(scores.min(initial=0.0)), 0.0)
    top = float(scores.max(initial=0.0))
    squares = np.square(_divided(scores, top))
    order = np.argsort(squares)
    ascending = squares[order]
    remaining = np.cumsum(ascending[::-1])[::-1]
    # Equal scores are divided by the same sum: that of the first of them.
    first = np.flatnonzero(np.diff(ascending, prepend=-1.0))
    remaining = np.repeat(remaining[first], np.diff(first, append=len(ascending)))
    found = np.empty_like(squares)
    found[order] = np.divide(ascending, remaining, out=np.zeros_like(squares), where=remaining > 0)
    return found


def _divided(scores: Scores, by: float) -> Scores:
    return scores / by if by > 0 else scores


NORMALIZATIONS: Mapping[str, Callable[[Scores], Scores]] = {
    "none": none,
    "mean": mean,
    "max": largest,
    "l2": norm,
    "lamp": lamp,
}
