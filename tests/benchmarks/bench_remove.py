"""What removal does to networks that nobody here wrote, and what it costs.

python tests/benchmarks/bench_remove.py table [NAME ...]   pruned keras.applications, as a Markdown table
python tests/benchmarks/bench_remove.py cost               ResNet50 with half its filters dead: seconds, memory
python tests/benchmarks/bench_remove.py growth             stacks of 10, 100 and 1,000 layers
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
from keras import layers

import fpgaprune as fp
from fpgaprune.values import named_weights

# Smallest input sizes, in pixels, that each network takes here.
SIZES = {
    "VGG16": 32,
    "ResNet50": 32,
    "ResNet50V2": 32,
    "MobileNetV2": 32,
    "MobileNetV3Small": 32,
    "DenseNet121": 32,
    "EfficientNetB0": 32,
    "InceptionV3": 75,
    "Xception": 71,
    "NASNetMobile": 32,
}


def application(name: str, size: int | None = None, seed: int = 0) -> Any:
    """A network of `keras.applications` with random weights, biases and scales, and statistics of random data."""
    keras.utils.set_random_seed(seed)
    size = size or SIZES[name]
    model = getattr(keras.applications, name)(
        weights=None, input_shape=(size, size, 3), classes=10, classifier_activation=None
    )
    generator = np.random.default_rng(seed)
    for path, variable in named_weights(model).items():
        shape = tuple(variable.shape)
        if path.endswith("kernel"):
            fan_in = np.prod(shape[:-2]) * (1 if shape[-1] == 1 or "depthwise" in path else shape[-2])
            variable.assign(generator.normal(size=shape) * np.sqrt(2.0 / fan_in))
        elif path.endswith("gamma"):
            variable.assign(generator.uniform(0.5, 1.5, shape))
        elif path.endswith(("bias", "beta")):
            variable.assign(generator.normal(size=shape) * 0.2)
    return model


def prune(model: Any, fraction: float, granularity: str, seed: int = 0) -> Any:
    """`model`, with a random `fraction` of all kernels or filters at zero and statistics that fit what is left."""
    generator = np.random.default_rng(seed)
    kernels = [v for path, v in named_weights(model).items() if path.endswith("kernel")]
    norms = [layer for layer in model.layers if isinstance(layer, layers.BatchNormalization)]
    for variable in kernels[:-1]:  # the classifier stays whole
        value = np.asarray(variable).copy()
        depthwise = value.ndim > 2 and value.shape[-1] == 1
        if granularity == "filter":
            axis = -2 if depthwise else -1
            dead = generator.random(value.shape[axis]) < fraction
            value[(..., dead, slice(None)) if depthwise else (..., dead)] = 0.0
        else:
            value[..., generator.random(value.shape[-2:]) < fraction] = 0.0
        # Without normalisation what is left must carry the signal on.
        variable.assign(value if norms else value / np.sqrt(1.0 - fraction))
    _fit_statistics(model, norms, generator)
    return model


def _fit_statistics(model: Any, norms: list[Any], generator: np.random.Generator) -> None:
    if not norms:
        return
    momentum = [layer.momentum for layer in norms]
    for layer in norms:
        layer.momentum = 0.0
    model(generator.normal(size=(8, *model.input_shape[1:])).astype("float32"), training=True)
    for layer, value in zip(norms, momentum, strict=True):
        layer.momentum = value


def remove_and_compare(model: Any, samples: int = 3, seed: int = 0) -> tuple[Any, Any]:
    """The plan for `model` and the comparison of what it leaves, both in float64."""
    plan = fp.plan_removal(model, strict=True)
    small = fp.apply_removal(model, plan, dtype="float64")
    inputs = np.random.default_rng(seed).normal(size=(samples, *model.input_shape[1:])).astype("float32")
    inputs[0] = 0.0
    return plan, fp.equivalence(model, small, inputs, tolerance=1e-9)


def table(names: list[str]) -> Iterator[str]:
    """Rows of a Markdown table, one for each network, granularity and fraction."""
    yield "| network | input | zeroed | channels | parameters | multiplications | largest relative error | variation |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in names or list(SIZES):
        for granularity in ("filter", "kernel"):
            for fraction in (0.3, 0.5, 0.7):
                keras.utils.clear_session()
                plan, found = remove_and_compare(prune(application(name), fraction, granularity))
                pairs = (plan.channel_counts, plan.parameters, plan.multiplications)
                counts = " | ".join(f"{before:,} → {after:,}" for before, after in pairs)
                yield (
                    f"| {name} | {SIZES[name]} | {fraction:.0%} of {granularity}s | {counts} "
                    f"| {found.max_relative_error:.1e} | {found.variation:.2g} |"
                )


def cost() -> Iterator[str]:
    """Seconds and memory for ResNet50 at its own input size with half its filters dead."""
    model = prune(application("ResNet50", 224), 0.5, "filter")
    size = sum(int(np.prod(v.shape)) * 4 for v in model.weights)
    fp.plan_removal(prune(application("MobileNetV3Small"), 0.5, "filter"))  # what is only loaded or traced once
    before = _peak()
    plan, plan_s = _timed(lambda: fp.plan_removal(model))
    planned = _peak()
    _, apply_s = _timed(lambda: fp.apply_removal(model, plan))
    applied = _peak()
    yield f"ResNet50, {size / 2**20:.0f} MiB of weights, half its filters dead"
    yield f"plan  {plan_s:.2f} s, peak memory +{(planned - before) / size:.2f} x the model"
    yield f"apply {apply_s:.2f} s, peak memory +{(applied - before) / size:.2f} x the model"


def growth() -> Iterator[str]:
    """Seconds for stacks of convolutions with half their filters dead."""
    sys.setrecursionlimit(20_000)  # Keras follows a graph by recursion
    yield "| layers | plan, s | apply, s |"
    yield "|---|---|---|"
    for depth in (10, 100, 1000):
        keras.utils.clear_session()
        stack = [layers.Conv2D(8, 3, padding="same", activation="relu") for _ in range(depth)]
        model = keras.Sequential([keras.Input((8, 8, 3)), *stack])
        generator = np.random.default_rng(0)
        for layer in stack[:-1]:
            value = generator.normal(size=layer.kernel.shape) * 0.2
            value[..., ::2] = 0.0
            layer.kernel.assign(value)
        plan, plan_s = _timed(lambda: fp.plan_removal(model))  # noqa: B023
        _, apply_s = _timed(lambda: fp.apply_removal(model, plan))  # noqa: B023
        yield f"| {depth:,} | {plan_s:.3f} | {apply_s:.2f} |"


def _timed(function: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(arguments: list[str]) -> None:
    what, *names = arguments or ["cost"]
    rows = {"table": lambda: table(names), "cost": cost, "growth": growth}[what]()
    for row in rows:
        sys.stdout.write(row + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
