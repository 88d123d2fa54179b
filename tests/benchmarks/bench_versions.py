"""Processor seconds of four things that users wait for, in this checkout and in another, interleaved in one run.

    python tests/benchmarks/bench_versions.py [OTHER_CHECKOUT] [--rounds 3] [--minutes 1]

Both checkouts use the interpreter and the packages that run this script. Without another checkout, this one is
compared with itself: the ratios then show the noise of the machine. Processor time of all processes that a command
starts is counted, because it varies less than wall-clock time on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
PART = "gw2a-55"

NETWORK = """
import sys, keras, numpy as np
from sklearn.datasets import load_digits
keras.utils.set_random_seed(1)
digits = load_digits()
x, y = (digits.images / 16).astype(np.float32)[..., None], digits.target
layers = keras.layers
net = keras.Sequential([keras.Input((8, 8, 1)), layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(),
    layers.Flatten(), layers.Dense(24, activation="relu"), layers.Dense(10, activation="softmax")])
net.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
net.fit(x[:1400], y[:1400], epochs=12, verbose=0)
net.save(sys.argv[1])
"""

MAKE_DESIGN = """
import sys, time, keras, numpy as np, fpgaprune as fp
net = keras.models.load_model(sys.argv[1])
x = np.random.default_rng(0).random((200, 8, 8, 1)).astype(np.float32)
target = fp.Target.of("xc7z020clg400-1")
fp.make_design(net, target, x)
start = time.process_time()
for _ in range(5):
    fp.make_design(net, target, x)
print((time.process_time() - start) / 5)
"""


def python(checkout: Path, arguments: list[str], codes: tuple[int, ...] = (0,)) -> tuple[str, str, float]:
    """Standard output, standard error and processor seconds of Python with the package of `checkout`."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "TF_CPP_MIN_LOG_LEVEL": "3"}
    # -P: the folder from which this script is started holds a package of the same name.
    command = [sys.executable, "-P", *arguments]
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in codes:
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
    return ended.stdout, ended.stderr, end.ru_utime - start.ru_utime + end.ru_stime - start.ru_stime


def tasks(network: Path, minutes: float) -> dict[str, Callable[[Path, Path], float]]:
    """For each task a function of a checkout and of a new folder, which returns its processor seconds."""
    digits = [str(network), "--data", "digits", "--part", PART]

    def help_text(checkout: Path, _: Path) -> float:
        return python(checkout, ["-m", "fpgaprune", "--help"])[2]

    def make_design(checkout: Path, _: Path) -> float:
        return float(python(checkout, ["-c", MAKE_DESIGN, str(network)])[0].split()[-1])

    def run(checkout: Path, out: Path) -> float:
        words = ["-m", "fpgaprune", "run", *digits, "--sparsity", "0.5", "--epochs", "1", "--out", str(out)]
        return python(checkout, words, (0, 1))[2]

    def trial(checkout: Path, out: Path) -> float:
        words = ["-m", "fpgaprune", "fit", *digits, "--max-loss", "2%", "--route", "verilog", "--out", str(out)]
        _, lines, used = python(checkout, [*words, "--minutes", str(minutes), "--json"], (0, 1))
        return used / len([line for line in lines.splitlines() if line.startswith("{")])

    return {
        "fpgaprune --help": help_text,
        "make_design": make_design,
        f"run, {PART}": run,
        "fit --route verilog, a trial": trial,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", nargs="?", type=Path, default=HERE)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1.0, help="of each search")
    asked = parser.parse_args()
    print("| task | other, s | this, s | this / other |\n|---|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        network = Path(folder) / "net.keras"
        python(HERE, ["-c", NETWORK, str(network)])
        for number, (name, task) in enumerate(tasks(network, asked.minutes).items()):
            both: tuple[list[float], list[float]] = ([], [])
            for turn in range(asked.rounds):
                for which, checkout in enumerate((asked.other.resolve(), HERE)):
                    both[which].append(task(checkout, Path(folder) / f"{number}_{turn}_{which}"))
            old, new = (statistics.median(found) for found in both)
            ratio = statistics.median(after / before for before, after in zip(*both, strict=True))
            print(f"| {name} | {old:.2f} | {new:.2f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
