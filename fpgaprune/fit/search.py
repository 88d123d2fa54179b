"""`FitSearch`: the whole search: trials by descent and around its end, then the best network trained to the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpgaprune.design import Design, Input
from fpgaprune.errors import NETWORK_ERRORS, RunError
from fpgaprune.fabric import slowness
from fpgaprune.files import write_bytes
from fpgaprune.fit.budget import (
    Training,
    expected_seconds,
    is_short,
    most_samples,
    run_seconds,
    seconds_of_training,
)
from fpgaprune.fit.dense_weights import with_dense_weights
from fpgaprune.fit.document import search_document
from fpgaprune.fit.estimates import Estimates
from fpgaprune.fit.finalists import Finalists
from fpgaprune.fit.folder import (
    BEST,
    FRONT,
    SPLIT,
    TRIALS,
    locked_folder,
    require_samples,
    require_search_folder,
    write_split,
)
from fpgaprune.fit.knobs import FILTER, Knobs, recipe_suits
from fpgaprune.fit.limits import Limits, Ranking
from fpgaprune.fit.log import OnTrial, SearchLog, few_networks, few_samples, known_samples
from fpgaprune.fit.page import write_page
from fpgaprune.fit.phases import Phases
from fpgaprune.fit.result import Fit, FitPoint
from fpgaprune.fit.route import (
    Route,
    VerilogRoute,
    count_kept_weights,
    find_route,
    smallest_part,
    verilog_instead,
)
from fpgaprune.fit.trial import Candidate, Executor, TrialRunner
from fpgaprune.fit.workers import WorkerOptions
from fpgaprune.flow import (
    Dataset,
    Flow,
    Origin,
    Progress,
    RunDirectory,
    TargetConfig,
    TrainConfig,
    check_flow,
    check_task,
    count_of,
    flow_key,
    instead_of_project,
    known_better,
    load_data,
    parse_config,
    start_session,
    starting_model,
    unlike_columns,
    with_route,
)
from fpgaprune.layout import joined
from fpgaprune.measure import LABELS
from fpgaprune.values import loss_text

if TYPE_CHECKING:
    import keras

# A network that is trained without the samples that it had seen loses this share of what it knew them better than
# held-out ones: 0.10, 0.18 and 0.30 in three networks (docs/measurements/fit.md, "In two minutes").
_FORGOTTEN = 0.25
# The largest share of the time of a search that is kept for the tool that counts its answer.
_COUNTED = 0.2
# The answer is trimmed if it has at most so many weights, for larger ones gain little, and if a search is as long as
# this; so many seconds are kept for it.
_MOST_TRIMMED, _TRIM_MINUTES, _TRIM_S = 400, 5.0, 40.0


@dataclass
class FitSearch:
    """One search.

    Attributes:
        route: the route to hardware.
        config: the flow that the search starts from.
        out: folder of the answer.
        limits: what must hold.
        progress: learns of trials in words.
        options: where trials run.
        on_trial: learns of the state of the search as data.
        replace: whether the answer of a search of another network in `out` is lost.
        may_change_route: whether the route becomes our Verilog if the untouched network fits only so.
        notes: sentences on what stopped it.
    """

    route: Route
    config: Flow
    out: Path
    limits: Limits
    progress: Progress
    options: WorkerOptions
    on_trial: OnTrial
    replace: bool = False
    may_change_route: bool = False
    notes: list[str] = field(default_factory=list)

    def run(self) -> Fit:
        """Run the search; return its result, which is also written to `out`.

        Raises:
            RunError: `out` holds something else or is in use, or no network was found.
            ToolError: a package or a scheduler for workers is missing.
        """
        document, data, model = self.checked
        log = SearchLog(Ranking(self.limits, self.config[TargetConfig].clock_ns), self.progress, self.on_trial)
        with locked_folder(self.out), closing(self.options.executor(self.progress)) as executor:
            return self._run(executor, log, document, data, model)

    @cached_property
    def checked(self) -> tuple[dict[str, Any], Dataset, keras.Model]:
        """The flow of every trial, the data and the network, which fit each other and the folder; nothing is written.

        Raises:
            ConfigError, DataError: they do not.
            RunError: the folder holds something else, or the answer of a search of another network.
        """
        require_search_folder(self.out)
        data = check_flow(self.config, self.progress)
        require_samples(data)
        if not self.replace and (best := self.out / BEST).is_dir():
            Origin.of(self.config, data).require_same(RunDirectory(best))
        start_session(self.config.seed)
        model = starting_model(self.config[TrainConfig].model, data)
        check_task(self.config, data, model)
        return search_document(self.config, model, self.notes), data, model

    def _run(
        self, executor: Executor, log: SearchLog, document: dict[str, Any], data: Dataset, model: keras.Model
    ) -> Fit:
        included = "with the final run and its open synthesis; a vendor's tool takes extra time"
        self.progress.stage("time", "said", f"about {self.limits.minutes:g} min, {included}")
        source = self.out / SPLIT
        write_split(source, data, self.config.seed, most_samples(model, self.limits.minutes))
        split = load_data(str(source))
        more = count_of(data.x_train) / count_of(split.x_train)
        content = flow_key(self.config, data)
        for sentence in unlike_columns(model, data.x_train):
            log.warn_of_samples(sentence)
            self.notes.append(sentence)
        document, estimates = self._with_route(document, split, model)
        trials = TrialRunner(self.route, document, self.out / TRIALS, source, self.limits, executor, content)
        start, names = self._start(document)
        if (design := estimates.design(start)) is not None:
            # A wrong path of a tool is an error now, not when the search is over.
            self.route.counting(design, document)
            if not document.get("hls", {}).get("layers"):
                start = replace(start, signed=_signed_inputs(design))
        phases = Phases(trials, estimates, log, names, self.notes)
        self._train(phases, start, split, model, data)
        trials.impossible.update(estimates.impossible)
        points = tuple(log.points.values())
        if not points:
            reason = "; ".join(trials.left_out()) or "no trial came to its end"
            raise RunError(f"the search found no network: {reason}")
        first = phases.unfitting(start)
        fewest = phases.late_epochs(more, first or Candidate.tried(min(points, key=log.ranking.rank)))
        if (overrun := log.overrun(log.times.seconds(fewest, more))) is not None:
            log.progress.stage(BEST, "warning", overrun)
        finalists = Finalists(
            trials,
            log.ranking,
            partial(phases.final_epochs, more),
            self.out,
            self.progress,
            phases.untried,
            self.notes,
            phases.has_time_for_two,
            first,
            partial(phases.has_time_to_count, more),
            partial(self._trims, model),
            partial(phases.late_epochs, more),
        )
        best = finalists.best(points)
        if warning := few_samples(best, self.limits):
            self.notes.append(warning)
        if warning := few_networks(len(points), self.limits):
            self.notes.append(warning)
        if not best.fits:
            if instead := self._our_verilog(best.design(), "the nearest network"):
                self.notes.append(f"{instead}; try --route {VerilogRoute.name}")
            self.notes.append(self._larger_part(best))
        self.notes += trials.left_out()
        target = self.config[TargetConfig].target()
        found = Fit(
            self.config.name,
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
        write_page(found, self.out)
        write_bytes(self.out / FRONT, (json.dumps(found.to_json(), indent=1) + "\n").encode())
        return found

    def _with_route(
        self, document: dict[str, Any], split: Dataset, model: keras.Model
    ) -> tuple[dict[str, Any], Estimates]:
        """Return the flow of every trial and its estimates; the route is our Verilog from here on if it has to be."""
        asked = self._with_dense_weights(document, split, model)
        estimates = Estimates(self.route, asked, split, model, self.limits)
        start, _ = self._start(asked)
        try:
            design = estimates.design(start)
        except NETWORK_ERRORS as error:
            if self.route.name == VerilogRoute.name or not self.may_change_route:
                raise
            try:
                found = self._by_verilog(document, split, model)
            except NETWORK_ERRORS:
                raise error from None
            self.progress.stage("route", "said", instead_of_project(str(error)))
            return found
        if design is None or self.route.name == VerilogRoute.name:
            return asked, estimates
        if estimates.best_layout(start).share <= self.limits.share:
            return asked, estimates
        sentence = self._our_verilog(design, "the untouched network")
        if sentence is None:
            return asked, estimates
        if not self.may_change_route:
            self.progress.stage("route", "warning", f"{sentence}; try --route {VerilogRoute.name}")
            return asked, estimates
        other = f"as an hls4ml project it does not, and --route {self.route.name} prunes it until it does"
        self.progress.stage("route", "said", f"{sentence}; {other}")
        return self._by_verilog(document, split, model)

    def _by_verilog(
        self, document: dict[str, Any], split: Dataset, model: keras.Model
    ) -> tuple[dict[str, Any], Estimates]:
        """Take our Verilog from here on; return as `_with_route`."""
        self.route = find_route(VerilogRoute.name, self.config[TargetConfig].target(), self.limits.share)
        self.config = with_route(self.config, self.route.name)
        return self._with_route({**document, "target": {**document["target"], "route": self.route.name}}, split, model)

    def _with_dense_weights(self, document: dict[str, Any], split: Dataset, model: keras.Model) -> dict[str, Any]:
        """Return the flow of every trial; say so if zeros are chosen in Dense layers too, which pays in our Verilog."""
        if self.route.name != VerilogRoute.name:
            return document
        found = with_dense_weights(
            document, model, lambda asked: Estimates(self.route, asked, split, model, self.limits)
        )
        if found is not document:
            said = "zeros are chosen in Dense layers too: behind few positions, each of their weights is an adder"
            self.progress.stage("select", "said", said)
        return found

    def _train(self, phases: Phases, start: Knobs, split: Dataset, model: keras.Model, data: Dataset) -> None:
        """Fill the log of `phases` with trials: descent first, then neighbours of the best network.

        A trial has the samples `split`, a final run all `data`. If the trained network has seen the validation samples,
        a first trial measures what it gains from that, unless the search is short.
        """
        more, seen = count_of(data.x_train) / count_of(split.x_train), data.x_valid is None
        begun: tuple[Knobs, FitPoint | None] = start, None
        log, seconds = phases.log, seconds_of_training(self.limits.minutes)
        usual = Training.from_flow(self.config, split, model, seconds)
        faster = Training.at_higher_rate(self.config, split, model, seconds)
        ways: Sequence[Training] = [usual] if faster is None else [faster, usual]

        def counting() -> float:
            best = min(log.points.values(), key=log.ranking.rank, default=None)
            if best is None:
                return 0.0
            # The first networks are large, and the answer is not.
            most = _COUNTED * 60 * self.limits.minutes
            return min(log.times.counting_seconds(self.route.counting_seconds(best)), most)

        log.times.expected = expected_seconds(model, split, ways[0].batch_size)
        short = log.times.expected * ways[0].short
        hurries = is_short(self.limits.minutes, short, more * short)

        trimming = slowness() * _TRIM_S if self._may_trim(model) else 0.0

        def final() -> tuple[float, float]:
            training = phases.training
            most, fewest = training.long, training.short if hurries else training.whole
            counted = counting() + trimming
            return counted + log.times.seconds(most, more), counted + log.times.seconds(fewest, more)

        log.counting, log.final = counting, final
        slow = slowness()
        log.warn_if_short(slow * run_seconds(short, more * short))
        if hurries:
            if seen:
                self._allow_forgetting(phases, split, data, model)
            # In few epochs a higher rate only loses the network.
            phases.use(usual if ways[0].is_cut else ways[0])
            # Half of the epochs again hold its weights.
            recipe = 1.5 * log.times.expected * phases.training.whole
            if recipe_suits(model) and slow * run_seconds(recipe, more * short) <= log.seconds_left:
                begun = phases.from_recipe(start, None, is_short=True)
            phases.descend(*begun, is_short=True)
            phases.search_neighbours()
            return
        # In few epochs a higher rate only loses the network, so a large one first loses filters at its own rate.
        narrows = ways[0].is_cut and "filters" in phases.names
        if faster is not None and recipe_suits(model) and not (seen or narrows):
            # How a network that only rounds is best trained says little of the recipe.
            phases.use(faster)
            begun = phases.from_recipe(start, None)
        if begun[1] is None:
            first = phases.first(start, ways[-1:] if narrows else ways, has_seen_samples=seen)
            if narrows:
                start, first, ways = phases.narrow(start, first, ways, split)
                phases.first(start, ways, has_seen_samples=False, parent=first)
            begun = phases.from_recipe(start, first)
        if not narrows or begun[0] == start:
            # Of a large network that is held at powers of two, short trainings say nothing.
            phases.descend(*begun)
        phases.search_neighbours()

    def _allow_forgetting(self, phases: Phases, split: Dataset, data: Dataset, model: keras.Model) -> None:
        """Let trials lose what the trained network gains from having seen the samples that judge them, about."""
        gained = known_better(self.config, model, split, data)
        if gained <= 0:
            return
        limits = replace(self.limits, retraining_loss=_FORGOTTEN * gained)
        phases.trials.limits = limits
        phases.log.change_limits(limits)
        self.notes.append(known_samples(limits))

    def _trims(self, model: keras.Model, point: FitPoint) -> str | None:
        """Return the loss that trimming may add to `point`; None if it does not pay."""
        if not self._may_trim(model) or count_kept_weights(point.design()) > _MOST_TRIMMED:
            return None
        return loss_text(max(self.limits.max_loss_fraction - point.lost, 0.0))

    def _may_trim(self, model: keras.Model) -> bool:
        """Tell whether an answer may be trimmed: Dense layers in a row, our Verilog, and a search that is not short."""
        if self.route.name != VerilogRoute.name or self.limits.minutes < _TRIM_MINUTES:
            return False
        from fpgaprune.trim import untrimmable

        return not any(untrimmable(model))

    def _our_verilog(self, design: Design, which: str) -> str | None:
        """Say that `design`, the network `which`, fits as our Verilog; None if it does not, or that is the route."""
        layout = verilog_instead(self.route, design, self.config[TargetConfig].target(), self.limits)
        if layout is None:
            return None
        return (
            f"as our own Verilog {which} fits, by its estimate: {layout.share:.0%} of the "
            f"{LABELS[layout.resource]}s, {layout.latency_cycles:,} cycles"
        )

    def _larger_part(self, best: FitPoint) -> str:
        """Write the sentence that names the part which would take the nearest network."""
        config = parse_config(joined(self.config.model_dump(mode="json", exclude_unset=True), best.settings), "fit")
        part = smallest_part(self.route, best.design(), config, self.limits.share)
        if part is None:
            return "no listed part of the same family takes the nearest network"
        return f"the smallest listed part of the same family that takes the nearest network is {part.name}"

    def _start(self, document: dict[str, Any]) -> tuple[Knobs, list[str]]:
        """Return where the descent starts, and the names of the knobs that may move."""
        select = document.get("select", {})
        granularity, fixed = select.get("granularity", "weight"), set()
        if granularity == FILTER or select.get("filters"):
            fixed.add("filters")
        if not document["finetune"].get("quantised", False):
            # Powers of two are held in a network that rounds while it trains.
            fixed.add("hold")
        return Knobs(granularity), [name for name in self.route.knobs if name not in fixed]


def _signed_inputs(design: Design) -> frozenset[str]:
    """Return the inputs of `design` whose samples have a sign."""
    inputs = (layer for layer in design.layers if isinstance(layer.operation, Input))
    return frozenset(layer.name for layer in inputs if layer.types["result"].signed)
