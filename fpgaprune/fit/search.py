"""`FitSearch`: the descent, then the best network whole."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from fpgaprune.design import Design
from fpgaprune.errors import ConfigError, HlsError, RunError, UnsupportedLayerError
from fpgaprune.files import make_folder, storage, write_bytes
from fpgaprune.fit.answer import Fit, FitPoint
from fpgaprune.fit.descent import Descent, Judge
from fpgaprune.fit.foresight import Foresight
from fpgaprune.fit.held_back import write_held_back
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.layout import Laid
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.page import write_page
from fpgaprune.fit.route import Route, smallest_part
from fpgaprune.fit.settings import joined
from fpgaprune.fit.steps import Steps
from fpgaprune.fit.trial import Trials
from fpgaprune.flow import (
    DataConfig,
    Dataset,
    FinetuneConfig,
    Flow,
    Progress,
    TargetConfig,
    TrainConfig,
    load_data,
    parse_config,
    start_session,
    starting_model,
)
from fpgaprune.keras_file import holds_hgq

FRONT, SAMPLES, TRIALS, BEST = "front.json", "held_back.npz", "trials", "best"
# A first trial trains for this part of the epochs of the best network.
_SHORT = 4
# Share of the time after which trials train for all epochs.
_ROUGH = 0.6
# Networks that are trained to the end: the best by the search, then the next ones if it loses too much.
_FINALISTS = 3
# The layout of the best network leaves this share of the limit free, because further training moves its price.
_ROOM = 0.03


@dataclass
class FitSearch:
    """One search.

    Attributes:
        route: the way to hardware.
        config: the flow that the search starts from.
        out: folder of the answer.
        limits: what must hold.
        told: learns how far the search is.
        notes: sentences on what stopped it.
    """

    route: Route
    config: Flow
    out: Path
    limits: Limits
    told: Progress
    notes: list[str] = field(default_factory=list)
    _count: int = 0

    def run(self) -> Fit:
        """The answer, which `out` holds too.

        Raises:
            RunError: `out` holds something else, or no network was found.
        """
        self._require_own_folder()
        config, data = self.config, load_data(self.config[DataConfig].source)
        started = time.monotonic()
        start_session(config.seed)
        model = starting_model(config[TrainConfig].model, data)
        document = self._document(model)
        source = make_folder(self.out) / SAMPLES
        if not source.is_file():
            write_held_back(source, data, config.seed)
        trials = Trials(self.route, document, self.out / TRIALS, source, self.limits, Steps(self.told))
        found = self._descend(document, load_data(str(source)), model, trials, started)
        if not found:
            reason = next(iter(trials.impossible.values()), "no trial came to its end")
            raise RunError(f"the search found no network: {reason}")
        best = self._whole(trials, list(found))
        if not best.fits:
            self.notes.append(self._larger_part(best))
        self.notes += [f"left out: {knobs}: {reason}" for knobs, reason in trials.impossible.items()]
        target = config[TargetConfig].target()
        answer = Fit(
            config.name,
            target.part.name,
            target.clock_ns,
            self.route.name,
            self.route.stage,
            asdict(self.limits),
            best,
            tuple(found),
            tuple(self.notes),
        )
        write_page(answer, self.out)
        write_bytes(self.out / FRONT, (json.dumps(answer.to_json(), indent=1) + "\n").encode())
        return answer

    def _larger_part(self, best: FitPoint) -> str:
        """A sentence: the part that would take the nearest network."""
        design = Design.load(Path(best.folder) / "design.json")
        config = parse_config(joined(self.config.model_dump(mode="json", exclude_unset=True), best.settings), "fit")
        part = smallest_part(self.route, design, config, self.limits.share)
        if part is None:
            return "no listed part of the same family takes the nearest network"
        return f"the smallest listed part of the same family that takes the nearest network is {part.name}"

    def _require_own_folder(self) -> None:
        names = {entry.name for entry in self.out.iterdir()} if self.out.is_dir() else set()
        own = {FRONT, SAMPLES, TRIALS, BEST, "model.keras", "data.npz", "report.html"}
        if self.out.exists() and not self.out.is_dir():
            raise RunError(f"{self.out} is a file; name a folder for the search")
        if others := sorted(name for name in names - own if not name.startswith(".")):
            raise RunError(f"{self.out} holds {others[0]!r}, which is of no search; name an empty or new folder")

    def _document(self, model: Any) -> dict[str, Any]:
        """The flow as plain data; the network rounds while it is fine-tuned, if it can."""
        document: dict[str, Any] = self.config.model_dump(mode="json", exclude_unset=True)
        path = self.config[TrainConfig].model
        if path is None:
            raise ConfigError("fit starts from a trained network: name it with train.model, or as MODEL.keras")
        if holds_hgq(path):
            raise ConfigError(
                f"{path} has weights whose bits HGQ2 trained, and fit would train them anew; "
                "make its hardware with 'fpgaprune run'"
            )
        document.setdefault("finetune", {})
        if "quantised" not in document["finetune"] and "fit" not in document["finetune"]:
            from fpgaprune.hls import require_roundable

            try:
                require_roundable(model)
                document["finetune"]["quantised"] = True
            except (HlsError, UnsupportedLayerError) as error:
                self.notes.append(f"the network is fine-tuned without rounding: {error}")
        return document

    def _descend(
        self, document: dict[str, Any], data: Dataset, model: Any, trials: Trials, started: float
    ) -> list[FitPoint]:
        """Points of short trials, then of whole ones from the best of these on."""
        epochs, seconds = self.config[FinetuneConfig].epochs, 60.0 * self.limits.minutes
        foresight = Foresight(self.route, document, data, model, self.limits)
        granularity = document.get("select", {}).get("granularity") or foresight.granularity()
        rounds = document["finetune"].get("quantised", False)
        # Cheap values are held in a network that rounds while it trains.
        names = [name for name in self.route.knobs if rounds or name != "hold"]
        found: list[tuple[Knobs, FitPoint]] = []
        start = Knobs(granularity)
        short = max(epochs // _SHORT, min(epochs, 2))
        for passes, until in ((short, _ROUGH), (epochs, 1.0)):
            clock = _Clock(started + until * seconds)
            descent = Descent(names, foresight, self._judge(trials, passes, clock), clock.has_time, self._room)
            found += descent.run(start)
            self.notes += descent.notes
            kept = [pair for pair in found if pair[1].loses_little]
            if passes == epochs or not kept or time.monotonic() > started + seconds:
                break
            start = min(kept, key=lambda pair: self._rank(pair[1]))[0]
        return [point for _, point in found]

    def _room(self, point: FitPoint) -> float:
        return self.limits.room(point.lost, point.lost_error, searching=True)

    def _judge(self, trials: Trials, epochs: int, clock: _Clock) -> Judge:
        def judge(knobs: Knobs, laid: Laid) -> FitPoint | None:
            self._count += 1
            name = f"trial {self._count}"
            self.told.stage(name, "running")
            began = time.monotonic()
            point = trials.judge(knobs, laid, epochs)
            clock.took(time.monotonic() - began)
            if point is None:
                self.told.stage(name, "skipped", f"{knobs}: {trials.impossible.get(str(knobs), 'not possible')}")
            else:
                self.told.stage(name, "done", point.in_words())
            return point

        return judge

    def _whole(self, trials: Trials, points: list[FitPoint]) -> FitPoint:
        """The first of the best points that meets the limits when it is trained to the end on all samples.

        `best/` holds its run. If none does, it is the one that came nearest.
        """
        epochs, ratio = self.config[FinetuneConfig].epochs, 1.0
        found: list[FitPoint] = []
        left = list(points)
        while left and len(found) < _FINALISTS:
            point = min(left, key=lambda point: self._rank(self._corrected(point, ratio)))
            left.remove(point)
            name = f"best {len(found) + 1}" if found else "best"
            self.told.stage(name, "running")
            laid = self._relaid(point, ratio)
            made = trials.whole(point.knobs, joined(point.settings, laid.settings), epochs)
            if made is None:
                self.told.stage(name, "skipped", trials.impossible[point.knobs])
                continue
            found.append(made)
            self.told.stage(name, "done", made.in_words())
            if made.meets_limits or not point.meets_limits:
                break
            self.notes.append(f"{point.knobs}: met the limits in the search, and not when it was trained whole")
            if made.measured is not None and (priced := made.used[made.resource]):
                # The next choice trusts what the tool counted more than the price.
                ratio = (made.measured[made.resource] or 0) / priced
        if not found:
            raise RunError(f"no network of the search could be trained whole: {trials.impossible}")
        best = min(found, key=self._rank)
        self._keep(Path(best.folder))
        return structs.replace(best, folder=str(self.out / BEST))

    @staticmethod
    def _corrected(point: FitPoint, ratio: float) -> FitPoint:
        return structs.replace(point, share=point.share * ratio)

    def _relaid(self, point: FitPoint, ratio: float) -> Laid:
        """The best layout of what the trial made, with some room for what further training changes."""
        target = self.config[TargetConfig].target()
        design = Design.load(Path(point.folder) / "design.json")
        limits = replace(self.limits, share=self.limits.share * (1 - _ROOM) / ratio)
        return min(self.route.layouts(design), key=lambda laid: laid.rank(limits, target.clock_ns))

    def _rank(self, point: FitPoint) -> tuple[float, ...]:
        """A smaller rank is better: the limits first; without them, how far the point is from them."""
        limit = self.limits.max_loss + point.lost_error
        loss = point.lost / limit if limit else float(point.lost > 0)
        if not point.meets_limits:
            return (1.0, not point.in_time, max(loss, 1.0) + max(point.share / self.limits.share, 1.0), point.share)
        clock_ns = self.config[TargetConfig].clock_ns
        laid = Laid("", {}, point.share, point.resource, {}, point.latency_cycles, point.interval_cycles)
        return (0.0, *laid.rank(self.limits, clock_ns), loss)

    def _keep(self, folder: Path) -> None:
        """`best/` is a copy of the run in `folder`, whole or not at all."""
        best, draft = self.out / BEST, self.out / f".{BEST}"
        with storage(best):
            shutil.rmtree(draft, ignore_errors=True)
            shutil.copytree(folder, draft, ignore=shutil.ignore_patterns(".lock"))
            shutil.rmtree(best, ignore_errors=True)
            draft.rename(best)


class _Clock:
    """Says whether another trial will end in time."""

    def __init__(self, deadline: float) -> None:
        self._deadline, self._longest = deadline, 0.0

    def took(self, seconds: float) -> None:
        """A trial has taken so long."""
        self._longest = max(self._longest, seconds)

    def has_time(self) -> bool:
        """Whether a trial that takes as long as the longest one ends before the deadline."""
        return time.monotonic() + self._longest <= self._deadline
