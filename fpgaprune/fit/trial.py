"""`Trials`: the networks of one flow as trials, each with a run of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fpgaprune.design import Design
from fpgaprune.fit.answer import HELD_BACK, FitPoint
from fpgaprune.fit.candidate import Candidate
from fpgaprune.fit.job import Job, read_outcome
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.ranking import Judged
from fpgaprune.fit.route import Route
from fpgaprune.fit.workplace import Workplace
from fpgaprune.flow import TargetConfig, parse_config
from fpgaprune.layout import DesignLayout, joined

# The network of a run before channels are removed: a later trial can start from it.
_TRAINED = "finetuned.keras"


@dataclass
class Trials:
    """Trains networks of one flow and judges them.

    Attributes:
        route: the way to hardware.
        document: the flow file, as plain data.
        folder: holds a folder for each trial.
        source: the `.npz` with the samples of the search.
        limits: what a point must keep to.
        place: where they are done.
        content: digest of what the search reads.
        impossible: knobs in words, to why a network cannot have them.
    """

    route: Route
    document: Mapping[str, Any]
    folder: Path
    source: Path
    limits: Limits
    place: Workplace
    content: str
    impossible: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._target = dict(self.document.get("target", {}))
        self._clock_ns = float(parse_config({"target": self._target}, "fit")[TargetConfig].clock_ns)

    def job(self, knobs: Knobs, laid: DesignLayout, epochs: int, good: FitPoint | None = None) -> Job:
        """The network of `knobs` in the layout `laid`, trained for `epochs` on the samples of the search.

        It is trained from the network of the point `good`, or from the trained one.
        """
        asked = joined(knobs.settings(), laid.settings)
        searched = {**self.route.searched, "data": {"source": str(self.source)}}
        return self._job(asked, epochs, searched, str(knobs), HELD_BACK, good)

    def left_out(self) -> list[str]:
        """A sentence for each reason for which networks were left out; it names the first one, and how many more."""
        named: dict[str, list[str]] = {}
        for knobs, reason in self.impossible.items():
            named.setdefault(reason, []).append(knobs)
        return [
            f"left out: {knobs[0]}{f', and {len(knobs) - 1} more' if len(knobs) > 1 else ''}: {reason}"
            for reason, knobs in named.items()
        ]

    def recall(self, key: str) -> FitPoint | None:
        """The point of the trial `key` on the samples of the search, which has ended; None if its file is gone."""
        found = read_outcome(self.folder / f"{key}.json", self.limits, self._clock_ns)
        return None if isinstance(found, str) else found

    def whole(self, candidate: Candidate, laid: Judged, epochs: int) -> FitPoint | None:
        """A network in the layout `laid`, trained for `epochs` on all samples, judged on held-out ones.

        A tool counts what it takes, unless its price is far beyond the part: that takes minutes, and changes nothing.
        None if there is no such network; `impossible` says why.
        """
        counting = None if self.limits.is_far(laid.share) else self.counting(candidate.design)
        more = self.route.searched if counting is None else counting
        asked = joined(candidate.settings, laid.settings)
        return self.judge(self._job(asked, epochs, more, candidate.knobs, "held-out", candidate.good))

    def counting(self, design: Design) -> dict[str, Any] | None:
        """What the flow of a whole run must say too, so that a tool counts what `design` takes; None if none can."""
        return self.route.counting(design, self.document)

    def judge(self, job: Job) -> FitPoint | None:
        """The point of a network; None if there is no such network, and `impossible` says why."""
        found = self.place.outcome(job)
        if isinstance(found, str):
            self.impossible[job.knobs] = found
            return None
        return found

    def _job(
        self,
        asked: dict[str, Any],
        epochs: int,
        more: Mapping[str, Any],
        knobs: str,
        judged_on: str,
        good: FitPoint | None,
    ) -> Job:
        """The trial of a network with the settings `asked`, trained from that of `good`."""
        finetune: dict[str, Any] = {"epochs": epochs}
        if good is not None:
            finetune["start"] = str(Path(good.folder) / _TRAINED)
        gradual = bool(asked["select"]["sparsity"]) and "fit" not in self.document.get("finetune", {})
        if not gradual:
            finetune["schedule"] = {"kind": "one_shot"}
        elif "schedule" not in self.document.get("finetune", {}):
            finetune["schedule"] = {"kind": "polynomial_decay", "initial_sparsity": _locked(good, asked["select"])}
        more = joined({"verdict": {"max_loss": self.limits.max_loss}}, more)
        if held := asked.get("quantise"):
            more["quantise"] = {"epochs": max(held["epochs"], epochs // 2)}
        document = joined(self.document, asked, {"finetune": finetune}, more)
        return Job(
            self.route.name,
            self._target,
            self._clock_ns,
            asdict(self.limits),
            document,
            knobs,
            asked,
            judged_on,
            str(self.folder),
            self.content,
        )


def _locked(good: FitPoint | None, select: Mapping[str, Any]) -> float:
    """The sparsity that the network of `good` has in the units of `select`: its locks are there from the first step."""
    own = {} if good is None else good.settings["select"]
    return min(own["sparsity"], select["sparsity"]) if own.get("granularity") == select["granularity"] else 0.0
