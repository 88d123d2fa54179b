"""`FitSearch`: the descent, a study around it if asked for, then the best network whole."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fpgaprune.design import Design
from fpgaprune.errors import ConfigError, HlsError, RunError, UnsupportedLayerError
from fpgaprune.files import write_bytes
from fpgaprune.fit.answer import Fit, FitPoint
from fpgaprune.fit.clock import Clock
from fpgaprune.fit.coordinator import Coordinator
from fpgaprune.fit.descent import Descent, Judge
from fpgaprune.fit.finalists import Finalists
from fpgaprune.fit.foresight import Foresight
from fpgaprune.fit.held_back import write_held_back
from fpgaprune.fit.job import Job, Outcome
from fpgaprune.fit.knobs import GRANULARITIES, WIDTHS, Knobs
from fpgaprune.fit.layout import Laid
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.options import SearchOptions
from fpgaprune.fit.own_folder import FRONT, JOURNAL, SAMPLES, TRIALS, require_own, used_alone
from fpgaprune.fit.page import write_page
from fpgaprune.fit.ranking import Ranking
from fpgaprune.fit.route import Route, smallest_part
from fpgaprune.fit.rungs import Rungs
from fpgaprune.fit.settings import joined
from fpgaprune.fit.standing import Heard, Standing
from fpgaprune.fit.steps import Steps
from fpgaprune.fit.study import Space, Study, require_optuna
from fpgaprune.fit.trial import Trials
from fpgaprune.fit.workers import Workers
from fpgaprune.fit.workplace import Here, Workplace
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
from fpgaprune.keras_file import trained_bits

# A first trial trains for this part of the epochs of the best network.
_SHORT = 4
# Share of the time after which trials train for all epochs; with a study, and the share that the descent may take then.
_ROUGH, _ROUGH_BEFORE_STUDY, _DESCENT_BEFORE_STUDY = 0.6, 0.3, 0.5


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
        points: key of a trial to the network that it judged.
    """

    route: Route
    config: Flow
    out: Path
    limits: Limits
    told: Progress
    options: SearchOptions
    heard: Heard
    notes: list[str] = field(default_factory=list)
    points: dict[str, FitPoint] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    _rates: dict[str, float] = field(default_factory=dict)

    def run(self) -> Fit:
        """The answer, which `out` holds too.

        Raises:
            RunError: `out` holds something else or is in use, or no network was found.
            ToolError: a package or a scheduler for workers is missing.
        """
        self._started = time.monotonic()
        require_own(self.out)
        if self.options.searches:
            require_optuna()
        config, data = self.config, load_data(self.config[DataConfig].source)
        start_session(config.seed)
        model = starting_model(config[TrainConfig].model, data)
        document = self._document(model)
        with used_alone(self.out), closing(self._place()) as place:
            return self._run(place, document, data, model)

    def _run(self, place: Workplace, document: dict[str, Any], data: Dataset, model: Any) -> Fit:
        config = self.config
        source = self.out / SAMPLES
        if not source.is_file():
            write_held_back(source, data, config.seed)
        trials = Trials(self.route, document, self.out / TRIALS, source, self.limits, place)
        foresight = Foresight(self.route, document, load_data(str(source)), model, self.limits)
        start, names = self._knobs(document, foresight)
        self._descend(trials, foresight, start, names)
        if self.options.searches:
            self._study(trials, foresight, document, names)
        if not self.points:
            reason = next(iter(trials.impossible.values()), "no trial came to its end")
            raise RunError(f"the search found no network: {reason}")
        epochs = config[FinetuneConfig].epochs
        best = Finalists(trials, self._ranking, epochs, self.out, self.told, self.notes).best(self.points.values())
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
            tuple(self.points.values()),
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

    def _document(self, model: Any) -> dict[str, Any]:
        """The flow as plain data; the network rounds while it is fine-tuned, if it can."""
        document: dict[str, Any] = self.config.model_dump(mode="json", exclude_unset=True)
        path = self.config[TrainConfig].model
        if path is None:
            raise ConfigError("fit starts from a trained network: name it with train.model, or as MODEL.keras")
        library = trained_bits(path)
        if library is not None:
            raise ConfigError(
                f"{path} has weights whose bits {library} trained, and fit would train them anew; "
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

    @property
    def _ranking(self) -> Ranking:
        return Ranking(self.limits, self.config[TargetConfig].clock_ns)

    @property
    def _epochs(self) -> tuple[int, int]:
        """Of a short training and of a whole one."""
        epochs = self.config[FinetuneConfig].epochs
        return max(epochs // _SHORT, min(epochs, 2)), epochs

    def _at(self, share: float) -> float:
        """The moment at which `share` of the time is over."""
        return self._started + share * 60.0 * self.limits.minutes

    def _place(self) -> Workplace:
        options = self.options
        if options.workers is None and options.scheduler is None:
            return Here(Steps(self.told))
        return Workers(options.workers or 1, options.scheduler, options.memory_gib)

    def _knobs(self, document: dict[str, Any], foresight: Foresight) -> tuple[Knobs, list[str]]:
        """Where the descent starts, and the names of the knobs that may be turned."""
        granularity = document.get("select", {}).get("granularity") or foresight.granularity()
        rounds = document["finetune"].get("quantised", False)
        # Cheap values are held in a network that rounds while it trains.
        return Knobs(granularity), [name for name in self.route.knobs if rounds or name != "hold"]

    def _descend(self, trials: Trials, foresight: Foresight, start: Knobs, names: list[str]) -> None:
        """Points of short trials, then of whole ones from the best of these on."""
        shares = (_ROUGH_BEFORE_STUDY, _DESCENT_BEFORE_STUDY) if self.options.searches else (_ROUGH, 1.0)
        short, epochs = self._epochs
        for passes, share in ((short, shares[0]), (epochs, shares[1])):
            clock = Clock(self._at(share))
            descent = Descent(
                names,
                foresight,
                self._judge(trials, passes, clock),
                clock.has_time,
                self._ranking.room,
                partial(self._begin, trials, foresight, passes),
            )
            found = list(descent.run(start))
            self.notes += descent.notes
            self._rates.update(descent.rates)
            kept = [pair for pair in found if pair[1].loses_little]
            if passes == epochs or not kept or time.monotonic() > self._at(shares[1]):
                break
            start = min(kept, key=lambda pair: self._ranking.rank(pair[1]))[0]

    def _begin(self, trials: Trials, foresight: Foresight, epochs: int, knobs: Sequence[Knobs]) -> None:
        """Workers begin what the descent may ask for next; this process waits until it is asked."""
        if isinstance(trials.place, Workers):
            for one in knobs[: max(trials.place.room(), 0)]:
                trials.place.begin(trials.job(one, foresight.fastest(one), epochs))

    def _judge(self, trials: Trials, epochs: int, clock: Clock) -> Judge:
        def judge(knobs: Knobs, laid: Laid) -> FitPoint | None:
            job = trials.job(knobs, laid, epochs)
            self.told.stage(self._name(job), "running")
            began = time.monotonic()
            point = trials.judge(job)
            clock.took(time.monotonic() - began)
            self._tell(job, point or trials.impossible[job.knobs])
            return point

        return judge

    def _study(self, trials: Trials, foresight: Foresight, document: dict[str, Any], names: list[str]) -> None:
        """Points of what a study suggests around the descent's."""
        settings = document.get("select", {})
        bits = [knobs.weight_bits for knobs in map(Knobs.of, (point.settings for point in self.points.values()))]
        space = Space(
            [settings["granularity"]] if "granularity" in settings else list(GRANULARITIES),
            max([*bits, WIDTHS[0]]),
            "hold" in names,
        )
        asked = {**asdict(self.limits), "minutes": 0, "front": self.options.front, "space": asdict(space)}
        content = json.dumps([document, self.route.name, asked], sort_keys=True)
        study = Study(
            self.out / JOURNAL,
            hashlib.sha256(content.encode()).hexdigest()[:12],
            space,
            self._ranking,
            self.options.front,
            self.config.seed,
        )
        clock = Clock(self._at(1.0))

        def goes_on(suggested: int) -> bool:
            return (self.options.trials is None or suggested < self.options.trials) and clock.has_time()

        def heard(job: Job, outcome: Outcome, running: int, seconds: float) -> None:
            clock.took(seconds)
            self._tell(job, outcome, running, seconds)
            self.told.stage("search", "running")

        self.told.stage("search", "running")
        coordinator = Coordinator(
            study,
            trials.place,
            foresight,
            trials.job,
            Rungs(self._ranking, self.options.front),
            self._epochs,
            trials.recall,
            goes_on,
            heard,
            self.points,
        )
        coordinator.run()
        self.told.stage("search", "done", f"{study.asked} networks were suggested")
        if coordinator.is_exhausted:
            self.notes.append("the search ended early: what it suggested was known, or hopeless by its price")

    def _name(self, job: Job) -> str:
        return f"trial {self._numbers.setdefault(job.key, len(self._numbers) + 1)}"

    def _tell(self, job: Job, outcome: Outcome, running: int = 0, seconds: float | None = None) -> None:
        """Tells what a trial brought, which is the best so far, and how much time is left."""
        if not isinstance(outcome, str):
            self.points[job.key] = outcome
        key = min(self.points, key=lambda key: self._ranking.rank(self.points[key]), default=None)
        name = self._name(job)
        standing = Standing(
            self._numbers[job.key],
            f"{job.knobs}: {outcome}" if isinstance(outcome, str) else outcome.in_words(),
            running,
            None if key is None else self._numbers.setdefault(key, len(self._numbers) + 1),
            None if key is None else self.points[key],
            max(self._at(1.0) - time.monotonic(), 0.0),
        )
        self.told.stage(name, "skipped" if isinstance(outcome, str) else "done", standing.in_words(), seconds)
        self.heard(standing)
