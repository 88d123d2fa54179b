"""The way to hardware that `[target]` asks for."""

import pytest

from fpgaprune.errors import ConfigError
from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.file import TargetConfig


def makes_project(**keys):
    return parse_config({"target": keys}, "flow.toml")[TargetConfig].makes_project


@pytest.mark.parametrize(
    ("part", "route", "wanted"),
    [
        ("xc7z020clg400-1", "auto", True),
        ("xc7z020clg400-1", "hls", True),
        ("xc7z020clg400-1", "verilog", False),
        ("GW1NR-9", "auto", False),
        ("GW1NR-9", "verilog", False),
        ("LFE5U-25F", "auto", False),
    ],
)
def test_auto_is_our_verilog_where_no_tool_builds_hls(part, route, wanted):
    assert makes_project(part=part, route=route) is wanted


def test_hls_for_a_part_without_it_is_refused():
    with pytest.raises(ConfigError, match="no tool of Gowin builds an hls4ml project: wanted 'verilog', or 'auto'"):
        makes_project(part="GW1NR-9", route="hls")
