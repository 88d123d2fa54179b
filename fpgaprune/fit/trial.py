"""`Trials`: networks that are trained and judged, each in a run of its own that is never done twice."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fpgaprune.design import Design, ReuseWarning
from fpgaprune.documents import read_json
from fpgaprune.errors import EstimateError, HlsError, MaskError, RemovalError, RunError
from fpgaprune.files import write_bytes
from fpgaprune.fit.answer import HELD_BACK, FitPoint
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.layout import Laid, counts, nearest_limit
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.route import Route
from fpgaprune.fit.settings import joined
from fpgaprune.flow import Progress, TargetConfig, parse_config, run_flow
from fpgaprune.hls import StrategyWarning
from fpgaprune.measure import from_plain, to_plain

# A network that cannot have these knobs; anything else ends the search.
_IMPOSSIBLE = (MaskError, HlsError, EstimateError, RemovalError)


@dataclass
class Trials:
    """Trains networks of one flow and judges them.

    Attributes:
        route: the way to hardware.
        document: the flow file, as plain data.
        folder: holds a folder for each trial.
        source: the `.npz` with the samples of the search.
        limits: what a point must keep to.
        progress: learns of the steps within a trial.
        impossible: knobs in words, to why a network cannot have them.
    """

    route: Route
    document: Mapping[str, Any]
    folder: Path
    source: Path
    limits: Limits
    progress: Progress
    impossible: dict[str, str] = field(default_factory=dict)

    def judge(self, knobs: Knobs, laid: Laid, epochs: int) -> FitPoint | None:
        """The network of `knobs` in the layout `laid`, trained for `epochs` on the samples of the search.

        None if there is no such network; `impossible` says why.
        """
        asked = joined(knobs.settings(), laid.settings)
        searched = {**self.route.searched, "data": {"source": str(self.source)}}
        try:
            return self._point(self._flow(asked, epochs, searched), str(knobs), asked, HELD_BACK)
        except _IMPOSSIBLE as error:
            self.impossible[str(knobs)] = str(error)
            return None

    def whole(self, knobs: str, asked: dict[str, Any], epochs: int) -> FitPoint | None:
        """The network of the settings `asked`, trained for `epochs` on all samples and judged on the held-out ones.

        None if there is no such network; `impossible` says why.
        """
        try:
            return self._point(self._flow(asked, epochs, {}), knobs, asked, "held-out")
        except _IMPOSSIBLE as error:
            self.impossible[knobs] = str(error)
            return None

    def _flow(self, asked: Mapping[str, Any], epochs: int, more: Mapping[str, Any]) -> dict[str, Any]:
        """The flow file, as plain data, of a network with the settings `asked`."""
        finetune: dict[str, Any] = {"epochs": epochs}
        gradual = bool(asked["select"]["sparsity"]) and "fit" not in self.document.get("finetune", {})
        if not gradual:
            finetune["schedule"] = {"kind": "one_shot"}
        elif "schedule" not in self.document.get("finetune", {}):
            finetune["schedule"] = {"kind": "polynomial_decay"}
        more = joined({"verdict": {"max_loss": self.limits.max_loss}}, more)
        if held := asked.get("quantise"):
            more["quantise"] = {"epochs": max(held["epochs"], epochs)}
        return joined(self.document, asked, {"finetune": finetune}, more)

    def _point(self, document: Mapping[str, Any], knobs: str, asked: dict[str, Any], judged_on: str) -> FitPoint:
        """The point of the flow `document`; a trial that has ended before is read from its file."""
        key = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]
        folder = self.folder / key
        kept = folder.with_suffix(".json")
        if kept.is_file():
            content = read_json(kept, RunError, "a trial of this search", "delete it; the trial is then made anew")
            return from_plain(content, FitPoint, str(kept))
        point = self._run(document, knobs, asked, folder, judged_on)
        write_bytes(kept, (json.dumps(to_plain(point), indent=1) + "\n").encode())
        return point

    def _run(
        self, document: Mapping[str, Any], knobs: str, asked: dict[str, Any], folder: Path, judged_on: str
    ) -> FitPoint:
        """The point of the flow `document`, whose run is in `folder`.

        Raises:
            EstimateError: nothing says whether it fits.
        """
        config = parse_config(document, "fit")
        with warnings.catch_warnings():
            # The reports of the runs say this, and a search makes dozens.
            warnings.simplefilter("ignore", ReuseWarning)
            warnings.simplefilter("ignore", StrategyWarning)
            done = run_flow(config, folder, self.progress)
        target = config[TargetConfig].target()
        metric = done.read_json("report.json")["metric"]
        hardware = metric["hardware"]
        design = Design.load(done.file("design.json"))
        laid = self.route.own(design, config)
        measured = self.route.measured(done)
        resource, share = (laid.resource, laid.share) if measured is None else nearest_limit(measured, target.part)
        return FitPoint(
            knobs=knobs,
            settings=asked,
            metric=metric["name"],
            value=metric["after"] if hardware is None else hardware,
            lost=metric["lost"],
            lost_error=metric["lost_error"] or 0.0,
            judged_on=judged_on,
            samples=metric["samples"],
            used=dict(laid.used),
            resource=resource,
            measured=None if measured is None else counts(measured),
            share=share,
            latency_cycles=laid.latency_cycles,
            interval_cycles=laid.interval_cycles,
            loses_little=self.limits.room(metric["lost"], metric["lost_error"] or 0.0, judged_on == HELD_BACK) >= 0,
            fits=share <= self.limits.share,
            in_time=laid.keeps(self.limits, target.clock_ns),
            epochs=document["finetune"]["epochs"],
            folder=str(folder),
        )
