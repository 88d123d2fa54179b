"""Every "does not fit" of a descent against every combination of its knobs, on a real network that is not fine-tuned.

    python tests/benchmarks/bench_fit_exhaustive.py [--full]

The network is an MLP on 8 × 8 digits, trained here in some seconds. A combination of zeros, bits of weights and bits
of activations is judged by its emulated hardware without fine-tuning, and estimated as our Verilog, so that all of them
can be tried. The descent gets the same judge, and then twelve neighbours. An answer is wrong if a part of
half to twice the size of the smallest good network takes that one and not the one that was found. Sizes are sums of the
shares of all resources. The neighbours also have sparsities between those of the descent.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import keras
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from fpgaprune.emulate import emulate  # noqa: E402
from fpgaprune.fit import (  # noqa: E402
    SPARSITIES,
    WIDTHS,
    Descent,
    Estimates,
    FitPoint,
    Knobs,
    Limits,
    Neighbourhood,
    Ranking,
    find_route,
    size_of,
)
from fpgaprune.flow import load_data, parse_config  # noqa: E402
from fpgaprune.target import Target  # noqa: E402
from fpgaprune.values import loss_text  # noqa: E402

NAMES = ("sparsity", "weight_bits", "activation_bits")
# A sample every cycle: the layout is one, so that the price of a combination does not depend on the limit.
TIME = {"latency_us": 1.0, "interval_cycles": 1}
# Trials after the descent.
NEIGHBOURS = 12
LOSSES = (0.01, 0.02, 0.05, 0.1, 0.2)


def trained(folder: Path) -> tuple[keras.Model, object, dict]:
    """The network, its data and its flow."""
    digits = load_data("digits")
    x, y, x_test, y_test = (np.asarray(part) for part in (digits.x_train, digits.y_train, digits.x_test, digits.y_test))
    x, x_test = x.reshape(len(x), -1), x_test.reshape(len(x_test), -1)
    np.savez(folder / "digits.npz", x_train=x, y_train=y, x_test=x_test, y_test=y_test)
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential([keras.Input((64,)), layers.Dense(6, activation="relu"), layers.Dense(10)], name="mine")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(5e-3), loss, metrics=["accuracy"])
    model.fit(x, y, epochs=30, verbose=0)
    model.save(folder / "mine.keras")
    document = {
        "name": "fit",
        "data": {"source": str(folder / "digits.npz")},
        "train": {"model": str(folder / "mine.keras")},
        "target": {"part": "xc7z020clg400-1", "io_type": "io_parallel"},
        "select": {"granularity": "weight"},
        "hls": {"simulate": 0},
    }
    parse_config(document, "bench")
    return model, load_data(str(folder / "digits.npz")), document


def main() -> None:
    """The table, a row for each largest loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all knobs; else a few, to show that it runs")
    full = parser.parse_args().full
    target = Target.of("xc7z020clg400-1", io_type="io_parallel")
    with tempfile.TemporaryDirectory() as name:
        model, data, document = trained(Path(name))
        estimates = Estimates(find_route("verilog", target), document, data, model, Limits(**TIME))
        outputs = model.predict(data.x_test, verbose=0)
        right = float((outputs.argmax(1) == data.y_test).mean())

        @cache
        def lost(knobs: Knobs) -> float:
            made = emulate(estimates.design(knobs), data.x_test)
            return right - float((np.asarray(made).argmax(1) == data.y_test).mean())

        @cache
        def size(knobs: Knobs) -> float:
            return size_of(estimates.best_layout(knobs))

        turns = (SPARSITIES, WIDTHS, WIDTHS) if full else (SPARSITIES[:3], WIDTHS[:2], WIDTHS[:2])
        every = [Knobs("weight", *one) for one in itertools.product(*turns)]
        every = [knobs for knobs in every if estimates.is_possible(knobs)]
        print(f"{len(every)} combinations; the trained network has {100 * right:.1f} % of {len(outputs)} samples right")
        print(
            "| largest loss | smallest good network, size | descent | ratio "
            "| with neighbours | ratio | trials | wrong |"
        )
        print("|---:|---:|---:|---:|---:|---:|---:|---|")
        for limit in LOSSES if full else LOSSES[:1]:
            trials = []

            def evaluate(knobs, layout, parent, limit=limit, trials=trials):
                trials.append(knobs)
                return FitPoint(
                    knobs, knobs.settings(), "accuracy", 0.0, lost(knobs), 0.0, "validation", len(outputs), {},
                    None, layout.resource, layout.share, 1, 1, lost(knobs) <= limit, True, True, 1, "", size_of(layout),
                )  # fmt: skip

            def margin(point, limit=limit):
                return limit - point.lost

            found = [
                point for _, point in Descent(NAMES, estimates, evaluate, lambda: True, margin).run(Knobs("weight"))
            ]
            first = [*found]
            neighbourhood = Neighbourhood(
                NAMES, estimates, Ranking(Limits(max_loss=loss_text(limit), **TIME), target.clock_ns), whole=1, epochs=1
            )
            for _ in range(NEIGHBOURS):
                asked = neighbourhood.next(found)
                if asked is None:
                    break
                found.append(evaluate(asked[0], estimates.best_layout(asked[0]), asked[1]))
            there = min((size(knobs) for knobs in every if lost(knobs) <= limit), default=None)
            by_descent, mine = smallest(first), smallest(found)
            if there is None or mine is None or by_descent is None:
                cells = [str(there), str(by_descent), "–", str(mine), "–", str(len(trials)), str(there is not mine)]
                print(f"| {100 * limit:g} % | {' | '.join(cells)} |", flush=True)
                continue
            parts = np.linspace(0.5, 2, 31) * there
            wrong = int(sum(there <= part < mine for part in parts))
            cells = [f"{100 * there:.2f} %", f"{100 * by_descent:.2f} %", f"{by_descent / there:.2f}"]
            cells += [f"{100 * mine:.2f} %", f"{mine / there:.2f}", str(len(trials)), f"{wrong} of 31"]
            print(f"| {100 * limit:g} % | {' | '.join(cells)} |", flush=True)


def smallest(points: Iterable[FitPoint]) -> float | None:
    """The size of the smallest good network."""
    return min((point.size for point in points if point.loses_little), default=None)


if __name__ == "__main__":
    main()
