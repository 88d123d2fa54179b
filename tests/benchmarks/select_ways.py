"""Every way to prune the benchmark's network, from the same trained weights and under the same fine-tuning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
from select_network import BATCH, CONVS, Arrays, accuracy, compiled, in_order, network

import fpgaprune as fp
from fpgaprune.select import GradualLock, PolynomialDecay, prune_rounds
from fpgaprune.values import named_weights

CRITERIA = ("l1", "l2", "taylor", "fisher", "activation", "bn_scale", "geometric_median", "random")
ROUNDS = 4
# Scores as they are, one threshold: what the criteria say by themselves.
RAW = {"normalize": "none"}
PRUNED_BY = 0.6  # of the steps: then a gradual schedule is at its end
CHANGES = 12


class Bench:
    """One seed's trained network, and what prunes it.

    Attributes:
        trained: its weights by path.
        early: the weights after a tenth of the first pass.
    """

    def __init__(self, data: Arrays, seed: int, epochs: int, trained_epochs: int, cache: Path | None) -> None:
        self.data, self.seed, self.epochs = data, seed, epochs
        self.model = network(keras)
        self.weights = named_weights(self.model)
        stored = dict(np.load(cache)) if cache is not None and cache.exists() else self._train(trained_epochs)
        if cache is not None and not cache.exists():
            np.savez(cache, **stored)
        self.trained = {path: stored[f"trained/{path}"] for path in self.weights}
        self.early = {path: stored[f"early/{path}"] for path in self.weights}
        self.x, self.y = in_order(data, 1000 + seed, epochs)
        self.steps = -(-len(self.x) // BATCH)

    def measured(self, prune: Callable[[], Any]) -> dict[str, float]:
        """Accuracy and the share of zero convolution weights after `prune`, from the trained weights on.

        Raises:
            SystemExit: a locked element is not zero.
        """
        for path, array in self.trained.items():
            self.weights[path].assign(array)
        compiled(keras, self.model, self.steps)
        masks = prune() or {}
        for path, mask in masks.items():
            if np.any(self.weights[path].numpy()[~mask]):
                raise SystemExit(f"{path} has locked elements that are not zero")
        kernels = [self.weights[path].numpy() for path in CONVS]
        zeros = sum(int((kernel == 0).sum()) for kernel in kernels) / sum(kernel.size for kernel in kernels)
        return {"accuracy": accuracy(self.model, self.data), "zeros": zeros}

    def unpruned(self) -> None:
        """Nothing is locked, and training goes on as long as for the others."""
        self.model.fit(self.x, self.y, batch_size=BATCH, shuffle=False, verbose=0)

    def one_shot(self, sparsity: float, **options: Any) -> Any:
        masks = fp.select(self.model, sparsity, data=self.samples, **{**RAW, **options})
        fp.finetune(self.model, masks, self.x, self.y, batch_size=BATCH, shuffle=False)
        return masks

    def gradual(self, sparsity: float, regrow: float = 0.0, **options: Any) -> Any:
        schedule = PolynomialDecay(0.0, sparsity, 0, self.end_step, frequency=self.frequency)
        callback = GradualLock(schedule, fp.relock, regrow_fraction=regrow, **{**RAW, **options})
        fp.lock(self.model, callback.initial_masks(self.model))
        self.model.fit(self.x, self.y, batch_size=BATCH, shuffle=False, callbacks=[callback], verbose=0)
        fp.unlock(self.model)
        return callback.masks

    def rounds(self, sparsity: float, *, rewind: bool) -> Any:
        # Locked all the time, so that one optimizer and one rate go through all rounds.
        fp.lock(self.model, fp.select(self.model, 0.0))
        parts = np.array_split(np.arange(len(self.x)), ROUNDS)
        shares = [1 - (1 - sparsity) ** (number / ROUNDS) for number in range(1, ROUNDS + 1)]

        def train(model: Any, masks: Any) -> None:
            part = parts.pop(0)
            fp.finetune(model, masks, self.x[part], self.y[part], batch_size=BATCH, shuffle=False)

        masks = prune_rounds(self.model, shares, train, rewind_to=self.early if rewind else None, **RAW)
        fp.unlock(self.model)
        return masks

    def tfmot(self, sparsity: float) -> dict[str, float]:
        """As `measured`, by TF-MOT in a process of its own."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            tests = {key: self.data[key] for key in ("x_test", "y_test")}
            np.savez(folder / "data.npz", x=self.x, y=self.y, **tests)
            np.savez(folder / "weights.npz", **self.trained)
            job = {"sparsity": sparsity, "steps": self.steps, "seed": self.seed}
            job.update(end_step=self.end_step, frequency=self.frequency)
            (folder / "job.json").write_text(json.dumps(job))
            environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1"}
            script = Path(__file__).with_name("select_tfmot.py")
            subprocess.run([sys.executable, str(script), name], check=True, env=environment)
            found: dict[str, float] = json.loads((folder / "result.json").read_text())
            return found

    @property
    def end_step(self) -> int:
        return int(PRUNED_BY * self.steps)

    @property
    def frequency(self) -> int:
        return max(1, self.end_step // CHANGES)

    @property
    def samples(self) -> tuple[np.ndarray, np.ndarray]:
        """What criteria with data see."""
        return self.data["x"][:1024], self.data["y"][:1024]

    def _train(self, epochs: int) -> Arrays:
        rng = np.random.default_rng(self.seed)
        for path, variable in self.weights.items():
            if path.endswith("kernel"):
                fan_in = int(np.prod(variable.shape[:-1]))
                variable.assign(rng.normal(size=variable.shape) * np.sqrt(2 / fan_in))
        x, y = in_order(self.data, self.seed, epochs)
        compiled(keras, self.model, -(-len(x) // BATCH))
        early: Arrays = {}

        def keep(batch: int, logs: Any) -> None:
            if batch == len(self.data["x"]) // BATCH // 10:
                early.update(self._values("early"))

        watch = keras.callbacks.LambdaCallback(on_train_batch_end=keep)
        self.model.fit(x, y, batch_size=BATCH, shuffle=False, callbacks=[watch], verbose=0)
        return {**early, **self._values("trained")}

    def _values(self, name: str) -> Arrays:
        return {f"{name}/{path}": variable.numpy() for path, variable in self.weights.items()}


Measure = Callable[[Bench, float], dict[str, float]]


def ways() -> dict[str, Measure]:
    """Name to what measures it, what is compared first first."""

    def of(prune: Callable[[Bench, float], Any]) -> Measure:
        return lambda bench, sparsity: bench.measured(lambda: prune(bench, sparsity))

    weight = {"granularity": "weight", "scope": "layer"}
    found = {
        "kernel, one-shot, l1": of(lambda b, s: b.one_shot(s)),
        "kernel, gradual, l1": of(lambda b, s: b.gradual(s)),
        "weight, gradual, TF-MOT": lambda b, s: b.tfmot(s),
        "weight, gradual, l1": of(lambda b, s: b.gradual(s, **weight)),
        "weight, one-shot, l1": of(lambda b, s: b.one_shot(s, **weight)),
        "kernel, gradual, taylor": of(lambda b, s: b.gradual(s, criterion="taylor", data=b.samples)),
    }
    for criterion in CRITERIA[1:]:
        found[f"kernel, one-shot, {criterion}"] = of(lambda b, s, c=criterion: b.one_shot(s, criterion=c, seed=b.seed))
    found |= {
        "kernel, rounds, l1": of(lambda b, s: b.rounds(s, rewind=False)),
        "kernel, gradual with regrowth, l1": of(lambda b, s: b.gradual(s, regrow=0.05, data=b.samples)),
        "kernel, rounds with rewinding, l1": of(lambda b, s: b.rounds(s, rewind=True)),
        "kernel, one-shot, l1, each layer alike": of(lambda b, s: b.one_shot(s, scope="layer")),
    }
    return found
