"""What kernel-level zeros are worth in measured hardware: the demo network from 0 to 90 % of its kernels locked.

    python tests/benchmarks/bench_open_hardware.py FOLDER [--criterion taylor --cost 'adders(6)'] [--seeds 5]

One network is trained on scikit-learn's digits; for each sparsity it is locked (by l1 norm, or as `--criterion` and
`--cost` say), fine-tuned and freed of dead channels, written as Verilog, simulated (latency, interval, and every
held-out digit against the emulation), synthesised, and placed and routed on the smallest ECP5 that holds it. FOLDER
keeps everything, so that a second call goes on where the first was stopped. Where synthesis of a layer does not end in
time, the bits of its adders stand in, times the LUTs that such a bit took in the layers that ended, and the sum is
marked "about"; a design that does not fit the largest ECP5 has no clock.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


SPARSITIES = (0.9, 0.75, 0.5, 0.25, 0.0)
EPOCHS, RATE, BATCH, SEED = 24, 0.002, 32, 7
ADDER = re.compile(r"^    wire signed \[(\d+):0\] v\d+ = [^?;\n]* [+-] [^?;\n]*;$", re.M)
PART, CLOCK_NS = "xc7z020clg400-1", 10.0


def main() -> None:
    """Tables on standard output, and everything in FOLDER/results.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="left out: 90 % locked, simulated, to show that it runs")
    parser.add_argument("--family", default="ecp5")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--target-mhz", type=float, default=90.0)
    parser.add_argument("--timeout", type=float, default=900.0)
    parser.add_argument("--sparsities", type=float, nargs="+", default=SPARSITIES)
    parser.add_argument("--criterion", default="l1")
    parser.add_argument("--cost", default="none")
    parser.add_argument("--seed", type=int, default=SEED, help="of fine-tuning; training is the same for all")
    parser.add_argument("--interval", type=int, default=0, help="clocks that an image may take; 0: as its pixels do")
    parser.add_argument("--stop-after", choices=("design", "simulate", "synthesize", "route"), default="route")
    parser.add_argument("--layers-only", action="store_true", help="do not synthesise the whole design")
    parser.add_argument("--workers", type=int, default=None, help="processes at a time")
    chosen = parser.parse_args()
    if chosen.folder is None:
        chosen.folder, chosen.sparsities, chosen.stop_after = Path("open_hardware"), (0.9,), "simulate"
    chosen.folder.mkdir(parents=True, exist_ok=True)
    data = digits()
    steps = ("design", "simulate", "synthesize", "route")[
        : 1 + ("design", "simulate", "synthesize", "route").index(chosen.stop_after)
    ]
    for sparsity in chosen.sparsities:
        row = measure(chosen.folder / f"{round(100 * sparsity):02d}", chosen.folder, sparsity, data, steps, chosen)
        print(json.dumps({key: row[key] for key in row if key != "layers"}), flush=True)
    pattern = f"*/{hardware_folder(chosen)}/row.json"
    rows = [json.loads(path.read_text()) for path in sorted(chosen.folder.glob(pattern))]
    (chosen.folder / f"results{chosen.interval or ''}.json").write_text(json.dumps(rows, indent=1))
    print(table(rows))


def digits() -> dict[str, Any]:
    """The flow's data: 1,437 digits to train on, 360 held out."""
    from fpgaprune.flow.task import load_data

    found = load_data("digits")
    return {name: getattr(found, name) for name in ("x_train", "y_train", "x_test", "y_test")}


def hardware_folder(chosen: argparse.Namespace) -> str:
    """Of what is measured at an interval, beside the design of a row."""
    return f"interval{chosen.interval}"


def measure(
    place: Path, folder: Path, sparsity: float, data: dict[str, Any], steps: tuple[str, ...], chosen: argparse.Namespace
) -> dict[str, Any]:
    """One row: what is known of the network at that sparsity after `steps`."""
    from fpgaprune.design import Design
    from fpgaprune.emulate import emulate
    from fpgaprune.fabric import place_and_route, synthesize, to_verilog

    if not (place / "design.json").is_file():
        make_design_at(place, folder, sparsity, data, chosen)
    row = json.loads((place / "accuracy.json").read_text())
    if asked(chosen) != {name: row.get(name) for name in asked(chosen)}:
        raise SystemExit(f"{place} holds a network of another selection or seed; name an empty folder")
    design = Design.load(place / "design.json")
    outputs = emulate(design, data["x_test"])
    work = place / hardware_folder(chosen)
    row["accuracy_hardware"] = float((outputs.argmax(axis=-1) == data["y_test"]).mean())
    started = time.monotonic()
    project = to_verilog(design, work / "rtl", interval=chosen.interval)
    row["generate_s"] = round(time.monotonic() - started, 1)
    row["verilog"] = digest(project)
    earlier = work / "row.json"
    if earlier.is_file():
        known = json.loads(earlier.read_text())
        # What an earlier call measured on the same Verilog stays, whatever this one leaves out.
        row = {**known, **row} if known.get("verilog") == row["verilog"] else row
    row["kept"] = sum(layer.kept or 0 for layer in project.layers)
    row["dropped"] = sum(layer.dropped or 0 for layer in project.layers)
    row["adder_bits"] = {layer.layer: adder_bits(project, layer) for layer in project.layers}

    def tell(done: int, total: int, note: str) -> None:
        print(f"  {sparsity:g} {done}/{total} {note}", flush=True)

    if "simulate" in steps:
        simulation = project.simulate(data["x_test"], timeout_s=3600)
        row["latency_cycles"], row["interval_cycles"] = simulation.latency_cycles, simulation.interval_cycles
        row["different_outputs"] = int((simulation.output.reshape(outputs.shape) != outputs).sum())
    limits: dict[str, Any] = {
        "timeout_s": chosen.timeout,
        "cache": folder / "cache",
        "on_step": tell,
        "workers": chosen.workers,
    }
    if "synthesize" in steps:
        synthesis = synthesize(project, chosen.family, whole=not chosen.layers_only, **limits)
        row["synthesis"] = synthesis.to_json()
        row["kernels"] = kernels(design)
    if "route" in steps:
        try:
            row["route"] = place_and_route(
                project, seeds=chosen.seeds, target_mhz=chosen.target_mhz, **limits
            ).to_json()
        except (LookupError, RuntimeError) as error:
            row["route_left_out"] = str(error)
    (work / "row.json").write_text(json.dumps(row, indent=1))
    return row


def digest(project: Any) -> str:
    """Of every file of `project`'s Verilog."""
    found = hashlib.sha256()
    for name in sorted(project.files):
        found.update(name.encode() + b"\0" + (project.path / name).read_bytes())
    return found.hexdigest()


def adder_bits(project: Any, layer: Any) -> int:
    """Bits of all sums and differences that the Verilog of `layer` makes, as the cost of da4ml counts them.

    An adder of single bits counts for the two LUTs that it takes.
    """
    texts = [(project.path / name).read_text() for name in layer.files if name.startswith(f"rtl/{layer.module}")]
    return sum(int(high) + 1 for text in texts for high in ADDER.findall(text)) + 2 * sum(
        text.count("fp_serial_add ") for text in texts
    )


def lut_per_bit(rows: list[dict[str, Any]]) -> float | None:
    """LUTs for each bit of an adder, over all layers with adders whose synthesis ended."""
    lut = bits = 0
    for row in rows:
        for layer in (row.get("synthesis") or {"layers": ()})["layers"]:
            count = row["adder_bits"].get(layer["layer"], 0)
            if layer["cells"] and count:
                lut, bits = lut + layer["cells"]["lut"], bits + count
    return lut / bits if bits else None


def figures(row: dict[str, Any], rate: float | None) -> tuple[dict[str, Any], str]:
    """The total of `row` and what it is of; of LUTs an estimate where a layer's synthesis did not end."""
    synthesis = row.get("synthesis") or {"layers": ()}
    if synthesis.get("total"):
        return synthesis["total"], synthesis["total_of"]
    if rate is None:
        return {}, "–"
    known = {layer["layer"]: layer["cells"]["lut"] for layer in synthesis["layers"] if layer["cells"]}
    missing = {name: bits for name, bits in row["adder_bits"].items() if name not in known}
    lut = sum(known.values()) + rate * sum(missing.values())
    named = ", ".join(name for name, bits in missing.items() if bits)
    return {"lut": round(lut, -2)}, f"about: {named} by the bits of their adders, {rate:.2f} LUTs each"


def make_design_at(
    place: Path, folder: Path, sparsity: float, data: dict[str, Any], chosen: argparse.Namespace
) -> None:
    """`place` holds the design of the fine-tuned network, and its accuracy."""
    from fpgaprune.flow.task import start_session

    start_session(SEED)
    import keras

    import fpgaprune as fp
    from fpgaprune.flow.task import small_cnn

    per_epoch = -(-len(data["x_train"]) // BATCH)
    trained = folder / "trained.keras"
    if not trained.is_file():
        model = small_cnn((8, 8, 1), 10)
        compile_classifier(model, EPOCHS * per_epoch)
        model.fit(data["x_train"], data["y_train"], epochs=EPOCHS, batch_size=BATCH, verbose=0)
        model.save(trained)
    start_session(chosen.seed)  # also where the file was just made
    model = keras.saving.load_model(trained)
    read = (data["x_train"], data["y_train"])
    masks = fp.select(model, sparsity, "kernel", chosen.criterion, data=read, cost=chosen.cost, normalize="none")
    compile_classifier(model, EPOCHS * per_epoch)
    fp.finetune(
        model, masks, data["x_train"], data["y_train"], epochs=EPOCHS, batch_size=BATCH, seed=chosen.seed, verbose=0
    )
    small = fp.apply_removal(model, fp.plan_removal(model))
    # The hardware ends at the logits: the class is that of the largest one.
    logits = keras.Model(small.inputs, small.layers[-1].input)
    predicted = logits.predict(data["x_test"], verbose=0).argmax(axis=-1)
    target = fp.Target.of(PART, clock_ns=CLOCK_NS)
    precision = fp.Precision(weight_bits=6, activation_bits=8)
    design = fp.make_design(logits, target, data["x_train"][:512], precision, "digits")
    place.mkdir(parents=True, exist_ok=True)
    accuracy = float((predicted == data["y_test"]).mean())
    (place / "accuracy.json").write_text(json.dumps({"sparsity": sparsity, "accuracy": accuracy, **asked(chosen)}))
    design.save(place / "design.json")


def compile_classifier(model: Any, steps: int) -> None:
    """Compile `model`, which ends in probabilities, with a learning rate that falls to zero over `steps`."""
    import keras

    falling = keras.optimizers.schedules.CosineDecay(RATE, steps)
    model.compile(keras.optimizers.Adam(falling), "sparse_categorical_crossentropy", ["accuracy"])


def asked(chosen: argparse.Namespace) -> dict[str, Any]:
    """What selection and fine-tuning were asked for."""
    return {"criterion": chosen.criterion, "cost": chosen.cost, "seed": chosen.seed}


def kernels(design: Any) -> list[dict[str, Any]]:
    """Kernels of each convolution, kept and in all."""
    from fpgaprune.flow.stages import kernels_kept

    return kernels_kept(design)


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    lines = [
        "| kernels locked | accuracy, Keras | in hardware | products kept | LUT | FF | DSP | BRAM 18 Kb | total of | "
        "Fmax (median, range) | latency | interval |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- | ---: | ---: |",
    ]
    rate = lut_per_bit(rows)
    for row in sorted(rows, key=lambda row: row["sparsity"]):
        route = row.get("route") or {}
        cells, total_of = figures(row, rate)
        limits = route.get("fmax_range_mhz")
        speed = f"{route['fmax_mhz']:.1f} MHz ({limits[0]:.1f}–{limits[1]:.1f}) on {route['device']}" if limits else "–"
        counts = " | ".join(
            "–" if cells.get(name) is None else f"{cells[name]:,.0f}" for name in ("lut", "ff", "dsp", "bram18")
        )
        lines.append(
            f"| {row['sparsity']:.0%} | {row['accuracy']:.2%} | {row['accuracy_hardware']:.2%} | {row['kept']:,} | "
            f"{counts} | {total_of} | {speed} | {row.get('latency_cycles', '–')} | "
            f"{row.get('interval_cycles', '–')} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
