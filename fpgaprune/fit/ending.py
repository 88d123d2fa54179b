"""`RunTimes`: how long a run of the search takes, by what its trials took."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from fpgaprune.documents import read_json
from fpgaprune.errors import FpgaPruneError
from fpgaprune.fit.answer import FitPoint

# The stages of a run whose time grows with the epochs and the samples.
_TRAINING = ("finetune", "quantise")
# Two trials tell what an epoch takes if one has so many times the epochs of the other.
_APART = 2
# An epoch takes at most so many times what was expected of it.
_SLOWER = 1.5
# A run takes up to this multiple of what is expected, by what runs beside it and by the report of the search.
_SLACK = 1.1
# A run of a small network takes about so many seconds beside its training, on one core.
_BESIDE = 10.0


@dataclass
class RunTimes:
    """The seconds of the trials so far; what a tool counts comes on top.

    Attributes:
        expected: seconds of an epoch of a trial, before any has been measured.
    """

    expected: float = math.inf
    _training: dict[int, float] = field(default_factory=dict)
    """Epochs to the seconds of the last training with so many."""
    _beside: float = 0.0
    """Seconds of the last trial beside its training."""

    def learn(self, point: FitPoint) -> None:
        """The trial of `point` has ended; its run says how long each stage took."""
        try:
            stages = read_json(Path(point.folder) / "manifest.json", FpgaPruneError, "a manifest", "")["stages"]
        except (FpgaPruneError, OSError, KeyError, TypeError):
            return
        seconds = {name: float(record.get("seconds", 0.0)) for name, record in stages.items()}
        self._training[point.epochs] = sum(seconds.get(name, 0.0) for name in _TRAINING)
        self._beside = sum(seconds.values()) - self._training[point.epochs]

    def seconds(self, epochs: int, samples: float = 1.0) -> float:
        """Seconds that a run takes with `epochs` and `samples` times the samples of a trial; 0 if no trial has ended.

        Two trials with different epochs tell what an epoch takes. Of one alone it is unknown how much was preparation.
        """
        if not self._training:
            return 0.0
        least, most = min(self._training), max(self._training)
        short, long = self._training[least], self._training[most]
        epoch = min(long / max(most, 1), _SLOWER * self.expected)
        if most >= _APART * max(least, 1) and long > short:
            epoch = (long - short) / (most - least)
        prepared = max(long - epoch * most, 0.0)
        return _SLACK * (self._beside + prepared + epoch * epochs * samples)


def run_seconds(*trained: float) -> float:
    """Seconds of runs whose trainings take `trained` each, before any has been measured."""
    return sum(_BESIDE + seconds for seconds in trained)
