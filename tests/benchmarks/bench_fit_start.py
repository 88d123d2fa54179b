"""Where a trial of `fit` starts: from the trained network, or from the last good one; the training alone, in NumPy.

    python tests/benchmarks/bench_fit_start.py [--full]

An MLP 64-32-32-10 on 8 × 8 digits, and on MNIST in 8 × 8 pixels where its files are there. Single weights are locked
by `l1` and `lamp` in twelve changes, as `fit` does, at the sparsities of a descent; nothing rounds. Every trial of a
way has the same number of steps (Adam, batches of 32, a rate that falls from 0.001 as a cosine): both take as long.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from fpgaprune.flow import load_data  # noqa: E402
from fpgaprune.select import lamp  # noqa: E402

SIZES = (64, 32, 32, 10)
DESCENT = (0.35, 0.6, 0.75, 0.84, 0.9, 0.94)
CHANGES, DONE_BY, BATCH = 12, 0.6, 32


class Mlp:
    """Weights, biases and masks (True = free), trained by Adam on class numbers."""

    def __init__(self, rng: np.random.Generator) -> None:
        shapes = list(itertools.pairwise(SIZES))
        self.weights = [rng.normal(size=shape) * np.sqrt(2 / shape[0]) for shape in shapes]
        self.biases = [np.zeros(outputs) for _, outputs in shapes]
        self.masks = [np.ones(shape, bool) for shape in shapes]

    def copy(self) -> Mlp:
        other = object.__new__(Mlp)
        for name in ("weights", "biases", "masks"):
            setattr(other, name, [array.copy() for array in getattr(self, name)])
        return other

    def outputs(self, x: np.ndarray) -> list[np.ndarray]:
        found = [x]
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            y = found[-1] @ weight + bias
            found.append(y if number == len(self.weights) - 1 else np.maximum(y, 0))
        return found

    def right(self, x: np.ndarray, y: np.ndarray) -> float:
        return float((self.outputs(x)[-1].argmax(1) == y).mean())

    def lock(self, sparsity: float) -> None:
        scores = np.concatenate([lamp(np.abs(weight).ravel()) for weight in self.weights])
        free = np.ones(len(scores), bool)
        free[np.argsort(scores, kind="stable")[: round(sparsity * len(scores))]] = False
        ends = np.cumsum([weight.size for weight in self.weights])[:-1]
        for mask, own in zip(self.masks, np.split(free, ends), strict=True):
            mask &= own.reshape(mask.shape)
        self.weights = [weight * mask for weight, mask in zip(self.weights, self.masks, strict=True)]

    def train(self, x: np.ndarray, y: np.ndarray, steps: int, rate: float, seed: int, sparsities: tuple = ()) -> Mlp:
        """Trains for `steps`; `sparsities` are where the locks begin and end."""
        rng, order = np.random.default_rng(seed), np.empty(0, int)
        slots = [[np.zeros_like(one), np.zeros_like(one)] for one in (*self.weights, *self.biases)]
        changes = np.unique(np.linspace(0, DONE_BY * steps, CHANGES + 1).astype(int)) if sparsities else []
        for step in range(steps):
            if step in changes:
                done = step / changes[-1]
                first, last = sparsities
                self.lock(last + (first - last) * (1 - done) ** 3)
            if len(order) < BATCH:
                order = rng.permutation(len(x))
            rows, order = order[:BATCH], order[BATCH:]
            layers = self.outputs(x[rows])
            back = np.exp(layers[-1] - layers[-1].max(1, keepdims=True))
            back /= back.sum(1, keepdims=True)
            back[np.arange(len(rows)), y[rows]] -= 1
            back /= len(rows)
            slopes: list[np.ndarray] = [np.empty(0)] * (2 * len(self.weights))
            for number in reversed(range(len(self.weights))):
                slopes[number] = layers[number].T @ back * self.masks[number]
                slopes[len(self.weights) + number] = back.sum(0)
                back = (back @ self.weights[number].T) * (layers[number] > 0)
            now = rate / 2 * (1 + np.cos(np.pi * step / steps))
            for array, slope, slot in zip((*self.weights, *self.biases), slopes, slots, strict=True):
                slot[0] += 0.1 * (slope - slot[0])
                slot[1] += 0.001 * (slope**2 - slot[1])
                one, two = slot[0] / (1 - 0.9 ** (step + 1)), slot[1] / (1 - 0.999 ** (step + 1))
                array -= now * one / (np.sqrt(two) + 1e-7)
            self.weights = [weight * mask for weight, mask in zip(self.weights, self.masks, strict=True)]
        return self


def sets(full: bool) -> dict[str, tuple[np.ndarray, ...]]:
    """Name to training samples, classes, held-out samples, classes."""
    digits = load_data("digits")
    names = ("x_train", "y_train", "x_test", "y_test")
    found = {"digits": tuple(np.asarray(getattr(digits, name)) for name in names)}
    if full:
        from bench_trained_bits import small_mnist
        from select_network import MNIST

        if MNIST.is_dir():
            arrays = small_mnist()
            found["MNIST, 8 × 8"] = tuple(
                arrays[name][:20_000] if name.endswith("train") else arrays[name] for name in names
            )
    return {name: (x.reshape(len(x), -1), y, xt.reshape(len(xt), -1), yt) for name, (x, y, xt, yt) in found.items()}


def main() -> None:
    """The table: a row for each data set, number of steps and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="three seeds and both data sets")
    full = parser.parse_args().full
    head = " | ".join(f"{100 * sparsity:.0f} %" for sparsity in DESCENT)
    print(f"| data | steps of a trial | way | as trained | {head} |")
    print("|---|---:|---|---:" + "|---:" * len(DESCENT) + "|")
    for name, (x, y, x_test, y_test) in sets(full).items():
        for steps in (136, 1000) if full else (20,):
            rows: dict[str, list[list[float]]] = {"from the trained network": [], "from the last good one": []}
            for seed in range(3 if full else 1):
                first = Mlp(np.random.default_rng(seed)).train(x, y, 5000 if full else 50, 2e-3, seed)
                cold, warm, last, before = [first.right(x_test, y_test)], [first.right(x_test, y_test)], first, 0.0
                for sparsity in DESCENT:
                    one = first.copy().train(x, y, steps, 1e-3, seed, (0.0, sparsity))
                    cold.append(one.right(x_test, y_test))
                    last = last.copy().train(x, y, steps, 1e-3, seed, (before, sparsity))
                    warm.append(last.right(x_test, y_test))
                    before = sparsity
                rows["from the trained network"].append(cold)
                rows["from the last good one"].append(warm)
            for way, found in rows.items():
                mean, spread = np.mean(found, axis=0), np.std(found, axis=0)
                cells = " | ".join(f"{100 * m:.1f} ± {100 * s:.1f}" for m, s in zip(mean, spread, strict=True))
                print(f"| {name} | {steps} | {way} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
