"""Parts, order numbers and targets."""

from datetime import date

import pytest

from fpgaprune.errors import TargetError
from fpgaprune.files import hardware_path
from fpgaprune.target import CAPACITIES, Target, find_part, list_boards, list_parts, read_parts

OWN = """
family = "Mine"
vendor = "AMD"
source = "my board"
date = 2026-01-02
part = [
  { name = "xc9q1", lut = 1000, ff = 2000, dsp = 3, bram18 = 4 },
  { name = "xc7z020", lut = 1, note = "cut down" },
]
"""


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "board.toml"
    path.write_text(OWN)
    return path


# As the vendors' data sheets state them: LUT, FF, DSP, 18 Kb block RAMs (two per 36 Kb tile), those of 4 Kb, UltraRAMs.
@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("xc7z020", (53200, 106400, 220, 280, None, 0)),
        ("xc7a35t", (20800, 41600, 90, 100, None, 0)),
        ("xc7a100t", (63400, 126800, 240, 270, None, 0)),
        ("xc7vx690t", (433200, 866400, 3600, 2940, None, 0)),
        ("xczu3eg", (70560, 141120, 360, 432, None, 0)),
        ("xczu9eg", (274080, 548160, 2520, 1824, None, 0)),
        ("xczu7ev", (230400, 460800, 1728, 624, None, 96)),
        ("xcku115", (663360, 1326720, 5520, 4320, None, 0)),
        ("xcvu9p", (1182240, 2364480, 6840, 4320, None, 960)),
        ("xcvu13p", (1728000, 3456000, 12288, 5376, None, 1280)),
        ("xcu250", (1728000, 3456000, 12288, 5376, None, 1280)),
        ("xcvc1902", (899840, 1799680, 1968, 1934, None, 463)),
        ("lfe5u-85f", (83640, 83640, 156, 208, None, 0)),
        ("ice40up5k", (5280, 5280, 8, None, 30, 0)),
        ("5cseba6", (83018, 166036, 112, None, None, 0)),
    ],
)
def test_capacities(name, figures):
    part = find_part(name)
    assert tuple(getattr(part, key) for key in CAPACITIES) == figures


@pytest.mark.parametrize(
    ("order_number", "name"),
    [
        ("xc7z020clg400-1", "xc7z020"),
        ("XC7Z020-1CLG400C", "xc7z020"),
        ("xc7z010iclg225-1L", "xc7z010"),
        ("xc7a100tcsg324-1", "xc7a100t"),
        ("xc7a35ticsg324-1L", "xc7a35t"),
        ("xc7k325tffg900-2", "xc7k325t"),
        ("xczu3eg-sbva484-1-i", "xczu3eg"),
        ("xczu3cg-sfvc784-1-e", "xczu3cg"),
        ("xczu9eg-ffvb1156-2-e", "xczu9eg"),
        ("xcku115-flvb2104-2-i", "xcku115"),
        ("xcvu9p-flga2104-2L-e", "xcvu9p"),
        ("xcvu13p-flga2577-2-e", "xcvu13p"),
        ("xcu250-figd2104-2L-e", "xcu250"),
        ("xcu55c-fsvh2892-2L-e", "xcu55c"),
        ("xck26-sfvc784-2LV-c", "xck26"),
        ("xcvc1902-vsva2197-2MP-e-S", "xcvc1902"),
        ("LFE5U-85F-6BG381C", "lfe5u-85f"),
        ("LFE5UM5G-85F-8BG756C", "lfe5um5g-85f"),
        ("LIFCL-40-9BG400C", "lifcl-40"),
        ("ICE40UP5K-SG48I", "ice40up5k"),
        ("GW1NR-LV9QN88PC6/I5", "gw1nr-9"),
        ("GW2AR-LV18QN88C8/I7", "gw2ar-18"),
        ("GW1NR-9C", "gw1nr-9"),
        ("MPF300TS-1FCG1152I", "mpf300t"),
        ("5CSEBA6U23I7", "5cseba6"),
        ("10AX115N2F45E1SG", "10ax115"),
        ("AGFB014R24A2E2V", "agfb014"),
    ],
)
def test_order_numbers(order_number, name):
    assert find_part(order_number).name == name
    assert Target.of(f" {order_number} ").order_number == order_number


@pytest.mark.parametrize(
    "name",
    [
        "xc7a100",
        "xc7a10t",
        "xc7z0200",
        "xc7z020s",
        "xc7z020-",
        "xcvu9pxyz",
        "xcvu9",
        "xczu3",
        "xczu3e",
        "xczu33eg",
        "xcku1155",
        "lfe5u-85",
        "lfe5u-855f",
        "ice40up",
        "gw1n-91",
        "10ax1155",
        "",
    ],
)
def test_no_name_means_another_device_by_accident(name):
    with pytest.raises(TargetError, match="is unknown"):
        find_part(name)


def test_an_unknown_part_lists_the_nearest():
    with pytest.raises(TargetError) as caught:
        find_part("xc7z021clg400-1")
    assert str(caught.value).startswith("part 'xc7z021clg400-1' is unknown; nearest: xc7z020, ")
    with pytest.raises(TargetError, match="see 'fpgaprune parts'"):
        find_part("qqqqqq")


def test_each_name_and_alias_means_only_its_own_part():
    parts = list_parts()
    assert len(parts) >= 150
    for part in parts:
        for name in (part.name, *part.aliases):
            assert [other.name for other in parts if other.is_meant_by(name)] == [part.name]


@pytest.mark.parametrize("part", list_parts(), ids=lambda part: part.name)
def test_every_part_is_sane(part):
    assert part.name == part.name.lower()
    assert part.vendor in {"AMD", "Intel", "Lattice", "Gowin", "Microchip", "Cologne Chip"}
    assert part.family
    assert len(part.source) > 20
    assert "//" not in part.source
    assert date.fromisoformat(part.date) >= date(2026, 11, 1)
    for key in CAPACITIES:
        value = getattr(part, key)
        # There are devices without DSP slices and without UltraRAM, but none without logic.
        assert value is None or value > 0 or (value == 0 and key in {"dsp", "uram"})
    assert part.uram is not None
    if part.vendor == "AMD":
        assert None not in (part.lut, part.ff, part.dsp, part.bram18)
        assert part.ff == 2 * part.lut
        # Two halves to each 36 Kb tile.
        assert part.bram18 % 2 == 0
    if part.vendor == "Intel":
        # Two ALUTs in each ALM.
        assert part.lut % 2 == 0
        assert part.note.startswith(f"{part.lut // 2} ALMs")


def test_rebadged_devices_have_equal_capacities():
    for one, other in [("xcu250", "xcvu13p"), ("xcu200", "xcvu9p"), ("xcu50", "xcvu35p"), ("xck26", "xczu5ev")]:
        assert [getattr(find_part(one), k) for k in CAPACITIES] == [getattr(find_part(other), k) for k in CAPACITIES]


def test_parts_are_found_beside_or_inside_the_package():
    assert hardware_path("parts", "zynq7000.toml").is_file()


def test_a_file_of_ones_own_comes_first_and_leaves_gaps_unknown(own):
    part = find_part("xc9q1clg400-1", parts_file=own)
    assert (part.lut, part.uram, part.date) == (1000, None, "2026-01-02")
    assert find_part("xc7z020", parts_file=own).note == "cut down"
    assert find_part("xcvu9p", parts_file=own) == find_part("xcvu9p")
    assert Target.of("xc9q1", parts_file=own).part == part


def test_a_path_to_a_file_of_ones_own_is_a_part(own, tmp_path):
    assert Target.of(f"{own}:xc9q1clg400-1").order_number == "xc9q1clg400-1"
    assert find_part(f"{own}:xc9q1clg400-1").lut == 1000
    with pytest.raises(TargetError, match=r"holds xc9q1, xc7z020; say which one, as '.*board\.toml:xc9q1'"):
        Target.of(str(own))
    with pytest.raises(TargetError, match=r"part 'xcvu9p' is unknown"):
        Target.of(f"{own}:xcvu9p")
    single = tmp_path / "one.toml"
    single.write_text(OWN.replace('  { name = "xc7z020", lut = 1, note = "cut down" },\n', ""))
    assert Target.of(str(single)).order_number == "xc9q1"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lut = 1000", "lut = -1", r"part 'xc9q1' has lut = -1; wanted a whole number, 0 or more"),
        ("lut = 1000", "lut = true", r"has lut = True"),
        ("lut = 1000", "lut = 1.5", r"has lut = 1\.5"),
        ("lut = 1000", "luts = 1000", r"part 'xc9q1' has 'luts'; allowed are name, family"),
        ("lut = 1000", "aliases = 3", r"has aliases = 3; wanted a list of names"),
        ('vendor = "AMD"', "", r"part 'xc9q1' has no 'vendor'"),
        ('"xc7z020"', '"XC9Q1"', r"names 'xc9q1' twice"),
        ("part = [", "parts = [", r"has no list of tables 'part'"),
        ("part = [", "part = [[", r"is not TOML: "),
    ],
)
def test_a_malformed_file_is_refused(own, old, new, message):
    own.write_text(OWN.replace(old, new))
    with pytest.raises(TargetError, match=message):
        read_parts(own)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(TargetError, match=r"nothing\.toml does not exist"):
        Target.of(str(tmp_path / "nothing.toml"))
    with pytest.raises(TargetError, match="cannot be read"):
        read_parts(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(TargetError, match="is not TOML: not UTF-8 text"):
        read_parts(tmp_path / "bytes.toml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"io_type": "io_serial"}, r"target io_type is 'io_serial'; wanted one of io_parallel, io_stream"),
        ({"strategy": "fast"}, r"target strategy is 'fast'; wanted one of latency"),
        ({"clock_ns": 0}, r"target clock period is 0 ns; wanted a number above 0"),
        ({"clock_ns": float("nan")}, r"target clock period is nan ns"),
        ({"reuse_factor": 0}, r"target reuse factor is 0; wanted 1 or more"),
    ],
)
def test_a_target_that_cannot_be_is_refused(options, message):
    with pytest.raises(TargetError, match=message):
        Target.of("xc7z020", **options)


@pytest.mark.parametrize("board", list_boards(), ids=lambda board: board.name)
def test_every_board_stands_for_a_known_part(board):
    part = find_part(board.name)
    assert part == find_part(board.part)
    assert Target.of(board.name).order_number == board.part
    assert part.is_meant_by(board.part)
    assert len(board.source) > 15
    assert "//" not in board.source


def test_boards_have_names_of_their_own():
    names = [name for board in list_boards() for name in (board.name, *board.aliases)]
    assert len({name.replace("-", "") for name in names}) == len(names) >= 50
    assert not any(part.is_meant_by(name) for part in list_parts() for name in names)


@pytest.mark.parametrize(
    ("name", "order_number"),
    [
        ("pynq-z2", "xc7z020clg400-1"),
        ("PYNQ-Z2", "xc7z020clg400-1"),
        (" pynq_z2 ", "xc7z020clg400-1"),
        ("zcu104", "xczu7ev-ffvc1156-2-e"),
        ("kv260", "xck26-sfvc784-2LV-c"),
        ("ultra96v2", "xczu3eg-sbva484-1-i"),
        ("ultra96-v2", "xczu3eg-sbva484-1-i"),
        ("arty-a7-100t", "xc7a100tcsg324-1"),
        ("Alveo U250", "xcu250-figd2104-2L-e"),
        ("de10-nano", "5CSEBA6U23I7"),
        ("tang-nano-9k", "GW1NR-LV9QN88PC6/I5"),
    ],
)
def test_a_board_is_its_part(name, order_number):
    assert Target.of(name).order_number == order_number


def test_a_board_that_is_sold_with_several_parts_is_asked_about():
    with pytest.raises(TargetError) as caught:
        find_part("Zybo-Z7")
    assert str(caught.value) == ("board 'Zybo-Z7' is sold with several parts; say which one: zybo-z7-10, zybo-z7-20")


def test_a_misspelt_board_lists_the_nearest():
    with pytest.raises(TargetError, match="part 'zcu105' is unknown; nearest: zcu10"):
        find_part("zcu105")


def test_a_part_of_ones_own_goes_before_a_board_of_that_name(own):
    own.write_text(OWN.replace("xc9q1", "pynq-z2"))
    assert Target.of("pynq-z2", parts_file=own).order_number == "pynq-z2"
    assert find_part("pynq-z2", parts_file=own).lut == 1000
    assert Target.of(f"{own}:pynq-z2").part.lut == 1000
