"""Streaming Verilog of a `Design`: generated, simulated, and handed to open and vendor tools."""

from fpgaprune.rtl.generate import to_verilog
from fpgaprune.rtl.options import Options
from fpgaprune.rtl.project import RtlLayer, RtlPort, RtlProject

__all__ = ["Options", "RtlLayer", "RtlPort", "RtlProject", "to_verilog"]
