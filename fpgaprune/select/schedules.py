"""Schedules: the sparsity as a function of the training step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fpgaprune.errors import MaskError, fraction_meant

# Step to (whether to prune at this step, the sparsity). TF-MOT's schedules return the same as tensors.
Schedule = Callable[[int], tuple[Any, Any]]


@dataclass(frozen=True)
class ConstantSparsity:
    """The same sparsity at all times. TF-MOT's `ConstantSparsity` gives the same numbers.

    Attributes:
        target_sparsity: the sparsity, 0..1.
        begin_step: first step with a selection.
        end_step: last step with a selection; -1 for no end.
        frequency: steps between two selections.
    """

    target_sparsity: float
    begin_step: int
    end_step: int = -1
    frequency: int = 100

    def __post_init__(self) -> None:
        _check(self, (self.target_sparsity,), self.begin_step, self.end_step, self.frequency)

    def __call__(self, step: int) -> tuple[bool, float]:
        """Return whether to prune at `step`, and the sparsity."""
        return _is_due(step, self.begin_step, self.end_step, self.frequency), self.target_sparsity


@dataclass(frozen=True)
class PolynomialDecay:
    """A sparsity that rises from `initial_sparsity` to `final_sparsity`, fast at first if `power` is above 1.

    TF-MOT's `PolynomialDecay` gives the same numbers in float32.

    Attributes:
        initial_sparsity: the sparsity at `begin_step`, 0..1.
        final_sparsity: the sparsity from `end_step` on, 0..1.
        begin_step: first step with a selection.
        end_step: last step with a selection.
        power: how fast the sparsity rises at first; 1 is a straight line.
        frequency: steps between two selections.

    Source: Zhu, Gupta, "To Prune, or Not to Prune: Exploring the Efficacy of Pruning for Model Compression", 2017,
    section 3.
    """

    initial_sparsity: float
    final_sparsity: float
    begin_step: int
    end_step: int
    power: float = 3
    frequency: int = 100

    def __post_init__(self) -> None:
        if self.end_step <= self.begin_step:
            raise MaskError(f"PolynomialDecay ends at step {self.end_step}; wanted one after step {self.begin_step}")
        _check(self, (self.initial_sparsity, self.final_sparsity), self.begin_step, self.end_step, self.frequency)

    def __call__(self, step: int) -> tuple[bool, float]:
        """Return whether to prune at `step`, and the sparsity."""
        done = min(1.0, max(0.0, (step - self.begin_step) / (self.end_step - self.begin_step)))
        sparsity = self.final_sparsity + (self.initial_sparsity - self.final_sparsity) * (1 - done) ** self.power
        return _is_due(step, self.begin_step, self.end_step, self.frequency), sparsity


def _is_due(step: int, begin: int, end: int, frequency: int) -> bool:
    return begin <= step and (end < 0 or step <= end) and (step - begin) % frequency == 0


def _check(schedule: object, sparsities: tuple[float, ...], begin: int, end: int, frequency: int) -> None:
    name = type(schedule).__name__
    for sparsity in sparsities:
        if not 0 <= sparsity <= 1:
            raise MaskError(f"{name} has sparsity {sparsity}; wanted a fraction from 0 to 1{fraction_meant(sparsity)}")
    if begin < 0 or end < -1 or (end != -1 and end < begin) or frequency < 1:
        raise MaskError(
            f"{name} runs from step {begin} to {end} every {frequency}; wanted 0 or more, a later end or -1, 1 or more"
        )
