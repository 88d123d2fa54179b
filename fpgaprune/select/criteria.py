"""Criteria: functions that score the elements of weights. Elements with low scores are locked first.

A criterion takes a `Question` and returns for each weight path an array that broadcasts to the weight. Criteria that
need samples are in `data_criteria`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fpgaprune.errors import MaskError
from fpgaprune.network import CHANNELWISE, FlatStep, Network, Role, network_of, per_output
from fpgaprune.select.data_criteria import Question, Scores, activation, fisher, taylor
from fpgaprune.select.synflow import synflow


@dataclass(frozen=True)
class Criterion:
    """Criterion that scores the elements of each weight.

    Attributes:
        scores: gives the scores.
        needs_data: whether it needs samples.
        pool: whether the score of a unit is the mean score of its elements, or the first.
    """

    scores: Callable[[Question], Scores]
    needs_data: bool = False
    pool: Literal["mean", "first"] = "mean"


def l1(question: Question) -> Scores:
    """Return the absolute value of each element.

    Source: Li, Kadav, Durdanovic, Samet, Graf, "Pruning Filters for Efficient ConvNets", 2017, section 3.1.
    """
    return {path: np.abs(weight) for path, weight in question.weights.items()}


def l2(question: Question) -> Scores:
    """Return the square of each element; this orders units as their Euclidean norm does.

    Source: He, Kang, Dong, Fu, Yang, "Soft Filter Pruning", 2018, section 3.2.
    """
    return {path: np.square(weight, dtype=np.float64) for path, weight in question.weights.items()}


def random(question: Question) -> Scores:
    """Return a random number from 0 to 1 for each unit, by seed and weight path: the baseline for other criteria.

    Source: Mittal, Bhardwaj, Khapra, Ravindran, "Recovering from Random Pruning", 2018.
    """
    return {path: _generator(question.seed, path).random(weight.shape) for path, weight in question.weights.items()}


def bn_scale(question: Question) -> Scores:
    """Return the absolute scale (gamma) of the batch normalization behind each output channel.

    Pooling and activations may stand between them.

    Source: Liu, Li, Shen, Huang, Yan, Zhang, "Learning Efficient Convolutional Networks through Network Slimming",
    2017, section 3.
    """
    network = network_of(question.model)
    if network is None:
        raise MaskError("criterion 'bn_scale' needs a functional or Sequential model, whose graph can be read")
    found: Scores = {}
    makers = {f"{step.path}/": step for step in network.steps}
    for path, weight in question.weights.items():
        step = makers.get(path[: path.rfind("/") + 1])
        norm = _norm_behind(step, network) if step is not None else None
        if norm is None:
            raise MaskError(
                f"criterion 'bn_scale' needs a BatchNormalization with scale=True behind {path!r}; there is "
                "none: leave the weight out of 'paths' or use another criterion"
            )
        gamma = np.abs(np.asarray(norm.gamma.numpy(), dtype=np.float64))
        found[path] = per_output(gamma, question.axes[path], weight.shape)
    return found


def geometric_median(question: Question) -> Scores:
    """Sum the distances from each filter to all others of its weight: lowest for the most replaceable filter.

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


def _norm_behind(step: FlatStep, network: Network) -> Any:
    """Find the first batch normalization with a scale that reads the step's channels unmixed; None without one."""
    tensors = [step.outputs[0]]
    while tensors:
        readers = network.consumers(tensors.pop(0))
        for reader in readers:
            if reader.role is Role.NORM and reader.layer.gamma is not None:
                return reader.layer
        tensors += [reader.outputs[0] for reader in readers if reader.role in CHANNELWISE and not reader.mixes_channels]
    return None


def _generator(seed: int, path: str) -> np.random.Generator:
    # The path is in the seed, so that the numbers of a weight do not depend on the other weights.
    return np.random.default_rng([seed, *hashlib.sha256(path.encode()).digest()[:8]])


CRITERIA: Mapping[str, Criterion] = {
    "l1": Criterion(l1),
    "l2": Criterion(l2),
    "random": Criterion(random, pool="first"),
    "synflow": Criterion(synflow),
    "bn_scale": Criterion(bn_scale),
    "geometric_median": Criterion(geometric_median),
    "taylor": Criterion(taylor, needs_data=True),
    "fisher": Criterion(fisher, needs_data=True),
    "activation": Criterion(activation, needs_data=True),
}
