"""What `fpgaprune fit` finds, beside uniform sparsity, the recipes of `examples/` and HGQ2, in the same processor time.

    python tests/benchmarks/bench_fit_against.py                       # small: shows that it runs
    python tests/benchmarks/bench_fit_against.py FOLDER [--networks mlp,cnn] [--seeds 0,1,2] [--minutes 4]
    python tests/benchmarks/bench_fit_against.py FOLDER --ways uniform,recipe,hgq --budget 4.5
    python tests/benchmarks/bench_fit_against.py FOLDER --table           # what is in it, nothing else

A row is one network with one seed. `fit` gets the trained network, its data, a part, an interval and a largest loss,
as a user types them. Uniform sparsity is a flow that locks the same share of each layer, those of the smallest
magnitude, and rounds to so many bits while it is fine-tuned. For each number of bits it goes up while it loses little,
and down when it loses too much. The recipe is the flow file of `examples/` for such a network, with more or fewer
zeros in the same way. HGQ2 trains the bits of every weight at a higher or a lower price (`fit_hgq.py`); a Dense network
of it is counted as alkaid's Verilog, others as ours. Each ends when it has taken the processor time that `fit` took, or
`--budget` minutes; synthesis of its best networks comes on top. FOLDER keeps the result of each way. A network may lose
`--max-loss` and one standard error of its accuracy. These are chosen on the test images on which they are shown, which
flatters them; `fit` does not see the test images before its last choice. HGQ2 and alkaid must be installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import flow_files
import keras
import numpy as np
from bench_trained_bits import small_mnist
from select_network import MNIST

PART = "xc7z020clg400-1"
WAYS = ("fit", "uniform", "recipe", "hgq")
SAMPLES = 20_000
SPARSITIES = (0.3, 0.4, 0.5, 0.6, 0.68, 0.75, 0.8, 0.85, 0.9)
# Bits of weights and of activations.
WIDTHS = ((6, 6), (5, 4), (8, 8))
# HGQ2's price of a bit, from dear networks to cheap ones.
PRICES = (1e-6, 2e-6, 4e-6, 8e-6, 1.5e-5, 3e-5, 6e-5, 1.2e-4, 2.4e-4)
layers = keras.layers


@dataclass(frozen=True)
class Run:
    """The best network of one way.

    Attributes:
        accuracy: in % of the test images.
        lut: by open synthesis.
        dsp: by open synthesis; None if alkaid made the Verilog, which has none.
        words: what it is.
    """

    accuracy: float
    lut: int
    dsp: int | None
    words: str


@dataclass(frozen=True)
class Cell:
    """What one way made of one network.

    Attributes:
        run: its best network; None if none loses so little.
        runs: how many it trained.
        minutes: processor time of the trainings.
    """

    run: Run | None
    runs: int
    minutes: float


def mlp() -> list[Any]:
    """64-32-32-10, as in the comparison with HGQ2."""
    hidden = [layers.Dense(32, activation="relu", name=f"d{number}") for number in (1, 2)]
    return [keras.Input((64,)), *hidden, layers.Dense(10, name="d3")]


def small() -> list[Any]:
    """64-8-10: shows that it runs."""
    return [keras.Input((64,)), layers.Dense(8, activation="relu", name="d1"), layers.Dense(10, name="d2")]


def cnn() -> list[Any]:
    """Two convolutions of 3 × 3 on 8 × 8 pixels."""
    return [
        keras.Input((8, 8, 1)),
        layers.Conv2D(8, 3, activation="relu", name="c1"),
        layers.Conv2D(12, 3, activation="relu", name="c2"),
        layers.MaxPooling2D(name="pool"),
        layers.Flatten(name="flat"),
        layers.Dense(10, name="out"),
    ]


def cnn1d() -> list[Any]:
    """The eight rows as a sequence of eight values."""
    return [
        keras.Input((8, 8)),
        layers.Conv1D(24, 3, padding="same", activation="relu", name="c1"),
        layers.Conv1D(24, 3, activation="relu", name="c2"),
        layers.Flatten(name="flat"),
        layers.Dense(10, name="out"),
    ]


def separable() -> list[Any]:
    """A convolution, then depthwise and pointwise ones."""
    return [
        keras.Input((8, 8, 1)),
        layers.Conv2D(12, 3, padding="same", activation="relu", name="c1"),
        layers.DepthwiseConv2D(3, name="dw2"),
        layers.Conv2D(16, 1, activation="relu", name="pw2"),
        layers.DepthwiseConv2D(3, name="dw3"),
        layers.Conv2D(24, 1, activation="relu", name="pw3"),
        layers.Flatten(name="flat"),
        layers.Dense(10, name="out"),
    ]


DENSE = ("small", "mlp")
# HGQ2 0.2 has no depthwise convolution.
WITHOUT_HGQ = ("separable",)
# Network, and most cycles between two samples.
NETWORKS: dict[str, tuple[Callable[[], list[Any]], int]] = {
    "small": (small, 1),
    "mlp": (mlp, 1),
    "cnn": (cnn, 100),
    "cnn1d": (cnn1d, 16),
    "separable": (separable, 100),
}


def main() -> None:
    """The table, a row for each network, seed and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="left out: one short run shows that it works")
    parser.add_argument("--networks", default="mlp,cnn,cnn1d,separable")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--minutes", type=float, default=4.0, help="of the search")
    parser.add_argument("--budget", type=float, help="processor minutes of every other way; those of fit if left out")
    parser.add_argument("--max-loss", type=float, default=0.5, help="per cent of the test images")
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args()
    if not MNIST.is_dir():
        print(f"skipped: {MNIST} with the files of MNIST is not there")
        return
    samples = SAMPLES
    if chosen.folder is None:
        chosen.folder, chosen.networks, chosen.seeds, chosen.minutes = Path("fit_against"), "small", "0", 0.5
        samples = 500
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for name in chosen.networks.split(","):
        for seed in (int(text) for text in chosen.seeds.split(",")):
            folder = chosen.folder / f"{name}_{seed}"
            if not chosen.table:
                folder.mkdir(exist_ok=True)
                work(folder, name, seed, samples, chosen)
    print(
        "| network | seed | trained | way | accuracy | LUT | DSP | what | runs | processor minutes | LUT, fit / this |"
    )
    print("|---|---:|---:|---|---:|---:|---:|---|---:|---:|---:|")
    for name in chosen.networks.split(","):
        for seed in (int(text) for text in chosen.seeds.split(",")):
            print("\n".join(rows(chosen.folder / f"{name}_{seed}", name, seed)))


def work(folder: Path, name: str, seed: int, samples: int, chosen: argparse.Namespace) -> None:
    """The folder has the result of each way that is asked for."""
    model, data, accuracy = trained(folder, name, seed, samples)
    for way in (way for way in WAYS if way in chosen.ways.split(",")):
        kept = folder / f"{way}.json"
        if kept.exists():
            continue
        if way == "fit":
            cell = fitted(folder, model, data, name, chosen)
        else:
            minutes = chosen.budget or read_cell(folder / "fit.json").minutes
            count = len(np.load(data)["y_test"])
            least = accuracy - (accuracy * (1 - accuracy) / count) ** 0.5 - chosen.max_loss / 100
            cell = ladder(way, folder, model, data, name, 100 * least, 60 * minutes)
        kept.write_text(json.dumps(asdict(cell), indent=1) + "\n")
        print(f"{name} {seed} {way}: {cell}", file=sys.stderr, flush=True)


def ladder(way: str, folder: Path, model: Path, data: Path, name: str, least: float, seconds: float) -> Cell:
    """What one of the other ways makes of a network that has `least` % at least."""
    if way == "hgq":
        if name in WITHOUT_HGQ or importlib.util.find_spec("hgq") is None:
            return Cell(None, 0, 0.0)
        steps = Ladder(folder, None, data, least, seconds)
        found = [steps.best(PRICES, lambda price: hgq(folder, name, model, data, price))]
    else:
        steps = Ladder(folder, model, data, least, seconds)
        flows = [lambda share: recipe(name, share)]
        if way == "uniform":
            flows = [lambda share, bits=bits: uniform(name, share, *bits) for bits in WIDTHS]
        found = [steps.best(SPARSITIES, flow) for flow in flows]
    good = [run for run in found if run is not None]
    return Cell(min(good, key=lambda run: run.lut, default=None), steps.runs, steps.spent / 60)


def rows(folder: Path, name: str, seed: int) -> list[str]:
    """The rows of one network, for the ways whose results are there."""
    found = {way: read_cell(folder / f"{way}.json") for way in WAYS if (folder / f"{way}.json").exists()}
    accuracy = json.loads((folder / "trained.json").read_text())
    mine = found["fit"].run if "fit" in found else None
    made = []
    for way, cell in found.items():
        run = cell.run
        said = ["–", "–", "–", "none loses so little" if cell.runs else "has no such layer"]
        if run is not None:
            dsp = "–" if run.dsp is None else f"{run.dsp}"
            said = [f"{run.accuracy:.2f} %", f"{run.lut:,}", dsp, run.words]
        ratio = "" if way == "fit" or run is None or mine is None else f"{mine.lut / run.lut:.2f}"
        cells = [name, f"{seed}", f"{100 * accuracy:.2f} %", way, *said, f"{cell.runs}", f"{cell.minutes:.1f}", ratio]
        made.append(f"| {' | '.join(cells)} |")
    return made


def read_cell(path: Path) -> Cell:
    """The result of a way that `path` holds."""
    content = json.loads(path.read_text())
    return Cell(**{**content, "run": None if content["run"] is None else Run(**content["run"])})


def trained(folder: Path, name: str, seed: int, samples: int) -> tuple[Path, Path, float]:
    """The trained network, its data, and its accuracy on the test images."""
    path, data = folder / f"{name}.keras", folder / "mnist8.npz"
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(NETWORKS[name][0](), name=name)
    if not data.exists():
        arrays = small_mnist()
        shape = model.input_shape[1:]
        found = {key: part[:samples] if key.endswith("train") else part for key, part in arrays.items()}
        np.savez(data, **{key: part.reshape(-1, *shape) if key[0] == "x" else part for key, part in found.items()})
    with np.load(data) as arrays:
        if not path.exists():
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model.compile(keras.optimizers.Adam(1e-3), loss, metrics=["accuracy"])
            model.fit(arrays["x_train"], arrays["y_train"], batch_size=32, epochs=20, verbose=0)
            model.save(path)
        model = keras.saving.load_model(path)
        _, accuracy = model.evaluate(arrays["x_test"], arrays["y_test"], batch_size=500, verbose=0)
    (folder / "trained.json").write_text(f"{accuracy}\n")
    return path, data, float(accuracy)


def fitted(folder: Path, model: Path, data: Path, name: str, chosen: argparse.Namespace) -> Cell:
    """The answer of `fpgaprune fit`."""
    out, began = folder / "fit", processor_seconds()
    if not (out / "front.json").exists():
        command = [sys.executable, "-m", "fpgaprune", "fit", str(model), "--data", str(data), "--part", PART]
        command += ["--route", "verilog", "--interval-cycles", str(NETWORKS[name][1]), "--latency-us", "10"]
        command += ["--max-loss", f"{chosen.max_loss}%", "--minutes", str(chosen.minutes), "--out", str(out), "--quiet"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode not in (0, 1):
            raise SystemExit(f"the search failed: {' '.join(command)}\n{ended.stderr}")
    answer = json.loads((out / "front.json").read_text())
    best = answer["best"]
    words = best["knobs"] if best["meets_limits"] else f"no limit kept: {best['knobs']}"
    run = Run(100 * best["value"], best["measured"]["lut"], best["measured"]["dsp"], words)
    return Cell(run, len(answer["points"]), (processor_seconds() - began) / 60)


def uniform(name: str, sparsity: float, weight_bits: int, activation_bits: int) -> dict[str, Any]:
    """The same share of each layer locked."""
    return {
        "name": f"uniform_{round(100 * sparsity)}_{weight_bits}_{activation_bits}",
        "target": {"io_type": "io_parallel" if NETWORKS[name][1] == 1 else "io_stream"},
        "select": {"sparsity": sparsity, "granularity": "weight", "scope": "layer", "criterion": "l1"},
        "finetune": {"quantised": True, "schedule": {"kind": "polynomial_decay"}},
        "hls": {"weight_bits": weight_bits, "activation_bits": activation_bits},
    }


def recipe(name: str, sparsity: float) -> dict[str, Any]:
    """The flow file of the examples for a Dense or a convolutional network."""
    file = "trained_bits" if name in DENSE else "convolution_bits"
    return flow_files.example(file, name=f"recipe_{round(100 * sparsity)}", select={"sparsity": sparsity})


def hgq(folder: Path, name: str, model: Path, data: Path, price: float) -> dict[str, Any]:
    """HGQ2's network at this price, taken over with every bit."""
    run = f"hgq_{price:g}".replace("-", "_").replace(".", "_")
    out = folder / f"{run}.keras"
    if not out.exists():
        script = str(Path(__file__).with_name("fit_hgq.py"))
        asked = [str(model), str(data), str(price), str(NETWORKS[name][1]), str(out)]
        subprocess.run([sys.executable, script, *asked], check=True, capture_output=True)
    return {
        "name": run,
        "target": {"io_type": "io_parallel" if NETWORKS[name][1] == 1 else "io_stream"},
        "train": {"model": str(out.resolve())},
        "select": {"zeros": True},
        "finetune": {"epochs": 0},
        "hls": {"precision": "widths"},
    }


@dataclass
class Ladder:
    """Runs of one network with more and more zeros, or at higher and higher prices, until its time is over."""

    folder: Path
    model: Path | None
    """That every run begins with; None if each flow names its own."""
    data: Path
    least: float
    seconds: float
    spent: float = 0.0
    runs: int = 0

    def best(self, steps: Sequence[float], flow_of: Callable[[float], dict[str, Any]]) -> Run | None:
        """The last of the `steps` at which the accuracy is at least `least` %, found in halves; None if none is."""
        low, high, best = 0, len(steps), None
        while low < high and self.spent < self.seconds:
            middle = (low + high) // 2
            began = processor_seconds()
            flow = flow_files.merged(
                flow_of(steps[middle]),
                {
                    **({} if self.model is None else {"train": {"model": str(self.model.resolve())}}),
                    "data": {"source": str(self.data.resolve())},
                    "target": {"part": PART},
                    "hls": {"simulate": 0},
                    "measure": {"families": [], "simulate": 0},
                },
            )
            kept = self.folder / f"{flow['name']}.seconds"
            out = flow_files.run(flow, self.folder)
            if not kept.exists():
                kept.write_text(f"{processor_seconds() - began:.1f}\n")
            self.spent += float(kept.read_text())
            self.runs += 1
            accuracy = 100 * flow_files.results(out, "hls")["emulation"]["value"]
            if accuracy >= self.least:
                low, best = middle + 1, (flow, accuracy)
            else:
                high = middle
        if best is None:
            return None
        flow, accuracy = best
        if flow["name"].startswith("hgq") and flow["target"]["io_type"] == "io_parallel":
            return Run(accuracy, alkaid(Path(flow["train"]["model"])), None, f"{flow['name']}, alkaid's Verilog")
        out = flow_files.run(flow_files.merged(flow, {"measure": {"families": ["xc7"]}}), self.folder)
        measured = json.loads((out / "report.json").read_text())["measured"]["synth(open)"]["xc7"]["whole"]["cells"]
        return Run(accuracy, measured["lut"], measured["dsp"], words_of(flow))


def words_of(flow: dict[str, Any]) -> str:
    """What is special of a run."""
    if flow["name"].startswith("hgq"):
        return str(flow["name"])
    bits = flow["hls"]
    return f"{flow['select']['sparsity']:.0%} locked, {bits['weight_bits']} and {bits['activation_bits']} bits"


def alkaid(model: Path) -> int:
    """LUTs of alkaid's Verilog of the network in `model`, counted by the same synthesis."""
    script = Path(__file__).with_name("mnist_alkaid.py")
    command = [sys.executable, str(script), str(model), str(model.with_suffix(".rtl")), "whole"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(ended.stdout.split(" LUT")[0].split()[-1].replace(",", ""))


def processor_seconds() -> float:
    """What the processes that this one has started and that have ended took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    main()
