"""`GradualLock`: a Keras callback that locks more and more elements during training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from fpgaprune.errors import MaskError
from fpgaprune.select.choose import select
from fpgaprune.select.regrowth import advance, check_regrowth
from fpgaprune.select.schedules import Schedule
from fpgaprune.values import MaskSet


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
        """A callback for `model.fit`.

        Args:
            schedule: step to `(prune now, sparsity)`: a schedule of `fpgaprune.select.schedules`, or one of TF-MOT's.
            relock: the function that sets the masks of a locked model: `fp.relock`.
            base: elements that are locked from the first step on.
            regrow_fraction: share of the locked units that is freed at each change, those with the largest gradients;
                the units with the lowest scores are locked for them. Needs `data` among the options.
            **options: options of `select`, except `sparsity` and `base`.

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

    def initial_masks(self, model: keras.Model) -> MaskSet:
        """Masks for every weight that may be locked later; only `base` is locked."""
        free = select(model, 0.0, **self._options)
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
        masks = advance(
            self.model, sparsity, self.masks or self._base, self._base, self._regrow_fraction, self._options
        )
        if self.masks is None or masks != self.masks:
            self._relock(self.model, masks)
            self.masks = masks
            self.history.append((self._step, sparsity, masks.sparsity))
