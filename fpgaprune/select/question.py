"""`Question`: what a criterion receives, and the form of the scores that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fpgaprune.network import ChannelAxes
from fpgaprune.processes import OnStep
from fpgaprune.values import Array

# For each weight path an array that broadcasts to the weight.
Scores = dict[str, Array]


@dataclass(frozen=True)
class Question:
    """What a criterion receives.

    Attributes:
        model: the Keras model.
        weights: weight path to value, for the weights to be scored.
        axes: weight path to its channel axes.
        data: samples, or None.
        batch_size: samples in a batch of arrays.
        seed: seed of criteria that draw numbers.
        progress: called with `(done, total, note)` after each batch.
    """

    model: Any
    weights: Mapping[str, Array]
    axes: Mapping[str, ChannelAxes]
    data: Any = None
    batch_size: int = 32
    seed: int = 0
    progress: OnStep | None = None
