"""Damaged files of every kind at every door: read, or refused in one line; no traceback, no hang, no code run."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune import cli
from fpgaprune.certify import read_onnx_weights
from fpgaprune.design import Design
from fpgaprune.estimate import estimate_designs_file, read_own_calibration
from fpgaprune.fabric import find_board
from fpgaprune.flow.engine import read_config, verify_run
from fpgaprune.flow.finished import compare_folders
from fpgaprune.flow.run import RunDirectory, price
from fpgaprune.flow.task import load_data
from fpgaprune.network import read_keras_ends, read_keras_layers, read_keras_weights
from fpgaprune.remove import read_plan
from fpgaprune.rtl import VerilogProject
from fpgaprune.target import read_parts
from fpgaprune.values import MaskSet

from ..unit.estimate.designs import cnn
from ..unit.estimate.test_rows import dense, row
from ..unit.fabric.tiny import tiny_project
from ..unit.rtl.networks import random_design
from . import sound_files
from .judging import Tally, drill

CANARY = "import pathlib\npathlib.Path(__file__).with_name('canary').touch()\ndef run(*_, **__): return {}\n"
SLICE = os.environ.get("FPGAPRUNE_DRILL_SEED", "0")


def _emulated(folder: Path) -> None:
    """Every number of the design is finite, and it is what it was where it is saved again."""
    design = Design.load(folder / "design.json")
    entries = [layer for layer in design.layers if layer.kind == "Input"]
    if sum(int(np.prod(layer.output_shape)) for layer in design.layers) > 1 << 22:
        return
    found = fp.emulate(design, [np.zeros((1, *entry.output_shape), np.float32) for entry in entries])
    for array in found if isinstance(found, tuple) else (found,):
        assert np.isfinite(array).all()


def _saved_again(folder: Path) -> None:
    design = Design.load(folder / "design.json")
    again = folder / "again.json"
    design.save(again)
    assert Design.load(again).to_json() == design.to_json()


def _command(*arguments: str):
    """The command as a user gives it; its exit status is one of ours."""

    def call(folder: Path) -> None:
        given = [argument.replace("DIR", str(folder)) for argument in arguments]
        out, problems = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patched, redirect_stdout(out), redirect_stderr(problems):
            patched.setattr(sys, "argv", ["fpgaprune", *given])
            try:
                cli.main()
                status: object = 0
            except SystemExit as ended:
                status = ended.code
        assert status in (0, 1, 2, None), status
        assert "Traceback" not in problems.getvalue()
        assert status or not problems.getvalue()

    return call


def _kinds(folder: Path):
    """Damaged file, the files around it, the doors, and how many of a hundred inputs are its."""
    flow = {"flow.toml": sound_files.FLOW}
    yield "flow.toml", flow, {"read_config": lambda f: read_config(f / "flow.toml")}, 22
    parts = {"parts.toml": sound_files.PARTS}
    doors = {"read_parts": lambda f: read_parts(f / "parts.toml"), "parts": _command("parts", "DIR/parts.toml:xc9a")}
    yield "parts.toml", parts, doors, 3
    board = {"board.toml": sound_files.board()}
    yield "board.toml", board, {"find_board": lambda f: find_board(f / "board.toml")}, 2
    calibration = {"own.toml": sound_files.own_calibration()}
    yield "own.toml", calibration, {"read_own_calibration": lambda f: read_own_calibration(f / "own.toml")}, 2
    data = {"data.npz": sound_files.data()}
    yield "data.npz", data, {"load_data": lambda f: load_data(str(f / "data.npz"))}, 16
    masks = {"masks.npz": sound_files.as_npz(**sound_files.masks())}
    yield "masks.npz", masks, {"load": lambda f: MaskSet.load(f / "masks.npz").fitted({"fc/kernel": (4, 3)})}, 14
    model = {"model.onnx": sound_files.onnx_model()}
    yield "model.onnx", model, {"read_onnx_weights": lambda f: read_onnx_weights(f / "model.onnx")}, 14
    rows = {"rows.jsonl": b"\n".join(json.dumps(row(dense(16, 8), id=f"r{i}")).encode() for i in range(2))}
    yield "rows.jsonl", rows, {"estimate_designs_file": lambda f: estimate_designs_file(f / "rows.jsonl")}, 4
    tiny_project(folder / "rtl").write({})
    listed = {"project.json": (folder / "rtl" / "project.json").read_bytes()}
    yield "project.json", listed, {"load": lambda f: VerilogProject.load(f)}, 4
    run = sound_files.run_folder()
    verify = {"verify_run": verify_run}
    yield "manifest.json", run, {"existing": RunDirectory.existing}, 5
    yield "removal.json", run, {"read_plan": lambda f: read_plan(f / "removal.json").remap(sound_files.masks())}, 4
    yield "certificate.json", run, {**verify, "verify": _command("verify", "DIR")}, 1
    yield "masks.npz", run, verify, 1
    for seed in range(2):
        saved = sound_files.saved_design(folder, cnn("io_stream", "latency", 1) if seed else random_design(3, 1))
        # The random design is for our Verilog, the CNN for an hls4ml project.
        priced = {"price": lambda f: price(f / "design.json", "zcu104")} if seed else {"price": _verilog_price}
        ran = {} if seed else {"emulate": _emulated, "to_verilog": _to_verilog}
        yield "design.json", saved, {**priced, "save": _saved_again, **ran}, 3
        yield "design.npz", saved, {"save": _saved_again, **ran}, 1
    yield "design.json", saved, {"compare": _compared}, 0.4
    yield "design.json", saved, {"estimate": _command("estimate", "DIR/design.json")}, 0.6


def _compared(folder: Path) -> None:
    (folder / "hls").mkdir(exist_ok=True)
    compare_folders([folder])


def _verilog_price(folder: Path) -> None:
    fp.verilog_price(Design.load(folder / "design.json"))


def _to_verilog(folder: Path) -> None:
    fp.to_verilog(Design.load(folder / "design.json"), folder / "verilog")


def _drill_all(folder: Path, monkeypatch, per_hundred: float, seed: int) -> Tally:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    tally = Tally()
    for number, (damaged, files, doors, share) in enumerate(_kinds(folder)):
        home = folder / str(number)
        home.mkdir()
        (home / "canary.py").write_text(CANARY)
        before = tally.counts.copy()
        drill(home, files, damaged, doors, max(1, round(share * per_hundred)), seed, tally)
        sys.stdout.write(f"  {damaged} at {', '.join(doors)}: {dict(tally.counts - before)}\n")
    tally.counts["code run"] = len(list(folder.rglob("canary")))
    return tally


def _report(capsys, tally: Tally) -> None:
    with capsys.disabled():
        sys.stdout.write("\n".join((f"\ndamaged files: {dict(tally.counts)}", *tally.faults, "")))
    assert not tally.faults
    assert not tally.counts["code run"]
    assert tally.counts["refused in one line"] > tally.counts["inputs"] / 4


def test_damaged_files_are_read_or_refused_in_one_line(tmp_path, monkeypatch, capsys):
    _report(capsys, _drill_all(tmp_path, monkeypatch, 2.5, seed=int(SLICE)))


@pytest.mark.slow
def test_many_damaged_files_are_read_or_refused_in_one_line(tmp_path, monkeypatch, capsys):
    _report(capsys, _drill_all(tmp_path, monkeypatch, float(os.environ.get("FPGAPRUNE_DRILL", "240")), seed=1))


KERAS_DOORS = {
    "read_keras_weights": lambda f: read_keras_weights(f / "model.keras"),
    "read_keras_ends": lambda f: read_keras_ends(f / "model.keras"),
    "read_keras_layers": lambda f: read_keras_layers(f / "model.keras"),
}


@pytest.mark.slow
def test_damaged_keras_files_are_read_or_refused_in_one_line(tmp_path, monkeypatch, capsys):
    from fpgaprune.frontends import load_keras

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "canary.py").write_text(CANARY)
    count = int(os.environ.get("FPGAPRUNE_DRILL_KERAS", "2000"))
    doors = {**KERAS_DOORS, "load_keras": lambda f: load_keras(f / "model.keras")}
    tally = drill(tmp_path, {"model.keras": sound_files.keras_model()}, "model.keras", doors, count, 1)
    load_keras(tmp_path / "model.keras").save(tmp_path / "sound.h5")
    files = {"model.h5": (tmp_path / "sound.h5").read_bytes()}
    drill(tmp_path, files, "model.h5", {"load_keras": lambda f: load_keras(f / "model.h5")}, count // 2, 1, tally)
    tally.counts["code run"] = len(list(tmp_path.rglob("canary")))
    _report(capsys, tally)
