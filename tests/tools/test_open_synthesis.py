"""Open synthesis by the tool itself, on a project written by hand."""

import json
from dataclasses import replace

import pytest

from fpgaprune.errors import ToolError
from fpgaprune.estimate import Counts, find_fabric
from fpgaprune.fabric import (
    YOSYS,
    find_family,
    find_open_tool,
    list_families,
    make_netlist,
    read_sources,
    synthesize,
)
from fpgaprune.fabric.yosys import NETLIST
from fpgaprune.files import hardware_path
from fpgaprune.measure import FLATTENED
from tests.quick import quick

from ..unit.fabric.tiny import tiny_project
from .proven_netlist import mapped, prove

pytestmark = pytest.mark.usefixtures("yosys")


@pytest.mark.parametrize("family", quick(["ecp5", "gowin"], ["ecp5", "gowin", "ice40", "xc7", "xcup"]))
def test_a_small_project_maps_to_every_family(tmp_path, family):
    found = synthesize(tiny_project(tmp_path / "my project"), family)
    assert found.total_of == FLATTENED
    assert 30 <= found.total.lut <= 50
    assert found.total.ff == 18  # 16 bits of data, valid and last
    assert found.layers[1].cells.ff == 0
    assert found.layers[1].cells.lut == 15  # one for each bit that relu may clear
    if family == "ecp5":
        assert synthesize(tiny_project(tmp_path / "equal sources"), family).total == found.total


@pytest.mark.parametrize("family", quick(["ice40"], ["ecp5", "ice40"]))
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


def test_verilog_that_does_not_compile_is_an_error_with_its_log(tmp_path):
    project = tiny_project(tmp_path)
    (tmp_path / "rtl/relu.v").write_text("module relu (input wire a;\nendmodule\n")
    with pytest.raises(ToolError, match=r"yosys.*ended with code .*relu\.v.*yosys\.log"):
        synthesize(project, "ecp5")


_BLOCKS = b"""module blocks (
    input wire clk, we, input wire signed [15:0] a, b, input wire [9:0] w, r, input wire [31:0] d,
    output reg signed [31:0] p, output reg [31:0] q
);
    reg [31:0] memory [0:1023];
    always @(posedge clk) begin
        p <= a * b;
        q <= memory[r];
        if (we) memory[w] <= d;
    end
endmodule
"""


@pytest.mark.parametrize("family", quick(["xcup"], list_families()))
def test_a_product_and_a_memory_stay_in_the_netlist(tmp_path, family):
    """A cell whose model yosys did not read has no outputs for it: what reads them goes, and counts become small."""
    made = make_netlist(
        {"blocks.v": _BLOCKS}, "blocks", find_family(family), tmp_path / "synth", find_open_tool(YOSYS), 600
    )
    module = json.loads((made.folder / NETLIST).read_text())["modules"]["blocks"]
    driven = {
        bit
        for cell in module["cells"].values()
        for port, bits in cell["connections"].items()
        if cell["port_directions"].get(port) == "output"
        for bit in bits
    }
    for port in "pq":
        assert all(isinstance(bit, int) and bit in driven for bit in module["ports"][port]["bits"])
    counted = find_family(family).count(made.types)
    assert (counted.dsp or 0) >= 1 or made.types.get("CC_MULT") == 1 or counted.lut > 200
    assert counted.bram18 or counted.bram4 or counted.ff > 30_000


_SUMS = b"""module top (
    input wire [7:0] a, b, input wire c, s,
    output wire [8:0] y, output wire [7:0] z, output wire [1:0] w, output wire signed [9:0] v, output wire [7:0] u
);
    assign y = a + b + c;
    assign z = a - b - c;
    assign w = a[0] + b[0] + c;
    // An adder with an operand of no bits.
    assign u = 8'd0 - {b[0], b[1], 6'd0};
    assign v = s ? $signed(a) + $signed(b) + $signed({1'b0, c}) : $signed(a) - $signed(b);
endmodule
"""


def _sums(family, folder):
    """The netlist of `_SUMS`, and the cell type that drives the carry input of each of its ALUs."""
    found = mapped(_SUMS, family, folder)
    cells = json.loads((found.folder / NETLIST).read_text())["modules"]["top"]["cells"].values()
    drivers = {
        bit: cell["type"]
        for cell in cells
        for port, bits in cell["connections"].items()
        if cell["port_directions"][port] == "output"
        for bit in bits
    }
    carries = {drivers.get(cell["connections"]["CIN"][0], "logic") for cell in cells if cell["type"] == "ALU"}
    return found, carries


@pytest.mark.parametrize("family", ["gowin", "gw5a"])
def test_no_carry_comes_from_logic_on_gowin_and_every_sum_is_right(tmp_path, family):
    """nextpnr 0.11 places such a carry so that a cell beside it changes the sum."""
    found, carries = _sums(find_family(family), tmp_path / "synth")
    assert carries == {"ALU", "GND", "VCC"}
    prove(found, "gowin")


def test_without_our_map_a_carry_comes_from_logic(tmp_path):
    plain = replace(find_family("gowin"), synthesis=("synth_gowin -family gw2a -noiopads -top {top}",))
    assert "logic" in _sums(plain, tmp_path / "synth")[1]


def _top(ports, body):
    return f"module top (input clk, input [31:0] a, input [31:0] b, {ports});\n{body}\nendmodule\n".encode()


# Of two sizes, the last that stays in LUTs and the first that becomes a block.
MEMORIES = [("gowin", 9, 144, 0), ("gowin", 24, 64, 1), ("ecp5", 9, 112, 0), ("ecp5", 9, 128, 1), ("nexus", 32, 48, 1)]


@pytest.mark.parametrize(("family", "width", "depth", "blocks"), quick(MEMORIES[:4], MEMORIES))
def test_a_memory_becomes_a_block_where_its_estimate_says_so_and_takes_nothing_beside(
    tmp_path, family, width, depth, blocks
):
    at = (depth - 1).bit_length()
    ports = f"input write, input read, input [{width - 1}:0] d, output [{width - 1}:0] q"
    memory = f"fp_memory #(.WIDTH({width}), .DEPTH({depth}), .ADDRESS({at})) m"
    body = f"{memory} (clk, write, a[{at - 1}:0], d, read, b[{at - 1}:0], q);"
    sources = {"top.v": _top(ports, body), "fp_memory.v": hardware_path("rtl", "fp_memory.v").read_bytes()}
    kind = find_family(family)
    found = kind.count(make_netlist(sources, "top", kind, tmp_path, find_open_tool(YOSYS), 600).types)
    estimate = find_fabric(family).resources(Counts({f"memory_{width}_{depth}": 1, "register": width}))
    assert found.bram18 == estimate["bram18"] == blocks
    assert (found.lut == found.ff == 0) == bool(blocks), "what is read while it is written costs logic"


@pytest.mark.parametrize("family", quick(["ecp5"], ["ecp5", "gowin"]))
def test_each_bit_of_a_beat_that_is_split_takes_one_small_table(tmp_path, family):
    """On an ECP5 each took eight tables while what the reader takes chose as well."""
    ports = "input ready, output [7:0] q, output there, output taken"
    body = "fp_scatter #(.WIDTH(8), .BEATS(4)) split (clk, b[0], a, b[1], taken, q, there, ready);"
    sources = {"top.v": _top(ports, body), "fp_scatter.v": hardware_path("rtl", "fp_scatter.v").read_bytes()}
    kind = find_family(family)
    assert kind.count(make_netlist(sources, "top", kind, tmp_path, find_open_tool(YOSYS), 600).types).lut <= 2 * 32


@pytest.mark.parametrize("family", quick(["gowin", "ecp5"], ["gowin", "ecp5", "nexus"]))
def test_a_table_becomes_a_block_where_its_estimate_says_so(tmp_path, family):
    """256 entries of 8 bits stay in LUTs, of 9 bits they do not."""
    tables, counts = "", Counts()
    for name, bits in (("q", 8), ("r", 9)):
        rows = "".join(f"8'd{place}: {name} <= {place**3 * 7919 % (1 << bits)};\n" for place in range(256))
        tables += f"always @(posedge clk) case (a[7:0])\n{rows}endcase\n"
        counts[f"table_256_{bits}"] += 1
    kind, sources = find_family(family), {"top.v": _top("output reg [7:0] q, output reg [8:0] r", tables)}
    found = kind.count(make_netlist(sources, "top", kind, tmp_path, find_open_tool(YOSYS), 600).types)
    assert found.bram18 == find_fabric(family).resources(counts)["bram18"] == 1
