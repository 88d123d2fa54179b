"""Place and route, and bitstreams, with tools that are played."""

import importlib.metadata
import os
import time

import pytest

from fpgaprune.errors import RtlError, TargetError, ToolError
from fpgaprune.fabric import ECP5, digest_of_verilog, find_board, harness_of, make_bitstream, place_and_route, stub_of
from fpgaprune.files import hardware_path, write_bytes
from fpgaprune.measure import Cells, Resources

from .fake_tools import fake_ecppack, fake_nextpnr, fake_yosys

pytestmark = pytest.mark.skipif(os.name != "posix", reason="fake tools are scripts with a first line")


@pytest.fixture
def tools(fakes):
    """A folder with all three tools; what nextpnr was told is in its file `routes`."""
    fake_yosys(fakes)
    fake_ecppack(fakes)
    fake_nextpnr(fakes)
    return fakes


def test_a_harness_has_three_pins_and_every_bit_of_the_design(tiny):
    text = harness_of(tiny)
    assert "20 inputs from a shift register, 18 outputs into a signature" in text
    for port in ("s_axis_tdata(feed[16:1])", "m_axis_tdata(seen[15:1])", "m_axis_tready(feed[19:19])"):
        assert port in text
    assert "input wire [15:0] s_axis_tdata" in stub_of(tiny)
    assert "output wire [14:0] m_axis_tdata" in stub_of(tiny)


def test_figures_are_the_designs_without_its_harness(tiny, tools):
    found = place_and_route(tiny, "ecp5", "lfe5u-45f", seeds=5)
    # The fake's harness takes 170 + 6 LUTs and 17 FFs.
    assert found.used == Resources(lut=1000 - 176, ff=800 - 17, dsp=2, bram18=1)
    assert (found.fmax_mhz, found.fmax_range_mhz) == (103.0, (101.0, 105.0))
    assert [run.seed for run in found.runs] == [1, 2, 3, 4, 5]
    assert found.to_json()["stage"] == "route(ecp5)"
    assert found.capacity["lut"] == 43848


def test_each_seed_is_asked_for_the_projects_clock_on_its_device(tiny, tools):
    place_and_route(tiny, device="LFE5U-85F-7BG381C", seeds=[7], speed=7)
    line = (tools / "routes").read_text()
    for option in ("--85k", "--package CABGA381", "--speed 7", "--freq 100", "--seed 7", "--timing-allow-fail"):
        assert option in line


def test_a_family_without_rules_of_its_own_needs_its_table_only(tiny, fakes):
    fake_yosys(fakes)
    fake_nextpnr(fakes, family="ice40")
    found = place_and_route(tiny, "ice40", "ice40hx8k", seeds=[3])
    line = (fakes / "routes").read_text()
    options = "--hx8k --package ct256 --placer-heap-cell-placement-timeout 100 --freq 100 --seed 3 --timing-allow-fail"
    assert line.startswith(f"{options} --json ../joined.json ")
    # Of 900 logic cells, the fake's harness takes 170: one for each of its LUTs, some of which hold its 17 FFs.
    assert (found.used, found.capacity, found.speed) == (
        Resources(lut=730, bram4=1),
        Resources(lut=7680, bram4=32),
        None,
    )
    assert found.to_json()["stage"] == "route(ice40)"
    with pytest.raises(TargetError, match="Lattice iCE40 HX has no speed grade 1; wanted none: the part's name has it"):
        place_and_route(tiny, "ice40", "ice40hx8k", speed=1)
    with pytest.raises(TargetError, match="device 'lfe5u-25f' is no Lattice iCE40 HX; wanted one of ice40lp1k, "):
        place_and_route(tiny, "ice40", "lfe5u-25f")


def test_names_given_to_the_tool_are_relative(tiny, tools):
    place_and_route(tiny, seeds=1)
    words = (tools / "routes").read_text().split()
    assert not [word for word in words if word.startswith("/")]


def test_a_second_call_routes_only_new_seeds(tiny, tools):
    first = place_and_route(tiny, seeds=2)
    second = place_and_route(tiny, seeds=3)
    assert second.runs[:2] == first.runs
    assert len((tools / "routes").read_text().splitlines()) == 3
    place_and_route(tiny, seeds=2, target_mhz=50)
    assert len((tools / "routes").read_text().splitlines()) == 5


def test_without_a_device_the_smallest_that_holds_it_is_taken(tiny, fakes):
    fake_nextpnr(fakes)
    fake_yosys(fakes, extra={"LUT4": 15_000})  # more than three fifths of the smallest
    assert place_and_route(tiny, seeds=1).device == "lfe5u-45f"


def test_a_design_that_does_not_fit_is_refused_before_placing(tiny, fakes):
    calls = fake_nextpnr(fakes)
    fake_yosys(fakes, extra={"MULT18X18D": 29})
    with pytest.raises(
        TargetError, match=r"tiny takes 29 DSP on lfe5u-25f, which has 28; choose a larger device, prune more, or give"
    ):
        place_and_route(tiny, device="lfe5u-25f")
    assert not calls.read_text()


def test_a_seed_that_does_not_end_is_left_out(tiny, fakes):
    fake_yosys(fakes)
    fake_nextpnr(fakes, "if seed == 2: time.sleep(60)")
    found = place_and_route(tiny, seeds=3, timeout_s=2)
    assert found.runs[1].left_out == (
        "place and route did not end within 2 s: "
        "choose a larger device, prune more, or give a sample more cycles (interval)"
    )
    assert found.runs[1].fmax_mhz is None
    assert found.fmax_mhz == 102.0  # the median of 101 and 103


def test_a_router_that_dies_is_an_error_and_what_it_did_is_kept(tiny, fakes):
    fake_yosys(fakes)
    fake_nextpnr(fakes, "if seed == 2: time.sleep(1); sys.exit('ERROR: no route')\nif seed > 2: time.sleep(60)")
    started = time.monotonic()
    with pytest.raises(ToolError, match=r"nextpnr-ecp5 ended with code 1 in .*'ERROR: no route'.*seed2.log"):
        place_and_route(tiny, seeds=3, workers=3)
    assert time.monotonic() - started < 15
    calls = fake_nextpnr(fakes)
    calls.write_text("")
    place_and_route(tiny, seeds=3)
    assert len(calls.read_text().splitlines()) == 2


_TRAP = "print('Caused by: wasm trap: out of bounds memory access'); sys.exit(1)"
_KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"


@pytest.mark.parametrize("crash", [_TRAP, _KILLED])
def test_a_router_that_crashes_gets_another_seed_once(tiny, fakes, crash):
    fake_yosys(fakes)
    calls = fake_nextpnr(fakes, f"if seed == 2:\n    {crash}")
    assert place_and_route(tiny, seeds=2, workers=1).runs[1].fmax_mhz == 1102.0
    assert [line.split("--seed ")[1].split()[0] for line in calls.read_text().splitlines()] == ["1", "2", "1002"]
    fake_nextpnr(fakes, f"if seed % 1000 == 3:\n    {crash}")
    with pytest.raises(ToolError, match="nextpnr-ecp5 ended with code"):
        place_and_route(tiny, seeds=[3])
    assert len(calls.read_text().splitlines()) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": "xc7"}, "place and route for family 'xc7' is not offered; wanted one of ecp5"),
        ({"device": "xc7z020"}, "device 'xc7z020' is no Lattice ECP5; wanted one of lfe5u-25f"),
        ({"device": "lfe5u-99f"}, "part 'lfe5u-99f' is unknown"),
        ({"seeds": 0}, "wanted one seed or more"),
        ({"speed": 5}, "Lattice ECP5 has no speed grade 5; wanted one of 6, 7, 8"),
    ],
)
def test_what_cannot_be_placed_is_refused(tiny, tools, arguments, message):
    with pytest.raises(TargetError, match=message):
        place_and_route(tiny, **arguments)


def test_a_missing_router_is_named_with_the_command_that_installs_it(tiny, fakes, no_packages):
    fake_yosys(fakes)
    with pytest.raises(ToolError, match=r"install it with: pip install 'fpgaprune\[rtl\]'"):
        place_and_route(tiny)


@pytest.mark.parametrize(
    "work", [place_and_route, lambda project: make_bitstream(project, "ulx3s", project.path / "tiny.bit")]
)
def test_a_missing_partitioner_is_named_before_anything_is_synthesised(work, tiny, fakes, monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    calls = fake_yosys(fakes)
    fake_nextpnr(fakes)
    fake_ecppack(fakes)
    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(ToolError, match=r"install it with: pip install 'fpgaprune\[rtl\]'"):
        work(tiny)
    assert calls.read_text() == ""


def test_a_bitstream_has_the_boards_pins_and_clock(tiny, tools, tmp_path):
    found = make_bitstream(tiny, "ulx3s", tmp_path / "out" / "tiny.bit")
    assert found.path.read_text() == "bits of configuration 1"
    assert (found.in_bytes, found.out_bytes, found.clock_mhz, found.device) == (2, 2, 25.0, "lfe5u-85f")
    (constraints,) = (tiny.path / "synth").rglob("board.lpf")
    assert 'LOCATE COMP "serial_out" SITE "L4";' in constraints.read_text()
    assert 'FREQUENCY PORT "clk" 25 MHZ;' in constraints.read_text()
    (verilog,) = (tiny.path / "synth").rglob("around.v")
    assert ".DIVIDER(25), .IN_BITS(16), .OUT_BITS(15), .BEATS(1),\n        .PAUSE_BITS(20)" in verilog.read_text()
    assert found.digest == digest_of_verilog(tiny)
    # The lowest byte is sent first, so the constant ends in the mark and the digest, each turned around.
    assert f"{bytes.fromhex(found.digest)[::-1].hex()}{b'fpq1'[::-1].hex()})" in verilog.read_text()
    assert "assign wifi_gpio0 = 1'b1;" in verilog.read_text()


def test_a_design_slower_than_the_boards_clock_gives_no_bitstream(tiny, tools, tmp_path):
    fake_nextpnr(tools, base=20.0)
    with pytest.raises(RtlError, match=r"tiny reaches 21\.0 MHz on lfe5u-85f, and the clock of ULX3S runs at 25 MHz"):
        make_bitstream(tiny, "ulx3s", tmp_path / "tiny.bit")
    assert not (tmp_path / "tiny.bit").exists()


def test_a_folder_in_the_bitstreams_place_is_refused_before_anything_runs(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    (tmp_path / "out").mkdir()
    with pytest.raises(RtlError, match=r"bitstream '.*/out' is a folder; name a file, as out\.bit"):
        make_bitstream(tiny, "ulx3s", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_board_of_ones_own_is_read(tmp_path):
    text = hardware_path("boards", "ulx3s.toml").read_text()
    path = write_bytes(tmp_path / "mine.toml", text.replace('"ULX3S"', '"mine"').encode())
    assert find_board(path).name == "mine"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('package = "CABGA381"', "", "mine.toml: Object missing required field `package`; see hw/boards for the form"),
        ("speed = 6", 'speed = "six"', r"mine.toml: Expected `int \| null`, got `str` - at `\$.speed`; see hw/boards"),
        ('clk = "G2"', "", "has pins serial_in, serial_out; wanted clk, serial_in, serial_out"),
        ("speed = 6", "speed = 6\nbuttons = 3", "mine.toml: Object contains unknown field `buttons`; see hw/boards"),
        ("[high]", "[high", "is not TOML"),
    ],
)
def test_a_board_file_of_another_form_is_refused(tmp_path, old, new, message):
    text = hardware_path("boards", "ulx3s.toml").read_text()
    path = write_bytes(tmp_path / "mine.toml", text.replace(old, new).encode())
    with pytest.raises(TargetError, match=message):
        find_board(path)


def test_an_unknown_board_lists_those_that_are():
    with pytest.raises(
        TargetError, match="board 'arty' is unknown; wanted a TOML file or one of colorlight-i5, crosslink-nx-evn, "
    ):
        find_board("arty")


@pytest.mark.parametrize(
    ("lut", "ff", "device"),
    [(14_000, 17_000, "lfe5u-25f"), (14_600, 9, "lfe5u-45f"), (9, 17_100, "lfe5u-45f"), (9, 31_842, "lfe5u-85f")],
)
def test_the_smallest_device_has_room_to_spare_of_each_resource(lut, ff, device):
    cells = Cells(lut=lut, ff=ff, carry=0, dsp=0, bram18=0, uram=None, bram4=None, types={})
    assert ECP5.devices.smallest(cells).name == device
