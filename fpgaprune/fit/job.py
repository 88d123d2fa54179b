"""`Job`: one trial as plain data, which any process can do, and which is never done twice."""

from __future__ import annotations

import fcntl
import hashlib
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from fpgaprune.design import Design, ReuseWarning
from fpgaprune.documents import read_json
from fpgaprune.errors import EstimateError, HlsError, MaskError, RemovalError, RunError
from fpgaprune.files import make_folder, storage, write_bytes
from fpgaprune.fit.answer import HELD_BACK, FitPoint
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.ranking import Ranking
from fpgaprune.fit.route import find_route
from fpgaprune.flow import Progress, TargetConfig, parse_config, run_flow
from fpgaprune.hls import StrategyWarning
from fpgaprune.measure import ESTIMATED, from_plain, occupancy_of, to_plain

# A network that cannot have these knobs; anything else ends the search.
_IMPOSSIBLE = (MaskError, HlsError, EstimateError, RemovalError)
_REASON = "impossible"

# The point of a trial, or why there is no such network.
Outcome = FitPoint | str


class Job(Struct, frozen=True):
    """One trial: a network to train and to judge.

    Attributes:
        route: name of the way to hardware.
        target: the section of the search's flow that names the part.
        clock_ns: clock period in ns.
        limits: limit to value.
        document: the flow file of the trial, as plain data.
        knobs: what is locked and with how many bits it computes, in words.
        asked: sections of a flow file to the keys that make this network in this layout.
        judged_on: the samples that judge it: `held-back` or `held-out`.
        folder: holds a folder and a file for each trial of the search.
        content: digest of what the search reads: the trained network, the samples, the code.
    """

    route: str
    target: dict[str, Any]
    clock_ns: float
    limits: dict[str, float | str | None]
    document: dict[str, Any]
    knobs: str
    asked: dict[str, Any]
    judged_on: str
    folder: str
    content: str

    @property
    def key(self) -> str:
        """Twelve hex digits over the flow file and what it reads: equal trials have equal keys.

        A network that is trained again under its old name is another one.
        """
        asked = json.dumps([self.content, self.document], sort_keys=True)
        return hashlib.sha256(asked.encode()).hexdigest()[:12]

    @property
    def wanted(self) -> Limits:
        """What must hold."""
        return Limits(**self.limits)  # type: ignore[arg-type]

    @property
    def run(self) -> Path:
        """The folder of its run."""
        return Path(self.folder) / self.key

    @property
    def kept(self) -> Path:
        """The file that holds its outcome once it has ended."""
        return self.run.with_suffix(".json")


# Does one trial; the progress learns of its steps.
Doing = Callable[[Job, Progress], FitPoint]


def kept_outcome(job: Job) -> Outcome | None:
    """The outcome of a trial that has ended; None if it has not.

    Raises:
        RunError: its file is damaged.
    """
    return read_outcome(job.kept, job.wanted, job.clock_ns)


def read_outcome(path: Path, limits: Limits, clock_ns: float) -> Outcome | None:
    """The outcome in the file at `path`; None if there is no file. What it says of limits is true of `limits`.

    Raises:
        RunError: the file is damaged.
    """
    try:
        content = read_json(path, RunError, "a trial of this search", "delete it; the trial is then made anew")
    except FileNotFoundError:
        return None
    if isinstance(content, dict) and isinstance(content.get(_REASON), str):
        return str(content[_REASON])
    return _judged(from_plain(content, FitPoint, str(path)), limits, clock_ns)


def outcome_of(job: Job, progress: Progress, do: Doing) -> Outcome:
    """The outcome of `job`, which `do` has done unless it had ended before; its file holds it.

    A second process that is given the same trial waits for the first one.
    """
    found = kept_outcome(job)
    if found is not None:
        return found
    with _alone(job):
        found = kept_outcome(job)
        if found is None:
            try:
                found = _judged(do(job, progress), job.wanted, job.clock_ns)
                content = to_plain(found)
            except _IMPOSSIBLE as error:
                found = str(error)
                if job.judged_on != HELD_BACK:
                    # A whole run also uses tools, and the next time they may be there.
                    return found
                content = {_REASON: found}
            write_bytes(job.kept, (json.dumps(content, indent=1) + "\n").encode())
    return found


def flow_point(job: Job, progress: Progress) -> FitPoint:
    """The point of the flow of `job`, whose run is in its folder; it says nothing of limits yet.

    Raises:
        EstimateError: nothing says whether it fits.
    """
    config = parse_config(job.document, "fit")
    route = find_route(job.route, parse_config({"target": job.target}, "fit")[TargetConfig].target())
    with warnings.catch_warnings():
        # The reports of the runs say this, and a search makes dozens.
        warnings.simplefilter("ignore", ReuseWarning)
        warnings.simplefilter("ignore", StrategyWarning)
        done = run_flow(config, job.run, progress)
    metric = done.read_json("report.json")["metric"]
    hardware = metric["hardware"]
    design = Design.load(done.file("design.json"))
    laid = route.own(design, config)
    measured = route.measured(done, config)
    target = config[TargetConfig].target()
    taken = laid.occupancy if measured is None else occupancy_of(measured, target.part)
    nearest = taken.require_nearest("high")
    return FitPoint(
        knobs=job.knobs,
        settings=job.asked,
        metric=metric["name"],
        value=metric["after"] if hardware is None else hardware,
        lost=metric["lost"],
        lost_error=metric["lost_error"] or 0.0,
        judged_on=job.judged_on,
        samples=metric["samples"],
        used=laid.counts(),
        resource=nearest.resource,
        measured=None if measured is None else {name: measured[name] for name in ESTIMATED},
        share=nearest.share("high"),
        latency_cycles=laid.latency_cycles,
        interval_cycles=laid.interval_cycles,
        loses_little=False,
        fits=False,
        in_time=False,
        epochs=job.document["finetune"]["epochs"],
        folder=str(job.run),
        size=taken.size("high"),
        priced=laid.share,
    )


def _judged(point: FitPoint, limits: Limits, clock_ns: float) -> FitPoint:
    """`point` with what it says about limits: those of this search, whatever an earlier one asked for."""
    return structs.replace(
        point,
        loses_little=limits.room(point.lost, point.lost_error, point.judged_on == HELD_BACK) >= 0,
        fits=point.share <= limits.share,
        in_time=Ranking(limits, clock_ns).keeps_time(point),
    )


@contextmanager
def _alone(job: Job) -> Iterator[None]:
    """Within the block no other process does this trial; the lock ends with the process in any case."""
    path = make_folder(job.folder) / f".{job.key}.lock"
    with storage(path), open(path, "a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
