"""What the default selection leaves of a network, beside other ways to select, after a short fine-tuning under locks.

    python tests/benchmarks/bench_defaults.py                                      # small: shows that it runs
    python tests/benchmarks/bench_defaults.py --networks ds_cnn,mobilenet          # three seeds, three sparsities
    python tests/benchmarks/bench_defaults.py --networks jet_mlp,autoencoder --ways default,taylor --seeds 1

Networks are those of `networks.py`, each trained anew for each seed. From there every way locks its kernels and gets
the same fine-tuning: `--epochs` passes in the same order, Adam, a rate of 0.001. The table gives test accuracy in % (of
the autoencoder the mean squared error) and the fewest channels alive in a layer in %, mean ± standard deviation.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from networks import NETWORKS, Arrays

import fpgaprune as fp
from fpgaprune.network import alive_channels, weights_of
from fpgaprune.select import Protection
from fpgaprune.values import named_weights

# What is measured without arguments.
SMALL = ["--networks", "jet_mlp", "--sparsities", "0.6", "--seeds", "1", "--epochs", "1"]
OPEN = Protection(min_free_channels=0)
# `one threshold` is every convolution kernel by its size, depthwise ones too, as it was before there was a default.
WAYS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "one threshold": {"normalize": "none", "protect": OPEN, "paths": ("convolution", "depthwise")},
    "no floor": {"protect": OPEN},
    "layer": {"normalize": "none", "scope": "layer"},
    "mean": {"normalize": "mean"},
    "taylor": {"criterion": "taylor"},
    "taylor as it is": {"criterion": "taylor", "normalize": "none"},
    "taylor per adder": {"criterion": "taylor", "cost": "adders(6)"},
}


def main() -> None:
    """The table, a row for each network, sparsity and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="ds_cnn,mobilenet")
    parser.add_argument("--ways", default="default,one threshold", help=f"of {', '.join(WAYS)}")
    parser.add_argument("--sparsities", default="0.6,0.75,0.9")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--samples", type=int, default=None, help="of the training data; all unless given")
    chosen = parser.parse_args(sys.argv[1:] or SMALL)
    print("| network | sparsity | way | fewest channels alive | as selected | fine-tuned |", flush=True)
    print("|---|---:|---|---:|---:|---:|", flush=True)
    for name in chosen.networks.split(","):
        rows: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
        for seed in range(chosen.seeds):
            for key, found in measured(name, seed, chosen).items():
                rows.setdefault(key, []).append(found)
                print(f"{name}, seed {seed}, {', '.join(key)}: {found[-1]:.2f}", file=sys.stderr, flush=True)
        for (sparsity, way), seeds in rows.items():
            fewest, selected, tuned = (_spread(values) for values in zip(*seeds, strict=True))
            print(f"| {name} | {sparsity} | {way} | {fewest} | {selected} | {tuned} |", flush=True)


def measured(name: str, seed: int, chosen: argparse.Namespace) -> dict[tuple[str, str], tuple[float, float, float]]:
    """For each sparsity and way of one trained network: fewest channels alive, metric before and after fine-tuning."""
    keras.utils.set_random_seed(seed)
    case = NETWORKS[name]()
    model, data = case.model, {key: array[: chosen.samples] for key, array in case.data.items()}
    x, y = data["x_train"], data["y_train"]
    model.fit(x, y, epochs=case.epochs, batch_size=case.batch_size, verbose=0)
    model.compile(keras.optimizers.Adam(1e-3), model.loss, metrics=["accuracy"] if _counts(model) else ["mse"])
    weights = named_weights(model)
    kernels = [path for path in weights if path.endswith("kernel")]
    free = fp.MaskSet({path: np.ones(weights[path].shape, dtype=bool) for path in kernels})
    trained = [variable.numpy() for variable in model.weights]
    fp.lock(model, free)
    model.fit(x[:32], y[:32], verbose=0)  # so that the optimizer has its slots
    slots = [variable for variable in model.optimizer.variables if "learning_rate" not in variable.path]
    found = {}

    def tuned(masks: fp.MaskSet) -> tuple[float, float]:
        for variable, value in zip(model.weights, trained, strict=True):
            variable.assign(value)
        for slot in slots:
            slot.assign(np.zeros(slot.shape, slot.dtype))
        fp.relock(model, masks & free)
        before = _metric(model, data)
        keras.utils.set_random_seed(seed)
        model.fit(x, y, epochs=chosen.epochs, batch_size=case.batch_size, verbose=0)
        return before, _metric(model, data)

    found["0", "none locked"] = (100.0, *tuned(free))
    for sparsity in chosen.sparsities.split(","):
        for way in chosen.ways.split(","):
            options = dict(WAYS[way])
            if "paths" in options:
                options["paths"] = _of_kinds(model, options["paths"])
            for variable, value in zip(model.weights, trained, strict=True):
                variable.assign(value)
            masks = fp.select(model, float(sparsity), data=(x, y), **options)
            alive = alive_channels(model, masks) or {}
            fewest = 100 * min(float(flags.mean()) for flags in alive.values())
            found[sparsity, way] = (fewest, *tuned(masks))
    return found


def _of_kinds(model: Any, kinds: tuple[str, ...]) -> list[str]:
    kind = {path: weight.kind for path, weight in weights_of(model).items()}
    return [path for path in kind if kind[path] in kinds] or [path for path in kind if kind[path] == "dense"]


def _counts(model: Any) -> bool:
    return "mean_squared_error" not in str(model.loss)


def _metric(model: Any, data: Arrays) -> float:
    value = float(model.evaluate(data["x_test"], data["y_test"], verbose=0)[-1])
    return 100 * value if _counts(model) else value


def _spread(values: tuple[float, ...]) -> str:
    mean, spread = float(np.mean(values)), float(np.std(values))
    digits = 2 if mean > 1 else 4
    return f"{mean:.{digits}f} ± {spread:.{digits}f}"


if __name__ == "__main__":
    main()
