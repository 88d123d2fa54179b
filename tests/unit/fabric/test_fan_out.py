"""No register or LUT of a Gowin netlist is left with 11 to 50 pins to drive, and each reader sees the same bits."""

import json
import lzma
from itertools import count

import pytest

from fpgaprune.fabric import COPY, copy_widely_read, write_placed


def cell(kind, output, **wires):
    connections = {port: bits if isinstance(bits, list) else [bits] for port, bits in wires.items()}
    directions = {port: "output" if port == output else "input" for port in connections}
    return {"type": kind, "parameters": {}, "connections": connections, "port_directions": directions}


def with_readers(kind="DFFRE", readers=30, reader="LUT1"):
    """A register of net 100 whose net is read `readers` times, and that a LUT feeds which reads the net too."""
    wires = {"D": 101, "CLK": 2, "CE": 3, "RESET": 4}
    cells = {"from": cell(kind, "Q", Q=100, **wires), "next": cell("LUT2", "F", F=101, I0=100, I1=5)}
    for at in range(readers):
        port, output = ("RAD", "DO") if reader == "RAM16SDP4" else ("I0", "F")
        bits = [6, 100, 7, 8] if reader == "RAM16SDP4" else 100
        cells[f"reader{at}"] = cell(reader, output, **{output: 200 + at, port: bits})
    return {"cells": cells}


def pins(module):
    """Net -> the pins that it drives."""
    found = {}
    for one in module["cells"].values():
        for port, bits in one["connections"].items():
            for bit in bits if one["port_directions"][port] == "input" else ():
                found[bit] = found.get(bit, 0) + (4 if (one["type"], port) == ("RAM16SDP4", "RAD") else 1)
    return found


def originals(module):
    """Each cell with its wires, a net of a copy called as that of its original, and the copies apart."""
    cells = module["cells"]
    output = {name: next(p for p, d in one["port_directions"].items() if d == "output") for name, one in cells.items()}
    net = {
        one["connections"][output[name]][0]: cells[name.split(COPY)[0]]["connections"][output[name]][0]
        for name, one in cells.items()
    }
    named = {
        name: (one["type"], {port: [net.get(bit, bit) for bit in bits] for port, bits in one["connections"].items()})
        for name, one in cells.items()
    }
    copies = {name: one for name, one in named.items() if COPY in name}
    return {name: one for name, one in named.items() if name not in copies}, copies


@pytest.mark.parametrize("kind", ["DFF", "DFFRE", "DFFSE", "LUT4"])
@pytest.mark.parametrize("readers", [10, 11, 29, 47])
def test_readers_are_shared_by_copies_and_see_what_they_saw(kind, readers):
    module = with_readers(kind, readers)
    if kind == "LUT4":
        module["cells"]["from"] = cell("LUT4", "F", F=100, I0=101, I1=2, I2=3, I3=4)
    before, _ = originals(module)
    made = copy_widely_read(module, count(1000))
    assert max(pins(module)[bit] for bit in pins(module) if bit >= 100) <= 10
    after, copies = originals(module)
    assert after == before
    assert len(copies) == made >= readers // 10
    assert all(one == after[name.split(COPY)[0]] for name, one in copies.items())


def test_a_small_memory_counts_for_its_four_luts():
    """Three addresses take 12 pins; 13 take 52, which nextpnr routes as other nets."""
    for memories, copied in ((2, False), (3, True), (12, True), (13, False)):
        module = with_readers(readers=memories, reader="RAM16SDP4")
        module["cells"]["next"]["connections"]["I0"] = [5]
        assert bool(copy_widely_read(module, count(1000))) == copied, memories
        assert not copied or pins(module)[100] <= 10


def test_nets_of_few_or_of_very_many_pins_and_of_other_cells_are_left_alone():
    for module in (with_readers(readers=9), with_readers(readers=50), with_readers("ALU", 30)):
        assert copy_widely_read(module, count(1000)) == 0


def test_copies_of_luts_that_read_each_other_come_to_an_end():
    """Sixty LUTs that each read four others, so that each net has ten readers, and one eleven: a copy of one makes
    readers for four more. Where groups are filled to the brim, each of those has to be copied for a single reader."""
    cells = {
        f"lut{at}": cell("LUT4", "F", F=100 + at, **{f"I{n}": 100 + (at * 7 + n * 11) % 24 for n in range(4)})
        for at in range(60)
    }
    module = {"cells": cells}
    assert set(pins(module).values()) <= {9, 10, 11}
    assert copy_widely_read(module, count(1000)) < 60
    assert max(pins(module).values()) <= 10


def test_the_places_of_copies_are_kept_with_their_original(tmp_path):
    """A copy of a copy too: the netlist of synthesis has neither."""
    joined = with_readers(readers=1)
    ports = {"port_directions": {}, "connections": {}}
    routed = {"cells": {name: {"attributes": {"NEXTPNR_BEL": f"X1Y1/{name}"}, **ports} for name in joined["cells"]}}
    for name in (f"from{COPY}1", f"from{COPY}1{COPY}5"):
        routed["cells"][name] = {"attributes": {"NEXTPNR_BEL": f"X2Y2/{name}"}, **ports}
    for name, module in (("joined", joined), ("routed", routed)):
        (tmp_path / name).write_text(json.dumps({"modules": {"top": {"ports": {}, **module}}}))
    kept = write_placed(tmp_path / "joined", tmp_path / "routed", "top", tmp_path / "x.fs")
    cells = json.loads(lzma.decompress(kept.read_bytes()))["cells"]
    assert set(cells) == set(joined["cells"])
    assert cells["from"]["bel"] == "X1Y1/from"
    assert cells["from"]["copies"] == [f"X2Y2/from{COPY}1", f"X2Y2/from{COPY}1{COPY}5"]
    assert "copies" not in cells["next"]
