"""`FitSearch`: the descent, a study around it if asked for, then the best network whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fpgaprune.errors import RunError
from fpgaprune.files import write_bytes
from fpgaprune.fit.answer import Fit, FitPoint
from fpgaprune.fit.document import search_document
from fpgaprune.fit.doubts import few_samples, unknown_samples
from fpgaprune.fit.ending import run_seconds
from fpgaprune.fit.finalists import BEST, Finalists
from fpgaprune.fit.foresight import Foresight
from fpgaprune.fit.held_back import write_held_back
from fpgaprune.fit.knobs import FILTER, Knobs
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.log import SearchLog
from fpgaprune.fit.options import SearchOptions
from fpgaprune.fit.own_folder import FRONT, SAMPLES, TRIALS, require_own, used_alone
from fpgaprune.fit.page import write_page
from fpgaprune.fit.phases import Phases
from fpgaprune.fit.ranking import Ranking
from fpgaprune.fit.route import Route, VerilogRoute, smallest_part, verilog_instead
from fpgaprune.fit.standing import Heard
from fpgaprune.fit.steps import Steps
from fpgaprune.fit.study import require_optuna
from fpgaprune.fit.suggested import try_suggested
from fpgaprune.fit.training import Training, expected_seconds, most_samples, seconds_of_training
from fpgaprune.fit.trial import Trials
from fpgaprune.fit.workers import Workers
from fpgaprune.fit.workplace import Here, Workplace
from fpgaprune.flow import (
    Dataset,
    Flow,
    Origin,
    Progress,
    RunDirectory,
    TargetConfig,
    TrainConfig,
    check_flow,
    count_of,
    flow_key,
    load_data,
    parse_config,
    start_session,
    starting_model,
)
from fpgaprune.layout import joined
from fpgaprune.measure import LABELS

# A trial that only tells what the trained network knows of the samples is made if so many times its time is left.
_SURELY = 1.5


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
        replace: whether the answer of a search of another network in `out` is lost.
        notes: sentences on what stopped it.
    """

    route: Route
    config: Flow
    out: Path
    limits: Limits
    told: Progress
    options: SearchOptions
    heard: Heard
    replace: bool = False
    notes: list[str] = field(default_factory=list)

    def run(self) -> Fit:
        """The answer, which `out` holds too.

        Raises:
            RunError: `out` holds something else or is in use, or no network was found.
            ToolError: a package or a scheduler for workers is missing.
        """
        log = SearchLog(Ranking(self.limits, self.config[TargetConfig].clock_ns), self.told, self.heard)
        require_own(self.out)
        if self.options.searches:
            require_optuna()
        config, data = self.config, check_flow(self.config, self.told)
        if not self.replace and (best := self.out / BEST).is_dir():
            Origin.of(config, data).require_same(RunDirectory(best))
        start_session(config.seed)
        model = starting_model(config[TrainConfig].model, data)
        document = search_document(config, model, self.notes)
        with used_alone(self.out), closing(self._place()) as place:
            return self._run(place, log, document, data, model)

    def _run(self, place: Workplace, log: SearchLog, document: dict[str, Any], data: Dataset, model: Any) -> Fit:
        config = self.config
        source = self.out / SAMPLES
        write_held_back(source, data, config.seed, most_samples(model))
        searched = load_data(str(source))
        content = flow_key(config, data)
        trials = Trials(self.route, document, self.out / TRIALS, source, self.limits, place, content)
        foresight = Foresight(self.route, document, searched, model, self.limits)
        start, names = self._knobs(document)
        if (design := foresight.design(start)) is not None:
            # A wrong path of a tool is an error now, not when the search is over.
            self.route.counting(design, document)
        seconds = seconds_of_training(self.limits.minutes)
        bolder = Training.at_a_higher_rate(config, searched, model, seconds)
        usual = Training.asked(config, searched, model, seconds)
        ways: Sequence[Training] = [usual] if bolder is None else [bolder, usual]
        phases = Phases(trials, foresight, log, names, self.notes)
        more = count_of(data.x_train) / count_of(searched.x_train)

        def final() -> tuple[float, float]:
            most, fewest = phases.training.long, phases.training.whole
            return log.times.seconds(most, more), log.times.seconds(fewest, more)

        log.final = final
        trial, whole = (expected_seconds(model, searched, epochs) for epochs in (ways[0].short, ways[0].whole))
        log.times.expected = expected_seconds(model, searched, 1)
        log.warn_if_short(run_seconds(trial, more * whole))
        remembers = data.x_valid is None
        if remembers and _SURELY * run_seconds(whole, trial, more * whole) > log.seconds_left:
            # The first trial is then a network that may be the answer.
            remembers = False
            self.notes.append(unknown_samples())
        # In few epochs a higher rate only loses the network, so a large one is first made narrow at its own rate.
        narrows = ways[0].is_cut and "filters" in names
        first = phases.first(start, ways[-1:] if narrows else ways, remembers=remembers)
        if narrows:
            start, first, ways = phases.narrow(start, first, ways, searched)
            phases.first(start, ways, remembers=False, good=first)
        phases.descend(start, first, before_study=self.options.searches)
        if self.options.searches:
            self.notes += try_suggested(trials, foresight, log, self.options, names, phases.training, self.out)
        else:
            phases.look_around()
        points = tuple(log.points.values())
        if not points:
            reason = "; ".join(trials.left_out()) or "no trial came to its end"
            raise RunError(f"the search found no network: {reason}")
        if (late := log.beyond()) is not None:
            log.told.stage(BEST, "warning", late)
        epochs, milder = partial(phases.final_epochs, more), phases.milder
        best = Finalists(trials, log.ranking, epochs, self.out, self.told, milder, self.notes).best(points)
        if doubt := few_samples(best, self.limits):
            self.notes.append(doubt)
        if not best.fits:
            self.notes += [*self._our_verilog(best), self._larger_part(best)]
        self.notes += trials.left_out()
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
            phases.rates,
            self.route.counted_by,
        )
        write_page(answer, self.out)
        write_bytes(self.out / FRONT, (json.dumps(answer.to_json(), indent=1) + "\n").encode())
        return answer

    def _our_verilog(self, best: FitPoint) -> list[str]:
        """A sentence if the nearest network would fit as our Verilog."""
        laid = verilog_instead(self.route, best.design(), self.config[TargetConfig].target(), self.limits)
        if laid is None:
            return []
        return [
            f"as our own Verilog the nearest network fits, by its price: {laid.share:.0%} of the "
            f"{LABELS[laid.resource]}s, {laid.latency_cycles:,} cycles; try --route {VerilogRoute.name}"
        ]

    def _larger_part(self, best: FitPoint) -> str:
        """A sentence: the part that would take the nearest network."""
        config = parse_config(joined(self.config.model_dump(mode="json", exclude_unset=True), best.settings), "fit")
        part = smallest_part(self.route, best.design(), config, self.limits.share)
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
