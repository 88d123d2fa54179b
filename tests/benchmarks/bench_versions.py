"""Processor seconds of four things that users wait for, in this checkout and in another, interleaved in one run.

    python tests/benchmarks/bench_versions.py [OTHER_CHECKOUT] [--rounds 3] [--trials 6]

Both checkouts use the interpreter and the packages that run this script. Without another checkout, this one is
compared with itself: the ratios then show the noise of the machine. Processor time of all processes that a command
starts is counted, because it varies less than wall-clock time on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import psutil

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


def used(process: psutil.Process) -> float:
    """Processor seconds so far of a process that runs, and of all that it started, ended ones too."""
    return sum(sum(each.cpu_times()[:4]) for each in [process, *process.children(recursive=True)])


def until_trial(checkout: Path, arguments: list[str], trials: int) -> float:
    """Processor seconds of `fit` until it reported that many trials; the search is then stopped."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-P", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    ) as search:
        assert search.stderr is not None
        found, seconds, last = 0, 0.0, ""
        for last in search.stderr:
            found += last.startswith("{")
            if found == trials:
                seconds = used(psutil.Process(search.pid))
                search.send_signal(signal.SIGINT)
                break
        else:
            raise SystemExit(f"{' '.join(command)} reported {found} trials, not {trials}:\n{last}")
        search.stderr.read()
    return seconds


def tasks(network: Path, trials: int) -> dict[str, Callable[[Path, Path], float]]:
    """For each task a function of a checkout and of a new folder, which returns its processor seconds."""
    digits = [str(network), "--data", "digits", "--part", PART]

    def help_text(checkout: Path, _: Path) -> float:
        return python(checkout, ["-m", "fpgaprune", "--help"])[2]

    def make_design(checkout: Path, _: Path) -> float:
        return float(python(checkout, ["-c", MAKE_DESIGN, str(network)])[0].split()[-1])

    def run(checkout: Path, out: Path) -> float:
        words = ["-m", "fpgaprune", "run", *digits, "--sparsity", "0.5", "--epochs", "1", "--out", str(out)]
        return python(checkout, words, (0, 1))[2]

    def search(checkout: Path, out: Path) -> float:
        words = ["-m", "fpgaprune", "fit", *digits, "--max-loss", "2%", "--route", "verilog", "--out", str(out)]
        return until_trial(checkout, [*words, "--minutes", "10", "--json"], trials) / trials

    return {
        "fpgaprune --help": help_text,
        "make_design": make_design,
        f"run, {PART}": run,
        f"fit --route verilog, a trial of the first {trials}": search,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", nargs="?", type=Path, default=HERE)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--trials", type=int, default=6, help="of each search")
    parser.add_argument("--only", default="", help="tasks whose name begins so")
    asked = parser.parse_args()
    print("| task | other, s | this, s | this / other |\n|---|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        network = Path(folder) / "net.keras"
        python(HERE, ["-c", NETWORK, str(network)])
        for number, (name, task) in enumerate(tasks(network, asked.trials).items()):
            if not name.startswith(asked.only):
                continue
            both: tuple[list[float], list[float]] = ([], [])
            for turn in range(asked.rounds):
                for which, checkout in enumerate((asked.other.resolve(), HERE)):
                    both[which].append(task(checkout, Path(folder) / f"{number}_{turn}_{which}"))
            old, new = (statistics.median(found) for found in both)
            ratio = statistics.median(after / before for before, after in zip(*both, strict=True))
            print(f"| {name} | {old:.2f} | {new:.2f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
