"""Designs for tools that no estimate was calibrated for: the run goes on, and a vendor's report stands alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from msgspec import structs

from fpgaprune.errors import EstimateError
from fpgaprune.estimate import verilog_price
from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.finished import compare_folders
from fpgaprune.flow.run import RunDirectory
from fpgaprune.flow.stages import StageContext, stage_named
from fpgaprune.layout import choose_layout
from fpgaprune.measure import Measured, Simulated
from fpgaprune.target import find_part
from tests.unit.estimate.designs import cnn
from tests.unit.layout.test_choice import network
from tests.unit.rtl.networks import parallel_design
from tests.unit.vendor.texts import csynth


def run_with(folder, design):
    folder.mkdir()
    run = RunDirectory(folder)
    for name in ("design.json", "design_trained.json"):
        design.save(run.file(name))
    return run


def test_the_stage_says_why_it_left_the_price_out(tmp_path):
    run = run_with(tmp_path / "run", replace(cnn(), name="catapult", backend="Catapult"))
    config = parse_config({"name": "net", "target": {"part": "xc7z020clg400-1"}}, "flow.toml")
    left_out = stage_named("estimate").run(StageContext(run, config, None, None))
    assert left_out.to_json() == {
        "left_out": "design 'catapult' was made for backend 'Catapult', for which no reports were calibrated; "
        "wanted Vivado or Vitis"
    }
    assert json.loads((run.path / "estimate.json").read_text()) is None
    priced = stage_named("estimate").run(StageContext(run_with(tmp_path / "other", cnn()), config, None, None))
    assert priced.after.latency_cycles > 0


def test_a_vendor_report_is_shown_without_an_estimate_beside_it(tmp_path):
    folder = tmp_path / "run"
    (folder / "hls").mkdir(parents=True)
    replace(cnn(), name="digits", backend="Catapult").save(folder / "design.json")
    with pytest.raises(EstimateError, match="no reports were calibrated"):
        compare_folders([folder])
    total = {"LUT": "120", "FF": "80", "DSP": "3", "BRAM": "0"}
    (folder / "hls" / "digits_csynth.rpt").write_text(csynth(design="digits", total=total, instances={}))
    row = next(row for row in compare_folders([folder]).rows if row.figure == "lut" and not row.layer)
    assert [value for value in row.values.values() if value is not None] == [120]


def test_our_verilog_is_estimated_before_pruning_too_at_the_same_interval(tmp_path):
    run, target = run_with(tmp_path / "run", network()), {"part": "GW2A-18"}
    parallel_design(3, 3).save(run.file("design.json"))
    config = parse_config({"name": "net", "target": target}, "flow.toml")
    found = stage_named("estimate").run(StageContext(run, config, None, None))
    written = json.loads((run.path / "estimate.json").read_text())
    assert written["verilog_before"]["design"] == "network"
    trained = verilog_price(network(), "gowin", interval=written["verilog"]["interval_cycles"])
    assert found.verilog_before.latency_cycles == trained.latency_cycles
    # A search compares no runs.
    config = parse_config({"name": "net", "target": target, "estimate": {"advice": False}}, "flow.toml")
    assert stage_named("estimate").run(StageContext(run, config, None, None)).verilog_before is None


def test_our_verilog_is_estimated_in_the_layout_that_was_measured(tmp_path):
    run, design = run_with(tmp_path / "run", network()), network()
    part = find_part("GW2A-18")

    def estimated(**asked):
        flow = {"name": "net", "target": {"part": "GW2A-18"}, "measure": asked or {"interval": 4000}}
        stage_named("estimate").run(StageContext(run, parse_config(flow, "flow.toml"), None, None))
        written = json.loads((run.path / "estimate.json").read_text())["verilog"]
        return written["interval_cycles"], written["resources"]["lut"]["value"]

    def in_layout(**fields):
        price = verilog_price(design, "gowin", **fields)
        return price.interval_cycles, price.resources.lut.value

    measured = Measured("gowin", (), {}, None, Simulated(left_out="no simulator"))
    run.write_json("measure.json", None)  # a measurement that was left out: the layout is that which the flow asks for
    assert estimated() == in_layout(interval=4000)
    assert estimated(share=0.5) == in_layout(**choose_layout(design, part).settings)
    assert estimated(part="GW2A-18", share=0.5) == in_layout(**choose_layout(design, part, share=0.5).settings)
    run.write_json("measure.json", measured.to_json())
    assert estimated() == in_layout(interval=4000)
    chosen = choose_layout(design, part, interval=2000)
    run.write_json("measure.json", structs.replace(measured, layout=chosen).to_json())
    assert estimated() == in_layout(**chosen.settings)
    assert estimated() != in_layout(interval=4000)
