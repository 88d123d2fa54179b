"""Place and route and a bitstream by the tools themselves, on a project written by hand."""

import re

import pytest

from fpgaprune.errors import ToolError
from fpgaprune.fabric import (
    ECPPACK,
    NEXTPNR_ECP5,
    YOSYS,
    bitstream_ending,
    find_board_router,
    find_open_tool,
    find_router,
    list_serial_boards,
    make_bitstream,
    place_and_route,
    synthesize,
)

from ..unit.fabric.tiny import tiny_project

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project in a folder below /tmp, which the packaged tools see as another folder."""
    try:
        for tool in (YOSYS, NEXTPNR_ECP5, ECPPACK):
            find_open_tool(tool)
    except ToolError as error:
        pytest.skip(str(error))
    return tiny_project(tmp_path_factory.mktemp("my project"))


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    # The packaged tools keep what they compiled; not in the user's home from here.
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "yowasp"))


def test_flip_flops_are_those_of_the_design_without_its_harness(project):
    found = place_and_route(project, device="lfe5u-25f", seeds=2)
    counted = synthesize(project, "ecp5").total
    assert found.used["ff"] == counted.ff == 18
    # Place and route adds what carry chains need at their ends.
    assert counted.lut <= found.used["lut"] <= 2 * counted.lut
    assert found.fmax_range_mhz[0] > 80
    assert len({run.fmax_mhz for run in found.runs}) == 2


def test_equal_seeds_give_equal_results(project, tmp_path):
    first = place_and_route(project, seeds=[3])
    second = place_and_route(project, seeds=[3], cache=tmp_path)
    assert first.runs[0].fmax_mhz == second.runs[0].fmax_mhz
    assert first.used == second.used


def test_registers_are_tied_where_the_device_has_them(tmp_path):
    """The whole of a pipeline of 15 x 100 registers, at a tenth of the tiles it takes."""
    project = tiny_project(tmp_path)
    relu = tmp_path / "rtl/relu.v"
    text = relu.read_text()
    pipeline = """    reg [14:0] held [0:99];
    integer k;
    always @(posedge clk) begin
        held[0] <= s_axis_tdata[15] ? 15'd0 : s_axis_tdata[14:0];
        for (k = 1; k < 100; k = k + 1) held[k] <= held[k - 1];
    end
    assign m_axis_tdata = held[99];"""
    now = re.sub(r"    assign m_axis_tdata .*", pipeline, text)
    assert now != text
    relu.write_text(now)
    for device in ("lfe5u-25f", "lfe5u-45f", "lfe5u-85f"):
        found = place_and_route(project, device=device, seeds=1)
        assert found.fmax_mhz > 80
        (log,) = (tmp_path / "synth").glob(f"ecp5/*/{device}-*/seed1.log")
        placed = int(re.search(r"Placed (\d+) cells based on constraints", log.read_text())[1])
        (tied,) = (tmp_path / "synth").glob(f"ecp5/*/{device}-*.json")
        assert placed == tied.read_text().count('"BEL"') > 15


def test_a_bitstream_begins_like_one(project, tmp_path):
    made = make_bitstream(project, "ulx3s", tmp_path / "tiny.bit", device="lfe5u-25f")
    content = made.path.read_bytes()
    assert b"LFE5U-25F" in content[:512]
    assert content.index(b"\xff\xff\xbd\xb3") < 1024  # the preamble of an ECP5 bitstream
    assert made.fmax_mhz > made.clock_mhz


# The words by which a configuration begins. A Gowin FPGA's is text: its own number, so that no other device takes it.
PREAMBLES = {".bit": b"\xff\xff\xbd\xb3", ".bin": b"\x7e\xaa\x99\x7e"}
NUMBERS = {
    "tang-nano-9k": 0x1100481B,
    "tang-nano-20k": 0x0000081B,
    "tang-primer-20k": 0x0000081B,
    "tang-primer-25k": 0x0001281B,
    "tang-mega-138k": 0x0001081B,
}
# The bitstream of a GateMate begins with a command and its one byte.
GATEMATE = b"\xd9\x01"


@pytest.mark.parametrize("board", sorted({*list_serial_boards()} - {"ulx3s"}))
def test_each_board_has_pins_that_its_package_has(project, tmp_path, board):
    router = find_board_router(board)[1]
    try:
        for tool in router.tools:
            find_open_tool(tool)
    except ToolError as error:
        pytest.skip(str(error))
    ending = bitstream_ending(board)
    made = make_bitstream(project, board, tmp_path / f"tiny{ending}")
    assert made.fmax_mhz > made.clock_mhz
    content = made.path.read_bytes()
    if router.family == "gatemate":
        assert content.startswith(GATEMATE)
    else:
        wanted = PREAMBLES.get(ending) or f"\n{0x06:08b}{0:024b}{NUMBERS[board]:032b}\n".encode()
        assert wanted in content[:4096]
    # nextpnr 0.11 sets a carry that comes from logic wrong on Gowin.
    assert all('"LOGIC"' not in path.read_text() for path in (project.path / "synth").rglob("board.json"))
    counted = synthesize(project, router.family).total
    assert counted.lut < made.used.lut < 1000


def test_an_ice40_takes_the_project_at_a_clock_of_its_own(tmp_path):
    try:
        for tool in (YOSYS, find_router("ice40").tool):
            find_open_tool(tool)
    except ToolError as error:
        pytest.skip(str(error))
    project = tiny_project(tmp_path)
    counted = synthesize(project, "ice40").total
    for device in ("ice40lp1k", "ice40lp4k", "ice40lp8k", "ice40hx1k", "ice40hx4k", "ice40hx8k"):
        found = place_and_route(project, "ice40", device, seeds=1)
        assert found.fmax_mhz > 50
        # A carry that comes out into the fabric takes a cell of its own.
        assert counted.lut <= found.used["lut"] <= 2 * counted.lut


def test_a_small_memory_on_gowin_counts_as_six_luts_when_it_is_placed(tmp_path):
    """As in synthesis and in Gowin's reports; beside that, a register takes at most the LUT for the way in."""
    try:
        for tool in find_board_router("tang-nano-20k")[1].tools:
            find_open_tool(tool)
    except ToolError as error:
        pytest.skip(str(error))
    project = tiny_project(tmp_path)
    relu = tmp_path / "rtl/relu.v"
    words = """    reg [59:0] memory [0:15];
    wire [59:0] word = memory[s_axis_tdata[7:4]];
    always @(posedge clk) if (s_axis_tvalid) memory[s_axis_tdata[3:0]] <= {4{s_axis_tdata[14:0]}};
    assign m_axis_tdata = word[14:0] ^ word[29:15] ^ word[44:30] ^ word[59:45];"""
    relu.write_text(re.sub(r"    assign m_axis_tdata .*", words, relu.read_text()))
    made = make_bitstream(project, "tang-nano-20k", tmp_path / "tiny.fs")
    counted = made.synthesised
    assert counted.lut > 15 * 6
    assert counted.lut <= made.used.lut <= counted.lut + counted.ff
