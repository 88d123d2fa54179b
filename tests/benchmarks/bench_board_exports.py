"""How `export --for BOARD` ends for Dense, 1-D, 2-D, depthwise and recurrent networks, and after how long.

    python tests/benchmarks/bench_board_exports.py FOLDER [--boards tang-nano-9k icebreaker] [--networks "dense 2"]
        [--models ../shared/models] [--minutes 5] [--samples 4]

Ten networks are drawn at random (bench_place_shares.py), and with --models four are files of others: three quarters
of their weights are made zero, and they get 8 bits. Each one is exported for each board, one after another. A row says
the wall-clock and the processor seconds, how it ended, and in which layout. FOLDER/board_exports.csv keeps the rows;
what it holds already is not run again.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import shutil
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

RANDOM = (
    *("dense 1", "dense 2", "conv1d 2", "conv1d 6", "conv2d 1", "conv2d 5", "depthwise 3", "depthwise 8"),
    *("gru 1", "lstm 2"),
)
_EXAMPLES = "fastmachinelearning_example-models/onnx"
MODELS = {
    "jets, three hidden layers": f"{_EXAMPLES}/three_layer_keras.onnx",
    "jets, 8 constituents": "sznajder_JetID-L1/model_QMLP_nconst_8_nbits_8.h5",
    "conv1d_small": f"{_EXAMPLES}/conv1d_small_keras.onnx",
    "conv2d_small": f"{_EXAMPLES}/conv2d_small_keras.onnx",
}
COLUMNS = ("board", "network", "seconds", "cpu_seconds", "layouts", "ended", "mhz", "clock_mhz", "a_second")


def of_others(path: Path) -> Any:
    """The design of a network of others: three quarters of its weights zero, 8 bits."""
    import numpy as np

    import fpgaprune as fp

    model = fp.load(path).model
    for layer in model.layers:
        if getattr(layer, "kernel", None) is not None:
            size = np.abs(np.asarray(layer.kernel))
            layer.kernel.assign(np.asarray(layer.kernel) * (size >= np.quantile(size, 0.75)))
    x = np.random.default_rng(1).normal(size=(256, *model.input_shape[1:])).astype(np.float32)
    target = fp.Target.of("lfe5u-25f", clock_ns=40.0)
    return fp.make_design(model, target, x, fp.Precision(weight_bits=8, activation_bits=8), "network")


def design_of(name: str, folder: Path, models: Path | None) -> Any:
    """The design called `name`, as `folder` keeps it."""
    from fpgaprune.design import Design
    from tests.benchmarks.bench_place_shares import network

    kept = folder / f"{name.replace(' ', '-').replace(',', '')}.json"
    if not kept.exists():
        if name in MODELS:
            design = of_others((models or Path()) / MODELS[name])
        else:
            family, seed = name.split()
            design = network(family, int(seed))
        design.save(kept)
    return Design.load(kept)


def make_run(folder: Path, design: Any, samples: int) -> Path:
    """A run folder with the design and golden samples, as a flow leaves it."""
    import numpy as np

    from fpgaprune.design import Input
    from fpgaprune.flow.run import RunDirectory

    shutil.rmtree(folder, ignore_errors=True)
    run = RunDirectory(folder)
    (shape,) = [layer.output_shape for layer in design.layers if isinstance(layer.operation, Input)]
    with run.locked():
        run.manifest["config"] = {"target": {"part": "lfe5u-25f"}}
        design.save(folder / "design.json")
        golden = np.random.default_rng(3).normal(size=(samples, int(np.prod(shape))))
        (folder / "golden/tb_data").mkdir(parents=True)
        text = "".join(" ".join(f"{value:.6g}" for value in row) + "\n" for row in golden)
        (folder / "golden/tb_data/tb_input_features.dat").write_text(text)
        run.write_manifest()
    return folder


def measure(design: Any, board: str, folder: Path, minutes: float, samples: int) -> dict[str, Any]:
    """The row of one export without its names."""
    from fpgaprune.errors import FpgaPruneError
    from fpgaprune.flow import hand_over
    from fpgaprune.flow.run import Silent

    said: list[str] = []

    class Told(Silent):
        def stage(self, name: str, status: str, note: str = "") -> None:
            if note:
                said.append(f"{name} {status}: {note}")

    run, out = make_run(folder / "run", design, samples), folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    before, own, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.process_time(), time.monotonic()
    row: dict[str, Any] = {"mhz": "", "clock_mhz": "", "a_second": ""}
    try:
        made = hand_over(run, board, out, deadline_minutes=minutes, progress=Told())
        bits = made.bitstream
        row |= {"ended": "bitstream", "mhz": bits.fmax_mhz, "clock_mhz": bits.clock_mhz, "a_second": made.speed}
    except FpgaPruneError as error:
        row["ended"] = f"{type(error).__name__}: {error}"
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime + time.process_time() - own
    row |= {"seconds": round(time.monotonic() - started), "cpu_seconds": round(cpu)}
    row["layouts"] = " | ".join(said)
    return row


def main() -> None:
    """One row an export, on standard output and in FOLDER/board_exports.csv."""
    from fpgaprune.fabric import list_serial_boards

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="left out: one network on one board, to show that it runs")
    parser.add_argument("--boards", nargs="+", default=list_serial_boards())
    parser.add_argument("--networks", nargs="+")
    parser.add_argument("--models", type=Path, help="folder with the networks of others; left out: random ones only")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument(
        "--samples", type=int, default=4, help="golden samples, which a bitstream that is read back answers"
    )
    chosen = parser.parse_args()
    if chosen.folder is None:
        chosen.folder, chosen.boards, chosen.networks = Path("exports"), ("icebreaker",), ("depthwise 2",)
    names = chosen.networks or [*RANDOM, *(MODELS if chosen.models else ())]
    chosen.folder.mkdir(parents=True, exist_ok=True)
    table = chosen.folder / "board_exports.csv"
    done = set()
    if table.exists():
        with table.open(newline="") as read:
            done = {(row["board"], row["network"]) for row in csv.DictReader(read)}
    with table.open("a", newline="") as written:
        rows = csv.DictWriter(written, COLUMNS, lineterminator="\n")
        if not done:
            rows.writeheader()
        for board in chosen.boards:
            for name in names:
                if (board, name) in done:
                    continue
                design = design_of(name, chosen.folder, chosen.models)
                place = chosen.folder / board / name.replace(" ", "-")
                row = measure(design, board, place, chosen.minutes, chosen.samples)
                rows.writerow({"board": board, "network": name, **row})
                written.flush()
                print({"board": board, "network": name, **row}, flush=True)


if __name__ == "__main__":
    main()
