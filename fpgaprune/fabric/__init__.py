"""Tools that run on the Verilog of a design: simulation, synthesis, place and route, bitstreams, vendors' hand-off."""

from fpgaprune.fabric.bitstream import make_bitstream
from fpgaprune.fabric.boards import find_board
from fpgaprune.fabric.cells import family_of, find_family
from fpgaprune.fabric.families import OPEN_TOOLS, find_router, versions_found
from fpgaprune.fabric.handoff import write_handoff
from fpgaprune.fabric.open_tools import OpenTool, find_open_tool
from fpgaprune.fabric.place import place_and_route
from fpgaprune.fabric.project import RtlProject, to_verilog
from fpgaprune.fabric.simulation import simulate
from fpgaprune.fabric.synthesis import synthesize
from fpgaprune.fabric.vectors import golden_vectors
from fpgaprune.fabric.verilator import simulator_version

__all__ = [
    "OPEN_TOOLS",
    "OpenTool",
    "RtlProject",
    "family_of",
    "find_board",
    "find_family",
    "find_open_tool",
    "find_router",
    "golden_vectors",
    "make_bitstream",
    "place_and_route",
    "simulate",
    "simulator_version",
    "synthesize",
    "to_verilog",
    "versions_found",
    "write_handoff",
]
