"""The netlist of synthesis beside its Verilog, register by register: equal, and a changed netlist is told by name."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.errors import ToolError
from fpgaprune.fabric import (
    ABC,
    YOSYS,
    compare_netlist,
    find_family,
    find_open_tool,
    make_netlist,
    prove_netlist,
    read_sources,
)
from fpgaprune.rtl import to_verilog
from tests.quick import quick
from tests.unit.rtl.networks import Net

pytestmark = pytest.mark.usefixtures("yosys")
FAMILIES = ["gowin", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ecp5", "ice40up", "nexus", "gatemate"))]


@pytest.fixture(scope="module", autouse=True)
def abc():
    try:
        find_open_tool(ABC)
    except ToolError as error:
        pytest.skip(str(error))


def design(seed=1):
    """Two Dense layers, which are computed at once."""
    net = Net(np.random.default_rng(seed))
    return net.design(net.dense(net.dense(net.input(5), 4), 3))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return to_verilog(design(), tmp_path_factory.mktemp("verilog"))


@pytest.mark.parametrize("family", FAMILIES)
def test_registers_of_layers_that_are_computed_at_once_are_proven(project, family, tmp_path):
    found = prove_netlist(project, family, cache=tmp_path)
    assert found.holds
    # Nothing here reads a memory; what reads a register that the netlist lacks may stay undecided.
    assert found.proven > 500 > 9 * found.not_decided
    assert f"for all inputs: {found.proven:,} bits compared, 0 differ" in found.claim().sentence()


@pytest.fixture(scope="module")
def made(project, tmp_path_factory):
    """The netlist for Gowin, the files of its Verilog, and what compares it in a folder of its own when changed."""
    family, tools = find_family("gowin"), (find_open_tool(YOSYS), find_open_tool(ABC))
    sources = read_sources(project, project.files)
    netlist = make_netlist(sources, project.top, family, tmp_path_factory.mktemp("synth"), tools[0], 600)

    def compared(change, folder):
        shutil.copytree(netlist.folder, folder)
        document = json.loads((folder / "netlist.json").read_text())
        change(document["modules"][project.top])
        (folder / "netlist.json").write_text(json.dumps(document))
        return compare_netlist(replace(netlist, folder=folder), project.top, list(sources), family, tools, 600)

    return compared


def cells(module, kind):
    return [cell for name, cell in sorted(module["cells"].items()) if cell["type"].startswith(kind)]


def changed_table(module):
    table = cells(module, "LUT3")[5]["parameters"]
    table["INIT"] = table["INIT"].translate(str.maketrans("01", "10"))


def swapped_operands(module):
    """Of a sum, the carry of one bit comes from another."""
    first, second = cells(module, "ALU")[3:5]
    first["connections"]["CIN"], second["connections"]["CIN"] = (
        second["connections"]["CIN"],
        first["connections"]["CIN"],
    )


def register_of_another(module):
    first, second = cells(module, "DFF")[7:9]
    first["connections"]["D"] = second["connections"]["D"]


def lost_register(module):
    name = next(name for name, cell in sorted(module["cells"].items()) if cell["type"] == "DFFE")
    del module["cells"][name]


def always_enabled(module):
    cells(module, "DFFE")[4]["connections"]["CE"] = ["1"]


def stuck_register(module):
    """What reads it and its own wire take 0 in its place."""
    name = next(name for name, cell in sorted(module["cells"].items()) if cell["type"] == "DFFE")
    stuck = module["cells"].pop(name)["connections"]["Q"]
    for places in (
        *(cell["connections"] for cell in module["cells"].values()),
        *module["ports"].values(),
        *module["netnames"].values(),
    ):
        for key, bits in places.items():
            if isinstance(bits, list):
                places[key] = ["0" if [bit] == stuck else bit for bit in bits]


CHANGES = [changed_table, swapped_operands, always_enabled, stuck_register, register_of_another, lost_register]


@pytest.mark.parametrize("change", quick(CHANGES[:4], CHANGES))
def test_a_changed_netlist_is_told_by_the_name_of_a_register(made, change, tmp_path):
    found = made(change, tmp_path / "changed")
    assert not found.holds
    assert found.claim().sentence().endswith(f"what the Verilog says for all inputs: {found.differ[0]} does not")


def test_the_netlist_as_it_was_made_holds(made, tmp_path):
    assert made(lambda _: None, tmp_path / "same").holds


def test_a_constant_for_a_register_on_which_nothing_depends_is_no_difference(made, project, tmp_path):
    """Synthesis for a Nexus writes 0 on the wires of registers that it removes so."""
    folder = tmp_path / "unread"

    def unread(module):
        top = folder / "rtl" / f"{project.top}.v"
        register = "reg unread; always @(posedge clk) unread <= rst;"
        text = top.read_text().replace("starting <= ", "starting <= (unread & rst & ~unread) | ")
        top.write_text(text.replace("endmodule", f"{register} endmodule"))
        module["netnames"]["unread"] = {"hide_name": 0, "bits": ["0"], "attributes": {}}

    assert made(unread, folder).holds


@pytest.mark.slow
def test_what_reads_a_memory_or_a_multiplier_is_not_claimed(tmp_path):
    project = to_verilog(design(), tmp_path / "rtl", interval=16)
    found = prove_netlist(project, "gowin")
    assert found.holds
    assert found.proven > found.not_decided > 0
    assert f"{found.not_decided:,} not decided, as behind memories and multipliers" in found.claim().sentence()
