"""Real data, every way of making a small network of it, one synthesis: the table of the field.

    python tests/benchmarks/bench_field.py                              # small: shows that it runs
    python tests/benchmarks/bench_field.py FOLDER --task fsdd --ways recipe,hgq2,untouched --seeds 0
    python tests/benchmarks/bench_field.py FOLDER --table   # the rows in it and in field_rows.csv, nothing else
    python tests/benchmarks/bench_field.py FOLDER --store   # the same, in field_rows.csv and in the page

A task is real data with a customary network (`field_tasks.py`). FOLDER keeps a row for each task, way, seed and point,
and everything that led to it; a row that is there, or in `field_rows.csv`, is not made again, so the same command goes
on after a stop.

| way | what | points |
|---|---|---|
| `fit` | `fpgaprune fit` with a part, a clock, a largest loss and the interval of the task | loss |
| `recipe` | the flow file of `examples/` for such a network | sparsity:bits of activations:loss of `[trim]` |
| `recipe` of inputs of one bit | `examples/one_bit.toml` | inputs that each neuron keeps |
| `hgq2` | HGQ2 from scratch, alkaid's Verilog, a sample a cycle | price of a bit |
| `hgq2-ours` | HGQ2 from scratch, our Verilog, with the interval of the task | price of a bit |
| `pquant` | PQuantML from scratch, alkaid's Verilog; Dense networks only | method:strength, `field_pquant.py` |
| `tfmot` | TF-MOT's polynomial decay, weights of 6 bits, activations of 6 bits, our Verilog | sparsity |
| `untouched` | the trained network, 8 bits, our Verilog | – |

Every way trains for the same number of epochs in all, on the same training samples. Accuracy is that of the hardware on
test samples, which choose nothing: `fit` and the types are judged by validation samples. HGQ2, PQuantML and
alkaid may stand in an environment of their own: `--rivals` is its Python.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).parents[2]))

import field_table
import flow_files
import keras
import numpy as np
from field_tasks import TASKS, Task, network
from flow_files import example, merged

import fpgaprune as fp

HERE = Path(__file__).parent
PART, CLOCK_NS = "xc7z020clg400-1", 5.0
# So many cycles for a sample are few: `paths` of examples/convolution_bits.toml.
_FEW_CYCLES = 100
# Of the trained network, of [finetune] and of [quantise]; a way that trains from scratch has their sum.
EPOCHS = (24, 90, 30)
POINTS = {
    "fit": "0.5%,2%",
    "recipe": "0.6,0.75,0.85,0.9,0.95",
    "hgq2": "5e-6,2e-5,8e-5",
    "hgq2-ours": "5e-6,2e-5,8e-5",
    "pquant": "hgq-mdmm:2e-5,mdmm:0.8,pdp:0.8",
    "tfmot": "0.6,0.8",
    "untouched": "8 bits",
}


@dataclass(frozen=True)
class Turn:
    """One way, with one seed and one point.

    Attributes:
        folder: of everything that it makes.
        base: the trained network.
        data: the task's samples: those of validation in the place of the test samples.
        epochs: of the trained network, of [finetune] and of [quantise].
    """

    task: str
    way: str
    seed: int
    point: str
    folder: Path
    base: Path
    data: Path
    epochs: tuple[int, int, int]

    @property
    def flow(self) -> dict[str, Any]:
        """What every flow of this turn has in common."""
        return {
            "name": f"{self.way}_{self.seed}_{self.point}".translate(str.maketrans("-. %:", "_____")),
            "seed": self.seed,
            "data": {"source": str(self.data)},
            "target": {"part": PART, "clock_ns": CLOCK_NS, "io_type": "io_stream"},
            "hls": {"simulate": 0},
        }


def main() -> None:
    """Runs what is asked for and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="of everything that is kept; left out: a short run")
    parser.add_argument("--task", default="mnist-dense", help=f"one or several of {', '.join(TASKS)}")
    parser.add_argument("--ways", default="recipe,hgq2,untouched")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--points", help="of the way, in place of its own")
    parser.add_argument("--minutes", type=float, default=10.0, help="of fit")
    parser.add_argument("--epochs", default=",".join(map(str, EPOCHS)), help="trained network, [finetune], [quantise]")
    parser.add_argument("--rivals", default=sys.executable, help="the Python that has HGQ2, alkaid and PQuantML")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument(
        "--store", action="store_true", help="measure nothing; write all rows to field_rows.csv and to the page"
    )
    chosen = parser.parse_args()
    if chosen.folder is None:
        with tempfile.TemporaryDirectory() as folder:
            chosen.folder, chosen.task, chosen.ways, chosen.epochs = Path(folder), "fsdd", "recipe", "1,1,6"
            chosen.points = "0.9"
            _run(chosen, stored=None)
    else:
        _run(chosen, field_table.STORED)


def _run(chosen: argparse.Namespace, stored: Path | None) -> None:
    folder = chosen.folder.resolve()
    known = {(row.task, row.way, row.seed, row.point) for row in field_table.read_rows(folder, stored)}
    for name in [] if chosen.table or chosen.store else chosen.task.split(","):
        task = TASKS[name]
        if not task.file.exists():
            print(f"skipped: {name}: {task.file} is not there")
            continue
        one, two, three = (int(text) * task.repeats for text in chosen.epochs.split(","))
        for seed in (int(text) for text in chosen.seeds.split(",")):
            for way in chosen.ways.split(","):
                for point in (chosen.points or POINTS[way]).split(","):
                    place = folder / name / f"{way}_{seed}_{point.replace('%', '')}"
                    if (name, way, seed, point) in known:
                        continue
                    base, data = trained(folder / name, task, seed, one)
                    turn = Turn(name, way, seed, point, place, base, data, (one, two, three))
                    place.mkdir(parents=True, exist_ok=True)
                    row = WAYS[way](turn, chosen)
                    field_table.write_row(place / "row.json", row)
                    print(row, file=sys.stderr, flush=True)
    rows = field_table.read_rows(folder, stored)
    words = {name: task.words for name, task in TASKS.items()}
    data = {name: task.data for name, task in TASKS.items()}
    tables = [
        field_table.what_is_compared(rows, data, words),
        field_table.beside_rivals(rows, words),
        field_table.every_network(rows, words),
    ]
    print("\n\n".join(tables))
    if chosen.store:
        field_table.store_rows(rows)
        page = field_table.PAGE
        page.write_text(field_table.with_tables(page.read_text(encoding="utf-8"), tables), encoding="utf-8")


def trained(folder: Path, task: Task, seed: int, epochs: int) -> tuple[Path, Path]:
    """The network that ways begin with, and the samples; the test samples are in `test.npz` beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    path, data = folder / f"base_{seed}.keras", folder / "data.npz"
    arrays = task.arrays()
    if not data.exists():
        held_out = {f"{key}_{part}": arrays[f"{key}_valid"] for key in "xy" for part in ("valid", "test")}
        _save(folder / "test.npz", x=arrays["x_test"], y=arrays["y_test"])
        _save(data, x_train=arrays["x_train"], y_train=arrays["y_train"], **held_out)
    if not path.exists():
        model, x = network(task, arrays, seed), arrays["x_train"]
        rate = keras.optimizers.schedules.CosineDecay(5e-3, epochs * -(-len(x) // task.batch))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"])
        model.fit(x, arrays["y_train"], batch_size=task.batch, epochs=epochs, verbose=0)
        part = path.with_name(f"{os.getpid()}_{path.name}")
        model.save(part)
        part.replace(path)
    return path, data


def _save(path: Path, **arrays: np.ndarray) -> None:
    """`arrays` are in `path`, whole or not at all: several tasks may run side by side."""
    part = path.with_name(f"{os.getpid()}_{path.name}")
    np.savez(part, **arrays)
    part.replace(path)


def fit(turn: Turn, chosen: argparse.Namespace) -> field_table.Row:
    """What `fpgaprune fit` answers."""
    task, out, began = TASKS[turn.task], turn.folder / "fit", _processor_seconds()
    command = [sys.executable, "-P", "-m", "fpgaprune", "fit", str(turn.base), "--data", str(turn.data)]
    command += ["--part", PART, "--clock-ns", str(CLOCK_NS), "--route", "verilog", "--max-loss", turn.point]
    # The latency may be what it is: then the search makes the share of the part small.
    command += ["--interval-cycles", str(task.interval), "--latency-us", "50", "--minutes", str(chosen.minutes)]
    seconds = turn.folder / "seconds.json"
    if not seconds.exists():
        ended = subprocess.run([*command, "--out", str(out), "--quiet"], capture_output=True, text=True, check=False)
        if ended.returncode not in (0, 1):
            raise SystemExit(f"the search failed: {' '.join(command)}\n{ended.stderr}")
        seconds.write_text(f"{_processor_seconds() - began}\n")
    return _measured(turn, out / "best", json.loads(seconds.read_text()))


def recipe(turn: Turn, _: argparse.Namespace) -> field_table.Row:
    """The flow file of the examples; an input of a Dense network that has a sign gets a bit for it."""
    task = TASKS[turn.task]
    if task.one_bit:
        return _one_bit(turn)
    sparsity, bits, limit = [*turn.point.split(":"), "", ""][:3]
    # Behind few positions a Dense layer is adders, too; with more time for a sample it is folded, zeros or not.
    everywhere = {"paths": ["*kernel"]} if 1 < task.interval <= _FEW_CYCLES else {}
    select = {"sparsity": float(sparsity), **everywhere}
    flow = example("trained_bits" if task.dense else "convolution_bits", select=select)
    if bits:
        flow = merged(flow, {"hls": {"activation_bits": int(bits)}})
    if limit:
        flow = merged(flow, {"trim": {"max_loss": limit}})
    if task.dense:
        with np.load(turn.data) as file:
            input_bits = flow["hls"]["activation_bits"] + int(file["x_train"].min() < 0)
        flow = merged(flow, {"hls": {"layers": {"x": {"activation_bits": input_bits}}}})
    return _trained(turn, flow)


def _one_bit(turn: Turn) -> field_table.Row:
    """The flow file for inputs of one bit: `point` inputs for each neuron, and each of the last ones votes once."""
    kernels = {path: array for path, array in fp.weight_arrays(fp.load(turn.base).model).items() if array.ndim == 2}
    path, (units, classes) = list(kernels)[-1], list(kernels.values())[-1].shape
    votes = turn.folder / "votes.npz"
    fp.MaskSet({path: np.repeat(np.eye(classes), units // classes, axis=0) > 0}).save(votes)
    return _trained(turn, example("one_bit", select={"granularity": f"{turn.point}:all", "masks": str(votes)}))


def _trained(turn: Turn, flow: dict[str, Any]) -> field_table.Row:
    """The row of a flow that trains the network of the turn on, for its epochs."""
    training = {"epochs": turn.epochs[1], "batch_size": TASKS[turn.task].batch}
    flow = merged(flow, {"finetune": training, "quantise": {"epochs": turn.epochs[2]}})
    return _flow(turn, merged(flow, {"train": {"model": str(turn.base)}}))


def untouched(turn: Turn, _: argparse.Namespace) -> field_table.Row:
    """The trained network with 8 bits, as our Verilog."""
    flow = {"train": {"model": str(turn.base)}, "finetune": {"epochs": 0}}
    return _flow(turn, {**flow, "hls": {"weight_bits": 8, "activation_bits": 8}})


def tfmot(turn: Turn, _: argparse.Namespace) -> field_table.Row:
    """TF-MOT prunes the trained network; our Verilog with 6 bits."""
    out, began = turn.folder / "tfmot.h5", _processor_seconds()
    asked = [str(turn.base), str(turn.data), turn.point, str(sum(turn.epochs[1:])), str(TASKS[turn.task].batch)]
    _in_a_process(sys.executable, "field_tfmot.py", out, [*asked, str(out)], TF_USE_LEGACY_KERAS="1")
    flow = {"train": {"model": str(out)}, "select": {"zeros": True}, "finetune": {"epochs": 0}}
    return _flow(turn, {**flow, "hls": {"weight_bits": 6, "activation_bits": 6}}, _processor_seconds() - began)


def hgq2(turn: Turn, chosen: argparse.Namespace) -> field_table.Row:
    """HGQ2's network as alkaid's Verilog."""
    out = turn.folder / "hgq2.json"
    _hgq(turn, chosen, out)
    return _said(turn, out)


def _said(turn: Turn, out: Path) -> field_table.Row:
    """The row of a network of a rival as alkaid's Verilog, which `out` describes."""
    said = json.loads(out.read_text())
    said["metric"] = said.pop("test")
    said.pop("valid")
    return field_table.Row(turn.task, turn.way, turn.seed, turn.point, **said)


def pquant(turn: Turn, chosen: argparse.Namespace) -> field_table.Row:
    """PQuantML's network as alkaid's Verilog."""
    out = turn.folder / "pquant.json"
    asked = [turn.task, str(turn.seed), turn.point, str(sum(turn.epochs)), str(out.with_suffix(""))]
    _in_a_process(chosen.rivals, "field_pquant.py", out, asked)
    return _said(turn, out)


def hgq2_ours(turn: Turn, chosen: argparse.Namespace) -> field_table.Row:
    """HGQ2's network as our Verilog. A Dense network is that of `hgq2`, where it is there."""
    out = turn.folder / "hgq2.json"
    if TASKS[turn.task].dense:
        out = turn.folder.parent / turn.folder.name.replace("hgq2-ours", "hgq2") / "hgq2.json"
    _hgq(turn, chosen, out, *([] if TASKS[turn.task].dense else ["shared"]))
    flow = {"train": {"model": str(out.with_suffix(".keras"))}, "select": {"zeros": True}, "finetune": {"epochs": 0}}
    return _flow(turn, {**flow, "hls": {"precision": "widths"}}, json.loads(out.read_text())["seconds"])


def _hgq(turn: Turn, chosen: argparse.Namespace, out: Path, *words: str) -> None:
    out.parent.mkdir(exist_ok=True)
    asked = [turn.task, str(turn.seed), turn.point, str(sum(turn.epochs)), str(out.with_suffix("")), *words]
    _in_a_process(chosen.rivals, "field_hgq.py", out, asked)


def _in_a_process(python: str, script: str, out: Path, asked: list[str], **environment: str) -> None:
    """`script` of this folder has written `out`."""
    if out.exists():
        return
    places = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": places, **environment}
    ended = subprocess.run(
        [python, str(HERE / script), *asked], capture_output=True, text=True, env=environment, check=False
    )
    if ended.returncode:
        raise SystemExit(f"{script} failed: {' '.join(asked)}\n{ended.stderr[-3000:]}")


def _flow(turn: Turn, flow: dict[str, Any], seconds: float = 0.0) -> field_table.Row:
    """The row of a flow: trained first, then measured, so that the training is timed alone."""
    task = TASKS[turn.task]
    flow = merged(flow, turn.flow)
    if task.interval == 1:
        flow = merged(flow, {"target": {"io_type": "io_parallel"}})
    began = _processor_seconds()
    flow_files.run(merged(flow, {"measure": {"families": [], "simulate": 0}}), turn.folder)
    seconds += _processor_seconds() - began
    layout = {} if task.interval == 1 else {"part": PART, "interval": task.interval}
    out = flow_files.run(merged(flow, {"measure": {"families": ["xc7"], "simulate": 8, **layout}}), turn.folder)
    return _measured(turn, out, seconds)


def _measured(turn: Turn, run: Path, seconds: float) -> field_table.Row:
    """The row of a run folder: test samples emulated, cells counted, cycles simulated."""
    with np.load(turn.data.with_name("test.npz")) as file:
        x, y = file["x"], file["y"]
    found = fp.emulate(fp.Design.load(run / "design.json"), x).reshape(len(x), -1)
    measured = json.loads((run / "measure.json").read_text())
    if measured is None:
        raise SystemExit(f"{run}: {flow_files.results(run, 'measure')['left_out']}")
    cells, cycles = measured["synth(open)"]["xc7"]["whole"]["cells"], measured["simulation"]
    if cycles["outputs_unlike_emulation"]:
        raise SystemExit(f"{run}: {cycles['outputs_unlike_emulation']} outputs of the Verilog are unlike the emulation")
    return field_table.Row(
        turn.task,
        turn.way,
        turn.seed,
        turn.point,
        float((found.argmax(1) == y).mean()),
        len(y),
        *(cells[name] for name in ("lut", "ff", "dsp", "bram18")),
        cycles["interval_cycles"],
        cycles["latency_cycles"],
        seconds,
    )


def _processor_seconds() -> float:
    """What the processes that this one has started and that have ended took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


WAYS = {
    "fit": fit,
    "recipe": recipe,
    "hgq2": hgq2,
    "hgq2-ours": hgq2_ours,
    "pquant": pquant,
    "tfmot": tfmot,
    "untouched": untouched,
}

if __name__ == "__main__":
    main()
