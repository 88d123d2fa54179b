"""Proves that a netlist of combinational logic gives what its Verilog says, for all numbers."""

from fpgaprune.fabric import YOSYS, find_open_tool, make_netlist, run_yosys

_EQUAL = """read_json netlist.json
rename top gate
read_verilog +/xilinx/cells_sim.v
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


def prove(source, family, folder):
    """End with an error unless the netlist of module `top` in `source` is proven; return its cells."""
    made = make_netlist({"source.v": source}, "top", family, folder, find_open_tool(YOSYS), 600)
    next(made.folder.glob("*.ys")).write_text(_EQUAL)
    run_yosys(made.folder, find_open_tool(YOSYS), 600)
    return made.types
