"""What a lock costs: CPU time and step time against no lock and against the other ways to hold weights.

    python tests/benchmarks/bench_lock.py                              # small: shows that it runs
    python tests/benchmarks/bench_lock.py --rounds 60 [--batch 128]

Every way takes its turn in every round, in a random order, so that all of them meet the same machine. tfmot needs
tf_keras for its whole process, so its two turns (with and without pruning) are taken by a child process that waits
in between. A ratio is by the time of the same framework without a lock: the median over the rounds, and once more
between the lower quartiles, which a busy machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

STEPS = {"cnn": 2, "mlp": 30}  # steps in one turn
WAYS = ["no lock", "no lock, again", "fp.lock", "kernel constraint", "nine eager assigns"]
TFMOT = ["tf_keras, no lock", "tfmot prune_low_magnitude"]


def network(layers: Any, kind: str, constraint: Callable[[Any], Any] | None = None) -> list[Any]:
    """The layers of the 0.8 M-parameter CNN or of the 16-64-32-32-5 MLP."""

    def of(layer: Any, *arguments: Any, **options: Any) -> Any:
        return layer(*arguments, **options, kernel_constraint=constraint() if constraint else None)

    if kind == "mlp":
        return [*(of(layers.Dense, units, activation="relu") for units in (64, 32, 32)), of(layers.Dense, 5)]
    return [
        of(layers.Conv2D, 32, 3, padding="same", activation="relu"),
        of(layers.Conv2D, 32, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        of(layers.Dense, 128, activation="relu"),
        of(layers.Dense, 10),
    ]


def inputs_of(kind: str) -> tuple[int, ...]:
    return (28, 28, 1) if kind == "cnn" else (16,)


def compiled(keras: Any, kind: str, layers: list[Any]) -> Any:
    model = keras.Sequential([keras.Input(inputs_of(kind)), *layers])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-3), loss, jit_compile=False)
    return model


def turn_of(model: Any, kind: str, batch: int, after: Callable[[], None] | None = None) -> Callable[[], None]:
    """Trains `model` for one turn, on one batch that stays in memory."""
    import tensorflow as tf

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(batch, *inputs_of(kind))).astype("float32"), rng.integers(0, 5, batch)
    data = iter(tf.data.Dataset.from_tensors((x, y)).cache().repeat())
    model.make_train_function()

    def turn() -> None:
        for _ in range(STEPS[kind]):
            model.train_function(data)
            if after is not None:
                after()

    turn()
    return turn


def keras_turns(kind: str, batch: int) -> dict[str, Callable[[], None]]:
    import keras

    import fpgaprune as fp
    from fpgaprune.values import named_weights

    def masks(model: Any) -> Any:
        rng = np.random.default_rng(1)
        weights = named_weights(model)
        return fp.MaskSet({path: rng.random(v.shape) < 0.5 for path, v in weights.items() if path.endswith("kernel")})

    def masking() -> Any:
        class Masking(keras.constraints.Constraint):
            mask = None

            def __call__(self, w: Any) -> Any:
                if self.mask is None:
                    self.mask = np.random.default_rng(1).random(w.shape) < 0.5
                return keras.ops.where(self.mask, w, 0.0)

        return Masking()

    plain, again, locked = (compiled(keras, kind, network(keras.layers, kind)) for _ in range(3))
    constrained = compiled(keras, kind, network(keras.layers, kind, masking))
    eager = compiled(keras, kind, network(keras.layers, kind))
    fp.lock(locked, masks(locked))
    kernel = eager.layers[1].kernel.value
    places = np.argwhere(np.ones((3, 3)))
    spot = (29, 13) if kind == "cnn" else ()

    def nine_assigns() -> None:
        for place in places:
            kernel[(*place.tolist(), *spot)].assign(0.0)

    return dict(
        zip(
            WAYS,
            (
                turn_of(plain, kind, batch),
                turn_of(again, kind, batch),
                turn_of(locked, kind, batch),
                turn_of(constrained, kind, batch),
                turn_of(eager, kind, batch, nine_assigns),
            ),
            strict=True,
        )
    )


def tfmot_turns(kind: str, batch: int) -> dict[str, Callable[[], None]]:
    import tensorflow_model_optimization as tfmot
    import tf_keras

    sparsity = tfmot.sparsity.keras
    pruned = tf_keras.Sequential([tf_keras.Input(inputs_of(kind)), *network(tf_keras.layers, kind)])
    pruned = sparsity.prune_low_magnitude(pruned, sparsity.ConstantSparsity(0.5, begin_step=0, frequency=100))
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    pruned.compile(tf_keras.optimizers.Adam(1e-3), loss, jit_compile=False)
    callback = sparsity.UpdatePruningStep()
    callback.set_model(pruned)
    callback.on_train_begin()
    plain = compiled(tf_keras, kind, network(tf_keras.layers, kind))
    step = turn_of(pruned, kind, batch, after=lambda: callback.on_train_batch_begin(0))
    return dict(zip(TFMOT, (turn_of(plain, kind, batch), step), strict=True))


def timed(turn: Callable[[], None], kind: str) -> tuple[float, float]:
    """Seconds of CPU and of wall clock for one step."""
    cpu, wall = time.process_time(), time.perf_counter()
    turn()
    return (time.process_time() - cpu) / STEPS[kind], (time.perf_counter() - wall) / STEPS[kind]


def serve(batch: int) -> None:
    """The child: a line `kind way` in, a line with two times out."""
    turns = {kind: tfmot_turns(kind, batch) for kind in STEPS}
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        kind, way = line.rstrip("\n").split(" ", 1)
        sys.stdout.write(json.dumps(timed(turns[kind][way], kind)) + "\n")
        sys.stdout.flush()


def measure(kind: str, rounds: int, batch: int, child: Any) -> dict[str, list[tuple[float, float]]]:
    turns = keras_turns(kind, batch)

    def ask(way: str) -> tuple[float, float]:
        child.stdin.write(f"{kind} {way}\n")
        child.stdin.flush()
        cpu, wall = json.loads(child.stdout.readline())
        return cpu, wall

    times: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS + TFMOT}
    order, shuffle = list(times), random.Random(0)
    for _ in range(rounds):
        shuffle.shuffle(order)
        for way in order:
            times[way].append(timed(turns[way], kind) if way in turns else ask(way))
    return times


def table(kind: str, times: dict[str, list[tuple[float, float]]]) -> str:
    lines = [f"| {kind} | CPU ms/step | step ms | CPU ratio | of quartiles | step ratio |", "|---|---|---|---|---|---|"]
    arrays = {way: np.array(pairs) for way, pairs in times.items()}
    for way, array in arrays.items():
        base = arrays[TFMOT[0] if way in TFMOT else WAYS[0]]
        cpu, wall = np.median(array, axis=0) * 1e3
        ratios = np.median(array / base, axis=0)
        low = np.quantile(array[:, 0], 0.25) / np.quantile(base[:, 0], 0.25)
        lines.append(f"| {way} | {cpu:.2f} | {wall:.2f} | {ratios[0]:.3f} | {low:.3f} | {ratios[1]:.3f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(sys.argv[1:] or ["--rounds", "3"])
    if arguments.serve:
        serve(arguments.batch)
        return
    command = [sys.executable, str(Path(__file__).resolve()), "--serve", "--batch", str(arguments.batch)]
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as child:
        if child.stdout.readline() != "ready\n":
            raise SystemExit("the child with tfmot did not start; run it alone with --serve to see why")
        for kind in STEPS:
            sys.stdout.write(table(kind, measure(kind, arguments.rounds, arguments.batch, child)) + "\n\n")
            sys.stdout.flush()
        # It has nothing to save, and TensorFlow's threads can keep it from ending by itself.
        child.kill()


if __name__ == "__main__":
    main()
