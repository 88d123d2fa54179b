"""A made-up network, whose loss and size are formulas, and its trials: workers can run them without TensorFlow."""

import itertools
import json
import math
import os
import sys
import time
import uuid
from pathlib import Path

from msgspec import structs

from fpgaprune.fit import SPARSITIES, WIDTHS, FitPoint, Knobs, Limits, Trial, Workers
from fpgaprune.layout import DesignLayout
from fpgaprune.measure import Figure, Resources
from fpgaprune.values import loss_text

LIMIT = 0.01
TOLERANCE = (0.6, 3, 3)
LIMITS = Limits(max_loss=loss_text(LIMIT))
# So many that a share is the share that was asked for.
_LUTS = 10**15


def laid_out(name, settings, share, latency, interval):
    """A layout that takes `share` of a part's LUTs, and nothing else."""
    luts = round(share * _LUTS)
    used = Resources(lut=Figure(luts, luts, luts))
    return DesignLayout("made up", {"lut": _LUTS}, used, latency, interval, name=name, settings=settings)


class MadeUp:
    """Estimates of one layout, whose share falls with every knob; some sparsities are beyond reach."""

    def __init__(self, most=0.95):
        self.most = most

    def is_possible(self, knobs):
        return knobs.sparsity <= self.most

    def is_in_time(self, knobs):
        return True

    def is_slower(self, moved, knobs):
        return False

    def fits_by_one_rule(self, knobs):
        return self.best_layout(knobs).share <= 0.8

    def best_layout(self, knobs):
        left = (1 - knobs.filters) ** 2 * (1 - knobs.sparsity)
        share = 3.0 * left * knobs.weight_bits / 8 * (0.5 + knobs.activation_bits / 16)
        return laid_out("only", {}, share, 100, 100)

    def size(self, layout, knobs):
        return self.best_layout(knobs).share

    def target_layout(self, start):
        return "only"


def made(knobs, layout, tolerance):
    """The point of a network that bears zeros, narrow weights and narrow activations as `tolerance` says."""
    zeros, weights, activations = tolerance
    lost = (
        math.exp(12 * (knobs.sparsity - zeros)) * LIMIT
        + math.expm1(6 * knobs.filters) * LIMIT / 10
        + 2.0 ** (weights - knobs.weight_bits) * LIMIT / 2
        + 2.0 ** (activations - knobs.activation_bits) * LIMIT / 2
    )
    return FitPoint(
        knobs, knobs.settings(), "accuracy", 0.9, lost, 0.0, "validation", 100, {}, None, "lut",
        layout.share, 100, 100, lost <= LIMIT, layout.share <= 0.8, True, 1, "",
    )  # fmt: skip


def made_point(knobs, tolerance=TOLERANCE, **more):
    """The point of the made-up network with `knobs`, with other values for some fields."""
    return structs.replace(made(knobs, MadeUp().best_layout(knobs), tolerance), **more)


def point(trial, progress):
    """A trial; `begun` has a line for each, and the point's value is another each time that a trial is run."""
    with open(Path(trial.folder) / "begun", "a") as file:
        file.write(f"{trial.key} {trial.outcome_file.exists()}\n")
    time.sleep(float(os.environ.get("MADE_UP_S", "0")))
    more = {"value": uuid.uuid4().int / 2**128, "epochs": trial.document["epochs"], "folder": str(trial.run_folder)}
    return made_point(trial.knobs, settings=trial.settings, **more)


def trial(folder, knobs, epochs=8, limits=LIMITS, judged_on="validation", **more):
    """A trial of a made-up network, whose outcome is kept in `folder`."""
    document = {"epochs": epochs, **knobs.settings(), **more}
    return Trial("hls", {}, 5.0, limits, document, knobs, knobs.settings(), judged_on, str(folder), "")


def trials(folder, count):
    """So many different trials."""
    every = itertools.product(["weight"], SPARSITIES, WIDTHS, WIDTHS, [""], SPARSITIES)
    return [trial(folder, Knobs(*one)) for one in itertools.islice(every, count)]


def searched(folder, executor, count):
    """Key to outcome of so many trials in `folder`, as many at a time as `executor` runs."""
    left, found = trials(folder, count), {}
    while len(found) < count:
        while left and executor.free() > 0:
            executor.submit(left.pop(0))
        found.update((one.key, outcome) for one, outcome in executor.completed())
    return found


def main():
    """Runs so many trials in a folder on so many workers, or on those of a scheduler; the drill kills it."""
    folder, workers, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    (Path(folder) / "trials").mkdir(parents=True, exist_ok=True)
    executor = Workers(int(workers), None, None, point) if workers.isdigit() else Workers(1, workers, None, point)
    try:
        found = searched(Path(folder) / "trials", executor, count)
        Path(folder, "answer.json").write_text(json.dumps({key: one.value for key, one in found.items()}))
    finally:
        executor.close()


def crash(trial, progress):
    """A trial that ends its process, as one that takes too much memory does."""
    os._exit(9)
