"""Bitstreams of the tools themselves are read back: those of a run compute every golden bit."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from fpgaprune.cli import app
from fpgaprune.errors import ReadbackError, RtlError, ToolError
from fpgaprune.fabric import bitstream_ending, find_board_router, find_open_tool, make_bitstream
from fpgaprune.files import hardware_path
from fpgaprune.flow import verify_bitstream
from fpgaprune.flow.run import RunDirectory
from fpgaprune.readback import Results, check_bitstream, read_chip

from ..unit.estimate.designs import mlp
from ..unit.readback.kept import ICE40
from ..unit.readback.mixed import RESULTS, mixed_project, samples
from .narrow_memories import narrow_project, narrow_samples
from .wide_memories import wide_project, wide_samples

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _tools(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "yowasp"))
    try:
        for board in ("tang-nano-9k", "icebreaker", "colorlight-i5", "gatemate-a1-evb"):
            for tool in find_board_router(board)[1].tools:
                find_open_tool(tool)
    except ToolError as error:
        pytest.skip(str(error))


# Boards with other FPGAs like the iCEBreaker's: the FPGA, its package, and the pins of clock and serial line.
OTHERS = {
    "hx1k": ("ice40hx1k", "tq144", "21", "10", "8"),
    "hx4k": ("ice40hx4k", "tq144", "21", "10", "8"),
    "hx8k": ("ice40hx8k", "ct256", "J3", "B10", "B12"),
}


def board_named(name, folder):
    """The name, or the file of one of `OTHERS`."""
    if name not in OTHERS:
        return name
    text = hardware_path("boards", "icebreaker.toml").read_text()
    for old, new in zip(("ice40up5k", "sg48", '"35"', '"6"', '"9"'), OTHERS[name], strict=True):
        text = text.replace(old, new if old.isalnum() else f'"{new}"')
    (folder / f"{name}.toml").write_text(text)
    return folder / f"{name}.toml"


@pytest.mark.parametrize(
    "name",
    [
        *("tang-nano-9k", "tang-nano-20k", "tang-primer-20k", "icebreaker", "colorlight-i5", "ulx3s"),
        *("ecp5-evn", "orangecrab", "gatemate-a1-evb", *OTHERS),
    ],
)
def test_every_kind_of_cell_computes_what_it_should(tmp_path, name):
    # A GateMate multiplies by arrays of logic cells, which are decoded as tables.
    kinds = {"block memories"} if name in (*OTHERS, "gatemate-a1-evb") else {"block memories", "multipliers"}
    kinds |= set() if name in (*OTHERS, "icebreaker", "gatemate-a1-evb") else {"small memories"}
    project, board = mixed_project(tmp_path / "mixed"), board_named(name, tmp_path)
    made = make_bitstream(project, board, tmp_path / f"mixed{bitstream_ending(board)}")
    sent, wanted = samples(500, seed=7)
    found = check_bitstream(made.path, board, sent, wanted, 500, RESULTS)
    assert found.holds, found.sentence()
    assert found.cells is not None
    assert kinds <= set(found.decoded)


def test_a_bitstream_for_another_ice40_is_refused(tmp_path):
    path = ICE40.bitstream(tmp_path)
    with pytest.raises(ReadbackError, match="is for an iCE40 5k, not for an iCE40 8k"):
        read_chip(path, board_named("hx8k", tmp_path))


@pytest.mark.parametrize(
    ("board", "width"), [("tang-nano-9k", 32), ("tang-nano-9k", 36), ("colorlight-i5", 36), ("gatemate-a1-evb", 36)]
)
def test_words_as_wide_as_two_ports_are_read_back(tmp_path, board, width):
    made = make_bitstream(wide_project(tmp_path / "wide", width), board, tmp_path / f"wide{bitstream_ending(board)}")
    sent, wanted = wide_samples(60, width)
    results = Results(lanes=1, width=40, fraction=0, beat_bytes=5)
    found = check_bitstream(made.path, board, sent, wanted, 60, results)
    assert found.holds, found.sentence()
    assert found.cells is not None
    assert found.decoded["block memories"] == 2


@pytest.mark.parametrize(("board", "multipliers"), [("tang-nano-9k", 1), ("colorlight-i5", 1), ("gatemate-a1-evb", 0)])
def test_narrow_words_and_registers_around_a_product_are_read_back(tmp_path, board, multipliers):
    made = make_bitstream(narrow_project(tmp_path / "narrow"), board, tmp_path / f"narrow{bitstream_ending(board)}")
    sent, wanted = narrow_samples(60)
    results = Results(lanes=1, width=24, fraction=0, beat_bytes=3)
    found = check_bitstream(made.path, board, sent, wanted, 60, results)
    assert found.holds, found.sentence()
    assert found.cells is not None
    assert (found.decoded["block memories"], found.decoded.get("multipliers", 0)) == (3, multipliers)


@pytest.mark.parametrize(
    "board", [*("tang-nano-9k", "icebreaker", "colorlight-i5", "ecp5-evn", "orangecrab", "gatemate-a1-evb")]
)
def test_a_run_is_exported_and_its_bitstream_is_verified(tmp_path, board, monkeypatch):
    def too_large(*_, **__):
        raise RtlError("it has too many gates")

    folder = tmp_path / "mine"
    whole = mlp(backend="Vitis", width=4, zeros=0.9)
    design = replace(whole, name="small", layers=whole.layers[:3], outputs=("relu",))
    run = RunDirectory(folder)
    with run.locked():
        run.manifest["config"] = {"target": {"part": "gw1nr-9"}}
        design.save(folder / "design.json")
        golden = np.random.default_rng(3).uniform(-1, 1, (6, 16)).astype(np.float32)
        (folder / "hls/tb_data").mkdir(parents=True)
        text = "".join(" ".join(f"{value:.9g}" for value in row) + "\n" for row in golden)
        (folder / "hls/tb_data/tb_input_features.dat").write_text(text)
        (folder / "measure.json").write_text("null")
        run.write_manifest()
    done = CliRunner().invoke(app, ["export", str(folder), "--for", board, "--deadline-minutes", "30"])
    assert done.exit_code == 0, done.output
    handed = tmp_path / f"mine-for-{board}"
    line = "bitstream computes the emulator's bits on 6 samples: 0 differ"
    assert json.loads((handed / "handover.json").read_text())["read_back"].startswith(line)
    # The bits of the samples, the cells of the bitstream, and the netlist.
    claims = json.loads((handed / "certificate.json").read_text())["bitstream"]["claims"]
    assert [claim["inputs"] for claim in claims] == ["on 6 samples", "for all inputs", "for all inputs"]
    assert all(claim["holds"] for claim in claims)
    assert line in (handed / "README.md").read_text()
    done = CliRunner().invoke(app, ["verify", str(handed), "--bitstream"])
    assert line in done.output
    found = verify_bitstream(folder)
    assert (found.problems, found.link.left_out, len(found.link.claims)) == ((), None, 3)
    monkeypatch.setattr("fpgaprune.fabric.netlist_proof.prove_netlist", too_large)
    # What is too large to be compared is said, and the rest holds.
    left = verify_bitstream(folder).link
    assert (len(left.claims), left.left_out) == (2, "netlist and Verilog not compared: it has too many gates")
    checked = subprocess.run([sys.executable, "check.py"], cwd=handed, capture_output=True, text=True)
    assert f"bitstream   {line}" in checked.stdout, checked.stdout
