"""Netlists within another top module: prepared once for each part, and refused where they are none."""

import pytest

from fpgaprune.errors import RtlError
from fpgaprune.fabric import ECP5, Router, WrappedNetlist
from fpgaprune.measure import Cells
from fpgaprune.target import find_part

PART = find_part("lfe5u-25f")
NOTHING = Cells.sum([])


def netlist(folder, text):
    (folder / "joined.json").write_text(text)
    return WrappedNetlist(folder, "top", NOTHING, NOTHING)


@pytest.mark.parametrize("text", ["", "[]", '{"modules": {}}', '{"modules": {"top": {"cells": {"a": {}}}}}'])
def test_what_is_no_netlist_is_named_and_nothing_is_written(tmp_path, text):
    with pytest.raises(RtlError, match=r"joined\.json is (no|not a) netlist of yosys"):
        netlist(tmp_path, text).prepared(ECP5, PART, 60)
    assert [path.name for path in tmp_path.iterdir()] == ["joined.json"]


def test_a_netlist_is_prepared_once_for_each_version_of_what_prepares_it(tmp_path):
    calls = []

    def prepare(document, top, part, timeout_s):
        calls.append((top, part.name, timeout_s))
        document["seen"] = True

    made, whole = {}, netlist(tmp_path, '{"modules": {}}')
    for version in ("1", "1", "2"):
        router = Router("ecp5", ECP5.tool, prepare, lambda version=version: (version,))
        path = whole.prepared(router, PART, 60)
        assert path.read_text() == '{"modules":{},"seen":true}'
        made[version] = path.name
    assert calls == [("top", "lfe5u-25f", 60)] * 2
    assert made["1"] != made["2"]


def test_a_router_that_prepares_nothing_takes_the_netlist_as_it_is(tmp_path):
    whole = netlist(tmp_path, "{}")
    assert whole.prepared(Router("ecp5", ECP5.tool), PART, 60) == tmp_path / "joined.json"
