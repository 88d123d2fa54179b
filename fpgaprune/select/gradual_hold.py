"""`GradualHold`: a Keras callback that holds more and more weights at cheap values as training goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import MaskError
from fpgaprune.select.cheap_values import Digits, hold_largest, parse_hold
from fpgaprune.values import FixedType, HeldValues, MaskSet, weight_arrays

# The last round begins after this part of the training: what trains then makes up for all values that are held.
_LAST = 0.65


def hold_schedule(epochs: int, rounds: int) -> dict[int, float]:
    """The epoch at which each round of a hold starts, to the share of the weights that it holds: 1/2, 3/4, ..., 1.

    Raises:
        MaskError: there are fewer epochs than rounds, or no round.
    """
    if not 1 <= rounds <= epochs:
        raise MaskError(
            f"{rounds} rounds of holding in {epochs} epochs; wanted at least 1 round, and an epoch for each"
        )
    spacing = _LAST * epochs / max(rounds - 1, 1)
    shares = {max(number, round(number * spacing)): 1 - 0.5 ** (number + 1) for number in range(rounds - 1)}
    return {**shares, max(rounds - 1, round((rounds - 1) * spacing)): 1.0}


class GradualHold(keras.callbacks.Callback):  # type: ignore[misc, unused-ignore]
    """A callback that holds more of the kept weights at cheap values before each epoch that `schedule` names.

    What is held stays so. The model must have been locked before `fit` with `initial_masks` and `initial_values`:
    `fp.finetune(model, hold.initial_masks(model), x, y, values=hold.initial_values(model), callbacks=[hold])`.

    Attributes:
        held: what is held now.
    """

    def __init__(
        self,
        schedule: Mapping[int, float],
        relock: Callable[[Any, MaskSet, Mapping[str, Any]], None],
        masks: MaskSet,
        types: Mapping[str, FixedType],
        cheap: str | Digits = "digits(1)",
    ) -> None:
        """A callback for `model.fit`.

        Args:
            schedule: epoch to the share of the kept weights that is held from then on, as `hold_schedule` gives it.
            relock: what sets masks and values of a locked model: `fp.relock`.
            masks: what is locked at zero all the time.
            types: weight path to its type in hardware; weights that are not named train on.
            cheap: the values, as `digits(1)`.

        Raises:
            MaskError: `cheap` names no values.
        """
        super().__init__()
        self.held = HeldValues()
        self._schedule, self._relock = dict(schedule), relock
        self._masks, self._types, self._cheap = masks, dict(types), parse_hold(cheap)

    def initial_masks(self, model: keras.Model) -> MaskSet:
        """The masks before the first round: `masks`, and a free mask for each other weight that will be held."""
        weights = weight_arrays(model)
        return MaskSet({**{path: np.ones(weights[path].shape, bool) for path in self._types}, **self._masks})

    def initial_values(self, model: keras.Model) -> dict[str, Any]:
        """Zeros for each of these masks; a lock that began with values can be given others later."""
        weights = weight_arrays(model)
        return {path: np.zeros_like(weights[path]) for path in self.initial_masks(model)}

    def resume(self, held: HeldValues) -> None:
        """Go on with what a stopped training held."""
        self.held = held

    def on_train_begin(self, logs: object = None) -> None:  # noqa: ARG002
        """Hold again what a stopped training held."""
        if self.held.count:
            self._lock()

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:  # noqa: ARG002
        """As many weights are held as the schedule asks for at this epoch."""
        if epoch in self._schedule:
            share = self._schedule[epoch]
            weights = weight_arrays(self.model)
            self.held = hold_largest(weights, self._masks, self._types, share, self._cheap, self.held)
            self._lock()

    def _lock(self) -> None:
        zeros = self.initial_masks(self.model)
        held = {path: mask & self.held.masks[path] if path in self.held.masks else mask for path, mask in zeros.items()}
        self._relock(self.model, MaskSet(held), {**self.initial_values(self.model), **self.held.values})
