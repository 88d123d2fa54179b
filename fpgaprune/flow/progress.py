"""What a flow tells whoever watches it."""

from __future__ import annotations

from typing import Protocol


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
