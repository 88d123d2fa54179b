"""LUTs at equal accuracy on MNIST: fpgaprune's network against the unpruned one, TF-MOT's and HGQ2's.

    python tests/benchmarks/bench_mnist_hardware.py                    # 2,000 images, few passes: shows that it runs
    python tests/benchmarks/bench_mnist_hardware.py FOLDER [--hgq-python PYTHON] [--timeout 900] [--only NAME ...]
    python tests/benchmarks/bench_mnist_hardware.py FOLDER --again     # Verilog and synthesis of the designs in it
    python tests/benchmarks/bench_mnist_hardware.py FOLDER --table     # what is in the folder
    python tests/benchmarks/bench_mnist_hardware.py COPY --again --interval 2600      # of FOLDER, with more clocks

One network, 28 × 28, with kernels [3, 3, 1, 32] and [3, 3, 32, 32], is trained once; from there every way goes on with
the same images: fpgaprune (filters, kernels, weights, powers of two), nothing at all, TF-MOT (single weights), HGQ2
(bits of every weight, trained against their price). All but HGQ2, which trains its own, get their types from precision
`auto`, which sees 5,000 images that no training sees. All become a `Design`, emulated on all 10,000 test images, and go
through the same `to_verilog` and the same synthesis, layer by layer. FOLDER keeps everything, so that a second call
goes on where the first was stopped; layers whose Verilog has not changed are not synthesised again.

HGQ2 is taken from the interpreter named, which needs Keras with TensorFlow and hgq2; without it that way is left out.
The images stand in `../shared/data/mnist` beside the checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from mnist_cost import FIGURES, kept_weights, luts_of_cost, measure, total
from mnist_network import accuracy, read_data
from mnist_ways import FULL, SMALL, Plan
from select_network import MNIST

import fpgaprune as fp

UNPRUNED = "unpruned"  # trained on as long as TF-MOT's
AS_TRAINED = "unpruned as-trained"  # what every way begins with
# How many times the LUTs of fpgaprune's network a way should take, and by how many points of accuracy in hardware that
# network may be behind.
GOALS = {UNPRUNED: (3.0, 0.5), "tfmot": (1.5, 0.05), "hgq": (1.0, 0.05)}


def main() -> None:
    """Measures, or prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="?", help="of everything that is kept")
    parser.add_argument("--small", action="store_true", help="as without a folder")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--only", nargs="+", help="ways by name, as the table has them")
    parser.add_argument("--until", choices=("design", "measure"), default="measure")
    parser.add_argument("--family", default="xc7")
    parser.add_argument("--timeout", type=float, help="seconds for the synthesis of one layer: 900, or 60 where small")
    parser.add_argument("--adders", default="shared")
    parser.add_argument("--levels", type=int, default=1)
    parser.add_argument("--interval", type=int, default=0, help="clocks that an image may take; 0: as its pixels do")
    parser.add_argument("--hgq-python", default=sys.executable)
    chosen = parser.parse_args()
    if not MNIST.is_dir():
        print(f"{MNIST} is missing: nothing is measured")
    elif chosen.folder is None:
        with tempfile.TemporaryDirectory() as folder:
            chosen.folder = Path(folder)
            run(chosen, SMALL)
    else:
        run(chosen, SMALL if chosen.small else FULL)


def run(chosen: argparse.Namespace, plan: Plan) -> None:
    """What is asked for is in the folder, and as a table on standard output."""
    chosen.timeout = chosen.timeout or (60.0 if plan is SMALL else 900.0)
    if not chosen.table:
        for name in _designed(chosen.folder) if chosen.again else names(plan, chosen.hgq_python):
            if chosen.only is None or name in chosen.only:
                row = _row(chosen, plan, name)
                print(json.dumps({key: row[key] for key in row if key != "layers"}), flush=True)
    rows = [json.loads(path.read_text()) for path in sorted(chosen.folder.glob("rows/*.json"))]
    rows.sort(key=lambda row: (row["way"].split()[0], row["accuracy_hardware"]))
    (chosen.folder / "results.json").write_text(json.dumps(rows, indent=1))
    print(table(rows))


def names(plan: Plan, hgq_python: str) -> list[str]:
    """The ways, without HGQ2's where its interpreter does not have it."""
    found = [
        *(f"fpgaprune {name}" for name in plan.recipes),
        AS_TRAINED,
        UNPRUNED,
        *(f"tfmot {name}" for name in plan.tfmot),
    ]
    if subprocess.run([hgq_python, "-c", "import hgq"], capture_output=True, check=False).returncode == 0:
        return [*found, *(f"hgq {run} {number}" for run, passes in plan.passes.items() for number in passes)]
    print(f"{hgq_python} has no hgq2: that way is left out", flush=True)
    return found


def _designed(folder: Path) -> list[str]:
    """The ways that have a design in `folder`."""
    return [str(json.loads(path.read_text())["way"]) for path in sorted(folder.glob("rows/*.json"))]


def _row(chosen: argparse.Namespace, plan: Plan, name: str) -> dict[str, Any]:
    place = chosen.folder / "rows" / f"{name.replace(' ', '-')}.json"
    row = json.loads(place.read_text()) if place.is_file() else {}
    data = read_data(plan.samples, plan.held_out)
    path = chosen.folder / "designs" / f"{name.replace(' ', '-')}.json"
    if not path.is_file() or "accuracy" not in row:
        row = {"way": name, **make_design_at(path, chosen, plan, name, data)}
    design = fp.Design.load(path)
    if "accuracy_hardware" not in row:
        row["accuracy_valid"] = accuracy(fp.emulate(design, data["x_valid"]), data["y_valid"])
        row["accuracy_hardware"] = accuracy(fp.emulate(design, data["x_test"]), data["y_test"])
        row["kept"], row["types"] = kept_weights(design), types(design)
        row["shapes"] = {layer.name: list(layer.output_shape) for layer in design.layers if layer.weights}
        _keep(place, row)
    if chosen.until == "measure":
        started = time.monotonic()
        folder = chosen.folder / "verilog" / place.stem
        options = {"adders": chosen.adders, "levels": chosen.levels, "interval": chosen.interval}
        row["layers"] = measure(design, folder, chosen.family, chosen.timeout, chosen.folder, options)
        row.update(options, family=chosen.family, timeout_s=chosen.timeout)
        row["measured_s"] = round(time.monotonic() - started, 1)
        _keep(place, row)
    return row


def _keep(place: Path, row: dict[str, Any]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(row, indent=1))


def make_design_at(
    path: Path, chosen: argparse.Namespace, plan: Plan, name: str, data: dict[str, Any]
) -> dict[str, Any]:
    """`path` holds the design of that way; its accuracy as trained (HGQ2's: as quantised), in per cent."""
    import keras
    from mnist_designs import auto_design, hgq_design, rounded_design
    from mnist_network import keras_accuracy, network, set_weights
    from mnist_rounded import rounded
    from mnist_ways import base, given_types, hgq_checkpoints, prune, rounded_types, tfmot, trained_on

    path.parent.mkdir(parents=True, exist_ok=True)
    weights = base(chosen.folder, data, plan)
    kind, _, which = name.partition(" ")
    if kind == "hgq":
        run, _, number = which.partition(" ")
        checkpoints = hgq_checkpoints(chosen.folder, data, weights, plan, chosen.hgq_python, run)
        found = dict(np.load(checkpoints[int(number)]))
        design = hgq_design(found, "hgq")
        given = fp.emulate(design, data["x_test"]).reshape(found["logits"].shape)
        design.save(path)
        different = int((given != found["logits"]).any(axis=-1).sum())
        return {"accuracy": float(found["accuracy"]), "different_outputs": different, "ebops": found["ebops"].tolist()}
    settings = None
    if kind == "fpgaprune":
        recipe = plan.recipes[which]
        place = prune(chosen.folder, data, weights, recipe, which)
        model = keras.saving.load_model(place)
        settings = given_types(model, place) if recipe.powers else None
        if recipe.bits:
            trained = rounded(model, rounded_types(place))
            rounded_design(model, trained, data, plan.loss, kind, settings or {}).save(path)
            return {"accuracy": keras_accuracy(trained, data)}
    else:
        model = network(keras)
        if name != AS_TRAINED:
            arguments = chosen.folder, data, weights, plan
            weights = trained_on(*arguments) if name == UNPRUNED else tfmot(*arguments, which)
        set_weights(model, weights)
    auto_design(model, data, plan.loss, kind, settings).save(path)
    return {"accuracy": keras_accuracy(model, data)}


def types(design: fp.Design) -> dict[str, str]:
    """Types of the weights, and of what a layer hands on."""
    weights = {f"{layer.name} weight": layer.types["weight"] for layer in design.layers if layer.weights}
    reads = {layer.name: layer.types["result"] for layer in design.layers if layer.kind in ("Input", "Activation")}
    return {name: str(kind) for name, kind in {**weights, **reads}.items()}


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown, what was synthesised and what stands in told apart, and the goals below."""
    measured = [layer for row in rows for layer in row.get("layers", [])]
    ratio = luts_of_cost(measured)
    factor = ratio[0] if ratio else None
    lines = [
        "| way | accuracy, trained | in hardware | of held-out images | channels | weights kept, conv1 + conv2 | LUT "
        "| conv1 | conv2 | rest | FF | DSP | BRAM 18 Kb |",
        f"| --- |{' ---: |' * 12}",
    ]
    luts: dict[str, float] = {}
    for row in rows:
        layers = {layer["layer"]: layer for layer in row.get("layers", [])}
        rest = [layer for name, layer in layers.items() if not name.startswith("conv")]
        cells = [_cell([layer], "lut", factor) for name, layer in layers.items() if name.startswith("conv")]
        cells = [_cell(layers.values(), "lut", factor), *(cells or ["–", "–"]), _cell(rest, "lut", factor)]
        cells += [_cell(layers.values(), figure, None) for figure in FIGURES[1:]]
        found = total(layers.values(), "lut", factor)[0] if layers else None
        if found:
            luts[row["way"]] = found
        kept = row["kept"]
        held_out = f"{row['accuracy_valid']:.2f} %" if "accuracy_valid" in row else "–"
        channels = " + ".join(str(row["shapes"][conv][-1]) for conv in ("conv1", "conv2"))
        lines.append(
            f"| {row['way']} | {row['accuracy']:.2f} % | {row['accuracy_hardware']:.2f} % | "
            f"{held_out} | {channels} | {kept['conv1']:,} + {kept['conv2']:,} | "
            f"{' | '.join(cells)} |"
        )
    if ratio:
        ended = sum(1 for layer in measured if layer["cost"] and layer["cells"])
        lines.append(
            f"\n≈: synthesis did not end in time; cost of the adders x {ratio[0]:.2f} LUT, the median of {ended} "
            f"convolutions that did end ({ratio[1]:.2f} to {ratio[2]:.2f})."
        )
    return "\n".join(lines + goals({row["way"]: row["accuracy_hardware"] for row in rows}, luts))


def _cell(layers: Any, figure: str, factor: float | None) -> str:
    found, stands_in = total(layers, figure, factor)
    return "–" if found is None else f"{'≈ ' * stands_in}{found:,.0f}"


def goals(accuracies: dict[str, float], luts: dict[str, float]) -> list[str]:
    """For each way but fpgaprune's, how often the fewest LUTs of a network of fpgaprune's as accurate go into its own.

    Args:
        accuracies: in hardware, by way, in per cent. luts: by way.
    """
    lines = [""]
    for way in luts:
        goal, behind = next((value for kind, value in GOALS.items() if way.startswith(kind)), (None, None))
        if goal is None or behind is None:
            continue
        least = accuracies[way] - behind
        equal = [ours for ours in luts if ours.startswith("fpgaprune") and accuracies[ours] >= least - 1e-9]
        if not equal:
            lines.append(f"{way}: no network of fpgaprune's within {behind} points of its {accuracies[way]:.2f} %.")
            continue
        best = min(equal, key=luts.__getitem__)
        lines.append(
            f"{way}: {luts[way] / luts[best]:.2f} times the LUTs (goal {goal}) of {best}, whose accuracy is "
            f"{accuracies[best] - accuracies[way]:+.2f} points away."
        )
    return lines


if __name__ == "__main__":
    main()
