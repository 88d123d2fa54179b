"""`Progress`: what a flow tells its watcher."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

# Seconds between two messages within an epoch, however many batches a second there are.
_EVERY_S = 0.5


class Progress(Protocol):
    """Told of every stage and of steps within long ones."""

    def stage(self, name: str, state: str, note: str = "", seconds: float | None = None) -> None:
        """Stage `name` is now `running`, `done`, `unchanged` or `skipped`.

        Args:
            name: of the stage.
            state: of it.
            note: why it was skipped, or "".
            seconds: that it took, where the caller measured them.
        """

    def step(self, done: int, total: int, note: str = "") -> None:
        """The running stage has finished `done` of `total` steps."""


class Silent:
    """Tells nobody."""

    def stage(self, name: str, state: str, note: str = "", seconds: float | None = None) -> None:
        """Nothing is shown."""

    def step(self, done: int, total: int, note: str = "") -> None:
        """Nothing is shown."""


def tell_end(
    progress: Progress, name: str, results: Mapping[str, Any], seconds: float | None, not_asked: str | None = None
) -> None:
    """`progress` knows how stage `name` ended: done in `seconds`, unchanged where they are None, or skipped and why.

    Args:
        progress: told.
        name: of the stage.
        results: what the stage returned, now or in an earlier run.
        seconds: that it took now.
        not_asked: why the stage was skipped where it has no results.
    """
    why = results.get("left_out") if results else not_asked
    if why is not None:
        progress.stage(name, "skipped", str(why), seconds)
    elif seconds is None:
        progress.stage(name, "unchanged")
    else:
        progress.stage(name, "done", seconds=seconds)


def epochs_shown(progress: Progress, total: int, passed: int = 0) -> Any:
    """A Keras callback that tells `progress` of each epoch and, now and then, of the batches within.

    Args:
        progress: told of batches done, batches in all, and a note such as `epoch 3 of 24, loss 0.31, accuracy 0.91`.
        total: epochs in all.
        passed: epochs that earlier calls of `fit` have done.
    """
    import keras

    class EpochsShown(keras.callbacks.Callback):
        """Cheap at every batch: most of the time it looks at the clock."""

        def __init__(self) -> None:
            super().__init__()
            self._epoch = passed
            self._due = 0.0

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            self._epoch = passed + epoch

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            now = time.monotonic()
            # In the first epoch over a generator, nobody knows how many batches it has.
            if now >= self._due and self.params.get("steps"):
                self._due = now + _EVERY_S
                self._tell(batch + 1, logs)

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            self._tell(self.params.get("steps"), logs)

        def _tell(self, batches: int | None, logs: Any) -> None:
            note = ", ".join((f"epoch {self._epoch + 1} of {total}", *_figures(logs or {})))
            steps = self.params.get("steps")
            if steps and batches:
                progress.step(self._epoch * steps + batches, total * steps, note)
            else:
                progress.step(self._epoch + 1, total, note)

    return EpochsShown()


def _figures(logs: Mapping[str, Any]) -> list[str]:
    """The loss and the first other metric of the training, as text."""
    names = [name for name in logs if not name.startswith("val_") and not name.endswith("loss")]
    shown = [name for name in ("loss", *names[:1]) if name in logs]
    return [f"{name.replace('_', ' ')} {float(logs[name]):.3g}" for name in shown]
