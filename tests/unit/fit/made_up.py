"""A made-up network, whose loss and price are formulas, and its trials: workers can do them without TensorFlow."""

import json
import math
import os
import sys
import time
import uuid
from dataclasses import asdict
from functools import partial
from pathlib import Path

from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.coordinator import Coordinator
from fpgaprune.fit.job import Job, read_outcome
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.ranking import Ranking
from fpgaprune.fit.rungs import Rungs
from fpgaprune.fit.study import Space, Study
from fpgaprune.fit.workers import Workers
from fpgaprune.layout import DesignLayout
from fpgaprune.loss_limit import loss_text
from fpgaprune.measure import Figure, Resources

LIMIT = 0.01
TOLERANCE = (0.6, 3, 3)
LIMITS = Limits(max_loss=loss_text(LIMIT))
# Epochs of a short training and of a whole one.
EPOCHS = (2, 8)
# So many that a share is the share that was asked for.
_LUTS = 10**15


def laid_out(name, settings, share, latency, interval):
    """A layout that takes `share` of a part's LUTs, and nothing else."""
    luts = round(share * _LUTS)
    used = Resources(lut=Figure(luts, luts, luts))
    return DesignLayout("made up", {"lut": _LUTS}, used, latency, interval, name=name, settings=settings)


class Prices:
    """One layout, whose share falls with every knob; some sparsities are beyond reach."""

    def __init__(self, most=0.95):
        self.most = most

    def is_possible(self, knobs):
        return knobs.sparsity <= self.most

    def is_in_time(self, knobs):
        return True

    def is_slower(self, turned, knobs):
        return False

    def fastest(self, knobs):
        left = (1 - knobs.filters) ** 2 * (1 - knobs.sparsity)
        share = 3.0 * left * knobs.weight_bits / 8 * (0.5 + knobs.activation_bits / 16)
        return laid_out("only", {}, share, 100, 100)

    def at(self, rung, knobs):
        return self.fastest(knobs)

    def price(self, rung, knobs):
        return self.fastest(knobs).share

    def rung(self, start):
        return "only"


def made(knobs, laid, tolerance):
    """The loss of a network that bears zeros, narrow weights and narrow activations as `tolerance` says."""
    zeros, weights, activations = tolerance
    lost = (
        math.exp(12 * (knobs.sparsity - zeros)) * LIMIT
        + math.expm1(6 * knobs.filters) * LIMIT / 10
        + 2.0 ** (weights - knobs.weight_bits) * LIMIT / 2
        + 2.0 ** (activations - knobs.activation_bits) * LIMIT / 2
    )
    return FitPoint(
        str(knobs), knobs.settings(), "accuracy", 0.9, lost, 0.0, "held-back", 100, {}, None, "lut",
        laid.share, 100, 100, lost <= LIMIT, laid.share <= 0.8, True, 1, "",
    )  # fmt: skip


def point(job, progress):
    """A trial; `begun` has a line for each, and the point's value is another each time that a trial is done."""
    folder = Path(job.folder)
    with open(folder / "begun", "a") as file:
        file.write(f"{job.key} {job.kept.exists()}\n")
    with open(folder / "asked", "a") as file:
        file.write(json.dumps(job.document) + "\n")
    time.sleep(float(os.environ.get("MADE_UP_S", "0")))
    knobs = Knobs.of(job.asked)
    found = made(knobs, Prices().fastest(knobs), TOLERANCE)
    lost = found.lost * (1.5 if job.document["epochs"] < EPOCHS[1] else 1.0)
    return FitPoint(
        **{
            **{name: getattr(found, name) for name in found.__struct_fields__},
            "lost": lost,
            "settings": job.asked,
            "value": uuid.uuid4().int / 2**128,
            "epochs": job.document["epochs"],
            "folder": str(job.run),
        }
    )


def job(folder, knobs, laid, epochs, good=None):
    """A trial of a made-up network, whose outcome is kept in `folder`."""
    document = {"epochs": epochs, **knobs.settings(), "start": good and good.folder}
    return Job("hls", {}, 5.0, asdict(LIMITS), document, str(knobs), knobs.settings(), "held-back", str(folder), "")


def searched(folder, place, trials, front=False, rungs=None, prices=None, seed=0, known=None):
    """A coordinator that has done its search in `folder`; it knew the points `known`."""
    folder = Path(folder)
    (folder / "trials").mkdir(parents=True, exist_ok=True)
    ranking = Ranking(LIMITS, 5.0)
    study = Study(folder / "search.journal", "made up", Space("weight", True), ranking, front, seed)

    def recall(key):
        return read_outcome(folder / "trials" / f"{key}.json", LIMITS, 5.0)

    coordinator = Coordinator(
        study,
        place,
        prices or Prices(),
        partial(job, folder / "trials"),
        rungs or Rungs(ranking, front),
        EPOCHS,
        recall,
        lambda n: n < trials,
        points=dict(known or {}),
    )
    coordinator.run()
    return coordinator


class Everything:
    """No trial is hopeless, and none is trained twice as long."""

    def hopeless(self, laid, known):
        return None

    def promotes(self, point, shortly, known):
        return False


def main():
    """Searches in a folder, with so many workers or those of a scheduler, so many trials; the drill kills it."""
    folder, workers, trials = sys.argv[1], sys.argv[2], int(sys.argv[3])
    place = Workers(int(workers), None, None, point) if workers.isdigit() else Workers(1, workers, None, point)
    try:
        found = searched(folder, place, trials, rungs=Everything())
        Path(folder, "answer.json").write_text(json.dumps({key: one.value for key, one in found.points.items()}))
    finally:
        place.close()


def crash(job, progress):
    """A trial that ends its process, as one that takes too much memory does."""
    os._exit(9)
