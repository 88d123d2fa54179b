"""What a design takes, stage by stage: four commands print one table, and no count of another layout is in it."""

import itertools
import json
import os
from dataclasses import replace
from importlib import import_module

import pytest
from msgspec import structs
from typer.testing import CliRunner

import fpgaprune as fp
from fpgaprune.cli import app
from fpgaprune.fabric import make_bitstream, synthesize
from fpgaprune.fit import Fit, Knobs, Limits
from fpgaprune.flow import counts_of_run, price_verilog
from fpgaprune.flow.run import RunDirectory
from fpgaprune.layout import board_design
from fpgaprune.measure import (
    AT_ONCE,
    HEADERS,
    ChosenLayout,
    Figure,
    Kernels,
    LaidLayer,
    Measured,
    PlaceAndRoute,
    Resources,
    Routed,
    Simulated,
    StagedCounts,
)
from fpgaprune.rtl import VerilogProject
from fpgaprune.target import find_part
from tests.unit.fit.made_up import made_point
from tests.unit.flow.test_handover import made, run, small_design, tools  # noqa: F401 (fixtures)
from tests.unit.layout.test_choice import network

pytestmark = pytest.mark.skipif(os.name != "posix", reason="fake tools are scripts with a first line")
BOARD, FAMILY = "tang-nano-9k", "gowin"


@pytest.fixture
def measured(run, tools):  # noqa: F811
    """The run after open synthesis, with a bitstream, both by played tools."""
    project, cache = VerilogProject.load(run / "rtl"), run / "synth"
    synthesis = {FAMILY: synthesize(project, FAMILY, cache=cache)}
    bitstream = make_bitstream(project, BOARD, run / "small.fs", cache=cache).to_json()
    found = Measured(
        FAMILY,
        (Kernels("dense", 1, 1),),
        synthesis,
        None,
        Simulated(left_out="not asked"),
        bitstream={**bitstream, "path": "small.fs"},
    )
    (run / "measure.json").write_text(json.dumps(found.to_json()))
    answers = {
        about: {"reply": "yes", "text": f"{about}: yes", "tone": "good"} for about in ("metric", "fit", "measured")
    }
    target = {"part": {"name": "gw1nr-9", "vendor": "Gowin"}}
    (run / "report.json").write_text(json.dumps({"checks": [], "verdicts": answers, "target": target}))
    directory = RunDirectory.existing(run)
    directory.manifest["config"]["target"]["part"] = "gw1nr-9"
    directory.write_manifest()
    return run


def printed(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "100"})
    assert done.exception is None, done.output
    return done.output.splitlines()


def table(lines):
    """The table of the stages among `lines`."""
    first = next(n for n, line in enumerate(lines) if " as our Verilog, a sample " in line)
    last = next(n for n, line in enumerate(lines) if line.startswith("80 % ranges of the estimate"))
    return [line.rstrip() for line in lines[first : last + 1]]


def lut_row(lines):
    (row,) = [line.split() for line in table(lines) if line.startswith("LUT")]
    return row


def estimated_lut(**fields):
    return fp.verilog_price(small_design(), FAMILY, **fields).resources.lut.value


def test_four_commands_print_one_table_of_one_design(measured, monkeypatch):
    monkeypatch.setattr("fpgaprune.flow.settings_of", lambda *_, **__: None)
    monkeypatch.setattr("fpgaprune.flow.measure_run", lambda *_, **__: RunDirectory.existing(measured))
    best = made_point(Knobs("weight"))
    limits = {name: getattr(Limits(), name) for name in Limits.__dataclass_fields__}
    best = structs.replace(best, folder=str(measured), loses_little=True, fits=True, in_time=True)
    answer = Fit("small", "gw1nr-9", 37.0, "verilog", "estimate", limits, best, (best,))
    monkeypatch.setattr(import_module("fpgaprune.fit"), "fit_flow", lambda *_, **__: answer)
    flow = measured.parent / "flow.toml"
    flow.write_text('name = "small"\n[target]\npart = "gw1nr-9"\n')
    # Of a layout that was asked for, export takes the Verilog of the measurement; else samples come value by value.
    directory = RunDirectory.existing(measured)
    directory.manifest["config"]["measure"] = {"interval": 0, "part": "gw1nr-9"}
    directory.write_manifest()
    tables = {
        "estimate": table(printed("estimate", measured, "--verilog", "--part", "gw1nr-9")),
        "measure": table(printed("measure", measured)),
        "fit": table(printed("fit", flow)),
        "export": table(printed("export", measured, "--for", BOARD)),
    }
    (counts,) = counts_of_run(measured)
    assert len(set(map(tuple, tables.values()))) == 1, tables
    rows = {line.split()[0]: line.split()[1:] for line in tables["fit"]}
    assert rows["LUT"] == [f"{count:,}" for count in counts.rows()[0][1:]]
    assert len(rows["LUT"]) == len(HEADERS) - 1


def test_every_stage_is_what_its_tool_counted(measured):
    (counts,) = counts_of_run(measured)
    found = Measured.from_json(json.loads((measured / "measure.json").read_text()))
    made_for = found.bitstream
    assert counts.estimated == fp.verilog_price(small_design(), FAMILY).resources
    assert counts.synthesised == found.synthesis[FAMILY].whole.cells
    assert counts.synthesised.lut == made_for["synthesised_alone"]["lut"]
    assert counts.placed.lut == made_for["used_alone"]["lut"]
    assert counts.synthesised_in_harness.lut == made_for["synthesised"]["lut"] > counts.synthesised.lut
    assert counts.placed_in_harness.lut == made_for["used"]["lut"] > counts.placed.lut
    assert counts.where == (FAMILY, "gw1nr-9", "Tang Nano 9K")


def test_a_count_of_another_layout_is_not_in_the_table(measured):
    for asked in (("--part", "gw1nr-9", "--interval", "200"), ("--family", "xc7")):
        lut = lut_row(printed("estimate", measured, "--verilog", *asked))
        assert lut[2:] == ["-"] * 4
    folder = measured.parent / "slow"
    lut = lut_row(printed("export", measured, "--for", BOARD, "--interval", "200", "--out", folder))
    fed = fp.verilog_price(board_design(small_design()), FAMILY, interval=200)
    assert lut[1] == f"{fed.resources.lut.value:,}"


def test_a_run_is_estimated_in_the_layout_that_it_was_measured_in(measured):
    asked = ("estimate", measured, "--verilog", "--part", "gw1nr-9")
    usual, slow = (f"{estimated_lut(interval=interval):,}" for interval in (0, 200))
    assert usual != slow
    assert lut_row(printed(*asked))[1] == usual
    directory = RunDirectory.existing(measured)
    directory.manifest["config"]["measure"] = {"interval": 200, "part": None}
    directory.write_manifest()
    assert lut_row(printed(*asked))[1] == slow
    assert lut_row(printed(*asked, "--interval", "0"))[1] == usual
    directory.manifest["config"]["measure"] = {"interval": 0, "part": "gw1nr-9"}
    directory.write_manifest()
    laid, price = LaidLayer("fc1", AT_ONCE, 0, False, None), fp.verilog_price(small_design(), FAMILY, interval=200)
    chosen = ChosenLayout("gw1nr-9", 0.8, 200, 200, (laid,), {"lut": 0.1}, price, None, None)
    found = Measured.from_json(json.loads((measured / "measure.json").read_text()))
    (measured / "measure.json").write_text(json.dumps(structs.replace(found, layout=chosen).to_json()))
    row = lut_row(printed(*asked))
    assert row[1] == slow
    assert row[2] == f"{found.synthesis[FAMILY].whole.cells.lut:,}"


def test_a_run_that_was_not_measured_is_estimated_in_the_layout_of_its_answer(tmp_path):
    """That which `run` and `fit` judge: laid out for its part, in the share that the flow asks for."""
    design, part = replace(network(channels=(4, 8)), part="gw1nr-9"), find_part("gw1nr-9")
    folders = (tmp_path / str(number) for number in itertools.count())

    def cycles(**asked):
        directory = RunDirectory(next(folders))
        with directory.locked():
            for name in ("design.json", "design_trained.json"):
                design.save(directory.file(name))
            directory.manifest["config"] = {"target": {"part": "gw1nr-9"}, "measure": asked}
            directory.write_manifest()
        found = price_verilog(directory.path)
        # At the same interval the two differ by what pruning saved; a layout may be faster than it must.
        assert found["before"][0].interval_cycles <= found["after"][0].interval_cycles
        return found["after"][0].interval_cycles

    assert cycles() == fp.choose_layout(design, part).price.interval_cycles > 100
    asked = {"interval": 0, "part": "gw1nr-9", "share": 0.3}
    assert cycles(**asked) == fp.choose_layout(design, part, share=0.3).price.interval_cycles > cycles()
    assert cycles(interval=5000) == fp.verilog_price(design, FAMILY, interval=5000).interval_cycles > 100
    # Nothing smaller can be laid out: the usual layout says by how much it is too large.
    assert cycles(**{**asked, "share": 0.001}) == cycles()
    assert price_verilog(tmp_path / "0", family="xc7")["after"][0].interval_cycles == 100


def test_a_run_that_was_not_measured_has_no_counts(run):  # noqa: F811
    assert list(counts_of_run(run)) == []


def test_what_is_unknown_is_a_dash_and_place_and_route_comes_before_a_bitstream():
    figure = Figure(50, 40, 60)
    price = structs.replace(fp.verilog_price(small_design(), "ecp5"), resources=Resources(lut=figure))
    alone = StagedCounts.of(price, "ecp5")
    assert alone.rows() == [("LUT", 50, None, None, None, None)]
    assert alone.ranges() == "LUT 40 to 60"
    harness = {"used": {"lut": 9}, "used_alone": {"lut": 7}, "synthesised": {"lut": 6}, "synthesised_alone": {"lut": 5}}
    made_for = {**harness, "device": "a", "board": "b"}
    assert StagedCounts.of(price, "ecp5", bitstream=made_for).rows() == [("LUT", 50, 5, 7, 6, 9)]
    route = PlaceAndRoute("c", "", None, "", 1.0, (Routed(1, 1.0, Resources(lut=8)),), Resources())
    both = StagedCounts.of(price, "ecp5", route=route, bitstream=made_for)
    assert both.rows() == [("LUT", 50, 5, 8, 6, 9)]
    assert both.where == ("ecp5", "c", "b")


@pytest.mark.parametrize("options", [("--verilog", "--part", "gw1nr-9"), ("--part", "xc7z020")])
def test_of_the_two_networks_of_a_run_the_pruned_one_is_shown_first(run, options):  # noqa: F811
    small_design().save(run / "design_trained.json")
    lines = printed("estimate", run, *options)
    pruned, trained = (
        next(n for n, line in enumerate(lines) if line.strip().startswith(title))
        for title in ("the pruned network", "before: the trained network, nothing locked")
    )
    assert pruned < trained
