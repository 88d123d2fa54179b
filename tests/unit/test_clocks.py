"""A clock that no part of the family can have is refused wherever one comes in, with the bound of the family."""

import math

import pytest
from typer.testing import CliRunner

import fpgaprune as fp
from fpgaprune.cli import app
from fpgaprune.errors import ConfigError, FpgaPruneError, TargetError
from fpgaprune.fabric import find_board, find_board_router, list_serial_boards
from fpgaprune.files import hardware_path, read_toml
from fpgaprune.flow import MeasureConfig, TargetConfig, parse_config
from fpgaprune.target import list_parts, require_clock

from .estimate.designs import mlp

FAMILIES = read_toml(hardware_path("family_clocks.toml"), TargetError, "")["family"]


def test_every_family_of_parts_has_a_bound_with_its_source_and_none_is_listed_twice():
    names = [row["name"] for row in FAMILIES]
    assert sorted(names) == sorted({part.family for part in list_parts()})
    assert all(row["source"] and 100 < row["max_mhz"] < 1200 for row in FAMILIES)


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: row["name"])
def test_the_bound_itself_is_a_clock_and_what_is_a_little_faster_is_none(row):
    require_clock(1e3 / row["max_mhz"], row["name"])
    with pytest.raises(TargetError, match=f"parts ends at {row['max_mhz']} MHz"):
        require_clock(1e3 / row["max_mhz"] / 1.01, row["name"])
    require_clock(100_000, row["name"])
    require_clock(5.0, row["name"])


@pytest.mark.parametrize("wrong", [0, -5.0, math.nan, math.inf, -math.inf, True, "5", None])
def test_what_is_no_period_is_refused(wrong):
    with pytest.raises(TargetError, match="wanted a number above 0"):
        fp.Target(fp.Target.of("xc7z020").part, "xc7z020", clock_ns=wrong)


@pytest.mark.parametrize(
    ("part", "clock_ns"),
    [
        ("tang-nano-20k", 37.037),  # 27 MHz
        ("TangNano9K", 37.037),
        ("ulx3s-25f", 40.0),
        ("icebreaker", 83.333),
        # A part stands on no board, and the tools of these boards make any clock.
        ("GW2AR-LV18QN88C8/I7", 5.0),
        ("pynq-z2", 5.0),
        ("xc7z020", 5.0),
    ],
)
def test_a_target_has_the_clock_of_its_board_unless_one_is_named(part, clock_ns):
    assert fp.Target.of(part).clock_ns == clock_ns
    flow = parse_config({"target": {"part": part}}, "flow")
    assert flow[TargetConfig].clock_ns == flow[TargetConfig].target().clock_ns == clock_ns
    # What was not named is not written down as if it were.
    assert flow.model_dump(exclude_unset=True) == {"target": {"part": part}}
    named = parse_config({"target": {"part": part, "clock_ns": 50}}, "flow")
    assert named[TargetConfig].target().clock_ns == fp.Target.of(part, clock_ns=50).clock_ns == 50


def test_every_board_with_a_serial_line_gives_its_oscillator_to_its_targets():
    for name in list_serial_boards():
        assert fp.Target.of(name).clock_ns == pytest.approx(1e3 / find_board(name).clock_mhz, abs=5e-4)


def test_a_tenth_of_a_nanosecond_and_a_second_are_no_clocks():
    said = (
        r"0\.1 ns, a clock of 10,000 MHz; the clock network of Zynq-7000 parts ends at 741 MHz: wanted 1\.35 ns or more"
    )
    with pytest.raises(TargetError, match=said):
        fp.Target.of("xc7z020", clock_ns=0.1)
    with pytest.raises(TargetError, match="wanted at most 100,000 ns"):
        fp.Target.of("xc7z020", clock_ns=1e9)


def test_a_part_of_your_own_is_bounded_by_the_fastest_family():
    with pytest.raises(TargetError, match="those of all known families end at 1100 MHz"):
        require_clock(0.5, "Moonshot")
    require_clock(1.0, "Moonshot")


@pytest.mark.parametrize(
    ("part", "clock_ns"), [("xc7z020", 0.1), ("tang-nano-9k", 1.5), ("ulx3s-85f", 2.5), ("zcu104", 1e6)]
)
def test_a_flow_file_is_refused_by_its_key(part, clock_ns):
    with pytest.raises(ConfigError, match=r"target\.clock_ns: target clock period is .* wanted"):
        parse_config({"target": {"part": part, "clock_ns": clock_ns}}, "flow")


@pytest.mark.parametrize("mhz", [371, 1e9, 0.001])
def test_place_and_route_aims_at_a_clock_of_an_ecp5(mhz):
    with pytest.raises(ConfigError, match=r"measure\.target_mhz: target clock period"):
        parse_config({"measure": {"target_mhz": mhz}}, "flow")
    assert MeasureConfig(target_mhz=100).target_mhz == 100


def test_commands_refuse_it_before_they_price_anything(tmp_path):
    mlp().save(tmp_path / "design.json")
    (tmp_path / "model.keras").write_bytes(b"")
    for words in (
        ["estimate", str(tmp_path / "design.json"), "--part", "xc7z020", "--clock-ns", "0.1"],
        [
            "run",
            str(tmp_path / "model.keras"),
            "--data",
            "x.npz",
            "--part",
            "xc7z020",
            "--sparsity",
            "0.5",
            "--clock-ns",
            "0.1",
        ],
        ["fit", str(tmp_path / "model.keras"), "--data", "x.npz", "--part", "xc7z020", "--clock-ns", "0.1"],
    ):
        done = CliRunner().invoke(app, words)
        assert isinstance(done.exception, FpgaPruneError), done
        assert "a clock of 10,000 MHz" in str(done.exception)


def test_the_boards_have_possible_clocks_and_a_board_of_your_own_needs_one(tmp_path):
    for name in list_serial_boards():
        find_board_router(name)
    text = hardware_path("boards", "ulx3s.toml").read_text()
    for wrong, said in (("4000.0", "ECP5 parts ends"), ("0.0", "wanted a number above 0"), ("nan", "above 0")):
        (tmp_path / "own.toml").write_text(text.replace("clock_mhz = 25.0", f"clock_mhz = {wrong}"))
        with pytest.raises(TargetError, match=said):
            find_board_router(tmp_path / "own.toml")
