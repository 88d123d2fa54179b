"""Flows that are killed at file operations and at random moments, resumed, and compared with an undisturbed one.

Started as a program: `killed_flow.py KIND FOLDER RUNS KILLS SEED`, where KIND is `files` (stages that only write files,
without TensorFlow, killed once at each operation) or `flow` (every stage of a small network; RUNS runs, each killed and
resumed up to KILLS times). Prints what it counted as JSON.

Each run is a fork of one process that has loaded the libraries and started nothing. It ends itself with SIGKILL just
before its n-th operation that changes a file, which Python announces by audit events.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from fpgaprune.errors import FpgaPruneError
from fpgaprune.files import write_bytes, write_npz
from fpgaprune.flow.engine import parse_config, runner
from fpgaprune.flow.run import Silent
from fpgaprune.flow.stages import FlowStage, StageResult, report
from fpgaprune.network import save_keras

_CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.truncate"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def end_at(number, folder, tell):
    """This process is killed before its `number`-th change below `folder`; None counts them only, and tells them."""
    home, seen = str(folder), 0

    def hook(event, arguments):
        nonlocal seen
        if event == "open":
            path, _, flags = arguments
            is_change = isinstance(flags, int) and bool(flags & _WRITES)
        elif event in _CHANGES:
            path, is_change = arguments[0], True
        else:
            return
        if not is_change or isinstance(path, int) or not os.fsdecode(path).startswith(home):
            return
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)
        if number is None:
            os.write(tell, b".")

    sys.addaudithook(hook)


def forked(work, folder, number=None, after_s=None):
    """`work` ran in a fork: its exit status, the changes that it made where these are counted, and its seconds."""
    reader, writer = os.pipe()
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            end_at(number, folder, writer)
            work()
            status = 0
        except BaseException as error:  # noqa: BLE001 - the fork must not go on as the test
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(status)
    os.close(writer)
    if after_s is not None:
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
    made = 0
    while part := os.read(reader, 65536):
        made += len(part)
    os.close(reader)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), made, time.monotonic() - started


def contents(folder):
    """Everything that must be the same: each file's bytes, and the manifest without times and the digest over them."""
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in (".lock", "manifest.json")
    }
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest.pop("digest")
    for record in manifest["stages"].values():
        record.pop("seconds")
    return {**files, "manifest.json": json.dumps(manifest, sort_keys=True).encode()}


def stage_of(folder):
    """The stage that was at work when a run was killed."""
    try:
        done = json.loads((folder / "manifest.json").read_text())["stages"]
    except (FileNotFoundError, ValueError):
        return "before the manifest"
    return next((stage.name for stage in runner.STAGES if stage.name not in done), "certificate")


class _Model:
    """Stands for a Keras model: it saves itself, in several files."""

    def save(self, path):
        import zipfile

        with zipfile.ZipFile(path, "w") as archive:
            for name in ("metadata.json", "config.json", "model.weights.h5"):
                archive.writestr(name, json.dumps({"name": name}))


def _project(context):
    """A folder that takes the place of the one before, as the hls4ml project does."""
    import shutil
    import tempfile

    folder = context.run.file("hls")
    draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".partial"))
    (draft / "hls" / "firmware").mkdir(parents=True)
    for name in ("README.md", "firmware/defines.h"):
        (draft / "hls" / name).write_text(name)
    if folder.exists():
        folder.rename(draft / "replaced")
    (draft / "hls").rename(folder)
    shutil.rmtree(draft)


class _OnlyFiles(FlowStage):
    """A stage that does nothing but write."""

    result, needs_keras, folders = StageResult, False, ("rtl", "synth")

    def __init__(self, name, inputs, outputs, write):
        self.name, self.inputs, self.outputs, self._write = name, inputs, outputs, write

    def run(self, context):
        self._write(context)
        return StageResult(notes=())

    def settings(self, config):
        return config.name


def _trained(context):
    context.run.file("early.npz").unlink(missing_ok=True)
    write_npz(context.run.file("train.checkpoint.npz"), {"epoch": np.arange(3)})
    save_keras(_Model(), context.run.file("trained.keras"))
    context.run.file("train.checkpoint.npz").unlink()


def _verilog(context):
    for name in ("top.v", "rtl/layer.v"):
        write_bytes(context.run.file("rtl") / name, name.encode())
    write_bytes(context.run.file("measure.json"), context.run.file("trained.keras").read_bytes()[:64])


def only_files(folder):
    """A function that makes a run of stages that do nothing but write."""
    runner.STAGES = (
        _OnlyFiles("train", (), ("trained.keras", "early.npz"), _trained),
        _OnlyFiles("hls", ("trained.keras",), ("hls",), _project),
        _OnlyFiles("measure", ("trained.keras",), ("measure.json", "rtl"), _verilog),
    )
    config = parse_config({"name": "files"}, "drill")
    runner.check_flow = lambda *_: SimpleNamespace(digest=lambda: "data")
    runner.foresee_flow = lambda config, *_: config
    runner.assemble_certificate = lambda run: {"format": 1, "of": sorted(run.manifest["stages"])}
    return lambda path: runner.run_flow(config, path, Silent())


def small_flow(folder):
    """A function that makes a run of every stage, with a small network."""
    # What every run needs is loaded once.
    import hls4ml  # noqa: F401
    import onnxruntime  # noqa: F401
    import tensorflow  # noqa: F401
    import tf2onnx.tfonnx  # noqa: F401

    rng = np.random.default_rng(5)
    x = rng.random((48, 8, 8, 1), dtype=np.float32)
    y = (x[:, :4].mean(axis=(1, 2, 3)) > x[:, 4:].mean(axis=(1, 2, 3))).astype(np.int64)
    write_npz(folder / "data.npz", {"x_train": x, "y_train": y, "x_test": x[:16], "y_test": y[:16]})
    config = parse_config(
        {
            "name": "small",
            "seed": 3,
            "data": {"source": str(folder / "data.npz")},
            "train": {"epochs": 2},
            "select": {"sparsity": 0.8},
            "finetune": {"epochs": 2},
            "quantise": {"epochs": 2},
            "verdict": {"max_loss": "100 %"},
            "target": {"part": "xczu9eg"},
        },
        "drill",
    )
    # Times, and which stages were unchanged, are what a kill may change.
    report.stage_times = lambda *_: ()
    return lambda path: runner.run_flow(config, path, Silent())


def drill(kind, folder, runs, kills, seed):
    """What was counted."""
    os.environ["PATH"] = str(folder / "no-compiler")
    work = only_files(folder) if kind == "files" else small_flow(folder)
    # Of now: the package may be worked on while the drill goes on.
    versions = runner._versions()
    runner._versions = lambda: versions
    whole = folder / "undisturbed"
    status, changes, seconds = forked(lambda: work(whole), whole)
    if status:
        raise SystemExit("the undisturbed run failed")
    wanted = contents(whole)
    rng = np.random.default_rng(seed)
    stages, same, killed, differing = Counter(), 0, 0, []
    plans = [[n] for n in range(1, changes + 1)] if kind == "files" else [None] * runs
    for number, plan in enumerate(plans):
        path = folder / f"run{number}"
        for kill in plan or range(kills):
            if plan is not None:
                status, _, _ = forked(lambda path=path: work(path), path, number=kill)
            elif kill % 2:
                status, _, _ = forked(lambda path=path: work(path), path, after_s=rng.uniform(0.2, seconds / kills))
            else:
                at = int(rng.integers(1, max(2, 2 * changes // kills)))
                status, _, _ = forked(lambda path=path: work(path), path, number=at)
            if status != -signal.SIGKILL:
                break
            killed += 1
            stages[stage_of(path)] += 1
        status, _, _ = forked(lambda path=path: work(path), path)
        found = contents(path) if status == 0 else {}
        wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
        same += not wrong
        differing += [f"run {number}: {', '.join(wrong[:5])}"] * bool(wrong)
        sys.stderr.write(f"run {number}: {'the same' if not wrong else wrong[:5]}, {killed} kills so far\n")
    return {
        "runs": len(plans),
        "same": same,
        "kills": killed,
        "changes": changes,
        "seconds": round(seconds, 1),
        "stages": dict(stages),
        "differing": differing,
    }


if __name__ == "__main__":
    kind, folder, *numbers = sys.argv[1:]
    try:
        sys.stdout.write(json.dumps(drill(kind, Path(folder), *map(int, numbers))) + "\n")
    except FpgaPruneError as error:
        raise SystemExit(str(error)) from error
