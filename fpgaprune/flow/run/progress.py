"""`Progress`: how a flow reports its stages and steps."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

# Least seconds between two messages within an epoch.
EVERY_S = 0.5


class Progress(Protocol):
    """Learns of every stage and of the steps of long ones."""

    def stage(self, name: str, state: str, note: str = "", seconds: float | None = None) -> None:
        """Tell that stage `name` is `running`, `done` (with a `note`), `unchanged` or `skipped` (`note` says why).

        With state `warning`, `note` warns of something, with `said` it informs, and no stage begins or ends. `seconds`
        is the time that it took, if the caller measured it.
        """

    def step(self, done: int, total: int, note: str = "") -> None:
        """Tell that the running stage has finished `done` of `total` steps."""


class Silent:
    """Shows nothing."""

    def stage(self, name: str, state: str, note: str = "", seconds: float | None = None) -> None:
        """Do nothing."""

    def step(self, done: int, total: int, note: str = "") -> None:
        """Do nothing."""


def tell_end(
    progress: Progress, name: str, seconds: float | None, left_out: str | None = None, notes: Iterable[str] = ()
) -> None:
    """Report how stage `name` ended: done in `seconds` with `notes`, unchanged if they are None, or `left_out`."""
    if left_out is not None:
        progress.stage(name, "skipped", left_out, seconds)
    elif seconds is None:
        progress.stage(name, "unchanged")
    else:
        progress.stage(name, "done", "; ".join(notes), seconds)


def epochs_shown(progress: Progress, total: int, passed: int = 0) -> Any:
    """Return a Keras callback that tells `progress` of each epoch and, now and then, of the batches within.

    Args:
        progress: gets the finished batches, all batches, and a note as `epoch 3 of 24, loss 0.31, accuracy 0.91`.
        total: number of all epochs.
        passed: number of epochs that earlier calls of `fit` have done.
    """
    import keras

    class EpochsShown(keras.callbacks.Callback):
        """Costs little at every batch: most of the time it only reads the clock."""

        def __init__(self) -> None:
            super().__init__()
            self._epoch = passed
            self._due = 0.0

        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:  # noqa: ARG002
            self._epoch = passed + epoch

        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            now = time.monotonic()
            # In the first epoch over a generator, the number of batches is unknown.
            if now >= self._due and self.params.get("steps"):
                self._due = now + EVERY_S
                self._tell(batch + 1, logs)

        def on_epoch_end(self, epoch: int, logs: object = None) -> None:  # noqa: ARG002
            self._tell(self.params.get("steps"), logs)

        def _tell(self, batches: int | None, logs: Any) -> None:
            note = ", ".join((f"epoch {self._epoch + 1} of {total}", *_figures(logs or {})))
            steps = self.params.get("steps")
            if steps and batches:
                progress.step(self._epoch * steps + batches, total * steps, note)
            else:
                progress.step(self._epoch + 1, total, note)

    return EpochsShown()


def flat_figures(logs: Mapping[str, object]) -> dict[str, Any]:
    """Flatten Keras's metrics to name and value; a metric with a dict of values gives one entry for each."""
    found: dict[str, Any] = {}
    for name, value in logs.items():
        found.update(flat_figures(value) if isinstance(value, Mapping) else {name: value})
    return found


def _figures(logs: Mapping[str, object]) -> list[str]:
    """Return the loss and the first other metric of the training, as text; a metric with many values by their mean."""
    values = flat_figures(logs)
    names = [name for name in values if not name.startswith("val_") and not name.endswith("loss")]
    shown = [name for name in ("loss", *names[:1]) if name in values]
    return [f"{name.replace('_', ' ')} {float(np.mean(values[name])):.3g}" for name in shown]
