"""`Steps` shows the stages of one trial as the steps of one long stage."""

from __future__ import annotations

from dataclasses import dataclass

from fpgaprune.flow import Progress


@dataclass
class Steps:
    """Shows the stages of a run as the steps of one long stage."""

    progress: Progress
    _stage: str = ""

    def stage(self, name: str, state: str, note: str = "", seconds: float | None = None) -> None:  # noqa: ARG002
        """The run has begun the stage `name`, or has ended it."""
        if state == "running":
            self._stage = name
            self.progress.step(0, 0, name)

    def step(self, done: int, total: int, note: str = "") -> None:
        """The stage has come so far."""
        self.progress.step(done, total, f"{self._stage}: {note}" if note else self._stage)
