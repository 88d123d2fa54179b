"""`try_suggested`: what a study suggests around the networks of a descent is tried."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.clock import Clock
from fpgaprune.fit.coordinator import Coordinator
from fpgaprune.fit.foresight import Foresight
from fpgaprune.fit.job import Job, Outcome
from fpgaprune.fit.knobs import WIDTHS, Knobs
from fpgaprune.fit.log import SearchLog
from fpgaprune.fit.options import SearchOptions
from fpgaprune.fit.own_folder import JOURNAL
from fpgaprune.fit.rungs import Rungs
from fpgaprune.fit.study import Space, Study
from fpgaprune.fit.training import Training
from fpgaprune.fit.trial import Trials
from fpgaprune.layout import DesignLayout

_SEARCH = "search"


def try_suggested(
    trials: Trials,
    foresight: Foresight,
    log: SearchLog,
    options: SearchOptions,
    names: Sequence[str],
    training: Training,
    out: Path,
) -> list[str]:
    """`log` has the networks that a study suggested, too; sentences on what ended it.

    Args:
        trials: trains networks.
        foresight: prices.
        log: the networks of the descent; it tells of each trial.
        options: how widely to search.
        names: the knobs that may be turned.
        training: how they are trained.
        out: folder of the search; it holds the journal.
    """
    document, ranking = trials.document, log.ranking
    space = _space(document.get("select", {}), log, names)
    asked = {**asdict(ranking.limits), "minutes": 0, "front": options.front, "space": asdict(space)}
    content = json.dumps([trials.content, document, trials.route.name, asked], sort_keys=True)
    name = hashlib.sha256(content.encode()).hexdigest()[:12]
    study = Study(out / JOURNAL, name, space, ranking, options.front, document.get("seed", 0))
    clock = Clock(log.at(1.0), expected=lambda _: log.times.seconds(training.short))

    def goes_on(suggested: int) -> bool:
        return (options.trials is None or suggested < options.trials) and clock.has_time()

    def heard(job: Job, outcome: Outcome, running: int, seconds: float) -> None:
        clock.took(seconds)
        log.end(job, outcome, running, seconds)
        log.told.stage(_SEARCH, "running")

    log.told.stage(_SEARCH, "running")

    def job(knobs: Knobs, laid: DesignLayout, epochs: int, good: FitPoint | None) -> Job:
        return trials.job(knobs, laid, epochs, training.starts_from(good, knobs, epochs))

    rungs, epochs = Rungs(ranking, options.front), (training.short, training.whole)
    coordinator = Coordinator(
        study, trials.place, foresight, job, rungs, epochs, trials.recall, goes_on, heard, log.points
    )
    coordinator.run()
    log.told.stage(_SEARCH, "done", f"{study.asked} networks were suggested")
    ended = "the search ended early: what it suggested was known, or hopeless by its price"
    return [ended] if coordinator.is_exhausted else []


def _space(select: Mapping[str, Any], log: SearchLog, names: Sequence[str]) -> Space:
    """The knobs that the study may turn: as wide as the descent began."""
    bits = [Knobs.of(point.settings).weight_bits for point in log.points.values()]
    return Space(select.get("granularity", "weight"), "filters" in names, max([*bits, WIDTHS[0]]), "hold" in names)
