"""`Candidate`: a network that may be trained whole, whether the search has tried it or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fpgaprune.design import Design
from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.knobs import Knobs


@dataclass(frozen=True)
class Candidate:
    """A network that may be the answer.

    Attributes:
        knobs: its knobs, in words.
        settings: sections of a flow file to the keys that make it.
        design: what its hardware computes; of a network that was never trained, about.
        good: the point whose network it is trained from; None is the trained network.
        promise: what it was expected to do, which may be refuted, in words; empty if it was not expected to do better
            than others.
        point: its trial; None if the search has not trained it.
    """

    knobs: str
    settings: Mapping[str, Any]
    design: Design
    good: FitPoint | None
    promise: str = ""
    point: FitPoint | None = None

    @classmethod
    def tried(cls, point: FitPoint, promise: str = "") -> Candidate:
        """The network of `point`, which is trained on."""
        return cls(point.knobs, point.settings, point.design(), point, promise, point)

    @classmethod
    def untried(cls, knobs: Knobs, design: Design, good: FitPoint | None) -> Candidate:
        """A network that the search has not trained, which is likely to lose little."""
        return cls(str(knobs), knobs.settings(), design, good, "was likely to lose little, and broke a limit")
