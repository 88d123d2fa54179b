"""LUTs against accuracy on 28 × 28 MNIST: the two flow files for convolutions, TF-MOT, HGQ2, and no pruning.

    python tests/benchmarks/bench_mnist_hardware.py                    # 2,000 images, few passes: shows that it runs
    python tests/benchmarks/bench_mnist_hardware.py FOLDER [--seeds 0] [--sparsities 0.5,0.6,0.7]
    python tests/benchmarks/bench_mnist_hardware.py FOLDER --ways bits unpruned tfmot
    python tests/benchmarks/bench_mnist_hardware.py FOLDER --ways hgq --prices 3e-6,1e-5,3e-5
    python tests/benchmarks/bench_mnist_hardware.py FOLDER --table     # the runs that are in it, nothing else

One network is trained for each seed. From there every way is a flow file, with the same images, the same Verilog and
the same synthesis: `bits` the two files `examples/convolution_*.toml` with other paths, and with weights chosen by
Taylor scores, as they were when the figures of the page were made, a row for each sparsity; `hgq` the first of them,
then HGQ2 in a process of its own, a row for each price of a bit; `tfmot` takes over a network that TF-MOT trained in a
process of its own. FOLDER keeps every run. 5,000 training images, which no training sees, are all that a flow is judged
by; the 10,000 test images are emulated at the end.

The images stand in `../shared/data/mnist` beside the checkout.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).parents[2]))

import flow_files
import numpy as np
from flow_files import TAYLOR, example, merged
from mnist_network import BATCH, RATE, accuracy, compiled, get_weights, initial_weights, network, read_data, set_weights
from select_network import MNIST

import fpgaprune as fp

HERE = Path(__file__).parent
WAYS = ("bits", "unpruned", "tfmot", "hgq")
CONVOLUTIONS = ("conv1", "conv2")
_MEASURED: dict[str, Any] = {"measure": {"families": ["xc7"], "simulate": 0}, "hls": {"simulate": 0}}
_SHORT: dict[str, Any] = {"finetune": {"epochs": 1}}


def main() -> None:
    """Runs what is asked for and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="of everything that is kept; left out: a short run")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--sparsities", default="0.5,0.6,0.7")
    parser.add_argument(
        "--filters", help="shares of both convolutions that are removed, as 0.5,0.5; the file's own if left out"
    )
    parser.add_argument("--prices", default="3e-6,1e-5,3e-5", help="of HGQ2's bits, its beta")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["bits"])
    parser.add_argument("--small", action="store_true", help="as without a folder")
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args()
    if not MNIST.is_dir():
        print(f"skipped: {MNIST} with the files of MNIST is not there")
    elif chosen.folder is None:
        with tempfile.TemporaryDirectory() as folder:
            chosen.folder, chosen.small = Path(folder), True
            chosen.sparsities, chosen.prices = "0.8", "1e-5"
            _run(chosen)
    else:
        _run(chosen)


def _run(chosen: argparse.Namespace) -> None:
    folder = chosen.folder.resolve()
    if not chosen.table:
        folder.mkdir(parents=True, exist_ok=True)
        data = _images(folder, chosen.small)
        for seed in (int(text) for text in chosen.seeds.split(",")):
            base = trained(folder, data, seed, 1 if chosen.small else 6)
            sparsities = [float(text) for text in chosen.sparsities.split(",")]
            for way in chosen.ways:
                if way == "hgq":
                    _hgq(chosen, folder, base, seed)
                    continue
                for flow in flows(way, folder, base, seed, sparsities, chosen.filters, small=chosen.small):
                    flow_files.run(flow, folder)
    print(table(folder))


def _images(folder: Path, small: bool) -> Path:
    """The `.npz` that every flow reads, held-out training images in the place of test images; `test.npz` beside it."""
    path = folder / "mnist.npz"
    if not path.is_file():
        found = read_data(2_400, 400) if small else read_data(60_000, 5_000)
        held_out = {f"{key}_{part}": found[f"{key}_valid"] for key in "xy" for part in ("valid", "test")}
        np.savez(path, x_train=found["x"], y_train=found["y"], **held_out)
        np.savez(folder / "test.npz", x=found["x_test"], y=found["y_test"])
    return path


def trained(folder: Path, data: Path, seed: int, epochs: int) -> Path:
    """The network that every way begins with, and its weights by path in the `.npz` beside it."""
    path = folder / f"base_{seed}.keras"
    if not path.is_file():
        import keras

        keras.utils.set_random_seed(seed)
        model = network(keras)
        set_weights(model, initial_weights(seed))
        with np.load(data) as arrays:
            x, y = arrays["x_train"], arrays["y_train"]
        compiled(keras, model, len(x), epochs)
        model.fit(x, y, batch_size=BATCH, epochs=epochs, verbose=0)
        np.savez(path.with_suffix(".npz"), **get_weights(model))
        model.save(path)
    return path


def flows(
    way: str, folder: Path, base: Path, seed: int, sparsities: list[float], filters: str | None, *, small: bool
) -> list[dict[str, Any]]:
    """The flows of `way`, in the order in which they must run."""
    common = _common(folder, seed)
    if way == "bits":
        narrow = _narrow(folder, base, seed, filters, small=small)
        train = {"model": str(folder / narrow["name"])}
        found = [narrow]
        for sparsity in sparsities:
            name = f"{narrow['name'].replace('narrow', 'bits')}_{round(1000 * sparsity)}"
            select = {"sparsity": sparsity, **TAYLOR}
            one = example("convolution_bits", name=name, train=train, select=select, **common)
            found.append(merged(one, _MEASURED | ({"quantise": {"epochs": 6}, **_SHORT} if small else {})))
        return found
    flow = {"name": f"{way}_{seed}", **common, **_MEASURED, "train": {"model": str(base)}, "select": {"zeros": True}}
    # Types from the search: at most 0.2 points lost on held-out images, a standard error to spare.
    flow = merged(flow, {"hls": {"precision": "auto", "max_loss": "2 %" if small else "0.2 %"}})
    if way == "unpruned":
        more = {"epochs": 4, "batch_size": BATCH, "learning_rate": RATE}
        return [merged(merged(flow, {"select": {"zeros": False}, "finetune": more}), _SHORT if small else {})]
    model = folder / f"tfmot_{seed}.h5"
    _in_a_process("tensorflow_model_optimization", "mnist_tfmot.py", model, [str(folder), str(seed)], small=small)
    return [merged(flow, {"train": {"model": str(model)}, "finetune": {"epochs": 0}})]


def _hgq(chosen: argparse.Namespace, folder: Path, base: Path, seed: int) -> None:
    """HGQ2 trains the bits of the network without the filters that the first flow removed, once for each price."""
    narrow = flow_files.run(_narrow(folder, base, seed, chosen.filters, small=chosen.small), folder)
    for price in chosen.prices.split(","):
        name = f"{narrow.name.replace('narrow', 'hgq')}_{price.replace('-', '_')}"
        model = folder / f"{name}.keras"
        asked = [str(narrow / "removed.keras"), str(folder / "mnist.npz"), price, str(model)]
        _in_a_process("hgq", "mnist_hgq.py", model, asked, small=chosen.small)
        flow = {"name": name, **_common(folder, seed), **_MEASURED, "train": {"model": str(model)}}
        flow |= {"select": {"zeros": True}, "finetune": {"epochs": 0}}
        flow_files.run(merged(flow, {"hls": {"precision": "widths"}}), folder)


def _common(folder: Path, seed: int) -> dict[str, Any]:
    return {"seed": seed, "data": {"source": str(folder / "mnist.npz")}}


def _narrow(folder: Path, base: Path, seed: int, filters: str | None, *, small: bool) -> dict[str, Any]:
    """The first of the two flow files: shares `filters` of both convolutions removed, or the file's own."""
    which = f"{seed}_{filters.replace('.', '').replace(',', '_')}" if filters else f"{seed}"
    flow = example("convolution_narrow", name=f"narrow_{which}", train={"model": str(base)}, **_common(folder, seed))
    if filters:
        shares = [float(text) for text in filters.split(",")]
        paths = (f"{name}/kernel" for name in CONVOLUTIONS)
        flow = merged(flow, {"select": {"sparsity": dict(zip(paths, shares, strict=True))}})
    return merged(flow, _SHORT if small else {})


def _in_a_process(package: str, script: str, model: Path, asked: list[str], *, small: bool) -> None:
    """`script` of this folder has written `model`, in a process of its own."""
    if importlib.util.find_spec(package) is None:
        raise SystemExit(f"{package} is not installed; leave its way out of --ways")
    if model.is_file():
        return
    command = [sys.executable, str(HERE / script), *asked, *(["small"] if small else [])]
    legacy = {"TF_USE_LEGACY_KERAS": "1"} if script == "mnist_tfmot.py" else {}
    subprocess.run(command, check=True, env={**os.environ, **legacy})


def table(folder: Path) -> str:
    """A row for each measured run in `folder`, the least accurate first."""
    with np.load(folder / "test.npz") as arrays:
        x, y = arrays["x"], arrays["y"]
    rows = []
    for path in folder.glob("*/measure.json"):
        measured = json.loads(path.read_text())
        if measured is not None:
            rows.append(_row(path.parent, measured, x, y))
    lines = [
        "| run | accuracy in hardware | of held-out images | channels | weights kept, conv1 + conv2 "
        "| LUT | conv1 | conv2 | rest | FF | DSP | BRAM 18 Kb |",
        f"| --- |{' ---: |' * 11}",
    ]
    return "\n".join(lines + [f"| {' | '.join(cells)} |" for _, cells in sorted(rows)])


def _row(run: Path, measured: dict[str, Any], x: np.ndarray, y: np.ndarray) -> tuple[float, list[str]]:
    """Accuracy on the test images in %, and the cells of the table."""
    design = fp.Design.load(run / "design.json")
    found = accuracy(fp.emulate(design, x), y)
    held_out = 100 * flow_files.results(run, "hls")["emulation"]["value"]
    synthesis = measured["synth(open)"]["xc7"]
    luts = {layer["layer"]: (layer["cells"] or {}).get("lut") for layer in synthesis["layers"]}
    whole = synthesis["whole"]["cells"]
    parts = [luts.get(name) for name in CONVOLUTIONS]
    rest = None if None in luts.values() else sum(luts.values()) - sum(part or 0 for part in parts)
    kept = [int(np.count_nonzero(design[name].weights["weight"])) for name in CONVOLUTIONS]
    cells = [run.name, f"{found:.2f} %", f"{held_out:.2f} %"]
    cells.append(" + ".join(str(design[name].output_shape[-1]) for name in CONVOLUTIONS))
    cells.append(" + ".join(f"{count:,}" for count in kept))
    figures = [(whole or {}).get(name) for name in ("lut", "ff", "dsp", "bram18")]
    return found, cells + [
        "–" if figure is None else f"{figure:,}" for figure in (figures[0], *parts, rest, *figures[1:])
    ]


if __name__ == "__main__":
    main()
