"""`Trial`: one training of the search as plain data, which any process can run, and which is never run twice."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

from msgspec import Struct, structs

from fpgaprune.design import Design, ReuseWarning
from fpgaprune.errors import NETWORK_ERRORS, RunError
from fpgaprune.files import locked_file, make_folder, read_json, storage, write_bytes
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.limits import Limits, Ranking, Sized
from fpgaprune.fit.result import HELD_OUT, VALIDATION, FitPoint
from fpgaprune.fit.route import Route, find_route
from fpgaprune.flow import Progress, TargetConfig, parse_config, run_flow
from fpgaprune.hls import StrategyWarning
from fpgaprune.layout import DesignLayout, joined
from fpgaprune.measure import OF_VERILOG, from_plain, occupancy_of, to_plain

_REASON = "impossible"
# The network of a run before channels are removed: a later trial can start from it.
_TRAINED = "finetuned.keras"

# The point of a trial, or why there is no such network.
Outcome: TypeAlias = FitPoint | str


class Trial(Struct, frozen=True):
    """One trial: a network to train and to judge.

    Attributes:
        route: name of the route to hardware.
        target: the section of the search's flow that names the part.
        clock_ns: clock period in ns.
        limits: what must hold.
        document: the flow file of the trial, as plain data.
        knobs: what is locked, and with how many bits it computes.
        settings: sections of a flow file to the keys that make this network in this layout.
        judged_on: the samples that judge it: `validation` or `held-out`.
        folder: holds a folder and a file for each trial of the search.
        content: digest of what the search reads: the trained network, the samples, the code.
    """

    route: str
    target: dict[str, Any]
    clock_ns: float
    limits: Limits
    document: dict[str, Any]
    knobs: Knobs
    settings: dict[str, Any]
    judged_on: str
    folder: str
    content: str

    @property
    def key(self) -> str:
        """Twelve hex digits over the flow file and what it reads: equal trials have equal keys.

        A network that is trained again under its old name is another one.
        """
        text = json.dumps([self.content, self.document], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def run_folder(self) -> Path:
        """The folder of its run."""
        return Path(self.folder) / self.key

    @property
    def outcome_file(self) -> Path:
        """The file that holds its outcome once it has ended."""
        return self.run_folder.with_suffix(".json")


# Runs one trial; the progress learns of its stages.
RunTrial = Callable[[Trial, Progress], FitPoint]


def saved_outcome(trial: Trial) -> Outcome | None:
    """Read the outcome of a trial that has ended; None if it has not. Its verdicts are those of `trial.limits`.

    Raises:
        RunError: its file is damaged.
    """
    path = trial.outcome_file
    try:
        content = read_json(path, RunError, "a trial of this search", "delete it; the trial is then made anew")
    except FileNotFoundError:
        return None
    if isinstance(content, dict) and isinstance(content.get(_REASON), str):
        return str(content[_REASON])
    return _with_verdicts(from_plain(content, FitPoint, str(path)), trial)


def outcome_of(trial: Trial, progress: Progress, run: RunTrial) -> Outcome:
    """Return the outcome of `trial`; `run` runs it unless it has ended before. Its file holds the outcome.

    A second process that is given the same trial waits for the first one.
    """
    outcome = saved_outcome(trial)
    if outcome is not None:
        return outcome
    with _locked(trial):
        outcome = saved_outcome(trial)
        if outcome is None:
            try:
                outcome = _with_verdicts(run(trial, progress), trial)
                content = to_plain(outcome)
            except NETWORK_ERRORS as error:  # anything else ends the search
                outcome = str(error)
                if trial.judged_on != VALIDATION:
                    # A whole run also uses tools, and the next time they may be there.
                    return outcome
                content = {_REASON: outcome}
            write_bytes(trial.outcome_file, (json.dumps(content, indent=1) + "\n").encode())
    return outcome


def run_trial(trial: Trial, progress: Progress) -> FitPoint:
    """Run the flow of `trial` in its folder, and return its point, without verdicts on limits.

    Raises:
        EstimateError: nothing says whether it fits.
    """
    config = parse_config(trial.document, "fit")
    route = find_route(trial.route, parse_config({"target": trial.target}, "fit")[TargetConfig].target())
    with warnings.catch_warnings():
        # The reports of the runs say this, and a search makes dozens.
        warnings.simplefilter("ignore", ReuseWarning)
        warnings.simplefilter("ignore", StrategyWarning)
        run = run_flow(config, trial.run_folder, progress)
    metric = run.read_json("report.json")["metric"]
    hardware = metric["hardware"]
    layout = route.own(Design.load(run.file("design.json")), config)
    measured = route.measured(run, config)
    taken = layout.occupancy if measured is None else occupancy_of(measured, config[TargetConfig].target().part)
    nearest = taken.require_nearest("high")
    return FitPoint(
        knobs=trial.knobs,
        settings=trial.settings,
        metric=metric["name"],
        value=metric["after"] if hardware is None else hardware,
        lost=metric["lost"],
        lost_error=metric["lost_error"] or 0.0,
        judged_on=trial.judged_on,
        samples=metric["samples"],
        used=layout.counts(),
        resource=nearest.resource,
        measured=None if measured is None else {name: measured[name] for name in OF_VERILOG},
        share=nearest.share("high"),
        latency_cycles=layout.latency_cycles,
        interval_cycles=layout.interval_cycles,
        loses_little=False,
        fits=False,
        in_time=False,
        epochs=trial.document["finetune"]["epochs"],
        folder=str(trial.run_folder),
        size=taken.size("high"),
        priced=layout.share,
    )


def _with_verdicts(point: FitPoint, trial: Trial) -> FitPoint:
    """Return `point` with its verdicts by the limits of this search, whatever an earlier one had."""
    limits = trial.limits
    return structs.replace(
        point,
        loses_little=limits.margin(point.lost, point.lost_error, point.judged_on == VALIDATION) >= 0,
        fits=point.share <= limits.share,
        in_time=Ranking(limits, trial.clock_ns).keeps_time(point),
    )


@contextmanager
def _locked(trial: Trial) -> Iterator[None]:
    """Let no other process run this trial within the block; the lock ends with the process in any case."""
    with locked_file(make_folder(trial.folder) / f".{trial.key}.lock"):
        yield


class Executor(Protocol):
    """Run trials, some of them at the same time."""

    concurrent: ClassVar[bool]
    """Whether trials run while this process does something else."""

    def free(self) -> int:
        """Return how many more trials can be submitted at once."""

    def submit(self, trial: Trial) -> None:
        """Begin a trial; one that has ended before costs nothing."""

    def completed(self) -> list[tuple[Trial, Outcome]]:
        """Return the trials that have ended since the last call, with their outcomes; wait for one if none has.

        Empty if no trial is running.
        """

    def result(self, trial: Trial) -> Outcome:
        """Return the outcome of a trial, begun now if it was not submitted; `completed` leaves it out."""

    def close(self) -> None:
        """Let no trial run any more."""


@dataclass(frozen=True)
class Candidate:
    """A network that may be the answer, whether the search has trained it or not.

    Attributes:
        knobs: its knobs.
        settings: sections of a flow file to the keys that make it.
        design: what its hardware computes; of a network that was never trained, an approximation.
        parent: the point whose network its training starts from; None is the trained network.
        promise: why it was chosen although a limit may refute it, in words; empty if there is no such reason.
        point: its trial; None if the search has not trained it.
    """

    knobs: Knobs
    settings: Mapping[str, Any]
    design: Design
    parent: FitPoint | None
    promise: str = ""
    point: FitPoint | None = None

    @classmethod
    def tried(cls, point: FitPoint, promise: str = "") -> Candidate:
        """Make a candidate of the network of `point`, whose training goes on."""
        return cls(point.knobs, point.settings, point.design(), point, promise, point)

    @classmethod
    def untried(cls, knobs: Knobs, design: Design, parent: FitPoint | None) -> Candidate:
        """Make a candidate of a network that the search has not trained, and that is likely to lose little."""
        return cls(knobs, knobs.settings(), design, parent, "was likely to lose little, and broke a limit")


@dataclass
class TrialRunner:
    """Make the trials of one flow, and run them.

    Attributes:
        route: the route to hardware.
        document: the flow file, as plain data.
        folder: holds a folder for each trial.
        source: the `.npz` with the samples of the search.
        limits: what a point must keep.
        executor: runs trials.
        content: digest of what the search reads.
        training: sections of a flow file to keys that say how networks are trained, where `document` does not.
        impossible: knobs to why a network cannot have them.
    """

    route: Route
    document: Mapping[str, Any]
    folder: Path
    source: Path
    limits: Limits
    executor: Executor
    content: str
    training: Mapping[str, Any] = field(default_factory=dict)
    impossible: dict[Knobs, str] = field(default_factory=dict)
    _whole: dict[str, Trial] = field(default_factory=dict, init=False)
    """Folder of a run on all samples to its trial."""

    def __post_init__(self) -> None:
        self._target = dict(self.document.get("target", {}))
        self._clock_ns = float(parse_config({"target": self._target}, "fit")[TargetConfig].clock_ns)

    @property
    def has_own_loop(self) -> bool:
        """Whether a training loop of the flow trains the networks."""
        return "fit" in self.document.get("finetune", {})

    def trial(self, knobs: Knobs, layout: DesignLayout, epochs: int, parent: FitPoint | None = None) -> Trial:
        """Return the trial that trains `knobs` in `layout` for `epochs`, from the network of `parent`.

        Without a parent it starts from the trained network. Validation samples judge it.
        """
        settings = joined(knobs.settings(), layout.settings)
        searched = {**self.route.searched, "data": {"source": str(self.source)}}
        return self._trial(settings, epochs, searched, knobs, VALIDATION, parent)

    def whole(self, candidate: Candidate, layout: Sized, epochs: int, *, counts: bool = True) -> FitPoint | None:
        """Train a candidate in `layout` for `epochs` on all samples, judged on held-out ones; None if impossible.

        With 0 epochs it stays as its trial trained it.

        A tool counts what it takes if it `counts`, unless its estimate is far beyond the part: that takes minutes, and
        changes nothing.
        """
        counting = None if not counts or self.limits.is_far(layout.share) else self.counting(candidate.design)
        more = self.route.searched if counting is None else counting
        settings = joined(candidate.settings, layout.settings)
        trial = self._trial(settings, epochs, more, candidate.knobs, HELD_OUT, candidate.parent)
        point = self.evaluate(trial)
        if point is None:
            return None
        self._whole[point.folder] = trial
        return point if epochs or candidate.point is None else structs.replace(point, epochs=candidate.point.epochs)

    def trimmed(self, point: FitPoint, max_loss: str) -> FitPoint | None:
        """Return `point`, which was trained whole, with bits and weights trimmed that cost at most `max_loss`.

        Its run goes on in a copy. None if it cannot be trimmed, and `impossible` says why.
        """
        whole = self._whole[point.folder]
        trial = structs.replace(whole, document=joined(whole.document, {"trim": {"max_loss": max_loss}}))
        if not trial.run_folder.exists():
            with storage(trial.run_folder):
                shutil.copytree(point.folder, trial.run_folder, ignore=shutil.ignore_patterns(".lock"))
        return self.evaluate(trial)

    def counting(self, design: Design) -> dict[str, Any] | None:
        """Return what the flow of a whole run needs, so that a tool counts what `design` takes; None if none can."""
        return self.route.counting(design, self.document)

    def evaluate(self, trial: Trial) -> FitPoint | None:
        """Run a trial and return its point; None if there is no such network, and `impossible` says why."""
        return self.note(trial, self.executor.result(trial))

    def note(self, trial: Trial, outcome: Outcome) -> FitPoint | None:
        """Return the point of an outcome; None if there is no such network, and note why."""
        if isinstance(outcome, str):
            self.impossible[trial.knobs] = outcome
            return None
        return outcome

    def left_out(self) -> list[str]:
        """Return a sentence for each reason for which networks were left out: the first one, and how many more."""
        named: dict[str, list[Knobs]] = {}
        for knobs, reason in self.impossible.items():
            named.setdefault(reason, []).append(knobs)
        return [
            f"left out: {knobs[0]}{f', and {len(knobs) - 1} more' if len(knobs) > 1 else ''}: {reason}"
            for reason, knobs in named.items()
        ]

    def _trial(
        self,
        settings: dict[str, Any],
        epochs: int,
        more: Mapping[str, object],
        knobs: Knobs,
        judged_on: str,
        parent: FitPoint | None,
    ) -> Trial:
        finetune: dict[str, Any] = {"epochs": epochs}
        if parent is not None:
            finetune["start"] = str(Path(parent.folder) / _TRAINED)
        gradual = bool(settings["select"]["sparsity"]) and not self.has_own_loop
        if not gradual:
            finetune["schedule"] = {"kind": "one_shot"}
        elif not epochs:
            # One choice by the weights that the network of the trial has now: those that it locked are zero.
            finetune["schedule"] = {"kind": "rounds", "rounds": 1}
        elif "schedule" not in self.document.get("finetune", {}):
            locked = _locked_before(parent, settings["select"])
            finetune["schedule"] = {"kind": "polynomial_decay", "initial_sparsity": locked}
        more = joined({"verdict": {"max_loss": self.limits.max_loss}}, more)
        if held := settings.get("quantise"):
            before = epochs if epochs or parent is None else parent.epochs
            more["quantise"] = {"epochs": max(held["epochs"], before // 2)}
        document = joined(
            knobs.choice(self.document), self.training, self.document, settings, {"finetune": finetune}, more
        )
        return Trial(
            self.route.name,
            self._target,
            self._clock_ns,
            self.limits,
            document,
            knobs,
            settings,
            judged_on,
            str(self.folder),
            self.content,
        )


def _locked_before(parent: FitPoint | None, select: Mapping[str, Any]) -> float:
    """Return the sparsity of the parent in the units of `select`: its locks are there from the first step."""
    if parent is None or parent.knobs.granularity != select["granularity"]:
        return 0.0
    return min(parent.knobs.sparsity, float(select["sparsity"]))
