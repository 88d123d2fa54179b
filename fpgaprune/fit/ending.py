"""What comes after a search: the best network is trained whole, which takes time of its own."""

from __future__ import annotations

from pathlib import Path

from fpgaprune.documents import read_json
from fpgaprune.errors import FpgaPruneError
from fpgaprune.fit.answer import FitPoint

# The stages of a run whose time grows with the epochs and the samples.
_TRAINING = ("finetune", "quantise")


def seconds_of_end(point: FitPoint, epochs: int, samples: float) -> float:
    """Seconds that a run like that of `point` takes with `epochs` and so many times its samples; 0 if unknown.

    What a tool counts comes on top.
    """
    try:
        stages = read_json(Path(point.folder) / "manifest.json", FpgaPruneError, "a manifest", "")["stages"]
    except (FpgaPruneError, OSError, KeyError, TypeError):
        return 0.0
    seconds = {name: float(record.get("seconds", 0.0)) for name, record in stages.items()}
    trained = sum(seconds.get(name, 0.0) for name in _TRAINING)
    return sum(seconds.values()) - trained + trained * samples * epochs / max(point.epochs, 1)
