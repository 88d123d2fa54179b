"""Every board of `hw/boards`: its file, its bitstream with tools that are played, and what is refused in one line."""

import json
import os

import numpy as np
import pytest

from fpgaprune.errors import RtlError, TargetError, ToolError
from fpgaprune.fabric import (
    bitstream_ending,
    board_top,
    find_board,
    find_board_router,
    find_open_tool,
    list_serial_boards,
    make_bitstream,
    to_verilog,
)
from fpgaprune.measure import Resources
from fpgaprune.target import find_part, list_boards
from tests.quick import quick

from ..rtl.networks import Net
from .fake_tools import fake_nextpnr, fake_packers, fake_yosys

pytestmark = pytest.mark.skipif(os.name != "posix", reason="fake tools are scripts with a first line")
ENDINGS = {"ecp5": ".bit", "gatemate": ".bit", "gowin": ".fs", "gw5a": ".fs", "ice40up": ".bin", "nexus": ".bit"}


@pytest.fixture
def tools(fakes):
    """A folder with every tool; what nextpnr and the packer were told is in its files `routes` and `packed`."""
    fake_yosys(fakes)
    for family in ("ecp5", "ice40", "himbaechel-gowin", "himbaechel-gatemate", "nexus"):
        fake_nextpnr(fakes, family=family)
    fake_packers(fakes)
    return fakes


@pytest.mark.parametrize("name", list_serial_boards())
def test_a_boards_file_says_how_it_is_loaded_and_whether_it_ever_was(name, tiny):
    board = find_board(name)
    assert board.source
    assert "{file}" in board.load
    assert board.loaded is None, "a bitstream was loaded: say so in docs/howto/board.md too"
    assert board.was_loaded == (
        f"no bitstream of fpgaprune was ever loaded into a real {board.name}: pins and timing were never tried"
    )
    assert (
        (board.usb is not None) or "adapter" in board.note or name in ("colorlight-i5", "ecp5-evn", "gatemate-a1-evb")
    )
    for listed in list_boards():
        if listed.name == name:
            assert find_part(listed.part) == find_part(board.device)
    # The divider of the serial line is within the 2 % that a receiver forgives.
    assert f"on {board.name}:" in board_top(tiny, board, "")


# One of each family.
FEW = ["tang-nano-9k", "icebreaker", "ulx3s", "crosslink-nx-evn", "gatemate-a1-evb"]


@pytest.mark.parametrize("name", quick(FEW, list_serial_boards()))
def test_every_board_gets_its_own_bitstream(name, tiny, tools, tmp_path):
    board, router, packing = find_board_router(name)
    assert bitstream_ending(name) == ENDINGS[router.family]
    made = make_bitstream(tiny, name, tmp_path / f"tiny{bitstream_ending(name)}")
    assert made.path.read_text() == "bits"
    (constraints,) = (tiny.path / "synth").rglob(packing.pins_file)
    assert all(site in constraints.read_text() for site in board.pins.values())
    assert (made.load, made.note, made.loaded) == (board.load, board.note, board.was_loaded)
    assert made.used.lut > 0
    json.dumps(made.to_json())


def test_gowin_is_told_device_pins_and_clock(tiny, tools, tmp_path):
    made = make_bitstream(tiny, "tang-nano-9k", tmp_path / "tiny.fs")
    route = (tools / "routes").read_text()
    for option in (
        "--device GW1NR-LV9QN88PC6/I5 --vopt family=GW1N-9C --placer-heap-cell-placement-timeout 1000",
        "--placer-heap-beta 0.3 --vopt cst=board.cst",
        "--write board.json --freq 27 --seed 1",
    ):
        assert option in route
    assert (tools / "packed").read_text() == "-d GW1N-9C -o board.fs board.json"
    (constraints,) = (tiny.path / "synth").rglob("board.cst")
    assert 'IO_LOC "serial_in" 18;\nIO_PORT "serial_in" IO_TYPE=LVCMOS33;' in constraints.read_text()
    # The fake's adders are LUTs too.
    assert made.used == Resources(lut=750, ff=600, dsp=1, bram18=3)
    (script,) = (tiny.path / "synth").rglob("fpgaprune_board-*/synth.ys")
    text = script.read_text()
    assert "synth_gowin -family gw2a -run map_gates: -top fpgaprune_board" in text  # with buffers at its pins
    assert "-map gowin_carry.v" in text
    assert (script.parent / "gowin_carry.v").is_file()


def test_a_primer_25k_may_use_the_pins_of_its_configuration(tiny, tools, tmp_path):
    make_bitstream(tiny, "tang-primer-25k", tmp_path / "tiny.fs")
    assert "--vopt family=GW5A-25A --vopt sspi_as_gpio" in (tools / "routes").read_text()
    assert (tools / "packed").read_text().startswith("-d GW5A-25A --sspi_as_gpio --cpu_as_gpio -o board.fs")


def test_an_icebreaker_is_told_pins_and_clock(tiny, tools, tmp_path):
    made = make_bitstream(tiny, "icebreaker", tmp_path / "tiny.bin")
    assert (
        "--up5k --package sg48 --placer-heap-cell-placement-timeout 100 --pcf board.pcf --asc board.asc"
        in (tools / "routes").read_text()
    )
    (constraints,) = (tiny.path / "synth").rglob("board.pcf")
    assert constraints.read_text() == "set_io clk 35\nset_io serial_in 6\nset_io serial_out 9\nset_frequency clk 12\n"
    assert made.used == Resources(lut=900, dsp=4, bram4=1)


def test_a_nexus_is_told_device_pins_and_clock(tiny, tools, tmp_path):
    made = make_bitstream(tiny, "crosslink-nx-evn", tmp_path / "tiny.bit")
    route = (tools / "routes").read_text()
    assert "--device LIFCL-40-9BG400C --router router1 --pdc board.pdc --fasm board.fasm --seed 1" in route
    assert (tools / "packed").read_text() == "pack board.fasm board.bit"
    (constraints,) = (tiny.path / "synth").rglob("board.pdc")
    text = constraints.read_text()
    assert text.startswith("create_clock -period 83.333 -name clk [get_ports clk]\n")
    assert "ldc_set_location -site {F16} [get_ports serial_in]\n" in text
    assert "ldc_set_port -iobuf {IO_TYPE=LVCMOS33} [get_ports serial_out]\n" in text
    assert made.used == Resources(lut=500, ff=400, bram18=2)
    # yosys 0.70 makes wrong products of its multipliers.
    scripts = [path.read_text() for path in (tiny.path / "synth" / "nexus").rglob("synth.ys")]
    assert len(scripts) == 2
    assert all("synth_nexus -nodsp " in script for script in scripts)


def test_a_gatemate_is_told_device_pins_and_clock(tiny, tools, tmp_path):
    made = make_bitstream(tiny, "gatemate-a1-evb", tmp_path / "tiny.bit")
    told = "--device CCGM1A1 --vopt ccf=board.ccf --vopt out=board.txt --write board.json --freq 10"
    assert told in (tools / "routes").read_text()
    assert (tools / "packed").read_text() == "board.txt board.bit"
    (constraints,) = (tiny.path / "synth").rglob("board.ccf")
    assert 'Net "serial_in" Loc = "IO_SA_A6";\n' in constraints.read_text()
    # An adder takes both halves of a CPE.
    assert made.used == Resources(lut=540, ff=300, bram18=2)


def test_a_mega_138k_is_the_version_that_apycula_knows(tiny, tools, tmp_path):
    make_bitstream(tiny, "tang-mega-138k", tmp_path / "tiny.fs")
    assert "--device GW5AST-LV138PG484AC1/I0 " in (tools / "routes").read_text()
    assert (tools / "packed").read_text().startswith("-d GW5AST-138C --cpu_as_gpio -o board.fs")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"board": "arty"}, TargetError, "board 'arty' is unknown; wanted a TOML file or one of colorlight-i5, "),
        (
            {"board": "tang-nano-9k", "device": "lfe5u-25f"},
            TargetError,
            "device 'lfe5u-25f' is no Gowin GW1N and GW2A; wanted one of gw1nr-9, gw2a-18, gw2ar-18",
        ),
        (
            {"board": "tang-nano-9k", "output": "x.bit"},
            RtlError,
            r"bitstream 'x\.bit' for Tang Nano 9K: its name must end in \.fs",
        ),
    ],
)
def test_what_does_not_belong_together_is_refused_before_anything_runs(tiny, fakes, arguments, error, message):
    calls = fake_yosys(fakes)
    with pytest.raises(error, match=message):
        make_bitstream(tiny, **{"output": "x.fs", **arguments})
    assert calls.read_text() == ""


def test_a_board_with_an_fpga_of_no_open_tool_is_refused(tiny, tmp_path):
    text = 'name = "x"\nsource = "x"\ndate = "x"\ndevice = "xc7a35t"\npackage = "x"\nclock_mhz = 12.0\nio_type = "x"\n'
    path = tmp_path / "mine.toml"
    path.write_text(f'{text}load = "x"\n[pins]\nclk = "1"\nserial_in = "2"\nserial_out = "3"\n')
    with pytest.raises(TargetError, match="place and route for family 'xc7' is not offered; wanted one of ecp5, ice40"):
        make_bitstream(tiny, path, "x.bit")


@pytest.mark.parametrize(
    ("board", "extra", "message"),
    [
        (
            "tang-nano-9k",
            {"LUT4": 12_000},
            r"12,\d{3} LUT on gw1nr-9, .*; Tang Nano 20K \(tang-nano-20k\) would take it: ",
        ),
        ("icebreaker", {"SB_RAM40_4K": 31}, r"31 BRAM4 on ice40up5k, which has 30; .* would take it: "),
        (
            "ulx3s",
            {"LUT4": 200_000},
            r"on lfe5u-85f, which has 83,640; .*; Tang Mega 138K \(tang-mega-138k\) would take it: ",
        ),
        (
            "ulx3s",
            {"LUT4": 400_000},
            r"on lfe5u-85f, which has 83,640; .*; no board that fpgaprune knows would take it",
        ),
    ],
)
def test_a_design_too_large_for_its_board_names_one_that_takes_it(tiny, fakes, board, extra, message):
    fake_nextpnr(fakes, family="ecp5")
    fake_nextpnr(fakes, family="ice40")
    fake_nextpnr(fakes, family="himbaechel-gowin")
    fake_packers(fakes)
    only = {"tang-nano-9k": "gowin", "icebreaker": "ice40", "ulx3s": "ecp5"}[board]
    fake_yosys(fakes, extra=f"{extra!r} if 'synth_{only}' in script and top == 'tiny' else {{}}")
    with pytest.raises(TargetError, match=message):
        make_bitstream(tiny, board, tiny.path / f"x{bitstream_ending(board)}")


@pytest.mark.parametrize(
    ("board", "extra"),
    [
        ("tang-nano-9k", "gowin"),
        ("tang-primer-25k", "gowin"),
        ("icebreaker", "ice40"),
        ("crosslink-nx-evn", "nexus"),
        ("gatemate-a1-evb", "gatemate"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(tiny, fakes, no_packages, board, extra):
    calls = fake_yosys(fakes)
    with pytest.raises(ToolError, match=rf"install (it|them) with: pip install 'fpgaprune\[{extra}\]'"):
        make_bitstream(tiny, board, f"x{bitstream_ending(board)}")
    assert calls.read_text() == ""


def test_a_packer_that_cannot_tell_its_version_is_not_asked(fakes):
    told = fake_packers(fakes)
    packing = find_board_router("tang-nano-9k")[2]
    assert find_open_tool(packing.tool).version == "gowin_pack of unknown version"
    assert not told.exists()


def test_a_memory_keeps_the_sample_of_a_network_that_takes_it_step_by_step(tiny, tmp_path):
    """Without it, a beat that comes before the one before it was taken is lost."""
    net = Net(np.random.default_rng(1))
    gru = to_verilog(net.design(net.recurrent(net.input(4, 3), "GRU", 2)), tmp_path)
    board = find_board("icebreaker")
    assert ".KEEP(1)" in board_top(gru, board, "")
    assert ".KEEP(0)" in board_top(tiny, board, "")
