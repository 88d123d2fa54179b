"""Open synthesis of a project: what is counted, what is kept, and what happens when the tool does not work."""

import json
import os
import time
from pathlib import Path

import pytest

from fpgaprune.errors import RtlError, TargetError, ToolError
from fpgaprune.fabric import YOSYS, family_of, find_family, find_open_tool, list_families, read_statistics, synthesize
from fpgaprune.measure import FLATTENED, SUM, Cells, from_plain, to_plain
from fpgaprune.target import list_parts

from ..programs import write_program
from .fake_tools import fake_yosys

pytestmark = pytest.mark.skipif(os.name != "posix", reason="fake tools are shell scripts")


def test_families_are_those_of_the_lists():
    assert list_families() == ("ecp5", "gatemate", "gowin", "gw5a", "ice40", "ice40up", "nexus", "xc7", "xcup")


@pytest.mark.parametrize("family", list_families())
def test_a_family_names_parts_that_exist_and_no_cell_twice(family):
    kind = find_family(family)
    assert set(kind.parts) <= {part.family for part in list_parts()}
    assert "{top}" in kind.synthesis[-1]
    counted = set().union(*kind.takes.values())
    assert not kind.free & counted


def test_a_part_finds_its_family_and_an_intel_part_none():
    found = {part.name: family_of(part) for part in list_parts()}
    assert (found["xc7z020"], found["lfe5u-85f"], found["gw2a-18"]) == ("xc7", "ecp5", "gowin")
    assert found["lifcl-40"] == found["lfcpnx-100"] == "nexus"
    assert {family for name, family in found.items() if name.startswith(("5c", "10a"))} == {None}


@pytest.mark.parametrize(
    ("family", "types", "figures"),
    [
        ("xc7", {"LUT6": 5, "SRLC32E": 2, "RAM32M": 1, "INV": 1, "MUXF7": 9, "$scopeinfo": 4}, {"lut": 12, "ff": 0}),
        ("xc7", {"RAMB36E1": 2, "RAMB18E1": 1, "DSP48E1": 3, "CARRY4": 7}, {"bram18": 5, "dsp": 3, "carry": 7}),
        ("xcup", {"RAM32M16": 1, "URAM288": 2, "FDRE": 3}, {"lut": 8, "uram": 2, "ff": 3}),
        ("ecp5", {"LUT4": 1, "CCU2C": 4, "TRELLIS_DPR16X4": 1, "PFUMX": 3}, {"lut": 15, "carry": 4, "uram": 0}),
        ("gowin", {"LUT3": 978, "ALU": 46, "RAM16SDP4": 18, "INV": 5, "DFFR": 2}, {"lut": 1137, "ff": 2}),
        ("gw5a", {"LUT3": 7, "ALU": 2, "SDPB": 3}, {"lut": 9, "bram18": 3}),
        ("nexus", {"LUT4": 3, "WIDEFN9": 2, "CCU2": 4, "DPR16X4": 1, "PDP16K": 2, "IB": 9}, {"lut": 21, "bram18": 2}),
        ("ice40", {"SB_LUT4": 3, "SB_RAM40_4K": 2}, {"lut": 3, "bram18": None, "bram4": 2}),
        ("ice40up", {"SB_LUT4": 3, "SB_MAC16": 2}, {"lut": 3, "dsp": 2}),
    ],
)
def test_cells_become_figures(family, types, figures):
    cells = find_family(family).count(types)
    assert {name: getattr(cells, name) for name in figures} == figures
    assert "$scopeinfo" not in cells.types


def test_a_cell_that_nobody_listed_is_refused():
    with pytest.raises(RtlError, match=r"the netlist for xc7 has cells \$mul, which hw/synth/xc7.toml does not list"):
        find_family("xc7").count({"LUT2": 1, "$mul": 1})


def test_a_sum_with_something_unknown_is_unknown():
    ice, ecp = find_family("ice40").count({"SB_LUT4": 3}), find_family("ecp5").count({"LUT4": 4, "DP16KD": 1})
    total = Cells.sum([ice, ecp])
    assert (total.lut, total.bram18) == (7, None)
    assert total.types == {"DP16KD": 1, "LUT4": 4, "SB_LUT4": 3}
    assert from_plain(json.loads(json.dumps(to_plain(total))), Cells, "cells") == total


def test_every_layer_and_the_whole_are_synthesised(tiny, fakes):
    calls = fake_yosys(fakes)
    told = []
    found = synthesize(tiny, "ecp5", on_step=lambda *step: told.append(step))
    assert sorted(calls.read_text().split()) == ["linear", "relu", "tiny"]
    assert [(x.layer, x.cells.lut, x.cells.ff, x.kept, x.dropped) for x in found.layers] == [
        ("linear", 66, 6, 2, 1),
        ("relu", 46, 4, None, None),
    ]
    assert (found.total.lut, found.total_of, found.tool) == (46, FLATTENED, "Yosys 9.9 (played)")
    assert [step[:2] for step in told] == [(1, 3), (2, 3), (3, 3)]
    assert found.to_json()["stage"] == "synth(open)"


def test_a_layer_is_given_only_its_own_files(tiny, fakes):
    fake_yosys(fakes)
    synthesize(tiny, "ecp5")
    folders = {path.name.rpartition("-")[0]: path for path in (tiny.path / "synth" / "ecp5").iterdir()}
    assert {p.name for p in (folders["relu"] / "rtl").iterdir()} == {"relu.v"}
    assert {p.name for p in (folders["tiny"] / "rtl").iterdir()} == {"linear.v", "relu.v", "tiny.v"}


def test_a_second_call_starts_nothing_and_a_change_only_what_it_reaches(tiny, fakes):
    calls = fake_yosys(fakes)
    first = synthesize(tiny, "ecp5")
    again = synthesize(tiny, "ecp5")
    assert again.to_json() == first.to_json()
    assert len(calls.read_text().split()) == 3
    source = tiny.path / "rtl/relu.v"
    source.write_text(source.read_text() + "// another\n")
    synthesize(tiny, "ecp5")
    assert sorted(calls.read_text().split()[3:]) == ["relu", "tiny"]


def test_a_cache_is_shared_between_projects_but_not_between_families_and_tools(tiny, fakes, tmp_path):
    from .tiny import tiny_project

    calls = fake_yosys(fakes)
    other = tiny_project(tmp_path / "other")
    synthesize(tiny, "ecp5", cache=tmp_path / "cache")
    synthesize(other, "ecp5", cache=tmp_path / "cache")
    assert len(calls.read_text().split()) == 3
    with pytest.raises(RtlError, match="xc7"):  # the fake knows ECP5's cells only: so it was started
        synthesize(other, "xc7", cache=tmp_path / "cache")
    started = len(calls.read_text().split())
    tool = fakes / "bin" / "yosys"
    tool.write_text(tool.read_text().replace("Yosys 9.9", "Yosys 10"))
    synthesize(other, "ecp5", cache=tmp_path / "cache")
    assert len(calls.read_text().split()) == started + 3


def test_a_whole_that_does_not_end_leaves_the_sum_and_says_so(tiny, fakes):
    fake_yosys(fakes, "if top == 'tiny': time.sleep(60)")
    started = time.monotonic()
    found = synthesize(tiny, "ecp5", timeout_s=1.5)
    assert time.monotonic() - started < 10
    assert found.whole.cells is None
    assert found.whole.left_out == "synthesis did not end within 1.5 s"
    assert (found.total.lut, found.total_of) == (66 + 46, SUM)
    (log,) = (tiny.path / "synth" / "ecp5").glob("tiny-*/yosys.log")
    assert log.read_text() == "synthesising tiny\n"


def test_the_layers_alone_are_enough_where_nobody_asks_for_the_whole(tiny, fakes):
    calls = fake_yosys(fakes)
    found = synthesize(tiny, "ecp5", whole=False)
    assert sorted(calls.read_text().split()) == ["linear", "relu"]
    assert [layer.layer for layer in found.layers] == ["linear", "relu"]
    assert (found.total.lut, found.total_of, found.whole.left_out) == (112, SUM, "synthesis was not asked for")


def test_a_total_with_an_unknown_layer_is_unknown(tiny, fakes):
    fake_yosys(fakes, "if top in ('tiny', 'relu'): time.sleep(60)")
    found = synthesize(tiny, "ecp5", timeout_s=1.5)
    assert found.total is None
    assert found.total_of is None
    assert found.layers[0].cells.lut == 66


def test_a_tool_that_dies_ends_the_rest_and_a_second_call_goes_on(tiny, fakes):
    behaviour = (
        "if top == 'relu':\n    time.sleep(1)\n    sys.exit('ERROR: out of luck')\nif top == 'tiny': time.sleep(60)"
    )
    calls = fake_yosys(fakes, behaviour)
    started = time.monotonic()
    with pytest.raises(ToolError, match=r"yosys ended with code 1 in .*'ERROR: out of luck'.*yosys.log"):
        synthesize(tiny, "ecp5", workers=3)
    assert time.monotonic() - started < 15
    calls = fake_yosys(fakes)
    calls.write_text("")
    synthesize(tiny, "ecp5")
    assert sorted(calls.read_text().split()) == ["relu", "tiny"]


def test_an_interrupt_ends_every_process(tiny, fakes):
    fake_yosys(fakes, "open(f'/{top}'.replace('/', sys.argv[0] + '.'), 'w').close()\nif top != 'relu': time.sleep(60)")

    def interrupt(*_):
        raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        synthesize(tiny, "ecp5", workers=3, on_step=interrupt)
    assert time.monotonic() - started < 15
    wanted = str(tiny.path).encode()
    left = [entry for entry in Path("/proc").glob("[0-9]*") if _works_in(entry, wanted)]
    assert not left


def _works_in(entry, wanted):
    try:
        return os.readlink(entry / "cwd").encode().startswith(wanted)
    except OSError:
        return False


def test_a_tool_that_writes_nothing_is_an_error(tiny, fakes):
    write_program(fakes / "bin" / "yosys", "#!/bin/sh\necho Yosys 9.9\n")
    with pytest.raises(ToolError, match=r"yosys ended without statistics\.json; its output is in"):
        synthesize(tiny, "ecp5")


def test_a_missing_tool_is_named_with_the_command_that_installs_it(tiny, fakes, no_packages):
    with pytest.raises(ToolError) as caught:
        synthesize(tiny, "ecp5")
    assert str(caught.value) == (
        "yosys (open synthesis) was found neither on PATH nor as a Python package; "
        "install it with: pip install 'fpgaprune[rtl]'"
    )
    assert not (tiny.path / "synth").exists()


def test_a_program_on_the_path_goes_before_the_package(fakes):
    packaged = find_open_tool(YOSYS)
    assert packaged.version.startswith("pyosys ")
    fake_yosys(fakes)
    assert find_open_tool(YOSYS).command == (str(fakes / "bin" / "yosys"),)


def test_an_unknown_family_is_refused_before_anything_starts(tiny, fakes):
    calls = fake_yosys(fakes)
    with pytest.raises(TargetError, match="family 'xc6' is unknown to open synthesis; wanted one of ecp5, gatemate"):
        synthesize(tiny, "xc6")
    assert not calls.read_text()


def test_a_file_that_is_missing_is_an_error(tiny, fakes):
    fake_yosys(fakes)
    (tiny.path / "rtl/relu.v").unlink()
    with pytest.raises(RtlError, match=r"lists 'rtl/relu.v', which cannot be read: No such file"):
        synthesize(tiny, "ecp5")


@pytest.mark.parametrize(("text", "said"), [("[]", "Expected `object`, got `array`"), ('{"types": {"LUT4": "x"}}', "")])
def test_a_record_that_was_changed_is_named_with_the_folder_to_delete(tiny, fakes, text, said):
    fake_yosys(fakes)
    synthesize(tiny, "ecp5", whole=False)
    (record,) = (tiny.path / "synth" / "ecp5").glob("relu-*/result.json")
    record.write_text(text)
    with pytest.raises(RtlError, match=rf"result\.json is not a netlist's record: {said}.*; delete .*relu-"):
        synthesize(tiny, "ecp5", whole=False)


@pytest.mark.parametrize("text", ['{"design": {}}', '{"design": {"num_cells_by_type": {"LUT4": "many"}}}'])
def test_counts_of_another_form_are_refused(tmp_path, text):
    (tmp_path / "statistics.json").write_text(text)
    with pytest.raises(
        RtlError, match=r"statistics\.json is not a table of cells: .* at `\$.*; use yosys 0\.20 or newer"
    ):
        read_statistics(tmp_path / "statistics.json")
