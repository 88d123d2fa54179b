"""What a flow tells whoever watches it."""

from __future__ import annotations

from typing import Any, Protocol


class Progress(Protocol):
    """Told of every stage and of steps within long ones."""

    def stage(self, name: str, state: str) -> None:
        """Stage `name` is now `running`, `done` or `unchanged`."""

    def step(self, done: int, total: int, note: str = "") -> None:
        """The running stage has finished `done` of `total` steps."""


class Silent:
    """Tells nobody."""

    def stage(self, name: str, state: str) -> None:
        """Nothing is shown."""

    def step(self, done: int, total: int, note: str = "") -> None:
        """Nothing is shown."""


def epochs_shown(progress: Progress, total: int, passed: int = 0) -> Any:
    """A Keras callback that tells `progress` of each epoch, of `total`, after `passed` earlier ones."""
    import keras

    return keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: progress.step(
            passed + epoch + 1, total, f"accuracy {(logs or {}).get('accuracy', 0):.3f}"
        )
    )
