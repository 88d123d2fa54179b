"""Accuracy on MNIST after equal fine-tuning, by criterion, schedule and sparsity, with TF-MOT beside them.

    python tests/benchmarks/bench_select.py                  # one seed, 1,000 images, 75 %: shows that it runs
    python tests/benchmarks/bench_select.py --full results   # all of it; goes on from what is in the folder
    python tests/benchmarks/bench_select.py --table results  # what is in the folder, as Markdown

Every way starts from the same trained network of its seed, sees the same batches in the same order at the same rate
for the same number of steps, and is measured on the same 10,000 test images. TF-MOT prunes single weights of the same
convolutions, since it has no kernels of convolutions as units; it runs in a process of its own, from the same weights,
with the schedule that the gradual ways have.

The images stand in `../shared/data/mnist` beside the checkout; without them nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).parents[2]))

from select_network import MNIST, read_mnist

SPARSITIES = (0.9, 0.75, 0.5)
SEEDS = (0, 1, 2)
TRAINED_EPOCHS = 4
EPOCHS = 1
TRAINED = "unpruned, as trained"
LONGER = "unpruned, trained on"


def main() -> None:
    """Measures, or prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", type=Path, metavar="FOLDER", help="three seeds, 60,000 images, all sparsities")
    parser.add_argument("--table", type=Path, metavar="FOLDER", help="print what is there")
    parser.add_argument("--only", nargs="+", help="ways whose name holds one of these texts")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="of fine-tuning")
    parser.add_argument("--sparsities", type=float, nargs="+", default=SPARSITIES)
    arguments = parser.parse_args()
    if arguments.table:
        print(table(read_rows(arguments.table / "rows.jsonl"), arguments.epochs))
    elif not MNIST.is_dir():
        print("accuracy is not measured: the MNIST images are missing at ../shared/data/mnist")
    elif arguments.full:
        arguments.full.mkdir(parents=True, exist_ok=True)
        measure(read_mnist(60000), SEEDS, arguments)
        print(table(read_rows(arguments.full / "rows.jsonl"), arguments.epochs))
    else:
        arguments.sparsities = (0.75,)
        measure(read_mnist(1000), SEEDS[:1], arguments)


def measure(data: Any, seeds: tuple[int, ...], arguments: argparse.Namespace) -> None:
    """A row for each way, sparsity and seed is printed and added to `folder/rows.jsonl`, unless it stands there."""
    from select_ways import Bench, ways

    folder, epochs = arguments.full, arguments.epochs
    file = folder / "rows.jsonl" if folder is not None else None
    known = {(row["way"], row["sparsity"], row["seed"], row["epochs"]) for row in read_rows(file)}
    benches: dict[int, Bench] = {}

    def bench(seed: int) -> Bench:
        if seed not in benches:
            cache = folder / f"trained-{seed}.npz" if folder is not None else None
            benches[seed] = Bench(data, seed, epochs, TRAINED_EPOCHS, cache)
        return benches[seed]

    def one(way: str, sparsity: float, seed: int, measured: Any) -> None:
        if (way, sparsity, seed, epochs) in known:
            return
        started, cpu = time.perf_counter(), time.process_time()
        row = {"way": way, "sparsity": sparsity, "seed": seed, "epochs": epochs, **measured(bench(seed), sparsity)}
        row["wall_s"] = round(time.perf_counter() - started, 1)
        row["cpu_s"] = round(time.process_time() - cpu, 1)
        print(f"{row['accuracy']:6.2f} %  zeros {row['zeros']:.3f}  seed {seed}  {sparsity:.2f}  {way}", flush=True)
        if file is not None:
            with file.open("a") as rows:
                rows.write(json.dumps(row) + "\n")

    unpruned = {
        TRAINED: lambda b, _: b.measured(lambda: None),
        LONGER: lambda b, _: b.measured(b.unpruned),
    }
    for way, measured in {**unpruned, **ways()}.items():
        if not arguments.only or any(text in way for text in arguments.only):
            for sparsity in [0.0] if way in unpruned else arguments.sparsities:
                for seed in seeds:
                    one(way, sparsity, seed, measured)


def read_rows(file: Path | None) -> list[dict[str, Any]]:
    """What was measured so far; a line that was cut off by an interruption is passed over."""
    if file is None or not file.exists():
        return []
    rows = []
    for line in file.read_text().splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def table(rows: list[dict[str, Any]], epochs: int) -> str:
    """Markdown: for each way and sparsity, after `epochs`, the mean accuracy of the seeds, its spread, the mean loss.

    The spread is the sample standard deviation; the loss is in points, against the same seed's network trained on
    (as trained, where that is not known).
    """
    values: dict[tuple[str, float], dict[int, float]] = {}
    for row in rows:
        if row["epochs"] == epochs or row["way"] == TRAINED:
            values.setdefault((row["way"], row["sparsity"]), {})[row["seed"]] = row["accuracy"]
    reference = values.get((LONGER, 0.0)) or values.get((TRAINED, 0.0), {})
    sparsities = sorted(SPARSITIES)
    lines = ["| way | " + " | ".join(f"{s:.0%}" for s in sparsities) + " |", "|---|" + "---:|" * len(sparsities)]
    for way in dict.fromkeys(way for way, _ in values):
        found = [values.get((way, sparsity), values.get((way, 0.0), {})) for sparsity in sparsities]
        lines.append(f"| {way} | " + " | ".join(_cell(seeds, reference) for seeds in found) + " |")
    return "\n".join(lines)


def _cell(found: dict[int, float], reference: dict[int, float]) -> str:
    if not found:
        return ""
    spread = statistics.stdev(found.values()) if len(found) > 1 else 0.0
    shared = [seed for seed in found if seed in reference]
    lost = statistics.mean(reference[seed] - found[seed] for seed in shared) if shared else 0.0
    note = "" if len(found) == len(SEEDS) else f" ({len(found)} seed{'s' * (len(found) > 1)})"
    return f"{statistics.mean(found.values()):.2f} ± {spread:.2f} ({0.0 - lost:+.2f}){note}"


if __name__ == "__main__":
    main()
