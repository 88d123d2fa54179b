"""The stage `measure`: settings, what is put together, and how it is shown."""

import json
import os
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs

from fpgaprune import processes
from fpgaprune.commands import print_table
from fpgaprune.design import Design
from fpgaprune.errors import ConfigError, RunError
from fpgaprune.estimate import verilog_price
from fpgaprune.fabric import OPEN_TOOLS, bitstream_seconds, netlist_seconds, read_back_seconds
from fpgaprune.files import hardware_path
from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.finished import settings_of
from fpgaprune.flow.stages import kernels_kept, measure, measure_project, open_reports, verilog_measurements
from fpgaprune.hls import layer_of
from fpgaprune.measure import Kernels, Measured, Simulated
from fpgaprune.report import measured_tables
from fpgaprune.target import find_part
from fpgaprune.values import FixedType
from fpgaprune.vendor import compare
from tests.unit.layout.test_choice import network

from ..emulate.designs import mlp
from ..fabric.fake_tools import fake_ecppack, fake_nextpnr, fake_yosys
from ..fabric.tiny import tiny_project


def convolution() -> Design:
    kind = FixedType(8, 4)
    weight = np.zeros((3, 3, 2, 4), dtype=np.int64)
    weight[1, 1, 0, 0] = weight[0, 2, 1, 3] = 5
    entry = layer_of("input", "Input", (), (6, 6, 2), {"result": kind})
    layer = layer_of("linear", "Conv2D", ("input",), (4, 4, 4), {"result": kind, "weight": kind}, {"weight": weight})
    dense = layer_of("relu", "Dense", ("linear",), (3,), {"weight": kind}, {"weight": np.ones((64, 3), np.int64)})
    return Design("net", (entry, layer, dense), ("relu",))


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """What `measure_project` gives for the hand-written project, with tools that are played."""
    if os.name != "posix":
        pytest.skip("fake tools are scripts with a first line")
    for tool in OPEN_TOOLS:
        monkeypatch.delenv(processes.tool_variable(tool.program), raising=False)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    fake_yosys(tmp_path)
    fake_nextpnr(tmp_path)
    fake_ecppack(tmp_path)
    told = []
    found = measure_project(
        tiny_project(tmp_path / "run" / "rtl"),
        convolution(),
        find_part("lfe5u-45f"),
        tmp_path / "run",
        lambda *step: told.append(step),
        Simulated(left_out="no simulator"),
        families=("ecp5",),
        seeds=3,
        device="lfe5u-45f",
        target_mhz=60,
        board="ulx3s",
    )
    return found, told, tmp_path / "run"


def test_how_long_it_will_take_grows_with_work_and_with_what_else_the_machine_does(tmp_path, monkeypatch):
    project, design = tiny_project(tmp_path / "rtl"), mlp()
    price = verilog_price(design, "ecp5")

    def expected(slow=1.0, prices=None, samples=100, seeds=0, board=None):
        monkeypatch.setattr(verilog_measurements, "slowness", lambda: slow)
        return verilog_measurements.expected_seconds(project, prices or {"ecp5": price}, samples, seeds, board)

    usual, known = expected()
    assert known
    assert expected(slow=3.0)[0] == pytest.approx(3 * usual)
    assert expected(samples=0)[0] < usual < expected(samples=100_000)[0]
    assert expected(prices={"ecp5": price, "xc7": price})[0] > usual
    assert expected(seeds=2)[0] > expected(seeds=1)[0] > usual
    # On Gowin, most registers take a LUT too, and the bitstream is read back.
    luts = price.resources.lut.value + 0.7 * price.resources.ff.value
    more = bitstream_seconds("gowin", luts) + read_back_seconds("gowin", luts)
    more += netlist_seconds("gowin", luts)
    assert expected(board="tang-nano-9k")[0] == pytest.approx(usual + more)
    # There is no law for place and route on an iCE40 HX.
    text = hardware_path("boards", "icebreaker.toml").read_text().replace("ice40up5k", "ice40hx8k")
    (tmp_path / "hx8k.toml").write_text(text)
    assert expected(board=tmp_path / "hx8k.toml") == (pytest.approx(usual), False)


def test_the_stage_says_how_long_it_will_take(tmp_path):
    told = []
    config = parse_config({"measure": {"families": ["ecp5"]}}, "flow")
    progress = SimpleNamespace(stage=lambda *words: told.append(words))
    context = SimpleNamespace(config=config, progress=progress, data=SimpleNamespace(x_test=np.zeros((9, 4))))
    measure._say_how_long(context, tiny_project(tmp_path / "rtl"), mlp(), {})
    ((name, state, note),) = told
    assert (name, state) == ("time", "said")
    assert re.fullmatch(r"about [\d. hmins]+; what was measured before is not measured again", note), note


def test_everything_asked_for_is_plain_data(measured):
    measured, told, folder = measured
    found = measured.to_json()
    assert Measured.from_json(json.loads(json.dumps(found))) == measured
    assert found["part_family"] == "ecp5"
    assert found["built"] == {"relu": "by hand"}
    assert found["synth(open)"]["ecp5"]["total"]["lut"] == 46
    assert found["route(ecp5)"]["fmax_mhz"] == 102.0
    assert found["bitstream"]["path"] == "tiny.bit"
    assert (folder / "tiny.bit").is_file()
    begun = [note for _, total, note in told if not total]
    assert begun == ["synthesis for ecp5", "place and route for ecp5", "synthesis, place and route for ulx3s"]
    counted = [step for step in told if step[1]]
    assert [step[:2] for step in counted] == [(1, 3), (2, 3), (3, 3)] * 2
    assert counted[0][2].startswith("ecp5: ")


def test_the_terminal_prints_the_tables_of_the_report(measured, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    found = structs.replace(measured[0], simulation=Simulated(None, "verilator 5", 7, 2, 91, 36))
    for table in measured_tables(found):
        print_table(table)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    for name, counts in (("linear", {"66", "6", "3"}), ("total", {"46", "4", "3"})):
        assert any(line[:1] == [name] and counts <= set(line) for line in lines), name
    text = " ".join(" ".join(line) for line in lines)
    assert "Simulated cycle by cycle by verilator 5" in text
    assert "Synthesised for ecp5 by Yosys 9.9 (played) (synth(open))" in text
    assert "Clock: 102.0 MHz, median of 3 seeds" in text


def test_figures_stand_beside_estimates_only_for_the_parts_own_family(measured):
    found = measured[0]
    assert [report.stage for report in open_reports(found, "net")] == ["synth(open)", "route(ecp5)"]
    other = structs.replace(found, part_family="xc7")
    assert [report.stage for report in open_reports(other, "net")] == ["route(ecp5)"]
    table = compare({"net": open_reports(found, "net")}, {})
    (row,) = [row for row in table.rows if row.figure == "lut"]
    assert (row.values["synth(open)"], row.values["route(ecp5)"]) == (46, 824)


def test_kernels_are_counted_after_quantisation_and_a_dense_layer_has_none():
    design = convolution()
    assert kernels_kept(design) == (Kernels("linear", 2, 8),)
    entry, layer, dense = design.layers
    row = np.zeros((3, 2, 4), dtype=np.int64)
    row[:, 1, 2] = 7
    along = replace(layer, weights={"weight": row})
    assert kernels_kept(replace(design, layers=(entry, along, dense))) == (Kernels("linear", 1, 8),)


def test_by_default_a_flow_measures_nothing():
    assert not parse_config({}, "flow").measure.asks


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"families": ["xc6"]}, "family 'xc6' is unknown to open synthesis; wanted one of ecp5"),
        ({"device": "xc7z020"}, "device 'xc7z020' is no Lattice ECP5"),
        ({"board": "arty"}, "board 'arty' is unknown"),
        (
            {"families": ["gowin"], "part": "pynq-z2"},
            "the layout is for pynq-z2, of family xc7, and synthesis counts for g",
        ),
        ({"seeds": -1}, "measure.seeds is -1"),
        ({"target_mhz": 0}, "measure.target_mhz is 0"),
        ({"families": ["xc7"], "seed": 3}, "measure.seed is not a known key; did you mean 'seeds'?"),
    ],
)
def test_settings_that_cannot_be_met_are_refused(section, message):
    with pytest.raises(ConfigError, match=message):
        parse_config({"measure": section}, "flow.toml")


@pytest.mark.parametrize(
    ("part", "families"), [("pynq-z2", ["gowin", "xc7"]), ("gw5a-25", ["gowin"]), ("gw5a-25", ["gw5a"])]
)
def test_other_families_may_be_counted_beside_that_of_the_layout(part, families):
    assert parse_config({"measure": {"families": families, "part": part}}, "flow.toml").measure.part


def run_with(tmp_path, part):
    (tmp_path / "manifest.json").write_text(
        json.dumps({"format": 1, "stages": {}, "config": {"target": {"part": part}}})
    )
    return tmp_path


def test_a_command_without_options_takes_the_parts_own_family(tmp_path):
    run = run_with(tmp_path, "xc7z020clg400-1")
    assert settings_of(run, (), seeds=0, board=None).families == ("xc7",)
    assert settings_of(run, (), board="ulx3s").families == ()
    assert settings_of(run, (), seeds=2).families == ()
    asked = settings_of(run, (), seeds=2, target_mhz=90.0, interval=400, simulate=7, timeout_s=60)
    assert (asked.target_mhz, asked.interval, asked.simulate, asked.timeout_s) == (90.0, 400, 7, 60)
    for name in ("interval", "simulate"):
        with pytest.raises(ConfigError, match=rf"measure\.{name}"):
            settings_of(run, (), **{name: -1})


@pytest.mark.parametrize(
    ("part", "asked", "laid_out_for"),
    [
        ("gw1n-1", {}, "gw1n-1"),
        ("gw1n-1", {"interval": 0}, None),
        ("gw1n-1", {"part": "gw1n-4"}, "gw1n-4"),
        ("gw5ast-138", {}, None),  # as it comes
        ("xc7s6cpga196-1", {}, None),  # whose answer is about an hls4ml project
    ],
)
def test_without_options_the_layout_is_that_of_the_answer_of_the_run(tmp_path, part, asked, laid_out_for):
    run = run_with(tmp_path, part)
    network().save(run / "design.json")
    assert settings_of(run, (), **asked).part == laid_out_for
    # For families that are named it is as it comes.
    assert settings_of(run, ("ecp5", "gowin"), **asked).part == asked.get("part")


def test_a_part_without_family_asks_for_one(tmp_path):
    with pytest.raises(ConfigError, match="is of no family that open synthesis knows; give one with --family"):
        settings_of(run_with(tmp_path, "10AX115N2F45E1SG"), ())


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="is not a run folder"):
        settings_of(tmp_path / "nowhere", ())
