"""The hand-off to vendor tools: what is written, and how the tools are run, with tools that are played."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.errors import DataError, TargetError, ToolError
from fpgaprune.fabric import Vectors, golden_vectors, pack, write_handoff
from fpgaprune.hls import layer_of
from fpgaprune.rtl import RtlPort, VerilogProject
from fpgaprune.values import FixedType
from fpgaprune.vendor import read_reports

from ..programs import write_program
from ..vendor.texts import timing, utilization

ZYNQ, ARRIA = "xc7z020clg400-1", "10AX115N2F45E1SG"


def relu_design() -> Design:
    wide, narrow = FixedType(8, 4), FixedType(6, 4, signed=False, overflow="SAT")
    entry = layer_of("input", "Input", (), (2, 3), {"result": wide})
    attributes = {"activation": "relu", "n_in": 6}
    relu = layer_of("relu", "Activation", ("input",), (2, 3), {"result": narrow}, attributes=attributes)
    return Design("pair", (entry, relu), ("relu",))


def relu_project(folder: Path) -> VerilogProject:
    wide, narrow = FixedType(8, 4), FixedType(6, 4, signed=False, overflow="SAT")
    return VerilogProject(
        folder,
        "pair",
        "pair",
        5.0,
        (),
        (),
        (RtlPort("input", "s_axis", (2, 3), 2, 3, wide),),
        (RtlPort("relu", "m_axis", (2, 3), 2, 3, narrow),),
    )


@pytest.fixture
def vectors(tiny):
    """Three samples through `tiny`, computed by hand."""
    pairs = [(100, 1), (7, -10), (-128, 5)]
    entry, result = tiny.inputs[0], tiny.outputs[0]
    return Vectors(
        3,
        {
            "s_axis": pack(entry, np.array(pairs)),
            "m_axis": pack(result, np.array([[max(0, 3 * a - b)] for a, b in pairs])),
        },
    )


def test_words_hold_value_zero_lowest_in_twos_complement():
    port = RtlPort("x", "s_axis", (2,), 1, 2, FixedType(4, 4))
    assert pack(port, np.array([[1, -1], [-8, 7]])) == (0xF1, 0x78)


def test_golden_vectors_are_the_bits_of_the_emulation(tmp_path):
    design, project = relu_design(), relu_project(tmp_path)
    x = np.linspace(-9, 9, 30).reshape(5, 2, 3).astype(np.float32)
    found = golden_vectors(project, design, x)
    wanted = emulate(design, x)
    assert (found.samples, len(found.words["s_axis"]), len(found.words["m_axis"])) == (5, 10, 10)
    values = [(word >> (6 * lane)) & 63 for word in found.words["m_axis"] for lane in range(3)]
    assert np.array_equal(np.array(values).reshape(5, 2, 3) / 4, wanted)


def test_samples_that_do_not_fit_are_refused(tmp_path):
    design, project = relu_design(), relu_project(tmp_path)
    with pytest.raises(DataError, match=r"pair has 1 inputs; got 1 arrays of \[0\] samples"):
        golden_vectors(project, design, np.zeros((0, 2, 3), dtype=np.float32))


def test_an_amd_part_gets_scripts_for_vivado(tiny, vectors, tmp_path):
    handoff = write_handoff(tiny, ZYNQ, vectors, tmp_path / "out")
    tcl = (handoff.path / "vivado.tcl").read_text()
    assert "read_verilog {rtl/linear.v}\nread_verilog {rtl/relu.v}\nread_verilog {rtl/tiny.v}" in tcl
    assert f"synth_design -top tiny -part {ZYNQ} -mode out_of_context" in tcl
    assert "route_design" in tcl
    assert "create_project" not in tcl  # non-project mode
    assert "-period 10 [get_ports clk]" in (handoff.path / "clock.xdc").read_text()
    assert (handoff.path / "rtl/relu.v").read_bytes() == (tiny.path / "rtl/relu.v").read_bytes()
    assert not (handoff.path / "quartus.tcl").exists()


def test_an_intel_part_gets_scripts_for_quartus(tiny, vectors, tmp_path):
    handoff = write_handoff(tiny, ARRIA, vectors, tmp_path / "out")
    tcl = (handoff.path / "quartus.tcl").read_text()
    assert f"-name DEVICE {ARRIA}" in tcl
    assert "-name VERILOG_FILE {rtl/tiny.v}" in tcl
    assert "VIRTUAL_PIN ON -to *" in tcl
    assert "-period 10" in (handoff.path / "clock.sdc").read_text()
    assert not (handoff.path / "vivado.tcl").exists()


def test_the_test_bench_reads_every_word(tiny, vectors, tmp_path):
    handoff = write_handoff(tiny, ZYNQ, vectors, tmp_path / "out")
    assert (handoff.path / "s_axis.hex").read_text() == "0164\nf607\n0580\n"
    assert (handoff.path / "m_axis.hex").read_text() == "012b\n001f\n0000\n"
    bench = (handoff.path / "testbench.v").read_text()
    assert "m_axis_count == 3" in bench
    assert "always #5 clk = !clk;" in bench


def test_equal_input_gives_equal_bytes(tiny, vectors, tmp_path):
    folders = [write_handoff(tiny, ZYNQ, vectors, tmp_path / name).path for name in ("a", "b")]
    first, second = ({p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders)
    assert first == second


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("xc7z020", "part 'xc7z020' is not a full order number; name package and speed grade too"),
        ("lfe5u-25f", "part 'lfe5u-25f' is of Lattice; the hand-off takes AMD and Intel parts"),
        ("xc7z999", "part 'xc7z999' is unknown"),
    ],
)
def test_a_part_that_no_script_can_name_is_refused(tiny, vectors, tmp_path, part, message):
    with pytest.raises(TargetError, match=message):
        write_handoff(tiny, part, vectors, tmp_path / "out")
    assert not (tmp_path / "out").exists()


posix = pytest.mark.skipif(os.name != "posix", reason="fake tools are shell scripts")


@posix
def test_a_build_leaves_reports_that_are_read_by_stage(tiny, vectors, tmp_path, fakes, monkeypatch):
    monkeypatch.delenv("FPGAPRUNE_VIVADO", raising=False)
    handoff = write_handoff(tiny, ZYNQ, vectors, tmp_path / "out")
    (tmp_path / "util").write_text(
        utilization([["CLB LUTs", "35", "0", "9", "1"], ["CLB Registers", "18", "0", "9", "1"]])
    )
    (tmp_path / "timing").write_text(timing())
    told = tmp_path / "told"
    write_program(
        fakes / "bin" / "vivado",
        f"#!/bin/sh\necho \"$@\" > '{told}'\ntest -f vivado.tcl || exit 1\n"
        f"cp '{tmp_path / 'util'}' reports/tiny_utilization_synth.rpt\n"
        f"cp '{tmp_path / 'timing'}' reports/tiny_timing_routed.rpt\n",
    )
    run = handoff.build(30)
    assert told.read_text().split() == ["-mode", "batch", "-nojournal", "-nolog", "-source", "vivado.tcl"]
    assert run.log == handoff.path / "fpgaprune_vivado.log"
    assert {(report.stage, report.total.lut) for report in read_reports(handoff.reports)} == {
        ("synth", 35),
        ("route", None),
    }


@posix
@pytest.mark.parametrize(("part", "tool"), [(ZYNQ, "vivado"), (ARRIA, "quartus_sh")])
def test_a_missing_tool_says_what_to_run_where_it_is(tiny, vectors, tmp_path, fakes, monkeypatch, part, tool):
    monkeypatch.delenv(f"FPGAPRUNE_{tool.upper()}", raising=False)
    handoff = write_handoff(tiny, part, vectors, tmp_path / "out")
    with pytest.raises(ToolError, match=rf"{tool} \(.*\) was not found: .*or run elsewhere, in a copy of .*: {tool} "):
        handoff.build(5)


@posix
def test_a_tool_that_hangs_is_ended_and_its_log_kept(tiny, vectors, tmp_path, fakes, monkeypatch):
    monkeypatch.delenv("FPGAPRUNE_VIVADO", raising=False)
    write_program(fakes / "bin" / "vivado", "#!/bin/sh\necho begun\nsleep 60 &\nwait\n")
    handoff = write_handoff(tiny, ZYNQ, vectors, tmp_path / "out")
    started = time.monotonic()
    with pytest.raises(ToolError, match="vivado ran longer than 1 s"):
        handoff.build(1)
    assert time.monotonic() - started < 10
    assert (handoff.path / "fpgaprune_vivado.log").read_text() == "begun\n"


@posix
@pytest.mark.parametrize(
    ("printed", "passes"),
    [("TEST PASSED: 3 samples", True), ("TEST FAILED: 1 errors", False), ("nothing at all", False)],
)
def test_a_simulation_passes_only_where_the_bench_says_so(tiny, vectors, tmp_path, fakes, monkeypatch, printed, passes):
    monkeypatch.delenv("FPGAPRUNE_VSIM", raising=False)
    write_program(fakes / "bin" / "vsim", f"#!/bin/sh\ntest -f simulate.do || exit 1\necho '{printed}'\n")
    handoff = write_handoff(tiny, ARRIA, vectors, tmp_path / "out")
    if passes:
        assert handoff.simulate(30).returncode == 0
        return
    with pytest.raises(ToolError, match=r"the test bench of .* did not pass; its output is in .*simulate\.log"):
        handoff.simulate(30)
