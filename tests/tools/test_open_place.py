"""Place and route and a bitstream by the tools themselves, on a project written by hand."""

import pytest

from fpgaprune.errors import ToolError
from fpgaprune.rtl.bitstream import make_bitstream
from fpgaprune.rtl.open_tools import ECPPACK, NEXTPNR_ECP5, YOSYS, find_open_tool
from fpgaprune.rtl.place import place_and_route
from fpgaprune.rtl.synthesis import synthesize

from ..unit.rtl.tiny import tiny_project

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


def test_a_bitstream_begins_like_one(project, tmp_path):
    made = make_bitstream(project, "ulx3s", tmp_path / "tiny.bit", device="lfe5u-25f")
    content = made.path.read_bytes()
    assert b"LFE5U-25F" in content[:512]
    assert content.index(b"\xff\xff\xbd\xb3") < 1024  # the preamble of an ECP5 bitstream
    assert made.fmax_mhz > made.clock_mhz
