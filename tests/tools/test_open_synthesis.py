"""Open synthesis by the tool itself, on a project written by hand."""

import json

import pytest

from fpgaprune.errors import ToolError
from fpgaprune.fabric.cells import find_family
from fpgaprune.fabric.open_tools import YOSYS, find_open_tool
from fpgaprune.fabric.synthesis import read_sources, synthesize
from fpgaprune.fabric.yosys import NETLIST, make_netlist
from fpgaprune.measure import FLATTENED

from ..unit.fabric.tiny import tiny_project


@pytest.fixture(autouse=True)
def _tool():
    try:
        find_open_tool(YOSYS)
    except ToolError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "family",
    ["ecp5", "gowin", "ice40", *(pytest.param(name, marks=pytest.mark.slow) for name in ("xc7", "xcup"))],
)
def test_a_small_project_maps_to_every_family(tmp_path, family):
    found = synthesize(tiny_project(tmp_path / "my project"), family)
    assert found.total_of == FLATTENED
    assert 30 <= found.total.lut <= 50
    assert found.total.ff == 18  # 16 bits of data, valid and last
    assert found.layers[1].cells.ff == 0
    assert found.layers[1].cells.lut == 15  # one for each bit that relu may clear


@pytest.mark.parametrize("family", ["ecp5", "ice40"])
def test_cells_without_names_are_the_same_cells(tmp_path, family):
    project = tiny_project(tmp_path)
    sources, yosys = read_sources(project, project.files), find_open_tool(YOSYS)
    asked = (sources, project.top, find_family(family), tmp_path / "synth", yosys, 600)
    named, unnamed = (make_netlist(*asked, named=wanted) for wanted in (True, False))
    assert unnamed.types == named.types
    cells = [
        json.loads((found.folder / NETLIST).read_text())["modules"][project.top]["cells"] for found in (named, unnamed)
    ]
    # What mapping made is called "$...", until it is named after the wires at its ends.
    assert [any(name.startswith("$") for name in names) for names in cells] == [False, True]


def test_equal_sources_give_equal_counts(tmp_path):
    first, second = (synthesize(tiny_project(tmp_path / name), "ecp5") for name in ("a", "b"))
    assert first.total == second.total


def test_verilog_that_does_not_compile_is_an_error_with_its_log(tmp_path):
    project = tiny_project(tmp_path)
    (tmp_path / "rtl/relu.v").write_text("module relu (input wire a;\nendmodule\n")
    with pytest.raises(ToolError, match=r"yosys.*ended with code .*relu\.v.*yosys\.log"):
        synthesize(project, "ecp5")
