"""Keras callbacks that lock more and more elements during training, or hold more and more weights at cheap values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import MaskError
from fpgaprune.select.cheap_values import Digits, hold_largest, parse_hold
from fpgaprune.select.choose import select
from fpgaprune.select.regrowth import advance, check_regrowth
from fpgaprune.select.schedules import Schedule
from fpgaprune.values import FixedType, HeldValues, MaskSet, weight_arrays


class GradualLock(keras.callbacks.Callback):  # type: ignore[misc, unused-ignore]
    """A callback that locks the model up to the scheduled sparsity before each step that `schedule` names.

    Locked elements stay locked, except those that `regrow_fraction` frees. The model must have been locked before `fit`
    (`fp.lock(model, callback.initial_masks(model))`), so that nothing is traced again and slots keep their bits;
    `fp.finetune(model, callback.initial_masks(model), x, y, callbacks=[callback])` does that too. If Keras takes many
    steps at once (`steps_per_execution`), the locks of all of them are set before the first.

    Attributes:
        masks: the masks in force, None before the first step.
        history: `(step, sparsity asked, sparsity of elements)` of each change.
    """

    def __init__(
        self,
        schedule: Schedule,
        relock: Callable[[Any, MaskSet], None],
        *,
        base: MaskSet | None = None,
        regrow_fraction: float = 0.0,
        **options: Any,
    ) -> None:
        """Make a callback for `model.fit`.

        Args:
            schedule: step to `(prune now, sparsity)`: a schedule of `fpgaprune.select.schedules`, or one of TF-MOT's.
            relock: the function that sets the masks of a locked model: `fp.relock`.
            base: elements that are locked from the first step on.
            regrow_fraction: share of the locked units that is freed at each change, those with the largest gradients;
                the units with the lowest scores are locked for them. Needs `data` among the options.
            **options: options of `select`, except `sparsity` and `base`. A pattern n:m keeps more than n until the
                schedule reaches its sparsity.

        Raises:
            MaskError: an option is not allowed, or regrowth has no data.
        """
        super().__init__()
        check_regrowth(regrow_fraction, options)
        for name in ("sparsity", "base"):
            if name in options:
                raise MaskError(f"{name!r} is no option of a scheduled selection; wanted a schedule, and base=masks")
        self.masks: MaskSet | None = None
        self.history: list[tuple[int, float, float]] = []
        self._schedule = schedule
        self._relock = relock
        self._base = base
        self._regrow_fraction = regrow_fraction
        self._options = options
        self._step = 0
        self._again = False

    def on_train_begin(self, logs: object = None) -> None:  # noqa: ARG002
        """Let the first change of this training check what the model computes; while it trains that stays."""
        self._again = False

    def initial_masks(self, model: keras.Model) -> MaskSet:
        """Make masks for every weight that may be locked later; only `base` is locked."""
        free = select(model, 0.0, **{**self._options, "granularity": "weight"})
        return free if self._base is None else free & self._base.fitted(model)

    def resume(self, masks: MaskSet | None, history: list[tuple[int, float, float]], step: int) -> None:
        """Continue at `step` of a stopped training, with the masks and the history of that step."""
        self.masks, self.history, self._step = masks, list(history), step

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:  # noqa: ARG002
        """Set the locks of the steps that begin; steps count on over epochs and calls of `fit`."""
        together = range(self._step, self._step + self.model.steps_per_execution)
        asked = [sparsity for due, sparsity in map(self._schedule, together) if bool(due)]
        if asked:
            self._change(float(asked[-1]))
        self._step = together.stop

    def _change(self, sparsity: float) -> None:
        options = {**self._options, "again": self._again}
        masks = advance(self.model, sparsity, self.masks or self._base, self._base, self._regrow_fraction, options)
        self._again = True
        if self.masks is None or masks != self.masks:
            self._relock(self.model, masks)
            self.masks = masks
            self.history.append((self._step, sparsity, masks.sparsity))


# The last round begins after this part of the training: what trains then makes up for all values that are held.
_LAST = 0.65


def hold_schedule(epochs: int, rounds: int) -> dict[int, float]:
    """Map the epoch at which each round of a hold starts to the share of weights that it holds: 1/2, 3/4, ..., 1.

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
        """Make a callback for `model.fit`.

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
        """Return the masks before the first round: `masks`, and a free mask for each other weight that will be held."""
        weights = weight_arrays(model)
        return MaskSet({**{path: np.ones(weights[path].shape, bool) for path in self._types}, **self._masks})

    def initial_values(self, model: keras.Model) -> dict[str, Any]:
        """Return zeros for each weight of `initial_masks`; a lock that began with values can be given others later."""
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
        """Hold as many weights as the schedule asks for at this epoch."""
        if epoch in self._schedule:
            share = self._schedule[epoch]
            weights = weight_arrays(self.model)
            self.held = hold_largest(weights, self._masks, self._types, share, self._cheap, self.held)
            self._lock()

    def _lock(self) -> None:
        zeros = self.initial_masks(self.model)
        held = {path: mask & self.held.masks[path] if path in self.held.masks else mask for path, mask in zeros.items()}
        self._relock(self.model, MaskSet(held), {**self.initial_values(self.model), **self.held.values})
