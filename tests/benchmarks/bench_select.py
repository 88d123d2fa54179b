"""Accuracy on MNIST after equal fine-tuning, by criterion, schedule and sparsity, with TF-MOT beside them.

    python tests/benchmarks/bench_select.py [--quick] [--seeds 3] [--out results.json]

Every way starts from the same trained network of its seed, sees the same batches in the same order at the same rate
for the same number of steps, and is measured on the same 10,000 test images. TF-MOT prunes single weights, so the rows
beside it do too; it runs in a process of its own, from the same weights. Besides: the time of `select` over ResNet50.

The images stand in `../shared/data/mnist` beside the checkout; without them only the times are taken.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

ROOT = Path(__file__).parents[2]
MNIST = ROOT.parent / "shared" / "data" / "mnist"
SPARSITIES = (0.5, 0.75, 0.9)
CRITERIA = ("l1", "l2", "random", "geometric_median", "bn_scale", "taylor", "fisher", "activation")
CONVS = ("conv1/kernel", "conv2/kernel")
BATCH = 64
RATE = 1e-3


def network(keras: Any) -> Any:
    """28 × 28 to ten classes; the second convolution has kernels [3, 3, 32, 32]."""
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, name="conv1"),
            layers.BatchNormalization(name="bn1"),
            layers.ReLU(name="relu1"),
            layers.MaxPooling2D(2, name="pool1"),
            layers.Conv2D(32, 3, name="conv2"),
            layers.BatchNormalization(name="bn2"),
            layers.ReLU(name="relu2"),
            layers.MaxPooling2D(2, name="pool2"),
            layers.Flatten(name="flat"),
            layers.Dense(10, name="out"),
        ]
    )


def compiled(keras: Any, model: Any) -> Any:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(RATE), loss, metrics=["accuracy"])
    return model


def read_mnist(train: int) -> dict[str, np.ndarray]:
    def read(name: str, offset: int) -> np.ndarray:
        with gzip.open(MNIST / name) as file:
            return np.frombuffer(file.read(), np.uint8, offset=offset)

    def images(name: str) -> np.ndarray:
        return (read(name, 16).reshape(-1, 28, 28, 1) / np.float32(255)).astype(np.float32)

    return {
        "x": images("train-images-idx3-ubyte.gz")[:train],
        "y": read("train-labels-idx1-ubyte.gz", 8)[:train].astype(np.int32),
        "x_test": images("t10k-images-idx3-ubyte.gz"),
        "y_test": read("t10k-labels-idx1-ubyte.gz", 8).astype(np.int32),
    }


def accuracy(model: Any, data: dict[str, np.ndarray]) -> float:
    """In per cent of the test images."""
    guessed = model.predict(data["x_test"], batch_size=500, verbose=0).argmax(axis=-1)
    return 100 * float((guessed == data["y_test"]).mean())


class Bench:
    """One seed's trained network, and every way to prune it."""

    def __init__(self, data: dict[str, np.ndarray], seed: int, epochs: int) -> None:
        import keras

        from fpgaprune.weights import named_weights

        self.keras, self.data, self.seed, self.epochs = keras, data, seed, epochs
        self.model = compiled(keras, network(keras))
        self.weights = named_weights(self.model)
        keras.utils.set_random_seed(seed)
        rng = np.random.default_rng(seed)
        for path, variable in self.weights.items():  # drawn anew for the seed
            if path.endswith("kernel"):
                fan_in = int(np.prod(variable.shape[:-1]))
                variable.assign(rng.normal(size=variable.shape) * np.sqrt(2 / fan_in))
        self.early: dict[str, np.ndarray] = {}
        self._fit(epochs, callbacks=[self._keep_early()])
        self.trained = self._values()
        self.baseline = accuracy(self.model, data)

    def measured(self, prune: Callable[[], Any]) -> float:
        """Accuracy after `prune`, from the trained weights and a new optimizer."""
        self._start()
        masks = prune()
        for path, mask in masks.items():
            if np.any(self.weights[path].numpy()[~mask]):
                raise SystemExit(f"{path} has locked elements that are not zero")
        return accuracy(self.model, self.data)

    def one_shot(self, sparsity: float, **options: Any) -> Any:
        import fpgaprune as fp

        masks = fp.select(self.model, sparsity, **options)
        self._finetune(masks, self.epochs)
        return masks

    def gradual(self, sparsity: float, regrow: float = 0.0, **options: Any) -> Any:
        import fpgaprune as fp

        steps = self.steps
        schedule = fp.PolynomialDecay(0.0, sparsity, 0, int(0.6 * steps), frequency=max(1, steps // 40))
        callback = fp.GradualLock(schedule, fp.relock, regrow_fraction=regrow, **options)
        fp.lock(self.model, callback.initial_masks(self.model))
        self._fit(self.epochs, callbacks=[callback])
        fp.unlock(self.model)
        return callback.masks

    def rounds(self, sparsity: float, rewind: bool, **options: Any) -> Any:
        import fpgaprune as fp

        shares = [1 - (1 - sparsity) ** (number / self.epochs) for number in range(1, self.epochs + 1)]
        return fp.prune_rounds(
            self.model,
            shares,
            lambda _, masks: self._finetune(masks, 1),
            rewind_to=self.early if rewind else None,
            **options,
        )

    def tfmot(self, sparsity: float) -> float:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            np.savez(folder / "data.npz", **self.data)
            np.savez(folder / "weights.npz", **self.trained)
            job = {"sparsity": sparsity, "epochs": self.epochs, "steps": self.steps, "seed": self.seed}
            (folder / "job.json").write_text(json.dumps(job))
            environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1"}
            subprocess.run([sys.executable, __file__, "--tfmot", name], check=True, env=environment)
            return float(json.loads((folder / "result.json").read_text())["accuracy"])

    @property
    def steps(self) -> int:
        return self.epochs * -(-len(self.data["x"]) // BATCH)

    @property
    def samples(self) -> tuple[np.ndarray, np.ndarray]:
        """What criteria with data see."""
        return self.data["x"][:1024], self.data["y"][:1024]

    def _start(self) -> None:
        for path, array in self.trained.items():
            self.weights[path].assign(array)
        compiled(self.keras, self.model)
        self.keras.utils.set_random_seed(self.seed)

    def _finetune(self, masks: Any, epochs: int) -> None:
        import fpgaprune as fp

        fp.finetune(self.model, masks, self.data["x"], self.data["y"], epochs=epochs, batch_size=BATCH)

    def _fit(self, epochs: int, callbacks: Any = ()) -> None:
        data = self.data
        self.model.fit(data["x"], data["y"], batch_size=BATCH, epochs=epochs, callbacks=list(callbacks), verbose=0)

    def _values(self) -> dict[str, np.ndarray]:
        return {path: variable.numpy() for path, variable in self.weights.items()}

    def _keep_early(self) -> Any:
        # A tenth of the first epoch: what rewinding goes back to.
        at = len(self.data["x"]) // BATCH // 10

        def keep(batch: int, logs: Any) -> None:
            if batch == at and not self.early:
                self.early = self._values()

        return self.keras.callbacks.LambdaCallback(on_train_batch_end=keep)


def ways(bench: Bench, sparsity: float, quick: bool) -> dict[str, Callable[[], float]]:
    """Name to what measures it."""
    found: dict[str, Callable[[], float]] = {}
    for criterion in CRITERIA:
        found[f"kernel, one-shot, {criterion}"] = lambda c=criterion: bench.measured(
            lambda: bench.one_shot(sparsity, criterion=c, data=bench.samples, seed=bench.seed)
        )
    found["kernel, one-shot, l1, lamp"] = lambda: bench.measured(lambda: bench.one_shot(sparsity, normalize="lamp"))
    found["kernel, gradual, l1"] = lambda: bench.measured(lambda: bench.gradual(sparsity))
    found["kernel, gradual with regrowth, l1"] = lambda: bench.measured(
        lambda: bench.gradual(sparsity, regrow=0.05, data=bench.samples)
    )
    if not quick:
        found["kernel, rounds, l1"] = lambda: bench.measured(lambda: bench.rounds(sparsity, rewind=False))
        found["kernel, rounds with rewinding, l1"] = lambda: bench.measured(lambda: bench.rounds(sparsity, rewind=True))
    found["weight, one-shot, l1"] = lambda: bench.measured(
        lambda: bench.one_shot(sparsity, granularity="weight", scope="layer")
    )
    found["weight, gradual, l1"] = lambda: bench.measured(
        lambda: bench.gradual(sparsity, granularity="weight", scope="layer")
    )
    found["weight, gradual, TF-MOT"] = lambda: bench.tfmot(sparsity)
    return found


def serve_tfmot(folder: Path) -> None:
    """TF-MOT's turn, in a process with tf_keras."""
    import tensorflow_model_optimization as tfmot
    import tf_keras

    job = json.loads((folder / "job.json").read_text())
    data = dict(np.load(folder / "data.npz"))
    weights = dict(np.load(folder / "weights.npz"))
    base = network(tf_keras)
    for variable in base.variables:
        variable.assign(weights[variable.name.split(":")[0]])
    schedule = tfmot.sparsity.keras.PolynomialDecay(
        0.0, job["sparsity"], 0, int(0.6 * job["steps"]), frequency=max(1, job["steps"] // 40)
    )

    def wrap(layer: Any) -> Any:
        is_conv = isinstance(layer, tf_keras.layers.Conv2D)
        return tfmot.sparsity.keras.prune_low_magnitude(layer, pruning_schedule=schedule) if is_conv else layer

    model = compiled(tf_keras, tf_keras.models.clone_model(base, clone_function=wrap))
    for layer in model.layers:
        inner = getattr(layer, "layer", layer)
        for variable in inner.variables:
            path = f"{inner.name}/{variable.name.split('/')[-1].split(':')[0]}"
            if path in weights:
                variable.assign(weights[path])
    tf_keras.utils.set_random_seed(job["seed"])
    step = tfmot.sparsity.keras.UpdatePruningStep()
    model.fit(data["x"], data["y"], batch_size=BATCH, epochs=job["epochs"], callbacks=[step], verbose=0)
    stripped = tfmot.sparsity.keras.strip_pruning(model)
    zeros = {
        layer.name: float((layer.kernel.numpy() == 0).mean()) for layer in stripped.layers if hasattr(layer, "kernel")
    }
    (folder / "result.json").write_text(json.dumps({"accuracy": accuracy(stripped, data), "zeros": zeros}))


def time_resnet() -> dict[str, float]:
    """Seconds that `select` takes over ResNet50, for each criterion without data."""
    import keras

    import fpgaprune as fp

    model = keras.applications.ResNet50(weights=None)
    seconds = {}
    for criterion in ("l1", "l2", "random", "bn_scale", "geometric_median"):
        for granularity in ("kernel", "filter", "weight"):
            if criterion == "geometric_median" and granularity != "filter":
                continue
            started = time.perf_counter()
            fp.select(model, 0.5, granularity, criterion)
            seconds[f"{granularity}, {criterion}"] = round(time.perf_counter() - started, 2)
            print(f"  {seconds[f'{granularity}, {criterion}']:6.2f}  {granularity}, {criterion}", flush=True)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one seed, 4,000 images, 75 % only: shows that it runs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    parser.add_argument("--tfmot", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.tfmot:
        serve_tfmot(arguments.tfmot)
        return
    sys.path.insert(0, str(ROOT))
    figures: dict[str, Any] = {}
    if MNIST.is_dir():
        figures["accuracy"] = measure(arguments)
    else:
        print("accuracy is not measured: the MNIST images are missing at ../shared/data/mnist")
    print("seconds for select over ResNet50:", flush=True)
    figures["resnet50_s"] = time_resnet()
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n")


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Accuracies by sparsity and way, one for each seed; printed as they are complete."""
    quick = arguments.quick
    data = read_mnist(4000 if quick else 60000)
    benches = [Bench(data, seed, 1 if quick else arguments.epochs) for seed in range(1 if quick else arguments.seeds)]
    baseline = [bench.baseline for bench in benches]
    print(
        f"unpruned: {_spread(baseline)} %; {len(data['x'])} images, {benches[0].steps} steps of fine-tuning", flush=True
    )
    found: dict[str, Any] = {"unpruned": baseline}
    for sparsity in (0.75,) if quick else SPARSITIES:
        rows = {}
        for name in ways(benches[0], sparsity, quick):
            rows[name] = [ways(bench, sparsity, quick)[name]() for bench in benches]
            lost = statistics.mean(a - b for a, b in zip(baseline, rows[name], strict=True))
            print(f"{sparsity:.2f}  {_spread(rows[name])} %  lost {lost:5.2f}  {name}", flush=True)
        found[str(sparsity)] = rows
    return found


def _spread(values: list[float]) -> str:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):6.2f} ± {spread:.2f}"


if __name__ == "__main__":
    main()
