"""The contract of an hls4ml project, for every backend, io type, strategy and network; a row is one network.

Run as a program, `python tests/contract/hls_contract.py`, it tries the whole table and prints it in Markdown.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import layers as kl

import fpgaprune as fp
from fpgaprune.backends import BACKENDS
from fpgaprune.design import IO_TYPES, STRATEGIES
from fpgaprune.errors import FpgaPruneError, HlsError, UnsupportedLayerError
from fpgaprune.hls import HlsProject, StrategyWarning
from fpgaprune.lowering import lower
from fpgaprune.values import named_weights
from tests.called import called


def mlp() -> Any:
    return keras.Sequential(
        [
            keras.Input((12,), name="samples"),
            kl.Dense(8, activation="relu", name="first"),
            kl.Dense(6, activation="relu", name="second"),
            kl.Dense(4, name="head"),
        ],
        name="mlp",
    )


def cnn() -> Any:
    return keras.Sequential(
        [
            keras.Input((8, 8, 2), name="images"),
            kl.Conv2D(4, 3, activation="relu", name="first"),
            kl.MaxPooling2D(name="pool"),
            kl.Conv2D(4, 3, use_bias=False, name="second"),
            kl.BatchNormalization(name="norm"),
            kl.ReLU(name="norm_relu"),
            kl.Flatten(name="flat"),
            kl.Dense(4, name="head"),
        ],
        name="cnn",
    )


def residual() -> Any:
    image = keras.Input((6, 6, 2), name="images")
    stem = kl.Conv2D(4, 3, padding="same", activation="relu", name="first")(image)
    path = kl.Conv2D(4, 3, padding="same", activation="relu", name="second")(stem)
    path = kl.Conv2D(4, 3, padding="same", name="third")(path)
    out = kl.Activation("relu", name="sum_relu")(kl.Add(name="sum")([stem, path]))
    out = kl.GlobalMaxPooling2D(name="largest")(out)
    return keras.Model(image, kl.Dense(4, name="head")(out), name="residual")


def depthwise() -> Any:
    return keras.Sequential(
        [
            keras.Input((8, 8, 2), name="images"),
            kl.Conv2D(4, 3, activation="relu", name="first"),
            kl.DepthwiseConv2D(3, name="second"),
            kl.BatchNormalization(name="norm"),
            kl.ReLU(name="norm_relu"),
            kl.Conv2D(4, 1, activation="relu", name="point"),
            kl.Flatten(name="flat"),
            kl.Dense(4, name="head"),
        ],
        name="depthwise",
    )


def conv1d() -> Any:
    return keras.Sequential(
        [
            keras.Input((16, 2), name="series"),
            kl.Conv1D(4, 3, activation="relu", name="first"),
            kl.MaxPooling1D(name="pool"),
            kl.Conv1D(4, 3, padding="same", activation="relu", name="second"),
            kl.GlobalMaxPooling1D(name="largest"),
            kl.Dense(4, name="head"),
        ],
        name="conv1d",
    )


NETWORKS: dict[str, Callable[[], Any]] = {f.__name__: f for f in (mlp, cnn, residual, depthwise, conv1d)}


@dataclass(frozen=True)
class Case:
    """One place in the table."""

    backend: str
    io_type: str
    strategy: str
    network: str

    def __str__(self) -> str:
        return f"{self.backend}-{self.io_type}-{self.strategy}-{self.network}"

    @property
    def refusal(self) -> str | None:
        """Part of the message with which the case is refused; None where a project is made."""
        backend = BACKENDS[self.backend]
        if self.strategy not in backend.strategies:
            return "has no strategy"
        if self.io_type not in backend.io_types:
            return "has no io_type"
        if self.backend == "Libero" and self.network != "mlp":
            return "has templates for"
        parallel_or_catapult = self.io_type == "io_parallel" or self.backend == "Catapult"
        if self.network == "depthwise" and parallel_or_catapult and self.strategy == "resource":
            return "strategy 'resource' has no template in"
        if self.strategy == "resource_unrolled" and self.io_type == "io_parallel" and self.network != "mlp":
            return "has no template in io_parallel"
        return None


CASES = [Case(*place) for place in product(BACKENDS, IO_TYPES, STRATEGIES, NETWORKS)]
# Written and read back in every run: each backend, io type, strategy and network at least once, but for
# distributed_arithmetic: da4ml compiles for minutes at its first use; tests/golden cover it.
QUICK = [
    Case("Vivado", "io_parallel", "latency", "residual"),
    Case("Vitis", "io_stream", "resource_unrolled", "cnn"),
    Case("VivadoAccelerator", "io_stream", "resource", "conv1d"),
    Case("oneAPI", "io_stream", "resource", "cnn"),
    Case("Catapult", "io_stream", "latency", "depthwise"),
    Case("Libero", "io_parallel", "resource", "mlp"),
    Case("Vitis", "io_parallel", "resource_unrolled", "mlp"),
    Case("VivadoAccelerator", "io_parallel", "latency", "mlp"),
    Case("Vitis", "io_stream", "latency", "depthwise"),
]
# Compiled in every run too; of Vitis, tests/integration compile networks of many layers.
COMPILED = [
    Case("Catapult", "io_parallel", "resource", "mlp"),
]


def build(case: Case) -> tuple[Any, fp.MaskSet, fp.Target, np.ndarray]:
    """The model of `case` with locked weights, its locks, its target, and samples."""
    keras.utils.set_random_seed(3)
    rng = np.random.default_rng(3)
    model = NETWORKS[case.network]()
    for path, variable in named_weights(model).items():
        values = rng.normal(size=variable.shape) * 0.4
        variable.assign(np.abs(values) + 0.5 if path.endswith(("variance", "gamma")) else values)
    kernels = {path: v for path, v in named_weights(model).items() if path.endswith("kernel")}
    # Whole blocks and single weights: half of the first kernel, a third of the others.
    masks = fp.MaskSet({path: rng.random(v.shape) > (0.5 if "first" in path else 0.33) for path, v in kernels.items()})
    for path, mask in masks.items():
        kernels[path].assign(np.where(mask, kernels[path].numpy(), np.float32(0)))
    reuse = 2 if case.strategy in ("resource", "resource_unrolled") else 1
    target = fp.Target.of("xc7z020clg400-1", io_type=case.io_type, strategy=case.strategy, reuse_factor=reuse)
    x = rng.normal(size=(24, *model.input_shape[1:])).astype("float32")
    return model, masks, replace(target, backend=case.backend), x


def make(case: Case, folder: Path) -> tuple[HlsProject, fp.MaskSet, np.ndarray]:
    """The project of `case`, its locks, and samples."""
    model, masks, target, x = build(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StrategyWarning)
        return fp.to_hls(model, target, x, folder), masks, x


def check_written(case: Case, folder: Path) -> tuple[HlsProject, np.ndarray]:
    """The project is there, its files hold the design's integers, and every locked weight is zero in them."""
    project, masks, x = make(case, folder)
    link = fp.certify(project, masks).require().links[0]
    assert link.locked == masks.locked_count
    assert not link.not_carried
    assert sum(layer.zero for layer in link.layers) >= masks.locked_count
    assert {layer.layer for layer in link.layers} == {p.partition("/")[0] for p in masks}
    assert not project.design.backend or (folder / "README.md").read_text().startswith("# network")
    return project, x


def check_compiled(case: Case, project: HlsProject, x: np.ndarray) -> None:
    """The compiled C simulation gives the emulator's bits, and they are near to what Keras gives."""
    script = project.path / "build_lib.sh"
    script.write_text(script.read_text().replace("-O1", "-O0"))
    compiled = project.compile(600).predict(x)
    emulated = fp.emulate(project.design, x)
    assert compiled.tobytes() == emulated.tobytes(), "the compiled project gives other bits than the emulator"
    # With BatchNorm folded and weights rounded, all that is left is rounding in between.
    model, _, target, _ = build(case)
    wanted = called(lower(model, target, x, None, "network").folded, x)
    assert np.abs(compiled - wanted).max() <= 0.05 * np.abs(wanted).max(), "the hardware is far from Keras"
    assert len(np.unique(compiled)) > 4


def outcome(case: Case) -> str:
    """What became of `case`, in a word for the table."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            project, x = check_written(case, Path(folder) / "hls")
        except (HlsError, UnsupportedLayerError) as error:
            expected = case.refusal is not None and case.refusal in str(error)
            return "refused" if expected else f"UNEXPECTED {error}"
        if case.refusal is not None:
            return "NOT REFUSED"
        if not BACKENDS[case.backend].compiles:
            return "written"
        try:
            check_compiled(case, project, x)
        except (FpgaPruneError, AssertionError) as error:
            return f"DIFFERS {error}"
        return "equal"


def table(cases: list[Case], told: Callable[[str], None]) -> Iterator[str]:
    """The lines of the table, one for each backend, io type and strategy."""
    yield "| backend | io | strategy | " + " | ".join(NETWORKS) + " |"
    yield "|---|---|---|" + "---|" * len(NETWORKS)
    for backend, io_type, strategy in dict.fromkeys((c.backend, c.io_type, c.strategy) for c in cases):
        if strategy not in BACKENDS[backend].strategies or io_type not in BACKENDS[backend].io_types:
            continue
        cells = []
        for network in NETWORKS:
            case = Case(backend, io_type, strategy, network)
            cells.append(outcome(case))
            told(f"{case}: {cells[-1]}\n")
        yield f"| {backend} | {io_type} | {strategy} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    chosen = [case for case in CASES if not sys.argv[1:] or case.backend in sys.argv[1:]]
    for line in list(table(chosen, sys.stderr.write)):
        sys.stdout.write(line + "\n")
