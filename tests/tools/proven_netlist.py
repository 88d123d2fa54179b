"""Proves that a netlist of combinational logic gives what its Verilog says, for all numbers."""

from dataclasses import replace

from fpgaprune.fabric import YOSYS, find_open_tool, make_netlist, run_yosys

_EQUAL = """read_json netlist.json
rename top gate
read_verilog +/{cells}/cells_sim.v
hierarchy -top gate
proc
flatten
opt_clean -purge
read_verilog source.v
rename top gold
proc
miter -equiv -flatten gold gate miter
sat -verify -prove trigger 0 miter
"""


def mapped(source, family, folder):
    """Return the netlist of module `top` in `source`."""
    return make_netlist({"source.v": source}, "top", family, folder, find_open_tool(YOSYS), 600)


def prove(made, cells="xilinx"):
    """End with an error unless a netlist is proven; yosys has the cells of its family in the folder `cells`."""
    next(made.folder.glob("*.ys")).write_text(_EQUAL.format(cells=cells))
    run_yosys(made.folder, find_open_tool(YOSYS), 600)


def with_wrong_map(family, name, old, new):
    """Return `family` with `new` in place of `old` in its map `name`."""
    text = family.maps[name].decode()
    assert old in text
    return replace(family, maps={**family.maps, name: text.replace(old, new).encode()})
