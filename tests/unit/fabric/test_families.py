"""Families that are placed and routed: their tables name parts, figures and sites that exist."""

from dataclasses import fields

import pytest
from msgspec import structs

from fpgaprune.errors import RtlError, TargetError
from fpgaprune.fabric import (
    OPEN_TOOLS,
    ROUTERS,
    SiteKind,
    devices_of,
    families,
    find_family,
    find_router,
    list_families,
    versions_found,
)
from fpgaprune.fabric.ecp5.router import VERSION
from fpgaprune.measure import RESOURCES, Cells
from fpgaprune.target import Part, find_part

from .fake_tools import fake_yosys

NOTHING = Cells.sum([])


@pytest.mark.parametrize("family", ROUTERS)
def test_the_table_of_a_family_names_what_exists(family):
    devices = find_router(family).devices
    families = find_family(family).parts
    parts = {name: find_part(name) for name in devices.devices}
    assert all(part.family in families for part in parts.values())
    assert set(devices.smallest_first) <= set(parts)
    sizes = [parts[name].lut for name in devices.smallest_first]
    assert sizes == sorted(sizes)
    figures = {*devices.sites, *devices.room, *(figure for site in devices.sites.values() for figure in site.holds)}
    assert figures <= {*RESOURCES} & {field.name for field in fields(Part)}
    for part in parts.values():
        speed = devices.speeds[0] if devices.speeds else None
        options = devices.selecting(part, None, speed, NOTHING)
        assert not [option for option in options if "{" in option or option == "None"]


def test_a_family_shares_the_hints_for_place_and_route_only_where_its_table_says_so():
    hx, up = devices_of("ice40"), devices_of("ice40up")
    assert (up.options, up.lut_of, up.priced_as) == (hx.options, hx.lut_of, hx.priced_as)
    assert hx.lut_of
    assert not set(up.devices) & set(hx.devices)
    assert (hx.pll, set(up.room) - set(hx.room)) == (None, {"dsp"})
    # Its cells are Gowin's, its PLL and its placer are not.
    assert (devices_of("gw5a").pll, devices_of("gw5a").options) == (None, ())


def test_the_placer_spreads_cells_where_there_is_room_alone():
    devices, part = devices_of("gowin"), find_part("gw1nr-9")
    few, many = (structs.replace(NOTHING, lut=round(share * (part.lut or 0))) for share in (0.5, 0.9))
    assert devices.crowding(few, part) is None
    assert devices.selecting(part, None, None, few)[-2:] == devices.spread
    assert devices.selecting(part, None, None, many) == devices.selecting(part, None, None, few)[:-2]


def test_a_small_memory_takes_places_of_registers():
    """96 of them and 4,457 registers take 78 % of a Tang Nano 9K, as nextpnr counts, which finds no place for them."""
    devices, part = devices_of("gowin"), find_part("gw1nr-9")
    registers = structs.replace(NOTHING, ff=4457)
    assert devices.crowding(registers, part) is None
    assert devices.crowding(structs.replace(registers, types={"RAM16SDP4": 96}), part) == "78% of FF (of 70%)"


def test_only_families_with_a_router_have_a_table():
    assert {name for name in list_families() if find_family(name).place is not None} == set(ROUTERS)
    with pytest.raises(TargetError, match=r"hw/synth/xc7\.toml has no table \[place\]"):
        devices_of("xc7")


def test_every_tool_of_every_family_is_listed_once():
    programs = [tool.program for tool in OPEN_TOOLS]
    assert len(set(programs)) == len(programs)
    assert {"yosys", *(tool.program for router in ROUTERS.values() for tool in router.tools)} == set(programs)


def test_what_stands_around_a_project_is_taken_off_its_sites():
    around, own = (structs.replace(NOTHING, lut=lut, ff=ff) for lut, ff in ((30, 20), (45, 60)))
    assert SiteKind("LUT", ("lut",)).without(70, around, own) == 40
    assert SiteKind("BLOCK", ("bram18",)).without(5, around, own) == 5
    # A logic cell holds one of each: of 70, at least 60 hold something of the project, of 100 all but 30.
    assert SiteKind("CELL", ("lut", "ff")).without(70, around, own) == 60
    assert SiteKind("CELL", ("lut", "ff")).without(100, around, own) == 70


def test_sites_under_other_names_are_counted_too():
    site = SiteKind("LUT4", ("lut",), {"ALU": 1, "RAM16SDP4": 6})
    assert site.used({"LUT4": 5, "ALU": 3, "RAM16SDP4": 2, "MUX2_LUT5": 9}) == 20
    assert site.used({"LUT4": 5}) == 5


def test_a_report_without_a_site_of_the_table_is_refused():
    with pytest.raises(RtlError, match="nextpnr's report counts no DP16KD of Lattice ECP5"):
        devices_of("ecp5").used({"TRELLIS_COMB": 1, "TRELLIS_FF": 1, "MULT18X18D": 0}, NOTHING, NOTHING)


def test_each_thing_a_measurement_depends_on_has_a_line_found_or_missing(fakes, monkeypatch, no_packages):
    fake_yosys(fakes)
    monkeypatch.setattr(families, "simulator_version", lambda: "verilator 9")
    yosys, router, packer, rules, simulator = versions_found("ecp5")
    assert (yosys, simulator) == ("Yosys 9.9 (played)", "verilator 9")
    assert router.startswith("nextpnr-ecp5 (open place and route for ECP5) was found neither on PATH nor")
    assert packer.startswith("ecppack ")
    assert rules.startswith(f"{VERSION} mtkahypar ")
    # A family's other tools are none of another's business.
    assert [line.split(" ")[0] for line in versions_found("ice40")] == [
        "Yosys",
        "nextpnr-ice40",
        "icepack",
        "verilator",
    ]
