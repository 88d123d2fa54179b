"""`FitSearch`: the descent, a study around it if asked for, then the best network whole."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from fpgaprune.design import Design
from fpgaprune.errors import RunError
from fpgaprune.files import write_bytes
from fpgaprune.fit.answer import Fit, FitPoint
from fpgaprune.fit.clock import Clock
from fpgaprune.fit.descent import Descent, Judge
from fpgaprune.fit.document import search_document
from fpgaprune.fit.finalists import Finalists
from fpgaprune.fit.foresight import Foresight
from fpgaprune.fit.held_back import write_held_back
from fpgaprune.fit.job import Job
from fpgaprune.fit.knobs import FILTER, Knobs
from fpgaprune.fit.layout import Laid
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.log import SearchLog
from fpgaprune.fit.options import SearchOptions
from fpgaprune.fit.outlook import Outlook
from fpgaprune.fit.own_folder import FRONT, SAMPLES, TRIALS, require_own, used_alone
from fpgaprune.fit.page import write_page
from fpgaprune.fit.ranking import Ranking
from fpgaprune.fit.route import Route, smallest_part
from fpgaprune.fit.settings import joined
from fpgaprune.fit.standing import Heard
from fpgaprune.fit.steps import Steps
from fpgaprune.fit.study import require_optuna
from fpgaprune.fit.suggested import try_suggested
from fpgaprune.fit.training import Training, most_samples
from fpgaprune.fit.trial import Trials
from fpgaprune.fit.workers import Workers
from fpgaprune.fit.workplace import Here, Workplace
from fpgaprune.flow import (
    DataConfig,
    Dataset,
    Flow,
    Progress,
    TargetConfig,
    TrainConfig,
    load_data,
    parse_config,
    start_session,
    starting_model,
)

# With so many bits rounding loses nothing.
_WIDE = 16
# Share of the time after which trials train for all epochs, and the share that the descent may take; with a study.
_ROUGH, _DESCENT = 0.5, 0.75
_ROUGH_BEFORE_STUDY, _DESCENT_BEFORE_STUDY = 0.3, 0.5
# The share that locking filters of a large network may take, and the step that is too small for it.
_NARROW, _FINEST_NARROW = 0.25, 0.8
# The network of a run without the channels that its locks end.
_SMALL = "removed.keras"


@dataclass
class FitSearch:
    """One search.

    Attributes:
        route: the way to hardware.
        config: the flow that the search starts from.
        out: folder of the answer.
        limits: what must hold.
        told: learns how far the search is, in words.
        options: how widely to search, and where.
        heard: learns how far the search is, as data.
        notes: sentences on what stopped it.
    """

    route: Route
    config: Flow
    out: Path
    limits: Limits
    told: Progress
    options: SearchOptions
    heard: Heard
    notes: list[str] = field(default_factory=list)
    _training: Training = field(default_factory=lambda: Training(0, 0))
    _rates: dict[str, float] = field(default_factory=dict)

    def run(self) -> Fit:
        """The answer, which `out` holds too.

        Raises:
            RunError: `out` holds something else or is in use, or no network was found.
            ToolError: a package or a scheduler for workers is missing.
        """
        self._log = SearchLog(Ranking(self.limits, self.config[TargetConfig].clock_ns), self.told, self.heard)
        require_own(self.out)
        if self.options.searches:
            require_optuna()
        config, data = self.config, load_data(self.config[DataConfig].source)
        start_session(config.seed)
        model = starting_model(config[TrainConfig].model, data)
        document = search_document(config, model, self.notes)
        with used_alone(self.out), closing(self._place()) as place:
            return self._run(place, document, data, model)

    def _run(self, place: Workplace, document: dict[str, Any], data: Dataset, model: Any) -> Fit:
        config = self.config
        source = self.out / SAMPLES
        if not source.is_file():
            write_held_back(source, data, config.seed, most_samples(model))
        searched = load_data(str(source))
        trials = Trials(self.route, document, self.out / TRIALS, source, self.limits, place)
        foresight = Foresight(self.route, document, searched, model, self.limits)
        start, names = self._knobs(document)
        bolder = Training.at_a_higher_rate(config, searched, model)
        ways = [way for way in (bolder, Training.asked(config, searched, model)) if way is not None]
        first = self._first(trials, foresight, start, ways, remembers=data.x_valid is None)
        if self._training.is_cut and "filters" in names:
            start, first = self._narrow(trials, foresight, start, first, searched)
        self._descend(trials, foresight, start, names, first)
        if self.options.searches:
            self.notes += try_suggested(trials, foresight, self._log, self.options, names, self._training, self.out)
        else:
            self._look_around(trials, foresight, names)
        points = tuple(self._log.points.values())
        if not points:
            reason = next(iter(trials.impossible.values()), "no trial came to its end")
            raise RunError(f"the search found no network: {reason}")
        best = Finalists(trials, self._log.ranking, self._training.whole, self.out, self.told, self.notes).best(points)
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
            asdict(trials.limits),
            best,
            points,
            tuple(self.notes),
            self._rates,
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

    def _place(self) -> Workplace:
        options = self.options
        if options.workers is None and options.scheduler is None:
            return Here(Steps(self.told))
        return Workers(options.workers or 1, options.scheduler, options.memory_gib)

    def _knobs(self, document: dict[str, Any]) -> tuple[Knobs, list[str]]:
        """Where the descent starts, and the names of the knobs that may be turned."""
        asked = document.get("select", {})
        granularity, left_out = asked.get("granularity", "weight"), set()
        if granularity == FILTER or asked.get("filters"):
            left_out.add("filters")
        if not document["finetune"].get("quantised", False):
            # Cheap values are held in a network that rounds while it trains.
            left_out.add("hold")
        return Knobs(granularity), [name for name in self.route.knobs if name not in left_out]

    def _first(
        self, trials: Trials, foresight: Foresight, start: Knobs, ways: Sequence[Training], *, remembers: bool
    ) -> FitPoint | None:
        """Chooses how to train: the first way in which the network without locks loses little, else the best one.

        If the trained network `remembers` the samples that judge, it is trained whole with many bits and without them:
        what it loses, all others may lose too. This network is returned then.
        """
        self._training = ways[0]
        if len(ways) == 1 and not remembers:
            return None
        clock = Clock(self._log.at(1.0))
        knobs = replace(start, weight_bits=_WIDE, activation_bits=_WIDE) if remembers else start
        document, made = trials.document, []
        for way in ways:
            trials.document = joined(way.settings, document)
            epochs = way.whole if remembers else way.short
            point = self._judge(trials, epochs, clock)(knobs, foresight.fastest(knobs), None)
            if point is not None:
                made.append((way, point))
                if self._log.ranking.room(point) >= 0:
                    break
        if not made:
            self._training = ways[-1]
            return None
        self._training, first = min(made, key=lambda pair: pair[1].lost)
        trials.document = joined(self._training.settings, document)
        if not remembers:
            return None
        if first.lost <= 0:
            return first
        trials.limits = replace(self.limits, forgotten=first.lost)
        self._log.judge_by(trials.limits)
        self.notes.append(
            f"the search allowed {100 * first.lost:.2f} % more loss on the samples that it held back: the trained "
            "network knows them, and training without them loses so much by itself; x_valid in the data is better"
        )
        return structs.replace(first, loses_little=True)

    def _narrow(
        self, trials: Trials, foresight: Foresight, start: Knobs, good: FitPoint | None, data: Dataset
    ) -> tuple[Knobs, FitPoint | None]:
        """A large network loses filters first: what is left is trained in less time, so for more epochs.

        Half of the loss stays for what comes behind it.
        """
        clock, room = Clock(self._log.at(_NARROW)), self._log.ranking.room
        judge = self._judge(trials, self._training.short, clock)
        descent = Descent(["filters"], foresight, judge, clock.has_time, room)
        found = list(descent.run(start, good, _FINEST_NARROW))
        self.notes += descent.notes
        kept = [pair for pair in found if room(pair[1]) >= self._log.ranking.limits.max_loss / 2]
        if not kept:
            return start, good
        start, good = min(kept, key=lambda pair: self._log.ranking.rank(pair[1]))
        self._training = self._training.of(data, starting_model(Path(good.folder) / _SMALL, data))
        return start, good

    def _descend(
        self, trials: Trials, foresight: Foresight, start: Knobs, names: list[str], good: FitPoint | None
    ) -> None:
        """Points of short trials, then of whole ones from the best of these on; the first one starts from `good`."""
        shares = (_ROUGH_BEFORE_STUDY, _DESCENT_BEFORE_STUDY) if self.options.searches else (_ROUGH, _DESCENT)
        short, epochs = self._training.short, self._training.whole
        for passes, share in ((short, shares[0]), (epochs, shares[1])):
            clock = Clock(self._log.at(share))
            descent = Descent(
                names,
                foresight,
                self._judge(trials, passes, clock),
                clock.has_time,
                self._log.ranking.room,
                partial(self._begin, trials, foresight, passes),
            )
            found = list(descent.run(start, good))
            self.notes += descent.notes
            self._rates.update(descent.rates)
            kept = [pair for pair in found if pair[1].loses_little]
            if passes == epochs or not kept or time.monotonic() > self._log.at(shares[1]):
                break
            start, good = min(kept, key=lambda pair: self._log.ranking.rank(pair[1]))

    def _look_around(self, trials: Trials, foresight: Foresight, names: Sequence[str]) -> None:
        """Whole trials of the networks around the best one, as long as one promises more."""
        clock, ranking = Clock(self._log.at(1.0)), self._log.ranking
        judge = self._judge(trials, self._training.whole, clock)
        outlook = Outlook(names, foresight, ranking, self._training.whole, foresight.single_layers)
        refused: set[Knobs] = set()
        while clock.has_time() and (found := outlook.next(list(self._log.points.values()), refused)):
            knobs, good = found
            if judge(knobs, foresight.fastest(knobs), good) is None:
                refused.add(knobs)

    def _begin(self, trials: Trials, foresight: Foresight, epochs: int, knobs: Sequence[Knobs], good: FitPoint) -> None:
        """Workers begin what the descent may ask for next; this process waits until it is asked."""
        if isinstance(trials.place, Workers):
            for one in knobs[: max(trials.place.room(), 0)]:
                trials.place.begin(self._job(trials, one, foresight.fastest(one), epochs, good))

    def _job(self, trials: Trials, knobs: Knobs, laid: Laid, epochs: int, good: FitPoint | None) -> Job:
        return trials.job(knobs, laid, epochs, self._training.starts_from(good, knobs, epochs))

    def _judge(self, trials: Trials, epochs: int, clock: Clock) -> Judge:
        def judge(knobs: Knobs, laid: Laid, good: FitPoint | None) -> FitPoint | None:
            job = self._job(trials, knobs, laid, epochs, good)
            self._log.begin(job)
            began = time.monotonic()
            point = trials.judge(job)
            clock.took(time.monotonic() - began)
            self._log.end(job, point or trials.impossible[job.knobs])
            return point

        return judge
