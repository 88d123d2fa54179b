"""Networks that the field deploys, each through the flow with nothing but a sparsity, a part and a clock.

    python tests/benchmarks/bench_networks.py                       # small: shows that it runs
    python tests/benchmarks/bench_networks.py FOLDER [--only ds_cnn ...] [--sparsity 0.6] [--epochs 3]

Each network of `networks.py` is trained once (FOLDER keeps it) and then runs as a user would run it, in a process of
its own: `fpgaprune run NAME.toml`. Prints a table in Markdown: the metric before, after and in hardware, the verdict,
the exit status and the seconds. For a network that did not fit, the page's first advice stands below the table.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from networks import NETWORKS

# What is measured without arguments.
SMALL = ["networks", "--only", "jet_mlp", "--epochs", "1"]
FLOW = """\
name = "{name}"

[data]
source = "{name}.npz"

[train]
model = "{name}.keras"

[select]
sparsity = {sparsity}
{finetune}
[target]
part = "{part}"
clock_ns = 5.0
"""


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    parser.add_argument("--sparsity", type=float, default=0.6)
    parser.add_argument("--epochs", type=int, help="of fine-tuning; the flow's own if left out")
    parser.add_argument("--part", default="xc7z020clg400-1")
    asked = parser.parse_args(sys.argv[1:] or SMALL)
    asked.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in asked.only:
        train(name, asked.folder)
        rows.append(row(name, asked))
        print(rows[-1], file=sys.stderr, flush=True)
    print("| network | parameters | metric | before | after | in hardware | fits | exit status | seconds |")
    print("| --- | ---: | --- | ---: | ---: | ---: | --- | ---: | ---: |")
    for cells, _ in rows:
        print(f"| {' | '.join(cells)} |")
    for _, said in rows:
        for line in said:
            print(f"\n{line}")


def train(name: str, folder: Path) -> None:
    """`folder` holds the trained network and its data."""
    if (folder / f"{name}.keras").exists():
        return
    import keras

    keras.utils.set_random_seed(0)
    case = NETWORKS[name]()
    case.model.fit(
        case.data["x_train"], case.data["y_train"], epochs=case.epochs, batch_size=case.batch_size, verbose=0
    )
    np.savez(folder / f"{name}.npz", **case.data)
    case.model.save(folder / f"{name}.keras")


def row(name: str, asked: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The cells of one network, and what the run said besides."""
    finetune = "" if asked.epochs is None else f"\n[finetune]\nepochs = {asked.epochs}\n"
    flow = asked.folder / f"{name}.toml"
    flow.write_text(FLOW.format(name=name, sparsity=asked.sparsity, part=asked.part, finetune=finetune))
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "fpgaprune", "run", str(flow), "--out", str(asked.folder / f"run_{name}"), "--json"],
        capture_output=True,
        text=True,
    )
    seconds = f"{time.monotonic() - started:.0f}"
    problems = [
        f"{name}: {line}"
        for line in done.stderr.splitlines()
        if line.startswith(("error:", "check fails:", "  train.model:"))
    ]
    if not done.stdout.strip():
        return [name, *["-"] * 6, str(done.returncode), seconds], problems or [f"{name}: {done.stderr[-400:]}"]
    report = json.loads(done.stdout)["report"]
    metric, after = report["metric"], report["after"]
    shown = [shown_value(metric, when) for when in ("before", "after", "hardware")]
    fits = {True: "yes", False: "no", None: "-"}[after["fits"] if after else None]
    parameters = sum(layer["parameters_before"] for layer in report["layers"])
    cells = [name, f"{parameters:,}", metric["name"], *shown, fits, str(done.returncode), seconds]
    advice = (report.get("advice") or {}).get("suggestions") or []
    return cells, problems + [f"{name}: first advice: {one['knob']}" for one in advice[:1]]


def shown_value(metric: dict, when: str) -> str:
    """The metric with its standard error."""
    value, error = metric[when], metric["errors"].get(when)
    if value is None:
        return "-"
    return f"{value:.2%} ± {100 * error:.2f}" if metric["is_fraction"] else f"{value:.4g} ± {error:.2g}"


if __name__ == "__main__":
    main()
