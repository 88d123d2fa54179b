"""Tools that run on the Verilog of a design: simulation, synthesis, place and route, bitstreams, vendors' hand-off."""

from fpgaprune.fabric.bitstream import make_bitstream
from fpgaprune.fabric.handoff import write_handoff
from fpgaprune.fabric.place import place_and_route
from fpgaprune.fabric.project import RtlProject, to_verilog
from fpgaprune.fabric.simulation import simulate
from fpgaprune.fabric.synthesis import synthesize
from fpgaprune.fabric.vectors import golden_vectors

__all__ = [
    "RtlProject",
    "golden_vectors",
    "make_bitstream",
    "place_and_route",
    "simulate",
    "synthesize",
    "to_verilog",
    "write_handoff",
]
