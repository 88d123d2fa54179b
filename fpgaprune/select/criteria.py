"""How much each element of a weight matters: the higher, the longer it stays free.

A criterion is a function of a `Question`; its answer has for each weight path an array that broadcasts to the
weight. The ones here need no data; those that do are in `data_criteria`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError
from fpgaprune.select import data_criteria
from fpgaprune.select.batches import Progress
from fpgaprune.select.graph import NORM, graph_of
from fpgaprune.select.layers import ChannelAxes, per_output

Array = NDArray[Any]
Scores = dict[str, Array]


@dataclass(frozen=True)
class Question:
    """What a criterion is asked.

    Attributes:
        model: the Keras model.
        weights: weight path to value, for the weights to be scored.
        axes: weight path to its channel axes.
        data: samples, or None.
        batch_size: samples in a batch of arrays.
        seed: for criteria that draw numbers.
        progress: told `(done, total, note)` after each batch.
    """

    model: Any
    weights: Mapping[str, Array]
    axes: Mapping[str, ChannelAxes]
    data: Any = None
    batch_size: int = 32
    seed: int = 0
    progress: Progress | None = None


@dataclass(frozen=True)
class Criterion:
    """A named way to score; `pool` says how the scores of a unit's elements become the unit's."""

    scores: Callable[[Question], Scores]
    needs_data: bool = False
    pool: Literal["mean", "first"] = "mean"


def l1(question: Question) -> Scores:
    """Absolute value of each element.

    Source: Li, Kadav, Durdanovic, Samet, Graf, "Pruning Filters for Efficient ConvNets", 2017, section 3.1.
    """
    return {path: np.abs(weight) for path, weight in question.weights.items()}


def l2(question: Question) -> Scores:
    """Square of each element; a group's score is the square of its Euclidean norm, which orders alike.

    Source: He, Kang, Dong, Fu, Yang, "Soft Filter Pruning", 2018, section 3.2.
    """
    return {path: np.square(weight, dtype=np.float64) for path, weight in question.weights.items()}


def random(question: Question) -> Scores:
    """A number from 0 to 1 for each unit, drawn anew for each seed and weight path: the floor for other criteria.

    Source: Mittal, Bhardwaj, Khapra, Ravindran, "Recovering from Random Pruning", 2018.
    """
    return {path: _generator(question.seed, path).random(weight.shape) for path, weight in question.weights.items()}


def bn_scale(question: Question) -> Scores:
    """Size of the scale (gamma) of the batch normalization that reads each output channel.

    Source: Liu, Li, Shen, Huang, Yan, Zhang, "Learning Efficient Convolutional Networks through Network Slimming",
    2017, section 3.
    """
    graph = graph_of(question.model)
    if graph is None:
        raise MaskError("criterion 'bn_scale' needs a functional or Sequential model, whose graph can be read")
    found: Scores = {}
    makers = {f"{call.path}/": call for call in graph.calls}
    for path, weight in question.weights.items():
        call = makers.get(path[: path.rfind("/") + 1])
        readers = graph.consumers(call.outputs[0]) if call is not None else []
        norms = [reader.layer for reader in readers if reader.kind == NORM and reader.layer.gamma is not None]
        if not norms:
            raise MaskError(
                f"criterion 'bn_scale' needs a BatchNormalization with scale=True right behind {path!r}; there is "
                "none: leave the weight out of 'paths' or use another criterion"
            )
        gamma = np.abs(np.asarray(norms[0].gamma.numpy(), dtype=np.float64))
        found[path] = per_output(gamma, question.axes[path], weight.shape)
    return found


def geometric_median(question: Question) -> Scores:
    """Sum of the distances from each filter to all others of its weight: the most replaceable filter is lowest.

    Source: He, Liu, Wang, Hu, Yang, "Filter Pruning via Geometric Median for Deep Convolutional Neural Networks
    Acceleration", 2019, section 3.3.
    """
    found: Scores = {}
    for path, weight in question.weights.items():
        if weight.ndim < 2:
            raise MaskError(f"criterion 'geometric_median' compares filters; {path!r} of shape {weight.shape} has none")
        axes = question.axes[path].outputs
        moved = np.moveaxis(weight.astype(np.float64), axes, range(len(axes)))
        filters = moved.reshape(int(np.prod(moved.shape[: len(axes)])), -1)
        squares = np.einsum("ij,ij->i", filters, filters)
        distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * filters @ filters.T, 0))
        np.fill_diagonal(distances, 0)
        found[path] = per_output(distances.sum(axis=1), question.axes[path], weight.shape)
    return found


def _generator(seed: int, path: str) -> np.random.Generator:
    # By path, so that what one weight draws does not depend on which others are asked for.
    return np.random.default_rng([seed, *hashlib.sha256(path.encode()).digest()[:8]])


CRITERIA: Mapping[str, Criterion] = {
    "l1": Criterion(l1),
    "l2": Criterion(l2),
    "random": Criterion(random, pool="first"),
    "bn_scale": Criterion(bn_scale),
    "geometric_median": Criterion(geometric_median),
    "taylor": Criterion(data_criteria.taylor, needs_data=True),
    "fisher": Criterion(data_criteria.fisher, needs_data=True),
    "activation": Criterion(data_criteria.activation, needs_data=True),
}
